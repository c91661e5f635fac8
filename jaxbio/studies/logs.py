"""A user's log on the command line: the options that say what its columns are."""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import shtab

from jaxbio.data.log import Log
from jaxbio.data.reading import LogWarning, read_log
from jaxbio.studies import parsing

SEVERAL = {"action": "what was chosen", "state": "what was seen at once"}
COLUMNS = {  # option -> what is said of it
    "loss": "column of the loss, from --low to --high",
    "reward": "column of the reward, from --low to --high, instead of the loss",
    "arrived": "column of when the outcome came; empty: it has not come",
    "event": "column that is true where it came then, false where the row was followed until then",
    "followed": "column of how long rows without an outcome were followed; until the end",
}
TEXTS = {
    "delay": "how long outcomes took: a column, or one for all rows, such as 90 or 7d",
    "delay-unit": "of numbers in --delay if times are dates: d, h, min, s or ms",
    "missing-state": "label of rows without a state",
    "key": "column that names each event: the first of several with one name counts",
    "end": "until when outcomes would have been seen; the last time in the file",
    "timezone": "of dates without one, such as Europe/Berlin",
    "time-unit": "of numbers: s, ms, us or ns since 1970, or number; found out",
    "time-format": "of dates that are not ISO 8601, such as %%d/%%m/%%Y",
    "separator": "of the file's columns; found out",
    "decimal": "of the file's numbers",
    "encoding": "of the file",
}


def add_columns(
    parser: argparse.ArgumentParser, *, required: bool = True, known: Sequence[str] = ()
) -> None:
    """What `read` needs, but for the file. required: of the command; known: options that it has."""
    made = parser.add_argument_group("columns of the log, and how they are read")
    about = "of the decision; without it rows are rounds, in the order of the table"
    made.add_argument("--time", metavar="COLUMN", help=about)
    for name, about in SEVERAL.items():
        about = f"{about}; of several columns, with commas between them, labels are joined"
        given: dict[str, Any] = {"required": required, "type": _names, "metavar": "COLUMN"}
        made.add_argument(f"--{name}", help=about, **given)
    for name, about in COLUMNS.items():
        made.add_argument(f"--{name}", metavar="COLUMN", help=about)
    parsing.option(made, "--low", read_log, "of the loss or reward", type=float)
    parsing.option(made, "--high", read_log, "of the loss or reward", type=float)
    about = "outcomes that are not known: what stands for them, such as 9 or 8,9,U"
    made.add_argument("--unknown", type=_names, metavar="LABEL", help=about)
    about = "what labels of outcomes count as, such as dead=1,dependent=0.5,well=0"
    made.add_argument("--values", type=_values, metavar="LABEL=NUMBER", help=about)
    about = "decisions in a unit of --delay, such as 500 in a day, where there is no --time"
    parsing.option(made, "--rate", read_log, about, type=float)
    about = (
        "states from a number: how many, with as many rows each, or edges as in 10,20,30; of "
        "several columns COLUMN=5, or COLUMN=10,20,30, once for each that is a number"
    )
    made.add_argument("--bins", type=_bins, action="append", help=about)
    for name, about in TEXTS.items():
        if name not in known:
            parsing.option(made, f"--{name}", read_log, about)
    about = "share of rows that may be unusable"
    parsing.option(made, "--most-dropped", read_log, about, type=float)


def add_file(made: argparse.ArgumentParser, about: str) -> None:
    given = made.add_argument("file", metavar="FILE", type=parsing.path, help=about)
    given.complete = shtab.FILE  # type: ignore[attr-defined]


def read(file: Path, options: Any) -> Log:
    """The log; what looks wrong is in `Log.warnings`, and not said twice."""
    names = ["time", *SEVERAL, "low", "high", "values", "unknown", "rate", "bins", "most-dropped",
             *COLUMNS, *TEXTS]  # fmt: skip
    given = {name.replace("-", "_"): getattr(options, name.replace("-", "_")) for name in names}
    given["bins"] = _all_bins(options.bins)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        try:
            log = read_log(file, **given, progress=not options.quiet)
        except (ValueError, TypeError) as error:
            raise type(error)(_with_options(str(error), names)) from error
    return replace(log, warnings=tuple(_with_options(one, names) for one in log.warnings))


def _with_options(text: str, names: list[str]) -> str:
    """A message with options of the command in place of arguments: --bins 5 for bins=5."""
    for name in names:
        option, argument = f"--{name}", name.replace("-", "_")
        text = re.sub(rf"\b{argument}=(?=\S)(?![),:])", f"{option} ", text)
        text = re.sub(rf"\b{argument}=", option, text)
        if argument != name:  # no word of plain English
            text = re.sub(rf"\b{argument}\b", option, text)
    return text


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _values(text: str) -> dict[str, float]:
    pairs = [part.rpartition("=") for part in text.split(",")]
    try:
        return {name.strip(): float(number) for name, _, number in pairs}
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be labels with numbers, as in dead=1,well=0"
        ) from None


def _bins(text: str) -> Any:
    """5, edges, or a pair of a column and one of these."""
    name, named, cut = text.rpartition("=")
    parts = [part for part in cut.split(",") if part.strip()]
    try:
        found = [float(part) for part in parts] if "," in cut else int(cut)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a number of states, or edges with commas between them, for one of "
            "several columns after its name, as in age=5"
        ) from None
    return (name, found) if named else found


def _all_bins(given: list[Any] | None) -> Any:
    if given is None:
        return None
    pairs = [one for one in given if isinstance(one, tuple)]
    if not pairs and len(given) == 1:
        return given[0]
    if len(pairs) < len(given):
        raise ValueError(
            "--bins must be given once, or as COLUMN=5 for each column, but got "
            f"{', '.join(map(str, given))}"
        )
    return dict(pairs)
