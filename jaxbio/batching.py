"""Batch a one-run function over runs, with the runs on the LAST axis of every array.

`jax.vmap` moves its axis to the front as soon as a scalar meets a vector, so that a run's K numbers
lie side by side in memory and every sum over K becomes a sum over a tiny fastest axis, which a CPU
cannot vectorise (measured: ten times slower than the same arithmetic with the runs last).
`runs_last` is `vmap` with one difference: it keeps the batch on the trailing axis. It interprets
the function's jaxpr, knows the primitives that a step is made of, and hands every other primitive
to `jax.vmap` itself, so it accepts whatever `jax.vmap` accepts and means the same. That holds with
versions of JAX that nobody has seen yet: a primitive whose parameters are not the ones listed here
goes to `jax.vmap` too, and so does the whole function, with a warning, where interpreting fails.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex
from jax.extend.core import primitives

ORIGIN = np.int32(0)  # an index of the same type as the others in 64-bit mode too
_native: ContextVar[Any] = ContextVar("native", default=None)

ELEMENTWISE = frozenset(
    """abs acos acosh add and asin asinh atan atan2 atanh bitcast_convert_type cbrt ceil clamp clz
    convert_element_type copy copy_p cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor
    ge gt integer_pow is_finite le lgamma log log1p logistic lt max min mul ne neg nextafter not or
    population_count pow real rem round rsqrt select_n shift_left shift_right_arithmetic
    shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor""".split()
)
REDUCTIONS = frozenset(
    """reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor argmax argmin
    cumsum cumprod cummax cummin rev""".split()
)
INLINED = frozenset("jit pjit custom_jvp_call closed_call".split())

# The parameters of the primitives whose batching is written out here, in the versions of JAX that
# we have seen. One that is not listed may mean anything, so `jax.vmap` has to deal with it.
OF_REDUCTIONS = frozenset("axes axis reverse dimensions index_dtype out_sharding".split())
PARAMETERS = {
    name: frozenset(known.split())
    for name, known in {
        "broadcast_in_dim": "shape broadcast_dimensions sharding",
        "reshape": "new_sizes dimensions sharding",
        "squeeze": "dimensions",
        "transpose": "permutation",
        "stack": "axis",
        "unstack": "axis",
        "concatenate": "dimension",
        "slice": "start_indices limit_indices strides",
        "dynamic_slice": "slice_sizes",
        "dynamic_update_slice": "",
        # Where what is carried begins is told by shapes: its names differ between versions.
        "scan": "jaxpr length reverse unroll linear _split_transpose "
        "num_consts num_carry ft_in ft_out",
        "while": "cond_jaxpr body_jaxpr cond_nconsts body_nconsts",
    }.items()
}
UNKNOWN_JAX = (
    f"jaxbio's fast path does not understand jax {jax.__version__}: jax.vmap takes over, with the "
    "same results, but slower"
)
OPTIONAL = frozenset("sharding linear _split_transpose num_consts num_carry ft_in ft_out".split())


# A primitive of somebody else's may have the name of one of JAX's, and another meaning.
OF_JAX = frozenset(
    value
    for module in (lax, primitives)
    for name, value in vars(module).items()
    if name.endswith("_p") and isinstance(value, jex.Primitive)
)


def name_of(eqn: Any) -> str:
    """Of the primitive of an equation; no name where it is none of JAX's own."""
    return eqn.primitive.name if eqn.primitive in OF_JAX else ""


def runs_last(
    function: Callable[..., Any], batched: Sequence[bool], runs: int
) -> Callable[..., Any]:
    """Batch `function` over `runs` runs; the batch is the last axis of batched inputs and outputs.

    Args:
      function: written for one run; takes and returns pytrees of arrays.
      batched: for each positional argument, whether all its leaves carry a trailing `[runs]` axis.
        Leaves of the other arguments are shared by all runs.
      runs: the size of the trailing axis.
    Returns:
      A function of the same arguments; every leaf of its result has a trailing `[runs]` axis.
    """

    def call(*args: Any) -> Any:
        one_run = tuple(
            jax.tree.map(lambda x, b=is_batched: _without_runs(x, b), arg)
            for arg, is_batched in zip(args, batched, strict=True)
        )
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*one_run)
        flags = [
            is_batched
            for arg, is_batched in zip(args, batched, strict=True)
            for _ in jax.tree.leaves(arg)
        ]
        try:
            outs = _interpret(closed.jaxpr, closed.consts, jax.tree.leaves(args), flags, runs)
            values = [value if is_batched else _spread(value, runs) for value, is_batched in outs]
        except Exception:  # only of the interpreter: the function itself has been traced above
            warnings.warn(UNKNOWN_JAX, RuntimeWarning, stacklevel=1)  # so it is shown once
            axes = tuple(-1 if is_batched else None for is_batched in batched)
            return jax.vmap(function, in_axes=axes, out_axes=-1, axis_size=runs)(*args)
        return jax.tree.unflatten(jax.tree.structure(shape), values)

    return call


