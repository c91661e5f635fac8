"""Results on the host: small sums come from the device, large ones are made here in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class Result:
    """Many runs of one learner.

    rounds: int [points], 1-based, the last is the horizon. regret: float64 [runs, points],
    pseudo-regret in the sense of the environment's regime, against the best action of the whole
    horizon. loss: float64 [runs, points], the realised loss so far. info: name -> [runs]:

    - waiting_rounds: rounds for whose loss the learner (the base inside a wrapper) has to wait; all
      of them for a learner that uses no states;
    - total_perceived_delay: the sum over rounds of those it waits for as the round begins;
    - rounds_fed: rounds whose feedback it got; arrived: rounds whose loss arrived;
    - total_delay: the total delay, each cut at the horizon; sigma_max: the most losses outstanding
      at the end of a round, the last round included, where nothing is cut;
    - switch_round: the round at whose end MetaAdaBIO switched, below the horizon; horizon + 1 if it
      never did;
    - whatever else a learner's `facts` report.

    backend: what played the runs (see `simulate`).
    """

    rounds: np.ndarray
    regret: np.ndarray
    loss: np.ndarray
    info: dict[str, np.ndarray]
    replay: Callable[[], np.ndarray] = field(repr=False)
    backend: str = ""

    @property
    def final_regret(self) -> np.ndarray:
        """[runs]: pseudo-regret at the horizon."""
        return self.regret[:, -1]

    @cached_property
    def realized_regret(self) -> np.ndarray:
        """[runs, points]: realised loss minus that of the action that did best in hindsight.

        What the other actions would have cost does not depend on the learner, so it is left out of
        the games and played when it is first asked for.
        """
        every = np.cumsum(self.replay(), axis=1, dtype=np.float64)  # [runs, points, K]
        best = np.argmin(every[:, -1, :], axis=1)
        return self.loss - np.take_along_axis(every, best[:, None, None], axis=2)[:, :, 0]


def running_sum(increments: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """float64: sums along the first axis of [points, runs]; np.cumsum takes ten times as long.

    out: where to put them.
    """
    sums = np.empty(increments.shape) if out is None else out
    sums[0] = increments[0]
    for before, more, now in zip(sums, increments[1:], sums[1:], strict=False):
        np.add(before, more, out=now)
    return sums


def at_recorded(increments: np.ndarray, stops: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    """Increments [stops, ...] between all stops -> increments between the recorded ones."""
    if len(stops) == len(rounds):
        return increments
    first = np.searchsorted(stops, rounds[:-1], "right")
    rows = np.concatenate([[0], first])
    return np.add.reduceat(increments.astype(np.float64), rows, axis=0)
