"""A base that begins anew every so often, for mappings that change."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play, State, Ticket, check_learner, draws_of
from jaxbio.ops import choose
from jaxbio.trees import pytree, set_field


class RestartTicket(NamedTuple):
    """base: the base's ticket; start: int32 [], the last round before the base began."""

    base: Ticket
    start: Array


class RestartState(NamedTuple):
    """base: the base's state; start: int32 [], the last round before its first; end: its last.

    known: what a base is told when it begins.
    """

    base: State
    start: Array
    end: Array
    known: Known


@pytree
class Restarting:
    """Forget everything after every `period` rounds and begin anew with the base.

    The base counts its rounds from the last restart and is told `period` as its horizon (our
    reading; never more than the real one). Losses of plays from before the restart are dropped.

    For mappings that change over time, as `MetaBIO(Restarting(base, period))`: the estimates of the
    states' losses, which do not change, stay with MetaBIO. With Gamma changes a base with regret
    c sqrt(n) after n rounds wants a period of about (c T / Gamma)**(2/3).

    base: any learner. period: rounds.
    """

    base: Any
    period: Any
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        checks.learner("base", self.base)
        set_field(self, "period", checks.integer("period", self.period, 1, 2**30))

    def check(self, env: Any) -> None:
        """Raise where the environment lacks what the base needs."""
        check_learner(self.base, env)

    def draws(self, num_actions: int) -> int:
        return draws_of(self.base, num_actions)

    def init(self, known: Known) -> RestartState:
        period = jnp.asarray(self.period, jnp.int32)
        told = dataclasses.replace(known, horizon=jnp.minimum(period, known.horizon))
        return RestartState(self.base.init(told), jnp.int32(0), period, told)

    def act(self, state: RestartState, t: Array, u: Array) -> tuple[Array, RestartTicket]:
        action, ticket = self.base.act(state.base, t - state.start, u)
        return action, RestartTicket(ticket, state.start)

    def learn(
        self, state: RestartState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[RestartState, RestartTicket]:
        old, start = arrivals.play, state.start
        due = arrivals.due & (old.ticket.start == start)
        lanes = old._replace(loss=jnp.where(due, old.loss, 0), ticket=old.ticket.base)
        own = play._replace(ticket=play.ticket.base)
        base, ticket = self.base.learn(state.base, t - start, own, Arrivals(lanes, due))
        over = t == state.end
        base = choose(over, self.base.init(state.known), base)
        new = state._replace(
            base=base,
            start=jnp.where(over, t, start),
            end=jnp.where(over, t + jnp.asarray(self.period, jnp.int32), state.end),
        )
        return new, RestartTicket(ticket, start)
