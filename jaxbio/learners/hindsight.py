"""Hindsight: past rounds are priced by today's estimates of the states that they showed."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play, multiplier
from jaxbio.learners.estimates import ESTIMATORS, Estimator, estimator
from jaxbio.learners.exp3 import ExponentialTicket, confidence, explore
from jaxbio.learners.tsallis import tsallis_minimiser
from jaxbio.ops import (
    Means,
    Sum,
    cell,
    means_add,
    means_zero,
    pick,
    select,
    sum_add,
    sum_scale,
    sum_zero,
)
from jaxbio.trees import float_dtype, pytree, set_field, static


class HindsightState(NamedTuple):
    """shown (W): Sum [K, S], for each action 1 / p of the rounds in which it showed a state;
    rounds (n): Sum [], how many count up to now, this one included: t without a discount.

    seen: arrived losses per state, [S].
    """

    shown: Sum
    rounds: Sum
    seen: Means
    estimator: Estimator


def priced(shown: Sum, prices: Array) -> Array:
    """[K]: what actions have cost, relative to the least, at prices [S] of what they showed."""
    total = jnp.sum(shown.total * prices, axis=1)
    return total - jnp.min(total)


@pytree
class Hindsight:
    """The options that both have; see HindsightExp3."""

    delta: Any = 0.1
    _: dataclasses.KW_ONLY
    scale: Any = 1.0
    estimator: str = static(default="mean")
    radius_scale: Any = 1.0
    prior: Any = 0.5
    discount: Any = 1.0

    def __post_init__(self) -> None:
        set_field(self, "delta", checks.probability_of_error("delta", self.delta))
        set_field(self, "scale", checks.rate_scale("scale", self.scale))
        checks.choice("estimator", self.estimator, ESTIMATORS)
        set_field(self, "radius_scale", checks.parameter("radius_scale", self.radius_scale, 0))
        set_field(self, "prior", checks.number("prior", self.prior, 0, 1))
        value = checks.number("discount", self.discount, 0, 1, open_low=True)
        set_field(self, "discount", value)

    def init(self, known: Known) -> HindsightState:
        options = (self.radius_scale, self.estimator, "horizon", "together")
        return HindsightState(
            shown=sum_zero(known.num_actions, known.state_slots),
            rounds=sum_zero()._replace(total=jnp.ones((), float_dtype())),
            seen=means_zero(known.state_slots),
            estimator=estimator(known, known.horizon, self.delta, *options),
        )

    def prices(self, state: HindsightState) -> Array:
        """[S]: theta-hat, what a round that showed a state is thought to cost."""
        prices = state.estimator.value(state.seen)
        if self.estimator == "mean":
            prices = jnp.where(state.seen.count == 0, self.prior, prices)
        return prices

    def losses(self, state: HindsightState) -> Array:
        """[K]: L-hat relative to its minimum."""
        return priced(state.shown, self.prices(state))

    def learn(
        self, state: HindsightState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[HindsightState, ExponentialTicket]:
        here = cell(play.action, play.state, *state.shown.total.shape)
        old = arrivals.play
        new = state._replace(
            shown=self._add(state.shown, jnp.where(here, play.ticket.weight, 0)),
            rounds=self._add(state.rounds, jnp.ones_like(state.rounds.total)),
            seen=means_add(state.seen, old.state, old.loss, arrivals.due),
        )
        return new, play.ticket

    def _add(self, total: Sum, amount: Array) -> Sum:
        return sum_add(sum_scale(total, self.discount), amount)


@pytree
class HindsightExp3(Hindsight):
    """Exponential weights that price past rounds by today's estimates of the states they showed.

    L-hat(a) = sum_s W(a, s) theta-hat(s), where W counts what actions have shown. The idea is
    jaxbio's own, and no bound on its regret is proved, only on what is left of it without the error
    of prices (`theory.hindsight_bound`). A round adds 1 / (p + gamma) to the W of its action and
    state at once, and is priced in every later round by the estimate theta-hat(s) of that time,
    from the losses of the state that have arrived. So a late loss corrects all rounds that showed
    its state, nothing waits, and delays are not in the rate: eta_t = gamma_t =
    sqrt(3 ln K + ln(2/delta)) / (2 sqrt(2 K t)), as if there were none. It counts on states whose
    mean losses do not change: against adversarial losses it may fail.

    scale: multiplies every rate; a number or an optax schedule of the round.
    estimator: "mean" plain means; "lcb" lower confidence bounds, as in MetaBIO, with confidence
      delta and `radius_scale` times their radius.
    prior: the price of a state of which no loss has arrived; a lower bound is 0 there.
    discount: what W and the number of rounds in the rate are multiplied by in each round; below 1
      for a mapping that changes.
    """

    ignores_empty_lanes = True

    def rate(self, state: HindsightState, t: Array) -> Array:
        """eta_t = gamma_t."""
        K = state.shown.total.shape[0]
        constant = jnp.sqrt(confidence(K, self.delta)) / 2.0
        return multiplier(self.scale, t) * constant / jnp.sqrt(2.0 * K * state.rounds.total)

    def act(self, state: HindsightState, t: Array, u: Array) -> tuple[Array, ExponentialTicket]:
        rate = self.rate(state, t)
        action, weight = explore(jnp.exp(-rate * self.losses(state)), rate, u)
        return action, ExponentialTicket(weight, None)


@pytree
class HindsightTsallis(Hindsight):
    """HindsightExp3 with the regulariser of Tsallis-INF.

    x_t = argmin <L-hat, x> - 2 sqrt(t) sum sqrt(x). Also jaxbio's own, and without a proof. The
    hybrid regulariser of Zimmert and Seldin less its entropy, which is there for delay: nothing
    waits here. W grows by 1 / x_t(A_t).

    Options: see HindsightExp3. Only estimator="lcb" makes use of delta.
    """

    ignores_empty_lanes = True

    def act(self, state: HindsightState, t: Array, u: Array) -> tuple[Array, ExponentialTicket]:
        tsallis = jnp.sqrt(state.rounds.total) / multiplier(self.scale, t)
        x = tsallis_minimiser(self.losses(state), tsallis)
        action = pick(x, u)
        return action, ExponentialTicket(1.0 / select(x, action), None)
