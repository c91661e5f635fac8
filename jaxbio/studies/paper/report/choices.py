"""Do the verdicts depend on what the paper leaves open?"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbio.learners.exp3 import TUNINGS
from jaxbio.learners.registry import make_learner
from jaxbio.studies.paper.experiment import Experiment, Options, on_paper_delays
from jaxbio.studies.paper.switching import BASE
from jaxbio.studies.paper.verdicts import Verdict, judge

DELTAS = (0.01, 0.1, 0.5)
WINDOW = 500


@dataclass(frozen=True)
class Sensitivity:
    """choices: what was changed, the first is nothing. verdicts: [choices][claims]."""

    choices: list[str]
    verdicts: list[list[Verdict]]


Variant = tuple[str, Experiment, Options]


def sensitivity(
    experiment: Experiment,
    options: Options,
    store: Path | None = None,
    progress: bool = False,
) -> Sensitivity:
    """The verdicts under every choice that the paper leaves open; plays a sweep for each.

    store: a folder for finished parts of the sweeps, each in a folder of its own.
    """
    choices, verdicts = [], []
    for name, variant, changed in variants(experiment, options):
        place = store and store / re.sub(r"\W+", "-", name)
        data = _only_judged(variant, changed).play(changed, place, progress)
        choices.append(name)
        verdicts.append(judge(variant.claims(changed), data))
    return Sensitivity(choices, verdicts)


def variants(experiment: Experiment, options: Options) -> Iterator[Variant]:
    """(what is changed, experiment, options), the given ones first."""
    yield "as reported", experiment, options
    for tuning in TUNINGS:
        if tuning != options.tuning:
            yield f"tuning {tuning}", experiment, dataclasses.replace(options, tuning=tuning)
    for delta in DELTAS:
        if delta != options.delta:
            yield f"delta {delta:g}", experiment, dataclasses.replace(options, delta=delta)
    if experiment.name == "adversarial":
        grown = on_paper_delays("paper-adversarial", reading="log")
        logarithmic = dataclasses.replace(experiment, environment=grown)
        yield "growth of phases: log", logarithmic, options
        yield f"NSD-UCRL2 window {WINDOW}", _with(experiment, "NSD-UCRL2", _windowed), options
    if "MetaAdaBIO" in experiment.learners(options):
        yield "switch: footnote's rule", _with(experiment, "MetaAdaBIO", _footnote), options


def _windowed(options: Options) -> Any:
    return make_learner("nsd-ucrl2", delta=options.delta, window=min(WINDOW, options.horizon))


def _footnote(options: Options) -> Any:
    return make_learner("metaadabio", rule="footnote", delta=options.delta, tuning=options.tuning)


def _with(experiment: Experiment, name: str, make: Callable[[Options], Any]) -> Experiment:
    """The experiment with one learner replaced."""
    return dataclasses.replace(
        experiment, learners=lambda options: experiment.learners(options) | {name: make(options)}
    )


def _only_judged(experiment: Experiment, options: Options) -> Experiment:
    """Without the learners that no claim names."""
    said = " ".join(claim.statement for claim in experiment.claims(options))
    return dataclasses.replace(
        experiment,
        learners=lambda options: {
            name: learner
            for name, learner in experiment.learners(options).items()
            if name in said or name == BASE
        },
    )
