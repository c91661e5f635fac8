"""Families of problems of a given size: what a study plays where the user's problem is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxbio import checks
from jaxbio.environment.environment import Environment
from jaxbio.environment.instances import make_environment
from jaxbio.environment.losses import BernoulliLosses
from jaxbio.environment.mappings import AlternatingMapping, StochasticMapping

Build = Callable[[int, int, Any, int], Environment]  # of actions, states, delays, instance


class Family(NamedTuple):
    """build: makes a problem; instances: how many there are; changing: makes the same problem with
    a mapping that changes, None where a family has none.
    """

    build: Build
    instances: int = 1
    changing: Build | None = None


def utility(actions: int, states: int, delays: Any, instance: int = 0) -> Environment:
    """The family of Experiments 3 and 5: one good action and one good state. One instance."""
    return make_environment("paper-utility", actions=actions, states=states, delays=delays)


def drawn(actions: int, states: int, delays: Any, instance: int) -> Environment:
    """Rows of the mapping uniform on the simplex, mean losses uniform on [0, 1]."""
    generator = np.random.default_rng([instance, actions, states])
    mapping = StochasticMapping(generator.dirichlet(np.ones(states), actions))
    return Environment(mapping, BernoulliLosses(generator.random(states)), delays)


def utility_in_turns(actions: int, states: int, delays: Any, instance: int = 0) -> Environment:
    """Good times, those of `utility`, and bad ones: every action meets the good state less often,
    by as much, so that the best action stays the best and stays as far ahead.
    """
    env = utility(actions, states, delays, instance)
    good = env.mapping.P
    bad = good.copy()
    bad[:, 0] = good[:, 0] - good[1:, 0].min()
    bad[:, 1:] = (1 - bad[:, :1]) / (states - 1)
    return Environment(AlternatingMapping([bad, good]), env.losses, delays)


def drawn_in_turns(actions: int, states: int, delays: Any, instance: int) -> Environment:
    """The mapping of `drawn` and another one at random."""
    env = drawn(actions, states, delays, instance)
    other = np.random.default_rng([instance, actions, states, 1])
    P = other.dirichlet(np.ones(states), actions)
    return Environment(AlternatingMapping([env.mapping.P, P]), env.losses, delays)


FAMILIES = {
    "utility": Family(utility, 1, utility_in_turns),
    "random": Family(drawn, 8, drawn_in_turns),
}
FAMILY = "utility"  # unless another is asked for
SIGNATURE = "(actions, states, delays)"  # of a family of the user's, wherever one is taken
GETS = "the numbers K and S and the law of the delays, such as FixedDelay(50)"


def family_of(given: str | Callable[..., Any]) -> Family:
    """By name, or of a function (actions, states, delays) -> Environment.

    The function gets the numbers K and S and a law, such as FixedDelay(50): never a bare number.
    """
    if isinstance(given, str):
        return FAMILIES[checks.choice("family", given, tuple(FAMILIES))]
    if not callable(given):
        raise TypeError(
            f"family must be one of {', '.join(map(repr, FAMILIES))} or a function {SIGNATURE} "
            f"that gets {GETS}, but got {checks.shown(given)}"
        )
    return Family(lambda actions, states, delays, _: _made(given, actions, states, delays))


def _made(given: Callable[..., Any], actions: int, states: int, delays: Any) -> Any:
    """By a function of the user's; its errors say what it got."""
    try:
        return given(actions, states, delays)
    except Exception as error:
        error.add_note(
            f"family was called with {actions}, {states} and {delays}: it must be a function "
            f"{SIGNATURE}, which gets {GETS}"
        )
        raise


def problem(family: Family, actions: int, states: int, delays: Any, instance: int) -> Environment:
    """One problem of a family; an error where that is not what it makes."""
    made = family.build(actions, states, delays, instance)
    return _checked(made, actions, states, delays)


def in_turns(
    family: Family, actions: int, states: int, delays: Any, instance: int
) -> tuple[Environment, Environment] | None:
    """A problem whose mapping does not change and the same with one that does, in arrays of the
    same form, so that one program plays both. None where the family has no such problems.
    """
    if family.changing is None:
        return None
    plain = problem(family, actions, states, delays, instance)
    same = AlternatingMapping([plain.mapping.P, plain.mapping.P])
    changing = family.changing(actions, states, delays, instance)
    return Environment(same, plain.losses, delays), changing


def _checked(made: Any, actions: int, states: int, delays: Any) -> Environment:
    if not isinstance(made, Environment):
        raise TypeError(
            f"family must make an Environment, but for {actions} actions, {states} states and "
            f"delays {checks.shown(delays)} it made {checks.shown(made)}"
        )
    if (made.num_actions, made.num_states) != (actions, states):
        raise ValueError(
            f"family must make a problem of the size it is asked for, but for {actions} actions "
            f"and {states} states it made one with {made.num_actions} and {made.num_states}"
        )
    return made
