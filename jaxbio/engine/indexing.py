"""Primitives that move entries about: slices, gathers, scatters, sorts, products, as arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxbio.engine.arrays import Array, Arrays, Index, Large, is_small, reads, small
from jaxbio.engine.elementwise import combine, convert, extreme
from jaxbio.engine.program import BOOL, INT32, Value

Rule = Callable[..., list[Array]]


def _known(a: Arrays, *numbers: int) -> Index:
    return tuple(a.number(n) for n in numbers)


def broadcast_in_dim(a: Arrays, eqn: Any, x: Array, *_: Array) -> list[Array]:
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    if isinstance(x, np.ndarray):
        ones = [1] * len(shape)
        for size, dim in zip(x.shape, dims, strict=True):
            ones[dim] = size
        if is_small(shape):
            return [np.broadcast_to(x.reshape(ones), shape)]
    x, old = a.cheap(x), x.shape
    zero = a.number(0)
    return [
        a.view(
            x,
            shape,
            eqn.outvars[0].aval.dtype,
            lambda i: tuple(zero if n == 1 else i[d] for n, d in zip(old, dims, strict=True)),
        )
    ]


def reshape(a: Arrays, eqn: Any, x: Array, *_: Array) -> list[Array]:
    if eqn.params.get("dimensions") is not None:
        raise KeyError("reshape")
    return [reshaped(a, x, eqn.outvars[0].aval.shape)]


def squeeze(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    return [reshaped(a, x, eqn.outvars[0].aval.shape)]


def reshaped(a: Arrays, x: Array, shape: Any) -> Array:
    """The same entries, in their order, in another shape."""
    if isinstance(x, np.ndarray):
        return x.reshape(shape)
    if x.memory is not None:
        return a.of_memory(x.memory, shape)

    def where(index: Index) -> Index:
        place, found = a.place(index, shape), []
        for size in reversed(x.shape):
            whole = a.number(size)
            quotient = a.b.emit("div", place, whole) if size != 1 else place
            found.append(a.b.emit("sub", place, a.b.emit("mul", quotient, whole)))
            place = quotient
        return tuple(reversed(found))

    if [n for n in shape if n != 1] == [n for n in x.shape if n != 1]:
        zero = a.number(0)

        def where(index: Index) -> Index:  # noqa: F811
            left = iter([i for i, n in zip(index, shape, strict=True) if n != 1])
            return tuple(zero if n == 1 else next(left) for n in x.shape)

    return a.view(x, shape, x.dtype, where)


def transpose(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    order = eqn.params["permutation"]
    if isinstance(x, np.ndarray):
        return [x.transpose(order)]
    shape = eqn.outvars[0].aval.shape
    return [a.view(x, shape, x.dtype, lambda i: tuple(i[order.index(d)] for d in range(x.ndim)))]


def concatenate(a: Arrays, eqn: Any, *parts: Array) -> list[Array]:
    axis = eqn.params["dimension"]
    out = eqn.outvars[0].aval
    if is_small(out.shape):
        return [np.concatenate([a.apart(part) for part in parts], axis=axis)]
    ends = np.cumsum([part.shape[axis] for part in parts])

    def at(index: Index) -> Value:
        found = None
        for part, end in reversed(list(zip(parts, ends, strict=True))):
            start = a.number(int(end) - part.shape[axis])
            inside = a.clamped(a.b.emit("sub", index[axis], start), part.shape[axis] - 1)
            value = a.at(part, (*index[:axis], inside, *index[axis + 1 :]))
            before = a.b.emit("lt", index[axis], a.number(int(end)))
            found = value if found is None else a.b.emit("select", before, value, found)
        assert found is not None
        return found

    return [a.made(out.shape, out.dtype, at, *(part for part in parts if part.shape[axis]))]


def stack(a: Arrays, eqn: Any, *parts: Array) -> list[Array]:
    axis = eqn.params["axis"]
    out = eqn.outvars[0].aval
    if is_small(out.shape):
        return [np.stack([a.apart(part) for part in parts], axis=axis)]

    def at(index: Index) -> Value:
        rest = (*index[:axis], *index[axis + 1 :])
        found = a.at(parts[0], rest)
        for i, part in enumerate(parts[1:], 1):
            here = a.b.emit("eq", index[axis], a.number(i))
            found = a.b.emit("select", here, a.at(part, rest), found)
        return found

    return [a.made(out.shape, out.dtype, at, *parts)]


def unstack(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    axis = eqn.params["axis"]
    return [
        a.view(
            x,
            out.aval.shape,
            out.aval.dtype,
            lambda i, n=n: (*i[:axis], a.number(n), *i[axis:]),
        )
        for n, out in enumerate(eqn.outvars)
    ]


def slice_(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    starts, limits = eqn.params["start_indices"], eqn.params["limit_indices"]
    steps = eqn.params["strides"] or (1,) * len(starts)
    if isinstance(x, np.ndarray):
        return [x[tuple(slice(*one) for one in zip(starts, limits, steps, strict=True))]]

    def where(index: Index) -> Index:
        return tuple(
            a.b.emit("add", a.b.emit("mul", i, a.number(step)), a.number(start))
            for i, start, step in zip(index, starts, steps, strict=True)
        )

    return [a.view(x, eqn.outvars[0].aval.shape, x.dtype, where)]


def iota(a: Arrays, eqn: Any, *_: Array) -> list[Array]:
    shape, axis, dtype = (eqn.params[name] for name in ("shape", "dimension", "dtype"))
    at = lambda i: convert(a.b, i[axis], dtype)  # noqa: E731
    made = Large(tuple(shape), np.dtype(dtype), at)
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

    return [a.view(x, x.shape, x.dtype, where)]


def pad(a: Arrays, eqn: Any, x: Array, filling: Array) -> list[Array]:
    config, out = eqn.params["padding_config"], eqn.outvars[0].aval
    if any(between for _, _, between in config):
        raise KeyError("pad")
    outside = a.at_known(filling, ())

    def at(index: Index) -> Value:
        inside, places = a.b.constant(True, BOOL), []
        for i, (low, _, _), n in zip(index, config, x.shape, strict=True):
            place = a.b.emit("sub", i, a.number(low))
            hit = a.b.emit("ge", place, a.number(0))
            hit = a.b.emit("and", hit, a.b.emit("lt", place, a.number(n)))
            inside = a.b.emit("and", inside, hit)
            places.append(a.clamped(place, n - 1))
        return a.b.emit("select", inside, a.at(x, tuple(places)), outside)

    return [a.made(out.shape, out.dtype, at, x)]


def dynamic_slice(a: Arrays, eqn: Any, x: Array, *starts: Array) -> list[Array]:
    sizes = eqn.params["slice_sizes"]
    first = [
        a.clamped(a.at_known(start, ()), n - size)
        for start, n, size in zip(starts, x.shape, sizes, strict=True)
    ]

    def where(index: Index) -> Index:
        return tuple(a.b.emit("add", i, start) for i, start in zip(index, first, strict=True))

    return [a.view(x, sizes, eqn.outvars[0].aval.dtype, where)]


def dynamic_update_slice(a: Arrays, eqn: Any, x: Array, new: Array, *starts: Array) -> list[Array]:
    first = [
        a.clamped(a.at_known(start, ()), n - size)
        for start, n, size in zip(starts, x.shape, new.shape, strict=True)
    ]
    return [put(a, x, new.shape, lambda i: _shifted(a, i, first), lambda i, _: a.at(new, i))]


def _shifted(a: Arrays, index: Index, first: list[Value]) -> Index:
    return tuple(a.b.emit("add", i, start) for i, start in zip(index, first, strict=True))


def put(
    a: Arrays,
    x: Array,
    shape: Any,
    where: Callable[[Index], Index],
    value: Callable[[Index, Value], Value],
) -> Array:
    """x with entries replaced: for each index of `shape`, in order, the one at where(index).

    value: of an index and of what stood there. x: large arrays are memories that may be changed.
    """
    if isinstance(x, Large):
        memory = x.memory
        assert memory is not None

        def write(index: Index) -> None:
            place = a.place(where(index), x.shape)
            a.b.store(memory, place, value(index, a.b.load(memory, place)))

        if math.prod(shape) <= 8:
            for index in np.ndindex(*shape):
                write(_known(a, *index))
        else:
            a.each(shape, write)
        return a.of_memory(memory, x.shape)
    flat = list(x.reshape(-1))
    for known in np.ndindex(*shape):
        index = _known(a, *known)
        place = a.place(where(index), x.shape)
        for i, old in enumerate(flat):
            hit = a.b.emit("eq", place, a.number(i))
            if hit.op == "const" and not hit.param:
                continue
            flat[i] = a.b.emit("select", hit, value(index, old), old)
    return small(x.shape, flat)


def gather(a: Arrays, eqn: Any, x: Array, indices: Array) -> list[Array]:
    how, out, sizes = eqn.params["dimension_numbers"], eqn.outvars[0].aval, None
    sizes = eqn.params["slice_sizes"]
    fills, filling = _drops(eqn), eqn.params["fill_value"]
    removed = {*how.collapsed_slice_dims, *how.operand_batching_dims}
    kept = [d for d in range(len(x.shape)) if d not in removed]
    if fills and filling is None:
        dtype = np.dtype(out.dtype)
        filling = {"f": np.nan, "b": True}.get(dtype.kind)
        if filling is None:
            filling = np.iinfo(dtype).max if dtype.kind == "u" else np.iinfo(dtype).min

    def at(index: Index) -> Value:
        batch = [i for d, i in enumerate(index) if d not in how.offset_dims]
        offsets = dict(zip(kept, (index[d] for d in how.offset_dims), strict=True))
        places: list[Value] = [a.number(0)] * len(x.shape)
        inside = a.b.constant(True, BOOL)
        for d, other in zip(
            how.operand_batching_dims, how.start_indices_batching_dims, strict=True
        ):
            places[d] = batch[other]
        for k, d in enumerate(how.start_index_map):
            start = a.at(indices, (*batch, a.number(k)))
            highest = x.shape[d] - sizes[d]
            places[d] = a.clamped(start, highest)
            inside = a.b.emit("and", inside, _is_inside(a, start, highest)) if fills else inside
        places = [
            a.b.emit("add", place, offsets[d]) if d in offsets else place
            for d, place in enumerate(places)
        ]
        value = a.at(x, tuple(places))
        return (
            a.b.emit("select", inside, value, a.b.constant(filling, out.dtype)) if fills else value
        )

    return [a.made(out.shape, out.dtype, at, x, indices)]


def _drops(eqn: Any) -> bool:
    """Does what lies outside count as nothing? (Else the nearest place counts.)"""
    return "FILL" in str(eqn.params["mode"])


def _is_inside(a: Arrays, index: Value, highest: int) -> Value:
    top = a.b.emit("le", index, a.b.constant(highest, index.dtype))
    if index.dtype.kind == "u":
        return top
    return a.b.emit("and", top, a.b.emit("ge", index, a.b.constant(0, index.dtype)))


def scatter(a: Arrays, eqn: Any, x: Array, indices: Array, updates: Array) -> list[Array]:
    how, name = eqn.params["dimension_numbers"], eqn.primitive.name
    removed = {*how.inserted_window_dims, *how.operand_batching_dims}
    kept = [d for d in range(len(x.shape)) if d not in removed]
    window = {d: updates.shape[u] for d, u in zip(kept, how.update_window_dims, strict=True)}

    def parts(index: Index) -> tuple[Index, Value]:
        batch = [i for d, i in enumerate(index) if d not in how.update_window_dims]
        offsets = dict(zip(kept, (index[d] for d in how.update_window_dims), strict=True))
        places: list[Value] = [a.number(0)] * len(x.shape)
        inside = a.b.constant(True, BOOL)
        for d, other in zip(
            how.operand_batching_dims, how.scatter_indices_batching_dims, strict=True
        ):
            places[d] = batch[other]
        for k, d in enumerate(how.scatter_dims_to_operand_dims):
            start = a.at(indices, (*batch, a.number(k)))
            highest = x.shape[d] - window.get(d, 1)
            places[d] = a.clamped(start, highest)
            if "CLIP" not in str(eqn.params["mode"]):
                inside = a.b.emit("and", inside, _is_inside(a, start, highest))
        for d, offset in offsets.items():
            places[d] = a.b.emit("add", places[d], offset)
        return tuple(places), inside

    def value(index: Index, old: Value) -> Value:
        new = a.at(updates, index)
        new = new if name == "scatter" else combine(a.b, name, old, new)
        return a.b.emit("select", parts(index)[1], new, old)

    return [put(a, x, updates.shape, lambda i: parts(i)[0], value)]


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

    return ordered(a, operands, eqn.params["dimension"], before)


def top_k(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    axis = len(x.shape) - 1
    if eqn.params.get("axis", axis) not in (axis, -1):
        raise KeyError("axis")

    def before(one: list[Value], two: list[Value]) -> Value:
        """Larger, NaN first."""
        larger = a.b.emit("gt", one[0], two[0])
        if one[0].dtype.kind == "f":
            odd, other_odd = (a.b.emit("ne", v[0], v[0]) for v in (one, two))
            larger = a.b.emit("or", larger, a.b.emit("and", odd, a.b.emit("not", other_odd)))
        return larger

    places = Large(x.shape, INT32, lambda i: i[axis])
    number = a.apart(places) if is_small(x.shape) else places
    return [
        a.view(part, out.aval.shape, out.aval.dtype, lambda i: i)
        for part, out in zip(ordered(a, (x, number), axis, before), eqn.outvars, strict=True)
    ]


def ordered(a: Arrays, operands: Any, axis: int, before: Callable[..., Value]) -> list[Array]:
    """Arrays sorted together along an axis, by counting for each entry those that come before it:
    stable, and without a branch.
    """
    shape = operands[0].shape
    operands = [a.cheap(x) for x in operands]
    n, rest = shape[axis], (*shape[:axis], *shape[axis + 1 :])

    def at(row: Index, i: Value) -> list[Value]:
        return [a.at(x, (*row[:axis], i, *row[axis:])) for x in operands]

    def rank(row: Index, i: Value) -> Value:
        def count(index: Index, total: list[Value]) -> list[Value]:
            (j,) = index
            mine, other = at(row, i), at(row, j)
            earlier, stays = a.b.emit("lt", j, i), a.b.emit("not", before(mine, other))
            comes = a.b.emit("select", earlier, stays, before(other, mine))
            comes = a.b.emit("and", comes, a.b.emit("ne", i, j))
            return [a.b.emit("add", total[0], a.b.emit("convert", comes, dtype=INT32))]

        return a.fold((n,), [a.number(0)], count)[0]

    memories = [a.b.new_memory(math.prod(shape), x_dtype(x)) for x in operands]

    def place_one(index: Index) -> None:
        row, i = (*index[:axis], *index[axis + 1 :]), index[axis]
        to = a.place((*index[:axis], rank(row, i), *index[axis + 1 :]), shape)
        for memory, value in zip(memories, at(row, i), strict=True):
            a.b.store(memory, to, value)

    if not is_small(shape):
        a.each(shape, place_one)
        return [a.of_memory(memory, shape) for memory in memories]
    outs = [np.empty(shape, object) for _ in operands]
    for known in np.ndindex(*rest):
        row = _known(a, *known)
        ranks = [rank(row, a.number(i)) for i in range(n)]
        for place in range(n):
            found = at(row, a.number(0))
            for i in range(1, n):
                hit = a.b.emit("eq", ranks[i], a.number(place))
                pairs = zip(at(row, a.number(i)), found, strict=True)
                found = [a.b.emit("select", hit, new, old) for new, old in pairs]
            for out, value in zip(outs, found, strict=True):
                out[(*known[:axis], place, *known[axis:])] = value
    return list(outs)


def dot_general(a: Arrays, eqn: Any, x: Array, y: Array) -> list[Array]:
    (mine, other), (batch, other_batch) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    x, y = a.cheap(x), a.cheap(y)
    free = [d for d in range(len(x.shape)) if d not in (*mine, *batch)]
    other_free = [d for d in range(len(y.shape)) if d not in (*other, *other_batch)]
    summed = [x.shape[d] for d in mine]

    def at(index: Index) -> Value:
        places, others = list(index[: len(batch)]), list(index[len(batch) :])
        left = dict(zip(batch, places, strict=True))
        left |= dict(zip(free, others[: len(free)], strict=True))
        right = dict(zip(other_batch, places, strict=True))
        right |= dict(zip(other_free, others[len(free) :], strict=True))

        def add(i: Index, total: list[Value]) -> list[Value]:
            one = {**left, **dict(zip(mine, i, strict=True))}
            two = {**right, **dict(zip(other, i, strict=True))}
            product = a.b.emit(
                "mul",
                convert(a.b, a.at(x, tuple(one[d] for d in range(len(x.shape)))), out.dtype),
                convert(a.b, a.at(y, tuple(two[d] for d in range(len(y.shape)))), out.dtype),
            )
            return [a.b.emit("add", total[0], product)]

        return a.fold(summed, [a.b.constant(0, out.dtype)], add)[0]

    return [a.made(out.shape, out.dtype, at, x, y)]


def reduce_(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    axes, name, out = eqn.params["axes"], eqn.primitive.name, eqn.outvars[0].aval
    kept = [d for d in range(len(x.shape)) if d not in axes]
    over = [x.shape[d] for d in axes]
    if math.prod(over) == 0:
        raise KeyError(name)
    first = [a.number(0)] * len(over)

    def entry(index: Index, inner: Any) -> Value:
        places = dict(zip(kept, index, strict=True)) | dict(zip(axes, inner, strict=True))
        return a.at(x, tuple(places[d] for d in range(len(x.shape))))

    def at(index: Index) -> Value:
        if (
            name in ("reduce_max", "reduce_min")
            and x_dtype(x).kind == "f"
            and math.prod(over) <= 16
        ):
            every = [entry(index, _known(a, *inner)) for inner in np.ndindex(*over)]
            return extreme(a.b, name.removeprefix("reduce_"), every)

        def add(inner: Index, total: list[Value]) -> list[Value]:
            if all(i is zero for i, zero in zip(inner, first, strict=True)):
                return total
            return [combine(a.b, name, total[0], entry(index, inner))]

        if math.prod(over) <= 16 or name not in ("reduce_sum", "reduce_prod", "reduce_xor"):
            return a.fold(over, [entry(index, first)], add)[0]
        start = a.b.constant(name == "reduce_prod", x_dtype(x))
        return a.fold(
            over, [start], lambda i, total: [combine(a.b, name, total[0], entry(index, i))]
        )[0]

    return [a.made(out.shape, out.dtype, at, x)]


def x_dtype(x: Array) -> Any:
    return x.dtype if isinstance(x, Large) else x.reshape(-1)[0].dtype


def arg_extreme(a: Arrays, eqn: Any, x: Array) -> list[Array]:
    (axis,), out = eqn.params["axes"], eqn.outvars[0].aval
    better = "lt" if eqn.primitive.name == "argmin" else "gt"

    def at(index: Index) -> Value:
        def look(inner: Index, best: list[Value]) -> list[Value]:
            (i,) = inner
            value = a.at(x, (*index[:axis], i, *index[axis:]))
            wins = a.b.emit(better, value, best[0])
            if value.dtype.kind == "f":
                odd = a.b.emit("ne", value, value)
                wins = a.b.emit("or", wins, a.b.emit("and", odd, a.b.emit("eq", best[0], best[0])))
            return [
                a.b.emit("select", wins, new, old)
                for new, old in zip((value, i), best, strict=True)
            ]

        zero = a.number(0)
        first = [a.at(x, (*index[:axis], zero, *index[axis:])), zero]
        return convert(a.b, a.fold((x.shape[axis],), first, look)[1], out.dtype)

    return [a.made(out.shape, out.dtype, at, x)]


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
            row, total = _known(a, *known), None
            for i in range(n):
                where = place(row, a.number(i))
                value = a.at(x, where)
                total = value if total is None else combine(a.b, name, total, value)
                sums[tuple(int(w.param) for w in where)] = total
        return [sums]
    memory = a.b.new_memory(math.prod(x.shape), out.dtype)

    def row_of(row: Index) -> None:
        def add(i: Value, total: list[Value]) -> list[Value]:
            where = place(row, i)
            first = a.b.emit("eq", i, a.number(0))
            value = a.at(x, where)
            now = a.b.emit("select", first, value, combine(a.b, name, total[0], value))
            a.b.store(memory, a.place(where, x.shape), now)
            return [now]

        a.b.loop(n, [a.b.constant(0, out.dtype)], add)

    a.each(rest, row_of)
    return [a.of_memory(memory, x.shape)]


RULES: dict[str, tuple[Rule, str]] = {  # with the parameters that they may have
    "broadcast_in_dim": (broadcast_in_dim, "shape broadcast_dimensions sharding"),
    "reshape": (reshape, "new_sizes dimensions sharding"),
    "squeeze": (squeeze, "dimensions"),
    "expand_dims": (squeeze, "dimensions"),
    "transpose": (transpose, "permutation"),
    "concatenate": (concatenate, "dimension"),
    "stack": (stack, "axis"),
    "unstack": (unstack, "axis"),
    "slice": (slice_, "start_indices limit_indices strides"),
    "iota": (iota, "dimension dtype shape sharding"),
    "rev": (rev, "dimensions"),
    "pad": (pad, "padding_config"),
    "dynamic_slice": (dynamic_slice, "slice_sizes"),
    "dynamic_update_slice": (dynamic_update_slice, ""),
    "gather": (
        gather,
        "dimension_numbers fill_value indices_are_sorted mode slice_sizes unique_indices",
    ),
    "sort": (sort, "dimension is_stable num_keys"),
    "top_k": (top_k, "k axis operand is_stable"),
    "dot_general": (
        dot_general, "dimension_numbers out_sharding precision preferred_element_type"
    ),
    "argmin": (arg_extreme, "axes index_dtype"),
    "argmax": (arg_extreme, "axes index_dtype"),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin"), (cumulate, "axis reverse")),
    **dict.fromkeys(
        (f"reduce_{name}" for name in "sum max min prod and or xor".split()),
        (reduce_, "axes out_sharding"),
    ),
    **dict.fromkeys(
        "scatter scatter-add scatter-mul scatter-min scatter-max scatter_add scatter_mul "
        "scatter_min scatter_max".split(),
        (scatter, "dimension_numbers indices_are_sorted mode unique_indices update_consts "
         "update_jaxpr"),
    ),
}  # fmt: skip
CHANGING = frozenset(name for name, (rule, _) in RULES.items() if rule is scatter) | {
    "dynamic_update_slice"
}
__all__ = ["CHANGING", "RULES", "reads"]
