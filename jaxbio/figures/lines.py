"""Lines in panels: labels at their ends, bands of a standard deviation, readable axes.

Panels are placed in inches, so that text has the room it needs and nothing is clipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from jaxbio.analysis.statistics import student_reach
from jaxbio.figures.picture import Picture
from jaxbio.figures.style import (
    DPI,
    LEARNER_DASHES,
    SIZE,
    Look,
    colours,
    style,
    text_inches,
    wrapped,
)

LINE_HEIGHT = 1.25 * SIZE  # points between two labels


class End(NamedTuple):
    """A label at the right border: text at height y (of the data), joined to its line by a piece
    of the same colour and dashes.
    """

    text: str
    y: float
    colour: str
    dash: Any = "-"


def panels(
    titles: Sequence[str],
    look: Look,
    *,
    heading: str,
    note: str = "",
    left: float = 0.88,
    right: float = 0.3,
    height: float = 2.7,
    pad: float = 7,
) -> tuple[Figure, list[Axes]]:
    """A figure with one axes per title, a heading and a note above them.

    left, right: inches beside each axes for its ticks and labels; height: of each axes; pad: points
    below a title, more where it reaches over the labels.
    """
    columns = 1 if look.narrow or len(titles) == 1 else 2
    rows = -(-len(titles) // columns)
    width = look.width if look.narrow or columns > 1 else 8.6
    lines = _heading_lines(heading, note, width)
    top = 0.2 + sum(size * 1.4 / 72 for _, size, _ in lines)
    above = 0.42 if any(titles) else 0.2
    cell, cell_height = width / columns, above + height + 0.63
    total = top + rows * cell_height
    with rc_context(style(look)):
        figure = Picture(figsize=(width, total), dpi=DPI)
        _write_heading(figure, lines, look)
        drawn = []
        for i, title in enumerate(titles):
            row, column = divmod(i, columns)
            bottom = total - top - row * cell_height - above - height
            inches = (column * cell + left, bottom, cell - left - right, height)
            shares = np.array(inches) / [width, total, width, total]
            axes = figure.add_axes(tuple(shares.tolist()))
            axes.set_title(title, pad=pad)
            axes.tick_params(length=3)
            drawn.append(axes)
    return figure, drawn


def _heading_lines(heading: str, note: str, width: float) -> list[tuple[str, float, bool]]:
    """(text, size, bold) of each line, broken to the width."""
    lines = []
    for text, size, bold in ((heading, SIZE + 2, True), (note, SIZE - 0.5, False)):
        lines += [(line, size, bold) for line in wrapped(text, width - 0.3, size, bold)]
    return lines


def _write_heading(figure: Figure, lines: list[tuple[str, float, bool]], look: Look) -> None:
    width, height = figure.get_size_inches()
    y = height - 0.12
    for text, size, bold in lines:
        colour = look.theme.ink if bold else look.theme.muted
        weight = "bold" if bold else "normal"
        figure.text(0.15 / width, y / height, text, va="top", size=size, weight=weight,
                    color=colour)  # fmt: skip
        y -= size * 1.4 / 72


def band(axes: Axes, x: Any, values: np.ndarray, colour: str, dash: Any = "-") -> float:
    """Mean of values [runs, points], band of one standard deviation; returns the last mean."""
    mean, spread = values.mean(axis=0), values.std(axis=0)
    axes.plot(x, mean, color=colour, linestyle=dash, marker="o" if len(mean) == 1 else "")
    axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.16, linewidth=0)
    return float(mean[-1])


def thousands(axes: Axes, which: str = "xy") -> None:
    """10,000 instead of 10000 (or of 10^4 on a logarithmic axis)."""
    for name in which:
        axis = axes.xaxis if name == "x" else axes.yaxis
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        if name == "x" and axes.get_xscale() == "linear":
            axis.set_major_locator(
                MaxNLocator(max(2, int(inches(axes)[0] / 0.7)), steps=[1, 2, 2.5, 5, 10])
            )


def ticks_at(axes: Axes, values: Sequence[float]) -> None:
    """Ticks at these values of x, or at every second, third, ... of them where room is scarce."""
    wanted = sorted(set(values))
    widths = [text_inches(f"{value:,.10g}") + 0.12 for value in wanted]
    room = inches(axes)[0] + widths[0] / 2 + widths[-1] / 2
    step = next(
        n for n in range(1, len(wanted) + 1) if sum(widths[::n]) <= room or n == len(wanted)
    )
    axes.set_xticks(wanted[::step])
    axes.xaxis.set_minor_locator(NullLocator())
    thousands(axes, "x")


def inches(axes: Axes) -> tuple[float, float]:
    """Width and height of an axes."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    width, height = axes.get_position().size * figure.get_size_inches()
    return float(width), float(height)