@jax.jit
def cut(tree: Any) -> Any:
    """The same values, computed once: the line between two stages of a round.

    XLA on CPU repeats cheap work in every fusion that uses it, and a draw of random bits counts as
    cheap. On other platforms a barrier prevents that, on CPU `_walled`.
    """
    return lax.optimization_barrier(tree)


@contextmanager
def native(true: Any) -> Iterator[None]:
    """Inside one native function (see `kernel`), where other forms of a program are faster.

    true: a boolean that is always true, though the compiler cannot know. Writes at an index per run
    are done one by one in a loop, which is a plain store per run there (a scatter is not possible);
    kernel by kernel that would be very slow.
    """
    token = _native.set(true)
    try:
        yield
    finally:
        _native.reset(token)


def is_native() -> bool:
    """Is a program for one native function being traced?"""
    return _native.get() is not None


def _walled(operands: Sequence[tuple[Any, bool]], true: Any) -> list[tuple[Any, bool]]:
    """`cut` that holds on CPU, where barriers are gone before fusion: results of a conditional."""
    batched = [value for value, is_batched in operands if is_batched]
    outs = iter(
        lax.cond(true, lambda *xs: list(xs), lambda *xs: [jnp.zeros_like(x) for x in xs], *batched)
    )
    return [(next(outs) if is_batched else value, is_batched) for value, is_batched in operands]


def _without_runs(x: Any, batched: bool) -> jax.ShapeDtypeStruct:
    aval = jax.typeof(x)
    shape = aval.shape[:-1] if batched else aval.shape
    return jax.ShapeDtypeStruct(shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))


def _spread(x: Any, runs: int) -> jax.Array:
    """`[...]` -> `[..., runs]`, the same value for every run."""
    x = jnp.asarray(x)
    return lax.broadcast_in_dim(x, (*x.shape, runs), tuple(range(x.ndim)))


def _interpret(
    jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], flags: Sequence[bool], runs: int
) -> list[tuple[Any, bool]]:
    """Evaluate a jaxpr on values with a flag each (does it carry the trailing axis?)."""
    env: dict[Any, tuple[Any, bool]] = {}
    env.update(zip(jaxpr.constvars, ((c, False) for c in consts), strict=True))
    env.update(zip(jaxpr.invars, zip(args, flags, strict=True), strict=True))

    def read(atom: Any) -> tuple[Any, bool]:
        return (atom.val, False) if isinstance(atom, jex.Literal) else env[atom]

    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        inner = called(eqn)
        if inner is not None and is_native() and _is_wall(inner.jaxpr):
            outs = _walled(operands, _native.get())
        elif inner is not None:
            values, marks = [v for v, _ in operands], [b for _, b in operands]
            outs = _interpret(inner.jaxpr, inner.consts, values, marks, runs)
        elif name_of(eqn) == "optimization_barrier":
            outs = list(
                zip(_bind(eqn, [v for v, _ in operands]), (b for _, b in operands), strict=True)
            )
        elif not any(flag for _, flag in operands):
            outs = [(out, False) for out in _bind(eqn, [v for v, _ in operands])]
        else:
            outs = [(out, True) for out in _batched_equation(eqn, operands, runs)]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def called(eqn: Any) -> Any:
    """The closed jaxpr that an equation calls just once on its operands; None if it does not."""
    found = list(jex.jaxprs_in_params(eqn.params))
    if name_of(eqn) not in INLINED or len(found) != 1:
        return None
    closed = next(value for value in eqn.params.values() if getattr(value, "jaxpr", value) in found)
    closed = closed if hasattr(closed, "jaxpr") else jex.ClosedJaxpr(closed, ())
    return closed if len(closed.jaxpr.invars) == len(eqn.invars) else None


