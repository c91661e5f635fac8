"""Experiment 2: two mappings that take turns in growing phases, four delays."""

from __future__ import annotations

from typing import Any

from jaxbio.environment.instances import make_environment
from jaxbio.experiments.experiment import PAPER_DELAYS, Experiment, Options, lower, paper_delay
from jaxbio.learners.registry import make_learner

OURS, OTHERS = ("MetaBIO", "MetaBIO, skipping"), ("UCB1", "NSD-UCRL2")


def environment(options: Options) -> Any:
    return lambda delay: make_environment("paper-adversarial", delays=paper_delay(delay))


def learners(options: Options) -> dict[str, Any]:
    given = {"delta": options.delta, "tuning": options.tuning}
    return {
        "DAda-Exp3": make_learner("dada-exp3", **given),
        "MetaBIO": make_learner("metabio", **given),
        "MetaBIO, skipping": make_learner("metabio-skipping", **given),
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
    environment=environment,
    learners=learners,
    axes={"delay": list(PAPER_DELAYS)},
    panels="delay",
    claims=claims,
)
