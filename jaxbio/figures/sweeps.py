"""Figures of a sweep: final regret over two axes as colours, over one as lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from jaxbio import checks
from jaxbio.analysis.statistics import student_reach
from jaxbio.figures.lines import End, label_ends, panels, room_for, thousands, ticks_at
from jaxbio.figures.regret import checked_look
from jaxbio.figures.style import LEARNER_COLOURS, Look, colours, text_inches
from jaxbio.sweeps import choosing

LESS, MORE = LEARNER_COLOURS["MetaBIO"], LEARNER_COLOURS["DAda-Exp3"]
BAR = 1.25  # inches right of a panel for its scale of colours
LOWEST = 0.35  # of a cell's height in inches
MOST = 8  # ratios beyond this and its inverse have the same colour
WRITTEN = 130  # cells of a panel that have their number written into them


class Means(NamedTuple):
    """values [learner, ...], reach: half of their 95 % intervals; said: what they are; ratio: are
    they relative to a learner's?
    """

    values: xr.DataArray
    reach: xr.DataArray
    said: str
    runs: int
    ratio: bool


def heatmap(
    data: xr.Dataset,
    x: str,
    y: str,
    *,
    at: Mapping[str, Any] | None = None,
    relative_to: str | None = None,
    title: str = "",
    look: Look | None = None,
) -> Figure:
    """Mean final regret of each learner over two axes of a sweep: a panel each, one colour scale.

    Args:
      data: the Dataset of a sweep. x, y: names of its axes.
      at: axis -> value, for all axes but these two; those of one value need not be named.
      relative_to: a learner: show the ratio of the means to that learner's; blue is less regret.
      title, look: above the figure; light or dark, wide or narrow.
    """
    look = checked_look(look)
    found = means(data, (x, y), at, relative_to)
    values = found.values.transpose("learner", y, x)
    names = [str(name) for name in values.learner.values if name != relative_to]
    rows, columns = (values[axis].values for axis in (y, x))
    left = max(text_inches(_word(value)) for value in rows) + 0.75
    figure, drawn = panels(
        names, look, heading=checks.text("title", title), note=found.said, left=left, right=BAR,
        height=max(1.6, LOWEST * len(rows)),
    )  # fmt: skip
    colours_of = _scale(values.values, found.ratio, look)
    for axes, name in zip(drawn, names, strict=True):
        cells = values.sel(learner=name).values
        axes.imshow(colours_of.to_rgba(cells), aspect="auto", origin="lower")
        axes.set_xticks(range(len(columns)), [_word(value) for value in columns])
        axes.set_yticks(range(len(rows)), [_word(value) for value in rows])
        axes.set(xlabel=_axis(data, x), ylabel=_axis(data, y))
        axes.grid(visible=False)
        if cells.size <= WRITTEN:
            _write(axes, cells, found.ratio, colours_of)
        _bar(axes, colours_of, relative_to)
    return figure


def lines(
    data: xr.Dataset,
    x: str,
    *,
    at: Mapping[str, Any] | None = None,
    relative_to: str | None = None,
    log: str = "",
    title: str = "",
    look: Look | None = None,
) -> Figure:
    """Mean final regret of each learner over one axis of a sweep, with 95 % intervals.

    With relative_to, the ratio to a learner's mean: what states are worth over the delay, where x
    is "delay" and that learner looks at no states. log: "x", "y" or "xy". Others as in `heatmap`.
    """
    look = checked_look(look)
    checks.choice("log", log, ("", "x", "y", "xy"))
    found = means(data, (x,), at, relative_to)
    values, reach = (one.transpose("learner", x) for one in (found.values, found.reach))
    names = [str(name) for name in values.learner.values]
    at_x = np.asarray(values[x].values, float)
    palette = colours(names, look)
    figure, (axes,) = panels(
        [""], look, heading=checks.text("title", title), note=found.said,
        right=room_for(names), height=3.4,
    )  # fmt: skip
    ends = []
    for name, mean, half in zip(names, values.values, reach.values, strict=True):
        if name == relative_to:
            axes.axhline(1, color=palette[name], linewidth=1.2)
        else:
            axes.plot(at_x, mean, color=palette[name], marker="o", markersize=4)
            axes.fill_between(at_x, mean - half, mean + half, color=palette[name], alpha=0.18, lw=0)
        ends.append(End(name, float(mean[-1]), palette[name]))
    label = f"regret : that of {relative_to}" if found.ratio else "final regret"
    axes.set(xlabel=_axis(data, x), ylabel=label)
    axes.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
    if "y" not in log:
        axes.set_ylim(bottom=min(0.0, float(np.nanmin(values.values))))
        thousands(axes, "y")
    ticks_at(axes, at_x.tolist())
    label_ends(axes, ends, look)
    return figure


def means(
    data: xr.Dataset, over: tuple[str, ...], at: Mapping[str, Any] | None, relative_to: str | None
) -> Means:
    """Of the final regret, over these axes."""
    if len(set(over)) < len(over):
        raise ValueError(f"x and y must be different axes, but both are {over[0]!r}")
    place = choosing.place(data, at, over)
    final = data.final_regret.sel(place).transpose(..., "run")
    said = [f"{name} {value}" for name, value in place.items()]
    mean = final.mean("run")
    reach = xr.zeros_like(mean)
    runs = final.sizes["run"]
    ratio = relative_to is not None
    if ratio:
        checks.choice("relative_to", relative_to, [str(name) for name in final.learner.values])
        base = mean.sel(learner=relative_to)
        final = (final - mean / base * final.sel(learner=relative_to)) / base  # linearised
        mean = (mean / base).where(base > 0)
    if runs > 1:
        reach = reach.copy(data=student_reach(final.values))
    what = f"Ratio of mean final regrets to that of {relative_to}" if ratio else "Mean final regret"
    words = ", ".join([f"{what} of {runs:,} run{'s' if runs != 1 else ''}", *said])
    return Means(mean, reach, f"{words}; bands: 95 % intervals." if len(over) == 1 else f"{words}.",
                 runs, ratio)  # fmt: skip


def _scale(values: np.ndarray, ratio: bool, look: Look) -> ScalarMappable:
    """One for all panels. Ratios: blue where less, orange where more, 1 in the middle."""
    paper = look.theme.paper
    if ratio:
        cmap = LinearSegmentedColormap.from_list("ratio", [LESS, paper, MORE])
        return ScalarMappable(LogNorm(1 / MOST, MOST, clip=True), cmap)
    cmap = LinearSegmentedColormap.from_list("regret", [look.mixed(LESS, -0.9), LESS])
    return ScalarMappable(Normalize(min(0.0, np.nanmin(values)), np.nanmax(values)), cmap)


def _bar(axes: Axes, colours_of: ScalarMappable, relative_to: str | None) -> None:
    """The scale of colours, right of a panel, and what its numbers are."""
    inset = axes.inset_axes((1.04, 0, 0.045, 1))
    bar = axes.figure.colorbar(colours_of, cax=inset)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    if relative_to is None:
        bar.set_label("final regret")
        thousands(bar.ax, "y")
        return
    bar.set_label(f"regret : that of {relative_to}")
    bar.set_ticks([1 / MOST, 1 / 4, 1 / 2, 1, 2, 4, MOST],
                  labels=[f"≤ 1/{MOST}", "1/4", "1/2", "1", "2", "4", f"≥ {MOST}"])  # fmt: skip
    bar.ax.yaxis.set_minor_locator(NullLocator())


def _write(axes: Axes, cells: np.ndarray, ratio: bool, colours_of: ScalarMappable) -> None:
    """Each cell's number, in ink that can be read on its colour."""
    for (i, j), number in np.ndenumerate(cells):
        if np.isnan(number):
            continue
        red, green, blue, _ = colours_of.to_rgba(number)
        dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
        text = f"{number:.2f}" if ratio else f"{number:,.0f}"
        axes.text(j, i, text, ha="center", va="center", size="small",
                  color="white" if dark else "black")  # fmt: skip


def _axis(data: xr.Dataset, name: str) -> str:
    unit = data[name].attrs.get("units", "")
    return f"{name} in {unit}" if unit and unit != "1" else name


def _word(value: Any) -> str:
    return f"{value:,.10g}" if isinstance(value, int | float | np.number) else str(value)
