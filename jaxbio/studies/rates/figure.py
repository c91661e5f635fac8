"""Slopes of regret in T, S, d and K, beside the paper's rates."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from jaxbio.figures.lines import End, label_ends, panels, room_for, thousands, ticks_at
from jaxbio.figures.style import DASHES, Look, colours
from jaxbio.studies.rates.series import AXES

MARKS = {  # of matplotlib, and the same as a letter
    "hard-states": ("o", "●"),
    "hard-actions": ("o", "●"),
    "hard-adversarial": ("^", "▲"),
    "hard-delay": ("D", "◆"),
    "paper-utility": ("s", "■"),
}
PROBLEMS_IN_A_PANEL = 3
WORDS = {"horizon": "horizon T", "states": "number of states S", "delay": "delay d",
         "actions": "number of actions K"}  # fmt: skip


def slopes(data: xr.Dataset, look: Look) -> Figure:
    """Mean regret with its interval, its slope, and the problem's rate as a dashed line.

    data: as `measure_rates` returns it.
    """
    parts = _parts(data)
    texts = [_text(data.isel(line=i), look) for i in range(data.sizes["line"])]
    intervals = "" if look.narrow else ", with its 95 % interval"
    figure, axes = panels(
        [_title(part, look) for part in parts],
        look,
        heading="How regret grows, and how the paper's rates do",
        note=f"Mean final regret of {data.attrs['runs']:,} runs with 95 % intervals. Numbers: the "
        f"slope of the straight line that fits best{intervals}. Dashed: the rate that a hard "
        "problem is made for, or else that of the paper's table, moved to the height of the first "
        "learner.",
        right=room_for(texts),
        height=3.3,
        pad=11,
    )
    for panel, part in zip(axes, parts, strict=True):
        _panel(panel, part, look)
    return figure


def _parts(data: xr.Dataset) -> list[xr.Dataset]:
    """The lines of each panel: those along one axis, of three problems at most."""
    parts = []
    for axis in AXES:
        along = data.isel(line=data.axis.values == axis)
        problems = _problems(along)
        for first in range(0, len(problems), PROBLEMS_IN_A_PANEL):
            some = problems[first : first + PROBLEMS_IN_A_PANEL]
            parts.append(along.isel(line=np.isin(along.problem.values, some)))
    return parts


def _problems(data: xr.Dataset) -> list[str]:
    return list(dict.fromkeys(data.problem.values.tolist()))


def _title(data: xr.Dataset, look: Look) -> str:
    """The problems with their marks; without "hard" and "paper" where room is scarce."""
    words = {name: name.partition("-")[2] if look.narrow else name for name in _problems(data)}
    return "  ".join(f"{_mark(name)[1]} {word}" for name, word in words.items())


def _mark(problem: str) -> tuple[str, str]:
    return MARKS.get(problem, ("v", "▼"))


def _text(line: xr.Dataset, look: Look) -> str:
    slope, low, high = (float(line[name]) for name in ("slope", "slope_low", "slope_high"))
    sign = _mark(str(line.problem.values))[1]
    interval = "" if look.narrow else f" [{low:z.3f}, {high:z.3f}]"
    return f"{sign} {line.learner.values} {slope:z.3f}{interval}"


def _panel(axes: Axes, data: xr.Dataset, look: Look) -> None:
    """data: lines along one axis."""
    palette = colours(dict.fromkeys(data.learner.values.tolist()), look)
    axes.set(xscale="log", yscale="log", xlabel=WORDS[data.axis.values[0]])
    axes.set_ylabel("mean final regret")
    ends, drawn = [], set()
    for i in range(data.sizes["line"]):
        line = data.isel(line=i).dropna("point", subset=["value"])
        problem = str(line.problem.values)
        ends.append(_line(axes, line, palette[str(line.learner.values)], look))
        if problem not in drawn:
            ends.append(_rate(axes, line, look))
        drawn.add(problem)
    ticks_at(axes, data.value.values[np.isfinite(data.value.values)].tolist())
    thousands(axes, "y")
    axes.yaxis.set_minor_formatter(LogFormatter())  # of an axis that is short of a power of ten
    label_ends(axes, ends, look)


def _line(axes: Axes, line: xr.Dataset, colour: str, look: Look) -> End:
    """Points with intervals, joined; a mean that is not positive is left out."""
    x, mean = line.value.values, line.regret_mean.values
    seen = mean > 0
    bars = np.abs([mean - line.mean_low.values, line.mean_high.values - mean])[:, seen]
    mark = _mark(str(line.problem.values))[0]
    axes.errorbar(x[seen], mean[seen], bars, color=colour, fmt=f"{mark}-", markersize=4.5,
                  capsize=2, elinewidth=1.2, linewidth=1.4)  # fmt: skip
    last = float(mean[seen][-1]) if seen.any() else np.nan
    return End(_text(line, look), last, colour)


def _rate(axes: Axes, line: xr.Dataset, look: Look) -> End:
    x, mean, rate = line.value.values, line.regret_mean.values, line.rate.values
    moved = rate * np.exp(np.mean(np.log(mean[mean > 0] / rate[mean > 0])))
    axes.plot(x, moved, color=look.theme.ink, linewidth=1.2, linestyle=DASHES)
    sign = _mark(str(line.problem.values))[1]
    text = f"{sign} rate {float(line.rate_slope):z.2f}"
    return End(text, float(moved[-1]), look.theme.ink, DASHES)
