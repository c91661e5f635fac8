"""QPM-D (Joulani, Gyorgy and Szepesvari 2013): a queue of losses per action hides all delays."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbio import checks, rng
from jaxbio.core import Array, Arrivals, Known, Play, State, Ticket, check_learner, draws_of
from jaxbio.learners.undelayed import learn_at_once, without_delay
from jaxbio.ops import choose, one_hot, select, wrapping
from jaxbio.trees import float_dtype, pytree


class QPMDTicket(NamedTuple):
    """base: the base's ticket of the request; seed: float [], what further uniforms come from."""

    base: Ticket
    seed: Array


class Queues(NamedTuple):
    """First in, first out, one queue per action.

    losses: float [K * depth + 1]; states: int32, the same shape; the last entry takes the writes
    that do not count. taken, filed: int32 [K], how many losses ever left and entered.
    """

    losses: Array
    states: Array
    taken: Array
    filed: Array


class Request(NamedTuple):
    """What the base wants to play next. valid: bool [], False: it has not been asked yet."""

    action: Array
    ticket: Ticket
    valid: Array


class QPMDState(NamedTuple):
    """base: the base's state; fed: int32 [], losses that it has got; its next round is fed + 1."""

    base: State
    fed: Array
    request: Request
    queues: Queues


class Turn(NamedTuple):
    """What changes while the base uses up losses. asked: int32 [], how often in this round."""

    base: State
    fed: Array
    request: Request
    taken: Array
    asked: Array


def queues_empty(num_actions: int, depth: int) -> Queues:
    size, zeros = num_actions * depth + 1, jnp.zeros(num_actions, jnp.int32)
    return Queues(jnp.zeros(size, float_dtype()), jnp.zeros(size, jnp.int32), zeros, zeros)


def _depth(queues: Queues) -> int:
    return (queues.losses.shape[0] - 1) // queues.taken.shape[0]


def enqueue(queues: Queues, arrivals: Arrivals) -> Queues:
    """File the lanes that are due, in their order."""
    depth, K = _depth(queues), queues.filed.shape[0]

    def file(queues: Queues, lane: Arrivals) -> tuple[Queues, None]:
        play = lane.play
        place = play.action * depth + (select(queues.filed, play.action) & (depth - 1))
        place = jnp.where(lane.due, place, K * depth)
        losses = lax.dynamic_update_index_in_dim(queues.losses, play.loss, place, 0)
        states = lax.dynamic_update_index_in_dim(queues.states, play.state, place, 0)
        filed = queues.filed + (one_hot(play.action, K) & lane.due).astype(jnp.int32)
        return Queues(losses, states, queues.taken, filed), None

    queues, _ = lax.scan(file, queues, arrivals._replace(play=arrivals.play._replace(ticket=None)))
    # The loop over stored losses only reads: without the barrier it might read a copy.
    losses, states = lax.optimization_barrier((queues.losses, queues.states))
    return queues._replace(losses=losses, states=states)


def first_in_line(queues: Queues, taken: Array, action: Array) -> tuple[Array, Array]:
    """State and loss of the oldest play of the action that is left."""
    depth = _depth(queues)
    place = action * depth + (select(taken, action) & (depth - 1))
    look_up = lambda x: lax.dynamic_index_in_dim(x, place, keepdims=False)  # noqa: E731
    return look_up(queues.states), look_up(queues.losses)


@pytree
class QPMD:
    """Ask the base for an action; while losses of that action are stored, use them up, else play.

    The base lives in a world without delay: its round n is its n-th request, and it is asked again
    when it has got the loss of that request, any stored loss of the same action, oldest first.
    While there is none, the request stands and is played in every round.

    base: any learner; it never sees a delay.

    The loop over stored losses is a `lax.while_loop` in each round: what is played next depends on
    all of it, so it cannot be spread over rounds. It takes as many turns as losses are used up, on
    average at most one a round, and in a block as many as the run that needs most. It reads the
    queues and carries the base's state only.

    Room: an action is played only while its queue is empty, so all that a queue ever holds was
    outstanding in the last round that began with it empty. No loss that can still arrive is
    older than `ring_depth` rounds, so that many places per action, or more, are always enough.

    Uniforms: where no loss is stored at all, the base is asked when the next round begins, with the
    uniform of that round, so that without delay QPM-D plays exactly as its base does. Where losses
    are stored, it is asked at the end of the round, with `rng.derived` of the round's uniform, for
    the i-th request of the round the i-th of these.
    """

    base: Any
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        checks.learner("base", self.base)

    def check(self, env: Any) -> None:
        """Raise where the environment lacks what the base needs."""
        check_learner(self.base, env)

    def draws(self, num_actions: int) -> int:
        return draws_of(self.base, num_actions)

    def init(self, known: Known) -> QPMDState:
        K, base = known.num_actions, self.base.init(without_delay(known))
        wanted, zero = self.draws(K), jnp.int32(0)
        u = jnp.zeros(() if wanted == 1 else wanted, float_dtype())
        shapes = jax.eval_shape(self._ask, base, zero, u)
        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        return QPMDState(base, zero, nothing, queues_empty(K, wrapping(known.ring_depth)))

    def act(self, state: QPMDState, t: Array, u: Array) -> tuple[Array, QPMDTicket]:
        standing = state.request
        asked = self._ask(state.base, state.fed, u)
        request = choose(standing.valid, standing, asked)
        return request.action, QPMDTicket(request.ticket, u if u.ndim == 0 else u[0])

    def _ask(self, base: State, fed: Array, u: Array) -> Request:
        action, ticket = self.base.act(base, fed + 1, u)
        return Request(jnp.asarray(action).astype(jnp.int32), ticket, jnp.bool_(True))

    def learn(
        self, state: QPMDState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[QPMDState, QPMDTicket]:
        queues = enqueue(state.queues, arrivals)
        ticket: QPMDTicket = play.ticket
        request = Request(play.action, ticket.base, jnp.bool_(True))

        def has_loss(turn: Turn) -> Array:
            stored = select(queues.filed - turn.taken, turn.request.action) > 0
            return turn.request.valid & stored

        def use_up(turn: Turn) -> Turn:
            return self._use_up(turn, queues, t, ticket.seed)

        turn = Turn(state.base, state.fed, request, queues.taken, jnp.int32(0))
        turn = lax.while_loop(has_loss, use_up, turn)
        queues = queues._replace(taken=turn.taken)
        return QPMDState(turn.base, turn.fed, turn.request, queues), ticket

    def _use_up(self, turn: Turn, queues: Queues, t: Array, seed: Array) -> Turn:
        """Feed the base with a loss of the action that it wants, and ask it what it wants next."""
        action = turn.request.action
        state, loss = first_in_line(queues, turn.taken, action)
        play = Play(action, state, loss, turn.request.ticket)
        base, fed = learn_at_once(self.base, turn.base, turn.fed + 1, play), turn.fed + 1
        K = queues.filed.shape[0]
        taken = turn.taken + one_hot(action, K).astype(jnp.int32)
        u = rng.derived(seed, t, turn.asked, self.draws(K))
        more = jnp.any(queues.filed > taken)
        request = self._ask(base, fed, u)._replace(valid=more)
        return Turn(base, fed, request, taken, turn.asked + 1)
