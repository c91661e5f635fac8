"""jaxbio log fit: the problem behind a log, with intervals."""

from __future__ import annotations

from typing import Any

from jaxbio.data.fitting import fit
from jaxbio.data.kinds import KINDS
from jaxbio.studies import logs, parsing


def add(kinds: Any) -> None:
    made = parsing.add_command(
        kinds,
        "fit",
        "estimate what states follow actions, what they cost and how late that is known",
        command,
        "jaxbio log fit shop.csv --time clicked --action campaign --state bucket "
        "--reward bought --arrived bought_at",
    )
    logs.add_file(made, "CSV (also .gz, .bz2, .xz, .zip) or Parquet")
    logs.add_columns(made)
    about = "does every decision have an outcome some time, or are only conversions seen? Found out"
    made.add_argument("--kind", choices=KINDS, help=about)
    about = "for how many rounds conversions are waited for; as many as 95 %% of them need"
    made.add_argument("--window", type=int, metavar="ROUNDS", help=about)
    parsing.option(made, "--level", fit, "of intervals", type=float)
    parsing.option(made, "--width", fit, "how many decisions make a round", type=int)


def command(options: Any) -> tuple[Any, str]:
    log = logs.read(options.file, options)
    found = fit(log, options.kind, options.window, options.level, width=options.width)
    return found.to_dict(), found.summary()
