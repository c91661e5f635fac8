"""Experiment 1: stochastic action-state mapping, four delays."""

from __future__ import annotations

from typing import Any

from jaxbio.environment.instances import make_environment
from jaxbio.experiments.experiment import PAPER_DELAYS, Experiment, Options, lower, paper_delay
from jaxbio.learners.registry import make_learner


def environment(options: Options) -> Any:
    return lambda delay: make_environment("paper-stochastic", delays=paper_delay(delay))


def learners(options: Options) -> dict[str, Any]:
    given = {"delta": options.delta, "tuning": options.tuning}
    return {
        "DAda-Exp3": make_learner("dada-exp3", **given),
        "MetaBIO": make_learner("metabio", **given),
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
    environment=environment,
    learners=learners,
    axes={"delay": list(PAPER_DELAYS)},
    panels="delay",
    claims=claims,
)
