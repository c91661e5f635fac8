"""Final regret of several learners: means with their intervals, a row each."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbio import checks
from jaxbio.analysis.comparison import Comparison
from jaxbio.figures.lines import panels, thousands
from jaxbio.figures.regret import checked_look, given_axes
from jaxbio.figures.style import Look, colours, text_inches


def final_regret(
    comparison: Comparison,
    title: str = "",
    look: Look | None = None,
    *,
    ax: Axes | None = None,
    log: bool = False,
) -> Figure:
    """Mean final regret of each learner with its 95 % interval, the best on top.

    ax: matplotlib axes to draw into; by default a figure is made. log: a logarithmic axis.
    """
    if not isinstance(comparison, Comparison):
        raise TypeError(f"comparison must be a Comparison, but got {checks.shown(comparison)}")
    checks.text("title", title)
    checks.boolean("log", log)
    look = checked_look(look)
    rows = list(reversed(comparison.rows))
    if ax is None:
        figure, (axes,) = panels(
            [""],
            look,
            heading=title,
            note=f"{comparison.verdict}. Bars: 95 % intervals of the mean.",
            left=max(text_inches(row.name) for row in rows) + 0.35,
            height=0.3 + 0.36 * len(rows),
        )
    else:
        axes, figure = given_axes(ax)
    palette = colours([row.name for row in comparison.rows], look)
    for y, row in enumerate(rows):
        colour = palette[row.name]
        axes.plot([row.low, row.high], [y, y], color=colour, linewidth=4, solid_capstyle="butt")
        axes.plot([row.mean], [y], "o", color=colour, markersize=6)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("final regret")
    if log:
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=min([0.0, *(row.low for row in rows if row.low == row.low)]))
    thousands(axes, "x")
    return figure
