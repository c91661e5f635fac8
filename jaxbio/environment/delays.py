"""How long a loss stays away. A delay of 0 means: seen at the end of the same round.

Random delays are quantiles of 32 random bits, so each has a largest value that can occur at all;
`longest` gives it, and the ring is made deep enough for it. Nothing is clipped on the way.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import checks, rng
from jaxbio.core import Array, looks
from jaxbio.trees import as_arrays, float_dtype, host, pytree, set_field

NEVER = 2**30  # rounds: no game is longer
LANES = 16  # of random delays: more losses than that arrive together with probability 1.1e-15
TAIL = 32 * math.log(2)  # -ln of the smallest uniform that 32 bits can make, (1/2) / 2**31


class VaryingDelay:
    """Delays that differ from round to round: several losses may arrive at once."""

    constant = False
    written_down = False

    def check(self, horizon: int) -> None:
        """Random delays serve any horizon."""


@pytree
class FixedDelay:
    """Every loss is d rounds late. d: integer >= 0."""

    d: Any

    constant = True
    written_down = True

    def __post_init__(self) -> None:
        set_field(self, "d", checks.integer("d (fixed delay)", self.d, 0, 2**30))

    def check(self, horizon: int) -> None:
        """A fixed delay serves any horizon."""

    def delay(self, key: Array, t: Array) -> Array:
        return jnp.asarray(self.d, jnp.int32)

    def longest(self) -> int:
        return self.d if type(self.d) is int else int(np.max(host(self.d)))


@pytree
class LaplaceDelay(VaryingDelay):
    """Laplace with a location and a scale b, rounded to the nearest integer, clipped at 0.

    The largest delay that can occur is location + 22.2 scale (probability 1e-10 per round).
    """

    location: Any
    scale: Any

    def __post_init__(self) -> None:
        set_field(self, "location", checks.number("location", self.location, -(2**24), 2**24))
        set_field(self, "scale", checks.number("scale", self.scale, 0, 2**20))

    def delay(self, key: Array, t: Array) -> Array:
        word = rng.delay_word(key, t)
        upper = word >= np.uint32(1 << 31)
        tail = jnp.minimum(word, ~word).astype(float_dtype()) + 0.5  # 2**32 times the tail mass
        distance = self.scale * -jnp.log(tail * 2.0**-31)
        raw = self.location + jnp.where(upper, distance, -distance)
        return jnp.maximum(jnp.round(raw), 0).astype(jnp.int32)

    def longest(self) -> int:
        return max(0, math.ceil(np.max(host(self.location) + host(self.scale) * TAIL)) + 1)


@pytree
class GeometricDelay(VaryingDelay):
    """P(d = k) = p (1 - p)^k for k = 0, 1, ...; mean (1 - p) / p."""

    mean: Any

    def __post_init__(self) -> None:
        set_field(self, "mean", checks.number("mean", self.mean, 0, 2**24))

    def delay(self, key: Array, t: Array) -> Array:
        word = rng.delay_word(key, t)
        log_u = jnp.log((word.astype(float_dtype()) + 0.5) * 2.0**-32)
        log_fail = -jnp.log1p(1.0 / jnp.maximum(self.mean, 1e-9))
        return jnp.floor(jnp.minimum(log_u, 0) / log_fail).astype(jnp.int32)

    def longest(self) -> int:
        mean = max(float(np.max(host(self.mean))), 1e-9)
        return math.ceil((TAIL + math.log(2)) / math.log1p(1 / mean)) + 1


@pytree
class UniformDelay(VaryingDelay):
    """Uniform on the integers low, ..., high."""

    low: Any
    high: Any

    def __post_init__(self) -> None:
        set_field(self, "low", checks.integer("low", self.low, 0))
        high = checks.integer("high", self.high, 0, 2**30)
        if isinstance(high, int) and isinstance(self.low, int) and high < self.low:
            raise ValueError(f"high must be at least low={self.low}, but got {high}")
        set_field(self, "high", high)

    def delay(self, key: Array, t: Array) -> Array:
        width = (jnp.asarray(self.high) - jnp.asarray(self.low) + 1).astype(jnp.uint32)
        return jnp.asarray(self.low, jnp.int32) + rng.below(rng.delay_word(key, t), width)

    def longest(self) -> int:
        return int(np.max(host(self.high)))


@pytree
class TableDelay(VaryingDelay):
    """Any sequence of delays. delays: int32 [T]; one past the horizon means: never seen."""

    delays: Any

    written_down = True

    def __post_init__(self) -> None:
        set_field(self, "delays", checks.integers("delays", self.delays, 1, "[T]"))

    def check(self, horizon: int) -> None:
        checks.long_enough("delays", self.delays.shape[0], horizon)

    def delay(self, key: Array, t: Array) -> Array:
        return lax.dynamic_index_in_dim(self.delays, t - 1, keepdims=False)

    def longest(self) -> int:
        return int(np.max(host(self.delays)))


def most_together(law: Any, horizon: int) -> int:
    """The most losses of older rounds that arrive in one round: counted where the delays are fixed
    or written down, else as good as surely.

    Independent delays of one law bring one loss a round on average, so their number in a round has
    lighter tails than Poisson(1) (Hoeffding 1956): 16 are too few with probability 1.1e-15.
    """
    if law.constant:
        return 1
    if law.written_down:
        late = host(law.delays)[:horizon].astype(np.int64)
        due = np.arange(1, len(late) + 1) + late
        return int(np.max(np.bincount(due[(late > 0) & (due <= horizon)]), initial=1))
    return law.together(horizon) if looks(law) and hasattr(law, "together") else LANES


def realised_delays(law: Any, seed: Any, horizon: int) -> np.ndarray:
    """int32 [T]: the delays of run 0, as they are played."""
    if looks(law):
        raise ValueError(
            f"the delays of {type(law).__name__} depend on what is played: there is no one "
            "sequence of them (sample_world has those of every state)"
        )
    law, key = as_arrays(law), rng.run_key(seed, 0)
    rounds = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    return np.asarray(jax.jit(jax.vmap(law.delay, (None, 0)))(key, rounds))
