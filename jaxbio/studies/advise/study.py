"""Which learner should I run at my K, S, T and delays? Played, not looked up.

Learners play a family of problems of the user's size in the same worlds, more and more runs, until
a winner is beyond doubt or time is over; those that are surely beaten stop early (`tournament`).
Where the family has problems with a mapping that changes, these are played too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from jaxbio import checks
from jaxbio.analysis.comparison import Comparison
from jaxbio.environment.environment import Environment
from jaxbio.studies.advise.hall import Hall
from jaxbio.studies.advise.tournament import ENOUGH, TWO, Outcome, Tournament
from jaxbio.studies.contestants import (
    QUICK,
    UNIFORM,
    UNUSUAL,
    everybody,
    is_robust,
    looks_at_states,
    uniform_play,
)
from jaxbio.studies.families import FAMILY, family_of, in_turns, problem

SECONDS = 45.0
LOOKS = 8  # at the results; runs double from one to the next
LEVEL = 0.05  # the probability, at most, that any look names a winner among equals
FIRST = 32  # games of each learner before the first look
ROUNDS = 3_200_000  # of each learner before the first look, at most, unless games are fewer than
FEWEST = 8
CELLS = 256  # of a mapping: with more of them a round counts for several
STATIONARY, CHANGING = "stationary", "changing"  # the kinds of problems
CELLS_PER_SECOND = 1.6e8  # of mappings; with more of them the likeliest winner may not finish
ROUND = 150  # cells that a round takes the time of, besides those of its mapping
YARDSTICK = 9  # learners play before playing at random does


@dataclass(frozen=True)
class Advice:
    """What the runs say.

    stationary: for a mapping that does not change (of a family of the user's: as it makes it).
    changing: for one that does; None where the family has no such problem. robust: the best of
    those with a guarantee whatever the mapping does (see `is_robust`), as far as it stayed or left
    on the stationary problem; None where there is none. runs: of each learner that stayed to the
    end. Where the family has several instances, a run is one on each of them, and its regret their
    mean: what is compared is the mean over these very instances. delays: the law, of the first
    instance, as it was played (a family of the user's may have its own). unfinished: learners that
    time did not allow.
    """

    stationary: Outcome
    changing: Outcome | None
    robust: str | None
    runs: int
    seconds: float
    delays: Any = None
    unfinished: tuple[str, ...] = ()

    @property
    def overall(self) -> Comparison:
        """Of those that stayed to the end, for a mapping that does not change."""
        return self.stationary.comparison

    @property
    def recommended(self) -> str:
        """For a mapping that does not change, whether or not it is sure (see `Outcome.named`)."""
        return self.stationary.named

    @property
    def recommended_if_changing(self) -> str | None:
        """For one that does; None where the family has no such problem."""
        return None if self.changing is None else self.changing.named

    @property
    def decided(self) -> bool:
        """Has every comparison a winner, and is it known what states are worth?"""
        return all(one.decided for one in (self.stationary, self.changing) if one is not None)


def advise(
    *,
    actions: int,
    states: int,
    horizon: int,
    delays: Any,
    family: Any = FAMILY,
    learners: Mapping[str, Any] | None = None,
    seconds: float = SECONDS,
    looks: int = LOOKS,
    first: int = FIRST,
    level: float = LEVEL,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Advice:
    """Play a problem of this size and recommend a learner, or say that it is too close to call.

    Args:
      actions, states, horizon, delays: K, S, T and the law of the delays.
      family: "utility", "random", or a function (actions, states, delays) -> Environment of the
        numbers K and S and the law of the delays.
      learners: label -> learner (default: `everybody()`, some twenty), the most promising first.
      seconds: to spend, compiling included; it may be late by what compiling a few learners takes.
        In the first look learners play a few at a time, and none begins when time is over: those
        that are finished by then are compared, the others are named in `unfinished`, and where
        fewer than two are it is an error that says what would be enough. No other look begins that
        is not expected to end in this time, and it is given up a tenth after it.
      looks, first: at most so many looks at the results; the first at so many games of each
        learner (fewer where they are long), each further one at twice as many as the one before.
      level: the probability, at most, that a winner is named among equals, or that a learner that
        is as good as any leaves early; as far as Student's law holds for means of so few games (one
        that fails in a game of a hundred may look best on the first 32).
      seed: the root seed. No run is one of `simulate`, `sweep` or the search of `tune` with the
        same seed: a tuned learner is judged in worlds that it has not seen.
      store: a folder for finished parts; the same call goes on where it was interrupted.
      progress: show bars.
    """
    begun = time.monotonic()
    actions, states = checks.size("actions", actions, 2), checks.size("states", states, 1)
    looks, first = checks.size("looks", looks, 1, 30), checks.size("first", first, 2)
    level = checks.probability_of_error("level", level)
    budget = checks.number("seconds", seconds, 0, open_low=True)
    horizon = checks.size("horizon", horizon, 1)
    usual = learners is None
    known = _checked(everybody(actions * states * horizon) if usual else learners)
    problems = _problems(family, actions, states, delays)
    instances = len(problems[STATIONARY])
    work = horizon * max(1, actions * states // CELLS)
    few = min(first, max(FEWEST, ROUNDS // work))
    units = max(min(FEWEST, first), few // instances)  # a unit is a game on every instance
    root = checks.seed(seed)
    hall = Hall(problems, known | uniform_play(), horizon, root, store, progress)
    env = problems[STATIONARY][0]
    with_states = [name for name, one in known.items() if looks_at_states(one, env)]
    without = [name for name in known if name not in with_states]
    games = [units * 2 ** max(look - 1, 0) for look in range(looks)]
    played = Tournament(
        (with_states, without), UNIFORM, games, level, tuple(problems),
        form_of=lambda name: jax.tree.structure(known[name]),
        unusual=UNUSUAL if usual else frozenset(),
        enough=max(TWO, ENOUGH // instances),
    )  # fmt: skip
    order = [*known]
    order.insert(YARDSTICK, UNIFORM)
    cells = units * len(problems) * instances * horizon * (actions * states + ROUND)
    if usual and cells > CELLS_PER_SECOND * budget:
        order.sort(key=lambda name: name not in QUICK)
    played.hold(hall.play, order, budget - (time.monotonic() - begun))
    if not played.outcomes:
        raise ValueError(hall.too_little(budget, len(known)))
    outcomes = played.outcomes
    return Advice(
        outcomes[STATIONARY],
        outcomes.get(CHANGING),
        _robust(outcomes[STATIONARY], known),
        played.runs,
        time.monotonic() - begun,
        env.delays,
        tuple(name for name in played.unfinished if name != UNIFORM),
    )


def _problems(family: Any, actions: int, states: int, delays: Any) -> dict[str, list[Environment]]:
    """kind -> its instances."""
    kind = family_of(family)
    given = [(kind, actions, states, delays, i) for i in range(kind.instances)]
    both = [in_turns(*one) for one in given]
    if None in both:
        return {STATIONARY: [problem(*one) for one in given]}
    return {name: [one[i] for one in both if one] for i, name in enumerate((STATIONARY, CHANGING))}


def _robust(outcome: Outcome, known: Mapping[str, Any]) -> str | None:
    """The least mean among those with a guarantee."""
    means = {one.name: one.mean for one in (*outcome.left, *outcome.comparison.rows)}
    safe = [name for name in means if is_robust(known[name])]
    return min(safe, key=lambda name: means[name]) if safe else None


def _checked(learners: Any) -> dict[str, Any]:
    if not isinstance(learners, Mapping):
        raise TypeError(f"learners must map labels to learners, but got {checks.shown(learners)}")
    if len(learners) < TWO:
        raise ValueError(f"learners must be two or more, but got {list(learners)}")
    if UNIFORM in learners:
        raise ValueError(f"a learner cannot be called {UNIFORM!r}: that one plays as a yardstick")
    for name, learner in learners.items():
        checks.learner(f"learners[{name!r}]", learner)
    return dict(learners)
