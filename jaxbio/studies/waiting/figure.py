"""What waiting longer is worth: what is missed, and what comes in time, by window."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbio.figures.lines import End, label_ends, panels, room_for, thousands
from jaxbio.figures.style import SPARE_COLOURS, Look, colours
from jaxbio.studies.advise.log_words import column, is_reward
from jaxbio.studies.waiting.study import Waiting
from jaxbio.studies.waiting.text import rounds

MOST = 6  # states with a line of their own


def waiting(found: Waiting, look: Look) -> Figure:
    """Two panels with the window below them."""
    names = [*found.finals, *found.fit.log.states]
    name, best = found.best
    what = "Missed" if is_reward(found.fit.log) else "Too many"
    figure, (left, right) = panels(
        [f"{what} of {column(found.fit.log)!r}", "Conversions that come in time"],
        look, heading="What is waiting longer worth?",
        note=f"Dashed: the best window, {rounds(found, best)}, with {name}. Means of "
        f"{found.games} games of {found.horizon:,} rounds, bands: 95 %.",
        right=room_for(names), height=3.2,
    )  # fmt: skip
    _missed(left, found, look)
    _in_time(right, found, look)
    for axes in (left, right):
        axes.axvline(best, color=look.theme.muted, linestyle=(0, (4, 3)), linewidth=1.2)
        axes.set_xscale("log" if found.windows[0] > 0 else "symlog")
        axes.set_xlabel("waiting window, in rounds")
    return figure


def _missed(axes: Axes, found: Waiting, look: Look) -> None:
    palette, ends = colours(found.finals, look), []
    low, high = found.fit.log.bounds
    for name in found.finals:
        values = (high - low) * np.array([found.regret(name, one) for one in found.windows])
        axes.plot(found.windows, values[:, 0], color=palette[name], marker="o", markersize=4)
        axes.fill_between(found.windows, values[:, 1], values[:, 2], color=palette[name],
                          alpha=0.16, linewidth=0)  # fmt: skip
        ends.append(End(name, float(values[-1, 0]), palette[name]))
    axes.set_ylim(bottom=0)
    thousands(axes, "y")
    axes.set_ylabel(f"in {found.horizon:,} rounds")
    label_ends(axes, ends, look)


def _in_time(axes: Axes, found: Waiting, look: Look) -> None:
    states, ends = found.fit.log.states, []
    shown = np.argsort(-found.fit.log.counts.sum(axis=0), kind="stable")[:MOST]
    for s, colour in zip(np.sort(shown), SPARE_COLOURS, strict=False):
        share = 100 * found.in_time[:, s]
        axes.plot(found.windows, share, color=colour, linewidth=1.4)
        ends.append(End(states[s], float(share[-1]), colour))
    every = 100 * found.in_time_of_all
    axes.plot(found.windows, every, color=look.theme.ink, linewidth=2.4)
    ends.append(End("all states", float(every[-1]), look.theme.ink))
    axes.set_ylim(0, 102)
    axes.set_ylabel("% within the window")
    label_ends(axes, ends, look)
