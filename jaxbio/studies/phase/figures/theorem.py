"""The phase diagram of wrappers in the form of their theorems, each against its own base."""

from __future__ import annotations

import itertools

import numpy as np
import xarray as xr
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from jaxbio.figures.lines import panels
from jaxbio.figures.style import Look, style
from jaxbio.studies.phase.figures.cells import BAR, draw_bounds, draw_cells, draw_grey
from jaxbio.studies.phase.study import helpful_delays, line_of, undecided

MOST = 4
FEW = 2  # panels that are drawn large
PANEL = ("actions", "horizon", "wrapper")
INSIDE = "Inside the line, regret is lower than without states. Grey: undecided at 95 %."
BOUNDS = "Dashed: S = d, where the bounds see the change"


def phase(data: xr.Dataset, look: Look) -> Figure:
    """One panel per wrapper, number of actions and horizon. data: of `phase_diagram`."""
    places = list(itertools.product(*(data[name].values for name in PANEL)))
    problems = int(data.attrs["problems"])  # a file gives a number of its own kind
    several = f" on each of {problems} problems" * (problems > 1)
    figure, axes = panels(
        [_title(data, *place) for place in places],
        look,
        heading=f"What do states bring to learners in the form of a theorem?{size_of(data)}",
        note="Mean regret of a learner that looks at states, with the numbers of its theorem, "
        f"relative to that of its base without them; {data.attrs['runs']} runs per cell{several}. "
        f"{INSIDE} {BOUNDS}"
        f"{', and MetaAdaBIO switches: before that it is its base' * _switches(data)}.",
        right=BAR,
        height=3.2 if len(places) <= FEW else 2.1,
    )
    with rc_context(style(look)):
        for panel, (actions, horizon, wrapper) in zip(axes, places, strict=True):
            cells = data.sel(actions=[actions], horizon=[horizon])
            _panel(panel, cells, str(wrapper), look)
    return figure


def size_of(data: xr.Dataset) -> str:
    """K and T, where they do not stand above the panels."""
    words = [f"K = {data.actions.values[0]}"] * (data.sizes["actions"] == 1)
    words += [f"T = {data.horizon.values[0]:,}"] * (data.sizes["horizon"] == 1)
    return " " * bool(words) + ", ".join(words)


def _switches(data: xr.Dataset) -> bool:
    return "MetaAdaBIO" in data.wrapper.values


def _title(data: xr.Dataset, actions: int, horizon: int, wrapper: str) -> str:
    """What sets a panel apart from the others."""
    words = [str(wrapper)]
    words += [f"K = {actions}"] * (data.sizes["actions"] > 1)
    words += [f"T = {horizon:,}"] * (data.sizes["horizon"] > 1)
    return ", ".join(words)


def _panel(axes: Axes, cells: xr.Dataset, wrapper: str, look: Look) -> None:
    """cells: of one K and one T."""
    ratio = cells.ratio.sel(wrapper=wrapper).squeeze(("actions", "horizon"))
    columns, rows = draw_cells(axes, ratio, look, "regret : that of its base", MOST)
    _band(axes, cells, wrapper, rows, look)
    _line(axes, cells, wrapper, columns, rows, look)
    draw_bounds(axes, ratio, look)


def _band(axes: Axes, cells: xr.Dataset, wrapper: str, borders: np.ndarray, look: Look) -> None:
    """Grey, row by row: the stretches of delays that are not known to help or not to help.

    borders: of the rows, [states + 1].
    """
    place = int(cells.actions[0]), int(cells.horizon[0])
    rows = [undecided(line_of(cells, wrapper, *place, int(states))) for states in cells.states]
    boxes = [
        [(low, bottom), (high, bottom), (high, top), (low, top)]
        for stretches, bottom, top in zip(rows, borders[:-1], borders[1:], strict=True)
        for low, high in stretches
    ]
    draw_grey(axes, boxes, look)


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