def room_for(texts: Iterable[str]) -> float:
    """Inches that end labels need at the right."""
    return max((text_inches(text) for text in texts), default=0) + 0.45


def label_ends(axes: Axes, ends: Sequence[End], look: Look) -> None:
    """Labels right of the axes, moved apart, each joined to its line. Where limits or scales change
    later (a logarithmic axis, a zoom), the labels follow.
    """
    joints = [
        axes.add_line(
            Line2D([], [], color=end.colour, linewidth=1.4, linestyle=end.dash,
                   transform=axes.transAxes, clip_on=False)
        )
        for end in ends
    ]  # fmt: skip
    texts = [
        axes.annotate(end.text, (1, 0), xycoords="axes fraction", va="center",
                      color=look.theme.ink, annotation_clip=False)
        for end in ends
    ]  # fmt: skip

    def follow(_: Any = None) -> None:
        width, height = (72 * length for length in inches(axes))
        to_axes = axes.transData + axes.transAxes.inverted()
        x_end = axes.get_xlim()[1]
        shares = [to_axes.transform((x_end, end.y))[1] for end in ends]
        wanted = [height * float(np.clip(share, 0, 1)) for share in shares]  # may end outside
        places = spread(wanted, LINE_HEIGHT, height)
        for joint, text, start, placed in zip(joints, texts, wanted, places, strict=True):
            joint.set_data(
                [1 + 3 / width, 1 + 14 / width, 1 + 20 / width],
                [start / height, placed / height, placed / height],
            )
            text.xy = (1 + 24 / width, placed / height)
            text.set_position(text.xy)

    follow()
    axes.add_artist(_BeforeDrawing(follow))  # a scale changes without a word
    for limits in ("xlim_changed", "ylim_changed"):
        axes.callbacks.connect(limits, follow)


class _BeforeDrawing(Artist):
    """Draws nothing itself: does something before the rest of its axes is drawn."""

    def __init__(self, function: Callable[[], None]) -> None:
        super().__init__()
        self.function = function
        self.set(zorder=-1000, in_layout=False)

    def draw(self, renderer: Any) -> None:
        self.function()


def spread(wanted: Sequence[float], gap: float, top: float) -> list[float]:
    """Positions near the wanted ones, at least `gap` apart, within 0 and `top` if they fit."""
    order = np.argsort(wanted, kind="stable")
    groups: list[list[int]] = []
    for i in order:
        groups.append([int(i)])
        while len(groups) > 1 and _overlap(groups[-2], groups[-1], wanted, gap, top):
            last = groups.pop()
            groups[-1] += last
    placed = [0.0] * len(wanted)
    for group in groups:
        start = _start(group, wanted, gap, top)
        for rank, i in enumerate(group):
            placed[i] = start + rank * gap
    return placed


def _start(group: list[int], wanted: Sequence[float], gap: float, top: float) -> float:
    length = (len(group) - 1) * gap
    middle = float(np.mean([wanted[i] for i in group]))
    return max(0.0, min(middle - length / 2, top - length))


def _overlap(
    low: list[int], high: list[int], wanted: Sequence[float], gap: float, top: float
) -> bool:
    end = _start(low, wanted, gap, top) + len(low) * gap
    return _start(high, wanted, gap, top) < end - 1e-9


def finish_regret(axes: Axes, horizon: int) -> None:
    """Limits and names of the axes of a regret curve; below zero only where a curve goes."""
    lowest = min((line.get_ydata().min() for line in axes.lines), default=0)  # type: ignore
    axes.set_xlim(0, horizon)
    axes.set_ylim(bottom=min(0.0, 1.1 * float(lowest)))
    axes.set(xlabel="round", ylabel="cumulative regret")
    thousands(axes)


def curves(axes: Axes, data: xr.Dataset, names: Sequence[str], look: Look) -> list[End]:
    """Mean regret over rounds of each learner, see `band`; the labels of their ends."""
    palette = colours(names, look)
    ends = []
    for name in names:
        values = data.regret.sel(learner=name).transpose("run", "round").values
        dash = LEARNER_DASHES.get(name, "-")
        last = band(axes, data["round"].values, values, palette[name], dash)
        ends.append(End(f"{name}{number_after(last, look)}", last, palette[name]))
    return ends


def number_after(value: float, look: Look) -> str:
    """What follows a name at a line's end; nothing where room is scarce."""
    return "" if look.narrow else f"  {value:,.0f}"


def reach(finals: np.ndarray) -> np.ndarray:
    """[values]: half the 95 % interval of the mean of finals [values, runs]; 0 of a single run."""
    return student_reach(finals) if finals.shape[1] > 1 else np.zeros(len(finals))
