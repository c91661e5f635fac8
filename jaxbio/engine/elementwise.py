"""Scalar primitives of JAX as operations of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from jaxbio.engine import functions
from jaxbio.engine.functions import OF_FLOAT32, Number
from jaxbio.engine.program import BOOL, INT32, Builder, Value

PLAIN = {
    "add": "add", "sub": "sub", "mul": "mul", "neg": "neg", "max": "max", "min": "min",
    "and": "and", "or": "or", "xor": "xor", "not": "not", "add_any": "add",
    "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
    "floor": "floor", "ceil": "ceil", "sqrt": "sqrt",
}  # fmt: skip
OF_FLAGS = {"max": "or", "min": "and", "add": "or", "mul": "and"}
UNCHANGED = frozenset("copy copy_p stop_gradient".split())
SHIFTS = {"shift_left": "shl", "shift_right_logical": "lshr", "shift_right_arithmetic": "ashr"}

# The parameters in the versions of JAX that we have seen; another one may mean anything.
PARAMETERS = {
    "convert_element_type": "new_dtype sharding weak_type",
    "bitcast_convert_type": "new_dtype",
    "integer_pow": "y",
    "round": "rounding_method",
    "mul": "out_dtype",
    "reduce_precision": "exponent_bits mantissa_bits",
    **dict.fromkeys((*OF_FLOAT32, "sqrt", "rsqrt", "cbrt"), "accuracy"),
}


def is_understood(dtype: Any) -> bool:
    dtype = np.dtype(dtype)
    return dtype in (BOOL, *(np.dtype(name) for name in ("int32", "uint32", "float32")))


def _is_float(value: Value) -> bool:
    return value.dtype.kind == "f"


def apply(b: Builder, name: str, params: dict[str, Any], out: Any, args: list[Value]) -> Value:
    """The value of a scalar primitive; out: its type."""
    found = _applied(b, name, params, out, args)
    if found.dtype != np.dtype(out):
        raise TypeError(f"{found.dtype} where {np.dtype(out)} is expected")
    return found


def _applied(b: Builder, name: str, params: dict[str, Any], out: Any, args: list[Value]) -> Value:
    if name in ("max", "min") and _is_float(args[0]):
        return extreme(b, name, args)
    if name in PLAIN:
        of_flags = args[0].dtype == BOOL
        return b.emit(OF_FLAGS.get(name, PLAIN[name]) if of_flags else PLAIN[name], *args)
    if name in UNCHANGED:
        return args[0]
    if name in SHIFTS:
        return _shift(b, SHIFTS[name], *args)
    if name in OF_FLOAT32:
        if not _is_float(args[0]):
            raise TypeError(f"of {args[0].dtype}")
        return OF_FLOAT32[name](*(Number(b, arg) for arg in args)).value
    if name == "convert_element_type":
        return convert(b, args[0], out)
    return RULES[name](b, params, out, *args)


def extreme(b: Builder, name: str, values: list[Value]) -> Value:
    """The largest or least of floats; NaN if one of them is.

    The number and the test for NaN are found apart, so that neither waits for the other.
    """
    op, found, odd = "upper" if name == "max" else "lower", values[0], None
    for value in values[1:]:
        first, second = (value, found) if value.op == "const" else (found, value)
        found = b.emit(op, first, second)  # of two that cannot be compared, the second
    unknown = [value for value in values if value.op != "const"]
    if len(values) == 2 and len(unknown) == 1 and not any(_is_nan(value) for value in values):
        return found
    for value in values:
        is_odd = b.emit("ne", value, value)
        odd = is_odd if odd is None else b.emit("or", odd, is_odd)
    assert odd is not None
    return b.emit("select", odd, b.constant(np.nan, found.dtype), found)


def _is_nan(value: Value) -> bool:
    return value.op == "const" and bool(np.isnan(value.param))


def convert(b: Builder, x: Value, out: Any) -> Value:
    if np.dtype(out) == BOOL and x.dtype != BOOL:
        return b.emit("ne", x, b.constant(0, x.dtype))
    if x.dtype.kind == "f" and np.dtype(out).kind in "iu":
        return _whole(Number(b, x), np.dtype(out)).value
    return b.emit("convert", x, dtype=np.dtype(out))


def _whole(x: Number, out: np.dtype) -> Number:
    """A float as an integer: NaN is 0, and what is too large is the largest there is."""
    info = np.iinfo(out)
    beyond = float(info.max) + 1.0
    inside = x.where(x.equals(x), 0.0)("min", np.nextafter(np.float32(beyond), np.float32(0)))
    found = inside("max", float(info.min)).to(out)
    return Number(x.b, found.other(info.max)).where(x >= beyond, found)


def _shift(b: Builder, op: str, x: Value, by: Value) -> Value:
    """Shifts by as many bits as there are, or more, leave nothing (or the sign)."""
    bits = 8 * x.dtype.itemsize
    if by.op == "const" and 0 <= int(by.param) < bits:
        return b.emit(op, x, by)
    unsigned = b.emit("bitcast", by, dtype=np.dtype(f"u{by.dtype.itemsize}"))
    inside = b.emit("lt", unsigned, b.constant(bits, unsigned.dtype))
    masked = b.emit("and", by, b.constant(bits - 1, by.dtype))
    beyond = b.constant(0, x.dtype)
    if op == "ashr":
        beyond = b.emit("ashr", x, b.constant(bits - 1, x.dtype))
    return b.emit("select", inside, b.emit(op, x, masked), beyond)


def _div(b: Builder, params: Any, out: Any, x: Value, y: Value) -> Value:
    if _is_float(x):
        return b.emit("div", x, y)
    return _guarded(b, "div", x, y, b.constant(-1, x.dtype), b.emit("neg", x))


def _rem(b: Builder, params: Any, out: Any, x: Value, y: Value) -> Value:
    if _is_float(x):
        # Exact while the quotient is below 2**24, as fmod is; beyond that not.
        raise KeyError("rem")
    return _guarded(b, "rem", x, y, x, b.constant(0, x.dtype))


def _guarded(b: Builder, op: str, x: Value, y: Value, by_zero: Value, by_minus: Value) -> Value:
    """A division that cannot trap: by 0, and of the least number by -1."""
    if y.op == "const" and int(y.param) not in (0, -1):
        return b.emit(op, x, y)
    one, signed = b.constant(1, y.dtype), y.dtype.kind == "i"
    zero, minus = b.emit("eq", y, b.constant(0, y.dtype)), None
    unsafe = zero
    if signed:
        minus = b.emit("eq", y, b.constant(-1, y.dtype))
        unsafe = b.emit("or", zero, minus)
    found = b.emit(op, x, b.emit("select", unsafe, one, y))
    if minus is not None:
        found = b.emit("select", minus, by_minus, found)
    return b.emit("select", zero, by_zero, found)


def _abs(b: Builder, params: Any, out: Any, x: Value) -> Value:
    if x.dtype.kind == "u":
        return x
    if _is_float(x):
        return b.emit("abs", x)
    negative = b.emit("lt", x, b.constant(0, x.dtype))
    return b.emit("select", negative, b.emit("neg", x), x)


def _sign(b: Builder, params: Any, out: Any, x: Value) -> Value:
    zero, one, minus = (b.constant(n, x.dtype) for n in (0, 1, -1 if x.dtype.kind != "u" else 1))
    below = b.emit("select", b.emit("lt", x, zero), minus, x)  # x: 0, or NaN
    return b.emit("select", b.emit("gt", x, zero), one, below)


def _clamp(b: Builder, params: Any, out: Any, low: Value, x: Value, high: Value) -> Value:
    return b.emit("min", b.emit("max", x, low), high)


def _select_n(b: Builder, params: Any, out: Any, which: Value, *cases: Value) -> Value:
    if which.dtype == BOOL:
        no, yes = cases if len(cases) == 2 else (cases[0], cases[0])
        return b.emit("select", which, yes, no)
    found = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        hit = b.emit("eq", which, b.constant(i, which.dtype))
        found = b.emit("select", hit, cases[i], found)
    return found


def _round(b: Builder, params: Any, out: Any, x: Value) -> Value:
    rounded = {
        lax.RoundingMethod.TO_NEAREST_EVEN: functions.round_even,
        lax.RoundingMethod.AWAY_FROM_ZERO: functions.round_away,
    }
    return rounded[lax.RoundingMethod(params["rounding_method"])](Number(b, x)).value


def _rsqrt(b: Builder, params: Any, out: Any, x: Value) -> Value:
    return b.emit("div", b.constant(1, x.dtype), b.emit("sqrt", x))


def _integer_pow(b: Builder, params: Any, out: Any, x: Value) -> Value:
    return functions.integer_power(Number(b, x), params["y"]).value


def _square(b: Builder, params: Any, out: Any, x: Value) -> Value:
    return b.emit("mul", x, x)


def _bitcast(b: Builder, params: Any, out: Any, x: Value) -> Value:
    if x.dtype.itemsize != np.dtype(out).itemsize or BOOL in (x.dtype, out):
        raise KeyError("bitcast_convert_type")
    return b.emit("bitcast", x, dtype=np.dtype(out))


def _is_finite(b: Builder, params: Any, out: Any, x: Value) -> Value:
    return b.emit("lt", b.emit("abs", x), b.constant(np.inf, x.dtype))


def _reduce_precision(b: Builder, params: Any, out: Any, x: Value) -> Value:
    if (params["exponent_bits"], params["mantissa_bits"]) != (8, 23):
        raise ValueError("to less than single precision")
    return x


def total_order(b: Builder, x: Value) -> Value:
    """An integer in whose order all floats stand: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    if not _is_float(x):
        return x
    bits = b.emit("bitcast", x, dtype=INT32)
    sign = b.emit("ashr", bits, b.constant(31, INT32))
    return b.emit("xor", bits, b.emit("and", sign, b.constant(0x7FFFFFFF, INT32)))


