"""jaxbio advise: a learner for a problem of this size, with evidence."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from jaxbio.environment.delays import FixedDelay, TableDelay
from jaxbio.environment.laws import DELAYS
from jaxbio.studies import logs, parsing, specs
from jaxbio.studies.advise import log_command
from jaxbio.studies.advise.advice import Advice
from jaxbio.studies.advise.study import advise
from jaxbio.studies.advise.text import as_text, outcome_as_dict
from jaxbio.studies.contestants import asked_as
from jaxbio.studies.families import FAMILIES, FAMILY, GETS, SIGNATURE
from jaxbio.studies.paper.experiment import Options

USUAL = {"horizon": Options.horizon, "delay": "50", "family": FAMILY}  # of what no log says
STORES = Path("results") / "advise" / "store"


def add(commands: Any) -> None:
    def command(options: Any) -> tuple[Any, str]:
        log_command.refuse(options)
        if options.log is not None:
            found = log_command.ask(options, STORES)
            draw(found, log_command.title(found, options), options)
            return log_command.as_dict(found, options), log_command.as_text(found, options)
        for name, usual in USUAL.items():
            if getattr(options, name) is None:
                setattr(options, name, usual)
        advised = ask(options)
        draw(advised, title(advised, options), options)
        return as_dict(advised), as_text(advised, options.family)

    made = parsing.add_command(
        commands,
        "advise",
        "a learner for a problem of this size, or for that of a log, found by playing it",
        command,
        "jaxbio advise --actions 8 --states 12 --horizon 100000 --delay laplace:50,25\n"
        "  jaxbio advise --log shop.csv --time clicked --action campaign --state bucket "
        "--reward bought --arrived bought_at",
    )
    made.add_argument("--actions", type=int, help="K")
    made.add_argument("--states", type=int, help="S")
    about = f"rounds T ({USUAL['horizon']}; of a log: as many as it has rows)"
    made.add_argument("--horizon", type=int, help=about)
    laws = f"50, laplace:50,25, ... ({USUAL['delay']})"
    made.add_argument("--delay", help=f"{laws}; of a log: {logs.TEXTS['delay']}")
    own = f"module:function of {SIGNATURE}, {GETS}, that makes an Environment"
    made.add_argument("--family", help=f"{', '.join(FAMILIES)}, or {own} ({USUAL['family']})")
    made.add_argument("--learners", nargs="+", metavar="LEARNER", help="instead of the usual ones")
    spent = "to spend, compiling included"
    parsing.option(made, "--seconds", advise, spent, type=float)
    parsing.option(made, "--seed", advise, "root seed", type=parsing.whole)
    place = f"of finished parts (by default below {STORES}): the same command goes on"
    made.add_argument("--store", type=parsing.path, help=place)
    made.set_defaults(folder=STORES)
    parsing.figure(made)
    log_command.add_options(made)


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
    learners = options.learners and [specs.learner_name(text) for text in options.learners]
    rest = [specs.delay_name(options.delay), family, learners, options.seed]
    digest = hashlib.sha256(repr(rest).encode()).hexdigest()[:12]
    return "-".join([*map(str, sizes), digest])


def draw(found: Advice, heading: str, options: Any) -> None:
    """Save the figure, if one is asked for."""
    if options.figure is None:
        return
    from jaxbio.figures.saving import save_as  # matplotlib takes a while to import
    from jaxbio.figures.style import Look
    from jaxbio.studies.advise.figures.table import advice

    save_as(advice(found.stationary, heading, Look()), options.figure)


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
    names = [field.name for field in dataclasses.fields(law) if field.init]
    numbers = ",".join(f"{getattr(law, name):.10g}" for name in names)
    return numbers if isinstance(law, FixedDelay) else f"{kinds[type(law)]}:{numbers}"


def as_dict(found: Advice) -> dict[str, Any]:
    """For JSON."""
    return {
        "recommended": found.recommended,
        "asked for as": asked_as(found.recommended),
        "recommended if the mapping changes": found.recommended_if_changing,
        "stationary mapping": outcome_as_dict(found.stationary),
        "changing mapping": None if found.changing is None else outcome_as_dict(found.changing),
        "best with a guarantee": found.robust,
        "delays": written(found.delays),
        "unfinished": list(found.unfinished),
        "runs": found.runs,
        "seconds": round(found.seconds, 1),
    }
