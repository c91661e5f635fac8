"""Results on the host: small sums come from the device, large ones are made here in float64."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from jaxbio.sweeps import shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
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

    backend: what played the runs (see `simulate`). learner: what was played, in short.
    """

    rounds: np.ndarray
    regret: np.ndarray
    loss: np.ndarray
    info: dict[str, np.ndarray]
    replay: Callable[[], np.ndarray]
    backend: str = ""
    learner: str = ""

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

    def to_xarray(self) -> xr.Dataset:
        """regret, loss [run, round], final_regret and every fact [run], named as in a sweep."""
        curves = {"regret": self.regret, "loss": self.loss}
        facts = {"final_regret": self.final_regret, **self.info}
        return xr.Dataset(
            {name: (("run", "round"), values) for name, values in curves.items()}
            | {name: ("run", np.asarray(values)) for name, values in facts.items()},
            {"run": np.arange(len(self.regret)), "round": self.rounds},
            {"learner": self.learner, "backend": self.backend},
        )

    def to_dataframe(self) -> pd.DataFrame:
        """A row for every run and recorded round: columns run, round, regret and loss."""
        return self.to_xarray()[["regret", "loss"]].to_dataframe().reset_index()

    def plot(self, **options: Any) -> Any:
        """Draw the regret curve: `jaxbio.plot.regret_curves` with this result, and its options."""
        name = self.learner.split("(")[0] or "learner"
        # Figures are built on results, and found when they are asked for.
        return importlib.import_module("jaxbio.plot").regret_curves({name: self}, **options)

    def __repr__(self) -> str:
        return shown.as_text(self)

    def _repr_html_(self) -> str:
        return shown.as_html(self)


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
