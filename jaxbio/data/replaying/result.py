"""What a replay has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbio import checks
from jaxbio.data.replaying import text
from jaxbio.data.replaying.noise import Estimate, Variance, between_logs, of_mean, reach


@dataclass(frozen=True)
class Used:
    """The rows behind a replay.

    rows: of the log; usable: of them; left_out: reason -> rows. unknown: rows among the usable
    whose loss is not known. late: of their delays the median and the quantile of 90 %, in rounds of
    the replay; None: the loss never comes. actions: labels; size: int [K], rows of each; mean,
    noise: float64 [K], their mean loss and the variance of that. logged: the mean loss of rows as
    they were logged; logged_noise: its variance. alike: are these the same rows? Not where some
    were left out for a fair share of each action.
    """

    rows: int
    usable: int
    left_out: Mapping[str, int]
    unknown: int
    late: tuple[int | None, ...]
    actions: tuple[str, ...]
    size: np.ndarray
    mean: np.ndarray
    noise: np.ndarray
    logged: float
    logged_noise: float
    alike: bool


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """A learner on the rows of a log; `jb.replay` makes one.

    learner: who played. accepted: rounds of each run, the accepted rows.
    rounds: int [points], 1-based, the last is `accepted`. loss: float64 [runs, points], the mean
    loss per accepted round so far. mean, low, high: [points], over runs, and the interval at
    `level` for what the learner would lose in as many rounds on another log of the same world.
    plays: float64 [runs, K], the share of rounds in which each action was played.
    kind, window, traffic, order: as they were played. used: the rows (`Used`). warnings: sentences.
    redrawn: float64 [resamples, points], `loss` on redrawn logs; logs: int [resamples], on which of
    them. every, every_redrawn: [runs, K] and [resamples, K], the mean loss of each action in the
    rounds of each run. info: as in a `Result`.
    """

    learner: Any
    rounds: np.ndarray
    loss: np.ndarray
    redrawn: np.ndarray
    logs: np.ndarray
    every: np.ndarray
    every_redrawn: np.ndarray
    plays: np.ndarray
    kind: str
    window: int
    traffic: float
    order: str
    level: float
    used: Used
    warnings: tuple[str, ...]
    info: dict[str, np.ndarray]

    @property
    def accepted(self) -> int:
        return int(self.rounds[-1])

    @property
    def runs(self) -> int:
        return len(self.loss)

    @property
    def mean(self) -> np.ndarray:
        return self.loss.mean(axis=0)

    @property
    def low(self) -> np.ndarray:
        return np.maximum(self.mean - self._reach, 0)

    @property
    def high(self) -> np.ndarray:
        return np.minimum(self.mean + self._reach, 1)

    @property
    def final(self) -> Estimate:
        """The mean loss per round over all accepted rounds."""
        return Estimate(*(float(one[-1]) for one in (self.mean, self.low, self.high)))

    @property
    def logged(self) -> Estimate:
        """The mean loss of the rows as they were logged."""
        return self._of_rows(self.used.logged, self.used.logged_noise)

    @property
    def fixed(self) -> dict[str, Estimate]:
        """label -> the mean loss of playing that action always."""
        used = self.used
        return {
            label: self._of_rows(mean, noise)
            for label, mean, noise in zip(used.actions, used.mean, used.noise, strict=True)
        }

    @property
    def versus_logged(self) -> Estimate:
        """The mean loss minus that of the log; below 0 is better."""
        used = self.used
        if used.alike:
            return self._versus(used.size / used.size.sum(), used.logged)
        whole = self._variance(self.loss[:, -1], self.redrawn[:, -1])
        return self._around(
            self.mean[-1] - used.logged, whole.plus(Variance(used.logged_noise, 0.0))
        )

    @property
    def versus_fixed(self) -> dict[str, Estimate]:
        """label -> the mean loss minus that of playing this action always."""
        ones = np.eye(len(self.used.actions))
        found = zip(self.used.actions, ones, self.used.mean, strict=True)
        return {label: self._versus(weights, float(mean)) for label, weights, mean in found}

    def versus(self, other: Replay) -> Estimate:
        """The mean loss minus that of another learner, replayed on the same rows."""
        if not isinstance(other, Replay):
            raise TypeError(f"other must be a Replay, but got {checks.shown(other)}")
        alike = (self.every, other.every), (self.every_redrawn, other.every_redrawn)
        if self.accepted != other.accepted or not all(np.array_equal(*pair) for pair in alike):
            raise ValueError(
                "other must be a replay of the same log with the same seed, runs, resamples, "
                "horizon, window and order"
            )
        own = self.loss[:, -1] - other.loss[:, -1]
        redrawn = self.redrawn[:, -1] - other.redrawn[:, -1]
        return self._around(own.mean(), self._variance(own, redrawn))

    def summary(self) -> str:
        """What was replayed and found, in words and a table."""
        return text.as_text({type(self.learner).__name__: self})

    def to_dict(self) -> dict[str, Any]:
        """The numbers of the summary, and the curve, for JSON."""
        return text.as_dict(self)

    def __repr__(self) -> str:
        return text.in_short(self)

    @property
    def _most(self) -> np.ndarray:
        """[points]: see `between_logs`. In the order of the log all runs have the same rows."""
        share = self.rounds / self.used.size.min()
        return share if self.order == "random" else np.ones(len(share))

    @property
    def _reach(self) -> np.ndarray:
        """[points]: half of the interval."""
        between = between_logs(self.redrawn.T, self.logs, self._most)
        return reach(of_mean(self.loss.T).plus(between), self.level)

    def _variance(self, own: np.ndarray, redrawn: np.ndarray) -> Variance:
        """Of the mean of something of whole runs. own: [runs]; redrawn: [resamples]."""
        return of_mean(own).plus(between_logs(redrawn, self.logs, self._most[-1]))

    def _versus(self, weights: np.ndarray, mean: float) -> Estimate:
        """Against a mixture of actions. weights: [K]; mean: its mean loss on all rows.

        The same rows decide both, so their difference is surer than each of them.
        """
        own, difference = self.loss[:, -1], self.redrawn[:, -1] - self.every_redrawn @ weights
        return self._around(self.mean[-1] - mean, self._variance(own, difference))

    def _around(self, mean: float, variance: Variance) -> Estimate:
        half = float(reach(variance, self.level))
        return Estimate(float(mean), float(mean - half), float(mean + half))

    def _of_rows(self, mean: float, noise: float) -> Estimate:
        found = self._around(mean, Variance(noise, 0.0))
        return Estimate(found.mean, max(0.0, found.low), min(1.0, found.high))
