"""A tuning: how parameters and training score moved, and what held-out runs say."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from jaxbio.analysis.tuned import Tuned
from jaxbio.figures.lines import End, label_ends, panels, room_for
from jaxbio.figures.style import SPARE_COLOURS, Look

SCORE = "#8C8C8C"  # grey: no result


def tuning(tuned: Tuned, title: str, look: Look | None = None) -> Figure:
    """Parameters on a logarithmic axis, and the training score, over the steps of the search."""
    look = look or Look()
    texts = {name: f"{name}  {value:.3g}" for name, value in tuned.parameters.items()}
    figure, (first, second) = panels(
        ["Parameters", "Training score (not the result)"],
        look,
        heading=title,
        note=f"{tuned.summary()[0].upper()}{tuned.summary()[1:]}.",
        right=room_for(texts.values()),
    )
    _parameters(first, tuned, texts, look)
    _score(second, tuned)
    return figure


def _parameters(axes: Axes, tuned: Tuned, texts: dict[str, str], look: Look) -> None:
    at = np.arange(len(tuned.curve) + 1)
    ends = []
    for i, (name, value) in enumerate(tuned.parameters.items()):
        colour = SPARE_COLOURS[i % len(SPARE_COLOURS)]
        values = [step.parameters[name] for step in tuned.curve] + [value]
        axes.plot(at, values, color=colour)
        ends.append(End(texts[name], value, colour))
    axes.set_yscale("log")
    axes.set(xlabel="step", ylabel="value")
    _steps(axes, len(tuned.curve))
    _readable(axes)
    label_ends(axes, ends, look)


def _score(axes: Axes, tuned: Tuned) -> None:
    axes.plot([step.training_score for step in tuned.curve], color=SCORE)
    unit = " / that of the start values" * tuned.scaled
    axes.set(xlabel="step", ylabel=f"mean regret{unit}")
    _steps(axes, len(tuned.curve))


def _steps(axes: Axes, count: int) -> None:
    axes.set_xlim(0, count)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))


def _readable(axes: Axes) -> None:
    """Plain numbers on the logarithmic axis: powers of ten, in between 2 and 5, or any."""
    low, high = axes.get_ylim()
    factor = high / low
    few, some = MaxNLocator(5), LogLocator(subs=(1.0, 2.0, 5.0), numticks=20)
    chosen: Any = few if factor < 5 else some if factor < 1_000 else LogLocator(numticks=9)
    axes.yaxis.set_major_locator(chosen)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