def _in_total_order(op: str) -> Callable[..., Value]:
    return lambda b, params, out, x, y: b.emit(op, total_order(b, x), total_order(b, y))


RULES: dict[str, Callable[..., Value]] = {
    "abs": _abs,
    "bitcast_convert_type": _bitcast,
    "clamp": _clamp,
    "div": _div,
    "integer_pow": _integer_pow,
    "is_finite": _is_finite,
    "le_to": _in_total_order("le"),
    "lt_to": _in_total_order("lt"),
    "reduce_precision": _reduce_precision,
    "rem": _rem,
    "round": _round,
    "rsqrt": _rsqrt,
    "select_n": _select_n,
    "sign": _sign,
    "square": _square,
}
NAMES = frozenset([*PLAIN, *UNCHANGED, *SHIFTS, *OF_FLOAT32, *RULES, "convert_element_type"])
EXPENSIVE = frozenset([*OF_FLOAT32, "div", "sqrt", "rsqrt"])
COMBINED = {
    "reduce_sum": "add", "reduce_max": "max", "reduce_min": "min", "reduce_prod": "mul",
    "reduce_and": "and", "reduce_or": "or", "reduce_xor": "xor",
    "cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min",
    "scatter-add": "add", "scatter_add": "add", "scatter-sub": "sub", "scatter_sub": "sub",
    "scatter-mul": "mul", "scatter_mul": "mul",
    "scatter-min": "min", "scatter_min": "min", "scatter-max": "max", "scatter_max": "max",
}  # fmt: skip


def combine(b: Builder, name: str, x: Value, y: Value) -> Value:
    """Two values as a reduction, a running sum or a scatter of this name puts them together."""
    return apply(b, COMBINED[name], {}, x.dtype, [x, y])
