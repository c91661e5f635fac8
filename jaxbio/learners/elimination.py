"""Successive elimination on delayed losses (Lancewicki et al. 2021; our reading)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play, round_number
from jaxbio.ops import Means, means_add, means_value, means_zero
from jaxbio.trees import pytree, set_field


class EliminationState(NamedTuple):
    """seen: arrived losses of each action, [K]; active: bool [K]; last: int32 [], the action of the
    last round, -1 before the first; radius: float [], of a mean of one loss.
    """

    seen: Means
    active: Array
    last: Array
    radius: Array


@pytree
class SuccessiveElimination:
    """Play the active actions in turn; drop those that are worse than another for certain.

    At the end of a round, action i is dropped for good if mean_i - r_i > min_j (mean_j + r_j) over
    active j, with r = scale sqrt(2 ln T / n) and the n losses that have arrived (none: r is
    infinite). Late losses of a dropped action change nothing. The round robin starts with an action
    drawn at random and goes on in the order of the indices, past those that are dropped.

    scale: multiplies the radius. The rule and its constant are our reading of Lancewicki et al.
    """

    scale: Any = 1.0
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        set_field(self, "scale", checks.parameter("scale", self.scale, 0))

    def init(self, known: Known) -> EliminationState:
        radius = self.scale * jnp.sqrt(2.0 * jnp.log(round_number(known.horizon)))
        active = jnp.ones(known.num_actions, bool)
        return EliminationState(means_zero(known.num_actions), active, jnp.int32(-1), radius)

    def act(self, state: EliminationState, t: Array, u: Array) -> tuple[Array, None]:
        K = state.active.shape[0]
        actions = lax.iota(jnp.int32, K)
        ahead = actions - state.last - 1
        ahead = jnp.where(ahead < 0, ahead + K, ahead)  # turns until the action is next
        ahead = jnp.where(state.active, ahead, K)
        following = jnp.sum(jnp.where(ahead == jnp.min(ahead), actions, 0), dtype=jnp.int32)
        first = jnp.minimum(jnp.floor(u * K).astype(jnp.int32), K - 1)
        return jnp.where(state.last < 0, first, following), None

    def learn(
        self, state: EliminationState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[EliminationState, None]:
        seen = means_add(state.seen, arrivals.play.action, arrivals.play.loss, arrivals.due)
        mean, known = means_value(seen), seen.count > 0
        radius = state.radius / jnp.sqrt(jnp.maximum(seen.count, 1).astype(mean.dtype))
        upper = jnp.where(known & state.active, mean + radius, jnp.inf)
        worse = known & (mean - radius > jnp.min(upper))
        return EliminationState(seen, state.active & ~worse, play.action, state.radius), None
