"""Advice for a log: what the games say, in losses of the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jaxbio import checks
from jaxbio.analysis.statistics import of_margin
from jaxbio.data.fitted import Fit
from jaxbio.data.holding.check import ModelChecks
from jaxbio.data.log import Log
from jaxbio.studies.advise import log_text
from jaxbio.studies.advise.advice import Advice
from jaxbio.studies.advise.log_problems import RANDOM
from jaxbio.studies.advise.problems import CHANGING, STATIONARY
from jaxbio.studies.advise.tournament import Finals, Outcome
from jaxbio.studies.advise.turns import Turns

THOUSAND = 1_000


class Expected(NamedTuple):
    """A mean over games, with its 95 % interval."""

    mean: float
    low: float
    high: float

    def per(self, rounds: float) -> Expected:
        """The same in each so many."""
        return Expected(*(value / rounds for value in self))


@dataclass(frozen=True, kw_only=True)
class LogAdvice(Advice):
    """What games on the problems that a log leaves possible say.

    Every game is played on a problem of its own, drawn from the posterior of the fit, in a world of
    its own; all learners play the same games. So an interval over games is one over both, over what
    the log does not tell and over chance in play.

    log, fit, checks, turns: the log, what was fitted, whether the model holds, how much the mapping
    changed. horizon: rounds of a game; rounds_of_log: as many as the log has rows, which is the
    horizon unless the user or the time says otherwise. finals: name -> kind -> final regret
    [games]; yardsticks: kind -> name -> that of who does not learn, on the same games. rounds,
    curves: regret [games, points] at these rounds, name -> kind -> array, of the learners that were
    finished in time. best_looking: the action with the least mean loss by the log.
    """

    log: Log
    fit: Fit
    checks: ModelChecks
    turns: Turns
    horizon: int
    asked: bool
    seed: int
    best_looking: str
    finals: Finals
    yardsticks: dict[str, dict[str, np.ndarray]]
    rounds: np.ndarray
    curves: dict[str, dict[str, np.ndarray]]

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """Of each kind of problem."""
        both = {STATIONARY: self.stationary, CHANGING: self.changing}
        return {kind: one for kind, one in both.items() if one is not None}

    @property
    def shortened(self) -> bool:
        """Are games shorter than the log, as longer ones would not be over in time?"""
        return not self.asked and self.horizon < len(self.log)

    @property
    def span(self) -> float:
        """What a loss of 1 is in the units of the user's outcomes."""
        low, high = self.log.bounds
        return high - low

    @property
    def always(self) -> str:
        """What playing the best-looking action of the log all the time is called."""
        return f"always {self.best_looking}"

    def regret(self, name: str, kind: str = STATIONARY) -> Expected:
        """Of a learner that stayed to the end, or of a yardstick: all rounds together."""
        return _expected(self._games(name, kind))

    def saved(self, against: str = RANDOM, kind: str = STATIONARY) -> Expected:
        """How much less the recommended learner loses than another, or than a yardstick."""
        named = self.outcomes[checks.choice("kind", kind, tuple(self.outcomes))].named
        return _expected(self._games(against, kind) - self._games(named, kind))

    def _games(self, name: str, kind: str) -> np.ndarray:
        """[games], of those that played all of them."""
        checks.choice("kind", kind, tuple(self.outcomes))
        known = self.yardsticks[kind] | {
            row.name: self.finals[row.name][kind] for row in self.outcomes[kind].comparison.rows
        }
        return known[checks.choice("name", name, tuple(known))]

    def summary(self) -> str:
        """The answer, what it rests on, and its limits."""
        return log_text.as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return log_text.as_dict(self)

    def __repr__(self) -> str:
        return log_text.in_short(self)


def _expected(values: np.ndarray) -> Expected:
    found = of_margin(values)
    return Expected(found.mean, *found.interval())
