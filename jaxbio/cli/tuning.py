"""jaxbio tune: hyperparameters of a learner on a problem, a table and a figure."""

from __future__ import annotations

from typing import Any

from jaxbio import checks
from jaxbio.analysis.tune import tune
from jaxbio.analysis.tuned import Tuned
from jaxbio.studies import parsing, specs
from jaxbio.studies.outputs import named, parts, problem


def add(commands: Any) -> None:
    def command(options: Any) -> tuple[Any, str]:
        found = play(options)
        if options.figure is not None:
            from jaxbio.figures.saving import save_as  # matplotlib takes a while to import
            from jaxbio.figures.tuning import tuning

            save_as(tuning(found, title(options)), options.figure)
        return found.to_dict(), str(found)

    made = parsing.add_command(
        commands,
        "tune",
        "search for hyperparameters of a learner; held-out comparison with the start values",
        command,
        "jaxbio tune paper-stochastic metabio --param scale=1 --param radius_scale=1 --delay 50",
    )
    parsing.environment(made)
    made.add_argument("learner", metavar="LEARNER", help=parsing.LEARNER)
    made.add_argument(
        "--param", action="append", required=True, metavar="NAME=VALUE", help="where to begin"
    )
    parsing.numbers(made, tune)
    parsing.option(made, "--steps", tune, "of the search", type=parsing.whole)
    parsing.option(made, "--held-out", tune, "runs of the comparison", type=parsing.whole)
    parsing.folder(made, "tune")
    parsing.store(made)
    parsing.figure(made)


def play(arguments: Any) -> Tuned:
    """The tuning that the arguments describe."""
    given = specs.settings(arguments.set or [])
    start = parameters(arguments.param)
    make, fixed = specs.learner_maker(arguments.learner)
    for both in sorted(start.keys() & fixed.keys()):
        raise ValueError(f"{both} is both fixed in {arguments.learner!r} and a --param")
    return tune(
        specs.environment(arguments.environment, given, arguments.delay),
        make,
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
    return named(problem(arguments), specs.learner_name(arguments.learner), arguments.param, *sizes)


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
