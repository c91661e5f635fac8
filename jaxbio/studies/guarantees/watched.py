"""MetaBIO under observation: how good are the estimates that it feeds to its base?"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play, Ticket, check_learner, draws_of, facts_of
from jaxbio.environment.environment import Environment
from jaxbio.learners.feeding import feed_lanes
from jaxbio.learners.hindsight import HindsightExp3
from jaxbio.learners.metabio import MetaBIO, MetaBIOState
from jaxbio.ops import Sum, count_by, means_value, sum_add, sum_zero
from jaxbio.studies.guarantees.informed import Informed
from jaxbio.trees import float_dtype, pytree, set_field


class WatchedState(NamedTuple):
    """learner: MetaBIO's state; worst, errors: see `Watched.facts`."""

    learner: MetaBIOState
    worst: Array
    errors: Sum


@pytree
class Watched:
    """MetaBIO with two facts more; it plays as it does alone.

    learner: MetaBIO with ordering="together", so that every estimate of a round is made of all
      that has arrived. theta: [S], the mean losses that it estimates.
    """

    learner: Any
    theta: Any
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        if not isinstance(self.learner, MetaBIO) or self.learner.ordering != "together":
            raise TypeError(
                f"learner must be MetaBIO with ordering='together', but got {self.learner!r}"
            )
        set_field(self, "theta", checks.unit_interval("theta", self.theta, 1, "[S]"))

    def check(self, env: Environment) -> None:
        """Raise where theta belongs to another environment."""
        checks.per_state("theta", self.theta, env.state_slots)
        check_learner(self.learner, env)

    def draws(self, num_actions: int) -> int:
        return draws_of(self.learner, num_actions)

    def init(self, known: Known) -> WatchedState:
        return WatchedState(self.learner.init(known), jnp.zeros((), float_dtype()), sum_zero())

    def act(self, state: WatchedState, t: Array, u: Array) -> tuple[Array, Ticket]:
        return self.learner.act(state.learner, t, u)

    def learn(
        self, state: WatchedState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[WatchedState, Ticket]:
        inner, ticket = self.learner.learn(state.learner, t, play, arrivals)
        old = arrivals.play
        feed, _ = feed_lanes(arrivals.due, old.ticket.wait, ticket.wait)
        fed = count_by(old.state, feed, self.theta.shape[0])  # [S]: rounds fed now
        seen = inner.fed.seen
        reach = inner.estimator.reach(seen.count)
        share = jnp.abs(means_value(seen) - self.theta) / reach
        worst = jnp.maximum(state.worst, jnp.max(jnp.where(fed > 0, share, 0.0)))
        errors = sum_add(state.errors, jnp.sum(fed.astype(reach.dtype) * 2.0 * reach))
        return WatchedState(inner, worst, errors), ticket

    def facts(self, state: WatchedState) -> dict[str, Any]:
        """worst_error: the largest |theta-hat - theta| of a round fed, in units of its radius
        epsilon / 2; sum_of_errors: the sum of epsilon over the rounds fed.
        """
        own = {"worst_error": state.worst, "sum_of_errors": state.errors.total}
        return {**facts_of(self.learner, state.learner), **own}


def watched(learner: Any, env: Environment, horizon: int) -> Any:
    """The learner under observation in a game, where it is MetaBIO or HindsightExp3 and losses have
    means to be estimated.
    """
    theta, rounds = env.losses.all_means(), np.int32(horizon)
    if jnp.ndim(theta) == 1 and isinstance(learner, MetaBIO):
        return Watched(learner, theta)
    if jnp.ndim(theta) == 1 and isinstance(learner, HindsightExp3):
        return Informed(learner, env, env.best_action(rounds))  # type: ignore[arg-type]
    return learner
