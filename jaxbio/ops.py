"""Small numerical pieces for code that runs inside the loop: elementwise, sums, nothing else.

On the tiny axes of a bandit, comparing with every index is faster than looking one up. No matrix
product: its result depends on how many runs are played side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbio.core import Array
from jaxbio.trees import float_dtype

FEW_LANES = 8  # up to so many are written out; rounds with more are rare
UNROLLED = 32  # up to this length a sum is written out term by term: only so does it vectorise


def count(mask: Array, axis: int | None = None) -> Array:
    """int32: how many entries are True."""
    return jnp.sum(mask, axis=axis, dtype=jnp.int32)


def wrapping(least: int) -> int:
    """Places of an array that is filled round and round: at least so many, and a power of two, so
    that `index & (places - 1)` is the place of an index.
    """
    return 1 << (least - 1).bit_length()


def one_hot(index: Array, size: int) -> Array:
    """bool [size, *index.shape]: True where the position equals `index`."""
    positions = lax.iota(jnp.int32, size).reshape(size, *(1,) * jnp.ndim(index))
    return positions == index


def cell(row: Array, column: Array, rows: int, columns: int) -> Array:
    """bool [rows, columns]: True at (row, column)."""
    return one_hot(row, rows)[:, None] & one_hot(column, columns)


def select(values: Array, index: Array) -> Array:
    """values[index] along the first axis. values: [n] or [n, ...]; index: [], within range.

    Few values are chosen from one by one, which vectorises; many are looked up.
    """
    if values.shape[0] > UNROLLED:
        return lax.dynamic_index_in_dim(values, index, keepdims=False)
    found = values[0]
    for i in range(1, values.shape[0]):
        found = jnp.where(index == i, values[i], found)
    return found


def choose(condition: Array, new: Any, old: Any) -> Any:
    """One of two trees of the same structure. condition: bool []."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def sum_by(index: Array, values: Array, size: int) -> Array:
    """[size]: the sum of values[lanes] over the lanes with each index; index: int32 [lanes].

    Lane by lane, so that the sum is the same however many empty lanes there are.
    """

    def add(total: Array, lane: tuple[Array, Array]) -> tuple[Array, None]:
        mine, value = lane
        return jnp.where(one_hot(mine, size), total + value, total), None

    zero = jnp.zeros((), values.dtype)
    if index.shape[0] > FEW_LANES:
        return lax.scan(add, jnp.zeros(size, values.dtype), (index, values))[0]
    total = jnp.where(one_hot(index[0], size), values[0], zero)
    for lane in range(1, index.shape[0]):
        total, _ = add(total, (index[lane], values[lane]))
    return total


def count_by(index: Array, due: Array, size: int) -> Array:
    """int32 [size]: how many lanes that are due have each index."""
    return sum_by(index, due.astype(jnp.int32), size)


def cumulative(values: Array) -> Array:
    """Cumulative sums of values [n], added one after the other."""
    if values.shape[0] > UNROLLED:
        zero = jnp.zeros((), values.dtype)
        return lax.scan(lambda total, x: (total + x, total + x), zero, values)[1]
    sums = [values[0]]
    for i in range(1, values.shape[0]):
        sums.append(sums[-1] + values[i])
    return jnp.stack(sums)


def pick(weights: Array, u: Array) -> Array:
    """An index drawn in proportion to weights [K]: their cumulative sums inverted at u."""
    if weights.shape[0] > UNROLLED:
        return _pick_in_a_loop(weights, u)
    sums = cumulative(weights)
    return count(u * sums[-1] >= sums[:-1])


def _pick_in_a_loop(weights: Array, u: Array) -> Array:
    """The same without keeping the sums: there are many of them on a long axis."""
    zero = jnp.zeros((), weights.dtype)
    level = u * lax.scan(lambda total, x: (total + x, None), zero, weights)[0]

    def add(now: tuple[Array, Array], weight: Array) -> tuple[tuple[Array, Array], None]:
        total = now[0] + weight
        return (total, now[1] + (level >= total).astype(jnp.int32)), None

    return lax.scan(add, (zero, jnp.int32(0)), weights[:-1])[0][1]


def argmin_fair(values: Array, u: Array) -> Array:
    """The index of the least of values [K]; ties are broken at random by u."""
    ties = (values == jnp.min(values)).astype(jnp.int32)
    before = cumulative(ties)
    chosen = jnp.floor(u * before[-1].astype(u.dtype)).astype(jnp.int32)
    return count(before <= jnp.minimum(chosen, before[-1] - 1))


class Wide(NamedTuple):
    """A non-negative counter past 2**31, kept exactly in two int32 words: high * 2**24 + low."""

    high: Array
    low: Array


WIDE_BITS = 24


def wide_zero() -> Wide:
    return Wide(jnp.int32(0), jnp.int32(0))


def wide_add(total: Wide, amount: Array) -> Wide:
    """Add 0 <= amount < 2**30."""
    low = total.low + amount
    return Wide(total.high + (low >> WIDE_BITS), low & ((1 << WIDE_BITS) - 1))


def wide_value(total: Wide) -> Array:
    """The counter as a float."""
    dtype = float_dtype()
    return total.high.astype(dtype) * (2.0**WIDE_BITS) + total.low.astype(dtype)


class Sum(NamedTuple):
    """A compensated (Kahan) sum: float32 loses nothing that matters over 10**8 terms.

    total, error: float, any shape.
    """

    total: Array
    error: Array


def sum_zero(*shape: int) -> Sum:
    return Sum(jnp.zeros(shape, float_dtype()), jnp.zeros(shape, float_dtype()))


def sum_add(total: Sum, amount: Array) -> Sum:
    corrected = amount - total.error
    new = total.total + corrected
    return Sum(new, (new - total.total) - corrected)


def sum_scale(total: Sum, factor: Array) -> Sum:
    """The sum times a number, as a discount of what has been added."""
    return Sum(total.total * factor, total.error * factor)


class Means(NamedTuple):
    """Counts and sums of what was observed for each of n things. count: int32 [n]; sum: Sum [n]."""

    count: Array
    sum: Sum


def means_zero(size: int) -> Means:
    return Means(jnp.zeros(size, jnp.int32), sum_zero(size))


def means_add(means: Means, index: Array, values: Array, due: Array) -> Means:
    """Take in the lanes that are due. index: int32 [lanes]; values: [lanes]; due: bool [lanes]."""
    size = means.count.shape[0]
    amount = sum_by(index, jnp.where(due, values, jnp.zeros((), values.dtype)), size)
    return Means(means.count + count_by(index, due, size), sum_add(means.sum, amount))


def means_value(means: Means) -> Array:
    """[n]: the averages, 0 where nothing has been observed."""
    return means.sum.total / jnp.maximum(means.count, 1).astype(means.sum.total.dtype)
