"""jaxbio list: what there is, with a line each."""

from __future__ import annotations

import inspect
from typing import Any

from jaxbio.environment.instances import ENVIRONMENTS
from jaxbio.environment.laws import DELAYS
from jaxbio.learners.registry import learner_builder, learner_names
from jaxbio.studies import parsing
from jaxbio.studies.paper.registry import EXPERIMENTS


def add(commands: Any) -> None:
    def command(options: Any) -> tuple[Any, str]:
        found = everything()
        return found, as_text(found)

    parsing.add_command(
        commands,
        "list",
        "environments, learners, delays, experiments",
        command,
        "jaxbio list --json",
    )


def first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _about_learner(name: str) -> str:
    try:
        return first_line(learner_builder(name))
    except ValueError as error:  # of an installed package that cannot be imported
        return str(error)


def everything() -> dict[str, dict[str, str]]:
    """kind -> name -> one line."""
    return {
        "environments": {name: first_line(build) for name, build in ENVIRONMENTS.items()},
        "learners": {name: _about_learner(name) for name in learner_names()},
        "delays": {name: first_line(law) for name, law in DELAYS.items()},
        "experiments": {
            str(number): f"{experiment.title}: {experiment.about}"
            for number, experiment in EXPERIMENTS.items()
        },
    }


def as_text(found: dict[str, dict[str, str]]) -> str:
    lines = []
    for kind, entries in found.items():
        width = max(len(name) for name in entries)
        lines += [kind, *(f"  {name:<{width}}  {about}" for name, about in entries.items()), ""]
    return "\n".join(lines).rstrip()
