"""jaxbio tune: hyperparameters of a learner on a problem, a table and a figure."""

from __future__ import annotations

from functools import partial
from typing import Any

from jaxbio import checks
from jaxbio.analysis.tune import tune
from jaxbio.analysis.tuned import Tuned
from jaxbio.learners.registry import make_learner
from jaxbio.studies import specs
from jaxbio.studies.outputs import named, parts, problem


def play(arguments: Any) -> Tuned:
    """The tuning that the arguments describe."""
    given = specs.settings(arguments.set or [])
    name, _, fixed = arguments.learner.partition(":")
    start = parameters(arguments.param)
    options = specs.options(fixed)
    for both in sorted(start.keys() & options.keys()):
        raise ValueError(f"{both} is both fixed in {arguments.learner!r} and a --param")
    return tune(
        specs.environment(arguments.environment, given, arguments.delay),
        partial(make_learner, name, **options),
        start,
        horizon=arguments.horizon,
        runs=arguments.runs,
        steps=arguments.steps,
        held_out=arguments.held_out,
        seed=arguments.seed,
        store=parts(arguments, _name(arguments)),
        progress=not arguments.quiet,
    )


def _name(arguments: Any) -> str:
    """Of the finished steps of these very options."""
    sizes = (arguments.horizon, arguments.runs, arguments.steps, arguments.held_out, arguments.seed)
    return named(problem(arguments), arguments.learner, arguments.param, *sizes)


def parameters(texts: list[str]) -> dict[str, float]:
    """name=value, ...: where the search begins."""
    start: dict[str, float] = {}
    for text in texts:
        with specs.about("--param", text):
            given = specs.options(text)
        for name, value in given.items():
            if name in start:
                raise ValueError(f"--param {name} is given twice")
            start[name] = checks.number(f"--param {name}", value, 0, open_low=True)
    return start


def title(arguments: Any) -> str:
    """Of the figure."""
    delay = "" if arguments.delay is None else f", delay {arguments.delay}"
    return f"Tuning {arguments.learner} on {arguments.environment}{delay}"
