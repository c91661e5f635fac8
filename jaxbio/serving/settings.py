"""What an agent is made with, checked at the front door, and what its learner is told of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbio import checks
from jaxbio.core import Known
from jaxbio.engine import protocol, ring
from jaxbio.engine.rollout import check_players
from jaxbio.environment.delays import FixedDelay, UniformDelay
from jaxbio.environment.environment import MAX_HORIZON, Environment
from jaxbio.environment.losses import ConstantLosses
from jaxbio.environment.mappings import StochasticMapping
from jaxbio.serving.lanes import MOST
from jaxbio.trees import as_arrays

DEPTHS = (ring.SMALLEST, 64 * ring.SMALLEST)  # of rings, to see whether a learner cares
LONGEST = 1 << 26  # rounds that a loss may take, where a learner keeps something for each


class Settings(NamedTuple):
    """As `Agent` has them; delay and longest may be None. key: two words, of the run."""

    actions: tuple[str | int, ...]
    states: tuple[str | int, ...]
    horizon: int
    delay: int | None
    longest: int | None
    concurrent: bool
    key: tuple[int, int]


def checked(
    actions: Any,
    states: Any,
    horizon: Any,
    delay: Any,
    longest: Any,
    concurrent: Any,
    key: np.ndarray,
) -> Settings:
    """The settings; whatever cannot be meant is refused."""
    delay = None if delay is None else checks.size("delay", delay, 0, MAX_HORIZON)
    longest = None if longest is None else checks.size("longest", longest, 0, LONGEST)
    if delay is not None and longest is not None and longest < delay:
        raise ValueError(f"longest must be at least delay={delay}, but got {longest}")
    first, second = (int(word) for word in key)
    return Settings(
        labels("actions", actions, 2),
        labels("states", states, 1),
        checks.size("horizon", horizon, 1, MAX_HORIZON),
        delay,
        longest,
        checks.boolean("concurrent", concurrent),
        (first, second),
    )


def labels(name: str, values: Any, least: int) -> tuple[str | int, ...]:
    """Texts, whole numbers or truth values, all different: all can be written as JSON."""
    found = []
    for value in checks.several(name, values, "labels"):
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(plain, str | int):
            raise TypeError(
                f"{name} must be labels that are texts, whole numbers or True and False, but one "
                f"is {checks.shown(value)}"
            )
        found.append(plain)
    twice = next((label for i, label in enumerate(found) if label in found[:i]), None)
    if twice is not None:
        raise ValueError(f"{name} must be different labels, but {twice!r} is there twice")
    if len(found) < least:
        raise ValueError(f"{name} must be at least {least} labels, but got {checks.shown(values)}")
    return tuple(found)


def known_of(learner: Any, settings: Settings) -> Known:
    """What the learner is told, after it has had its say about an environment of this form."""
    K, S = len(settings.actions), len(settings.states)
    mapping, losses = StochasticMapping(np.full((K, S), 1 / S)), ConstantLosses(np.full(S, 0.5))
    delay, longest = settings.delay, settings.longest
    law = UniformDelay(0, longest or 1) if delay is None else FixedDelay(delay)
    check_players(Environment(mapping, losses, law), learner, settings.horizon)
    told = -1 if delay is None else delay

    def known(depth: int) -> Known:
        numbers = np.int32(S), np.int32(settings.horizon), np.int32(told)
        return Known(*numbers, K, S, depth)  # type: ignore[arg-type]

    if longest is not None:
        late = longest + longest // MOST + 1  # what waits for a lane is a bit later
        return known(ring.depth_for(late, late))
    if _cares(learner, known):
        raise ValueError(
            f"longest must be given: {type(learner).__name__} keeps something for every round "
            "whose loss may still come. Say how many rounds later a loss is at most (longest=...); "
            "what comes after that is refused"
        )
    return known(DEPTHS[0])


def _cares(learner: Any, known: Any) -> bool:
    """Does what the learner keeps grow with the ring?"""
    shapes = []
    for depth in DEPTHS:
        mine, told = as_arrays((learner, known(depth)), np)
        state = protocol.types_of(mine, told).state
        shapes.append([leaf.shape for leaf in jax.tree.leaves(state)])
    return shapes[0] != shapes[1]
