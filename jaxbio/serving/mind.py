"""What an agent asks of a learner, as functions of flat lists of arrays: begin, act, learn.

They call the methods of the learner as `engine.round` does, with one difference: who plays is not a
loop over rounds but a program of the user's, so that what arrives is given from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import rng
from jaxbio.core import Arrivals, Known, Play, ignores_empty_lanes
from jaxbio.engine import protocol
from jaxbio.engine.round import learner_uniforms
from jaxbio.serving.rows import Row, row_of
from jaxbio.trees import as_arrays, float_dtype

Arrays = Sequence[Any]


class Mind:
    """A learner and what it is told. Its functions have the form (given, kept) -> results.

    given: the numbers of the learner and of what it is told, then a message; kept: the leaves of
    its state; results: what is kept from now on, then what is returned. `numbers` are values for
    the first, `message` types of the second.
    """

    def __init__(self, learner: Any, known: Known) -> None:
        self.learner, self.known = as_arrays((learner, known), np)
        self.numbers, self.structure = jax.tree.flatten((self.learner, self.known))

    @cached_property
    def types(self) -> protocol.Types:
        """Of the learner's state and ticket."""
        return protocol.types_of(self.learner, self.known)

    @cached_property
    def row(self) -> Row:
        """How a play is kept until its loss comes."""
        return row_of(self.types.ticket)

    @property
    def kept(self) -> list[Any]:
        """The types of the leaves of the state."""
        return jax.tree.leaves(self.types.state)

    def begin(self, given: Arrays, kept: Arrays) -> list[Any]:
        """The state before the first round. No message."""
        learner, known = self.structure.unflatten(given)
        return jax.tree.leaves(protocol.stored(learner, learner.init(known)))

    def act(self, given: Arrays, kept: Arrays) -> list[Any]:
        """A decision. Message: key uint32 [2], number of the decision, round, int32 [] each.

        Returns the action, and the row of the play, whose state is not known yet. The uniforms are
        those of the run with that key in the round with the number of the decision.
        """
        *numbers, key, number, t = given
        learner, known = self.structure.unflatten(numbers)
        mine = rng.round_uniforms(key, number)[0]
        u = learner_uniforms(learner, known, key, number, mine)
        returned = learner.act(self._restored(kept), t, u)
        action, ticket = protocol.pair(learner, "act", returned)
        action = protocol.integer_scalar(f"act of {type(learner).__name__}", action)
        play = Play(action, jnp.int32(0), None, protocol.stored_ticket(ticket))  # type: ignore[arg-type]
        return [*kept, action, self.row.pack(play)]

    def learn(self, given: Arrays, kept: Arrays) -> list[Any]:
        """The end of a round. Message: round, state, and number of losses of older rounds that
        arrive, int32 [] each; at_once bool [], does the round's own loss arrive?; rows int32
        [M + 1, words], the last one is the round's own; losses float [M + 1].

        Returns the row of the round's play, as it is filed.
        """
        *numbers, t, seen, number, at_once, rows, losses = given
        learner, _ = self.structure.unflatten(numbers)
        arrivals = self._arrivals(learner, seen, number, at_once, rows, losses)
        own = jax.tree.map(lambda lanes: lanes[-1], arrivals.play)
        returned = learner.learn(self._restored(kept), t, own, arrivals)
        state, ticket = protocol.pair(learner, "learn", returned)
        ticket = protocol.checked_ticket(learner, ticket, own.ticket)
        before = jax.tree.unflatten(jax.tree.structure(self.types.state), kept)
        learned = protocol.checked_state(learner, state, before)
        return [*jax.tree.leaves(learned), self.row.pack(own._replace(loss=None, ticket=ticket))]

    def _arrivals(
        self, learner: Any, seen: Any, number: Any, at_once: Any, rows: Any, losses: Any
    ) -> Arrivals:
        """The lanes of a round, as `engine.round` shows them to a learner."""
        lanes = rows.shape[0] - 1
        due = jnp.concatenate([lax.iota(jnp.int32, lanes) < number, at_once[None]])
        play = self.row.unpack(rows)
        play = play._replace(
            state=jnp.concatenate([play.state[:-1], seen[None]]), loss=jnp.where(due, losses, 0)
        )
        if not ignores_empty_lanes(learner):
            shown = due | (lax.iota(jnp.int32, lanes + 1) == lanes)
            play = jax.tree.map(lambda x: jnp.where(shown, x, jnp.zeros_like(x)), play)
        return Arrivals(play, due)

    def _restored(self, kept: Arrays) -> Any:
        state = jax.tree.unflatten(jax.tree.structure(self.types.state), kept)
        return protocol.restored(self.types, state)

    def types_given(self, message: Sequence[Any]) -> list[Any]:
        """The types of what a function is given. message: (shape, type) of each of its arrays."""
        types = [jax.ShapeDtypeStruct(number.shape, number.dtype) for number in self.numbers]
        return types + [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in message]

    def learn_message(self, lanes: int) -> list[Any]:
        """(shape, type) of each array of the message of `learn`."""
        number = ((), np.int32)
        of_lanes = [((lanes + 1, self.row.words), np.int32), ((lanes + 1,), float_dtype())]
        return [number, number, number, ((), np.bool_), *of_lanes]


ACT_MESSAGE = [((2,), np.uint32), ((), np.int32), ((), np.int32)]
