"""What the panels of all phase diagrams share: cells in the colours of their ratios, and axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.ticker import FixedLocator, NullLocator

from jaxbio.figures.lines import inches, thousands
from jaxbio.figures.style import LEARNER_COLOURS, Look

HELPS, HURTS = LEARNER_COLOURS["MetaBIO"], LEARNER_COLOURS["DAda-Exp3"]
BAR = 1.2  # inches at the right of a panel for its scale of colours
MANY = 5  # powers of 2 on an axis; every other one is marked where there are more
TICK = 0.5  # inches that the number at a tick of the x axis takes
FINE = 300  # points of a line
SHADES = 65  # of a colour scale: a PNG has room for them all, besides letters and lines

Box = list[tuple[Any, Any]]  # corners


def draw_cells(
    axes: Axes, ratio: xr.DataArray, look: Look, scale: str, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Colours and axes; the borders of the columns and of the rows: [delays + 1], [states + 1].

    ratio: [states, delay]; where it is NaN, the cell is hatched. scale: what stands beside the
    colours. most: ratios beyond this and its inverse have the same colour.
    """
    delays, states = (np.asarray(ratio[name], float) for name in ("delay", "states"))
    values = ratio.transpose("states", "delay").values
    columns, rows = _edges(delays), _edges(states)
    drawn = axes.pcolormesh(
        columns,
        rows,
        np.ma.masked_invalid(np.clip(values, 1 / most, most)),
        cmap=_colours(look),
        norm=LogNorm(1 / most, most),
        rasterized=True,
    )
    if np.isnan(values).any():
        boxes = corners(np.isnan(values), columns, rows)
        axes.add_collection(
            PolyCollection(boxes, facecolors="none", edgecolors=look.theme.muted, linewidths=0,
                           hatch="////", gid="hatched")
        )  # fmt: skip
    _finish(axes, delays, states)
    _scale(axes, drawn, scale, most)
    return columns, rows


def corners(cells: np.ndarray, columns: np.ndarray, rows: np.ndarray) -> list[Box]:
    """Of the cells that are flagged: bool [states, delays]."""
    return [
        [(columns[j], rows[i]), (columns[j + 1], rows[i]),
         (columns[j + 1], rows[i + 1]), (columns[j], rows[i + 1])]
        for i, j in np.argwhere(cells)
    ]  # fmt: skip


def draw_grey(axes: Axes, boxes: list[Box], look: Look) -> None:
    """Where nothing is decided."""
    axes.add_collection(
        PolyCollection(boxes, facecolors=look.theme.ink, alpha=0.3, linewidths=0, gid="band")
    )


def draw_bounds(axes: Axes, ratio: xr.DataArray, look: Look) -> None:
    """Dashed: S = d, as far as both axes go."""
    delays, states = (np.asarray(ratio[name], float) for name in ("delay", "states"))
    first, last = max(delays[0], states[0]), min(delays[-1], states[-1])
    if first < last:
        both = np.geomspace(first, last, FINE) if first > 0 else np.linspace(first, last, FINE)
        axes.plot(both, both, color=look.theme.ink, linewidth=1.5, linestyle=(0, (4, 3)))


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


def _scale(axes: Axes, drawn: Any, text: str, most: int) -> None:
    """The scale of colours, right of a panel, and what its numbers are."""
    inset = axes.inset_axes((1.03, 0, 0.04, 1))
    bar = axes.figure.colorbar(drawn, cax=inset)
    powers = [2**i for i in range(1, round(np.log2(most)))]
    below = [f"≤ 1/{most}", *(f"1/{power}" for power in reversed(powers))]
    ticks = [1 / most, *(1 / power for power in reversed(powers)), 1, *powers, most]
    bar.set_ticks(ticks, labels=[*below, "1", *map(str, powers), f"≥ {most}"])
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.set_label(text)


def _colours(look: Look) -> LinearSegmentedColormap:
    """From "they help" over the paper's colour to "they hurt"."""
    ends = [HELPS, look.theme.paper, HURTS]
    return LinearSegmentedColormap.from_list("ratio", ends, SHADES)
