"""How regret grows with T, S, d and K: slopes on logarithmic axes, beside the paper's rates.

A slope is that of the least-squares line through the logarithms of mean final regret. Its interval
is Student's for what each run adds to the slope, at all values of the axis together, because these
share their random numbers. Where an adversary draws the losses before the game, each instance has
coins and runs of its own, and whole instances (the mean of their runs) take the place of runs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.analysis.intervals import of_mean
from jaxbio.analysis.statistics import student_reach
from jaxbio.environment.environment import MAX_HORIZON
from jaxbio.storage.store import part
from jaxbio.studies.adversaries import RUNS_PER_INSTANCE, play_instances
from jaxbio.studies.rates.series import HORIZON, VALUES, Series, default_series, learner
from jaxbio.sweeps.sweep import sweep


@dataclass(frozen=True)
class Fit:
    """slope, low, high: of the line; first, last: between the two first and the two last points."""

    slope: float
    low: float
    high: float
    first: float
    last: float


def measure_rates(
    *,
    horizons: Sequence[int] = VALUES["horizons"],
    states: Sequence[int] = VALUES["states"],
    delays: Sequence[int] = VALUES["delays"],
    actions: Sequence[int] = VALUES["actions"],
    horizon: int = HORIZON,
    runs: int = 400,
    seed: int = 0,
    delta: float = 0.1,
    series: Sequence[Series] | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Mean final regret along T, S, d and K on hard and easy problems, and its slopes.

    Args:
      horizons, states, delays, actions: the values along each axis, at least two.
      horizon: T where it is not the axis.
      runs: for each point; a problem whose losses an adversary draws is played in runs / 8
        instances, 8 runs each.
      seed: the root seed, of runs and of adversaries.
      series: what is played, instead of the default problems.
      store: a folder for finished blocks; the same call goes on where it was interrupted.
    Returns:
      A Dataset. [line]: axis, problem, learner, slope with slope_low and slope_high, slope_first
      and slope_last (between neighbours at either end), rate_slope (of the problem's rate at the
      same points). [line, point]: value (along the axis), regret_mean, mean_low, mean_high, rate;
      NaN past the last point of a line. Intervals are of 95 %.
    """
    if series is None:
        series = default_series(
            horizons=_values("horizons", horizons, 2, MAX_HORIZON),
            states=_values("states", states, 2),
            delays=_values("delays", delays, 1),
            actions=_values("actions", actions, 2),
            horizon=checks.size("horizon", horizon, 2, MAX_HORIZON),
        )
    series = _checked(series)
    runs = checks.size("runs", runs, 2 * RUNS_PER_INSTANCE)
    delta = checks.probability_of_error("delta", delta)
    seed = checks.size("seed", seed, 0, 2**32 - 1)
    for one in series:
        _build(one, delta)  # what refuses a size does so before anything is played
    lines = []
    for number, one in enumerate(series):
        place = part(store, f"{number}-{one.axis}-{one.problem.name}")
        played = _played(one, runs, seed, delta, place, progress)
        lines += [_line(one, name, played[name]) for name in one.learners]
    return _labelled(lines).assign_attrs(
        title="jaxbio rates", runs=runs, seed=str(seed), delta=delta, horizon=horizon
    )


def _values(name: str, values: Any, low: int, high: int | None = None) -> list[int]:
    given = checks.several(name, values, "integers")
    found = sorted({checks.size(name, value, low, high) for value in given})
    if len(found) < 2:
        raise ValueError(f"{name} must have at least two values for a slope, but got {given}")
    return found


def _checked(series: Any) -> list[Series]:
    known = checks.several("series", series, "Series")
    if not known or not all(isinstance(one, Series) for one in known):
        raise ValueError(f"series must hold one Series or more, but got {checks.shown(series)}")
    return known


def _build(one: Series, delta: float) -> None:
    """All that is to be played, to see whether it can be."""
    for name in one.learners:
        learner(name, delta)
    for value in one.values:
        one.environment(**{one.axis: value})


