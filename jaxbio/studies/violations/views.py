"""Learners that see less than the environment shows: a part of the state, or their actions only."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

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
    pad_learner,
)
from jaxbio.environment.environment import Environment
from jaxbio.trees import pytree, set_field, static


class View:
    """What both share: the base plays, on what it sees of a play."""

    base: Any

    def seen(self, play: Play) -> Play:
        raise NotImplementedError

    def check(self, env: Environment) -> None:
        """Raise where the environment lacks what the base needs."""
        check_learner(self.base, env)

    def draws(self, num_actions: int) -> int:
        return draws_of(self.base, num_actions)

    def act(self, state: State, t: Array, u: Array) -> tuple[Array, Ticket]:
        return self.base.act(state, t, u)

    def learn(self, state: State, t: Array, play: Play, arrivals: Arrivals) -> tuple[State, Ticket]:
        seen = arrivals._replace(play=self.seen(arrivals.play))
        return self.base.learn(state, t, self.seen(play), seen)

    def facts(self, state: State) -> dict[str, Any]:
        return facts_of(self.base, state)


@pytree
class Coarse(View):
    """The base is shown state // each, and told that there are as many states as that makes.

    For what a state does not say: with pairs of a state s and something that stays hidden, numbered
    s * each + hidden, the base sees s alone, and losses depend on both.

    base: any learner. each: how many states of the environment look the same.
    """

    base: Any
    each: int = static()
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        checks.learner("base", self.base)
        set_field(self, "each", checks.integer("each", self.each, 1))

    def check(self, env: Environment) -> None:
        """Raise where the states of the environment are no such pairs."""
        if env.num_states % self.each:
            raise ValueError(
                f"each must divide the number of states, but {self.each} of {env.num_states} "
                "states cannot look the same"
            )
        super().check(env)

    def padded(self, slots: int) -> Coarse:
        """The same learner in arrays for so many states of the environment."""
        return dataclasses.replace(self, base=pad_learner(self.base, self._shown(slots)))

    def init(self, known: Known) -> State:
        shown, slots = known.num_states // self.each, self._shown(known.state_slots)
        return self.base.init(dataclasses.replace(known, num_states=shown, state_slots=slots))

    def seen(self, play: Play) -> Play:
        return play._replace(state=play.state // self.each)

    def _shown(self, slots: int) -> int:
        """How many of the base's states so many of the environment are, the last one in part."""
        return -(-slots // self.each)


@pytree
class Blind(View):
    """The base is shown its own action in place of the state, and told that there are K states.

    All else is as it was: what it still does better than a bandit is not due to states.

    base: any learner without arrays over states.
    """

    base: Any
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        checks.learner("base", self.base)

    def padded(self, slots: int) -> Blind:
        """The same learner, whatever the states of the environment."""
        return self

    def init(self, known: Known) -> State:
        actions = known.num_actions
        told = dataclasses.replace(known, num_states=jnp.int32(actions), state_slots=actions)
        return self.base.init(told)

    def seen(self, play: Play) -> Play:
        return play._replace(state=play.action)
