"""Bounds that hold with high probability, and what the runs did."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbio.plot import (
    End,
    Look,
    colours,
    label_ends,
    panels,
    room_for,
    shades,
    text_inches,
    thousands,
    ticks_at,
)

DASHES = (0, (5, 2.5))
APART = 1.07  # between the marks of two guarantees at one delta, a factor


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
            f"Runs above the bound, T = {horizon:,}",
            f"Terms of the bound, T = {horizon:,}",
        ],
        look,
        heading="Bounds with high probability, tested",
        note=f"{data.attrs['runs']:,} runs each, K = {data.attrs['actions']}, "
        f"S = {data.attrs['states']}, mean delay {data.attrs['mean_delay']:.0f}. Solid: the "
        "1 - delta quantile of regret. Dashed: the theorem's bound. Intervals are of 95 %.",
        right=room_for([f"{max(names, key=len)}, bound", f"{max(names, key=len)}  88.8"]),
        height=2.9,
        pad=11,
    )
    palette = colours(names, look)
    _over_horizons(axes[0], data.sel(delta=delta), palette, look)
    _looseness(axes[1], data.sel(horizon=horizon), palette, look)
    _exceedance(axes[2], data.sel(horizon=horizon), palette, look)
    _composition(axes[3], data.sel(horizon=horizon, delta=delta), palette, look)
    return figure


def _over_horizons(axes: Axes, data: xr.Dataset, palette: dict[str, str], look: Look) -> None:
    x = data.horizon.values
    most = data.most_possible.values
    ends = [End("most possible", float(most[-1]), look.theme.muted)]
    axes.set(xscale="log", yscale="log", xlabel="horizon T", ylabel="regret")
    axes.plot(x, most, color=look.theme.muted, linewidth=1.2, linestyle=":")
    for name, colour in palette.items():
        own = data.sel(guarantee=name)
        axes.plot(x, own.bound, color=colour, linestyle=DASHES, marker="o", markersize=4)
        quantile = own.regret_quantile.where(own.regret_quantile > 0)  # the axis is logarithmic
        axes.plot(x, quantile, color=colour, marker="o", markersize=4)
        ends.append(End(f"{name}, bound", float(own.bound[-1]), colour))
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
    ends = [End("allowed: delta", float(deltas[-1]), look.theme.muted)]
    for i, (name, colour) in enumerate(palette.items()):
        own = data.sel(guarantee=name).sortby("delta")
        x = own.delta.values * APART ** (i - (len(palette) - 1) / 2)
        axes.vlines(x, np.maximum(own.share_low, floor), own.share_high, color=colour, linewidth=2)
        axes.plot(x, own.share_high, color=colour, marker="_", markersize=8, linestyle="none")
        total = int(own.exceeded.sum())
        ends.append(End(f"{name}  {total:,}", float(own.share_high[-1]), colour))
    axes.set_ylim(floor, 2 * float(deltas[-1]))
    ticks_at(axes, deltas.tolist())
    thousands(axes, "y")
    label_ends(axes, ends, look)


def _composition(axes: Axes, data: xr.Dataset, palette: dict[str, str], look: Look) -> None:
    """A bar for each guarantee, cut into the shares of its terms, largest first."""
    inches = axes.get_position().width * axes.figure.get_size_inches()[0]  # type: ignore[union-attr]
    for y, (name, colour) in enumerate(reversed(palette.items())):
        terms = data.terms.sel(guarantee=name).dropna("term").to_series()
        shares = (terms / terms.sum()).sort_values(ascending=False)
        start = 0.0
        for (term, share), hue in zip(
            shares.items(), shades(colour, len(shares), look), strict=True
        ):
            word = str(term).replace("_", " ")
            axes.barh(y, share, 0.42, start, color=hue, linewidth=0)
            if text_inches(word) < inches * share:
                axes.text(start + share / 2, y, word, ha="center", va="center", size=9.5,
                          color=_on(hue))  # fmt: skip
            start += float(share)
        axes.text(0, y + 0.26, f"{name}: {terms.sum():,.0f}", va="bottom", color=look.theme.ink)
        largest = str(shares.index[0]).replace("_", " ")
        if text_inches(largest) >= inches * shares.iloc[0]:
            axes.text(0, y - 0.23, f"largest: {largest}", va="top", size=9.5, color=look.theme.ink)
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.55, len(palette) - 0.3)
    axes.set_yticks([])
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("share of the bound")


def _on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "#ffffff"
