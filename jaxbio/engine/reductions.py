"""Primitives that put many entries together: sums, extremes, products of matrices, running sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxbio.engine.arrays import Array, Arrays, Index, dtype_of, is_small
from jaxbio.engine.elementwise import combine, convert, extreme
from jaxbio.engine.program import BOOL, Value
from jaxbio.engine.shapes import Rule


def dot_general(a: Arrays, eqn: Any, x: Array, y: Array) -> list[Array]:
    (mine, other), (batch, other_batch) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    x, y = a.cheap(x), a.cheap(y)
    apart = is_small(out.shape) and isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    if not apart:
        x, y = a.for_loops(x), a.for_loops(y)
    free = [d for d in range(len(x.shape)) if d not in (*mine, *batch)]
    other_free = [d for d in range(len(y.shape)) if d not in (*other, *other_batch)]
    summed = [x.shape[d] for d in mine]

    def at(index: Index) -> Value:
        places, others = list(index[: len(batch)]), list(index[len(batch) :])
        left = dict(zip(batch, places, strict=True))
        left |= dict(zip(free, others[: len(free)], strict=True))
        right = dict(zip(other_batch, places, strict=True))
        right |= dict(zip(other_free, others[len(free) :], strict=True))

        def product(i: Index) -> Value:
            one = {**left, **dict(zip(mine, i, strict=True))}
            two = {**right, **dict(zip(other, i, strict=True))}
            return a.b.emit(
                "mul",
                convert(a.b, a.at(x, tuple(one[d] for d in range(len(x.shape)))), out.dtype),
                convert(a.b, a.at(y, tuple(two[d] for d in range(len(y.shape)))), out.dtype),
            )

        return _folded(a, "reduce_sum", summed, product, np.dtype(out.dtype), apart)

    return [a.made(out.shape, out.dtype, at)]


def reduce_(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    axes, name, out = eqn.params["axes"], eqn.primitive.name, eqn.outvars[0].aval
    kept = [d for d in range(len(x.shape)) if d not in axes]
    over = [x.shape[d] for d in axes]

    def at(index: Index) -> Value:
        def entry(inner: Index) -> Value:
            places = dict(zip(kept, index, strict=True)) | dict(zip(axes, inner, strict=True))
            return a.at(x, tuple(places[d] for d in range(len(x.shape))))

        return _folded(a, name, over, entry, np.dtype(out.dtype), isinstance(x, np.ndarray))

    return [a.made(out.shape, out.dtype, at)]


def _folded(
    a: Arrays, name: str, shape: list[int], entry: Any, dtype: np.dtype, apart: bool
) -> Value:
    """All entries put together, in their order. apart: they are values, so there is no loop."""
    if math.prod(shape) and (apart or a.is_written_out(shape)):  # without a first number
        values = [entry(a.known_index(known)) for known in np.ndindex(*shape)]
        if name in ("reduce_max", "reduce_min") and dtype.kind == "f":
            return extreme(a.b, name.removeprefix("reduce_"), values)
        total = values[0]
        for value in values[1:]:
            total = combine(a.b, name, total, value)
        return total
    start = a.b.constant(_neutral(name, dtype), dtype)
    return a.fold(shape, [start], lambda i, total: [combine(a.b, name, total[0], entry(i))])[0]


def any_of(a: Arrays, flags: Array) -> Value:
    """Is one of them true?"""
    shape = list(flags.shape)
    return _folded(a, "reduce_or", shape, lambda i: a.at(flags, i), BOOL, is_small(shape))


def _neutral(name: str, dtype: np.dtype) -> Any:
    """The number that changes nothing."""
    if name in ("reduce_sum", "reduce_or", "reduce_xor"):
        return 0
    if name == "reduce_prod":
        return 1
    if name == "reduce_and":
        return True if dtype == BOOL else -1
    if dtype == BOOL:
        return name == "reduce_min"
    low, high = (-np.inf, np.inf) if dtype.kind == "f" else (
        np.iinfo(dtype).min, np.iinfo(dtype).max,
    )  # fmt: skip
    return low if name == "reduce_max" else high


def arg_extreme(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    (axis,), out = eqn.params["axes"], eqn.outvars[0].aval
    better = "lt" if eqn.primitive.name == "argmin" else "gt"

    def at(index: Index) -> Value:
        def look(inner: Index, best: list[Value]) -> list[Value]:
            (i,) = inner
            value = a.at(x, (*index[:axis], i, *index[axis:]))
            wins = a.b.emit(better, value, best[0])
            if value.dtype.kind == "f":  # the first NaN
                odd = a.b.emit("ne", value, value)
                wins = a.b.emit("or", wins, a.b.emit("and", odd, a.b.emit("eq", best[0], best[0])))
            pairs = zip((value, i), best, strict=True)
            return [a.b.emit("select", wins, new, old) for new, old in pairs]

        zero = a.number(0)
        first = [a.at(x, (*index[:axis], zero, *index[axis:])), zero]
        return convert(
            a.b, a.fold((x.shape[axis],), first, look, isinstance(x, np.ndarray))[1], out.dtype
        )

    return [a.made(out.shape, out.dtype, at)]


def cumulate(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    axis, backwards, out = eqn.params["axis"], eqn.params["reverse"], eqn.outvars[0].aval
    name, n = eqn.primitive.name, x.shape[axis]
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])

    def place(row: Index, i: Value) -> Index:
        i = a.b.emit("sub", a.number(n - 1), i) if backwards else i
        return (*row[:axis], i, *row[axis:])

    if is_small(x.shape):
        sums = np.empty(x.shape, object)
        for known in np.ndindex(*rest):
            row, total = a.known_index(known), None
            for i in range(n):
                where = place(row, a.number(i))
                value = a.at(x, where)
                total = value if total is None else combine(a.b, name, total, value)
                sums[tuple(int(w.param) for w in where)] = total
        return [sums]
    memory = a.b.new_memory(math.prod(x.shape), dtype_of(x))

    def row_of(row: Index) -> None:
        def add(i: Value, total: list[Value]) -> list[Value]:
            where = place(row, i)
            value = a.at(x, where)
            first = a.b.emit("eq", i, a.number(0))
            now = a.b.emit("select", first, value, combine(a.b, name, total[0], value))
            a.b.store(memory, a.place(where, x.shape), now)
            return [now]

        a.b.loop(n, [a.b.constant(0, out.dtype)], add)

    a.each(rest, row_of)
    return [a.of_memory(memory, x.shape)]


RULES: dict[str, tuple[Rule, str]] = {  # with the parameters that they may have
    "dot_general": (
        dot_general,
        "dimension_numbers out_sharding precision preferred_element_type",
    ),
    **dict.fromkeys(("argmin", "argmax"), (arg_extreme, "axes index_dtype")),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin"), (cumulate, "axis reverse")),
    **dict.fromkeys(
        (f"reduce_{name}" for name in "sum max min prod and or xor".split()),
        (reduce_, "axes out_sharding"),
    ),
}
