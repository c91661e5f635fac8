"""Figures. The only module that imports matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbio.record import Result

# Okabe and Ito's colours, told apart with any colour vision; black last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def regret_curves(results: Mapping[str, Result], title: str = "") -> Figure:
    """Mean regret over rounds for each named result, with a band of one standard deviation."""
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    for (name, result), colour in zip(results.items(), cycle(COLOURS), strict=False):
        draw_curve(axes, name, result, colour)
    axes.set(xlabel="round", ylabel="cumulative regret", title=title)
    axes.margins(x=0)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.legend(frameon=False, loc="upper left")
    return figure


def draw_curve(axes: Axes, name: str, result: Result, colour: str) -> None:
    """One mean with its band."""
    mean, spread = result.regret.mean(axis=0), result.regret.std(axis=0)
    rounds = np.concatenate([[0], result.rounds])
    mean, spread = np.concatenate([[0], mean]), np.concatenate([[0], spread])
    axes.plot(rounds, mean, color=colour, linewidth=1.8, label=f"{name}: {mean[-1]:,.0f}")
    axes.fill_between(rounds, mean - spread, mean + spread, color=colour, alpha=0.18, linewidth=0)
