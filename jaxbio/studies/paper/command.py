"""jaxbio reproduce: the paper's experiments, a folder that a reviewer could read."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from jaxbio.learners.exp3 import TUNINGS
from jaxbio.studies import parsing
from jaxbio.studies.paper.experiment import Experiment, Options
from jaxbio.studies.paper.registry import EXPERIMENTS
from jaxbio.studies.paper.verdicts import Verdict, judge
from jaxbio.sweeps.workers import number_of_workers

DECISIVE = 1000  # runs


def add(commands: Any) -> None:
    def command(options: Any) -> tuple[Any, str]:
        found = [reproduce(number, options) for number in numbers(options.experiments)]
        return found, as_text(found, options.folder)

    made = parsing.add_command(
        commands,
        "reproduce",
        "play the paper's experiments; figures, verdicts, a report",
        command,
        "jaxbio reproduce 1 4 --runs 100",
    )
    choices = [*map(str, EXPERIMENTS), "all"]
    which = f"{', '.join(choices)} (all)"
    made.add_argument(
        "experiments", nargs="*", choices=choices, default="all", metavar="EXPERIMENT", help=which
    )
    made.add_argument(
        "--folder", type=parsing.path, default=Path("results/paper"), help="of the report"
    )
    parsing.numbers(made, Options)
    parsing.option(made, "--delta", Options, "confidence", type=float)
    parsing.option(made, "--tuning", Options, "of DAda-Exp3", choices=TUNINGS)
    parsing.option(made, "--rounds", Options, "recorded rounds", type=parsing.whole)
    made.add_argument(
        "--sensitivity", action="store_true", help="verdicts under what the paper leaves open"
    )


def numbers(chosen: list[str]) -> list[int]:
    """The experiments asked for; "all" or nothing means all."""
    if not chosen or "all" in chosen:
        return list(EXPERIMENTS)
    return sorted({int(one) for one in chosen})


def options_of(arguments: Any) -> Options:
    given = {field.name: getattr(arguments, field.name) for field in dataclasses.fields(Options)}
    return Options(**given)


def commands_of(number: int, options: Options) -> dict[str, str]:
    """What a command makes -> the command: the experiment again, and more of it."""
    again = _command(number, options)
    return {
        "The figures, the verdicts and the data above": again,
        "With the verdicts under what the paper leaves open": f"{again} --sensitivity",
        "Decisively": _command(number, dataclasses.replace(options, runs=DECISIVE)),
    }


def _command(number: int, options: Options) -> str:
    plain = Options()
    changed = {
        name: value
        for name, value in dataclasses.asdict(options).items()
        if value != getattr(plain, name)
    }
    words = [f"--{name} {value}" for name, value in changed.items()]
    return " ".join(["jaxbio", "reproduce", str(number), *words])


def reproduce(number: int, arguments: Any) -> dict[str, Any]:
    """Play one experiment, judge its claims and write its part of the report."""
    from jaxbio.studies.paper import report  # matplotlib takes a while to import

    experiment, options = EXPERIMENTS[number], options_of(arguments)
    report.check(arguments.folder, number)  # refused before hours of play, not after
    store = _store(arguments.folder, experiment, options)
    data = experiment.play(options, store, progress=not arguments.quiet)
    verdicts = judge(experiment.claims(options), data)
    other = None
    if arguments.sensitivity:
        place = store.with_name(f"{store.name}-sensitivity")
        other = report.sensitivity(experiment, options, place, progress=not arguments.quiet)
    report.write(
        arguments.folder,
        experiment,
        data,
        options,
        verdicts,
        commands_of(number, options),
        other,
        workers=number_of_workers(),
        progress=not arguments.quiet,
    )
    return {
        "experiment": number,
        "title": experiment.title,
        "verdicts": [dataclasses.asdict(verdict) for verdict in verdicts],
    }


def _store(folder: Path, experiment: Experiment, options: Options) -> Path:
    """Finished blocks of these very options."""
    values = "-".join(str(value) for value in dataclasses.asdict(options).values())
    return folder / "store" / f"{experiment.number}-{values}"


def as_text(found: list[dict[str, Any]], folder: Path) -> str:
    """The verdicts, and where the report is."""
    lines = []
    for one in found:
        lines.append(f"Experiment {one['experiment']}: {one['title']}")
        for verdict in (Verdict(**kept) for kept in one["verdicts"]):
            lines.append(f"  {verdict.outcome:<10}{verdict.statement}")
            lines.append(f"  {'':<10}{verdict.detail}")
        lines.append("")
    return "\n".join([*lines, f"report: {folder / 'report.html'}"])
