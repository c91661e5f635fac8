"""jaxbio theory: what the paper's bounds promise, and which learner they recommend."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxbio import checks, theory
from jaxbio.checks import memory
from jaxbio.environment.delays import realised_delays
from jaxbio.studies import parsing, specs
from jaxbio.studies.paper.experiment import Options

SEED = 0  # of the delays that stand for their law
ADVICE = (
    "`jaxbio advise` may name another learner: a bound holds for the worst problem of this size, "
    "while advise plays\nproblems of this size, which are rarely the worst, and learners that have "
    "no bound."
)

REGRET = (
    "R_T, in mean losses (DAda-Exp3's theorem is about realised regret; the step to R_T takes a "
    "third of delta, so the learner has to be tuned to 2 delta / 3)"
)


def add(commands: Any) -> None:
    def command(options: Any) -> tuple[Any, str]:
        found = evaluate(options)
        return found, as_text(found)

    made = parsing.add_command(
        commands,
        "theory",
        "the paper's bounds, and which learner they recommend",
        command,
        "jaxbio theory --actions 8 --states 12 --horizon 100000 --delay laplace:50,25",
    )
    parsing.problem(made)
    parsing.option(made, "--delta", Options, "confidence", type=float)


def evaluate(arguments: Any) -> dict[str, Any]:
    """Bounds on R_T by learner, all of the same quantity, and the recommendation."""
    horizon = checks.integer("horizon", arguments.horizon, 1, theory.MOST_ROUNDS)
    memory.refuse_table(f"a game of {horizon:,} rounds (horizon)", horizon, "a shorter horizon")
    realised = realised_delays(specs.delays(arguments.delay), SEED, horizon)
    game = {
        "horizon": horizon,
        "num_actions": arguments.actions,
        "delays": realised,
    }
    states = game | {"num_states": arguments.states}
    bounds = {
        "DAda-Exp3": theory.dada_bound(**game, delta=arguments.delta, regret="pseudo"),
        "MetaBIO": theory.metabio_bound(**states, delta=arguments.delta),
        "MetaAdaBIO": theory.metaadabio_bound(**states, delta=arguments.delta),
    }
    expected = {
        "Tsallis-INF": theory.expected_bound(**states, learner="tsallis-inf"),
        "MetaBIO, Tsallis-INF": theory.expected_bound(**states, learner="metabio"),
        "MetaAdaBIO, Tsallis-INF": theory.expected_bound(**states, learner="metaadabio"),
    }
    best = min(("DAda-Exp3", "MetaBIO"), key=lambda name: bounds[name].total)
    return {
        "regret": REGRET,
        "bounds": {name: _of(bound) for name, bound in (bounds | expected).items()},
        "sigma_max": theory.sigma_max(realised),
        "mean_delay": float(np.mean(realised)),
        "recommended": best,
        "why": _why(best, arguments, bounds),
    }


def _of(bound: theory.Bound) -> dict[str, Any]:
    return {"total": bound.total, "holds": bound.holds, "terms": bound.terms}


def _why(best: str, arguments: Any, bounds: dict[str, theory.Bound]) -> str:
    other = "MetaBIO" if best == "DAda-Exp3" else "DAda-Exp3"
    ratio = bounds[other].total / bounds[best].total
    trivial = "; both are above T, so theory alone does not decide" * (
        bounds[best].total > arguments.horizon
    )
    return f"the bound of {other} on R_T is {ratio:.2f} times as large{trivial}"


def as_text(found: dict[str, Any]) -> str:
    width = max(len(name) for name in found["bounds"])
    lines = [
        f"mean delay {found['mean_delay']:.1f}, at most {found['sigma_max']} outstanding",
        f"bounds on {found['regret']}",
        "",
        f"{'learner':<{width}}  {'bound':>12}  holds",
    ]
    for name, bound in found["bounds"].items():
        lines.append(f"{name:<{width}}  {bound['total']:>12,.0f}  {bound['holds']}")
        lines += [
            f"{'':<{width}}  {value:>12,.0f}    {term}" for term, value in bound["terms"].items()
        ]
    lines += ["", f"recommended by the bounds: {found['recommended']} ({found['why']})", ADVICE]
    return "\n".join(lines)
