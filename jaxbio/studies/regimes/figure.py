"""The four regimes: regret over rounds, and over the delay beside the paper's rates."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from jaxbio.figures.lines import (
    End,
    curves,
    finish_regret,
    label_ends,
    panels,
    room_for,
    thousands,
    ticks_at,
)
from jaxbio.figures.style import DASHES, Look, colours

RATES = {"nothing": "rate √((K + d) T)", "states": "rate √((K + min(S, d)) T)"}


def regimes(data: xr.Dataset, look: Look) -> Figure:
    """One panel per regime. data: of `play_regimes`."""
    names = [str(name) for name in data.learner.values]
    figure, axes = panels(
        [str(regime) for regime in data.regime.values],
        look,
        heading="MetaBIO fails where losses are adversarial",
        note=f"Mean regret of {data.sizes['run']} runs, band of one standard deviation; against "
        "the best action of the whole horizon, so it may be negative on the way.",
        right=room_for(name + "  -8,888" for name in names),
    )
    for panel, regime in zip(axes, data.regime.values, strict=True):
        ends = curves(panel, data.sel(regime=regime), names, look)
        finish_regret(panel, int(data["round"].values[-1]))
        label_ends(panel, ends, look)
    return figure


def delays(data: xr.Dataset, look: Look) -> Figure:
    """One panel per regime; the rates begin where their learners do. data: of `play_delays`."""
    figure, axes = panels(
        [str(regime) for regime in data.regime.values],
        look,
        heading="Regret over the delay: states help where losses are stochastic",
        note=f"Mean final regret over the delay with its 95 % interval, T = "
        f"{data.attrs['horizon']:,}, {data.attrs['runs']:,} runs each; adversarial losses are "
        "drawn anew for each run. Dashed: the paper's rates, moved to the first point of DAda-Exp3 "
        "(without states) and of MetaBIO (with).",
        right=room_for(RATES.values()),
        height=3.0,
        pad=11,
    )
    for panel, regime in zip(axes, data.regime.values, strict=True):
        _over_delays(panel, data.sel(regime=regime), look)
    return figure


def _over_delays(axes: Axes, data: xr.Dataset, look: Look) -> None:
    palette, x = colours([str(name) for name in data.learner.values], look), data.delay.values
    axes.set(xscale="log", yscale="log", xlabel="delay d in rounds", ylabel="final regret")
    ends = []
    for name, colour in palette.items():
        own = data.sel(learner=name)
        mean = own.regret_mean.values
        bars = np.abs([mean - own.mean_low.values, own.mean_high.values - mean])
        axes.errorbar(x, mean, bars, color=colour, marker="o", markersize=4.5, capsize=3)
        ends.append(End(name, float(mean[-1]), colour))
    for seen, first in _references(data).items():
        rate = data.rate.sel(seen=seen).values
        moved = rate * float(data.regret_mean.sel(learner=first)[0]) / rate[0]
        axes.plot(x, moved, color=look.theme.ink, linewidth=1.2, linestyle=DASHES)
        ends.append(End(RATES[seen], float(moved[-1]), look.theme.ink, DASHES))
    ticks_at(axes, x.tolist())
    if len(x) == 1:  # of which matplotlib makes an axis as wide as a rounding error
        axes.set_xlim(x[0] / 2, 2 * x[0])
    lowest = data.regret_mean.where(data.regret_mean > 0).min()
    axes.set_ylim(bottom=float(lowest) / 1.5)  # an interval may reach below 0
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    thousands(axes, "y")
    label_ends(axes, ends, look)


def _references(data: xr.Dataset) -> dict[str, str]:
    """Which rates are drawn, from whose first point: both where they differ."""
    both = {"nothing": "DAda-Exp3", "states": "MetaBIO"}
    differ = bool((data.rate.sel(seen="states") != data.rate.sel(seen="nothing")).any())
    known = set(map(str, data.learner.values))
    return {seen: first for seen, first in both.items()
            if first in known and (differ or seen == "nothing")}  # fmt: skip
