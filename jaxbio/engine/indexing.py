"""Primitives that read and write at places which are numbers: slices, gathers, scatters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jax import lax

from jaxbio.engine.arrays import Array, Arrays, Index, is_small, small
from jaxbio.engine.elementwise import combine
from jaxbio.engine.program import BOOL, Value
from jaxbio.engine.shapes import Rule

Mode = lax.GatherScatterMode


def dynamic_slice(a: Arrays, eqn: Any, x: Array, *starts: Array) -> list[Array]:
    sizes = eqn.params["slice_sizes"]
    first = _first(a, x.shape, sizes, starts)
    return [a.view(x, sizes, lambda i: _shifted(a, i, first))]


def dynamic_update_slice(a: Arrays, eqn: Any, x: Array, new: Array, *starts: Array) -> list[Array]:
    first = _first(a, x.shape, new.shape, starts)
    return [_put(a, x, new, lambda i: _shifted(a, i, first), lambda _, value, old: value)]


def _first(a: Arrays, shape: Any, sizes: Any, starts: tuple[Array, ...]) -> list[Value]:
    """Where a part of an array begins, moved so that all of it lies inside."""
    return [
        a.clamped(a.at_known(start, ()), n - size)
        for start, n, size in zip(starts, shape, sizes, strict=True)
    ]


def _shifted(a: Arrays, index: Index, first: list[Value]) -> Index:
    return tuple(a.b.emit("add", i, start) for i, start in zip(index, first, strict=True))


def _put(
    a: Arrays,
    x: Array,
    new: Array,
    where: Callable[[Index], Index],
    made: Callable[[Index, Value, Value], Value],
) -> Array:
    """x with entries replaced: for each index of `new`, in order, the one at where(index).

    made: of an index, of what is new there and of what stood there. x: large arrays are memories
    that may be changed.
    """
    if isinstance(x, np.ndarray):
        if isinstance(new, np.ndarray):
            return _put_apart(a, x, new, where, made)
        return a.apart(_put(a, a.in_memory(x), new, where, made))
    memory = x.memory
    assert memory is not None

    def write(index: Index, value: Value) -> None:
        place = a.place(where(index), x.shape)
        a.b.store(memory, place, made(index, value, a.b.load(memory, place)))

    a.entries(new, write)
    return a.of_memory(memory, x.shape)


def _put_apart(a: Arrays, x: np.ndarray, new: np.ndarray, where: Any, made: Any) -> Array:
    flat = list(x.reshape(-1))

    def write(index: Index, value: Value) -> None:
        place = a.place(where(index), x.shape)
        for i, old in enumerate(flat):
            hit = a.b.emit("eq", place, a.number(i))
            if hit.op != "const" or hit.param:
                flat[i] = a.b.emit("select", hit, made(index, value, old), old)

    a.entries(new, write)
    return small(x.shape, flat)


class _Window(NamedTuple):
    """What a gather reads, or a scatter writes, for each of its indices.

    own: dimensions of what is read or written that are the window's; removed: those of the array
    that the window has not; batching: pairs of dimensions, of the array and of the indices; starts:
    the dimensions of the array for which there is an index; sizes: of the window; looks: does it
    matter whether it lies inside?
    """

    own: tuple[int, ...]
    removed: set[int]
    batching: list[tuple[int, int]]
    starts: tuple[int, ...]
    sizes: Any
    looks: bool

    def place(self, a: Arrays, shape: Any, indices: Array, index: Index) -> tuple[Index, Value]:
        """The entry of the array for one of what is read or written, and: is the window inside?"""
        batch = [i for d, i in enumerate(index) if d not in self.own]
        kept = [d for d in range(len(shape)) if d not in self.removed]
        places: list[Value] = [a.number(0)] * len(shape)
        inside = a.b.constant(True, BOOL)
        for d, other in self.batching:
            places[d] = batch[other]
        for k, d in enumerate(self.starts):
            start = a.at(indices, (*batch, a.number(k)))
            highest = shape[d] - self.sizes[d]
            places[d] = a.clamped(start, highest)
            if self.looks:
                inside = a.b.emit("and", inside, _is_inside(a, start, highest))
        for d, own in zip(kept, self.own, strict=True):
            places[d] = a.b.emit("add", places[d], index[own])
        return tuple(places), inside


def gather(a: Arrays, eqn: Any, x: Array, indices: Array) -> list[Array]:
    how, out = eqn.params["dimension_numbers"], eqn.outvars[0].aval
    sizes, mode = eqn.params["slice_sizes"], eqn.params["mode"]
    if mode not in (Mode.CLIP, Mode.FILL_OR_DROP, Mode.PROMISE_IN_BOUNDS):
        raise ValueError(f"mode {mode}")
    fills, filling = mode == Mode.FILL_OR_DROP, _filling(eqn, np.dtype(out.dtype))
    removed = {*how.collapsed_slice_dims, *how.operand_batching_dims}
    batching = zip(how.operand_batching_dims, how.start_indices_batching_dims, strict=True)
    window = _Window(how.offset_dims, removed, list(batching), how.start_index_map, sizes, fills)
    x = a.cheap(x) if math.prod(out.shape) > math.prod(x.shape) else x
    indices = indices if is_small(out.shape) else a.for_loops(indices)

    def at(index: Index) -> Value:
        places, inside = window.place(a, x.shape, indices, index)
        value = a.at(x, places)
        if not fills:
            return value
        return a.b.emit("select", inside, value, a.b.constant(filling, out.dtype))

    return [a.made(out.shape, out.dtype, at)]


def _filling(eqn: Any, dtype: np.dtype) -> Any:
    """What a gather finds outside."""
    given = eqn.params["fill_value"]
    if given is not None:
        return given
    if dtype.kind == "f":
        return np.nan
    return (
        True
        if dtype == BOOL
        else np.iinfo(dtype).max
        if dtype.kind == "u"
        else (np.iinfo(dtype).min)
    )


def _is_inside(a: Arrays, index: Value, highest: int) -> Value:
    top = a.b.emit("le", index, a.b.constant(highest, index.dtype))
    if index.dtype.kind == "u":
        return top
    return a.b.emit("and", top, a.b.emit("ge", index, a.b.constant(0, index.dtype)))


def scatter(a: Arrays, eqn: Any, x: Array, indices: Array, updates: Array) -> list[Array]:
    how, name, mode = eqn.params["dimension_numbers"], eqn.primitive.name, eqn.params["mode"]
    if mode not in (Mode.CLIP, Mode.FILL_OR_DROP, Mode.PROMISE_IN_BOUNDS):
        raise ValueError(f"mode {mode}")
    if name == "scatter" and eqn.params["update_jaxpr"] is not None:
        raise ValueError("of a function")  # x.at[i].apply
    removed = {*how.inserted_window_dims, *how.operand_batching_dims}
    batching = zip(how.operand_batching_dims, how.scatter_indices_batching_dims, strict=True)
    own = iter(how.update_window_dims)
    sizes = [1 if d in removed else updates.shape[next(own)] for d in range(len(x.shape))]
    starts = how.scatter_dims_to_operand_dims
    window = _Window(
        how.update_window_dims, removed, list(batching), starts, sizes, mode != Mode.CLIP
    )

    def parts(index: Index) -> tuple[Index, Value]:
        return window.place(a, x.shape, indices, index)

    def made(index: Index, new: Value, old: Value) -> Value:
        new = new if name == "scatter" else combine(a.b, name, old, new)
        return a.b.emit("select", parts(index)[1], new, old)

    indices = indices if isinstance(updates, np.ndarray) else a.for_loops(indices)
    return [_put(a, x, updates, lambda i: parts(i)[0], made)]


_OF_SCATTER = "dimension_numbers indices_are_sorted mode unique_indices update_consts update_jaxpr"
_SCATTERS = ("scatter", *(f"scatter{sign}{name}" for sign in "-_" for name in (
    "add", "sub", "mul", "min", "max",
)))  # fmt: skip
RULES: dict[str, tuple[Rule, str]] = {  # with the parameters that they may have
    "dynamic_slice": (dynamic_slice, "slice_sizes"),
    "dynamic_update_slice": (dynamic_update_slice, ""),
    "gather": (
        gather,
        "dimension_numbers fill_value indices_are_sorted mode slice_sizes unique_indices",
    ),
    **dict.fromkeys(_SCATTERS, (scatter, _OF_SCATTER)),
}
CHANGING = frozenset([*_SCATTERS, "dynamic_update_slice"])  # into their first operand
