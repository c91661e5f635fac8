"""Experiment 1: stochastic action-state mapping, four delays."""

from __future__ import annotations

from typing import Any

from jaxbio.learners.registry import make_learner
from jaxbio.studies.paper.experiment import (
    PAPER_DELAYS,
    Experiment,
    Options,
    lower,
    on_paper_delays,
    with_and_without,
)


def learners(options: Options) -> dict[str, Any]:
    return {
        **with_and_without(options),
        "UCB1": make_learner("ucb1"),
        "NSD-UCRL2": make_learner("nsd-ucrl2", delta=options.delta),
        "Thompson": make_learner("thompson"),
        "MetaBIO, Tsallis-INF": make_learner("metabio-tsallis", delta=options.delta),
    }


def claims(options: Options) -> list[Any]:
    return [lower("MetaBIO", "DAda-Exp3", delay=delay) for delay in PAPER_DELAYS]


EXPERIMENT = Experiment(
    number=1,
    name="stochastic",
    title="Stochastic action-state mapping",
    about="K = 4, S = 3; MetaBIO improves on DAda-Exp3 at every delay",
    environment=on_paper_delays("paper-stochastic"),
    learners=learners,
    axes={"delay": list(PAPER_DELAYS)},
    panels="delay",
    claims=claims,
)