def _is_wall(jaxpr: Any) -> bool:
    """Is the function a barrier around its arguments and nothing else, as `cut` is?

    It returns what it gets, so no function of that form, whoever wrote it, is changed by a wall.
    """
    if len(jaxpr.eqns) != 1 or name_of(jaxpr.eqns[0]) != "optimization_barrier":
        return False
    barrier = jaxpr.eqns[0]
    return barrier.invars == jaxpr.invars and barrier.outvars == jaxpr.outvars


def _bind(eqn: Any, values: Sequence[Any]) -> list[Any]:
    """Apply the equation's primitive to other operands."""
    prepared = eqn.primitive.get_bind_params(eqn.params)  # (functions, params) before jax 0.10
    functions, params = prepared if isinstance(prepared, tuple) else ((), prepared)
    out = eqn.primitive.bind(*functions, *values, **params)
    return list(out) if eqn.primitive.multiple_results else [out]


def _batched_equation(eqn: Any, operands: Sequence[tuple[Any, bool]], runs: int) -> list[Any]:
    """The results of an equation with operands of which some have the trailing axis."""
    outs = _runs_last(eqn, operands, runs) if _is_known(eqn) else None
    expected = [(*out.aval.shape, runs) for out in eqn.outvars]
    if outs is None or [out.shape for out in outs] != expected:
        return _by_vmap(eqn, operands)
    return outs


def _is_known(eqn: Any) -> bool:
    """Are the primitive and all its parameters among those that `_runs_last` was written for?"""
    name, params = name_of(eqn), set(eqn.params)
    if name in ELEMENTWISE:
        return True
    if name in REDUCTIONS:
        return params <= OF_REDUCTIONS
    known = PARAMETERS.get(name)
    return known is not None and known - OPTIONAL <= params <= known


def _runs_last(eqn: Any, operands: Sequence[tuple[Any, bool]], runs: int) -> list[Any] | None:
    """The equation with the trailing axis kept; None where that is left to `jax.vmap`."""
    name, params = eqn.primitive.name, eqn.params
    if name in ELEMENTWISE:
        return None if _changes_width(eqn) else _bind(eqn, _aligned(operands, runs))
    x, _ = operands[0]
    if name in REDUCTIONS:
        return _bind(eqn, [x])
    match name:
        case "broadcast_in_dim":
            shape, dims = params["shape"], params["broadcast_dimensions"]
            return [lax.broadcast_in_dim(x, (*shape, runs), (*dims, len(shape)))]
        case "reshape" if params["dimensions"] is None:
            return [lax.reshape(x, (*params["new_sizes"], runs))]
        case "squeeze":
            return [lax.squeeze(x, params["dimensions"])]
        case "transpose":
            return [lax.transpose(x, (*params["permutation"], x.ndim - 1))]
        case "stack":
            return _bind(eqn, [v if b else _spread(v, runs) for v, b in operands])
        case "unstack":
            return _bind(eqn, [x])
        case "concatenate":
            return [
                lax.concatenate(
                    [v if b else _spread(v, runs) for v, b in operands], params["dimension"]
                )
            ]
        case "slice":
            strides = params["strides"] or (1,) * (x.ndim - 1)
            starts, limits = (*params["start_indices"], 0), (*params["limit_indices"], runs)
            return [lax.slice(x, starts, limits, (*strides, 1))]
        case "dynamic_slice" if _unit_rows(params["slice_sizes"], _shape(operands[0])):
            return [_read_row(operands, params["slice_sizes"], runs)]
        case "dynamic_slice" if not any(per_run for _, per_run in operands[1:]):
            at = (*(index for index, _ in operands[1:]), jnp.zeros_like(operands[1][0]))
            return [lax.dynamic_slice(x, at, (*params["slice_sizes"], runs))]
        case "dynamic_update_slice" if _unit_rows(_shape(operands[1]), _shape(operands[0])):
            return [_write_row(operands, runs)]
        case "scan":
            return _scan(eqn, operands, runs)
        case "while":
            return _while(params, operands, runs)
    return None


def _changes_width(eqn: Any) -> bool:
    """A bitcast between types of different size adds or removes an axis."""
    is_bitcast = eqn.primitive.name == "bitcast_convert_type"
    return is_bitcast and eqn.invars[0].aval.ndim != eqn.outvars[0].aval.ndim


