"""Experiment 2: two mappings that take turns in growing phases, four delays."""

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

OURS, OTHERS = ("MetaBIO", "MetaBIO, skipping"), ("UCB1", "NSD-UCRL2")


def learners(options: Options) -> dict[str, Any]:
    return {
        **with_and_without(options),
        "MetaBIO, skipping": make_learner(
            "metabio-skipping", delta=options.delta, tuning=options.tuning
        ),
        "UCB1": make_learner("ucb1"),
        "NSD-UCRL2": make_learner("nsd-ucrl2", delta=options.delta),
    }


def claims(options: Options) -> list[Any]:
    return [
        lower(ours, other, delay=delay)
        for delay in PAPER_DELAYS
        for ours in OURS
        for other in OTHERS
    ]


EXPERIMENT = Experiment(
    number=2,
    name="adversarial",
    title="Adversarial action-state mapping",
    about="K = 4, S = 3; MetaBIO, with and without skipping, beats UCB1 and NSD-UCRL2",
    environment=on_paper_delays("paper-adversarial"),
    learners=learners,
    axes={"delay": list(PAPER_DELAYS)},
    panels="delay",
    claims=claims,
)
