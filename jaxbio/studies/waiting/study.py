"""How long should one wait before what has not come counts as not coming? Played on a log."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import checks, rng
from jaxbio.analysis.compare import compare
from jaxbio.analysis.comparison import Comparison
from jaxbio.analysis.statistics import LEVEL, of_margin
from jaxbio.analysis.windows import sweep_windows
from jaxbio.data.fitted import Fit
from jaxbio.data.fitting import fit
from jaxbio.data.kinds import CONVERSIONS
from jaxbio.data.log import Log
from jaxbio.environment.empirical import EmpiricalDelay
from jaxbio.environment.environment import Environment
from jaxbio.studies.advise.from_log import playable
from jaxbio.studies.advise.log_advice import Expected
from jaxbio.studies.advise.playing import ROUNDS, SECONDS, checked_learners
from jaxbio.studies.contestants import everybody
from jaxbio.studies.waiting import text

SHARES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)  # of conversions, within a window
NAMES = ("StateThompson", "Thompson sampling", "NSD-UCRL2, radius x 0.3", "UCB1, exploration 0.2")
FEWEST, GAMES = 8, 64


@dataclass(frozen=True, repr=False)
class Waiting:
    """What every learner loses with every window.

    fit: of the log. windows: in rounds, increasing. horizon: rounds of a game. finals: name ->
    regret at the end [windows, games]; the games of all windows and learners are the same ones,
    each with a problem of its own, drawn from what the log leaves possible. in_time: [windows, S],
    the share of the conversions of a state that come within the window; in_time_of_all: [windows].
    """

    fit: Fit
    windows: tuple[int, ...]
    horizon: int
    finals: dict[str, np.ndarray]
    in_time: np.ndarray
    in_time_of_all: np.ndarray

    @property
    def games(self) -> int:
        return next(iter(self.finals.values())).shape[1]

    @cached_property
    def best(self) -> tuple[str, int]:
        """The learner and the window with the least mean regret."""
        means = {name: own.mean(axis=1) for name, own in self.finals.items()}
        name = min(means, key=lambda one: means[one].min())
        return name, self.windows[int(means[name].argmin())]

    @cached_property
    def comparison(self) -> Comparison | None:
        """Of the windows, with the best learner; None of a single one."""
        if len(self.windows) == 1:
            return None
        own = self.finals[self.best[0]]
        return compare({str(window): own[i] for i, window in enumerate(self.windows)}, level=LEVEL)

    @property
    def as_good(self) -> list[int]:
        """Windows that may be the best, with the best learner."""
        if self.comparison is None:
            return list(self.windows)
        return sorted(map(int, self.comparison.contenders))

    def regret(self, name: str, window: int) -> Expected:
        """In losses, all rounds together."""
        return _expected(self.finals[name][self.windows.index(window)])

    def costs(self, window: int) -> Expected:
        """How much more the best learner loses with this window than with the best one."""
        name, best = self.best
        own = self.finals[name]
        return _expected(own[self.windows.index(window)] - own[self.windows.index(best)])

    def summary(self) -> str:
        """The answer, then the table that it rests on."""
        return text.as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return text.as_dict(self)

    def __repr__(self) -> str:
        name, window = self.best
        return (
            f"Waiting of {len(self.windows)} windows: {window:,} rounds are best, with {name} "
            f"({self.games} games of {self.horizon:,} rounds)"
        )


def worth_of_waiting(
    log: Log,
    *,
    windows: Sequence[int] | None = None,
    learners: Mapping[str, Any] | None = None,
    horizon: int | None = None,
    games: int | None = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Waiting:
    """Play learners with several waiting windows on the problem of a log of conversions.

    In such a log only events arrive, as purchases: that nothing comes is known when somebody stops
    waiting. A short window is soon over and misses late events, a long one misses none and makes a
    learner wait. Regret counts the true losses, so that it can be compared.

    Args:
      log: of `read_log`.
      windows: in rounds, increasing; by default those within which from 10 to 99.9 % of the
        conversions come.
      learners: label -> learner, two or more; by default four of those that `advise` plays.
      horizon: rounds of a game; by default as many as the log has rows, or about 200,000.
      games: of each learner with each window; by default from 8 to 64, fewer where they are long.
      seed: the root seed.
      store: a folder for finished parts; the same call goes on where it was interrupted.
      progress: show bars.
    """
    found = fit(log)
    if found.kind != CONVERSIONS:
        raise ValueError(
            "there is no window to choose in this log: every decision has an outcome some time, "
            "and none has to be given up (jb.fit says kind='outcomes')"
        )
    seed = checks.integer("seed", seed, 0)
    length = playable(log, SECONDS) if horizon is None else checks.size("horizon", horizon, 1)
    most = max(FEWEST, min(GAMES, ROUNDS // length))
    count = most if games is None else checks.size("games", games, 2)
    given = {name: everybody()[name] for name in NAMES} if learners is None else learners
    known = checked_learners(given)
    waits = usual(found) if windows is None else checks.increasing("windows", windows, 0)
    data = sweep_windows(
        [_drawn(found, seed, number, waits) for number in range(count)],
        known,
        waits,
        horizon=length,
        absent=found.absent,
        runs=1,
        rounds=1,
        keep="finals",
        seed=rng.stream_key(seed, STREAM),
        store=store,
        progress=progress,
    )
    shares = _in_time(found, waits)
    return Waiting(found, tuple(waits), length, _finals(data), shares, shares @ _converting(found))


STREAM = 1 << 20  # no look of `advise` has these worlds


def usual(found: Fit) -> list[int]:
    """Windows within which these shares of all conversions come; one where all are equally late."""
    delays, masses = _law(found)
    come = np.cumsum(_converting(found) @ masses)
    places = np.searchsorted(come, np.array(SHARES) * come[-1] - 1e-9)
    return sorted({int(delays[min(place, len(delays) - 1)]) for place in places})


def _in_time(found: Fit, windows: Sequence[int]) -> np.ndarray:
    """[windows, S]."""
    delays, masses = _law(found)
    return np.stack([masses[:, delays <= window].sum(axis=1) for window in windows])


def _law(found: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Delays of conversions [n], increasing, and their probabilities [S, n]."""
    law = found.environment().delays.law
    states = found.log.num_states
    if not isinstance(law, EmpiricalDelay):  # one delay for all
        return np.array([law.longest()]), np.ones((states, 1))
    masses = np.atleast_2d(law.masses())[:, :-1]
    return np.arange(masses.shape[1]), np.broadcast_to(masses, (states, masses.shape[1]))


def _converting(found: Fit) -> np.ndarray:
    """[S]: the share of all conversions that a state has."""
    share = found.log.counts.sum(axis=0) * np.abs(found.losses.mean - found.absent)
    return share / share.sum()


def _drawn(found: Fit, seed: int, number: int, windows: Sequence[int]) -> Environment:
    """A problem that the log leaves possible, with the delays of conversions in a small table."""
    words = np.random.SeedSequence([seed, number]).generate_state(1)
    env = found.sample(int(words[0] >> 1))
    law = env.delays.law
    if isinstance(law, EmpiricalDelay):
        law = law.coarser(edges=[window for window in windows if window <= law.longest()])
    return dataclasses.replace(env, delays=law)


def _finals(data: xr.Dataset) -> dict[str, np.ndarray]:
    """name -> [windows, games]"""
    final = data.final_regret.transpose("learner", "window", "world", "run")
    return {str(name): final.sel(learner=name).values[..., 0] for name in data.learner.values}


def _expected(values: np.ndarray) -> Expected:
    found = of_margin(values)
    return Expected(found.mean, *found.interval())
