"""The labelled result of a sweep."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from jaxbio import rng
from jaxbio.core import float_dtype
from jaxbio.grid import HORIZON, Grid, describe
from jaxbio.moments import Moments, merged
from jaxbio.schedule import Block, Job

Kept = Callable[[int], dict[str, np.ndarray]]  # number of a block -> its arrays by name


def label(
    grid: Grid,
    blocks: list[Block],
    kept: Kept,
    job: Job,
    quantiles: np.ndarray,
) -> xr.Dataset:
    time_name = "part" if HORIZON in grid.axes else "round"
    per_run = _per_run(grid, blocks, kept, job)
    variables: dict[str, Any] = {}
    for name, values in per_run.items():
        dims = ["run", time_name] if values.ndim == 3 else ["run"]
        variables[name.removeprefix("info.")] = _spread(grid, values, dims, name)
    if job.keep == "moments":
        for name, values in _merged(grid, blocks, kept).items():
            variables[name] = _spread(grid, values, [time_name], name)
    if quantiles.size:
        values = np.quantile(per_run["final_regret"], quantiles, axis=1).T
        variables["final_regret_quantile"] = _spread(
            grid, values, ["quantile"], "final_regret_quantile"
        )
    return xr.Dataset(
        variables, _coordinates(grid, job, quantiles, time_name), _attributes(grid, job)
    )


def _per_run(grid: Grid, blocks: list[Block], kept: Kept, job: Job) -> dict[str, np.ndarray]:
    """name -> [settings, runs] or [settings, runs, points]."""
    out: dict[str, np.ndarray] = {}
    for number, block in enumerate(blocks):
        setting, run = block.members.T
        for name, values in kept(number).items():
            if name.startswith("moments."):
                continue
            values = values.T  # runs first
            if name not in out:
                shape = (len(grid.settings), job.runs, *values.shape[1:])
                out[name] = np.zeros(shape, values.dtype)
            out[name][setting, run] = values
    return out


def _merged(grid: Grid, blocks: list[Block], kept: Kept) -> dict[str, np.ndarray]:
    """name -> [settings, points]: moments of the regret over runs."""
    parts: dict[int, list[Moments]] = {}
    for number, block in enumerate(blocks):
        arrays = kept(number)
        own = [arrays[f"moments.{name}"] for name in Moments._fields]
        order = block.members[np.sort(np.unique(block.members[:, 0], return_index=True)[1]), 0]
        for i, setting in enumerate(order):
            parts.setdefault(int(setting), []).append(Moments(*(values[i] for values in own)))
    whole = [merged(parts[setting]) for setting in range(len(grid.settings))]
    return {
        "regret_mean": np.stack([moment.mean for moment in whole]),
        "regret_variance": np.stack([moment.variance for moment in whole]),
        "regret_min": np.stack([moment.least for moment in whole]),
        "regret_max": np.stack([moment.most for moment in whole]),
    }


def _spread(grid: Grid, values: np.ndarray, dims: Iterable[str], name: str) -> Any:
    """values [settings, ...] at every point: an xarray variable [learner, *axes, ...]."""
    points = np.stack([values[cells] for cells in grid.cells.values()])
    large = points.dtype == np.int64 and points.max() >= 2**31  # netCDF 3 has no such integers
    encoding = {"dtype": "float64"} if large else {}
    return ("learner", *grid.axes, *dims), points, _unit(name), encoding


def _unit(name: str) -> dict[str, str]:
    """The unit of measure, and in words what is measured."""
    plain = name.removeprefix("info.")
    long_name = plain.replace("_", " ")
    if "regret" in plain:
        unit = "loss^2" if plain.endswith("variance") else "loss"
        return {"units": unit, "long_name": long_name.replace("regret", "pseudo-regret")}
    return {"units": "loss" if "loss" in plain else "rounds", "long_name": long_name}


def _coordinates(grid: Grid, job: Job, quantiles: np.ndarray, time_name: str) -> dict[str, Any]:
    coordinates: dict[str, Any] = {"learner": list(grid.cells), "run": np.arange(job.runs)}
    coordinates |= {name: grid.labels(name) for name in grid.axes}
    about = {"units": "rounds", "long_name": "round, from 1"}
    if time_name == "part":
        rows = np.stack([job.points[horizon] for horizon in grid.axes[HORIZON]])
        coordinates["round"] = ((HORIZON, "part"), rows, about)
    else:
        coordinates["round"] = ("round", next(iter(job.points.values())), about)
    if quantiles.size:
        coordinates["quantile"] = quantiles
    return coordinates


def _attributes(grid: Grid, job: Job) -> dict[str, Any]:
    """What reproduces the result."""
    return {
        "title": "jaxbio sweep",
        "runs": job.runs,
        "seed": _seed(job.seed),
        "paired": str(job.paired),
        "keep": job.keep,
        "horizon": json.dumps(sorted(job.points)),
        "platform": jax.default_backend(),
        "python": platform.python_version(),
        "settings": json.dumps(describe(grid.settings)),
    } | {f"version_{name}": value for name, value in versions().items()}


def _seed(seed: Any) -> Any:
    """As netCDF 3 can hold it: a large number as text, and a typed key as its words."""
    if isinstance(seed, int):
        return seed if seed < 2**31 else str(seed)
    return f"key of words {rng.root_words(seed).tolist()}"


def surroundings() -> dict[str, Any]:
    """What else the bits of a result depend on."""
    return {
        "versions": versions(),
        "platform": jax.default_backend(),
        "precision": str(jnp.dtype(float_dtype())),
    }


def versions() -> dict[str, str]:
    """Of what decides the bits of a result."""
    return {name: version(name) for name in ("jaxbio", "jax", "jaxlib", "numpy")}
