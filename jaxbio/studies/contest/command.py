"""jaxbio contest: every learner, tuned, on every class of problems."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

from jaxbio.checks import names
from jaxbio.learners.registry import learner_names
from jaxbio.studies import parsing, specs
from jaxbio.studies.contest.entrants import ENTRANTS, SIZES
from jaxbio.studies.contest.problems import CLASSES
from jaxbio.studies.contest.study import FORMS, classes_by_name, contest
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
    own = "module:name of problems of your own"
    made.add_argument("--classes", nargs="+", choices=parsing.Names(CLASSES), metavar="CLASS",
                      help=f"{legend()}; or {own}")  # fmt: skip
    known = parsing.Names([*ENTRANTS, *learner_names()])
    made.add_argument("--entrants", nargs="+", choices=known, metavar="LEARNER",
                      help=f"{', '.join(map(repr, ENTRANTS))}; or {parsing.LEARNER}")  # fmt: skip
    parsing.option(made, "--horizon", contest, "rounds T, by size", type=parsing.whole)
    parsing.option(
        made, "--training", contest, "runs that tune a setting, by size", type=parsing.whole
    )
    parsing.scheduler(made)


def study(options: Any) -> tuple[dict[str, Any], str]:
    """Play, write data and the figures; what is found, and as text."""
    given = {name: getattr(options, name) for name in OPTIONS}
    name = named(*(_written(option, value) for option, value in given.items()))
    given |= {"classes": classes(options), "entrants": entrants(options.entrants)}
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


def classes(options: Any) -> Any:
    """As `contest` takes them. A problem of the user's own is a class with nothing else in it."""
    if options.classes is None:
        return None
    known = [names.in_any_case(text, CLASSES) for text in options.classes]
    mine = {text: {"own": specs.environment(text, {}, None)} for text in known if ":" in text}
    others = [text for text in known if text not in mine]
    if not mine or len(set(known)) < len(known):
        return known
    horizon = SIZES[options.size].horizon if options.horizon is None else options.horizon
    whole = (classes_by_name(others, horizon) if others else {}) | mine
    return {label: whole[label] for label in known}


def entrants(texts: list[str] | None) -> Any:
    """As `contest` takes them: with what may be tuned where they have a name of `ENTRANTS`, else as
    they are.
    """
    if texts is None:
        return None
    known = [names.in_any_case(text, ENTRANTS) for text in texts]
    if len(set(known)) < len(known):
        return known
    return {one: ENTRANTS[one] if one in ENTRANTS else specs.learner(one)[1] for one in known}


def _written(option: str, value: Any) -> Any:
    """An option in a name: parts of the user's own with their code."""
    if value is None or option not in ("classes", "entrants"):
        return _word(option, value)
    known, name_of = {
        "classes": (CLASSES, specs.environment_name),
        "entrants": (ENTRANTS, specs.learner_name),
    }[option]
    return [names.in_any_case(text, known) if ":" not in text else name_of(text) for text in value]


def _word(option: str, value: Any) -> Any:
    """An option in a name; a number says what it is."""
    return f"{option}={value}" if isinstance(value, int) else value
