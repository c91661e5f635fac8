"""Dynamic regret under changes, and what it costs not to know."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbio.figures.finals import reach
from jaxbio.plot import End, Look, colours, label_ends, panels, room_for, thousands

DASH = (0, (4, 2))
PLAIN = {  # a variant has the colour of the learner it is one of, and is dashed
    "MetaBIO, restarting": "MetaBIO",
    "MetaBIO, no horizon": "MetaBIO",
    "NSD-UCRL2, window": "NSD-UCRL2",
    "MetaAdaBIO, no horizon": "MetaAdaBIO",
}


def beyond(changes: xr.Dataset, unknowns: xr.Dataset, look: Look) -> Figure:
    """Two panels; the data of `play_changes` and `play_unknowns`."""
    names = [str(name) for data in (changes, unknowns) for name in data.learner.values]
    figure, axes = panels(
        ["The best action changes", "The number of states is overestimated"],
        look,
        heading="Beyond the paper's assumptions",
        note=f"Mean of {changes.sizes['run']} runs with its 95 % interval. Left: regret against "
        "the best action of every phase. Right: regret in the problem of Experiment 1.",
        right=room_for(names),
        height=3.3,
    )
    _panel(axes[0], changes.dynamic_regret, "changes", look)
    axes[0].set(xlabel="changes of the mapping", ylabel="final dynamic regret")
    _panel(axes[1], unknowns.final_regret, "spare", look)
    axes[1].set(xlabel="allowed states / states", ylabel="final regret")
    return figure


def _panel(axes: Axes, values: xr.DataArray, axis: str, look: Look) -> None:
    """A line for each learner over evenly spaced values of an axis."""
    names = [str(name) for name in values.learner.values]
    palette = colours(dict.fromkeys(PLAIN.get(name, name) for name in names), look)
    x, ends = np.arange(values.sizes[axis]), []
    for name in names:
        own = values.sel(learner=name).transpose(axis, "run").values
        colour, dash = palette[PLAIN.get(name, name)], DASH if name in PLAIN else "-"
        mean = own.mean(axis=1)
        axes.errorbar(x, mean, reach(own), color=colour, linestyle=dash, marker="o", markersize=5,
                      capsize=3)  # fmt: skip
        ends.append(End(name, float(mean[-1]), colour))
    axes.set_xticks(x, [f"{value:,}" for value in values[axis].values])
    axes.set_xlim(-0.2, x[-1] + 0.2)
    axes.set_ylim(bottom=0)
    thousands(axes, "y")
    label_ends(axes, ends, look)
