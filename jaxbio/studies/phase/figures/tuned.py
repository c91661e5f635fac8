"""What states are worth: the best learner with them against the best without, and beside it MetaBIO
in the form of its theorem against its base.
"""

from __future__ import annotations

import itertools

import xarray as xr
from matplotlib import rc_context
from matplotlib.figure import Figure

from jaxbio.figures.lines import panels
from jaxbio.figures.style import Look, style
from jaxbio.studies.phase.figures.cells import BAR, draw_cells
from jaxbio.studies.phase.figures.theorem import BOUNDS, INSIDE, size_of
from jaxbio.studies.phase.worth import as_wrappers

TITLES = {"tuned": "Tuned", "theorem": "Theorem"}
MAPPINGS = {"stationary": "fixed mapping", "changing": "changing mapping", "as made": "as made"}
UNRATED = " Hatched: a mean regret is not above 0, so there is no ratio; the line goes by the " \
    "difference."  # fmt: skip
PANEL = ("actions", "horizon", "form", "mapping")


def worth_panels(data: xr.Dataset, look: Look) -> Figure:
    """One panel per form, kind of mapping, K and T. data: of `worth_diagram`."""
    places = list(itertools.product(*(data[name].values.tolist() for name in PANEL)))
    problems = int(data.attrs["problems"])  # a file gives a number of its own kind
    several = f" on each of {problems} problems" * (problems > 1)
    unrated = data.ratio.isnull()
    figure, axes = panels(
        [_title(data, *place) for place in places],
        look,
        heading=f"What are states worth?{size_of(data)}",
        note="Tuned: mean regret of the best learner that looks at states relative to that of the "
        "best that does not; who they are, and with which settings, was chosen for each cell in "
        "other worlds. Theorem: MetaBIO with its confidence bounds relative to its base without "
        f"states. {data.attrs['runs']} runs per cell{several}. {INSIDE} {BOUNDS}."
        f"{UNRATED * bool(unrated.any())}",
        right=BAR,
        height=2.9,
    )
    with rc_context(style(look)):
        for panel, (actions, horizon, form, mapping) in zip(axes, places, strict=True):
            cells = data.sel(actions=[actions], horizon=[horizon], form=form)
            hidden = unrated.sel(actions=actions, horizon=horizon, form=form, mapping=mapping)
            draw_cells(
                panel,
                as_wrappers(cells),
                mapping,
                look,
                "regret, with states : without",
                theory=form == "theorem",
                unrated=hidden.transpose("states", "delay").values,
            )
    return figure


def _title(data: xr.Dataset, actions: int, horizon: int, form: str, mapping: str) -> str:
    """What sets a panel apart from the others."""
    several = data.sizes["actions"] * data.sizes["horizon"] > 1
    kind = MAPPINGS[mapping]
    words = [TITLES[form], kind.removesuffix(" mapping") if several else kind]
    words += [f"K = {actions}"] * (data.sizes["actions"] > 1)
    words += [f"T = {horizon:,}"] * (data.sizes["horizon"] > 1)
    return ", ".join(words)
