"""What a sweep found: a table of mean final regret, and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from jaxbio.display import text
from jaxbio.sweeps import choosing

ROWS = 24  # points of the grid that a table shows


def rows(data: xr.Dataset) -> list[dict[str, Any]]:
    """One for each point of the grid: its place, and learner -> mean final regret."""
    mean = data.final_regret.mean("run").transpose("learner", ...)
    axes = [str(name) for name in mean.dims[1:]]
    learners = [str(name) for name in mean.learner.values]
    found = []
    for place in np.ndindex(*mean.shape[1:]):
        values = [mean[axis].values[i].item() for axis, i in zip(axes, place, strict=True)]
        cell = mean.values[(slice(None), *place)]
        found.append(
            {
                "point": dict(zip(axes, values, strict=True)),
                "mean final regret": dict(zip(learners, cell.tolist(), strict=True)),
            }
        )
    return found


def table(data: xr.Dataset) -> str:
    """The first points of the grid; the least mean of each is marked."""
    found = rows(data)
    axes, learners = list(found[0]["point"]), list(found[0]["mean final regret"])
    lines = [[*axes, *learners]]
    for row in found[:ROWS]:
        means = row["mean final regret"]
        least = min(means.values())
        place = [str(value) for value in row["point"].values()]
        lines.append(
            [*place, *(f"{mean:,.1f}{'*' if mean == least else ' '}" for mean in means.values())]
        )
    runs = data.sizes["run"]
    said = f"mean final regret of {runs:,} run{'' if runs == 1 else 's'}; *: the least of its row"
    more = len(found) - ROWS
    left = [f"and {more:,} more points: they are in the file"] if more > 0 else []
    return "\n".join([said, *text.aligned(lines, left=len(axes)), *left])


def figure(data: xr.Dataset) -> Any:
    """Colours over the two longest axes of the grid, lines over the only one, or bars. Axes that
    are left have their first values.
    """
    from jaxbio import plot  # matplotlib takes a while to import

    sizes = {
        str(axis): size
        for axis, size in data.final_regret.sizes.items()
        if axis not in ("learner", "run") and size > 1
    }
    shown = sorted(sizes, key=lambda axis: -sizes[axis])[:2]
    at = {axis: data[axis].values[0].item() for axis in sizes if axis not in shown}
    if len(shown) == 2:
        x, y = shown
        return plot.heatmap(data, x, y, at=at)
    if shown and data[shown[0]].dtype.kind in "if":
        return plot.lines(data, shown[0])
    at |= {axis: data[axis].values[0].item() for axis in shown}
    return plot.regret_curves(choosing.results(data, at)) if "regret" in data else None


def beside(place: Path) -> Path:
    """Where the figure of a result goes, unless a place is given."""
    return place.with_suffix(".png")
