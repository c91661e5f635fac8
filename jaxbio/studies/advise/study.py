"""Which learner should I run at my K, S, T and delays? Played, not looked up.

Learners play a family of problems of the user's size in the same worlds, more and more runs, until
a winner is beyond doubt or time is over. A test is made after every look at the results, each at a
share of the level, so that looking often does not make a winner of chance.
"""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbio import checks, rng
from jaxbio.analysis.compare import compare
from jaxbio.analysis.comparison import Comparison
from jaxbio.analysis.statistics import RESAMPLES
from jaxbio.environment.environment import Environment
from jaxbio.storage.store import part
from jaxbio.studies.contestants import contestants, is_robust
from jaxbio.studies.families import FAMILY, family_of, problem
from jaxbio.sweeps.sweep import sweep
from jaxbio.sweeps.workers import OutOfTime, time_limit

SECONDS = 45.0
LOOKS = 6  # at the results; runs double from one to the next
LEVEL = 0.05  # the probability, at most, that any look names a winner among equals
FIRST = 32  # games of each learner before the first look
ROUNDS = 3_200_000  # of each learner before the first look, at most, unless games are fewer than
FEWEST = 8
FIRST_SHARE = 2 / 3  # of the time: after a longer first look there is no second
TWO = 2  # learners make the smallest answer


