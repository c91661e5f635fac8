"""A panel of a phase diagram: cells in the colours of their ratios, a line around those below 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.patches import Polygon
from matplotlib.ticker import FixedLocator, NullLocator

from jaxbio.figures.lines import inches, thousands
from jaxbio.figures.style import LEARNER_COLOURS, Look
from jaxbio.studies.phase.study import helpful_delays, line_of, undecided

HELPS, HURTS = LEARNER_COLOURS["MetaBIO"], LEARNER_COLOURS["DAda-Exp3"]
MOST = 4.0  # ratios beyond this and its inverse have the same colour
BAR = 1.2  # inches at the right of a panel for its scale of colours
MANY = 5  # powers of 2 on an axis; every other one is marked where there are more
TICK = 0.5  # inches that the number at a tick of the x axis takes
FINE = 300  # points of a line
SHADES = 65  # of a colour scale: a PNG has room for them all, besides letters and lines


def draw_cells(
    axes: Axes,
    cells: xr.Dataset,
    wrapper: str,
    look: Look,
    scale: str,
    *,
    theory: bool = True,
    unrated: np.ndarray | None = None,
) -> None:
    """cells: of one K and one T. scale: what stands beside the colours. theory: draw S = d as well.
    unrated: [states, delays], cells without a ratio: they are hatched.
    """
    delays, states = (np.asarray(cells[name], float) for name in ("delay", "states"))
    ratio = cells.ratio.sel(wrapper=wrapper).squeeze(("actions", "horizon"))
    hidden = np.zeros((len(states), len(delays)), bool) if unrated is None else unrated
    borders = _edges(delays), _edges(states)
    shown = np.clip(ratio.transpose("states", "delay").values, 1 / MOST, MOST)
    drawn = axes.pcolormesh(
        *borders,
        np.ma.masked_array(shown, hidden),
        cmap=_colours(look),
        norm=LogNorm(1 / MOST, MOST),
        rasterized=True,
    )
    _hatch(axes, hidden, *borders, look)
    _band(axes, cells, wrapper, borders[1], look)
    _line(axes, cells, wrapper, *borders, look)
    first, last = max(delays[0], states[0]), min(delays[-1], states[-1])
    if theory and first < last:
        both = np.geomspace(first, last, FINE) if first > 0 else np.linspace(first, last, FINE)
        axes.plot(both, both, color=look.theme.ink, linewidth=1.5, linestyle=(0, (4, 3)))
    _finish(axes, delays, states)
    _scale(axes, drawn, scale)


def _hatch(
    axes: Axes, hidden: np.ndarray, columns: np.ndarray, rows: np.ndarray, look: Look
) -> None:
    """Cells that have no colour. columns, rows: borders, [delays + 1] and [states + 1]."""
    corners = [
        [(columns[j], rows[i]), (columns[j + 1], rows[i]),
         (columns[j + 1], rows[i + 1]), (columns[j], rows[i + 1])]
        for i, j in np.argwhere(hidden)
    ]  # fmt: skip
    if corners:
        axes.add_collection(
            PolyCollection(corners, facecolors="none", edgecolors=look.theme.muted, linewidths=0,
                           hatch="////", gid="hatched")
        )  # fmt: skip


def _band(axes: Axes, cells: xr.Dataset, wrapper: str, borders: np.ndarray, look: Look) -> None:
    """Grey, row by row: the stretches of delays that are not known to help or not to help.

    borders: of the rows, [states + 1].
    """
    place = int(cells.actions[0]), int(cells.horizon[0])
    rows = [undecided(line_of(cells, wrapper, *place, int(states))) for states in cells.states]
    corners = [
        [(low, bottom), (high, bottom), (high, top), (low, top)]
        for stretches, bottom, top in zip(rows, borders[:-1], borders[1:], strict=True)
        for low, high in stretches
    ]
    axes.add_collection(
        PolyCollection(corners, facecolors=look.theme.ink, alpha=0.3, linewidths=0, gid="band")
    )


def _line(
    axes: Axes,
    cells: xr.Dataset,
    wrapper: str,
    columns: np.ndarray,
    rows: np.ndarray,
    look: Look,
) -> None:
    """Around the cells in which states help, a step for each row; open ends reach the border.

    columns, rows: borders of the cells, [delays + 1] and [states + 1].
    """
    ends = helpful_delays(cells, wrapper).sel(reach="line").squeeze(("actions", "horizon")).values
    grid = np.asarray(cells.delay, float)
    left = np.where(ends[:, 0] == grid[0], columns[0], ends[:, 0])
    right = np.where(ends[:, 1] == grid[-1], columns[-1], ends[:, 1])
    helped = np.flatnonzero(np.isfinite(left))
    for run in np.split(helped, np.flatnonzero(np.diff(helped) > 1) + 1):
        x = [*np.repeat(left[run], 2), *np.repeat(right[run], 2)[::-1]]
        y = np.stack([rows[run], rows[run + 1]], axis=1).ravel()
        axes.add_patch(
            Polygon(
                np.stack([x, [*y, *y[::-1]]], axis=1).reshape(-1, 2),
                closed=True,
                fill=False,
                edgecolor=look.theme.ink,
                linewidth=2,
                joinstyle="miter",
                gid="line",
            )
        )


def _varied(values: np.ndarray) -> bool:
    """More than one value, so that there is a distance between them?"""
    return len(values) > 1


def _edges(values: np.ndarray) -> np.ndarray:
    """Borders of cells around values, halfway between them, on the scale of their axis."""
    scaled = _scaled(values)
    if not _varied(values):
        return np.array([scaled[0] - 0.5, scaled[0] + 0.5])
    middle = (scaled[1:] + scaled[:-1]) / 2
    whole = np.concatenate([[2 * scaled[0] - middle[0]], middle, [2 * scaled[-1] - middle[-1]]])
    return _unscaled(whole, values)


def _scaled(values: np.ndarray) -> np.ndarray:
    """As they stand on their axis."""
    return np.log(values) if _widens(values) else values


def _unscaled(places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The inverse, on the axis of `values`."""
    return np.exp(places) if _widens(values) else places


