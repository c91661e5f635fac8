"""Functions that a machine does not have, written as sums, products, shifts and choices.

One form for every back-end, so that they round alike. Errors are in units in the last place (ulp),
as measured on samples of all float32: every fifth number for exp and log, every 1997th for the
others. `python -m benchmarks.functions` takes all of them. Results that are no normal numbers are
not less exact, unless a function says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxbio.engine.program import BOOL, INT32, Builder, Value

FLOAT32 = np.dtype(np.float32)
# A float32 that is added to it loses its fraction, and is found in the low bits, 126 more than it
# is: shifted to where an exponent stands, they are half of that power of two.
BIASED = 1.5 * 2.0**23 + 126.0


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

    def times(self, factor: Any, plus: Any) -> Number:
        """This times a factor plus a number, rounded once."""
        return self("fma", factor, plus)

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
    total = x.times(first, others[0])
    for coefficient in others[1:]:
        total = total.times(x, coefficient)
    return total


def round_even(x: Number) -> Number:
    """To the nearest integer, halves to the even one. Zeros keep their sign."""
    size = x("abs")
    sign = x.bits(INT32) & -0x80000000
    near = (((size + 2.0**23) - 2.0**23).bits(INT32) | sign).bits(FLOAT32)
    return near.where(size < 2.0**23, x)


def round_away(x: Number) -> Number:
    """To the nearest integer, halves away from 0."""
    size = x("abs")
    whole = size("floor")
    rounded = whole + Number(x.b, x.other(1.0)).where(size - whole >= 0.5, 0.0)
    signed = rounded.where(x >= 0.0, -rounded)
    return signed.where(size < 2.0**23, x)


def _reduced(x: Number) -> tuple[Number, Number]:
    """x = n ln 2 + rest with an integer n: the rest, and BIASED + n, which has n in its bits."""
    shifted = x.times(1.44269504088896341, BIASED)
    whole = shifted - BIASED
    return whole.times(2.12194440e-4, whole.times(-0.693359375, x)), shifted


def _series(rest: Number) -> Number:
    """(e^rest - 1 - rest) / rest^2 for |rest| <= ln(2) / 2."""
    return polynomial(
        rest, 1.3814540579915047e-3, 8.36874544620514e-3, 4.166838899254799e-2,
        1.666652113199234e-1, 4.999999403953552e-1,
    )  # fmt: skip


def _power(rest: Number) -> Number:
    """e^rest for |rest| <= ln(2) / 2."""
    return _series(rest).times(rest, 1.0).times(rest, 1.0)


def _half_power(shifted: Number) -> Number:
    """2^(n - 1) for -125 <= n <= 128. shifted: BIASED + n."""
    return shifted.bits(INT32)("shl", 23).bits(FLOAT32)


def exp(x: Number) -> Number:
    """e^x, within 1 ulp; 0 where it is below 2^-125."""
    x = x("min", 89.0)
    rest, shifted = _reduced(x)
    power = _power(rest)
    return Number(x.b, x.other(0.0)).where(
        x < -86.64339447021484, (power + power) * _half_power(shifted)
    )


def exp2(x: Number) -> Number:
    """2^x, within 1 ulp; 0 where it is below 2^-125."""
    x = x("min", 129.0)
    shifted = x + BIASED
    power = _power((x - (shifted - BIASED)) * 0.6931471805599453)
    return Number(x.b, x.other(0.0)).where(x < -125.0, (power + power) * _half_power(shifted))


def expm1(x: Number) -> Number:
    """e^x - 1, within 2 ulp."""
    rest, shifted = _reduced(x("min", 89.0)("max", -18.0))
    scale = _half_power(shifted)
    less_one = _series(rest).times(rest * rest, rest)
    half = less_one * scale + (scale - 0.5)
    return (half + half).where(x("abs") > 2.0**-24, x)


def log(x: Number) -> Number:
    """ln x, within 1 ulp; -inf at 0, NaN below."""
    tiny = x < 2.0**-126
    bits = (x * 2.0**23).where(tiny, x).bits(INT32)
    exponent = (bits - 0x3F3504F3)("ashr", 23)  # such that the rest lies around 1
    power = exponent.to(FLOAT32) - Number(x.b, x.other(23.0)).where(tiny, 0.0)
    m = (bits - exponent("shl", 23)).bits(FLOAT32) - 1.0
    square = m * m
    series = polynomial(
        m, -7.634500414133072e-2, 1.27615824341774e-1, -1.3160182535648346e-1,
        1.4201757311820984e-1, -1.6623356938362122e-1, 2.0001226663589478e-1,
        -2.500081956386566e-1, 3.333333134651184e-1,
    )  # fmt: skip
    tail = square.times(-0.5, power.times(-2.12194440e-4, series * m * square))
    found = power.times(0.693359375, m + tail)
    outside = Number(x.b, x.other(-np.inf)).where(x.equals(0.0), np.nan)
    return found.where(x < np.inf, x).where(x > 0.0, outside)


def log1p(x: Number) -> Number:
    """ln(1 + x), within 3 ulp."""
    whole = x + 1.0
    exact = log(whole) * (x / (whole - 1.0))
    return exact.where((whole.equals(1.0) | whole.equals(np.inf))("not"), x)


def tanh(x: Number) -> Number:
    """Within 3 ulp."""
    less = expm1(x("abs") * -2.0)
    found = -less / (less + 2.0)
    return found.where(x > 0.0, -found).where(x("abs") > 2.0**-24, x)


def _half_exp(x: Number) -> Number:
    """e^x / 2 for x >= 0, also where e^x has no room."""
    far = x > 64.0  # there x - 1 is exact
    return exp((x - 1.0).where(far, x)) * Number(x.b, x.other(np.e / 2)).where(far, 0.5)


def cosh(x: Number) -> Number:
    """Within 3 ulp."""
    half = _half_exp(x("abs"))
    return half + 0.25 / half


def sinh(x: Number) -> Number:
    """Within 4 ulp."""
    size = x("abs")
    less, half = expm1(size("min", 1.0)), _half_exp(size)
    near = (less + less / (less + 1.0)) * 0.5
    found = near.where(size < 1.0, half - 0.25 / half)
    return found.where(x > 0.0, -found).where(size > 2.0**-12, x)


def logistic(x: Number) -> Number:
    """1 / (1 + e^-x), within 3 ulp; 0 where it is below 2^-125."""
    power = exp(-x("abs"))
    return Number(x.b, x.other(1.0)).where(x >= 0.0, power) / (power + 1.0)


def erf_inv(x: Number) -> Number:
    """The inverse of erf (Giles 2010), within 4 ulp."""
    w = -log((1.0 - x) * (x + 1.0))
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
    return found.where(x("abs").equals(1.0)("not"), x * np.inf)


def power(x: Number, y: Number) -> Number:
    """x^y. Multiples of 1/4 up to 16 by products and roots, within 3 ulp for 0 < y < 2 (1/x^-y for
    y < 0, which is 0 for results that are no normal numbers); else e^(y ln |x|), whose error grows
    with |y ln x|: 2 ulp and 2 for each unit of it.
    """
    exponent = y.value.param if y.value.op == "const" else None
    if exponent is not None and abs(exponent) <= 16 and 4 * exponent == int(4 * exponent):
        return _root(x, float(exponent))
    y = y.to(FLOAT32)
    is_whole = y("floor").equals(y)
    is_odd = is_whole & (y * 0.5)("floor").equals(y * 0.5)("not")
    found = exp(y * log(x("abs").where(is_whole, x)))
    found = (-found).where(is_odd & (x < 0.0), found)
    return Number(x.b, x.other(1.0)).where(y.equals(0.0) | x.equals(1.0), found)


def _root(x: Number, exponent: float) -> Number:
    """x to a multiple of 1/4."""
    quarters, root = round(4 * abs(exponent)), x("sqrt")
    parts = [integer_power(x, quarters // 4)]
    parts += [root] * (quarters % 4 // 2) + [root("sqrt")] * (quarters % 2)
    product = parts[0]
    for part in parts[1:]:
        product = product * part
    return 1.0 / product if exponent < 0 else product


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
    "cosh": cosh,
    "sinh": sinh,
    "logistic": logistic,
    "erf_inv": erf_inv,
    "pow": power,
}

__all__ = ["BOOL", "OF_FLOAT32", "Number", "integer_power", "round_away", "round_even"]