@dataclass(frozen=True)
class Advice:
    """What the runs say.

    overall: all learners, for a mapping that does not change. robust: those whose regret is bounded
    where it may (see `is_robust`), compared on the same games, in which it does not; None where
    fewer than two of them played. runs: of each learner. Where the family has several instances, a
    run is one on each of them, and its regret their mean: what is compared is the mean over these
    very instances. delays: the law, of the first instance, as it was played (a family of the user's
    may have its own). unfinished: learners that time did not allow.
    """

    overall: Comparison
    robust: Comparison | None
    runs: int
    seconds: float
    delays: Any = None
    unfinished: tuple[str, ...] = ()

    @property
    def decided(self) -> bool:
        """Has every comparison a winner?"""
        asked = [self.overall, self.robust]
        return all(one.winner is not None for one in asked if one is not None)


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
      learners: label -> learner (default: `contestants()`).
      seconds: to spend. Programs are compiled first, whatever that takes (some seconds for each
        learner). Then the first look is played for so long at most: learners that are finished
        by then are compared, the others are named in `unfinished`, and where fewer than two are
        it is an error that says what would be enough. No other look begins that is not expected
        to end in this time, compiling included, and it is given up a third after it.
      looks, first: at most so many looks at the results; the first at so many games of each
        learner (fewer where they are long), each further one at twice as many as the one before.
      level: the probability, at most, that a winner is named among equals.
      seed: the root seed. No run is one of `simulate`, `sweep` or the search of `tune` with the
        same seed: a tuned learner is judged in worlds that it has not seen.
      store: a folder for finished parts; the same call goes on where it was interrupted.
      progress: show bars.
    """
    actions, states = checks.size("actions", actions, 2), checks.size("states", states, 1)
    looks, first = checks.size("looks", looks, 1, 30), checks.size("first", first, 2)
    level = checks.probability_of_error("level", level)
    budget = checks.number("seconds", seconds, 0, open_low=True)
    known = _checked(contestants() if learners is None else learners)
    horizon = checks.size("horizon", horizon, 1)
    kind = family_of(family)
    problems = [problem(kind, actions, states, delays, i) for i in range(kind.instances)]
    few = min(first, max(FEWEST, ROUNDS // horizon))
    units = max(min(FEWEST, first), few // len(problems))  # a unit is a game on every instance
    games = [units * 2 ** max(look - 1, 0) for look in range(looks)]
    root = checks.seed(seed)
    finals: dict[str, np.ndarray] = {}
    begun, times = time.monotonic(), []
    for look, runs in enumerate(games):
        own = time.monotonic()
        rest = budget if look == 0 else 4 / 3 * budget - (own - begun)
        given: Any = {
            "horizon": horizon,
            "runs": runs,
            "seed": rng.stream_key(root, look),
            "store": part(store, f"look-{look}"),
            "progress": progress,
        }
        try:
            more = _played(problems, known, rest, given)
        except OutOfTime as late:
            if look > 0:  # its games are not looked at
                break
            more = _finished(late, known, budget)
        finals = {name: np.concatenate([finals.get(name, []), more[name]]) for name in more}
        compared = _advice(finals, known, level / looks, time.monotonic() - begun)
        times.append(time.monotonic() - own)
        short = len(finals) < len(known)
        if compared.decided or short or not _fits(times, games, budget):
            break
    return dataclasses.replace(
        compared,
        delays=problems[0].delays,
        unfinished=tuple(name for name in known if name not in finals),
        seconds=time.monotonic() - begun,
    )


def _played(
    problems: Sequence[Environment], known: Mapping[str, Any], seconds: float, given: Any
) -> dict[str, np.ndarray]:
    """label -> final regrets [runs], means over the problems; played in so many seconds at most."""
    instances = list(range(len(problems)))
    with time_limit(max(seconds, 0)):
        data = sweep(
            lambda instance: problems[instance],
            known,
            {"instance": instances},
            rounds=1,
            keep="finals",
            **given,
        )
    regret = data.final_regret.mean("instance")
    return {name: regret.sel(learner=name).values for name in known}


def _finished(late: OutOfTime, known: Mapping[str, Any], seconds: float) -> dict[str, np.ndarray]:
    """label -> final regrets [runs], of the learners all of whose games are finished."""
    found = {
        name: np.mean([row for label, row in late.finals if label == name], axis=0)
        for name in known
    }
    whole = {name: row for name, row in found.items() if not np.isnan(row).any()}
    if len(whole) >= TWO:
        return whole
    all_of_them = math.inf if late.played == 0 else seconds * late.rounds / late.played
    raise ValueError(
        f"seconds={seconds:g} of play are too few for advice: {late.played:,} of {late.rounds:,} "
        f"rounds were played; at this speed the smallest answer, about two learners, takes "
        f"{_about(all_of_them * TWO / len(known))} seconds, and one about all {len(known)} takes "
        f"{_about(all_of_them)}"
    )


def _about(seconds: float) -> str:
    """Rounded up to two digits."""
    if not math.isfinite(seconds):
        return "much more"
    unit = 10.0 ** math.floor(math.log10(max(seconds, 1)) - 1)
    return f"about {math.ceil(seconds / unit) * unit:,.10g}"


def _checked(learners: Any) -> dict[str, Any]:
    if not isinstance(learners, Mapping):
        raise TypeError(f"learners must map labels to learners, but got {checks.shown(learners)}")
    if len(learners) < 2:
        raise ValueError(f"learners must be two or more, but got {list(learners)}")
    for name, learner in learners.items():
        checks.learner(f"learners[{name!r}]", learner)
    return dict(learners)


def _fits(times: Sequence[float], games: Sequence[int], budget: float) -> bool:
    """Is there time for another look? times: of the looks made; games: of all looks.

    The first look compiles programs, so that its time says little about games: the second, of as
    many, takes no longer. After that a game takes what it took since the first look.
    """
    made = len(times)
    if made == 1:
        return times[0] <= FIRST_SHARE * budget
    per_game = sum(times[1:]) / sum(games[1:made])
    return made < len(games) and sum(times) + per_game * games[made] <= budget


def _advice(
    finals: Mapping[str, np.ndarray],
    known: Mapping[str, Any],
    level: float,
    seconds: float,
    resamples: int = RESAMPLES,
) -> Advice:
    """level: of all that is asked, shared equally between the two questions."""
    robust = {name: values for name, values in finals.items() if is_robust(known[name])}
    both = 1 < len(robust) < len(finals)
    each = level / 2 if both else level
    overall = compare(finals, level=each, resamples=resamples)
    among = compare(robust, level=each, resamples=resamples) if len(robust) > 1 else None
    return Advice(overall, among, len(next(iter(finals.values()))), seconds)
