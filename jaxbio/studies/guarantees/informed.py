"""HindsightExp3 under observation: what is lost to wrong prices, and what to anything else.

Beside what it plays with (p), the weights are kept that it would play with if it knew the mean
losses of states (q, at true prices of the same counts W). With l~ = theta(S) / (p + eta), the
weighted loss of the action that was played, its regret is, exactly and in every run,

    sum <q, l~> - L~(a*)    exponential weights at true prices, which nothing delays
    + sum <p - q, l~>       the error of prices
    + sum eta sum l~        what exploration forgives: theta(S) = (p + eta) l~
    + L~(a*) - sum mu(a*)   the weighted losses of the best action less what it costs on average
    + sum mu(A) - theta(S)  chance: the states that are shown, which no learner can choose

where L~ = sum l~ and mu_t(a) is what an action costs on average in round t.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play, Scheduled, Ticket, check_learner
from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.environment import Environment
from jaxbio.learners.hindsight import HindsightExp3, HindsightState, priced
from jaxbio.ops import Sum, means_value, select, sum_add, sum_zero
from jaxbio.trees import float_dtype, is_concrete, pytree, set_field


class Parts(NamedTuple):
    """What a round adds to each sum: float [].

    informed: <q, l~>; stability: eta <q, l~^2> / 2; gap: <p - q, l~>; correction: eta <p - q, l~^2>
    / 2; exploration: eta l~; chance: mu(A) - theta(S); best: mu(a*); reach: a ceiling on what wrong
    prices can change.
    """

    informed: Array
    stability: Array
    gap: Array
    correction: Array
    exploration: Array
    chance: Array
    best: Array
    reach: Array


class InformedState(NamedTuple):
    """learner: that of HindsightExp3; rate: float [], eta of the last round; sums: Sum [parts];
    worst: float [], see `Informed.facts`.
    """

    learner: HindsightState
    rate: Array
    sums: Sum
    worst: Array


@pytree
class Informed:
    """HindsightExp3 with some facts more; it plays as it does alone.

    learner: HindsightExp3 whose rates fall: without a schedule, and without forgetting. env: the
      environment that it plays in, whose mean losses of states do not change. best: a*, the best
      action of the whole game.
    """

    learner: Any
    env: Any
    best: Any
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        learner = self.learner
        fits = isinstance(learner, HindsightExp3) and not isinstance(learner.scale, Scheduled)
        if not fits or (is_concrete(learner.discount) and np.any(np.asarray(learner.discount) < 1)):
            raise TypeError(
                "learner must be HindsightExp3 with a number as its scale and discount=1, "
                f"but got {checks.shown(learner)}"
            )
        best = checks.integer("best", self.best, 0, self.env.num_actions - 1)
        set_field(self, "best", best)
        set_field(self, "env", dataclasses.replace(self.env, delays=FixedDelay(0)))

    def check(self, env: Environment) -> None:
        """Raise where it would watch for another environment."""
        checks.per_state("theta", self.env.losses.all_means(), env.state_slots)
        check_learner(self.learner, env)

    def init(self, known: Known) -> InformedState:
        zero = jnp.zeros((), float_dtype())
        return InformedState(self.learner.init(known), zero, sum_zero(len(Parts._fields)), zero)

    def act(self, state: InformedState, t: Array, u: Array) -> tuple[Array, Ticket]:
        return self.learner.act(state.learner, t, u)

    def learn(
        self, state: InformedState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[InformedState, Ticket]:
        inner, ticket = self.learner.learn(state.learner, t, play, arrivals)
        parts = jnp.stack(self.parts(state.learner, t, play))
        old = state.learner
        off = jnp.abs(means_value(old.seen) - self.theta)
        share = off / old.estimator.reach(old.seen.count)
        worst = jnp.maximum(state.worst, jnp.max(jnp.where(old.seen.count > 0, share, 0.0)))
        rate, sums = self.learner.rate(old, t), sum_add(state.sums, parts)
        return InformedState(inner, rate, sums, worst), ticket

    @property
    def theta(self) -> Array:
        """[S]: mean losses of states."""
        return jnp.asarray(self.env.losses.all_means(), float_dtype())

    def parts(self, old: HindsightState, t: Array, play: Play) -> Parts:
        """What round t adds, from what was known before it."""
        action = play.action
        rate = self.learner.rate(old, t)
        p = chosen(self.learner.losses(old), rate, action)
        q = chosen(priced(old.shown, self.theta), rate, action)
        theta = select(self.theta, play.state)
        loss = theta * play.ticket.weight
        half = rate * loss * loss / 2.0
        shown = old.shown.total
        wrong = jnp.abs(self.learner.prices(old) - self.theta)
        apart = jnp.sum((jnp.max(shown, 0) - jnp.min(shown, 0)) * wrong)  # of any two actions
        return Parts(
            informed=q * loss,
            stability=q * half,
            gap=(p - q) * loss,
            correction=(p - q) * half,
            exploration=rate * loss,
            chance=self.env.pseudo_loss(t, action) - theta,
            best=self.env.pseudo_loss(t, jnp.asarray(self.best, jnp.int32)),
            reach=-jnp.expm1(-rate * apart) * jnp.maximum(p, q) * loss,
        )

    def facts(self, state: InformedState) -> dict[str, Any]:
        """The terms of the regret: informed_regret, price_gap, exploration, overestimate, chance.

        informed_limit: of the first, ln K / eta_T + sum eta <q, l~^2> / 2. price_error: E_T, the
        second with what it changes in that limit: sum <p - q, l~ - eta l~^2 / 2>. price_limit: of
        its size. worst_price: the largest |mean - theta| of a state with losses, in units of
        its radius.
        """
        own = Parts(*[state.sums.total[i] for i in range(len(Parts._fields))])
        shown = state.learner.shown.total
        weighted = select(jnp.sum(shown * self.theta, axis=1), self.best)
        return {
            "informed_regret": own.informed - weighted,
            "informed_limit": jnp.log(1.0 * shown.shape[0]) / state.rate + own.stability,
            "price_gap": own.gap,
            "price_error": own.gap - own.correction,
            "price_limit": own.reach,
            "exploration": own.exploration,
            "overestimate": weighted - own.best,
            "chance": own.chance,
            "worst_price": state.worst,
        }


def chosen(losses: Array, rate: Array, action: Array) -> Array:
    """The probability of an action under exponential weights; losses: [K], the least is 0."""
    weights = jnp.exp(-rate * losses)
    return select(weights, action) / jnp.sum(weights)
