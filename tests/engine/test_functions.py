"""The engine's own functions against double precision, in units in the last place of float32."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flat import by_vmap
from jax import lax

from benchmarks.functions import FUNCTIONS, LEAST, all_floats, compiled, measure, ulps

STRIDE = 211  # of all float32: about 2e7 numbers, for the functions of every round
SPARSE = 2003

# What the docstrings say; `python -m benchmarks.functions` measures without gaps, in minutes.
WITHIN = {
    "exp": 1, "log": 1, "sqrt": 0.5, "log1p": 3, "expm1": 2, "exp2": 1, "tanh": 3, "cosh": 3,
    "sinh": 4, "logistic": 3, "erf_inv": 4, "x**0.75": 3, "x**1.5": 2,
}  # fmt: skip
TINY = np.finfo(np.float32).tiny
SPECIAL = np.array(
    [0.0, -0.0, 1e-45, -1e-45, TINY, -TINY, TINY / 2, 1e-38, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0,
     np.inf, -np.inf, np.nan, 3.4028235e38, -3.4028235e38, 88.72283, 88.722839, 88.73, 89, 89.5,
     -87.33655, -87.5, -103.97, -103.98, -104, -105, 128, 127.99999, -126, -149, -149.5, -150, -151,
     0.70710677, 0.7071068, 1.4142135, 1.4142137, 0.99999994, 1.0000001, -0.99999994, 16777216,
     2**-24, 2**-25, -(2**-24), 9.0, -9.0, 18, -18],
    np.float32,
)  # fmt: skip
NEAR = np.concatenate([np.nextafter(SPECIAL, np.float32(x)) for x in (-np.inf, np.inf)])


@pytest.mark.parametrize("name", WITHIN)
def test_error_is_what_the_docstring_says(name: str) -> None:
    function, truth = FUNCTIONS[name]
    stride = STRIDE if name in ("exp", "log") else SPARSE
    call = compiled(function)
    found = measure(call, truth, all_floats(stride))
    assert found.worst <= WITHIN[name]
    assert found.worst > WITHIN[name] / 4  # a measurement that sees nothing is none
    assert not found.wrong
    edges = measure(call, truth, iter([np.concatenate([SPECIAL, NEAR])]))
    assert edges.worst <= WITHIN[name]
    assert not edges.wrong


def test_ulps_are_counted() -> None:
    truth = np.array([1.0, 2.0, 1e-40, np.inf, np.nan, 1e39, 1.0])
    got = np.array([1 + 2**-23, 2 - 2**-22, 0, np.inf, np.nan, np.inf, np.nan], np.float32)
    found = ulps(got, truth)
    np.testing.assert_allclose(found[:2], [1, 1])
    assert found[2] == pytest.approx(1e-40 / 2.0**-149)
    assert found[3:6].tolist() == [0, 0, 0]
    assert not np.isfinite(found[6])


def test_powers_within_what_the_docstring_says() -> None:
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(-20, 20, 200_000)).astype(np.float32)
    y = rng.uniform(-4, 4, x.size).astype(np.float32)
    exact = np.power(x.astype(np.float64), y.astype(np.float64))
    normal = (exact > 2 * LEAST) & (exact < 3e38)
    error = ulps(compiled(jnp.power, 2)(x, y), exact)[normal]
    room = 2 + 2 * np.abs(y * np.log(x))[normal]
    assert (error <= room).all()
    assert (error > room / 16).any()


def test_powers_of_everything() -> None:
    """Where the result is known: zeros, ones, infinities, negative numbers to whole powers."""
    some = np.array([0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan], np.float32)
    x, y = (part.reshape(-1) for part in np.meshgrid(some, some))
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    known = ~((x == -1) & np.isinf(y)) & ~((x < 0) & np.isinf(y)) & ~(np.isinf(x) & (x < 0))
    got = compiled(jnp.power, 2)(x, y)
    np.testing.assert_allclose(got[known], expected[known], rtol=1e-6)


HALVES = np.concatenate(
    [
        np.arange(-9, 9, 0.25, dtype=np.float32),
        np.float32(2**22) + np.arange(0, 8, 0.5, dtype=np.float32),
        np.float32(2**23) - np.arange(0, 8, 0.5, dtype=np.float32),
        np.array([0.49999997, -0.49999997, 1e30, -1e30, np.inf, -np.inf, np.nan], np.float32),
    ]
)


def test_rounding_to_even() -> None:
    got = compiled(jnp.round)(HALVES)
    np.testing.assert_array_equal(got, np.round(HALVES))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(np.round(HALVES)))


def test_rounding_away() -> None:
    away = compiled(lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO))
    exact = np.floor(np.abs(HALVES.astype(np.float64)) + 0.5) * np.sign(HALVES)
    np.testing.assert_array_equal(away(HALVES), exact)


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.uint32])
def test_conversions_of_everything(dtype: Any) -> None:
    """NaN is 0, and what is too large the largest there is, as with JAX."""
    x = np.concatenate(
        [SPECIAL, NEAR, HALVES, np.array([2**31, -(2**31), 2**32, 3e9, 5e9], np.float32)]
    )
    convert = lambda x: lax.bitcast_convert_type(x.astype(dtype), jnp.float32)  # noqa: E731
    got = compiled(convert)(x).view(np.uint32)
    expected = np.asarray(by_vmap(lambda v: v.astype(dtype), [x], [True], x.size))
    np.testing.assert_array_equal(got, expected.view(np.uint32))


def test_integers_at_the_edge() -> None:
    """Division by 0 and of the least number by -1, remainders, shifts: as XLA has them."""
    some = np.array([0, 1, -1, 2, -7, 31, 32, 33, -(2**31), 2**31 - 1, -32], np.int32)
    x, y = (part.reshape(-1) for part in np.meshgrid(some, some))

    def function(x: Any, y: Any) -> Any:
        i, j = (lax.bitcast_convert_type(v, jnp.int32) for v in (x, y))
        u, w = (lax.bitcast_convert_type(v, jnp.uint32) for v in (x, y))
        found = [
            lax.div(i, j), lax.rem(i, j), i // j, i % j, lax.shift_left(i, j), abs(i), -i, i * j,
            lax.shift_right_arithmetic(i, j), lax.shift_right_logical(i, j), jnp.sign(i),
        ]  # fmt: skip
        words = [lax.div(u, w), lax.rem(u, w), lax.shift_left(u, w), lax.shift_right_logical(u, w)]
        return [lax.bitcast_convert_type(v, jnp.float32) for v in (*found, *words)]

    given = [x.view(np.float32), y.view(np.float32)]
    expected = by_vmap(function, given, [True, True], x.size)
    for place, theirs in enumerate(expected):
        mine = compiled(lambda x, y, n=place: function(x, y)[n], 2)(*given)
        np.testing.assert_array_equal(mine.view(np.uint32), np.asarray(theirs).view(np.uint32))
