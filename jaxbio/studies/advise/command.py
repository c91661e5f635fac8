"""jaxbio advise: a learner for a problem of this size, with evidence."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from jaxbio.environment.delays import DELAYS, FixedDelay, TableDelay
from jaxbio.studies import parsing, specs
from jaxbio.studies.advise.study import Advice, advise
from jaxbio.studies.advise.tournament import Outcome, Worth
from jaxbio.studies.contestants import asked_as
from jaxbio.studies.families import FAMILIES

STORES = Path("results") / "advise" / "store"
STATIONARY, CHANGING, OWN = "Stationary mapping", "Changing mapping", "On this problem"
ADVERSARIAL = (
    "If losses are adversarial, what a state cost before says nothing: take a learner that ignores "
    "states, such as DAda-Exp3."
)
THEORY = (
    "`jaxbio theory` ranks by bounds, which hold for the worst problem of this size: it may prefer "
    "another learner."
)


def add(commands: Any) -> None:
    def command(options: Any) -> tuple[Any, str]:
        found = ask(options)
        if options.figure is not None:
            draw(found, options)
        return as_dict(found), as_text(found, options.family)

    made = parsing.add_command(
        commands,
        "advise",
        "a learner for a problem of this size, found by playing it",
        command,
        "jaxbio advise --actions 8 --states 12 --horizon 100000 --delay laplace:50,25",
    )
    parsing.problem(made)
    parsing.family(made, advise)
    made.add_argument("--learners", nargs="+", metavar="LEARNER", help="instead of the usual 16")
    spent = "to spend, compiling included"
    parsing.option(made, "--seconds", advise, spent, type=float)
    parsing.option(made, "--seed", advise, "root seed", type=int)
    place = f"of finished parts (by default below {STORES}): the same command goes on"
    made.add_argument("--store", type=parsing.path, help=place)
    made.set_defaults(folder=STORES)
    parsing.figure(made)


def ask(options: Any) -> Advice:
    learners = dict(specs.learner(text) for text in options.learners) if options.learners else None
    return advise(
        actions=options.actions,
        states=options.states,
        horizon=options.horizon,
        delays=specs.delays(options.delay),
        family=specs.family(options.family),
        learners=learners,
        seconds=options.seconds,
        seed=options.seed,
        store=options.store or STORES / _name(options),
        progress=not options.quiet,
    )


def _name(options: Any) -> str:
    """Of the parts of these very options: sizes to read, and a digest of all that they play."""
    sizes = (options.actions, options.states, options.horizon)
    family = specs.family_name(options.family)
    rest = [options.delay, family, options.learners, options.seed]
    digest = hashlib.sha256(repr(rest).encode()).hexdigest()[:12]
    return "-".join([*map(str, sizes), digest])


def draw(found: Advice, options: Any) -> None:
    """Save the figure."""
    from jaxbio.figures.saving import save_as  # matplotlib takes a while to import
    from jaxbio.figures.style import Look
    from jaxbio.studies.advise.figure import advice

    save_as(advice(found.stationary, title(found, options), Look()), options.figure)


def title(found: Advice, options: Any) -> str:
    """Of the figure, with the delays that were played."""
    sizes = f"K = {options.actions}, S = {options.states}, T = {options.horizon:,}"
    return f"{sizes}, delay {written(found.delays)}"


def written(law: Any) -> str:
    """A law of delays as on a command line, or in a few words."""
    if isinstance(law, TableDelay):
        table = np.asarray(law.delays)
        return f"from a table of {table.size:,} (mean {table.mean():,.1f}, most {table.max():,})"
    kinds = {law: kind for kind, law in DELAYS.items()}
    if type(law) not in kinds:
        return f"of the law {type(law).__name__}"
    numbers = ",".join(f"{getattr(law, field.name):.10g}" for field in dataclasses.fields(law))
    return numbers if isinstance(law, FixedDelay) else f"{kinds[type(law)]}:{numbers}"


def as_dict(found: Advice) -> dict[str, Any]:
    """For JSON."""
    return {
        "recommended": found.recommended,
        "asked for as": asked_as(found.recommended),
        "stationary mapping": _outcome(found.stationary),
        "changing mapping": None if found.changing is None else _outcome(found.changing),
        "best with a guarantee": found.robust,
        "delays": written(found.delays),
        "unfinished": list(found.unfinished),
        "runs": found.runs,
        "seconds": round(found.seconds, 1),
    }


def _outcome(one: Outcome) -> dict[str, Any]:
    return one.comparison.to_dict() | {
        "left early": [left._asdict() for left in one.left],
        "worth of states": None if one.worth is None else one.worth._asdict(),
        "uniform play": one.uniform,
    }


def as_text(found: Advice, family: str) -> str:
    """A family of the user's may have any mapping and any losses: then the games speak for them."""
    parts = [_of_outcome(STATIONARY if family in FAMILIES else OWN, found.stationary)]
    if found.changing is not None:
        parts.append(_of_outcome(CHANGING, found.changing))
    spec, last = asked_as(found.recommended), []
    if spec is not None and spec != found.recommended:
        last.append(f"{found.recommended} is {spec} for the other commands.")
    if found.robust is not None:
        worse = "" if found.changing is None else "A mapping may change in worse ways. "
        bounded = "Of the learners whose regret is bounded whatever the mapping does"
        last.append(f"{worse}{bounded}, {found.robust} had the least, in the first table.")
    last += [ADVERSARIAL, THEORY]
    if found.unfinished:
        last.append(f"Not finished in time, so not compared: {', '.join(found.unfinished)}.")
    return "\n\n".join([*parts, "\n".join(last)])


def _of_outcome(title: str, one: Outcome) -> str:
    """A table of those that stayed, a line for each of those that left, and the answers."""
    lines = [title, "", one.comparison.table()]
    if one.left:
        width = max(len(left.name) for left in one.left)
        lines += ["", "Surely beaten, and played no further:"]
        lines += [
            f"  {left.name:<{width}}  {left.mean:>10,.1f}  {left.low:,.1f} to {left.high:,.1f} "
            f"({left.runs} games)"
            for left in one.beaten
        ]
    if one.uniform is not None:
        lines += ["", guessing(one, one.uniform)]
    if one.worth is not None:
        lines.append(worth(one.worth))
    return "\n".join(lines)


def guessing(one: Outcome, uniform: float) -> str:
    """How far everybody is from playing at random."""
    means = [*one.comparison.rows, *one.left]
    close = [row.name for row in means if row.mean > 0.9 * uniform]
    said = f"Playing at random has a regret of {uniform:,.1f}"
    return f"{said}; no better, or hardly: {', '.join(close)}." if close else f"{said}."


def worth(found: Worth) -> str:
    """What states are worth, in one line."""
    saved, least, most = (1 - value for value in (found.ratio, found.high, found.low))
    who = f"{found.with_states} against {found.without}"
    if least > 0:
        return f"States save {saved:.0%} of the regret ({least:.0%} to {most:.0%}; {who})."
    if most < 0:
        return f"States cost {-saved:.0%} of the regret ({-most:.0%} to {-least:.0%}; {who})."
    return f"It is open whether states help: they save {least:.0%} to {most:.0%} ({who})."
