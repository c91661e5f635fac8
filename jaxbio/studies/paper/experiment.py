"""What an experiment is, and how it is played."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from jaxbio.environment.delays import LaplaceDelay
from jaxbio.environment.instances import make_environment
from jaxbio.learners.registry import make_learner
from jaxbio.studies.paper.verdicts import MeanClaim
from jaxbio.sweeps.sweep import sweep

# Location and scale: a scale of 0 is the fixed delay, so one program serves all four.
PAPER_DELAYS = {"50": (50, 0), "100": (100, 0), "200": (200, 0), "Laplace(50, 25)": (50, 25)}


@dataclass(frozen=True)
class Options:
    """What may be varied in every experiment; the paper's choices, or ours where it is silent."""

    horizon: int = 10_000
    runs: int = 20
    seed: int = 0
    delta: float = 0.1
    tuning: str = "corrected"
    rounds: int = 200


@dataclass(frozen=True)
class Layout:
    """What figures need of an experiment: plain data.

    axes: of the sweep. panels: the axis with a panel for each value, or None.
    """

    number: int
    title: str
    axes: Mapping[str, Sequence[Any]]
    panels: str | None


@dataclass(frozen=True)
class Experiment(Layout):
    """An experiment of the paper as data.

    environment, learners: of the options, as `sweep` takes them. claims: what the paper says about
    it.
    """

    name: str
    about: str
    environment: Callable[[Options], Any]
    learners: Callable[[Options], dict[str, Any]]
    claims: Callable[[Options], list[Any]]

    @property
    def layout(self) -> Layout:
        """Without its functions, so that it can be sent to another process."""
        return Layout(self.number, self.title, self.axes, self.panels)

    def play(
        self,
        options: Options,
        store: str | os.PathLike[str] | None = None,
        progress: bool = True,
    ) -> xr.Dataset:
        """The experiment's sweep."""
        return sweep(
            self.environment(options),
            self.learners(options),
            dict(self.axes),
            horizon=options.horizon,
            runs=options.runs,
            seed=options.seed,
            rounds=options.rounds,
            store=store,
            progress=progress,
        )


def on_paper_delays(instance: str, **given: Any) -> Callable[[Options], Any]:
    """An instance as a function of its delay: one of the four of Experiments 1 and 2."""
    return lambda options: (
        lambda delay: make_environment(instance, delays=LaplaceDelay(*PAPER_DELAYS[delay]), **given)
    )


def with_and_without(options: Options) -> dict[str, Any]:
    """DAda-Exp3 with and without intermediate observations: the comparison in every experiment."""
    return {
        name: make_learner(registered, delta=options.delta, tuning=options.tuning)
        for name, registered in (("DAda-Exp3", "dada-exp3"), ("MetaBIO", "metabio"))
    }


def final(data: xr.Dataset, learner: str, **where: Any) -> np.ndarray:
    """[runs]: final regret of a learner at a point of the grid."""
    return data.final_regret.sel(learner=learner, **where).values


def lower(better: str, worse: str, **where: Any) -> MeanClaim:
    """The claim that one learner's regret is lower than another's at a point."""
    place = ", ".join(f"{name} {value}" for name, value in where.items())
    statement = f"{better} has lower regret than {worse}" + (f" at {place}" if place else "")
    return MeanClaim(
        statement, lambda data: final(data, worse, **where) - final(data, better, **where)
    )
