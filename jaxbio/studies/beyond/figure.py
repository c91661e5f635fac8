"""Dynamic regret under changes, and what it costs not to know."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbio.figures.lines import End, label_ends, panels, reach, room_for, thousands
from jaxbio.figures.style import DASHES, Look, colours
from jaxbio.studies.beyond.study import FORGETFUL, at_best
from jaxbio.studies.contestants import UNIFORM

PLAIN = FORGETFUL | {  # a variant has the colour of the learner it is one of, and is dashed
    "MetaBIO, no horizon": "MetaBIO",
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
        "the best action of every phase; those that forget do so after the time that is best for "
        f"each, of {changes.sizes['memory']}. Right: regret in the problem of Experiment 1.",
        right=room_for(names),
        height=3.3,
    )
    uniform = float(changes.uniform_regret)
    axes[0].axhline(uniform, color=look.theme.muted, linewidth=1.2, linestyle=":")
    never = End(UNIFORM, uniform, look.theme.muted, ":")
    _panel(axes[0], at_best(changes.dynamic_regret), "changes", look, [never])
    axes[0].set(xlabel="changes of the mapping", ylabel="final dynamic regret")
    _panel(axes[1], unknowns.final_regret, "spare", look, [])
    axes[1].set(xlabel="allowed states / states", ylabel="final regret")
    return figure


def _panel(axes: Axes, values: xr.DataArray, axis: str, look: Look, more: list[End]) -> None:
    """A line for each learner over evenly spaced values of an axis; more: labels besides theirs."""
    names = [str(name) for name in values.learner.values]
    palette = colours(dict.fromkeys(PLAIN.get(name, name) for name in names), look)
    x, ends = np.arange(values.sizes[axis]), list(more)
    for name in names:
        own = values.sel(learner=name).transpose(axis, "run").values
        colour, dash = palette[PLAIN.get(name, name)], DASHES if name in PLAIN else "-"
        mean = own.mean(axis=1)
        axes.errorbar(x, mean, reach(own), color=colour, linestyle=dash, marker="o", markersize=5,
                      capsize=3)  # fmt: skip
        ends.append(End(name, float(mean[-1]), colour, dash))
    axes.set_xticks(x, [f"{value:,}" for value in values[axis].values])
    axes.set_xlim(-0.2, x[-1] + 0.2)
    axes.set_ylim(bottom=0)
    thousands(axes, "y")
    label_ends(axes, ends, look)
