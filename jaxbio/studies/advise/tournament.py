"""A tournament: learners play the same worlds, and who is surely beaten plays no further.

After every look at the results a learner leaves when others of its group are surely better, on
every kind of problem that is played. As one that fails badly in a game of a hundred may look best
before it has failed, one other is not enough while games are few: without the best, in all its
forms, there must be another that is surely better. Those that stay play twice as many games before
the next look. So time goes to the few that can still be the best, with states and without.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from jaxbio.analysis.compare import compare
from jaxbio.analysis.comparison import Comparison
from jaxbio.analysis.statistics import RESAMPLES, of_margin, ratio_of_means

ENOUGH = 256  # games before it ends for any reason but time: failures in one of 100 have shown
LATE = 0.1  # of the time: that a look which was expected to end in time may take longer
RISK = 2.0  # times the regret of an unusual form: as long as games are few, less is not worth it
CLOSE = 0.05  # an answer to what states are worth is good when its interval reaches no further
TWO = 2  # learners make the smallest answer
TESTS = 3  # of a kind of problem at every look: all learners, those with states, those without

Finals = dict[str, dict[str, np.ndarray]]  # learner -> kind of problem -> final regrets [runs]
# (names, look, runs, seconds) -> what is finished by then
Play = Callable[[Sequence[str], int, int, float], Finals]


class Left(NamedTuple):
    """A learner that left early: its mean regret then, with its 95 % interval, of so many games."""

    name: str
    mean: float
    low: float
    high: float
    runs: int


class Worth(NamedTuple):
    """What states are worth: the mean regret of the best learner that looks at them relative to
    that of the best one that does not, with its 95 % interval. runs: that it was measured on. The
    two learners were chosen by the games before, where there were any (`fresh`).
    """

    with_states: str
    without: str
    ratio: float
    low: float
    high: float
    runs: int
    fresh: bool


@dataclass(frozen=True)
class Outcome:
    """Of one kind of problem. comparison: of those that stayed, on all their games; left: those
    that did not; worth: None where all learners look at states or none does, or where a mean regret
    is not above 0; uniform: the mean regret of playing at random; unusual: forms of which some
    fail rarely and badly; few: are games too few to tell how often?
    """

    comparison: Comparison
    left: tuple[Left, ...]
    worth: Worth | None
    uniform: float | None
    unusual: frozenset[str] = frozenset()
    few: bool = False

    @property
    def named(self) -> str:
        """The least mean regret, but an unusual form only where it is surely better than the best
        usual one; while games are few, where that has twice as much.
        """
        least = self.comparison.rows[0]
        usual = [row for row in self.comparison.rows if row.name not in self.unusual]
        if not usual:
            return least.name
        if self.few:
            worth_it = usual[0].mean >= RISK * least.mean
        else:
            worth_it = usual[0].name not in self.comparison.contenders
        return least.name if worth_it else usual[0].name

    @property
    def beaten(self) -> list[Left]:
        """Those that left, the least mean first."""
        return sorted(self.left, key=lambda left: left.mean)

    @property
    def decided(self) -> bool:
        """Is there a winner, and is it known what states are worth?"""
        close = self.worth is None or self.worth.high - self.worth.low <= 2 * CLOSE
        return self.comparison.winner is not None and close


@dataclass
class Tournament:
    """groups: names of those with states, of those without; yardstick: plays the first look alone.
    form_of: name -> what learners that are forms of one have in common; by default all differ.
    unusual: see `Outcome`. enough: games that are not few.

    games: of each look. level: the probability, at most, that a learner with the least true mean of
    its group leaves, or that a winner is wrongly named, at any look.
    """

    groups: tuple[list[str], list[str]]
    yardstick: str | None
    games: Sequence[int]
    level: float
    kinds: tuple[str, ...]
    resamples: int = RESAMPLES
    form_of: Callable[[str], Any] = str
    unusual: frozenset[str] = frozenset()
    enough: int = ENOUGH
    finals: Finals = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)  # name -> games
    unfinished: tuple[str, ...] = ()
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Those that still play, in the order in which they were given."""
        gone = {*self.left, *self.unfinished}
        return [name for group in self.groups for name in group if name not in gone]

    @property
    def runs(self) -> int:
        """Of those that stayed."""
        return len(self.finals[self.names[0]][self.kinds[0]])

    @property
    def each(self) -> float:
        """The level of a single test."""
        return self.level / (TESTS * len(self.kinds) * len(self.games))

    def hold(self, play: Play, order: Sequence[str], seconds: float) -> None:
        """Play until everything is decided, or nothing more fits into the time. order: of the names
        in the first look, for where time does not allow them all.

        A look may take all the time that is left, one that was expected to fit a little more.
        """
        begun, times, work = time.monotonic(), [], []
        for look, runs in enumerate(self.games):
            began = time.monotonic()
            rest = seconds * (1 + LATE * (look > 1)) - (began - begun)
            names = list(order) if look == 0 else self.names
            more = play(names, look, runs, rest)
            if look == 0:
                self.unfinished = tuple(name for name in order if name not in more)
                if len(self.names) < TWO:
                    return
            elif len(more) < len(names):
                return  # its games are not looked at
            self._look(more)
            times.append(time.monotonic() - began)
            work.append(runs * len(names))
            ahead = self.games[look + 1] * len(self.names) if look + 1 < len(self.games) else None
            decided = (
                all(one.decided for one in self.outcomes.values()) and self.runs >= self.enough
            )
            if decided or ahead is None or len(self.names) < TWO:
                return
            if not fits(times, work, ahead, seconds):
                return

    def _look(self, more: Finals) -> None:
        """Take in the games of a look, and let go who is surely beaten."""
        before = self.finals
        self.finals = {**before, **{name: _joined(before.get(name), own)
                                    for name, own in more.items()}}  # fmt: skip
        playing, runs = self.names, self.runs
        beaten = {name for group in self.groups for name in self._beaten(self._of(group, playing))}
        for kind in self.kinds:
            self.outcomes[kind] = self._outcome(kind, playing, before, more)
        self.left |= {name: runs for name in playing if name in beaten}

    def _beaten(self, finals: Finals) -> set[str]:
        """Those of a group that are surely not the best of it on any kind of problem; while games
        are few, not even when whoever is the best there, in all its forms, is left out.
        """
        safe: set[str] = set()
        for kind in self.kinds:
            regrets = {name: own[kind] for name, own in finals.items()}
            safe |= self._contenders(regrets)
            if finals and self.runs < self.enough:
                best = self.form_of(min(regrets, key=lambda name: regrets[name].mean()))
                others = {name: own for name, own in regrets.items() if self.form_of(name) != best}
                safe |= self._contenders(others)
        return set(finals) - safe

    def _contenders(self, regrets: dict[str, np.ndarray]) -> set[str]:
        if len(regrets) < TWO:
            return set(regrets)
        return set(compare(regrets, level=self.each, resamples=1).contenders)

    def _of(self, group: Sequence[str], playing: Sequence[str]) -> Finals:
        return {name: self.finals[name] for name in playing if name in group}

    def _outcome(self, kind: str, playing: Sequence[str], before: Finals, more: Finals) -> Outcome:
        return Outcome(
            compare(
                {name: self.finals[name][kind] for name in playing},
                level=self.each,
                resamples=self.resamples,
            ),
            tuple(_left(name, self.finals[name][kind]) for name in self.left),
            self._worth(kind, playing, before, more),
            float(self.finals[self.yardstick][kind].mean())
            if self.yardstick in self.finals
            else None,
            self.unusual,
            self.runs < self.enough,
        )

    def _worth(
        self, kind: str, playing: Sequence[str], before: Finals, more: Finals
    ) -> Worth | None:
        groups = [[name for name in playing if name in group] for group in self.groups]
        if not all(groups):
            return None
        fresh = all(name in before for name in playing)
        chosen_by = before if fresh else more
        both = [min(group, key=lambda name: chosen_by[name][kind].mean()) for group in groups]
        with_states, without = (more[name][kind] for name in both)
        ratio, low, high = map(float, ratio_of_means(with_states, without))
        if not math.isfinite(high - low):
            return None
        return Worth(both[0], both[1], ratio, low, high, len(with_states), fresh)


def _joined(
    before: Mapping[str, np.ndarray] | None, more: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    pieces = [before, more] if before is not None else [more]
    return {kind: np.concatenate([one[kind] for one in pieces]) for kind in more}


def _left(name: str, regrets: np.ndarray) -> Left:
    return Left(name, float(regrets.mean()), *of_margin(regrets).interval(), len(regrets))


def fits(times: Sequence[float], work: Sequence[float], ahead: float, seconds: float) -> bool:
    """Is there time for another look? times, work: seconds and games of the looks made; ahead:
    games of the next one.

    The first look compiles programs, so that its time says little about games: the second is tried
    with whatever time there is. After that a game takes what it took since the first look.
    """
    rest = seconds - sum(times)
    if len(times) == 1:
        return rest > 0
    return sum(times[1:]) / sum(work[1:]) * ahead <= rest
