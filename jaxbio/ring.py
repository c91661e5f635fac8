"""The ring: plays on their way to the learner, filed under the round in which they arrive.

The only place that knows slots. Entry [slot, lane] holds a play that arrives in the round with that
slot. A round reads the row of its own slot (no index per run; several arrivals are neighbouring
lanes) and then files its play at another slot. What is filed depends on what was read, so the
compiled loop has to read first and can update the ring in place.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbio.core import Array, Arrivals, Play

MAX_LANES = 4095
SMALLEST = 64
UNROLLED = 8
UNROLLED_LANES = 16  # more of them, each written out, take minutes to compile


class Ring(NamedTuple):
    """words: arrays [lanes * depth, W], the packed plays, lane by lane, one array per machine type:
    most plays lie in the first lanes, so these are neighbours in memory.

    filed: int32 [depth], how many plays wait in the slot; None where every delay is the same, so
    that one play arrives a round.
    overflow: bool [], a play found no lane.
    """

    words: list[Array]
    filed: Array | None
    overflow: Array


class Codec(NamedTuple):
    """How a play is packed into few arrays, so that filing it is one write.

    The first leaves of a play are its action and state; with the flags of the ticket, and a loss
    that is 0 or 1, they share one int32 word where they fit. float32 leaves travel as the int32
    with the same bits.
    """

    treedef: Any
    bits: tuple[int, ...]  # bits of each leaf in the shared word; 0 for a leaf of its own
    types: tuple[Any, ...]

    def pack(self, play: Play) -> list[Array]:
        """Arrays [W], one per machine type."""
        shared, shift = jnp.int32(0), 0
        groups: dict[Any, list[Array]] = {}
        for leaf, bits in zip(jax.tree.leaves(play), self.bits, strict=True):
            if bits:
                shared = shared | (leaf.astype(jnp.int32) << shift)
                shift += bits
            else:
                word = _to_word(leaf)
                groups.setdefault(word.dtype, []).append(word)
        groups.setdefault(jnp.dtype(jnp.int32), []).append(shared)
        return [jnp.stack(words) for words in groups.values()]

    def unpack(self, arrays: list[Array]) -> Play:
        """arrays [lanes, W] -> a play with leaves [lanes]."""
        groups = {array.dtype: list(jnp.moveaxis(array, 1, 0)) for array in arrays}
        shared, shift, leaves = groups[jnp.dtype(jnp.int32)].pop(), 0, []
        for bits, dtype in zip(self.bits, self.types, strict=True):
            if bits:
                leaves.append(((shared >> shift) & ((1 << bits) - 1)).astype(dtype))
                shift += bits
            else:
                leaves.append(_from_word(groups[_word_type(dtype)].pop(0), dtype))
        return jax.tree.unflatten(self.treedef, leaves)


def _word_type(dtype: Any) -> Any:
    return jnp.dtype(jnp.int32 if dtype == jnp.float32 else dtype)


def _to_word(leaf: Array) -> Array:
    return lax.bitcast_convert_type(leaf, jnp.int32) if leaf.dtype == jnp.float32 else leaf


def _from_word(word: Array, dtype: Any) -> Array:
    return lax.bitcast_convert_type(word, dtype) if dtype == jnp.float32 else word


def depth_for(longest: int, horizon: int) -> int:
    """Slots for delays up to `longest` within `horizon` rounds: the next power of 4, from 64.

    Powers of 4 so that most new delays find a program that is already compiled.
    """
    needed = min(longest, horizon) + 1
    depth = SMALLEST
    while depth < needed:
        depth *= 4
    return depth


def codec(template: Play, num_actions: int, state_slots: int, binary: bool) -> Codec:
    """Plan the packing of plays like `template`, whose leaves are scalars.

    binary: every loss is 0 or 1, so that one bit holds it.
    """
    leaves, treedef = jax.tree.flatten(template)
    limits = {0: num_actions, 1: state_slots}  # Play's first leaves
    if binary:
        limits[2] = 2
    bits = [
        max(1, (limits[i] - 1).bit_length()) if i in limits else int(leaf.dtype == bool)
        for i, leaf in enumerate(leaves)
    ]
    while sum(bits) > 31:
        bits[bits.index(max(bits))] = 0
    return Codec(treedef, tuple(bits), tuple(leaf.dtype for leaf in leaves))


def empty(plan: Codec, template: Play, depth: int, lanes: int, counted: bool) -> Ring:
    words = [jnp.zeros((lanes * depth, *word.shape), word.dtype) for word in plan.pack(template)]
    filed = jnp.zeros(depth, jnp.int32) if counted else None
    return Ring(words, filed, jnp.bool_(False))


class Place(NamedTuple):
    """Where a play goes: int32 [] each. row: of `words`; slot: of `filed`, and its new entry."""

    row: Array
    slot: Any
    entry: Any


def place(
    ring: Ring, t: Array, delay: Array, horizon: Array, depth: int, lanes: int
) -> tuple[Place, Array]:
    """Find a lane for round t's play, which arrives in round t + delay: its place, and overflow.

    A delay of 0 leaves nothing to wait for. What arrives after the horizon is not counted (it may
    lie about in a slot). A delay past the end of the ring is such a case (see `depth_for`); where
    it is not, the run is marked (`rollout.Facts.lost`).
    """
    due_round = t + jnp.minimum(delay, depth - 1)
    slot = due_round & (depth - 1)
    if ring.filed is None:
        return Place(slot, None, None), ring.overflow
    taken = lax.dynamic_index_in_dim(ring.filed, slot, keepdims=False)
    waits = (delay > 0) & (delay < depth) & (t <= horizon - delay)
    row = jnp.minimum(taken, lanes - 1) * depth + slot
    entry = taken + waits.astype(jnp.int32)
    return Place(row, slot, entry), ring.overflow | (waits & (taken >= lanes))


def write(ring: Ring, packed: list[Array], place: Place, overflow: Array) -> Ring:
    """File a packed play, arrays [W]."""
    # The slot was looked up before: a second look would need the array as it was, a copy.
    filed, place = lax.optimization_barrier((ring.filed, place))
    if filed is not None:
        filed = lax.dynamic_update_index_in_dim(filed, place.entry, place.slot, 0)
    words = [
        lax.dynamic_update_index_in_dim(array, word, place.row, 0)
        for array, word in zip(ring.words, packed, strict=True)
    ]
    return Ring(words, filed, overflow)


def write_one_by_one(ring: Ring, packed: list[Array], place: Place, overflow: Array) -> Ring:
    """`write` for the plays of many runs, run by run: every array has a trailing [runs] axis.

    In a native loop (see `kernel`) this is a handful of loads and stores per run.
    """
    runs = overflow.shape[0]
    unrolled = math.gcd(runs, UNROLLED)

    def some(step: Array, arrays: tuple[list[Array], Array]) -> tuple[list[Array], Array]:
        for i in range(unrolled):
            arrays = _write_run(*arrays, packed, place, step * unrolled + i)
        return arrays

    steps = jnp.int32(runs // unrolled)
    words, filed = lax.fori_loop(jnp.int32(0), steps, some, (ring.words, ring.filed))
    return Ring(words, filed, overflow)


def _write_run(
    words: list[Array], filed: Array, packed: list[Array], place: Place, run: Array
) -> tuple[list[Array], Array]:
    """File the play of one of many runs."""

    def of_run(x: Array) -> Array:
        return lax.dynamic_slice_in_dim(x, run, 1, -1)

    start = (place.row[run], jnp.int32(0), run)
    words = [
        lax.dynamic_update_slice(array, of_run(word)[None], start)
        for array, word in zip(words, packed, strict=True)
    ]
    return words, lax.dynamic_update_slice(filed, of_run(place.entry)[None], (place.slot[run], run))


def turn(ring: Ring, t: Array) -> Ring:
    """The end of round t: its slot is empty again."""
    if ring.filed is None:
        return ring
    slot = t & (ring.filed.shape[0] - 1)
    empty = jnp.zeros((), ring.filed.dtype)
    return ring._replace(filed=lax.dynamic_update_index_in_dim(ring.filed, empty, slot, 0))


def number_due(ring: Ring, t: Array, delay: Array) -> Array:
    """int32 []: how many plays of older rounds arrive at the end of round t.

    delay: of round t; where every delay is the same it says whether a loss is on its way at all.
    """
    if ring.filed is None:
        return ((delay > 0) & (t > delay)).astype(jnp.int32)
    slot = t & (ring.filed.shape[0] - 1)
    return lax.dynamic_index_in_dim(ring.filed, slot, keepdims=False)


def row(words: list[Array], t: Array, depth: int, lanes: int) -> list[Array]:
    """The first `lanes` packed plays that are filed under round t: arrays [lanes, W]."""
    slot = t & (depth - 1)
    if lanes > UNROLLED_LANES:
        return [_column(word, slot, depth, lanes) for word in words]
    places = [lane * depth + slot for lane in range(lanes)]
    return [
        jnp.stack([lax.dynamic_index_in_dim(word, place, keepdims=False) for place in places])
        for word in words
    ]


def _column(words: Array, slot: Array, depth: int, lanes: int) -> Array:
    """[lanes, W]: one slice, which compiles in no time however many lanes there are."""
    table = words.reshape(-1, depth, words.shape[-1])
    origin = jnp.zeros_like(slot)
    size = (lanes, 1, words.shape[-1])
    return lax.dynamic_slice(table, (origin, slot, origin), size).reshape(lanes, -1)


def arrivals(row: list[Array], plan: Codec, number: Array, blank: bool = True) -> Arrivals:
    """The plays of a row [lanes, W], of which the first `number` are due: leaves [lanes].

    blank: is everything 0 in a lane that is not due, or only its loss? What else it holds is left
    from plays of long ago.
    """
    play = plan.unpack(row)
    due = lax.iota(jnp.int32, row[0].shape[0]) < number
    if blank:
        return Arrivals(jax.tree.map(lambda x: jnp.where(due, x, jnp.zeros_like(x)), play), due)
    return Arrivals(play._replace(loss=jnp.where(due, play.loss, 0)), due)
