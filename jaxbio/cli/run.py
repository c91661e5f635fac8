"""jaxbio run: learners by name on a problem by name, tables and a figure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from jaxbio.analysis.compare import compare
from jaxbio.analysis.comparison import Comparison
from jaxbio.studies import parsing, specs
from jaxbio.sweeps.result import Result
from jaxbio.sweeps.simulate import simulate


def add(commands: Any) -> None:
    def command(options: Any) -> tuple[Any, str]:
        results = play(options)
        found, compared = summary(results), comparison(results)
        text = table(found)
        if compared is not None:
            found, text = found | {"comparison": compared.to_dict()}, f"{text}\n\n{compared}"
        if options.figure is not None:
            from jaxbio.figures.regret import regret_curves  # matplotlib takes a while to import
            from jaxbio.figures.saving import save_as

            save_as(regret_curves(results, options.environment), options.figure)
        return found, text

    made = parsing.add_command(
        commands,
        "run",
        "play learners on a problem",
        command,
        "jaxbio run paper-utility dada-exp3 metabio:delta=0.05 --set states 8 --figure out.png",
    )
    parsing.environment(made)
    made.add_argument("learners", nargs="+", metavar="LEARNER", help=parsing.LEARNER)
    parsing.numbers(made, simulate)
    parsing.figure(made)


def play(arguments: Any) -> dict[str, Result]:
    """label -> result."""
    given = specs.settings(arguments.set or [])
    env = specs.environment(arguments.environment, given, arguments.delay)
    twice = sorted(text for text, count in Counter(arguments.learners).items() if count > 1)
    if twice:
        raise ValueError(f"each LEARNER must be named once, but {', '.join(twice)} is there twice")
    learners = dict(specs.learner(text) for text in arguments.learners)  # before any is played
    results = {}
    for label, learner in learners.items():
        results[label] = simulate(
            env,
            learner,
            horizon=arguments.horizon,
            runs=arguments.runs,
            seed=arguments.seed,
            progress=not arguments.quiet,
        )
    return results


def summary(results: dict[str, Result]) -> dict[str, dict[str, float]]:
    """label -> mean, sd and quartiles of the final regret, and the mean of every fact."""
    found = {}
    for label, result in results.items():
        final = result.final_regret
        found[label] = {
            "regret": float(final.mean()),
            "sd": float(final.std(ddof=1)) if len(final) > 1 else 0.0,
            "least": float(final.min()),
            "most": float(final.max()),
            **{name: float(fact.mean()) for name, fact in result.info.items()},
        }
    return found


def comparison(results: dict[str, Result]) -> Comparison | None:
    """Of the learners, where there are several: they met the same worlds."""
    return compare(results) if len(results) > 1 else None


def table(found: dict[str, dict[str, float]]) -> str:
    width = max(len("learner"), *(len(label) for label in found))
    head = f"{'learner':<{width}}{'regret':>10}{'sd':>9}{'least':>9}{'most':>9}{'waiting':>10}"
    rows = [
        f"{label:<{width}}{row['regret']:>10.1f}{row['sd']:>9.1f}{row['least']:>9.1f}"
        f"{row['most']:>9.1f}{row['waiting_rounds']:>10,.0f}"
        for label, row in found.items()
    ]
    return "\n".join([head, *rows])
