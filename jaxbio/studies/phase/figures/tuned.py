"""What states are worth: the best learner with them against the best without, and beside it MetaBIO
in the form of its theorem against its base.
"""

from __future__ import annotations

import itertools

import numpy as np
import xarray as xr
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from jaxbio.figures.lines import panels
from jaxbio.figures.style import Look, style
from jaxbio.studies.phase.figures.cells import (
    BAR,
    Box,
    corners,
    draw_bounds,
    draw_cells,
    draw_grey,
)
from jaxbio.studies.phase.figures.theorem import BOUNDS, size_of
from jaxbio.studies.phase.worth import UNDECIDED, less, sides

TITLES = {"tuned": "Tuned", "theorem": "Theorem"}
MAPPINGS = {"stationary": "fixed mapping", "changing": "changing mapping", "as made": "as made"}
UNRATED = " Hatched: a mean regret is not above 0, so there is no ratio; the line goes by the " \
    "difference."  # fmt: skip
MOST = 8
PANEL = ("actions", "horizon", "form", "mapping")


def worth_panels(data: xr.Dataset, look: Look) -> Figure:
    """One panel per form, kind of mapping, K and T. data: of `worth_diagram`."""
    places = list(itertools.product(*(data[name].values.tolist() for name in PANEL)))
    problems = int(data.attrs["problems"])  # a file gives a number of its own kind
    several = f" on each of {problems} problems" * (problems > 1)
    figure, axes = panels(
        [_title(data, *place) for place in places],
        look,
        heading=f"What are states worth?{size_of(data)}",
        note="Tuned: mean regret of the best learner that looks at states relative to that of the "
        "best that does not; who they are, and with which settings, was chosen for each cell in "
        "other worlds. Theorem: MetaBIO with its confidence bounds relative to its base without "
        f"states. {data.attrs['runs']} runs per cell{several}. The line parts cells with less "
        "regret than without states (blue) from those with more. Grey: undecided at 95 %. "
        f"{BOUNDS}."
        f"{UNRATED * bool(data.ratio.isnull().any())}",
        right=BAR,
        height=2.9,
    )
    with rc_context(style(look)):
        for panel, (actions, horizon, form, mapping) in zip(axes, places, strict=True):
            place = {"actions": actions, "horizon": horizon, "form": form, "mapping": mapping}
            _panel(panel, data.sel(place), form == "theorem", look)
    return figure


def _title(data: xr.Dataset, actions: int, horizon: int, form: str, mapping: str) -> str:
    """What sets a panel apart from the others."""
    several = data.sizes["actions"] * data.sizes["horizon"] > 1
    kind = MAPPINGS[mapping]
    words = [TITLES[form], kind.removesuffix(" mapping") if several else kind]
    words += [f"K = {actions}"] * (data.sizes["actions"] > 1)
    words += [f"T = {horizon:,}"] * (data.sizes["horizon"] > 1)
    return ", ".join(words)


def _panel(axes: Axes, cells: xr.Dataset, theory: bool, look: Look) -> None:
    """cells: of one form, mapping, K and T. theory: S = d has a meaning."""
    columns, rows = draw_cells(axes, cells.ratio, look, "regret, with states : without", MOST)
    found = sides(cells).transpose("states", "delay")
    draw_grey(axes, corners((found == UNDECIDED).values, columns, rows), look)
    lower = less(cells).transpose("states", "delay").values
    axes.add_collection(
        LineCollection(_outline(lower, columns, rows), colors=look.theme.ink, linewidths=2,
                       capstyle="projecting", gid="line")
    )  # fmt: skip
    if theory:
        draw_bounds(axes, cells.ratio, look)


def _outline(inside: np.ndarray, columns: np.ndarray, rows: np.ndarray) -> list[Box]:
    """Pieces of a line around cells: bool [states, delays]."""
    padded = np.pad(inside, 1)
    across, along = padded[1:-1, 1:] != padded[1:-1, :-1], padded[1:, 1:-1] != padded[:-1, 1:-1]
    upright = [[(columns[j], rows[i]), (columns[j], rows[i + 1])] for i, j in np.argwhere(across)]
    level = [[(columns[j], rows[i]), (columns[j + 1], rows[i])] for i, j in np.argwhere(along)]
    return upright + level
