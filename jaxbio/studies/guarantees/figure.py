"""Bounds that hold with high probability, and what the runs did."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbio.figures.lines import End, label_ends, panels, room_for, thousands, ticks_at
from jaxbio.figures.style import DASHES, Look, colours, shades
from jaxbio.studies.guarantees.study import TRIVIAL

APART = 1.07  # between the marks of two guarantees at one delta, a factor
TERM_HEIGHT = 12.2  # points between the names of two terms


def bounds_and_runs(data: xr.Dataset, look: Look) -> Figure:
    """Bound and quantile over T, their ratio, runs above the bound, the terms of the bound.

    data: as `check_guarantees` returns it.
    """
    names = [str(name) for name in data.guarantee.values]
    delta, horizon = float(data.delta.min()), int(data.horizon.max())
    figure, axes = panels(
        [
            f"Regret and bound, delta = {delta:g}",
            f"Bound / quantile, T = {horizon:,}",
            f"Runs above the bound, T = {horizon:,}{_vacuous(data.sel(horizon=horizon), look)}",
            f"Terms of the bound, T = {horizon:,}",
        ],
        look,
        heading="Bounds with high probability, tested",
        note=f"{data.attrs['runs']:,} runs each, K = {data.attrs['actions']}, "
        f"S = {data.attrs['states']}, mean delay {data.attrs['mean_delay']:.0f}. Solid: the "
        "1 - delta quantile of regret. Dashed: the theorem's bound. Intervals are of 95 %.",
        right=room_for([f"{max(names, key=len)}, bound", f"{max(names, key=len)}  88.8"]),
        height=max(3.8, 0.95 * len(names)),
        pad=11,
    )
    palette = colours(names, look)
    _over_horizons(axes[0], data.sel(delta=delta), palette, look)
    _looseness(axes[1], data.sel(horizon=horizon), palette, look)
    _exceedance(axes[2], data.sel(horizon=horizon), palette, look)
    _composition(axes[3], data.sel(horizon=horizon, delta=delta), palette, look)
    return figure


def _vacuous(data: xr.Dataset, look: Look) -> str:
    """What to add where no run could be above any bound."""
    none = bool((data.verdict == TRIVIAL).all())
    return "" if not none else ": none can" if look.narrow else ": none can be"


def _over_horizons(axes: Axes, data: xr.Dataset, palette: dict[str, str], look: Look) -> None:
    x = data.horizon.values
    most = data.most_possible.values
    ends = [End("most possible", float(most[-1]), look.theme.muted, ":")]
    axes.set(xscale="log", yscale="log", xlabel="horizon T", ylabel="regret")
    axes.plot(x, most, color=look.theme.muted, linewidth=1.2, linestyle=":")
    for name, colour in palette.items():
        own = data.sel(guarantee=name)
        axes.plot(x, own.bound, color=colour, linestyle=DASHES, marker="o", markersize=4)
        quantile = own.regret_quantile.where(own.regret_quantile > 0)  # the axis is logarithmic
        axes.plot(x, quantile, color=colour, marker="o", markersize=4)
        ends.append(End(f"{name}, bound", float(own.bound[-1]), colour, DASHES))
        if float(own.regret_quantile[-1]) > 0:
            ends.append(End(name, float(own.regret_quantile[-1]), colour))
    ticks_at(axes, x.tolist())
    thousands(axes, "y")
    label_ends(axes, ends, look)


def _looseness(axes: Axes, data: xr.Dataset, palette: dict[str, str], look: Look) -> None:
    x, ends = data.delta.values, []
    order = np.argsort(x)
    axes.set(xscale="log", xlabel="delta", ylabel="bound / quantile")
    for name, colour in palette.items():
        ratio = data.ratio.sel(guarantee=name).values
        axes.plot(x[order], ratio[order], color=colour, marker="o", markersize=4)
        ends.append(End(f"{name}  {ratio[order][-1]:.3g}", float(ratio[order][-1]), colour))
    axes.axhline(1, color=look.theme.muted, linewidth=1.2, linestyle=":")
    axes.set_ylim(bottom=0)
    ticks_at(axes, x.tolist())
    thousands(axes, "y")
    label_ends(axes, ends, look)


def _exceedance(axes: Axes, data: xr.Dataset, palette: dict[str, str], look: Look) -> None:
    """Intervals as bars; one that reaches down to 0 leaves the logarithmic axis at the bottom."""
    deltas = np.sort(data.delta.values)
    floor = min(float(data.share_high.min()), float(deltas[0])) / 4
    axes.set(xscale="log", yscale="log", xlabel="delta", ylabel="share of runs")
    axes.plot(deltas, deltas, color=look.theme.muted, linewidth=1.4, linestyle=DASHES)
    ends = [End("allowed: delta", float(deltas[-1]), look.theme.muted, DASHES)]
    for i, (name, colour) in enumerate(palette.items()):
        own = data.sel(guarantee=name).sortby("delta")
        x = own.delta.values * APART ** (i - (len(palette) - 1) / 2)
        axes.vlines(x, np.maximum(own.share_low, floor), own.share_high, color=colour, linewidth=2)
        axes.plot(x, own.share_high, color=colour, marker="_", markersize=8, linestyle="none")
        total = int(own.exceeded.sum())
        ends.append(End(f"{name}: {total:,} runs", float(own.share_high[-1]), colour))
    axes.set_ylim(floor, 2 * float(deltas[-1]))
    ticks_at(axes, deltas.tolist())
    thousands(axes, "y")
    label_ends(axes, ends, look)


def _composition(axes: Axes, data: xr.Dataset, palette: dict[str, str], look: Look) -> None:
    """A bar for each guarantee, cut into the shares of its terms, largest first; their names stand
    at the right in the same order, next to their colours.
    """
    for y, (name, colour) in enumerate(reversed(palette.items())):
        terms = data.terms.sel(guarantee=name).dropna("term").to_series()
        shares = (terms / terms.sum()).sort_values(ascending=False)
        hues = shades(colour, len(shares), look)
        starts = shares.cumsum().shift(fill_value=0)
        axes.barh([y - 0.1] * len(shares), shares, 0.4, starts, color=hues, linewidth=0)
        axes.text(0, y + 0.29, f"{name}: {terms.sum():,.0f}", va="bottom", color=look.theme.ink)
        for row, (term, share) in enumerate(shares.items()):
            down = TERM_HEIGHT * ((len(shares) - 1) / 2 - row)
            words = f"{str(term).replace('_', ' ')} {share:.0%}"
            for right, text, hue in ((6, "■", hues[row]), (18, words, look.theme.ink)):
                axes.annotate(text, (1, y - 0.1), (right, down), textcoords="offset points",
                              va="center", size=9, color=hue, annotation_clip=False)  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.52, len(palette) - 0.48)
    axes.set_yticks([])
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("share of the bound")
