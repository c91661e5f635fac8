"""Final regret: its distribution over runs, and how it moves with what is swept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.stats
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbio.figures.lines import End, label_ends, panels, reach, room_for, thousands
from jaxbio.figures.style import Look, colours, shades, text_inches
from jaxbio.studies.paper.experiment import Layout
from jaxbio.studies.paper.figures.curves import drawn, heading, named, places, same, shaded

MANY = 300  # runs above which single runs are not drawn


class Row(NamedTuple):
    """One distribution: values [runs] in a colour, with a name."""

    name: str
    values: np.ndarray
    colour: str


def distribution(layout: Layout, data: xr.Dataset, look: Look) -> Figure:
    """A violin of final regret for each learner, with every run as a dot and the mean as a bar."""
    axis = shaded(layout)
    tables = [_rows(data.sel(place), axis, look) for place in places(layout)]
    names = [row.name for row in tables[0]]
    figure, axes = panels(
        [named(place) for place in places(layout)],
        look,
        heading=f"{heading(layout)}, final regret of each run",
        note=f"{data.sizes['run']} runs after {int(data['round'].values[-1]):,} rounds. "
        "Dots: runs. Bars: means.",
        left=max(text_inches(name) for name in names) + 0.35,
        height=0.2 + 0.4 * len(names),
    )
    every = np.concatenate([row.values for rows in tables for row in rows])
    low, high = min(0.0, 1.08 * every.min()), 1.08 * every.max()
    for panel, rows in zip(axes, tables, strict=True):
        for y, row in enumerate(reversed(rows)):
            _violin(panel, y, row, look)
        panel.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
        panel.set_ylim(-0.6, len(rows) - 0.4)
        panel.set_xlim(low, high)
        panel.grid(axis="y", visible=False)
        panel.set_xlabel("final regret")
        thousands(panel, "x")
    return figure


def _rows(data: xr.Dataset, axis: str | None, look: Look) -> list[Row]:
    palette = colours(drawn(data), look)
    finals = data.final_regret
    if axis is None:
        return [Row(name, finals.sel(learner=name).values, palette[name]) for name in palette]
    rows = []
    for name in palette:
        own = finals.sel(learner=name).transpose(axis, "run")
        if same(own, axis):
            rows.append(Row(f"{name}, any S", own.values[0], palette[name]))
            continue
        hues = shades(palette[name], len(own), look)
        rows += [
            Row(f"{name}, S = {value}", values, hue)
            for value, values, hue in zip(own[axis].values, own.values, hues, strict=True)
        ]
    return rows


def _violin(axes: Axes, y: int, row: Row, look: Look) -> None:
    values = row.values
    if len(values) > 2 and np.ptp(values) > 0:
        x = np.linspace(values.min(), values.max(), 120)
        height = scipy.stats.gaussian_kde(values)(x)
        height *= 0.38 / height.max()
        axes.fill_between(x, y - height, y + height, color=row.colour, alpha=0.3, linewidth=0)
    if len(values) <= MANY:
        sway = 0.16 * np.sin(2.4 * np.arange(len(values)))
        axes.scatter(values, y + sway, s=9, color=row.colour, linewidth=0, alpha=0.85)
    mean = values.mean()
    axes.plot([mean, mean], [y - 0.34, y + 0.34], color=look.theme.ink, linewidth=2)


def against(layout: Layout, data: xr.Dataset, look: Look) -> Figure:
    """Mean final regret of each learner against the swept parameter, with 95 % intervals."""
    (axis,) = layout.axes
    values = list(layout.axes[axis])
    names, palette = drawn(data), colours(drawn(data), look)
    figure, (axes,) = panels(
        [""],
        look,
        heading=f"{heading(layout)}, final regret by {axis}",
        note=f"Mean of {data.sizes['run']} runs with its 95 % interval (Student's t).",
        right=room_for(names),
        height=3.6,
    )
    x, joined = _positions(values)
    ends = []
    for i, name in enumerate(names):
        finals = data.final_regret.sel(learner=name).transpose(axis, "run").values
        mean = finals.mean(axis=1)
        shift = 0.022 * np.ptp(x) * (i - (len(names) - 1) / 2)
        axes.errorbar(x + shift, mean, reach(finals), color=palette[name], fmt="o", markersize=5.5,
                      capsize=3, elinewidth=1.5)  # fmt: skip
        axes.plot(x[joined] + shift, mean[joined], color=palette[name], linewidth=1.4, alpha=0.8)
        ends.append(End(name, float(mean[-1]), palette[name]))
    margin = 0.12 * np.ptp(x)
    broken = "\n(" if look.narrow else "("
    axes.set_xticks(x, [str(value).replace("(", broken) for value in values])
    axes.set(xlabel=_axis_name(axis), ylabel="final regret")
    axes.set_xlim(x.min() - margin, x.max() + margin)
    axes.set_ylim(bottom=0 if data.final_regret.min() >= 0 else None)
    thousands(axes, "y")
    label_ends(axes, ends, look)
    return figure


def _axis_name(axis: str) -> str:
    return {"states": "number of states S", "delay": "delay in rounds"}.get(axis, axis)


def _positions(values: Sequence[object]) -> tuple[np.ndarray, np.ndarray]:
    """Where values stand, and which of them a line joins: numbers, not names of distributions."""
    numeric = np.array([str(value).replace(".", "", 1).isdigit() for value in values])
    if all(isinstance(value, int | float) for value in values):
        return np.array(values, float), numeric
    return np.arange(len(values), dtype=float), numeric