def _widens(values: np.ndarray) -> bool:
    """Does the distance between values grow along the axis? Then it is logarithmic."""
    gaps = np.diff(values)
    return values[0] > 0 and len(gaps) > 1 and gaps[-1] > 2 * gaps[0]


def _finish(axes: Axes, delays: np.ndarray, states: np.ndarray) -> None:
    axes.grid(visible=False)
    axes.set(xlabel="delay d in rounds", ylabel="number of states S")
    for axis, values, scale in (
        (axes.xaxis, delays, axes.set_xscale),
        (axes.yaxis, states, axes.set_yscale),
    ):
        if _widens(values):
            scale("log", base=2)
            low, high = np.log2(values[[0, -1]])
            step = 1 if high - low < MANY else 2
            if axis is axes.xaxis:
                step = max(step, int(np.ceil((high - low + 1) * TICK / inches(axes)[0])))
            powers = 2.0 ** np.arange(np.floor(high + 0.01), low - 0.01, -step)  # from the top
            axis.set_major_locator(FixedLocator(powers.tolist()))
            axis.set_minor_locator(NullLocator())
    thousands(axes)


def _scale(axes: Axes, drawn: Any, text: str) -> None:
    """The scale of colours, right of a panel, and what its numbers are."""
    inset = axes.inset_axes((1.03, 0, 0.04, 1))
    bar = axes.figure.colorbar(drawn, cax=inset)
    ticks = [1 / MOST, 1 / 2, 1, 2, MOST]
    bar.set_ticks(ticks, labels=["≤ 1/4", "1/2", "1", "2", "≥ 4"])
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.set_label(text)


def _colours(look: Look) -> LinearSegmentedColormap:
    """From "they help" over the paper's colour to "they hurt"."""
    ends = [HELPS, look.theme.paper, HURTS]
    return LinearSegmentedColormap.from_list("ratio", ends, SHADES)