def _aligned(operands: Sequence[tuple[Any, bool]], runs: int) -> list[Any]:
    """Give every operand of an elementwise primitive the full shape `[..., runs]`."""
    shape = jnp.broadcast_shapes(*(_shape(operand) for operand in operands))
    full = (*shape, runs)
    out = []
    for value, is_batched in operands:
        value = jnp.asarray(value) if not hasattr(value, "shape") else value
        own = _shape((value, is_batched))
        dims = tuple(range(len(shape) - len(own), len(shape)))
        if is_batched:
            dims = (*dims, len(shape))
        same = is_batched and value.shape == full
        out.append(value if same else lax.broadcast_in_dim(value, full, dims))
    return out


def _shape(operand: tuple[Any, bool]) -> tuple[int, ...]:
    """The one-run shape of an operand."""
    value, is_batched = operand
    shape = tuple(jnp.shape(value))
    return shape[:-1] if is_batched else shape


def _unit_rows(sizes: Sequence[int], shape: Sequence[int]) -> bool:
    """True for a slice of one entry along some leading axes and everything along the others."""
    lead = _leading_units(sizes)
    return tuple(sizes[lead:]) == tuple(shape[lead:])


def _leading_units(sizes: Sequence[int]) -> int:
    """How many of the first axes of a slice have one entry."""
    return next((axis for axis, size in enumerate(sizes) if size != 1), len(sizes))


def _row_index(
    indices: Sequence[tuple[Any, bool]], shape: Sequence[int], sizes: Sequence[int]
) -> tuple[Any, bool, int]:
    """Index into the leading unit axes, flattened: (index, batched, number of rows)."""
    lead = _leading_units(sizes)
    flat, is_batched = jnp.int32(0), False
    for (index, batched), size in zip(indices[:lead], shape[:lead], strict=True):
        index = jnp.asarray(index)
        index = index if index.dtype.itemsize >= 4 else index.astype(jnp.int32)  # holds any size
        inside = jnp.clip(index, 0, size - 1).astype(jnp.int32)
        flat = flat * size + inside
        is_batched = is_batched or batched
    return flat, is_batched, math.prod(shape[:lead])


def _read_row(operands: Sequence[tuple[Any, bool]], sizes: Sequence[int], runs: int) -> jax.Array:
    """dynamic_slice of one row. A shared index is a slice, an index per run one flat gather."""
    (x, x_batched), indices = operands[0], operands[1:]
    shape = _shape(operands[0])
    index, per_run, rows = _row_index(indices, shape, sizes)
    width = math.prod(shape) // rows
    if not per_run:
        table = lax.reshape(x if x_batched else _spread(x, runs), (rows, width, runs))
        row = lax.dynamic_slice(table, (index, ORIGIN, ORIGIN), (1, width, runs))
    else:
        shared = index * width + lax.iota(jnp.int32, width)[:, None]
        positions = _flat_positions(index, width, runs) if x_batched else shared
        row = jnp.asarray(x).reshape(-1).at[positions].get(mode="promise_in_bounds")
    return lax.reshape(row, (*sizes, runs))


def _write_row(operands: Sequence[tuple[Any, bool]], runs: int) -> jax.Array:
    """dynamic_update_slice of one row, done in place."""
    (x, x_batched), (update, update_batched), indices = operands[0], operands[1], operands[2:]
    shape = _shape(operands[0])
    index, per_run, rows = _row_index(indices, shape, _shape(operands[1]))
    x = x if x_batched else _spread(x, runs)
    update = update if update_batched else _spread(update, runs)
    width = math.prod(shape) // rows
    row = (width, runs) if width > 1 else (runs,)  # a unit axis would cost a change of layout
    table, update = lax.reshape(x, (rows, *row)), lax.reshape(update, (1, *row))
    if not per_run:
        out = lax.dynamic_update_slice(table, update, (index, *(ORIGIN for _ in row)))
    elif is_native():
        out = _write_in_loop(table, update, index)
    else:
        positions = _flat_positions(index, width, runs)
        out = (
            table.reshape(-1)
            .at[positions]
            .set(update.reshape(width, runs), mode="promise_in_bounds", unique_indices=True)
        )
    return lax.reshape(out, (*shape, runs))


