"""Families of problems of a given size: what a study plays where the user's problem is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxbio import checks
from jaxbio.environment.environment import Environment
from jaxbio.environment.instances import make_environment
from jaxbio.environment.losses import BernoulliLosses
from jaxbio.environment.mappings import StochasticMapping


class Family(NamedTuple):
    """build: (actions, states, delays, instance) -> Environment; instances: how many there are."""

    build: Callable[[int, int, Any, int], Environment]
    instances: int = 1


def utility(actions: int, states: int, delays: Any, instance: int = 0) -> Environment:
    """The family of Experiments 3 and 5: one good action and one good state. One instance."""
    return make_environment("paper-utility", actions=actions, states=states, delays=delays)


def drawn(actions: int, states: int, delays: Any, instance: int) -> Environment:
    """Rows of the mapping uniform on the simplex, mean losses uniform on [0, 1]."""
    generator = np.random.default_rng([instance, actions, states])
    mapping = StochasticMapping(generator.dirichlet(np.ones(states), actions))
    return Environment(mapping, BernoulliLosses(generator.random(states)), delays)


FAMILIES = {"utility": Family(utility), "random": Family(drawn, 8)}
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
