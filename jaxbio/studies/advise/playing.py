"""Who plays, how many games there are, and who comes first: what a tournament is held with."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax

from jaxbio import checks
from jaxbio.studies.advise.hall import Hall
from jaxbio.studies.advise.problems import Problems
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

SECONDS = 45.0
LOOKS = 8  # at the results; runs double from one to the next
LEVEL = 0.05  # the probability, at most, that any look names a winner among equals
FIRST = 32  # games of each learner before the first look
ROUNDS = 3_200_000  # of each learner before the first look, at most, unless games are fewer than
FEWEST = 8
CELLS = 256  # of a mapping: with more of them a round counts for several
CELLS_PER_SECOND = 1.6e8  # of mappings; with more of them the likeliest winner may not finish
ROUND = 150  # cells that a round takes the time of, besides those of its mapping
YARDSTICK = 9  # learners play before playing at random does


class Rules(NamedTuple):
    """How long is played, and how sure a decision must be: as in `advise`."""

    seconds: float
    looks: int
    first: int
    level: float
    seed: Any
    store: str | os.PathLike[str] | None
    progress: bool

    def checked(self) -> Rules:
        """An error where one of them is no such thing."""
        return self._replace(
            looks=checks.size("looks", self.looks, 1, 30),
            first=checks.size("first", self.first, 2),
            level=checks.probability_of_error("level", self.level),
            seconds=checks.number("seconds", self.seconds, 0, open_low=True),
            seed=checks.seed(self.seed),
        )


class Held(NamedTuple):
    """A tournament that is over. outcomes: kind -> `Outcome`; known: label -> learner."""

    outcomes: dict[str, Outcome]
    known: dict[str, Any]
    tournament: Tournament
    hall: Hall

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Learners that time did not allow."""
        return tuple(name for name in self.tournament.unfinished if name != UNIFORM)

    @property
    def games(self) -> list[int]:
        """Of the looks that were made."""
        found: list[int] = []
        for games in self.tournament.games:
            if sum(found) < self.tournament.runs:
                found.append(games)
        return found

    def robust(self, kind: str) -> str | None:
        """The least mean among those with a guarantee."""
        outcome = self.outcomes[kind]
        means = {one.name: one.mean for one in (*outcome.left, *outcome.comparison.rows)}
        safe = [name for name in means if is_robust(self.known[name])]
        return min(safe, key=lambda name: means[name]) if safe else None


def hold(
    problems: Problems,
    learners: Mapping[str, Any] | None,
    horizon: int,
    rules: Rules,
    *,
    begun: float,
    yardstick: bool = True,
) -> Held:
    """Play, see `advise`. begun: when the seconds began; yardstick: is playing at random played?"""
    env = problems.any()
    cells = env.num_actions * env.num_states
    usual = learners is None
    known = checked_learners(everybody(cells * horizon) if usual else learners)
    work = horizon * max(1, cells // CELLS)
    few = min(rules.first, max(FEWEST, ROUNDS // work))
    units = max(min(FEWEST, rules.first), few // problems.instances)
    hall = Hall(
        problems, known | uniform_play(), horizon, rules.seed, rules.store, rules.progress
    )  # fmt: skip
    with_states = [name for name, one in known.items() if looks_at_states(one, env)]
    without = [name for name in known if name not in with_states]
    played = Tournament(
        (with_states, without),
        UNIFORM if yardstick else None,
        [units * 2 ** max(look - 1, 0) for look in range(rules.looks)],
        rules.level,
        problems.kinds,
        form_of=lambda name: jax.tree.structure(known[name]),
        unusual=UNUSUAL if usual else frozenset(),
        enough=max(TWO, ENOUGH // problems.instances),
    )
    order = [*known]
    if yardstick:
        order.insert(YARDSTICK, UNIFORM)
    ahead = units * len(problems.kinds) * problems.instances * horizon * (cells + ROUND)
    if usual and ahead > CELLS_PER_SECOND * rules.seconds:
        order.sort(key=lambda name: name not in QUICK)
    played.hold(hall.play, order, rules.seconds - (time.monotonic() - begun))
    if not played.outcomes:
        raise ValueError(hall.too_little(rules.seconds, len(known)))
    return Held(played.outcomes, known, played, hall)


def checked_learners(learners: Any) -> dict[str, Any]:
    """Two or more by label."""
    if not isinstance(learners, Mapping):
        raise TypeError(f"learners must map labels to learners, but got {checks.shown(learners)}")
    if len(learners) < TWO:
        raise ValueError(f"learners must be two or more, but got {list(learners)}")
    if UNIFORM in learners:
        raise ValueError(f"a learner cannot be called {UNIFORM!r}: that one plays as a yardstick")
    for name, learner in learners.items():
        checks.learner(f"learners[{name!r}]", learner)
    return dict(learners)
