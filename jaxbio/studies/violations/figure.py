"""What states cost or save while an assumption is violated more and more."""

from __future__ import annotations

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from jaxbio.figures.lines import End, label_ends, panels, room_for
from jaxbio.figures.style import DASHES, Look, colours
from jaxbio.studies.violations.problems import KINDS
from jaxbio.studies.violations.study import DIFFERENCE

PLAIN = {  # a variant has the colour of the learner it is one of, and is dashed
    "MetaBIO-mean": "MetaBIO",
    "HindsightExp3, forgetting": "HindsightExp3",
    "StateThompson, forgetting": "StateThompson",
}
WHOM = {
    "bandits": "its counterpart that does not",
    "blind": "the same one that is shown its action instead",
}
FORGETTING = "forgetting"  # in the labels of those that are drawn only where the mapping changes


def risk(data: xr.Dataset, look: Look) -> Figure:
    """One panel per kind. data: of `violations`."""
    names = [str(name) for name in data.pair.values]
    about = data.attrs
    figure, axes = panels(
        [KINDS[str(kind)].title for kind in data.kind.values],
        look,
        heading="When are states not to be trusted?",
        note=f"Regret of a learner that looks at states less that of {WHOM[about['against']]}, "
        f"in % of what guessing costs while nothing is violated ({about['guessing']:,.0f}). Below "
        f"the line states help, above it they hurt. Means of {about['runs']:,} runs, bands: 95 %; "
        f"T = {about['horizon']:,}, d = {about['delay']:,}.",
        right=room_for(names),
        height=3.6,
        pad=11,
    )
    palette = colours(dict.fromkeys(PLAIN.get(name, name) for name in names), look)
    for panel, kind in zip(axes, data.kind.values, strict=True):
        _panel(panel, data.sel(kind=kind), palette, look)
        panel.set_xlabel(KINDS[str(kind)].strength, loc="left")
    return figure


def _panel(axes: Axes, data: xr.Dataset, palette: dict[str, str], look: Look) -> None:
    """data: of one kind."""
    forgetting = str(data.kind.values) == "drifting"
    x, ends = data.strength.values, []
    axes.axhline(0, color=look.theme.ink, linewidth=1.2)
    for name in map(str, data.pair.values):
        if FORGETTING in name and not forgetting:
            continue
        mean, low, high = (100 * data[part].sel(pair=name).values for part in DIFFERENCE)
        colour, dash = palette[PLAIN.get(name, name)], DASHES if name in PLAIN else "-"
        axes.plot(x, mean, color=colour, linestyle=dash, linewidth=1.6)
        axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)
        ends.append(End(name, float(mean[-1]), colour, dash))
    axes.set_xlim(x[0], x[-1])
    axes.set_ylabel("more regret than without states")
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:+.0f} %" if value else "0 %")
    )
    label_ends(axes, ends, look)
