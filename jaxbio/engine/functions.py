"""Functions that a machine does not have, written as sums, products, shifts and choices.

One form for every back-end, so that they round alike. Errors are those measured over all float32
(`tests/test_functions.py`), in units in the last place: exp 1, log 1, the others as they say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxbio.engine.program import BOOL, INT32, Builder, Value

FLOAT32 = np.dtype(np.float32)
_BITS_OF_MAGIC = int(np.float32(1.5 * 2.0**23).view(np.int32))
MAGIC = 1.5 * 2.0**23  # a float32 that is added to it loses its fraction, rounded to even


class Number:
    """A value with the signs of arithmetic; plain numbers take the type of the other operand."""

    def __init__(self, builder: Builder, value: Value) -> None:
        self.b, self.value = builder, value

    def other(self, other: Any) -> Value:
        if isinstance(other, Number):
            return other.value
        return self.b.constant(other, self.value.dtype)

    def __call__(self, op: str, *others: Any, dtype: Any = None) -> Number:
        values = [self.other(other) for other in others]
        return Number(self.b, self.b.emit(op, self.value, *values, dtype=dtype))

    def __add__(self, other: Any) -> Number:
        return self("add", other)

    def __sub__(self, other: Any) -> Number:
        return self("sub", other)

    def __rsub__(self, other: Any) -> Number:
        return Number(self.b, self.other(other)) - self

    def __mul__(self, other: Any) -> Number:
        return self("mul", other)

    def __truediv__(self, other: Any) -> Number:
        return self("div", other)

    def __rtruediv__(self, other: Any) -> Number:
        return Number(self.b, self.other(other)) / self

    def __neg__(self) -> Number:
        return self("neg")

    def __and__(self, other: Any) -> Number:
        return self("and", other)

    def __or__(self, other: Any) -> Number:
        return self("or", other)

    def __lt__(self, other: Any) -> Number:
        return self("lt", other)

    def __gt__(self, other: Any) -> Number:
        return self("gt", other)

    def __ge__(self, other: Any) -> Number:
        return self("ge", other)

    def equals(self, other: Any) -> Number:
        return self("eq", other)

    def to(self, dtype: Any) -> Number:
        return self("convert", dtype=np.dtype(dtype))

    def bits(self, dtype: Any) -> Number:
        return self("bitcast", dtype=np.dtype(dtype))

    def where(self, condition: Number, otherwise: Any) -> Number:
        """This where the condition holds."""
        value = self.b.emit("select", condition.value, self.value, self.other(otherwise))
        return Number(self.b, value)


def polynomial(x: Number, first: float, *others: float) -> Number:
    """Horner's form, the highest power first."""
    total = x * first + others[0]
    for coefficient in others[1:]:
        total = total * x + coefficient
    return total


def round_even(x: Number) -> Number:
    """To the nearest integer, halves to the even one."""
    near = (x + MAGIC) - MAGIC
    return near.where(x("abs") < 2.0**22, x)


def round_away(x: Number) -> Number:
    """To the nearest integer, halves away from 0."""
    size = x("abs")
    whole = size("floor")
    rounded = whole + Number(x.b, x.other(1.0)).where(size - whole >= 0.5, 0.0)
    signed = rounded.where(x >= 0.0, -rounded)
    return signed.where(size < 2.0**23, x)


def _power_of_two(exponent: Number) -> Number:
    return (exponent + 127)("shl", 23).bits(FLOAT32)


def _whole(shifted: Number) -> Number:
    """The integer that was added to MAGIC, read off the bits."""
    return shifted.bits(INT32) - _BITS_OF_MAGIC


def exp(x: Number) -> Number:
    """e^x, within 1 ulp; 0 where it is below 2^-125."""
    x = x("min", 89.0)
    shifted = x * 1.44269504088896341 + MAGIC
    whole = shifted - MAGIC
    rest = (x - whole * 0.693359375) - whole * -2.12194440e-4
    series = polynomial(
        rest, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
        5.0000001201e-1,
    )  # fmt: skip
    power = series * (rest * rest) + rest + 1.0
    # 2^whole as twice its half, which is a finite number where the result is.
    half = (shifted.bits(INT32) - (_BITS_OF_MAGIC - 126))("shl", 23).bits(FLOAT32)
    return Number(x.b, x.other(0.0)).where(x < -86.6, (power + power) * half)


