"""Thompson sampling on delayed losses."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from jaxbio import checks, rng
from jaxbio.core import Array, Arrivals, Known, Play
from jaxbio.ops import argmin_fair, count_by
from jaxbio.trees import pytree, set_field, static


class ThompsonState(NamedTuple):
    """ones, zeros: int32 [K], how many arrived coin flips came out 1 (a loss) and 0."""

    ones: Array
    zeros: Array


@pytree
class ThompsonSampling:
    """Beta(1, 1) prior per action; sample a mean loss for each and play the least.

    A loss strictly between 0 and 1 becomes a coin flip with that probability (Agrawal and Goyal);
    the coin is drawn at play time and travels in the ticket. Beta variables are ratios of gammas
    with `proposals` proposals each (`rng.gamma`), so there is no rejection loop.
    """

    proposals: int = static(default=6)
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        set_field(self, "proposals", checks.integer("proposals", self.proposals, 1, 64))

    def draws(self, num_actions: int) -> int:
        return num_actions * 2 * self.proposals * 2 + 1

    def init(self, known: Known) -> ThompsonState:
        return ThompsonState(
            jnp.zeros(known.num_actions, jnp.int32), jnp.zeros(known.num_actions, jnp.int32)
        )

    def act(self, state: ThompsonState, t: Array, u: Array) -> tuple[Array, Array]:
        K = state.ones.shape[0]
        proposals = u[:-1].reshape(K, 2, self.proposals, 2).transpose(3, 2, 1, 0)
        shapes = 1.0 + jnp.stack([state.ones, state.zeros]).astype(u.dtype)  # [2, K]
        gammas = rng.gamma(shapes, proposals[0], proposals[1])
        return argmin_fair(gammas[0] / (gammas[0] + gammas[1]), u[-1]), u[-1]

    def learn(
        self, state: ThompsonState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[ThompsonState, Array]:
        K = state.ones.shape[0]
        is_one = arrivals.play.ticket < arrivals.play.loss
        action, due = arrivals.play.action, arrivals.due
        new = ThompsonState(
            state.ones + count_by(action, due & is_one, K),
            state.zeros + count_by(action, due & ~is_one, K),
        )
        return new, play.ticket
