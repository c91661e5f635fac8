"""Sorts, by counting for each entry those that come before it: stable, and without a branch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxbio.engine.arrays import Array, Arrays, Index, Large, dtype_of, is_small
from jaxbio.engine.elementwise import total_order
from jaxbio.engine.program import BOOL, INT32, Value
from jaxbio.engine.shapes import Rule

Before = Callable[[list[Value], list[Value]], Value]


def sort(a: Arrays, eqn: Any, *operands: Array) -> list[Array]:
    keys = eqn.params["num_keys"]

    def before(one: list[Value], two: list[Value]) -> Value:
        """Does an entry come before another, by its keys alone? NaN is last."""
        less, equal = a.b.constant(False, BOOL), a.b.constant(True, BOOL)
        for mine, other in zip(one[:keys], two[:keys], strict=True):
            smaller, same = a.b.emit("lt", mine, other), a.b.emit("eq", mine, other)
            if mine.dtype.kind == "f":
                odd, other_odd = (a.b.emit("ne", v, v) for v in (mine, other))
                first = a.b.emit("and", other_odd, a.b.emit("not", odd))
                smaller = a.b.emit("or", smaller, first)
                same = a.b.emit("or", same, a.b.emit("and", odd, other_odd))
            less = a.b.emit("or", less, a.b.emit("and", equal, smaller))
            equal = a.b.emit("and", equal, same)
        return less

    return _ordered(a, operands, eqn.params["dimension"], before)


def top_k(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    axis = len(x.shape) - 1
    if eqn.params.get("axis", axis) not in (axis, -1):
        raise ValueError("along another axis than the last")

    def before(one: list[Value], two: list[Value]) -> Value:
        return a.b.emit("gt", total_order(a.b, one[0]), total_order(a.b, two[0]))

    places = Large(x.shape, INT32, lambda i: i[axis])
    number = a.apart(places) if is_small(x.shape) else places
    return [
        a.view(part, out.aval.shape, lambda i: i)
        for part, out in zip(_ordered(a, (x, number), axis, before), eqn.outvars, strict=True)
    ]


def _ordered(a: Arrays, operands: Sequence[Array], axis: int, before: Before) -> list[Array]:
    """Arrays sorted together along an axis."""
    shape = operands[0].shape
    operands = [a.cheap(x) for x in operands]
    n = shape[axis]

    def entry(row: Index, i: Value) -> list[Value]:
        return [a.at(x, (*row[:axis], i, *row[axis:])) for x in operands]

    def rank(row: Index, i: Value) -> Value:
        def count(index: Index, total: list[Value]) -> list[Value]:
            (j,) = index
            mine, other = entry(row, i), entry(row, j)
            earlier, stays = a.b.emit("lt", j, i), a.b.emit("not", before(mine, other))
            comes = a.b.emit("select", earlier, stays, before(other, mine))
            comes = a.b.emit("and", comes, a.b.emit("ne", i, j))
            return [a.b.emit("add", total[0], a.b.emit("convert", comes, dtype=INT32))]

        return a.fold((n,), [a.number(0)], count)[0]

    if is_small(shape):
        return _ordered_apart(a, operands, axis, entry, rank)
    memories = [a.b.new_memory(math.prod(shape), dtype_of(x)) for x in operands]

    def place_one(index: Index) -> None:
        row, i = (*index[:axis], *index[axis + 1 :]), index[axis]
        to = a.place((*index[:axis], rank(row, i), *index[axis + 1 :]), shape)
        for memory, value in zip(memories, entry(row, i), strict=True):
            a.b.store(memory, to, value)

    a.each(shape, place_one)
    return [a.of_memory(memory, shape) for memory in memories]


def _ordered_apart(
    a: Arrays,
    operands: Sequence[Array],
    axis: int,
    entry: Callable[[Index, Value], list[Value]],
    rank: Callable[[Index, Value], Value],
) -> list[Array]:
    """The same for arrays that are taken apart: an entry goes to the place that is its rank."""
    shape = operands[0].shape
    outs = [np.empty(shape, object) for _ in operands]
    n = shape[axis]
    for known in np.ndindex(*shape[:axis], *shape[axis + 1 :]):
        row = a.known_index(known)
        ranks = [rank(row, a.number(i)) for i in range(n)]
        for place in range(n):
            found = entry(row, a.number(0))
            for i in range(1, n):
                hit = a.b.emit("eq", ranks[i], a.number(place))
                pairs = zip(entry(row, a.number(i)), found, strict=True)
                found = [a.b.emit("select", hit, new, old) for new, old in pairs]
            for out, value in zip(outs, found, strict=True):
                out[(*known[:axis], place, *known[axis:])] = value
    return list(outs)


RULES: dict[str, tuple[Rule, str]] = {  # with the parameters that they may have
    "sort": (sort, "dimension is_stable num_keys"),
    "top_k": (top_k, "k axis operand is_stable"),
}
