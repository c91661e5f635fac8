"""A learner that knows the losses of states: what it does better is the price of learning them."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbio import checks
from jaxbio.core import (
    Array,
    Arrivals,
    Known,
    Play,
    State,
    Ticket,
    check_learner,
    draws_of,
    facts_of,
)
from jaxbio.learners.undelayed import learn_at_once, without_delay
from jaxbio.ops import select
from jaxbio.trees import float_dtype, pytree, set_field


class KnownLossesState(NamedTuple):
    """base: the base's state; fed: int32 [], rounds that it has been fed: all."""

    base: State
    fed: Array


@pytree
class KnownLosses:
    """MetaBIO with the mean losses of states known: every round is fed at once with theta(S_t).

    No delay matters to it, and no loss that arrives. The gap to MetaBIO is what it costs to learn
    theta; what is left is the regret of the base in a world without delay and noise of losses.

    base: any learner; it never sees a delay. theta: [S], the mean loss of each state.
    """

    base: Any
    theta: Any
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        checks.learner("base", self.base)
        set_field(self, "theta", checks.unit_interval("theta", self.theta, 1, "[S]"))

    def check(self, env: Any) -> None:
        """Raise where theta is of other states than the environment's."""
        checks.per_state("theta", self.theta, env.num_states)
        check_learner(self.base, env)

    def padded(self, slots: int) -> KnownLosses:
        """The same learner in arrays of `slots` states; the new ones are never shown."""
        return dataclasses.replace(self, theta=np.pad(self.theta, (0, slots - len(self.theta))))

    def draws(self, num_actions: int) -> int:
        return draws_of(self.base, num_actions)

    def init(self, known: Known) -> KnownLossesState:
        return KnownLossesState(self.base.init(without_delay(known)), jnp.int32(0))

    def act(self, state: KnownLossesState, t: Array, u: Array) -> tuple[Array, Ticket]:
        return self.base.act(state.base, t, u)

    def learn(
        self, state: KnownLossesState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[KnownLossesState, Ticket]:
        loss = select(jnp.asarray(self.theta, float_dtype()), play.state)
        base = learn_at_once(self.base, state.base, t, play._replace(loss=loss))
        return KnownLossesState(base, state.fed + 1), play.ticket

    def facts(self, state: KnownLossesState) -> dict[str, Any]:
        none = jnp.int32(0)
        mine = {"waiting_rounds": none, "total_perceived_delay": none, "rounds_fed": state.fed}
        return {**facts_of(self.base, state.base), **mine}
