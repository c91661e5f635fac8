"""Regret over rounds, its bounds, and the rounds that a learner waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jaxbio.figures.lines import (
    End,
    band,
    curves,
    finish_regret,
    label_ends,
    number_after,
    panels,
    room_for,
    thousands,
)
from jaxbio.figures.style import DASHES, Look, colours, shades
from jaxbio.studies.paper.experiment import Layout
from jaxbio.studies.paper.figures.waiting import WITHOUT
from jaxbio.studies.paper.switching import BASE

WITHOUT_SHORT = "no intermediate obs."
Place = dict[str, Any]  # axis -> value


def drawn(data: xr.Dataset) -> list[str]:
    """The learners that figures show: MetaAdaBIO's base serves a claim only."""
    return [str(name) for name in data.learner.values if name != BASE]


def heading(layout: Layout) -> str:
    return f"Experiment {layout.number}: {layout.title}"


def places(layout: Layout) -> list[Place]:
    """What each panel shows; one place without panels."""
    axis = layout.panels
    return [{}] if axis is None else [{axis: value} for value in layout.axes[axis]]


def named(place: Place) -> str:
    return ", ".join(f"{axis} {value}" for axis, value in place.items())


def shaded(layout: Layout) -> str | None:
    """The axis that is a sequence of shades in one panel: what is swept but has no panels."""
    return next((axis for axis in layout.axes if axis != layout.panels), None)


def regret(layout: Layout, data: xr.Dataset, look: Look) -> Figure:
    """Mean regret over rounds with a band of one standard deviation, as the paper shows it."""
    names = drawn(data)
    finals = data.regret.isel(round=-1).sel(learner=names).mean("run")
    axis = shaded(layout)
    widest = f"{', S = 88' if axis else ''}{number_after(float(finals.max()), look)}"
    numbers = "" if look.narrow else "; the numbers are the means after the last round"
    figure, axes = panels(
        [named(place) for place in places(layout)],
        look,
        heading=heading(layout),
        note=f"Mean of {data.sizes['run']} runs, band of one standard deviation{numbers}.",
        right=room_for(name + widest for name in names),
        height=2.7 if len(places(layout)) > 1 else 3.8,
    )
    for panel, place in zip(axes, places(layout), strict=True):
        part = data.sel(place)
        ends = _shaded_curves(panel, part, names, axis, look) if axis else None
        ends = ends or curves(panel, part, names, look)
        finish_regret(panel, int(data["round"].values[-1]))
        _mark_switch(panel, part, look)
        label_ends(panel, ends, look)
    return figure


def same(values: xr.DataArray, axis: str) -> bool:
    """Are means over runs nearly the same along an axis (a learner that does not see it)?"""
    mean = values.mean("run")
    return float((mean.max(axis) - mean.min(axis)).max()) < 0.01 * float(mean.max())


def _shaded_curves(
    axes: Axes, data: xr.Dataset, names: Sequence[str], axis: str, look: Look
) -> list[End]:
    """A hue for each learner, a shade for each value; one curve where all values are the same."""
    palette, rounds = colours(names, look), data["round"].values
    ends = []
    for name in names:
        own = data.regret.sel(learner=name).transpose(axis, "run", "round")
        if same(own, axis):
            last = band(axes, rounds, own.values[0], palette[name])
            ends.append(End(f"{name}, any S{number_after(last, look)}", last, palette[name]))
            continue
        for value, shade, runs in zip(
            own[axis].values, shades(palette[name], len(own), look), own.values, strict=True
        ):
            last = band(axes, rounds, runs, shade)
            ends.append(End(f"{name}, S = {value}{number_after(last, look)}", last, shade))
    return ends


def switching_rounds(data: xr.Dataset) -> np.ndarray:
    """The rounds after which MetaAdaBIO switched, of the runs that did: at most [runs]."""
    if "switch_round" not in data or "MetaAdaBIO" not in data.learner:
        return np.empty(0, int)
    found = data.switch_round.sel(learner="MetaAdaBIO").values.ravel()
    return found[found <= int(data["round"].values[-1])]


def _mark_switch(axes: Axes, data: xr.Dataset, look: Look) -> None:
    found = switching_rounds(data)
    if not found.size:
        return
    at = float(np.median(found))
    axes.axvline(at, color=look.theme.muted, linewidth=1.2, linestyle=(0, (4, 3)))
    early = at <= np.mean(axes.get_xlim())
    axes.annotate(
        f"switch {at:,.0f}" if look.narrow else f"switch after round {at:,.0f}",
        (at, 1),
        xycoords=axes.get_xaxis_transform(),
        xytext=(6 if early else -6, -4),
        ha="left" if early else "right",
        textcoords="offset points",
        va="top",
        color=look.theme.muted,
    )


