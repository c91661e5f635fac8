"""jaxbio log model: does the model hold for a user's own log?"""

from __future__ import annotations

from typing import Any

from jaxbio.data.further import further_column
from jaxbio.data.holding.model import check_model
from jaxbio.studies import logs, parsing

EXAMPLE = (
    "jaxbio log model shop.csv --time clicked --action campaign --state bucket --reward bought "
    "--arrived bought_at"
)


def add(kinds: Any) -> None:
    about = "test whether the model holds for a log, and say what it costs where it does not"
    made = parsing.add_command(kinds, "model", about, command, EXAMPLE)
    logs.add_file(made, "CSV (also .gz, .bz2, .xz, .zip) or Parquet")
    logs.add_columns(made)
    about = "column of the probability with which the action was chosen, if it is known"
    made.add_argument("--probability", metavar="COLUMN", help=about)
    about = "how often at most any check fails of a log for which all hold"
    parsing.option(made, "--level", check_model, about, type=float)
    parsing.option(made, "--seed", check_model, "of permutations and intervals", type=int)


def command(options: Any) -> tuple[dict[str, Any], str]:
    log = logs.read(options.file, options)
    probability = None
    if options.probability is not None:
        probability = further_column(
            options.file, "probability", options.probability, log,
            separator=options.separator, decimal=options.decimal, encoding=options.encoding,
        )  # fmt: skip
    found = check_model(log, probability, options.level, options.seed)
    return found.to_dict(), found.summary()
