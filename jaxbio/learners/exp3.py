"""Exponential weights on delayed losses: DAda-Exp3 (Gyorgy and Joulani 2021) and plain Exp3."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play, multiplier
from jaxbio.learners import skipping
from jaxbio.ops import (
    Sum,
    Wide,
    count,
    pick,
    select,
    sum_add,
    sum_by,
    sum_zero,
    wide_add,
    wide_value,
    wide_zero,
)
from jaxbio.trees import float_dtype, pytree, set_field, static

TUNINGS = ("corrected", "anytime", "printed")


class ExponentialTicket(NamedTuple):
    """weight: float [], 1 / (p + gamma) of the time of play (gamma may be 0); round: int32 [] if
    skipping, as it is filed with the play, else None.
    """

    weight: Array
    round: Any


class DAdaState(NamedTuple):
    """cumulative (L-hat): Sum [K]; budget: 2 K t + D up to the last round."""

    cumulative: Sum
    budget: Wide
    outstanding: Array
    skipped: skipping.Skipping | None


def num_actions(state: Any) -> int:
    """K, of a state with cumulative losses."""
    return state.cumulative.total.shape[0]


def gaps(cumulative: Sum) -> Array:
    """[K]: L-hat relative to its minimum, with the bits that float32 sums keep aside."""
    rough = _rough_gaps(cumulative)
    return rough - jnp.min(rough)


def _rough_gaps(cumulative: Sum) -> Array:
    """[K]: L-hat relative to its minimum but for a rounding error of that."""
    return (cumulative.total - jnp.min(cumulative.total)) - cumulative.error


def weights(cumulative: Sum, rate: Array) -> Array:
    """[K]: exp(-rate L-hat) up to a factor: about 1 for the best action."""
    return jnp.exp(-rate * _rough_gaps(cumulative))


def confidence(num_actions: int, delta: Any) -> Array:
    """B = 3 ln K + ln(1/delta') with delta' = delta / 2."""
    return 3 * math.log(num_actions) + jnp.log(2.0 / delta)


def explore(w: Array, rate: Array, u: Array) -> tuple[Array, Array]:
    """An action drawn in proportion to w [K], and 1 / (p + gamma) with gamma = rate."""
    action = pick(w, u)
    total = jnp.sum(w)
    return action, total / (select(w, action) + rate * total)


def with_round(ticket: ExponentialTicket, t: Array) -> ExponentialTicket:
    """The ticket as it is filed at the end of round t. Where several decisions are open at the same
    time (`jaxbio.Agent`), it was made out before it was known which round that would be.
    """
    return ticket if ticket.round is None else ticket._replace(round=t)


def add_losses(cumulative: Sum, arrivals: Arrivals, weight: Array) -> Sum:
    """L-hat plus the importance-weighted losses that are due."""
    estimate = jnp.where(arrivals.due, arrivals.play.loss * weight, 0)
    size = cumulative.total.shape[0]
    return sum_add(cumulative, sum_by(arrivals.play.action, estimate, size))


@pytree
class DAdaExp3:
    """DAda-Exp3: p_t ~ exp(-eta_t L-hat), eta_t = a / sqrt(2 K t + D_t).

    D_t sums the numbers of rounds outstanding at the beginning of rounds 1..t; implicit
    exploration gamma_t = eta_t; an estimate is divided by p + gamma of the time of play.

    delta: confidence; the bound holds with probability 1 - delta (delta' = delta / 2).
    tuning: "corrected" a = sqrt(B)/2 with B = 3 ln K + ln(1/delta'); "anytime" a = sqrt(3 ln K)/2,
      needs no delta; "printed" a = sqrt(B), as the paper prints it: twice the rate of its bound.
    skipping: rounds outstanding for more than sqrt(D / ln K) rounds stop counting in D. Their
      estimates are still used (skipped="kept") or not ("dropped"). The threshold is our reading.
    scale: multiplies every rate; a number or an optax schedule of the round.
    """

    delta: Any = 0.1
    tuning: str = static(default="corrected")
    skipping: bool = static(default=False)
    skipped: str = static(default="kept")
    scale: Any = 1.0
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        set_field(self, "delta", checks.probability_of_error("delta", self.delta))
        checks.choice("tuning", self.tuning, TUNINGS)
        checks.boolean("skipping", self.skipping)
        checks.choice("skipped", self.skipped, ("kept", "dropped"))
        set_field(self, "scale", checks.rate_scale("scale", self.scale))

    def init(self, known: Known) -> DAdaState:
        skipped = skipping.start(known) if self.skipping else None
        return DAdaState(sum_zero(known.num_actions), wide_zero(), jnp.int32(0), skipped)

    def _counted(self, state: DAdaState) -> Array:
        """Outstanding rounds that count in D (sigma_t, at the beginning of the round)."""
        return state.outstanding if state.skipped is None else state.skipped.active

    def _budget(self, state: DAdaState) -> Wide:
        return wide_add(state.budget, 2 * num_actions(state) + self._counted(state))

    def rate(self, state: DAdaState, t: Array) -> Array:
        """eta_t = gamma_t."""
        K = num_actions(state)
        if self.tuning == "anytime":
            constant = jnp.asarray(math.sqrt(3 * math.log(K)) / 2, float_dtype())
        else:
            root = jnp.sqrt(confidence(K, self.delta))
            constant = root / (1.0 if self.tuning == "printed" else 2.0)
        return multiplier(self.scale, t) * constant / jnp.sqrt(wide_value(self._budget(state)))

    def act(self, state: DAdaState, t: Array, u: Array) -> tuple[Array, ExponentialTicket]:
        rate = self.rate(state, t)
        action, weight = explore(weights(state.cumulative, rate), rate, u)
        return action, ExponentialTicket(weight, t if self.skipping else None)

    def learn(
        self, state: DAdaState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[DAdaState, ExponentialTicket]:
        ticket: ExponentialTicket = arrivals.play.ticket
        weight, skipped = ticket.weight, state.skipped
        if skipped is not None:
            skipped = skipping.advance(skipped, t, num_actions(state))
            if self.skipped == "dropped":
                weight = jnp.where(ticket.round <= skipped.cut, 0, weight)
            skipped = skipping.settle(skipped, t, ticket.round, arrivals.due)
        fed = count(arrivals.due)
        new = DAdaState(
            add_losses(state.cumulative, arrivals, weight),
            self._budget(state),
            state.outstanding + 1 - fed,
            skipped,
        )
        return new, with_round(play.ticket, t)


class Exp3State(NamedTuple):
    """cumulative (L-hat): Sum [K]; rate (eta): float []."""

    cumulative: Sum
    rate: Array


@pytree
class Exp3:
    """Delayed Exp3 with a fixed rate: plain importance weighting, by the probability at play time.

    rate: eta; if None, sqrt(ln K / (K T e / 2 + total_delay)), the tuning of Thune et al. 2019 (our
      reading), which is valid while eta <= 1 / (2 e d_max).
    total_delay: the total delay D that the default rate is tuned for.
    scale: multiplies the rate; a number or an optax schedule.
    """

    rate: Any = None
    total_delay: Any = 0.0
    scale: Any = 1.0
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        if self.rate is not None:
            set_field(self, "rate", checks.parameter("rate", self.rate, 0, open_low=True))
        set_field(self, "total_delay", checks.parameter("total_delay", self.total_delay, 0))
        set_field(self, "scale", checks.rate_scale("scale", self.scale))

    def init(self, known: Known) -> Exp3State:
        K = known.num_actions
        rate = self.rate
        if rate is None:
            rounds = known.horizon.astype(float_dtype())
            rate = jnp.sqrt(math.log(K) / (K * math.e / 2 * rounds + self.total_delay))
        return Exp3State(sum_zero(K), jnp.asarray(rate, float_dtype()))

    def act(self, state: Exp3State, t: Array, u: Array) -> tuple[Array, ExponentialTicket]:
        w = weights(state.cumulative, multiplier(self.scale, t) * state.rate)
        action = pick(w, u)
        return action, ExponentialTicket(jnp.sum(w) / select(w, action), None)

    def learn(
        self, state: Exp3State, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[Exp3State, ExponentialTicket]:
        cumulative = add_losses(state.cumulative, arrivals, arrivals.play.ticket.weight)
        return state._replace(cumulative=cumulative), play.ticket