def bounded(
    layout: Layout,
    data: xr.Dataset,
    limits: Sequence[dict[str, np.ndarray]],
    look: Look,
) -> Figure:
    """Mean regret (solid) below its bound (dashed) on logarithmic axes.

    limits: for each point of the grid, learner -> [points, 2].
    """
    grid = places(layout)
    axis = shaded(layout)
    if axis is not None:  # a panel for the least and the greatest value
        values = layout.axes[axis]
        grid = [{axis: values[0]}, {axis: values[-1]}]
        limits = [limits[0], limits[-1]]
    names = [name for name in drawn(data) if name in limits[0]]
    figure, axes = panels(
        [named(place) for place in grid],
        look,
        heading=f"{heading(layout)}, and the bounds",
        note="Solid: mean regret. Dashed: the theorem's bound for a game of that many rounds. "
        "Both axes are logarithmic, the bounds being far above.",
        right=room_for(f"{name}, bound{number_after(10_000, look)}" for name in names),
        height=2.9 if len(grid) > 1 else 3.8,
    )
    for panel, place, limit in zip(axes, grid, limits, strict=True):
        _bounded_panel(panel, data.sel(place), names, limit, look)
    return figure


def _bounded_panel(
    axes: Axes, data: xr.Dataset, names: Sequence[str], limit: dict[str, np.ndarray], look: Look
) -> None:
    palette, rounds, ends = colours(names, look), data["round"].values, []
    axes.set(xscale="log", yscale="log", xlabel="round", ylabel="cumulative regret")
    for name in names:
        mean = data.regret.sel(learner=name).mean("run").values
        axes.plot(rounds, np.where(mean > 0, mean, np.nan), color=palette[name])
        axes.plot(*limit[name].T, color=palette[name], linestyle=DASHES, linewidth=1.5)
        ends.append(
            End(f"{name}{number_after(mean[-1], look)}", max(mean[-1], 1e-3), palette[name])
        )
        final = limit[name][-1, 1]
        ends.append(End(f"{name}, bound{number_after(final, look)}", final, palette[name]))
    axes.set_xlim(rounds[0], rounds[-1])
    low = min(max(float(data.regret.sel(learner=name).mean("run")[0]), 1.0) for name in names)
    axes.set_ylim(low / 1.5, 1.6 * max(limit[name][-1, 1] for name in names))
    thousands(axes)
    label_ends(axes, ends, look)


def waiting(layout: Layout, counts: xr.DataArray, look: Look) -> Figure:
    """Rounds that are waited for, over rounds on a logarithmic axis.

    counts: [learner, *axes, run, round], see `outstanding`.
    """
    names = [str(name) for name in counts.learner.values]
    figure, axes = panels(
        [named(place) for place in places(layout)],
        look,
        heading=f"{heading(layout)}: what is waited for",
        note=f"Rounds whose loss the learner still waits for, mean of {counts.sizes['run']} runs; "
        "rounds on a logarithmic axis.",
        right=room_for([*names[1:], WITHOUT_SHORT, "MetaBIO, S = 12"]),
        height=2.4 if len(places(layout)) > 1 else 3.2,
    )
    for panel, place in zip(axes, places(layout), strict=True):
        _waiting_panel(panel, counts.sel(place), names, shaded(layout), look)
    return figure


def _waiting_panel(
    axes: Axes, counts: xr.DataArray, names: Sequence[str], axis: str | None, look: Look
) -> None:
    palette = colours(names[1:], look)
    rounds = counts["round"].values
    kept = np.unique(np.geomspace(1, len(rounds), 500).round().astype(int)) - 1
    mean = counts.mean("run").isel(round=kept)
    every = mean.sel(learner=WITHOUT) if axis is None else mean.sel(learner=WITHOUT).mean(axis)
    axes.plot(rounds[kept], every, color=look.theme.muted, linewidth=1.5)
    axes.set(xscale="log", xlabel="round", ylabel="rounds waited for")
    ends = [End(WITHOUT_SHORT, float(every[-1]), look.theme.muted)]
    for name in names[1:]:
        ends += _waiting_curves(axes, mean.sel(learner=name), name, palette[name], axis, look)
    axes.set_xlim(1, rounds[-1])
    axes.set_ylim(0, 1.12 * float(every.max()))
    thousands(axes)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    label_ends(axes, ends, look)


def _waiting_curves(
    axes: Axes, mean: xr.DataArray, name: str, colour: str, axis: str | None, look: Look
) -> list[End]:
    rounds = mean["round"].values
    if axis is None:
        axes.plot(rounds, mean.values, color=colour)
        return [End(name, float(mean[-1]), colour)]
    values = mean[axis].values.tolist()
    hues = shades(colour, len(values), look)
    for value, hue in zip(values, hues, strict=True):
        axes.plot(rounds, mean.sel({axis: value}).values, color=hue)
    last = float(mean.isel(round=-1).mean())
    return [
        End(f"{name}, S = {value}", last, hue)
        for value, hue in zip(reversed(values), reversed(hues), strict=True)
    ]