def _write_in_loop(table: jax.Array, update: jax.Array, index: jax.Array) -> jax.Array:
    """Row index[run] of table [rows, ..., runs] becomes update [1, ..., runs], run by run."""
    inner, runs = table.shape[1:-1], table.shape[-1]
    whole = tuple(ORIGIN for _ in inner)

    def write(run: jax.Array, table: jax.Array) -> jax.Array:
        run = run.astype(jnp.int32)
        column = lax.dynamic_slice(update, (ORIGIN, *whole, run), (1, *inner, 1))
        return lax.dynamic_update_slice(table, column, (index[run], *whole, run))

    return lax.fori_loop(jnp.int32(0), jnp.int32(runs), write, table)


def _flat_positions(index: jax.Array, width: int, runs: int) -> jax.Array:
    """[width, runs] positions of row `index[run]` in a flattened [rows, width, runs] array."""
    inside = lax.iota(jnp.int32, width)[:, None]
    return (index * width + inside) * runs + lax.iota(jnp.int32, runs)


def _scan(eqn: Any, operands: Sequence[tuple[Any, bool]], runs: int) -> list[Any]:
    """A scan whose body is batched in turn; all that is carried gets the trailing axis."""
    params, body = eqn.params, eqn.params["jaxpr"]
    consts, carried = _parts_of_scan(eqn)
    flags = [is_batched for _, is_batched in operands]
    fixed, first = operands[:consts], operands[consts : consts + carried]
    xs = [value for value, _ in operands[consts + carried :]]
    flags[consts : consts + carried] = [True] * carried

    def step(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        args = [value for value, _ in fixed] + carry + x
        outs = _interpret(body.jaxpr, body.consts, args, flags, runs)
        values = [value if is_batched else _spread(value, runs) for value, is_batched in outs]
        return values[:carried], values[carried:]

    start = [value if is_batched else _spread(value, runs) for value, is_batched in first]
    options = {name: params[name] for name in ("length", "reverse", "unroll")}
    carry, ys = lax.scan(step, start, xs, **options)
    return [*carry, *ys]


def _parts_of_scan(eqn: Any) -> tuple[int, int]:
    """(constants, carried values): outside of the body, all but these have one more axis."""
    body = eqn.params["jaxpr"].jaxpr

    def whole(outside: Sequence[Any], inside: Sequence[Any]) -> int:
        return sum(x.aval.ndim == y.aval.ndim for x, y in zip(outside, inside, strict=True))

    carried = whole(eqn.outvars, body.outvars)
    return whole(eqn.invars, body.invars) - carried, carried


def _while(params: Any, operands: Sequence[tuple[Any, bool]], runs: int) -> list[Any]:
    """A loop that goes on while any run does; a run that has ended keeps its values.

    All that is carried gets the trailing axis; what the loop only reads stays out of it.
    """
    for_test, for_body = params["cond_nconsts"], params["body_nconsts"]
    tested, fixed = operands[:for_test], operands[for_test : for_test + for_body]
    first = operands[for_test + for_body :]

    def apply(closed: Any, consts: Sequence[tuple[Any, bool]], carry: list[Any]) -> list[Any]:
        args = [value for value, _ in consts] + carry
        flags = [is_batched for _, is_batched in consts] + [True] * len(carry)
        outs = _interpret(closed.jaxpr, closed.consts, args, flags, runs)
        return [value if is_batched else _spread(value, runs) for value, is_batched in outs]

    def goes_on(carry: list[Any]) -> Any:
        return apply(params["cond_jaxpr"], tested, carry)[0]

    def step(now: tuple[Any, list[Any]]) -> tuple[Any, list[Any]]:
        going, carry = now
        new = apply(params["body_jaxpr"], fixed, carry)
        new = [jnp.where(going, x, old) for x, old in zip(new, carry, strict=True)]
        return goes_on(new), new

    start = [value if is_batched else _spread(value, runs) for value, is_batched in first]
    return lax.while_loop(lambda now: jnp.any(now[0]), step, (goes_on(start), start))[1]


def _by_vmap(eqn: Any, operands: Sequence[tuple[Any, bool]]) -> list[Any]:
    at = 0 if _changes_width(eqn) else -1  # of a bitcast the last axis is part of the number
    axes = tuple(at if is_batched else None for _, is_batched in operands)
    values = [jnp.moveaxis(v, -1, at) if is_batched else v for v, is_batched in operands]
    return jax.vmap(lambda *args: _bind(eqn, args), in_axes=axes, out_axes=-1)(*values)
