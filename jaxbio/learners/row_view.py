"""A learner among the rows of a log: it sees the state of a row, not the row."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbio.core import Array, Arrivals, Known, Play, State, Ticket, draws_of, facts_of
from jaxbio.ops import one_hot
from jaxbio.trees import pytree, static

PLAYS = "plays_by_action"  # a fact


class RowViewState(NamedTuple):
    """base: the base's state; plays: int32 [K], how often each action was played."""

    base: State
    plays: Array


@pytree
class RowView:
    """The base is shown the state of each row, and told that there are so many states.

    base: any learner. states: int32 [rows]. num_states: S.
    """

    base: Any
    states: Any
    num_states: int = static()
    ignores_empty_lanes = True

    def draws(self, num_actions: int) -> int:
        return draws_of(self.base, num_actions)

    def init(self, known: Known) -> RowViewState:
        states = jnp.int32(self.num_states)
        told = dataclasses.replace(known, num_states=states, state_slots=self.num_states)
        return RowViewState(self.base.init(told), jnp.zeros(known.num_actions, jnp.int32))

    def act(self, state: RowViewState, t: Array, u: Array) -> tuple[Array, Ticket]:
        return self.base.act(state.base, t, u)

    def learn(
        self, state: RowViewState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[RowViewState, Ticket]:
        seen = arrivals._replace(play=self._seen(arrivals.play))
        base, ticket = self.base.learn(state.base, t, self._seen(play), seen)
        mine = one_hot(play.action, state.plays.shape[0]).astype(jnp.int32)
        return RowViewState(base, state.plays + mine), ticket

    def facts(self, state: RowViewState) -> dict[str, Any]:
        return {**facts_of(self.base, state.base), PLAYS: state.plays}

    def _seen(self, play: Play) -> Play:
        """In lanes that are not due there may be rows that do not exist."""
        return play._replace(state=jnp.take(self.states, play.state, mode="clip"))
