"""Rounds that change large arrays in place, one after the other, as a loop of JAX does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flat import assert_same, play_carry, program_of_step, types_of
from jax import lax

from jaxbio.engine.backends.native import Native

RUNS, ROUNDS = 35, 5
STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {  # of two arrays [100] and an index
    "swap": lambda x, y, i: (y, x, i + 1),
    "swap and write": lambda x, y, i: (y.at[i].set(x[i + 1]), x.at[i].add(y[i]), i + 1),
    "one into both": lambda x, y, i: (y, y, i),
    "rotate": lambda x, y, i: (jnp.roll(x, 1) * 0.9, jnp.roll(y, i), i + 1),
    "reverse": lambda x, y, i: (x[::-1], (x + y)[::-1] * 0.5, i),
    "write what is read": lambda x, y, i: (x.at[i].set(x[i - 1] + y[i]), y.at[i].set(x[i]), i + 3),
    "write, then read": lambda x, y, i: (lambda z: (z, z[::-1] * y, i + 1))(x.at[i].multiply(2)),
    "mix": lambda x, y, i: (x * 0.5 + y[::-1] * 0.25, y - x[::-1] * 0.1, i),
    "scan over itself": lambda x, y, i: (
        *lax.scan(lambda c, v: (c.at[i].add(v * 0.1), c[i] * 0.5), x, y), i + 1,
    ),
    "choose": lambda x, y, i: (
        *lax.cond(x[i] > 0, lambda: (x.at[i].set(0.5), y), lambda: (y, x.at[i].set(-0.5))), i + 1,
    ),
    "loop": lambda x, y, i: (
        *lax.while_loop(
            lambda s: s[0] > 0, lambda s: (s[0] - 1, s[2].at[s[0]].add(1), s[1]), (i % 4, x, y)
        )[1:],
        i + 1,
    ),
    "shift": lambda x, y, i: (x.at[1:].set(x[:-1]), y.at[:-1].add(y[1:] * 0.5), i),
    "as matrices": lambda x, y, i: (
        (x.reshape(4, 25) * y.reshape(25, 4).T).reshape(-1), y.reshape(10, 10).T.reshape(-1), i,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_same_as_a_loop_of_jax(name: str) -> None:
    step, rng = STEPS[name], np.random.default_rng(0)
    start = [
        rng.normal(size=(100, RUNS)).astype(np.float32),
        rng.normal(size=(100, RUNS)).astype(np.float32),
        rng.integers(0, 90, size=RUNS).astype(np.int32),
    ]
    program = program_of_step(
        lambda _, carry: list(step(*carry)), [], types_of([x[..., 0] for x in start]), False
    )
    got = play_carry(Native(program), [], start, RUNS, ROUNDS)
    many = jax.vmap(step, in_axes=-1, out_axes=-1)
    expected = jax.jit(lambda c: lax.fori_loop(0, ROUNDS, lambda _, s: tuple(many(*s)), c))(
        tuple(start)
    )
    assert_same(tuple(got), tuple(np.asarray(x) for x in expected))
