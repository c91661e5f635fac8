"""Functions that nobody has thought of: random compositions, in exact arithmetic, against vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flat import assert_same, by_vmap, flat
from jax import lax

RUNS, STEPS = 33, 10
Make = Callable[[Any, Any, Any], Any]  # of two arrays [n] and an index within them

# Integers below 97, and floats that hold them exactly.
OPERATIONS: list[Make] = [
    lambda x, y, i: x + y,
    lambda x, y, i: x * y,
    lambda x, y, i: x - y[i],
    lambda x, y, i: jnp.where(x > y, x, i),
    lambda x, y, i: jnp.maximum(x, y[::-1]),
    lambda x, y, i: jnp.roll(x, 3),
    lambda x, y, i: jnp.roll(x, i) + y,
    lambda x, y, i: x.at[i].set(y[0]),
    lambda x, y, i: x.at[i].add(x[i - 1]),
    lambda x, y, i: x.at[y % x.size].add(x),
    lambda x, y, i: x.at[1:].set(y[:-1]),
    lambda x, y, i: x[y % x.size],
    lambda x, y, i: jnp.cumsum(x),
    lambda x, y, i: lax.cummax(x, reverse=True),
    lambda x, y, i: jnp.sort(x),
    lambda x, y, i: jnp.argsort(x) + y,
    lambda x, y, i: x // (y + 1),
    lambda x, y, i: x ^ (y << 2),
    lambda x, y, i: jnp.full_like(x, x.sum()) - y,
    lambda x, y, i: x * jnp.argmin(y),
    lambda x, y, i: (x.astype(jnp.float32) * 0.5 + y.astype(jnp.float32)).astype(jnp.int32),
    lambda x, y, i: jnp.round(x.astype(jnp.float32) / 4).astype(jnp.int32) + y,
    lambda x, y, i: jnp.concatenate([x[2:], y[:2]]),
    lambda x, y, i: (x[:, None] == y[None, :4]).sum(1, dtype=jnp.int32),
    lambda x, y, i: jax.jit(lambda a, b: jnp.where(a % 2 == 0, a, b))(x, y),
    lambda x, y, i: lax.cond(x[i] > y[0], lambda a, b: a.at[i].set(1), lambda a, b: b - a, x, y),
    lambda x, y, i: lax.switch(y[0] % 3, [lambda a: a, lambda a: a[::-1], lambda a: a * i], x),
    lambda x, y, i: lax.scan(lambda c, v: ((c + v) % 97, c), i, x)[1] + y,
    lambda x, y, i: lax.scan(lambda c, v: (c.at[v % c.size].add(v), None), x, y[:6])[0],
    lambda x, y, i: lax.fori_loop(0, i % 4, lambda j, s: (s + x).at[j].add(s[j + 1]) % 97, y),
    lambda x, y, i: lax.while_loop(lambda s: s[0] < 40, lambda s: s * 2 % 97 + 1, x % 7 + 1) + y,
    lambda x, y, i: lax.while_loop(
        lambda s: s[0] > 0, lambda s: (s[0] - 1, s[2].at[s[0]].add(1), s[1]), (i % 5, x, y)
    )[1],
]


def plan_of(seed: int) -> list[tuple[int, ...]]:
    """Which operations on which arrays."""
    rng = np.random.default_rng(seed)
    highest = [1 << 30, 1 << 30, 1 << 30, len(OPERATIONS)]
    return [tuple(int(rng.integers(n)) for n in highest) for _ in range(STEPS)]


def composed(seed: int) -> Callable[..., Any]:
    """A function of two arrays, one of them shared, and an index."""
    plan = plan_of(seed)

    def function(x: Any, shared: Any, i: Any) -> Any:
        pool = [x, shared]
        for one, two, at, which in plan:
            first, second = pool[one % len(pool)], pool[two % len(pool)]
            place = (i + at) % (x.size - 1)
            pool.append(OPERATIONS[which](first, second, place) % 97)
        return tuple(pool[-4:])

    return function


@pytest.mark.parametrize("size", [6, 70])
@pytest.mark.parametrize("seed", range(15))
def test_same_as_vmap(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    args = [
        rng.integers(0, 97, size=(size, RUNS)).astype(np.int32),
        rng.integers(0, 97, size=size).astype(np.int32),
        rng.integers(0, size, size=RUNS).astype(np.int32),
    ]
    batched = [True, False, True]
    expected = jax.jit(lambda *given: by_vmap(composed(seed), given, batched, RUNS))(*args)
    assert_same(flat(composed(seed), args, batched, False, RUNS), expected)


def test_every_operation_is_tried() -> None:
    tried = {which for seed in range(15) for *_, which in plan_of(seed)}
    assert tried == set(range(len(OPERATIONS)))
