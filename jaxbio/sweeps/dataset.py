"""The labelled result of a sweep."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import rng
from jaxbio.storage.provenance import surroundings
from jaxbio.sweeps.description import Described, as_text
from jaxbio.sweeps.execute import Kept
from jaxbio.sweeps.grid import HORIZON, Grid
from jaxbio.sweeps.moments import Moments, merged
from jaxbio.sweeps.plan import Block, Job

MOMENTS = {
    "regret_mean": "mean",
    "regret_variance": "variance",
    "regret_min": "least",
    "regret_max": "most",
}
UNITS = {  # of axes and facts whose meaning is known
    "rounds": """horizon delay waiting_rounds rounds_fed switch_round arrived total_delay
        total_perceived_delay""",
    "losses": "sigma_max",
    "1": "run quantile states actions delta scale growth copies",
}
UNIT_OF = {name: unit for unit, names in UNITS.items() for name in names.split()}


def label(
    grid: Grid,
    blocks: list[Block],
    kept: Kept,
    job: Job,
    quantiles: np.ndarray,
    described: Described,
) -> xr.Dataset:
    """Put every block in its place; each is asked for once. described: the settings, in words."""
    time_name = "part" if HORIZON in grid.axes else "round"
    table = _Table(grid, job.runs)
    so_far: dict[int, Moments] = {}
    played_by: set[str] = set()
    for number, block in enumerate(blocks):
        arrays = kept(number)
        played_by.add(str(arrays.pop("backend")))
        for setting, piece in _moments(block, arrays):
            so_far[setting] = merged([so_far[setting], piece]) if setting in so_far else piece
        for name, values in arrays.items():
            if not name.startswith("moments."):
                table.fill(name.removeprefix("info."), block.members, values.T)
    variables: dict[str, Any] = {}
    for name, values in table.filled().items():
        variables[name] = _variable(grid, name, values, "run", time_name)
    for name, part in MOMENTS.items() if so_far else ():
        rows = [getattr(so_far[setting], part) for setting in range(len(grid.settings))]
        variables[name] = _variable(grid, name, table.spread(np.stack(rows)), time_name)
    if quantiles.size:
        found = np.quantile(variables["final_regret"][1], quantiles, axis=-1)
        name = "final_regret_quantile"
        variables[name] = _variable(grid, name, np.moveaxis(found, 0, -1), "quantile")
    coordinates = _coordinates(grid, job, quantiles, time_name)
    backends = {"backend": ", ".join(sorted(played_by))}
    return xr.Dataset(variables, coordinates, _attributes(job, described) | backends)


class _Table:
    """Arrays [learner, *axes, run, ...] that are filled block by block.

    Not all learners report a fact in the same type, and not all report it: it gets the type that
    holds them all, and where it is missing it is NaN.
    """

    def __init__(self, grid: Grid, runs: int) -> None:
        cells = np.stack(list(grid.cells.values()))
        self.shape, self.runs, self.settings = cells.shape, runs, cells.reshape(-1)
        # The points of each setting: `count` of them from `first` on in `points`.
        self.points = np.argsort(self.settings, kind="stable")
        self.count = np.bincount(self.settings, minlength=len(grid.settings))
        self.first = np.cumsum(self.count) - self.count
        self.arrays: dict[str, np.ndarray] = {}
        self.known: dict[str, set[int]] = {}

    def fill(self, name: str, members: np.ndarray, values: np.ndarray) -> None:
        """values: [members, ...] of the pairs (setting, run) [members, 2]."""
        if name not in self.arrays:
            shape = (self.settings.size, self.runs, *values.shape[1:])
            self.arrays[name] = np.zeros(shape, values.dtype)
        kind = np.result_type(self.arrays[name], values)
        if kind != self.arrays[name].dtype:
            self.arrays[name] = self.arrays[name].astype(kind)
        count = self.count[members[:, 0]]
        member = np.repeat(np.arange(len(members)), count)  # as often as its setting has points
        place = np.arange(len(member)) - np.repeat(np.cumsum(count) - count, count)
        point = self.points[np.repeat(self.first[members[:, 0]], count) + place]
        self.arrays[name][point, members[member, 1]] = values[member]
        self.known.setdefault(name, set()).update(np.unique(members[:, 0]).tolist())

    def filled(self) -> dict[str, np.ndarray]:
        """name -> [learner, *axes, run, ...]"""
        for name, values in self.arrays.items():
            missing = ~np.isin(self.settings, list(self.known[name]))
            if missing.any():
                values = values if values.dtype.kind == "f" else values.astype(np.float64)
                values[missing] = np.nan
            self.arrays[name] = values.reshape(*self.shape, *values.shape[1:])
        return self.arrays

    def spread(self, values: np.ndarray) -> np.ndarray:
        """[settings, ...] -> [learner, *axes, ...]"""
        return values[self.settings].reshape(*self.shape, *values.shape[1:])


def _moments(block: Block, arrays: dict[str, np.ndarray]) -> Iterator[tuple[int, Moments]]:
    """(setting, moments of its runs in this block), where moments are kept."""
    if "moments.count" not in arrays:
        return
    first = np.sort(np.unique(block.members[:, 0], return_index=True)[1])
    for i, setting in enumerate(block.members[first, 0]):
        yield int(setting), Moments(*(arrays[f"moments.{name}"][i] for name in Moments._fields))


def _variable(grid: Grid, name: str, values: np.ndarray, *dims: str) -> Any:
    """An xarray variable [learner, *axes, ...]."""
    names = ("learner", *grid.axes, *dims)[: values.ndim]
    large = values.dtype == np.int64 and values.max() >= 2**31  # netCDF 3 has no such integers
    return names, values, _about(name), {"dtype": "float64"} if large else {}


def _about(name: str) -> dict[str, str]:
    """In words what is measured, and its unit where that is known."""
    long_name = name.replace("_", " ")
    if name in ("regret", "final_regret", "final_regret_quantile", *MOMENTS):
        unit = "loss^2" if name.endswith("variance") else "loss"
        return {"units": unit, "long_name": long_name.replace("regret", "pseudo-regret")}
    unit = "loss" if name in ("loss", "final_loss") else UNIT_OF.get(name)
    return {"long_name": long_name} | ({"units": unit} if unit else {})


def _coordinates(grid: Grid, job: Job, quantiles: np.ndarray, time_name: str) -> dict[str, Any]:
    coordinates: dict[str, Any] = {"learner": list(grid.cells)}
    coordinates["run"] = ("run", np.arange(job.runs), _about("run"))
    for name in grid.axes:
        coordinates[name] = (name, grid.labels(name), _about(name))
    about = {"units": "rounds", "long_name": "round, from 1"}
    if time_name == "part":
        rows = np.stack([job.points[horizon] for horizon in grid.axes[HORIZON]])
        coordinates["round"] = ((HORIZON, "part"), rows, about)
    else:
        coordinates["round"] = ("round", next(iter(job.points.values())), about)
    if quantiles.size:
        coordinates["quantile"] = ("quantile", quantiles, _about("quantile"))
    return coordinates


def _attributes(job: Job, described: Described) -> dict[str, Any]:
    """What reproduces the result."""
    around = surroundings()
    versions = around.pop("versions")
    return {
        "title": "jaxbio sweep",
        "runs": job.runs,
        "seed": _seed(job.seed),
        "paired": str(job.paired),
        "keep": job.keep,
        "horizon": json.dumps(sorted(job.points)),
        "settings": as_text(described),
        **around,
        "python": platform.python_version(),
        **{f"version_{name}": value for name, value in versions.items()},
    }


def _seed(seed: Any) -> Any:
    """As netCDF 3 can hold it: a large number as text, and a typed key as its words."""
    if isinstance(seed, int):
        return seed if seed < 2**31 else str(seed)
    return f"key of words {rng.root_words(seed).tolist()}"
