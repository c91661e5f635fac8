"""Scans, loops and choices of JAX in a program.

What all runs do alike is a loop or a switch of the program. Where runs differ, all branches are
played, loops go on until the last run is done, and every run keeps its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbio.engine import elementwise
from jaxbio.engine.arrays import LARGE, Array, Large, cost, is_small, moved, reads, small
from jaxbio.engine.jaxprs import check, split_of_scan, weight
from jaxbio.engine.program import RUN, SHARED, Memory, Value
from jaxbio.engine.reductions import any_of

if TYPE_CHECKING:
    from jaxbio.engine.flatten import Flattener

UNROLLED = 1024  # values: a scan that becomes so many, all turns together, is written out
SCAN = frozenset(
    "jaxpr length reverse unroll linear _split_transpose num_consts num_carry ft_in ft_out".split()
)
WHILE = frozenset("cond_jaxpr body_jaxpr cond_nconsts body_nconsts".split())


@contextmanager
def _pinned(flat: Flattener, arrays: Sequence[Array]) -> Iterator[None]:
    flat.pinned.extend(arrays)
    yield
    del flat.pinned[len(flat.pinned) - len(arrays) :]


# --- scans


def scan(flat: Flattener, eqn: Any, operands: list[Array]) -> list[Array]:
    check(eqn, SCAN)
    closed, length = eqn.params["jaxpr"], eqn.params["length"]
    consts, carries = split_of_scan(eqn, closed.jaxpr)
    fixed, start = operands[:consts], operands[consts : consts + carries]
    rows, made = operands[consts + carries :], eqn.outvars[carries:]
    of_turn = closed.jaxpr.outvars[carries:]
    whole = length * weight(closed.jaxpr, LARGE)
    with _pinned(flat, [*fixed, *rows]):
        if whole <= UNROLLED and all(is_small(var.aval.shape) for var in of_turn):
            return _written_out(flat, eqn, closed, fixed, start, rows, made)
    # Read in every turn: better not computed in every turn.
    fixed = [flat.arrays.cheap(array) for array in fixed]
    # In a loop, single values cannot be looked up by its counter.
    rows = [row if isinstance(row, Large) else flat.arrays.in_memory(row) for row in rows]
    with _pinned(flat, [*fixed, *rows]):
        return _in_turns(flat, eqn, closed, fixed, start, rows, made)


def _row(flat: Flattener, rows: Array, place: Value) -> Array:
    return flat.arrays.view(rows, rows.shape[1:], lambda i: (place, *i))


def _written_out(
    flat: Flattener, eqn: Any, closed: Any, fixed: Any, start: Any, rows: Any, made: Any
) -> list[Array]:
    """All turns, one after the other."""
    length, carry, kept = eqn.params["length"], list(start), []
    for i in range(length)[::-1] if eqn.params["reverse"] else range(length):
        now = [_row(flat, row, flat.arrays.number(i)) for row in rows]
        results = flat.evaluate(closed, [*fixed, *carry, *now])
        carry = results[: len(start)]
        kept.append(results[len(start) :])
    kept = kept[::-1] if eqn.params["reverse"] else kept
    found = []
    for i, var in enumerate(made):
        items = [value for turn in kept for value in turn[i].reshape(-1)]
        if is_small(var.aval.shape):
            found.append(small(var.aval.shape, items))
        else:
            found.append(flat.arrays.in_memory(small(var.aval.shape, items)))
    return [*carry, *found]


def _in_turns(
    flat: Flattener, eqn: Any, closed: Any, fixed: Any, start: Any, rows: Any, made: Any
) -> list[Array]:
    """A loop, with rows and what each turn makes in memories."""
    a, length, carries = flat.arrays, eqn.params["length"], len(start)
    homes = [flat.b.new_memory(math.prod(v.aval.shape), v.aval.dtype) for v in made]

    def turn(counter: Value, carry: list[Array]) -> list[Array]:
        backwards = eqn.params["reverse"]
        place = flat.b.emit("sub", a.number(length - 1), counter) if backwards else counter
        results = flat.evaluate(closed, [*fixed, *carry, *(_row(flat, row, place) for row in rows)])
        for array, home in zip(results[carries:], homes, strict=True):
            first = flat.b.emit("mul", place, a.number(math.prod(array.shape)))
            a.write(array, home, first)
        return results[:carries]

    carry = _looped(flat, length, start, turn)
    found = [a.of_memory(home, v.aval.shape) for home, v in zip(homes, made, strict=True)]
    return [*carry, *(a.apart(x) if is_small(x.shape) else x for x in found)]


# --- loops


def _looped(
    flat: Flattener,
    length: int | None,
    start: Sequence[Array],
    body: Callable[[Value, list[Array]], list[Array]],
    test: Callable[[list[Array]], Value] | None = None,
) -> list[Array]:
    """A loop that carries arrays: small ones as values, large ones in memories of their own."""
    homes: list[Memory | None] = []
    for i, array in enumerate(start):
        home = flat.owned(array, [*start[:i], *start[i + 1 :]])
        homes.append(home.memory if isinstance(home, Large) else None)
    initial = _small_values(start)

    def whole(params: list[Value]) -> list[Array]:
        return _whole(flat, params, homes, [array.shape for array in start])

    def values(arrays: list[Array]) -> list[Value]:
        flat.settle(arrays, homes)
        return _small_values(arrays)

    if test is None:
        assert length is not None
        last = flat.b.loop(length, initial, lambda i, params: values(body(i, whole(params))))
    else:
        last = flat.b.repeat(
            initial,
            lambda params: test(whole(params)),
            lambda params: values(body(flat.arrays.number(0), whole(params))),
        )
    return whole(last)


def _small_values(arrays: Sequence[Array]) -> list[Value]:
    return [v for array in arrays if isinstance(array, np.ndarray) for v in array.reshape(-1)]


def _whole(flat: Flattener, values: Sequence[Value], homes: Any, shapes: Any) -> list[Array]:
    """Arrays of the values of the small ones and the memories of the large ones."""
    left = iter(values)
    return [
        small(shape, [next(left) for _ in range(math.prod(shape))])
        if home is None
        else flat.arrays.of_memory(home, shape)
        for home, shape in zip(homes, shapes, strict=True)
    ]


def repeat(flat: Flattener, eqn: Any, operands: list[Array]) -> list[Array]:
    """A while loop. Whether a run goes on is carried along, first of all."""
    check(eqn, WHILE)
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    of_test, of_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    operands = [flat.arrays.cheap(array) for array in operands]  # read in every turn
    fixed, more = operands[:of_test], operands[of_test : of_test + of_body]
    start = operands[of_test + of_body :]

    def asked(carry: list[Array]) -> list[Array]:
        """Does the run go on? And, of a loop under a `jax.vmap` of the user's, which rows of it."""
        with _pinned(flat, carry):
            goes_on = flat.evaluate(test, [*fixed, *carry])[0]
        if not goes_on.shape:
            return [goes_on]
        return [small((), [any_of(flat.arrays, goes_on)]), goes_on]

    flags = 2 if test.jaxpr.outvars[0].aval.shape else 1

    def turn(_: Value, whole: list[Array]) -> list[Array]:
        goes_on, carry = whole[flags - 1], whole[flags:]
        if flags == 1 and flat.arrays.at_known(goes_on, ()).rate < RUN:
            new = flat.evaluate(body, [*more, *carry])
        else:
            with _pinned(flat, [goes_on, *carry]):  # what is done keeps what it has
                new = flat.evaluate(body, [*more, *carry])
            new = [_chosen(flat, goes_on, a, b) for a, b in zip(new, carry, strict=True)]
        return [*asked(new), *new]

    with _pinned(flat, [*fixed, *more]):
        found = _looped(
            flat,
            None,
            [*asked(start), *start],
            turn,
            lambda carry: flat.b.emit("any", flat.arrays.at_known(carry[0], ())),
        )
    return found[flags:]


