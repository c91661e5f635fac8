"""All figures of an experiment, with what is said below them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import xarray as xr

from jaxbio.figures.saving import Drawing
from jaxbio.studies.paper.experiment import Experiment, Options
from jaxbio.studies.paper.figures.bounds import bounds, is_covered
from jaxbio.studies.paper.figures.curves import (
    bounded,
    drawn,
    places,
    regret,
    shaded,
    switching_rounds,
    waiting,
)
from jaxbio.studies.paper.figures.finals import against, distribution
from jaxbio.studies.paper.figures.waiting import environment_at, outstanding, points


def drawings(experiment: Experiment, data: xr.Dataset, options: Options) -> list[Drawing]:
    """The figures of an experiment, the paper's own first. Plays a few runs for the last one."""
    layout = experiment.layout
    made = [
        Drawing("regret", _about_regret(experiment, data), partial(regret, layout, data)),
        Drawing(
            "final",
            "Final regret of every run: how far the learners are apart, and how sure each is.",
            partial(distribution, layout, data),
        ),
    ]
    if len(experiment.axes) == 1:
        (axis,) = experiment.axes
        caption = f"Mean final regret against the {axis}, with 95 % intervals."
        made.append(Drawing("swept", caption, partial(against, layout, data)))
    counts = outstanding(experiment, options)
    made.append(
        Drawing("waiting", _about_waiting(counts, options), partial(waiting, layout, counts))
    )
    learners = experiment.learners(options)
    limits = [
        bounds(environment_at(experiment, options, point), options, learners)
        for point in points(experiment)
    ]
    made.append(Drawing("bounds", _about_bounds(learners), partial(bounded, layout, data, limits)))
    return made


def _about_bounds(learners: Mapping[str, Any]) -> str:
    text = (
        "Mean regret and the theorems' bounds for a game of that many rounds, on logarithmic "
        "axes: the bounds hold for the worst case and lie far above."
    )
    if "MetaAdaBIO" in learners and not is_covered(learners["MetaAdaBIO"]):
        text += (
            " MetaAdaBIO has none here: its theorem is for the switching rule of the theory and a "
            "base that starts afresh at the switch, and what is played here is the practical rule "
            "and a base that goes on."
        )
    return text


def _about_regret(experiment: Experiment, data: xr.Dataset) -> str:
    panels = f", one panel per {experiment.panels}" if len(places(experiment)) > 1 else ""
    text = (
        f"Mean cumulative regret of {len(drawn(data))} learners over {data.sizes['run']} runs"
        f"{panels}; the band is one standard deviation."
    )
    if shaded(experiment):
        text += " The stronger the shade, the more states."
    found = switching_rounds(data)
    if found.size:
        text += f" MetaAdaBIO switched after round {found.min():,}"
        text += "." if found.min() == found.max() else f" to {found.max():,}."
    return text


def _about_waiting(counts: xr.DataArray, options: Options) -> str:
    total = counts.sum("round").mean(
        [dim for dim in counts.dims if dim not in ("learner", "round")]
    )
    saved = 1 - float(total[1]) / max(float(total[0]), 1.0)
    return (
        "What intermediate observations save: the rounds whose loss is still waited for. "
        f"{counts.learner.values[1]}'s base waits {saved:.1%} less in total."
    )
