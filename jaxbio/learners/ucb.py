"""UCB1 on delayed losses (Delayed-UCB1 of Joulani et al. 2013)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play, round_number
from jaxbio.ops import Means, argmin_fair, means_add, means_value, means_zero, one_hot
from jaxbio.trees import pytree, set_field


class UCB1State(NamedTuple):
    """seen: arrived losses of each action, [K]; pulls: int32 [K]."""

    seen: Means
    pulls: Array


@pytree
class UCB1:
    """Play the least mean - sqrt(exploration ln t / n), from ARRIVED losses only.

    While an action has no arrived loss, the one of those with the fewest pulls is played. Ties are
    broken at random. exploration: 2 in UCB1.
    """

    exploration: Any = 2.0
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        set_field(self, "exploration", checks.parameter("exploration", self.exploration, 0))

    def init(self, known: Known) -> UCB1State:
        return UCB1State(means_zero(known.num_actions), jnp.zeros(known.num_actions, jnp.int32))

    def act(self, state: UCB1State, t: Array, u: Array) -> tuple[Array, None]:
        count = state.seen.count
        bonus = jnp.sqrt(
            self.exploration * jnp.log(round_number(t)) / jnp.maximum(count, 1).astype(u.dtype)
        )
        index = means_value(state.seen) - bonus
        unseen = count == 0
        fewest = jnp.where(unseen, state.pulls.astype(u.dtype), jnp.inf)
        return argmin_fair(jnp.where(jnp.any(unseen), fewest, index), u), None

    def learn(
        self, state: UCB1State, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[UCB1State, None]:
        seen = means_add(state.seen, arrivals.play.action, arrivals.play.loss, arrivals.due)
        pulls = state.pulls + one_hot(play.action, state.pulls.shape[0]).astype(jnp.int32)
        return UCB1State(seen, pulls), None
