"""Thompson sampling on delayed losses, also with a discount."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbio import checks, rng
from jaxbio.core import Array, Arrivals, Known, Play
from jaxbio.learners.forgetting import (
    Faded,
    checked_discount,
    faded_add,
    faded_zero,
    ones_and_zeros,
)
from jaxbio.ops import argmin_fair, count_by
from jaxbio.trees import pytree, set_field, static


class Flips(NamedTuple):
    """ones, zeros: int32 [K], how many arrived coin flips came out 1 (a loss) and 0."""

    ones: Array
    zeros: Array


class ThompsonTicket(NamedTuple):
    """coin: float []; round: int32 [], of the play, or None without a discount."""

    coin: Array
    round: Array | None


@pytree
class ThompsonSampling:
    """Beta(1, 1) prior per action; sample a mean loss for each and play the least.

    A loss strictly between 0 and 1 becomes a coin flip with that probability (Agrawal and Goyal);
    the coin is drawn at play time and travels in the ticket. Beta variables are ratios of gammas
    with `proposals` proposals each (`rng.gamma`), so there is no rejection loop.

    With a discount below 1 it is discounted Thompson sampling (Raj and Kalyani 2017), for losses
    that change over time: after round t the flip of round s counts discount ** (t - s) in its
    action's Beta(1 + ones, 1 + zeros). A loss is as old as its play, not as its arrival: that is
    our reading, as they have no delay. So what is late counts little, and with long delays more is
    explored. About this form nothing is proved; without delay, and with priors that know nothing,
    regret is of order sqrt(changes T) but for logarithms (Qi, Guo and Zhu 2025).

    discount: in (0, 1]; None, the same as 1, forgets nothing.
    """

    proposals: int = static(default=6)
    discount: Any = None
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        set_field(self, "proposals", checks.integer("proposals", self.proposals, 1, 64))
        set_field(self, "discount", checked_discount(self.discount))

    def draws(self, num_actions: int) -> int:
        return num_actions * 2 * self.proposals * 2 + 1

    def init(self, known: Known) -> Flips | Faded:
        K = known.num_actions
        if self.discount is not None:
            return faded_zero(K, self.discount)
        return Flips(jnp.zeros(K, jnp.int32), jnp.zeros(K, jnp.int32))

    def act(self, state: Flips | Faded, t: Array, u: Array) -> tuple[Array, ThompsonTicket]:
        flips = state if isinstance(state, Flips) else ones_and_zeros(state)
        proposals = u[:-1].reshape(-1, 2, self.proposals, 2).transpose(3, 2, 1, 0)
        shapes = 1.0 + jnp.stack(flips).astype(u.dtype)  # [2, K]
        gammas = rng.gamma(shapes, proposals[0], proposals[1])
        action = argmin_fair(gammas[0] / (gammas[0] + gammas[1]), u[-1])
        return action, ThompsonTicket(u[-1], None if self.discount is None else t)

    def learn(
        self, state: Flips | Faded, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[Flips | Faded, ThompsonTicket]:
        old, due = arrivals.play, arrivals.due
        is_one = old.ticket.coin < old.loss
        if isinstance(state, Faded):
            lanes = old.ticket.round, old.action, is_one.astype(old.loss.dtype), due
            return faded_add(state, self.discount, t, *lanes), play.ticket
        K = state.ones.shape[0]
        new = Flips(
            state.ones + count_by(old.action, due & is_one, K),
            state.zeros + count_by(old.action, due & ~is_one, K),
        )
        return new, play.ticket
