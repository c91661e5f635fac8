"""States to losses in [0, 1]: random with a given mean, constant, or a table.

A learner sees one state per round, so how the losses of different states hang together inside a
round changes nothing it can see; the model allows any dependence. It matters to realised regret
only. By default one uniform per round drives all states (which is also the cheapest).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import checks, rng
from jaxbio.core import Array
from jaxbio.environment.padding import pad_states
from jaxbio.ops import select
from jaxbio.trees import derived, float_dtype, library_of, pytree, set_field, static

# Of a concentration. Beyond them a Beta variable is a coin, or its mean, to many more digits than
# floats have, and its parameters would underflow or overflow.
EXTREMES = 1e-30, 1e30


class StationaryLosses:
    """Losses whose mean depends on the state alone. theta: [S]."""

    binary = False
    theta: Any

    @property
    def num_states(self) -> int:
        return self.theta.shape[0]

    def check(self, horizon: int) -> None:
        """Stationary losses serve any horizon."""

    def padded(self, slots: int) -> Any:
        """The same losses with `slots` states; the added ones are never visited."""
        return dataclasses.replace(self, theta=pad_states(self.theta, slots))  # type: ignore

    def means(self, t: Array) -> Array:
        """[S]: the mean losses in round t."""
        return self.theta

    def all_means(self) -> Array:
        """[S]: the mean losses, the same in every round."""
        return self.theta


@pytree
class BernoulliLosses(StationaryLosses):
    """l_t(s) is 1 with probability theta[s], else 0.

    theta: [S]. coupling: "shared" (l_t(s) = 1[u_t < theta(s)]) or "independent" across states.
    """

    theta: Any
    coupling: str = static(default="shared")

    binary = True

    def __post_init__(self) -> None:
        set_field(self, "theta", checks.unit_interval("theta", self.theta, 1, "[S]"))
        checks.choice("coupling", self.coupling, ("shared", "independent"))

    def loss(self, key: Array, t: Array, state: Array, u: Array) -> Array:
        """l_t(state)."""
        if self.coupling == "independent":
            u = rng.loss_uniform(key, t, state)
        return (u < select(self.theta, state)).astype(float_dtype())


@pytree
class BlockBernoulliLosses(StationaryLosses):
    """Bernoulli losses drawn once per block of rounds and group of states (hard instances).

    theta: [S]; groups: int32 [S]; block: rounds per block. States of one group share one uniform
    per block, so their losses are equal within a block when their means are.
    """

    theta: Any
    groups: Any
    block: Any

    binary = True

    def __post_init__(self) -> None:
        theta = checks.unit_interval("theta", self.theta, 1, "[S]")
        groups = checks.integers("groups", self.groups, 1, "[S]", high=rng.INDICES - 1)
        if groups.shape != theta.shape:
            raise ValueError(
                f"groups must have shape {theta.shape}, but its shape is {groups.shape}"
            )
        set_field(self, "theta", theta)
        set_field(self, "groups", groups)
        set_field(self, "block", checks.integer("block", self.block, 1, 2**30))

    def padded(self, slots: int) -> BlockBernoulliLosses:
        """The same losses with `slots` states; the added ones are never visited."""
        theta, groups = pad_states(self.theta, slots), pad_states(self.groups, slots)
        return dataclasses.replace(self, theta=theta, groups=groups)

    def loss(self, key: Array, t: Array, state: Array, u: Array) -> Array:
        """l_t(state)."""
        u = rng.loss_uniform(key, (t - 1) // self.block, select(self.groups, state))
        return (u < select(self.theta, state)).astype(float_dtype())


@pytree
class ConstantLosses(StationaryLosses):
    """l_t(s) = theta[s] in every round. theta: [S]."""

    theta: Any

    def __post_init__(self) -> None:
        set_field(self, "theta", checks.unit_interval("theta", self.theta, 1, "[S]"))

    def loss(self, key: Array, t: Array, state: Array, u: Array) -> Array:
        """l_t(state)."""
        return select(self.theta, state)


@pytree
class EventLosses(StationaryLosses):
    """l_t(s) = value[s] with probability share[s], as when somebody buys; otherwise absent.

    share: [S]; value: [S], or one number; absent: a number in [0, 1]. One uniform per round drives
    all states. theta: [S], the means.
    """

    share: Any
    value: Any
    absent: Any = 1.0
    theta: Any = derived()

    def __post_init__(self) -> None:
        share = checks.unit_interval("share", self.share, 1, "[S]")
        if checks.is_single(self.value):
            value = np.full(share.shape, checks.number("value", self.value, 0, 1))
        else:
            value = checks.unit_interval("value", self.value, 1, "[S]")
        if value.shape != share.shape:
            raise ValueError(f"value must have shape {share.shape}, but its shape is {value.shape}")
        absent = checks.number("absent", self.absent, 0, 1)
        set_field(self, "share", share)
        set_field(self, "value", value)
        set_field(self, "absent", absent)
        set_field(self, "theta", absent + share * (value - absent))

    def padded(self, slots: int) -> EventLosses:
        """The same losses with `slots` states; the added ones are never visited."""
        share, value = pad_states(self.share, slots), pad_states(self.value, slots)
        return dataclasses.replace(self, share=share, value=value)

    def loss(self, key: Array, t: Array, state: Array, u: Array) -> Array:
        """l_t(state)."""
        found = jnp.where(u < select(self.share, state), select(self.value, state), self.absent)
        return found.astype(float_dtype())


@pytree
class BetaLosses(StationaryLosses):
    """l_t(s) ~ Beta(c theta[s], c (1 - theta[s])): mean theta[s], less spread for a larger c.

    theta: [S]; concentration (c): a positive number. Losses are independent across states. Sampled
    from gamma variables with `proposals` proposals each (`rng.gamma`: with 6, total variation from
    the exact law below 1e-7). The mean is right to 1e-7 for any c: uniforms have 23 bits, float32
    is worth no more, and it rounds the small spread of a c above 1e8. A mean of 0 or 1 gives that
    constant.
    """

    theta: Any
    concentration: Any
    proposals: int = static(default=6)

    def __post_init__(self) -> None:
        set_field(self, "theta", checks.unit_interval("theta", self.theta, 1, "[S]"))
        value = checks.number("concentration", self.concentration, 0, open_low=True)
        set_field(self, "concentration", value)
        set_field(self, "proposals", checks.integer("proposals", self.proposals, 1, 64))

    def loss(self, key: Array, t: Array, state: Array, u: Array) -> Array:
        """l_t(state)."""
        mean = select(self.theta, state)
        per_state = 2 * self.proposals + 1
        index = state * per_state + lax.iota(jnp.int32, per_state)
        first, second = rng.block(key, t, rng.LOSS, index)
        first, second = rng.open_unit(first), rng.open_unit(second)
        low = self._log_gamma(mean, first[: self.proposals], second[: self.proposals], first[-1])
        high = self._log_gamma(
            1.0 - mean, first[self.proposals : -1], second[self.proposals : -1], second[-1]
        )
        share = 1.0 / (1.0 + jnp.exp(jnp.clip(high - low, -80.0, 80.0)))
        return jnp.where(mean <= 0, 0.0, jnp.where(mean >= 1, 1.0, share)).astype(float_dtype())

    def _log_gamma(self, mean: Array, normals: Array, accepts: Array, boost: Array) -> Array:
        """The logarithm of a Gamma(concentration * mean) variable."""
        # Apart from the sums that follow, so that no program rounds them together.
        shape = lax.optimization_barrier(jnp.clip(self.concentration, *EXTREMES) * mean)
        return rng.log_gamma(shape, normals, accepts, boost)


@pytree
class TableLosses:
    """Adversarial losses as a table. values: [T, S], entries in [0, 1]."""

    values: Any

    def __post_init__(self) -> None:
        set_field(self, "values", checks.unit_interval("values", self.values, 2, "[T, S]"))

    @property
    def num_states(self) -> int:
        return self.values.shape[1]

    def check(self, horizon: int) -> None:
        checks.long_enough("values", self.values.shape[0], horizon)

    def padded(self, slots: int) -> TableLosses:
        """The same table with `slots` states; the added ones are never visited."""
        return dataclasses.replace(self, values=pad_states(self.values, slots))

    def loss(self, key: Array, t: Array, state: Array, u: Array) -> Array:
        """l_t(state)."""
        return select(self.means(t), state)

    def means(self, t: Array) -> Array:
        """[S]: the losses of round t themselves."""
        return lax.dynamic_index_in_dim(self.values, t - 1, keepdims=False)

    def all_means(self) -> Array:
        """[T, S]: the losses of every round."""
        return library_of(self.values).asarray(self.values, float_dtype())
