"""jaxbio contest: every learner, tuned, on every class of problems."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

from jaxbio.studies import parsing
from jaxbio.studies.contest.entrants import ENTRANTS, SIZES
from jaxbio.studies.contest.problems import CLASSES
from jaxbio.studies.contest.study import FORMS, contest
from jaxbio.studies.contest.text import as_text, legend, summary
from jaxbio.studies.outputs import named, parts, write
from jaxbio.sweeps import cluster

OPTIONS = ("size", "classes", "entrants", "horizon", "runs", "training", "seed")


def add(commands: Any) -> None:
    about = "which learner for which class of problems, each tuned, and which one for all"
    example = "jaxbio contest --size small"
    made = parsing.add_study(commands, "contest", about, study, example, contest)
    parsing.option(made, "--size", contest, "what is played unless said otherwise",
                   choices=list(SIZES))  # fmt: skip
    made.add_argument("--classes", nargs="+", choices=list(CLASSES), metavar="CLASS", help=legend())
    made.add_argument("--entrants", nargs="+", choices=list(ENTRANTS), metavar="LEARNER",
                      help=", ".join(map(repr, ENTRANTS)))  # fmt: skip
    parsing.option(made, "--horizon", contest, "rounds T, by size", type=int)
    parsing.option(made, "--training", contest, "runs that tune a setting, by size", type=int)
    parsing.scheduler(made)


def study(options: Any) -> tuple[dict[str, Any], str]:
    """Play, write data and the figures; what is found, and as text."""
    given = {name: getattr(options, name) for name in OPTIONS}
    name = named(*(_word(option, value) for option, value in given.items()))
    address = options.scheduler
    with cluster.connected(address) if address else nullcontext() as client:
        store, shown = parts(options, name), not options.quiet
        data = contest(**given, store=store, client=client, progress=shown)
    from jaxbio.studies.contest.figure import table  # matplotlib takes a while to import

    files = []
    for form in FORMS:
        numbers = {name: data} if not files else {}
        files += write(options.folder, name, numbers, form, partial(table, data, form))
    found = {"files": files, "forms": summary(data)}
    return found, as_text(found)


def _word(option: str, value: Any) -> Any:
    """An option in a name; a number says what it is."""
    return f"{option}={value}" if isinstance(value, int) else value