def _played(
    one: Series, runs: int, seed: int, delta: float, store: Path | None, progress: bool
) -> dict[str, np.ndarray]:
    """learner -> [points, units]: final regret of a run, or its mean over those of an instance."""
    given: Any = {
        "learners": {name: learner(name, delta) for name in one.learners},
        "axes": {one.axis: list(one.values)},
        "horizon": one.fixed.get("horizon"),
        "rounds": 1,
        "keep": "finals",
        "seed": seed,
        "store": store,
        "progress": progress,
    }
    if one.problem.seeded:
        count = runs // RUNS_PER_INSTANCE
        regret = play_instances(lambda coins: partial(one.environment, seed=coins), count, **given)
    else:
        regret = sweep(one.environment, runs=runs, **given).final_regret
    return {name: regret.sel(learner=name).values for name in one.learners}


@dataclass(frozen=True)
class Line:
    """One learner on one series. mean, low, high: [points], mean regret and its interval."""

    series: Series
    learner: str
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    fit: Fit


def _line(one: Series, name: str, values: np.ndarray) -> Line:
    """values: [points, units]."""
    mean, low, high = of_mean(values)
    return Line(one, name, mean, low, high, fitted(np.array(one.values), values))


def slope(x: np.ndarray, y: np.ndarray) -> Any:
    """Of the least-squares line through log y over log x: x [points], y [points, ...]. NaN where
    some y is not positive.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.where(y > 0, np.log(y), np.nan)
    return np.tensordot(_weights(x), logs, axes=1)


def _weights(x: np.ndarray) -> np.ndarray:
    """[points]: the slope is the sum of the logarithms of y, each times its weight."""
    centred = np.log(x) - np.log(x).mean()
    return centred / np.square(centred).sum()


def fitted(x: np.ndarray, values: np.ndarray) -> Fit:
    """The slope of mean regret over x [points], from values [points, units].

    The logarithm of a mean changes by its relative change, so each unit adds to the slope the sum
    of its values, relative to their means, times the weights.
    """
    mean = values.mean(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        added = _weights(x) @ (values / mean[:, None])  # [units]
    found, reach = float(slope(x, mean)), float(student_reach(added))
    return Fit(
        found,
        found - reach,
        found + reach,
        float(slope(x[:2], mean[:2])),
        float(slope(x[-2:], mean[-2:])),
    )


def _labelled(lines: Sequence[Line]) -> xr.Dataset:
    points = max(len(line.mean) for line in lines)

    def rows(pick: Any) -> np.ndarray:
        """[line, point], NaN past a line's last point."""
        padded = np.full((len(lines), points), np.nan)
        for row, line in zip(padded, lines, strict=True):
            row[: len(line.mean)] = pick(line)
        return padded

    per_line = {
        "slope": [line.fit.slope for line in lines],
        "slope_low": [line.fit.low for line in lines],
        "slope_high": [line.fit.high for line in lines],
        "slope_first": [line.fit.first for line in lines],
        "slope_last": [line.fit.last for line in lines],
        "rate_slope": [
            float(slope(np.array(line.series.values), line.series.rates())) for line in lines
        ],
        "hard": [line.series.problem.hard for line in lines],
    }
    per_point = {
        "value": rows(lambda line: line.series.values),
        "regret_mean": rows(lambda line: line.mean),
        "mean_low": rows(lambda line: line.low),
        "mean_high": rows(lambda line: line.high),
        "rate": rows(lambda line: line.series.rates()),
    }
    names = {
        "axis": ("line", [line.series.axis for line in lines]),
        "problem": ("line", [line.series.problem.name for line in lines]),
        "learner": ("line", [line.learner for line in lines]),
    }
    variables = {name: ("line", column) for name, column in per_line.items()}
    variables |= {name: (("line", "point"), table) for name, table in per_point.items()}
    return xr.Dataset(variables, names)
