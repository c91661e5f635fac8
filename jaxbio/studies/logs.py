"""A user's log on the command line: the options that say what its columns are."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import shtab

from jaxbio.data.log import Log
from jaxbio.data.reading import LogWarning, read_log
from jaxbio.studies import parsing

COLUMNS = {  # option -> what is said of it
    "loss": "column of the loss, from --low to --high",
    "reward": "column of the reward, from --low to --high, instead of the loss",
    "arrived": "column of when the outcome came; empty: it has not come",
}
TEXTS = {
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


def add_columns(made: argparse.ArgumentParser) -> None:
    """What `read` needs, but for the file."""
    made.add_argument("--time", required=True, metavar="COLUMN", help="of the decision")
    made.add_argument("--action", required=True, metavar="COLUMN", help="what was chosen")
    made.add_argument("--state", required=True, metavar="COLUMN", help="what was seen at once")
    for name, about in COLUMNS.items():
        made.add_argument(f"--{name}", metavar="COLUMN", help=about)
    parsing.option(made, "--low", read_log, "of the loss or reward", type=float)
    parsing.option(made, "--high", read_log, "of the loss or reward", type=float)
    about = "states from a number: how many, with as many rows each, or edges as in 10,20,30"
    made.add_argument("--bins", type=_bins, help=about)
    for name, about in TEXTS.items():
        parsing.option(made, f"--{name}", read_log, about)
    about = "share of rows that may be unusable"
    parsing.option(made, "--most-dropped", read_log, about, type=float)


def add_file(made: argparse.ArgumentParser, about: str) -> None:
    given = made.add_argument("file", metavar="FILE", type=parsing.path, help=about)
    given.complete = shtab.FILE  # type: ignore[attr-defined]


def read(file: Path, options: Any) -> Log:
    """The log; what looks wrong is in `Log.warnings`, and not said twice."""
    names = ["time", "action", "state", "low", "high", "bins", "most-dropped", *COLUMNS, *TEXTS]
    given = {name.replace("-", "_"): getattr(options, name.replace("-", "_")) for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        return read_log(file, **given, progress=not options.quiet)


def _bins(text: str) -> int | list[float]:
    parts = [part for part in text.split(",") if part.strip()]
    try:
        return [float(part) for part in parts] if "," in text else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a number of states, or edges with commas between them"
        ) from None
