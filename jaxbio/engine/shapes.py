"""Primitives that arrange entries in another way: no entry depends on a number of the run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxbio.engine.arrays import Array, Arrays, Index, Large, dtype_of, is_small
from jaxbio.engine.elementwise import convert
from jaxbio.engine.program import BOOL, Memory, Value

Rule = Callable[..., list[Array]]


def broadcast_in_dim(a: Arrays, eqn: Any, x: Array, *_: Array) -> list[Array]:
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    if isinstance(x, np.ndarray) and is_small(shape):
        ones = [1] * len(shape)
        for size, dim in zip(x.shape, dims, strict=True):
            ones[dim] = size
        return [np.broadcast_to(x.reshape(ones), shape)]
    x, zero = a.for_loops(a.cheap(x)), a.number(0)

    def where(index: Index) -> Index:
        return tuple(zero if n == 1 else index[d] for n, d in zip(x.shape, dims, strict=True))

    return [a.view(x, shape, where)]


def reshape(a: Arrays, eqn: Any, x: Array, *_: Array) -> list[Array]:
    order = eqn.params.get("dimensions")
    x = x if order is None else _transposed(a, x, order)
    return [_reshaped(a, x, eqn.outvars[0].aval.shape)]


def squeeze(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    return [_reshaped(a, x, eqn.outvars[0].aval.shape)]


def _reshaped(a: Arrays, x: Array, shape: tuple[int, ...]) -> Array:
    """The same entries, in their order, in another shape."""
    if isinstance(x, np.ndarray):
        return x.reshape(shape)
    if x.memory is not None:
        return a.of_memory(x.memory, shape)

    def without_ones(index: Index) -> Index:
        left = iter([i for i, n in zip(index, shape, strict=True) if n != 1])
        return tuple(a.number(0) if n == 1 else next(left) for n in x.shape)

    def counted(index: Index) -> Index:
        place, found = a.place(index, shape), []
        for size in reversed(x.shape):
            quotient = a.b.emit("div", place, a.number(size))
            found.append(a.b.emit("sub", place, a.b.emit("mul", quotient, a.number(size))))
            place = quotient
        return tuple(reversed(found))

    same = [n for n in shape if n != 1] == [n for n in x.shape if n != 1]
    made = a.view(x, shape, without_ones if same else counted)
    if isinstance(made, Large):
        made.moved = x.moved  # an entry stands where it stood, counted row by row
    return made


def transpose(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    return [_transposed(a, x, eqn.params["permutation"])]


def _transposed(a: Arrays, x: Array, order: Any) -> Array:
    if isinstance(x, np.ndarray):
        return x.transpose(order)
    back = np.argsort(order)
    return a.view(x, [x.shape[d] for d in order], lambda i: tuple(i[d] for d in back))


def tile(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    out = eqn.outvars[0].aval
    if isinstance(x, np.ndarray) and is_small(out.shape):
        return [np.tile(x, eqn.params["reps"])]

    def where(index: Index) -> Index:
        return tuple(
            i if n == whole else a.b.emit("rem", i, a.number(n))
            for i, n, whole in zip(index, x.shape, out.shape, strict=True)
        )

    return [a.view(a.for_loops(a.cheap(x)), out.shape, where)]


def concatenate(a: Arrays, eqn: Any, *parts: Array) -> list[Array]:
    axis, out = eqn.params["dimension"], eqn.outvars[0].aval
    if is_small(out.shape):
        return [np.concatenate([a.apart(part) for part in parts], axis=axis)]
    memory, first = a.b.new_memory(math.prod(out.shape), out.dtype), 0
    for part in parts:
        start = a.number(first)
        first += part.shape[axis]
        _write_part(
            a, part, memory, out.shape,
            lambda i, s=start: (*i[:axis], a.b.emit("add", i[axis], s), *i[axis + 1 :]),
        )  # fmt: skip
    return [a.of_memory(memory, out.shape)]


def stack(a: Arrays, eqn: Any, *parts: Array) -> list[Array]:
    axis, out = eqn.params["axis"], eqn.outvars[0].aval
    if is_small(out.shape):
        return [np.stack([a.apart(part) for part in parts], axis=axis)]
    memory = a.b.new_memory(math.prod(out.shape), out.dtype)
    for n, part in enumerate(parts):
        place = a.number(n)
        _write_part(a, part, memory, out.shape, lambda i, p=place: (*i[:axis], p, *i[axis:]))
    return [a.of_memory(memory, out.shape)]


def _write_part(
    a: Arrays, part: Array, memory: Memory, shape: Any, where: Callable[[Index], Index]
) -> None:
    """Write an array into a memory of a larger one. where: from the part's index to the whole's."""
    a.entries(part, lambda i, value: a.b.store(memory, a.place(where(i), shape), value))


def unstack(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    axis = eqn.params["axis"]
    return [
        a.view(x, out.aval.shape, lambda i, n=n: (*i[:axis], a.number(n), *i[axis:]))
        for n, out in enumerate(eqn.outvars)
    ]


def split(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    axis, found, first = eqn.params["axis"], [], 0
    for size in eqn.params["sizes"]:
        starts, limits = [0] * len(x.shape), list(x.shape)
        starts[axis], limits[axis] = first, first + int(size)
        first += int(size)
        found.append(_sliced(a, x, starts, limits, [1] * len(x.shape)))
    return found


def slice_(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    starts, limits = eqn.params["start_indices"], eqn.params["limit_indices"]
    return [_sliced(a, x, starts, limits, eqn.params["strides"] or (1,) * len(starts))]


def _sliced(a: Arrays, x: Array, starts: Any, limits: Any, steps: Any) -> Array:
    if isinstance(x, np.ndarray):
        return x[tuple(slice(*one) for one in zip(starts, limits, steps, strict=True))]
    shape = [len(range(*one)) for one in zip(starts, limits, steps, strict=True)]

    def where(index: Index) -> Index:
        return tuple(
            a.b.emit("add", a.b.emit("mul", i, a.number(step)), a.number(start))
            for i, start, step in zip(index, starts, steps, strict=True)
        )

    return a.view(x, shape, where)


def iota(a: Arrays, eqn: Any, *_: Array) -> list[Array]:
    shape, axis, dtype = (eqn.params[name] for name in ("shape", "dimension", "dtype"))
    made = Large(tuple(shape), np.dtype(dtype), lambda i: convert(a.b, i[axis], dtype))
    return [a.apart(made) if is_small(shape) else made]


def rev(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    dims = eqn.params["dimensions"]
    if isinstance(x, np.ndarray):
        return [np.flip(x, dims)]

    def where(index: Index) -> Index:
        return tuple(
            a.b.emit("sub", a.number(n - 1), i) if d in dims else i
            for d, (i, n) in enumerate(zip(index, x.shape, strict=True))
        )

    return [a.view(x, x.shape, where)]


def pad(a: Arrays, eqn: Any, x: Array, filling: Array) -> list[Array]:
    config, out = eqn.params["padding_config"], eqn.outvars[0].aval
    x = x if is_small(out.shape) else a.for_loops(x)
    outside = a.at_known(filling, ())

    def at(index: Index) -> Value:
        inside, places = a.b.constant(True, BOOL), []
        for i, (low, _, between), n in zip(index, config, x.shape, strict=True):
            place = a.b.emit("sub", i, a.number(low))
            apart = a.number(between + 1)
            hit = a.b.emit("ge", place, a.number(0))
            place, spread = a.b.emit("div", place, apart), place
            hit = a.b.emit("and", hit, a.b.emit("eq", a.b.emit("mul", place, apart), spread))
            hit = a.b.emit("and", hit, a.b.emit("lt", place, a.number(n)))
            inside = a.b.emit("and", inside, hit)
            places.append(a.clamped(place, n - 1))
        if inside.op == "const" and not inside.param:
            return outside
        return a.b.emit("select", inside, a.at(x, tuple(places)), outside)

    if math.prod(x.shape) == 0:
        return [a.made(out.shape, dtype_of(filling), lambda _: outside)]
    return [a.made(out.shape, out.dtype, at)]


RULES: dict[str, tuple[Rule, str]] = {  # with the parameters that they may have
    "broadcast_in_dim": (broadcast_in_dim, "shape broadcast_dimensions sharding"),
    "concatenate": (concatenate, "dimension"),
    "expand_dims": (squeeze, "dimensions"),
    "iota": (iota, "dimension dtype shape sharding"),
    "pad": (pad, "padding_config"),
    "reshape": (reshape, "new_sizes dimensions sharding"),
    "rev": (rev, "dimensions"),
    "slice": (slice_, "start_indices limit_indices strides"),
    "split": (split, "sizes axis"),
    "squeeze": (squeeze, "dimensions"),
    "stack": (stack, "axis"),
    "tile": (tile, "reps"),
    "transpose": (transpose, "permutation"),
    "unstack": (unstack, "axis"),
}