def log(x: Number) -> Number:
    """ln x, within 1 ulp; -inf at 0, NaN below."""
    tiny = x < 2.0**-126
    scaled = (x * 2.0**23).where(tiny, x)
    bits = scaled.bits(INT32)
    exponent = bits("lshr", 23) - 126
    exponent = (exponent - 23).where(tiny, exponent)
    mantissa = ((bits & 0x007FFFFF) | 0x3F000000).bits(FLOAT32)
    small = mantissa < 0.707106781186547524
    power = (exponent - 1).where(small, exponent).to(FLOAT32)
    m = (mantissa + mantissa).where(small, mantissa) - 1.0
    square = m * m
    series = polynomial(
        m, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
        -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
    )  # fmt: skip
    tail = series * m * square + power * -2.12194440e-4 - square * 0.5
    found = m + tail + power * 0.693359375
    found = found.where(x < np.inf, x)  # inf and NaN
    return found.where(x > 0.0, Number(x.b, x.other(-np.inf)).where(x.equals(0.0), np.nan))


def log1p(x: Number) -> Number:
    """ln(1 + x), within 3 ulp."""
    whole = x + 1.0
    exact = log(whole) * (x / (whole - 1.0))
    return exact.where((whole.equals(1.0) | whole.equals(np.inf))("not"), x)


def expm1(x: Number) -> Number:
    """e^x - 1, within 4 ulp."""
    power = exp(x)
    less = power - 1.0
    exact = less * (x / log(power))
    found = exact.where((x("abs") < 1.0) & power.equals(1.0)("not"), less)
    return x.where(power.equals(1.0), found)


def tanh(x: Number) -> Number:
    """Within 4 ulp."""
    size = x("abs")("min", 10.0)
    less = expm1(size * -2.0)
    found = -less / (less + 2.0)
    return found.where(x >= 0.0, -found).where(x.equals(x), x)


def logistic(x: Number) -> Number:
    """1 / (1 + e^-x), within 2 ulp."""
    return 1.0 / (exp(-x) + 1.0)


def exp2(x: Number) -> Number:
    """2^x, within 2 ulp: the fraction apart from the whole powers."""
    x = x("min", 129.0)("max", -151.0)
    shifted = x + MAGIC
    whole, exponent = shifted - MAGIC, _whole(shifted)
    half = exponent("ashr", 1)
    fraction = exp((x - whole) * 0.6931471805599453)
    return fraction * _power_of_two(half) * _power_of_two(exponent - half)


def erf_inv(x: Number) -> Number:
    """The inverse of erf (Giles 2010), within 4 ulp."""
    w = -log1p(-(x * x))
    central, outer = w - 2.5, w("sqrt") - 3.0
    inside = polynomial(
        central, 2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
        -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
    )  # fmt: skip
    outside = polynomial(
        outer, -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
        -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
    )  # fmt: skip
    found = inside.where(w < 5.0, outside) * x
    return found.where(x("abs") < 1.0, x * np.inf)


def power(x: Number, y: Number) -> Number:
    """x^y. Multiples of 1/4 up to 16 by products and roots; else e^(y ln x) for x > 0, whose error
    grows with |y ln x|: 1 ulp for each unit of it.
    """
    exponent = y.value.param if y.value.op == "const" else None
    if exponent is not None and abs(exponent) <= 16 and 4 * exponent == int(4 * exponent):
        quarters = round(4 * abs(float(exponent)))
        root = x("sqrt")
        parts = [integer_power(x, quarters // 4)]
        parts += [root] * (quarters % 4 // 2) + [root("sqrt")] * (quarters % 2)
        product = parts[0]
        for part in parts[1:]:
            product = product * part
        return 1.0 / product if exponent < 0 else product
    return exp(y * log(x))


def integer_power(x: Number, exponent: int) -> Number:
    """x multiplied by itself, by repeated squaring."""
    found, factor, left = None, x, abs(exponent)
    while left:
        if left & 1:
            found = factor if found is None else found * factor
        left >>= 1
        factor = factor * factor if left else factor
    one = Number(x.b, x.other(1))
    found = one if found is None else found
    return one / found if exponent < 0 else found


OF_FLOAT32: dict[str, Callable[..., Number]] = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log1p": log1p,
    "tanh": tanh,
    "logistic": logistic,
    "erf_inv": erf_inv,
    "pow": power,
}

__all__ = ["BOOL", "OF_FLOAT32", "Number", "integer_power", "round_away", "round_even"]
