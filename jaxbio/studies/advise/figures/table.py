"""Advice as a picture: expected regret of each learner with its interval."""

from __future__ import annotations

from matplotlib.figure import Figure

from jaxbio.figures.lines import panels, room_for, thousands
from jaxbio.figures.style import SIZE, Look, colours, text_inches, wrapped
from jaxbio.studies.advise.tournament import Outcome

NAMES = 0.36  # of the width for names of learners, at most: options are broken into lines


def advice(outcome: Outcome, title: str, look: Look) -> Figure:
    """A row per learner, the best on top: mean, 95 % interval, and the probability of being best
    of those that stayed to the end, the games of the others.
    """
    comparison = outcome.comparison
    both = [(row, f"{row.probability_best:.0%} best") for row in comparison.rows]
    both += [(row, f"{row.runs} games") for row in outcome.beaten]
    rows, labels = zip(*reversed(both), strict=True)
    names = [_lines(row.name, look) for row in rows]
    figure, (axes,) = panels(
        [""],
        look,
        heading=title,
        note=f"{comparison.verdict}. Bars: 95 % intervals of the mean.",
        left=max(text_inches(line) for lines in names for line in lines) + 0.35,
        right=room_for(labels),
        height=0.3 + len(rows) * (0.2 + 0.18 * max(map(len, names))),
    )
    palette = colours([row.name for row in rows], look)
    for y, (row, label) in enumerate(zip(rows, labels, strict=True)):
        colour = palette[row.name]
        axes.plot([row.low, row.high], [y, y], color=colour, linewidth=4, solid_capstyle="butt")
        axes.plot([row.mean], [y], "o", color=colour, markersize=6)
        axes.annotate(label, (1.02, y), xycoords=axes.get_yaxis_transform(), va="center",
                      color=look.theme.ink, annotation_clip=False)  # fmt: skip
    axes.set_yticks(range(len(rows)), ["\n".join(lines) for lines in names])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlim(left=min(0.0, *(row.low for row in rows)))
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("final regret")
    thousands(axes, "x")
    return figure


def _lines(name: str, look: Look) -> list[str]:
    """The name of a learner, its options on further lines where they are long."""
    spaced = name.replace(":", ": ").replace(",", ", ")
    return wrapped(spaced, NAMES * look.width, SIZE)
