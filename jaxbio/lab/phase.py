"""Where intermediate observations help: regret ratios over the number of states and the delay.

Every cell (S, d) of a grid is played by a base learner alone and by wrappers around it, in the same
worlds. The ratio is that of the mean final regrets, wrapper to base: below 1 the states pay.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.environment import Environment
from jaxbio.environment.instances import make_environment
from jaxbio.lab.contestants import robust
from jaxbio.statistics import resampled_means
from jaxbio.store import part
from jaxbio.sweep import sweep

SIZES = (8, 16, 32, 64, 128)  # state counts up to each of these share arrays of one size
RESAMPLES = 2000
LEVEL = 0.95

Family = Callable[[int, int, int], Environment]


def utility_family(actions: int, states: int, delay: int) -> Environment:
    """The family of Experiments 3 and 5 with a fixed delay: one good action, one good state."""
    return make_environment(
        "paper-utility", actions=actions, states=states, delays=FixedDelay(delay)
    )


def phase_diagram(
    states: Sequence[int],
    delays: Sequence[int],
    *,
    actions: Sequence[int] = (8,),
    horizons: Sequence[int] = (10_000,),
    runs: int = 100,
    seed: int = 0,
    family: Family = utility_family,
    learners: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Final regret of every learner in every cell, and the ratios to the first learner.

    Args:
      states, delays, actions, horizons: the grid: S, d, K and T.
      runs: per cell and learner, in the same worlds for all learners.
      seed: the root seed.
      family: (actions, states, delay) -> Environment.
      learners: label -> learner; the first is the base. Default: `robust()`.
      store: a folder for finished parts; the same call goes on where it was interrupted.
      progress: show bars.
    Returns:
      A Dataset with final_regret [learner, actions, horizon, states, delay, run], and ratio, low
      and high [wrapper, actions, horizon, states, delay] as in `ratios`.
    """
    counts = _increasing("states", states, 1)
    axes = {
        "actions": _increasing("actions", actions, 2),
        "delay": _increasing("delays", delays, 0),
        "horizon": _increasing("horizons", horizons, 1),
    }
    known = dict(robust() if learners is None else learners)
    if len(known) < 2:
        raise ValueError(f"learners must have a base and a wrapper, but got {list(known)}")
    parts = [
        sweep(
            lambda actions, states, delay: family(actions, states, delay),
            known,
            axes | {"states": group},
            runs=runs,
            seed=seed,
            rounds=1,
            keep="finals",
            store=part(store, f"states-{group[0]}-{group[-1]}"),
            progress=progress,
        )
        for group in _groups(counts)
    ]
    order = ("learner", "actions", "horizon", "states", "delay", "run")
    finals = xr.concat([part.final_regret for part in parts], "states").transpose(*order)
    data = ratios(finals, seed=seed)
    return data.assign(final_regret=finals).assign_attrs(parts[0].attrs)


def _increasing(name: str, values: Sequence[int], least: int) -> list[int]:
    """The values as integers, in order; an error where that is not what they are."""
    found = [checks.integer(name, value, least) for value in values]
    if not found or sorted(set(found)) != found:
        raise ValueError(f"{name} must be increasing integers, but got {list(values)}")
    return found


def _groups(states: Sequence[int]) -> list[list[int]]:
    """State counts whose arrays are padded to one size: a round costs what the largest costs."""
    sizes = np.searchsorted(SIZES, states).tolist()
    return [
        [count for count, own in zip(states, sizes, strict=True) if own == size]
        for size in sorted(set(sizes))
    ]


def ratios(
    finals: xr.DataArray, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> xr.Dataset:
    """Ratios of mean final regret to that of the first learner, with percentile intervals.

    The interval of a cell is a bootstrap over its runs; base and wrapper keep their pairing.

    finals: [learner, ..., run]. Returns ratio, low, high: [wrapper, ...].
    """
    values = finals.transpose(..., "run").values
    cells = values.reshape(-1, values.shape[-1])  # [learner and cell, run]
    means = resampled_means(list(cells), True, resamples, seed).reshape(
        resamples, *values.shape[:-1]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        resampled, ratio = means[:, 1:] / means[:, :1], values[1:].mean(-1) / values[:1].mean(-1)
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2], axis=0)
    wrappers = finals.isel(learner=slice(1, None), run=0, drop=True).rename(learner="wrapper")
    named = {"ratio": ratio, "low": low, "high": high}
    return xr.Dataset({name: wrappers.copy(data=value) for name, value in named.items()})


def helpful_delays(data: xr.Dataset, wrapper: str, which: str = "ratio") -> xr.DataArray:
    """The delays around its best one at which a wrapper is no worse than the base.

    At short delays there is nothing to gain, at very long ones no learner learns: where states
    help, they do so from one delay to another (the dimension `end`). Between two cells the
    logarithm of the ratio is a straight line over that of 1 + d. NaN where the base wins at every
    delay; the first or last delay of the grid where the range goes on beyond it. [..., states, 2].
    which: "ratio"; or an end of its interval: "high" for the delays at which the wrapper is surely
    no worse, "low" for those at which it may not be.
    """
    values = data[which].sel(wrapper=wrapper).transpose(..., "delay")
    x = np.log1p(np.asarray(data["delay"], float))
    logs = np.log(np.maximum(values.values, np.finfo(float).tiny))  # a regret may be negative
    found = np.apply_along_axis(_below, -1, logs, x)
    dims, coords = values.isel(delay=0, drop=True).dims, values.drop_vars("delay").coords
    return xr.DataArray(found, coords | {"end": ["from", "to"]}, (*dims, "end"))


def _below(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """[2]: the ends of the stretch around the least value that is not above 0, as delays."""
    best = int(np.argmin(values))
    if not values[best] <= 0:
        return np.array([np.nan, np.nan])
    ends = []
    for side in (np.arange(best, -1, -1), np.arange(best, len(values))):
        above = np.flatnonzero(values[side] > 0)
        ends.append(
            _crossing(values, x, *side[above[0] - 1 : above[0] + 1]) if above.size else x[side[-1]]
        )
    return np.expm1(ends)


def _crossing(values: np.ndarray, x: np.ndarray, inside: int, outside: int) -> float:
    """Where the line between two points meets 0."""
    share = values[inside] / (values[inside] - values[outside])
    return float(x[inside] + share * (x[outside] - x[inside]))
