"""Where the games of a tournament are played, in the time that there is."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import rng
from jaxbio.storage.store import part
from jaxbio.studies.advise.problems import Deal, Problems
from jaxbio.studies.advise.tournament import TWO, Finals
from jaxbio.sweeps.sweep import sweep
from jaxbio.sweeps.workers import OutOfTime, time_limit

TOGETHER = 2  # learners of a wave, and of a part in the store, whatever the number of cores
SHARE = 1 / 3  # of what is left, that a wave may take while others wait
Curves = dict[str, dict[str, np.ndarray]]  # learner -> kind of problem -> regret [games, points]
BEGUN = 0.5  # of what a wave took, that has to be left where another one begins


class Hall:
    """Where the games are played. Of sweeps that ended before their games did: late: how many
    learners; asked, played: all rounds, and those that were played; seconds: that they had.

    rounds, curves: look -> name -> kind -> regret [games, points] at these rounds, where it is
    recorded.
    """

    def __init__(
        self,
        problems: Problems,
        known: Mapping[str, Any],
        horizon: int,
        root: Any,
        store: Any,
        progress: bool,
    ) -> None:
        self.problems, self.known, self.horizon = problems, known, horizon
        self.root, self.store, self.progress = root, store, progress
        self.seconds, self.played, self.asked, self.late = 0.0, 0, 0, 0
        self.rounds = np.empty(0, int)
        self.curves: dict[int, Curves] = {}

    def play(self, names: Sequence[str], look: int, runs: int, seconds: float) -> Finals:
        """Those that are finished in so many seconds: name -> kind -> final regrets [runs].

        In the first look a few at a time, as each is compiled first, and so that long games of some
        do not keep the others from playing: who is not finished in a third of what is left plays
        again at the end.
        """
        deadline = time.monotonic() + seconds
        found: Finals = {}
        waves = [*_waves(names)] if look == 0 else [list(names)]
        shortest, late = math.inf, []
        for number, some in enumerate(waves):
            begun = time.monotonic()
            rest = deadline - begun
            if rest <= 0 or (found and rest <= shortest * BEGUN):
                break
            mine = rest * SHARE if number + 1 < len(waves) else rest
            found |= self._play(some, look, runs, mine, compiling=number > 0 or look > 0)
            shortest = min(shortest, time.monotonic() - begun)
            if not set(some) <= set(found):
                late.append((some, mine))
        for some, mine in late:
            rest = deadline - time.monotonic()
            if len(found) < TWO:  # compiling took the time: the smallest answer may play
                rest = max(rest, seconds - self.seconds)
            if rest > mine:
                again = some if self.store else [name for name in some if name not in found]
                found |= self._play(again, look, runs, rest, compiling=True)
        return found

    def _part(self, look: int, names: Sequence[str]) -> Any:
        """Of the store: for these learners, whoever else plays."""
        digest = hashlib.sha256(repr(list(names)).encode()).hexdigest()[:8]
        return part(self.store, f"look-{look}-{digest}")

    def _play(
        self, names: Sequence[str], look: int, runs: int, seconds: float, *, compiling: bool
    ) -> Finals:
        deal, points = self.problems.deal(look, runs), self.problems.rounds
        try:
            with time_limit(seconds, compiling=compiling):
                data = sweep(
                    deal.environment,
                    {name: self.known[name] for name in names},
                    deal.axes,
                    horizon=self.horizon,
                    runs=deal.runs,
                    seed=rng.stream_key(self.root, look),
                    rounds=min(points or 1, self.horizon),
                    keep="curves" if points else "finals",
                    store=self._part(look, names),
                    progress=self.progress,
                )
        except OutOfTime as late:
            self.played, self.asked = self.played + late.played, self.asked + late.rounds
            self.seconds += seconds
            self.late += len(names)
            rows = {name: np.array([row for label, row in late.finals if label == name])
                    for name in names}  # fmt: skip
            finals = {name: row for name, row in rows.items() if not np.isnan(row).any()}
            return {name: deal.folded(row) for name, row in finals.items()}
        if points:
            self._keep(data, look, deal)
        regret = data.final_regret.stack(point=[*deal.axes]).transpose("learner", "point", "run")
        return {name: deal.folded(regret.sel(learner=name).values) for name in names}

    def _keep(self, data: xr.Dataset, look: int, deal: Deal) -> None:
        """The curves of a sweep."""
        self.rounds = data["round"].values
        regret = data.regret.stack(point=[*deal.axes]).transpose("learner", "point", "run", "round")
        kept = self.curves.setdefault(look, {})
        for name in data.learner.values.tolist():
            kept[name] = deal.folded(regret.sel(learner=name).values)

    def too_little(self, seconds: float, learners: int) -> str:
        """How much time is enough, as far as that can be told."""
        said = f"seconds={seconds:g} are too few for advice: fewer than two learners finished"
        if not self.played:
            return f"{said}, and nothing is known of their speed: give it more"
        each = self.seconds * self.asked / self.played / self.late
        return (
            f"{said}; at this speed two take {_about(TWO * each)} seconds of play, "
            f"and all of them {_about((learners + 1) * each)}"
        )


def _waves(names: Sequence[str]) -> Iterator[list[str]]:
    return (list(names[i : i + TOGETHER]) for i in range(0, len(names), TOGETHER))


def _about(seconds: float) -> str:
    """Rounded up to two digits."""
    unit = 10.0 ** math.floor(math.log10(max(seconds, 1)) - 1)
    return f"about {math.ceil(seconds / unit) * unit:,.10g}"