# --- choices


def _chosen(flat: Flattener, condition: Array, new: Array, old: Array) -> Array:
    """One of two arrays, for each run, or for each entry of a condition over their first axes."""
    if new is old:
        return old
    if not isinstance(new, Large) and not isinstance(old, Large):
        flags = np.repeat(flat.arrays.apart(condition), new.size // max(condition.size, 1))
        triples = zip(flags, new.reshape(-1), old.reshape(-1), strict=True)
        return small(new.shape, [flat.b.emit("select", *triple) for triple in triples])
    condition = flat.arrays.for_loops(condition)

    def at(index: Any) -> Value:
        flag = flat.arrays.at(condition, index[: condition.ndim])
        one, two = flat.arrays.at(new, index), flat.arrays.at(old, index)
        return flat.b.emit("select", flag, one, two)

    dtype = new.dtype if isinstance(new, Large) else old.dtype
    total = 1 + cost(condition) + cost(new) + cost(old)
    seen = reads(new) | reads(old) | reads(condition)
    same = condition.shape == new.shape
    elsewhere = moved(new) | moved(old) | (moved(condition) if same else reads(condition))
    return Large(new.shape, dtype, at, seen, total, moved=elsewhere)


def choose(flat: Flattener, eqn: Any, operands: list[Array]) -> list[Array]:
    check(eqn, ["branches"])
    branches, operands = eqn.params["branches"], operands.copy()
    index = elementwise.convert(flat.b, flat.arrays.at_known(operands.pop(0), ()), np.int32)
    index = flat.arrays.clamped(index, len(branches) - 1)
    if index.op == "const":
        return flat.evaluate(branches[int(index.param)], operands)
    if index.rate <= SHARED:
        return _switch(flat, eqn, index, operands)
    operands = [flat.arrays.cheap(array) for array in operands]
    with _pinned(flat, operands):
        results = [flat.evaluate(branch, operands) for branch in branches]
    found = results[-1]
    for i in reversed(range(len(branches) - 1)):
        hit = small((), [flat.b.emit("eq", index, flat.arrays.number(i))])
        found = [_chosen(flat, hit, a, b) for a, b in zip(results[i], found, strict=True)]
    return found


def _switch(flat: Flattener, eqn: Any, index: Value, operands: list[Array]) -> list[Array]:
    """Only the branch that is chosen is played. Large results get the same memory in all."""
    branches = eqn.params["branches"]
    homes: list[Memory | None] = []

    def home_of(result: Array) -> Memory | None:
        if not isinstance(result, Large):
            return None
        own = result.memory
        if own is None or own.role == "table" or own in homes or flat.is_seen(own):
            return flat.b.new_memory(result.size, result.dtype)
        return own

    def values(branch: Any) -> list[Value]:
        results = flat.evaluate(branch, operands)
        if not homes:
            for result in results:
                homes.append(home_of(result))
        flat.settle(results, homes)
        return _small_values(results)

    chosen = flat.b.switch(index, [lambda one=branch: values(one) for branch in branches])
    return _whole(flat, chosen, homes, [var.aval.shape for var in eqn.outvars])
