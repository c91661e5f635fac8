"""What the log holds, as pictures: the mapping, the losses of states, the delays."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from jaxbio.data.fitted import CONVERSIONS, Fit
from jaxbio.data.log import Log
from jaxbio.figures.lines import End, label_ends, panels, room_for, thousands
from jaxbio.figures.saving import Drawing
from jaxbio.figures.style import LEARNER_COLOURS, SIZE, SPARE_COLOURS, Look, cut_to, text_inches
from jaxbio.studies.advise.log_words import column

MOST = 20  # actions or states of a picture
ROOM = 0.62  # inches of a cell that has numbers in it
CELL = 0.62  # inches that a row of a heat map is high
SIDE = 0.33  # of the width for labels of rows, at most
HEAD = 1.4  # inches for labels of columns, at most
HUE = LEARNER_COLOURS["MetaBIO"]
BELOW = 0.5  # inches of a panel that are for an axis, which a heat map has not
LABEL = 1.6  # inches of other labels, at most


def mapping(fit: Fit) -> Drawing:
    """A heat map of states by action."""
    caption = "How often each action is followed by each state, by the log."
    return Drawing("mapping", caption, lambda look: _mapping(fit, look))


def losses(fit: Fit) -> Drawing:
    """What the outcome is on average in each state."""
    caption = (
        "The mean outcome in each state: what a state that is seen at once says about the outcome "
        "that comes later."
    )
    return Drawing("losses", caption, lambda look: _losses(fit, look))


def delays(fit: Fit) -> Drawing:
    """How late outcomes come."""
    caption = (
        "How many rounds (decisions of anybody) pass until an outcome is known. The later, the "
        "more a learner has to guess."
    )
    return Drawing("delays", caption, lambda look: _delays(fit, look))


def _mapping(fit: Fit, look: Look) -> Figure:
    """Rows are actions, columns states; as many as there is room for, those with the most rows."""
    log, table = fit.log, fit.mapping
    rows, columns = _most(log.counts.sum(axis=1)), _most(log.counts.sum(axis=0))
    whole = look.width if look.narrow else 8.6
    names = [(cut_to(log.actions[k], whole * SIDE), f"{log.counts[k].sum():,} rows") for k in rows]
    left = max(text_inches(line) for lines in names for line in lines) + 0.3
    room = (whole - left - 0.3) / len(columns)
    heads = [cut_to(log.states[s], HEAD) for s in columns]
    steep = max(map(text_inches, heads)) > room - 0.1
    above = max(map(text_inches, heads)) + 0.15 if steep else 0.3
    figure, (axes,) = panels(
        [""], look, heading="How often each action is followed by each state",
        note=_left_out(len(rows), log.num_actions, len(columns), log.num_states),
        left=left, right=0.3, height=above + CELL * len(rows) - BELOW,
    )  # fmt: skip
    share = table.mean[np.ix_(rows, columns)]
    shades = LinearSegmentedColormap.from_list("", [look.theme.paper, HUE], N=65)
    axes.set_axis_off()
    axes.imshow(share, cmap=shades, vmin=0, vmax=max(share.max(), 0.3), aspect="auto")
    box = axes.get_position()
    inch = box.height / (above + CELL * len(rows) - BELOW)
    axes.set_position((box.x0, box.y0 - BELOW * inch, box.width, CELL * len(rows) * inch))
    for place, lines in enumerate(names):
        axes.text(-0.55, place, "\n".join(lines), ha="right", va="center")
    for place, head in enumerate(heads):
        axes.text(place, -0.6, head, ha="center", va="bottom", rotation=90 if steep else 0)
    if room >= ROOM:
        _numbers(axes, fit, rows, columns, look)
    return figure


def _numbers(axes: Axes, fit: Fit, rows: np.ndarray, columns: np.ndarray, look: Look) -> None:
    """Share, its interval, and the rows behind it."""
    table, counts = fit.mapping, fit.log.counts
    for place in np.ndindex(len(rows), len(columns)):
        k, s = rows[place[0]], columns[place[1]]
        mean, low, high = (100 * part[k, s] for part in table)
        dark = table.mean[k, s] > 0.45
        colour = "#ffffff" if dark else look.theme.ink
        lines = [f"{mean:.3g} %", f"{low:.3g} to {high:.3g}"]
        lines += [] if look.narrow else [f"{counts[k, s]:,} rows"]
        axes.text(place[1], place[0], "\n".join(lines), ha="center", va="center",
                  color=colour, size=SIZE - 2.5 if look.narrow else SIZE - 1)  # fmt: skip


def _losses(fit: Fit, look: Look) -> Figure:
    """A point with its interval for every state, in the units of the column of the outcome."""
    log = fit.log
    shown = _most(log.counts.sum(axis=0))
    names = [cut_to(log.states[s], LABEL) for s in shown]
    notes = [f"{log.counts[:, s].sum():,} rows" for s in shown]
    mean, low, high = (_outcomes(log, part[shown]) for part in fit.losses)
    better = "larger" if "reward" in log.names else "smaller"
    figure, (axes,) = panels(
        [""], look, heading=f"Mean of {column(log)!r} in each state",
        note=f"Dots: estimates; bars: 95 % intervals. Right: how often the state was seen. The "
        f"{better}, the better.",
        left=max(map(text_inches, names)) + 0.3, right=room_for(notes), height=0.4 * len(shown),
    )  # fmt: skip
    places = np.arange(len(shown))[::-1]
    axes.hlines(places, low, high, color=HUE, linewidth=4)
    axes.plot(mean, places, "o", color=HUE, markersize=7)
    for place, note in zip(places, notes, strict=True):
        axes.annotate(note, (1.02, place), xycoords=axes.get_yaxis_transform(), va="center",
                      annotation_clip=False)  # fmt: skip
    axes.set_yticks(places, names)
    reach = max(log.bounds[0], *low, *high) - log.bounds[0]
    axes.set_xlim(log.bounds[0] - 0.02 * reach, log.bounds[0] + 1.05 * reach)
    axes.set(ylim=(-0.6, len(shown) - 0.4), xlabel=f"mean of {column(log)!r}")
    axes.grid(axis="y", visible=False)
    return figure


def _outcomes(log: Log, losses: np.ndarray) -> np.ndarray:
    """Mean losses in the units of that column."""
    low, high = log.bounds
    return high - (high - low) * losses if "reward" in log.names else low + (high - low) * losses


def _delays(fit: Fit, look: Look) -> Figure:
    """Which share of the outcomes has come after so many rounds, by state if states differ."""
    late = fit.kind == CONVERSIONS
    several = len(fit.delays) > 1
    shown = _most(fit.log.counts.sum(axis=0))[: len(SPARE_COLOURS)] if several else [0]
    names = [cut_to(fit.log.states[s], LABEL) for s in shown] if several else ["all states"]
    of = "of those that ever come" if late else "of all outcomes"
    figure, (axes,) = panels(
        [""], look, heading="How late outcomes come",
        note=f"Share {of} that has come after so many rounds"
        + (f"; dashed: the waiting window, {fit.window:,} rounds." if late else "."),
        right=room_for(names), height=2.9,
    )  # fmt: skip
    longest = max(float(one.rounds[-1]) for one in fit.delays)
    ends = []
    for s, name, colour in zip(shown, names, SPARE_COLOURS, strict=False):
        rounds, come = _come(fit, s, late, longest)
        axes.plot(rounds, 100 * come, color=colour, drawstyle="steps-post")
        ends.append(End(name, 100 * float(come[-1]), colour))
    if fit.window is not None:
        axes.axvline(fit.window, color=look.theme.muted, linestyle=(0, (4, 3)), linewidth=1.2)
    if longest > 100:
        axes.set_xscale("symlog", linthresh=max(1.0, longest / 1000))
    axes.set(xlim=(0, longest * 1.05), ylim=(0, 102), xlabel="rounds", ylabel="% that has come")
    label_ends(axes, ends, look)
    if longest <= 100:
        thousands(axes, "x")
    return figure


def _come(fit: Fit, s: int, late: bool, longest: float) -> tuple[np.ndarray, np.ndarray]:
    """Rounds and the share that has come by then."""
    one = fit.delays[s]
    never = one.never if late else 0.0
    come = 1 - np.maximum(one.survival - never, 0) / max(1 - never, 1e-12)
    rounds = np.concatenate([[0.0], one.rounds, [longest * 1.05]])
    thin = np.unique(np.linspace(0, len(rounds) - 1, 2_000).astype(int))
    return rounds[thin], np.concatenate([[0.0], come, come[-1:]])[thin]


def _most(rows: np.ndarray) -> np.ndarray:
    """Those with the most rows, in their own order."""
    return np.sort(np.argsort(-rows, kind="stable")[:MOST])


def _left_out(rows: int, actions: int, columns: int, states: int) -> str:
    said = "Every row adds up to 100 %. Small: the 95 % interval."
    sizes = ((rows, actions, "actions"), (columns, states, "states"))
    left = [f"{every - shown} {what}" for shown, every, what in sizes if shown < every]
    return f"{said} Not shown, with fewer rows: {' and '.join(left)}." if left else said
