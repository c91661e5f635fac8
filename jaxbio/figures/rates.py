"""Slopes of regret in T, S, d and K, beside the paper's rates."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbio.lab.series import AXES, UNIFORM
from jaxbio.plot import (
    DASHES,
    End,
    Look,
    colours,
    label_ends,
    panels,
    room_for,
    thousands,
    ticks_at,
)

MARKS = {  # of matplotlib, and the same as a letter
    "hard-states": ("o", "●"),
    "hard-actions": ("o", "●"),
    "hard-adversarial": ("^", "▲"),
    "hard-delay": ("D", "◆"),
    "paper-utility": ("s", "■"),
}
WORDS = {"horizon": "horizon T", "states": "number of states S", "delay": "delay d",
         "actions": "number of actions K"}  # fmt: skip


def slopes(data: xr.Dataset, look: Look) -> Figure:
    """Mean regret with its interval, the fitted line, and the problem's rate as a dashed line.

    data: as `measure_rates` returns it.
    """
    axes_there = [axis for axis in AXES if axis in data.axis.values]
    texts = [_text(data.isel(line=i), look) for i in range(data.sizes["line"])]
    intervals = "" if look.narrow else ", with its 95 % bootstrap interval"
    figure, axes = panels(
        [_title(data, axis, look) for axis in axes_there],
        look,
        heading="How regret grows, and how the paper's rates do",
        note=f"Mean final regret of {data.attrs['runs']:,} runs with 95 % intervals. Numbers: the "
        f"slope of the line through the points{intervals}. Dashed: the rate that a hard problem is "
        "made for, or else that of the paper's table, moved to the height of the first learner.",
        right=room_for(texts),
        height=3.3,
        pad=11,
    )
    for panel, axis in zip(axes, axes_there, strict=True):
        _panel(panel, data.isel(line=data.axis.values == axis), axis, look)
    return figure


def _title(data: xr.Dataset, axis: str, look: Look) -> str:
    """The problems with their marks; without "hard" and "paper" where room is scarce."""
    problems = dict.fromkeys(str(name) for name in data.problem.values[data.axis.values == axis])
    words = {name: name.partition("-")[2] if look.narrow else name for name in problems}
    return "  ".join(f"{_mark(name)[1]} {word}" for name, word in words.items())


def _mark(problem: str) -> tuple[str, str]:
    return MARKS.get(problem, ("v", "▼"))


def _text(line: xr.Dataset, look: Look) -> str:
    slope, low, high = (float(line[name]) for name in ("slope", "slope_low", "slope_high"))
    sign = _mark(str(line.problem.values))[1]
    interval = "" if look.narrow else f" [{low:z.3f}, {high:z.3f}]"
    return f"{sign} {line.learner.values} {slope:z.3f}{interval}"


def _panel(axes: Axes, data: xr.Dataset, axis: str, look: Look) -> None:
    names = [name for name in dict.fromkeys(data.learner.values.tolist()) if name != UNIFORM]
    palette = colours(names, look) | {UNIFORM: look.theme.muted}
    axes.set(xscale="log", yscale="log", xlabel=WORDS[axis], ylabel="mean final regret")
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
    label_ends(axes, ends, look)


def _line(axes: Axes, line: xr.Dataset, colour: str, look: Look) -> End:
    """Points with intervals and the fitted line; a mean that is not positive is left out."""
    x, mean = line.value.values, line.regret_mean.values
    seen = mean > 0
    bars = np.abs([mean - line.mean_low.values, line.mean_high.values - mean])[:, seen]
    mark = _mark(str(line.problem.values))[0]
    axes.errorbar(x[seen], mean[seen], bars, color=colour, fmt=mark, markersize=4.5, capsize=2,
                  elinewidth=1.2)  # fmt: skip
    slope = float(line.slope)
    height = np.log(mean[seen]).mean() - slope * np.log(x[seen]).mean()
    fit = np.exp(height + slope * np.log(x))
    axes.plot(x, fit, color=colour, linewidth=1.4)
    return End(_text(line, look), float(fit[-1]), colour)


def _rate(axes: Axes, line: xr.Dataset, look: Look) -> End:
    x, mean, rate = line.value.values, line.regret_mean.values, line.rate.values
    moved = rate * np.exp(np.mean(np.log(mean[mean > 0] / rate[mean > 0])))
    axes.plot(x, moved, color=look.theme.ink, linewidth=1.2, linestyle=DASHES)
    sign = _mark(str(line.problem.values))[1]
    text = f"{sign} rate {float(line.rate_slope):z.2f}"
    return End(text, float(moved[-1]), look.theme.ink, DASHES)
