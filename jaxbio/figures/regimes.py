"""Regret over rounds in the four regimes."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from jaxbio.figures.curves import curves
from jaxbio.plot import Look, finish_regret, label_ends, panels, room_for


def regimes(data: xr.Dataset, look: Look) -> Figure:
    """One panel per regime. data: of `play_regimes`."""
    names = [str(name) for name in data.learner.values]
    figure, axes = panels(
        [str(regime) for regime in data.regime.values],
        look,
        heading="What states tell: nothing where losses are adversarial",
        note=f"Mean regret of {data.sizes['run']} runs, band of one standard deviation; against "
        "the best action of the whole horizon, so it may be negative on the way.",
        right=room_for(name + "  -8,888" for name in names),
    )
    for panel, regime in zip(axes, data.regime.values, strict=True):
        ends = curves(panel, data.sel(regime=regime), names, look)
        finish_regret(panel, int(data["round"].values[-1]))
        label_ends(panel, ends, look)
    return figure
