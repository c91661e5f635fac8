"""BOLD (Joulani, Gyorgy and Szepesvari 2013): as many copies of the base as rounds are open."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play, State, Ticket, check_learner, draws_of
from jaxbio.learners.undelayed import learn_at_once, without_delay
from jaxbio.trees import is_concrete, pytree, set_field, static

NO_ACTION = -1  # raises a flag when the result lands: there was no copy to ask


class BOLDTicket(NamedTuple):
    """base: the ticket of the copy that chose; copy: int32 [], which one that is."""

    base: Ticket
    copy: Array


class Copy(NamedTuple):
    """base: the base's state; rounds: int32 [], losses that it has got: its clock.

    waiting: bool [], is the loss of its last choice to come? The state of BOLD has leaves
    [C + 1, ...], of which the last entry takes the writes that do not count.
    """

    base: State
    rounds: Array
    waiting: Array


@pytree
class BOLD:
    """Ask the first copy of the base that waits for nothing; its loss goes back to that copy.

    Each copy lives in a world without delay: it is asked again when it has got the loss of its last
    choice, and its clock counts its own rounds. With a fixed delay d, d + 1 copies take turns, each
    plays T / (d + 1) rounds, and the regret is about d + 1 times that of one of them.

    base: any learner; it never sees a delay.
    copies: how many there may be, one more than rounds are ever outstanding; None: `ring_depth` of
      them, which is always enough. A game that needs more raises an error when it ends.
    horizon: the number of rounds that every copy is told to expect; None: all T, as each would play
      without delay. The bound above wants T / (d + 1) here (our reading: told to nobody by itself).
    """

    base: Any
    copies: int | None = static(default=None)
    horizon: Any = None
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        checks.learner("base", self.base)
        if self.copies is not None:
            set_field(self, "copies", checks.integer("copies", self.copies, 1, 2**20))
        if self.horizon is not None:
            set_field(self, "horizon", checks.integer("horizon", self.horizon, 1, 2**30))

    def check(self, env: Any) -> None:
        """Raise where a fixed delay needs more copies, or the base needs something else."""
        delays = env.delays
        fixed = delays.constant and all(is_concrete(leaf) for leaf in jax.tree.leaves(delays))
        if self.copies is not None and fixed and self.copies <= delays.longest():
            raise ValueError(
                f"copies must be at least {delays.longest() + 1}, one more than the delay, "
                f"but got {self.copies}"
            )
        check_learner(self.base, env)

    def draws(self, num_actions: int) -> int:
        return draws_of(self.base, num_actions)

    def init(self, known: Known) -> Copy:
        size = known.ring_depth if self.copies is None else self.copies
        told = without_delay(known)
        if self.horizon is not None:
            told = dataclasses.replace(told, horizon=jnp.asarray(self.horizon, jnp.int32))
        one = Copy(self.base.init(told), jnp.int32(0), jnp.bool_(False))
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (size + 1, *x.shape)), one)

    def act(self, state: Copy, t: Array, u: Array) -> tuple[Array, BOLDTicket]:
        size = state.waiting.shape[0] - 1
        copy = jnp.min(jnp.where(state.waiting[:-1], size, lax.iota(jnp.int32, size)))
        chosen = _at(state, copy)
        action, ticket = self.base.act(chosen.base, chosen.rounds + 1, u)
        action = jnp.where(copy < size, jnp.asarray(action).astype(jnp.int32), NO_ACTION)
        return action, BOLDTicket(ticket, copy)

    def learn(
        self, state: Copy, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[Copy, BOLDTicket]:
        waiting = _put(state.waiting, jnp.bool_(True), play.ticket.copy)
        new, _ = lax.scan(self._hand_back, state._replace(waiting=waiting), arrivals)
        return new, play.ticket

    def _hand_back(self, state: Copy, lane: Arrivals) -> tuple[Copy, None]:
        """Teach the copy that made the choice of a lane."""
        play, nobody = lane.play, state.waiting.shape[0] - 1
        owner = jnp.where(lane.due, play.ticket.copy, nobody)
        copy = _at(state, owner)
        rounds, play = copy.rounds + 1, play._replace(ticket=play.ticket.base)
        base = learn_at_once(self.base, copy.base, rounds, play)
        return _put(state, Copy(base, rounds, jnp.bool_(False)), owner), None


def _at(copies: Copy, index: Array) -> Copy:
    return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, index, keepdims=False), copies)


def _put(every: Any, one: Any, index: Array) -> Any:
    write = lambda all, x: lax.dynamic_update_index_in_dim(all, x, index, 0)  # noqa: E731
    return jax.tree.map(write, every, one)
