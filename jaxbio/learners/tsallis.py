"""Delayed Tsallis-INF: FTRL with the hybrid regulariser of Zimmert and Seldin 2020."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play, multiplier, round_number
from jaxbio.learners import skipping
from jaxbio.learners.exp3 import (
    ExponentialTicket,
    add_losses,
    gaps,
    num_actions,
    with_round,
)
from jaxbio.ops import Sum, Wide, count, pick, select, sum_zero, wide_add, wide_value, wide_zero
from jaxbio.trees import pytree, set_field, static

OUTER_STEPS = 12
INNER_STEPS = 6


def hybrid_minimiser(losses: Array, tsallis: Array, entropy: Array) -> Array:
    """[K]: argmin over the simplex of <losses, x> - 2 tsallis sum sqrt(x) + entropy sum x ln x.

    Nested Newton steps, each monotone from where it starts, so that a fixed number of them needs
    no safeguard: outer on the multiplier of the constraint from the right end of its bracket, inner
    on y = x^(-1/2) from y = 1. losses: [K], minimum 0; tsallis > 0; entropy >= 0.
    """

    def outer(_: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        level, y = now
        target = losses - level + entropy
        for _step in range(INNER_STEPS):
            value = tsallis * y + 2.0 * entropy * jnp.log(y)
            y = jnp.maximum(y + (target - value) / (tsallis + 2.0 * entropy / y), 1.0)
        x = 1.0 / (y * y)
        slope = jnp.sum(x / (0.5 * tsallis * y + entropy))
        return level - (jnp.sum(x) - 1.0) / slope, y

    start = (entropy - tsallis, jnp.ones_like(losses))
    _, y = lax.fori_loop(0, OUTER_STEPS, outer, start)
    x = 1.0 / (y * y)
    return x / jnp.sum(x)


def tsallis_minimiser(losses: Array, tsallis: Array) -> Array:
    """[K]: the same without entropy, where y needs no steps. With more than a thousand actions it
    is not exact to float32 (with 10,000 within 1.3e-4 in all).
    """

    def step(_: Array, level: Array) -> Array:
        y = (losses - level) / tsallis
        slope = jnp.sum(1.0 / (0.5 * tsallis * y * y * y))
        return level - (jnp.sum(1.0 / (y * y)) - 1.0) / slope

    y = losses - lax.fori_loop(0, OUTER_STEPS, step, -tsallis)
    x = 1.0 / (y * y)
    return x / jnp.sum(x)


class TsallisState(NamedTuple):
    """cumulative (L-hat): Sum [K]; total (D): sum of outstanding counts."""

    cumulative: Sum
    total: Wide
    outstanding: Array
    skipped: skipping.Skipping | None


@pytree
class TsallisINF:
    """Delayed Tsallis-INF (Zimmert and Seldin 2020); without delay it is plain Tsallis-INF.

    tuning: "simple" b_t = sqrt(2 D_t / ln K); "skipping" b_t = sqrt(D_t / ln K), where rounds
      outstanding for more than b_t rounds no longer count in D_t.
    scale: multiplies the learning rates (divides the regulariser); a number or an optax schedule.
    """

    tuning: str = static(default="simple")
    scale: Any = 1.0
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        checks.choice("tuning", self.tuning, ("simple", "skipping"))
        set_field(self, "scale", checks.rate_scale("scale", self.scale))

    def init(self, known: Known) -> TsallisState:
        skipped = skipping.start(known) if self.tuning == "skipping" else None
        return TsallisState(sum_zero(known.num_actions), wide_zero(), jnp.int32(0), skipped)

    def entropy_weight(self, state: TsallisState) -> Array:
        """b_t."""
        K = num_actions(state)
        if state.skipped is not None:
            return skipping.threshold(skipping.total(state.skipped), K)
        counted = wide_add(state.total, state.outstanding)
        return jnp.sqrt(2.0 * wide_value(counted) / math.log(K))

    def probabilities(self, state: TsallisState, t: Array) -> Array:
        """[K]: x_t."""
        scale = multiplier(self.scale, t)
        tsallis = jnp.sqrt(round_number(t)) / scale
        return hybrid_minimiser(gaps(state.cumulative), tsallis, self.entropy_weight(state) / scale)

    def act(self, state: TsallisState, t: Array, u: Array) -> tuple[Array, ExponentialTicket]:
        x = self.probabilities(state, t)
        action = pick(x, u)
        return action, ExponentialTicket(
            1.0 / select(x, action), t if state.skipped is not None else None
        )

    def learn(
        self, state: TsallisState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[TsallisState, ExponentialTicket]:
        ticket: ExponentialTicket = arrivals.play.ticket
        skipped = state.skipped
        if skipped is not None:
            skipped = skipping.advance(skipped, t, num_actions(state))
            skipped = skipping.settle(skipped, t, ticket.round, arrivals.due)
        new = TsallisState(
            add_losses(state.cumulative, arrivals, ticket.weight),
            wide_add(state.total, state.outstanding),
            state.outstanding + 1 - count(arrivals.due),
            skipped,
        )
        return new, with_round(play.ticket, t)
