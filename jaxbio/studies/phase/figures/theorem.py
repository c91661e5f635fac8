"""The phase diagram of wrappers in the form of their theorems, each against its own base."""

from __future__ import annotations

import itertools

import xarray as xr
from matplotlib import rc_context
from matplotlib.figure import Figure

from jaxbio.figures.lines import panels
from jaxbio.figures.style import Look, style
from jaxbio.studies.phase.figures.cells import BAR, draw_cells

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
            draw_cells(panel, cells, str(wrapper), look, "regret : that of its base")
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
