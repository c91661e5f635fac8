"""The phase diagram: a heat map of regret ratios, with the line where they are 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from scipy.interpolate import RegularGridInterpolator

from jaxbio.plot import LEARNER_COLOURS, Look, panels, style, thousands

HELPS, HURTS = LEARNER_COLOURS["MetaBIO"], LEARNER_COLOURS["DAda-Exp3"]
MOST = 4.0  # ratios beyond this and its inverse have the same colour
BAR = 0.9  # inches at the right of a panel for its scale of colours
MANY = 5  # powers of 2 on an axis; every other one is marked where there are more
FINE = 300  # points of a line, and along each side of the grid on which lines are sought


def phase(data: xr.Dataset, look: Look) -> Figure:
    """One panel per wrapper, number of actions and horizon. data: of `phase_diagram`."""
    cells = data[["ratio", "low", "high"]].stack(panel=("actions", "horizon", "wrapper"))
    figure, axes = panels(
        [_title(data, *place) for place in cells.panel.values],
        look,
        heading="Do intermediate observations help?",
        note=f"Mean regret relative to {data.learner.values[0]} alone; {data.sizes['run']} runs "
        "per cell. Solid line: the same regret. Hatched: the 95 % interval includes that. "
        "Dashed: S = d, where the bounds see the change.",
        right=BAR,
        height=3.2,
    )
    with rc_context(style(look)):
        for index, panel in enumerate(axes):
            _panel(panel, cells.isel(panel=index), look)
    return figure


def _title(data: xr.Dataset, actions: int, horizon: int, wrapper: str) -> str:
    """What sets a panel apart from the others."""
    words = [wrapper]
    words += [f"K = {actions}"] * (data.sizes["actions"] > 1)
    words += [f"T = {horizon:,}"] * (data.sizes["horizon"] > 1)
    return ", ".join(words)


def _panel(axes: Axes, cells: xr.Dataset, look: Look) -> None:
    delays, states = (np.asarray(cells[name], float) for name in ("delay", "states"))
    ratio, low, high = (
        cells[name].transpose("states", "delay").values for name in ("ratio", "low", "high")
    )
    drawn = axes.pcolormesh(
        *(_edges(values) for values in (delays, states)),
        np.clip(ratio, 1 / MOST, MOST),
        cmap=_colours(look),
        norm=LogNorm(1 / MOST, MOST),
        rasterized=True,
    )
    if _varied(delays) and _varied(states):
        _lines(axes, delays, states, [np.log(values) for values in (low, ratio, high)], look)
    first, last = max(delays[0], states[0]), min(delays[-1], states[-1])
    if first < last:
        both = np.geomspace(first, last, FINE) if first > 0 else np.linspace(first, last, FINE)
        axes.plot(both, both, color=look.theme.ink, linewidth=1.5, linestyle=(0, (4, 3)))
    _finish(axes, delays, states)
    _scale(axes, drawn)


def _lines(
    axes: Axes, delays: np.ndarray, states: np.ndarray, logs: list[np.ndarray], look: Look
) -> None:
    """The line where the ratio is 1, in the band where its interval includes 1.

    logs: logarithms of low, ratio and high, [states, delays]; between cells they are straight on
    the scales of the axes.
    """
    x, y = _scaled(delays), _scaled(states)
    fine_x, fine_y = np.linspace(x[0], x[-1], FINE), np.linspace(y[0], y[-1], FINE)
    grid = np.stack(np.meshgrid(fine_y, fine_x, indexing="ij"), axis=-1)
    low, ratio, high = (RegularGridInterpolator((y, x), values)(grid) for values in logs)
    places = _unscaled(fine_x, delays), _unscaled(fine_y, states)
    undecided = np.minimum(high, -low)
    with rc_context({"hatch.color": look.theme.ink, "hatch.linewidth": 0.8}):
        axes.contourf(*places, undecided, [0, np.inf], colors="none", hatches=["//////"])
    axes.contour(*places, ratio, [0], colors=[look.theme.ink], linewidths=2)


def _varied(values: np.ndarray) -> bool:
    """Enough values for a line between them?"""
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
            powers = 2.0 ** np.arange(np.ceil(low), high + 0.01, 1 if high - low < MANY else 2)
            axis.set_major_locator(FixedLocator(powers.tolist()))
            axis.set_minor_locator(NullLocator())
    thousands(axes)


def _scale(axes: Axes, drawn: Any) -> None:
    """The scale of colours, right of a panel."""
    inset = axes.inset_axes((1.03, 0, 0.04, 1))
    bar = axes.figure.colorbar(drawn, cax=inset)
    ticks = [1 / MOST, 1 / 2, 1, 2, MOST]
    bar.set_ticks(ticks, labels=["1/4", "1/2", "1", "2", "4"])
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)


def _colours(look: Look) -> LinearSegmentedColormap:
    """From "they help" over the paper's colour to "they hurt"."""
    return LinearSegmentedColormap.from_list("ratio", [HELPS, look.theme.paper, HURTS])
