"""jaxbio advise --log: a learner for the problem behind a file, and a page about it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import shtab

from jaxbio.data.kinds import KINDS
from jaxbio.data.log import Log
from jaxbio.studies import logs, outputs, parsing, specs
from jaxbio.studies.advise.from_log import store_name
from jaxbio.studies.advise.log_advice import LogAdvice
from jaxbio.studies.advise.study import advise
from jaxbio.studies.advise.writing import write_report

REPORT = Path("results") / "advice.html"
SIZES = ("actions", "states", "family")
COLUMNS = ("time", "action", "state", "loss", "reward", "arrived", "report", "window", "kind")


def add_options(made: Any) -> None:
    """What is said of a log: its file, its columns and where the page goes."""
    group = made.add_argument_group("a log of your own, in place of a size")
    given = group.add_argument(
        "--log", type=parsing.path, metavar="FILE", help="CSV (also compressed) or Parquet"
    )
    given.complete = shtab.FILE
    about = f"the page about it, with --log ({REPORT})"
    group.add_argument("--report", type=_page, metavar="FILE", help=about)
    about = "rounds after which what has not come counts as not coming; found out"
    group.add_argument("--window", type=int, metavar="ROUNDS", help=about)
    about = "does every decision have an outcome some time, or are only conversions seen? Found out"
    group.add_argument("--kind", choices=KINDS, help=about)
    logs.add_columns(made, required=False, known=("delay",))


def refuse(options: Any) -> None:
    """Raise where sizes and a log are mixed up, or columns are missing."""
    if options.log is None:
        for name in COLUMNS:
            if getattr(options, name) is not None:
                raise ValueError(f"--{name} is of a log: say --log FILE too, or leave it out")
        missing = [f"--{name}" for name in ("actions", "states") if getattr(options, name) is None]
        if missing:
            raise ValueError(
                f"{' and '.join(missing)} must be given, or --log FILE with the names of its "
                "columns"
            )
        return
    for name in SIZES:
        if getattr(options, name) is not None:
            raise ValueError(f"--log brings its own {name}: leave --{name} out")
    for name, about in logs.SEVERAL.items():
        if getattr(options, name) is None:
            raise ValueError(f"--log needs --{name} COLUMN: {about}")
    if (options.loss is None) == (options.reward is None):
        said = "both" if options.loss is not None else "neither"
        raise ValueError(
            f"--log needs --loss COLUMN or --reward COLUMN, the outcome, but {said} is given"
        )


def ask(options: Any, stores: Path) -> LogAdvice:
    """Read, play, and write the page."""
    outputs.try_file("--report", place(options))
    log = logs.read(options.log, options)
    learners = dict(specs.learner(text) for text in options.learners) if options.learners else None
    found = advise(
        log=log,
        horizon=options.horizon,
        kind=options.kind,
        window=options.window,
        learners=learners,
        seconds=options.seconds,
        seed=options.seed,
        store=options.store or stores / _name(log, options),
        progress=not options.quiet,
    )
    assert isinstance(found, LogAdvice)
    write_report(found, place(options), command=options.again, title=options.log.name)
    return found


def place(options: Any) -> Path:
    """Of the page."""
    return options.report or REPORT


def as_text(found: LogAdvice, options: Any) -> str:
    return f"{found.summary()}\n\nreport: {place(options)}"


def as_dict(found: LogAdvice, options: Any) -> dict[str, Any]:
    return {**found.to_dict(), "report": str(place(options))}


def title(found: LogAdvice, options: Any) -> str:
    """Of the figure."""
    log = found.log
    sizes = f"K = {log.num_actions}, S = {log.num_states}, T = {found.horizon:,}"
    return f"{options.log.name}: {sizes}"


def _name(log: Log, options: Any) -> str:
    given = (options.horizon, options.kind, options.window, options.learners, options.seed)
    return store_name(log, *given)


def _page(text: str) -> Path:
    file = parsing.path(text)
    if file.suffix not in (".html", ".htm"):
        raise argparse.ArgumentTypeError(f"{text!r} must end in .html")
    return file
