"""jaxbio log replay: what learners would have lost on the rows of a log."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

from jaxbio.data.further import further_column
from jaxbio.data.kinds import KINDS
from jaxbio.data.log import Log
from jaxbio.data.reading import LogWarning
from jaxbio.data.replaying.game import ORDERS
from jaxbio.data.replaying.replay import replay
from jaxbio.data.replaying.result import Replay
from jaxbio.data.replaying.text import as_text
from jaxbio.studies import logs, parsing, specs

USUAL = ("thompson", "metabio-mean")
EXAMPLE = (
    "jaxbio log replay shop.csv --learner thompson --learner state-thompson --time clicked "
    "--action campaign --state bucket --reward bought --arrived bought_at"
)


def add(kinds: Any) -> None:
    about = "play learners on the rows of a log whose actions were chosen at random"
    made = parsing.add_command(kinds, "replay", about, command, EXAMPLE)
    logs.add_file(made, "CSV (also .gz, .bz2, .xz, .zip) or Parquet")
    about = f"{parsing.LEARNER}; once for each learner ({' '.join(USUAL)})"
    made.add_argument("--learner", action="append", dest="learners", metavar="NAME", help=about)
    about = "does every decision have an outcome some time, or are only conversions seen? Found out"
    made.add_argument("--kind", choices=KINDS, help=about)
    about = "for how long outcomes are waited for; as long as 95 %% of conversions need"
    made.add_argument("--window", type=parsing.whole, metavar="ROUNDS", help=about)
    about = "share of all decisions that the learner makes, 0 to 1: its delays are as much shorter"
    parsing.option(made, "--traffic", replay, about, type=float)
    about = "column of the probability with which the action was chosen, if it varies"
    made.add_argument("--probability", metavar="COLUMN", help=about)
    parsing.option(made, "--order", replay, "of rows: random, or log", choices=ORDERS)
    made.add_argument("--horizon", type=parsing.whole, help="rounds; as many as there can be")
    parsing.option(made, "--runs", replay, "replays of the log", type=parsing.whole)
    about = "replays of logs that are redrawn from it, for intervals"
    parsing.option(made, "--resamples", replay, about, type=parsing.whole)
    parsing.option(made, "--level", replay, "of intervals", type=float)
    parsing.option(made, "--seed", replay, "root seed", type=parsing.whole)
    parsing.figure(made)
    logs.add_columns(made)


def command(options: Any) -> tuple[dict[str, Any], str]:
    replays = play(options)
    if options.figure is not None:
        from jaxbio.figures.replays import replay_curves  # matplotlib takes a while to import
        from jaxbio.figures.saving import save_as

        save_as(replay_curves(replays, options.file.name), options.figure)
    found = {label: one.to_dict() for label, one in replays.items()}
    return {"learners": found, "versus": versus(replays)}, as_text(replays)


def play(options: Any) -> dict[str, Replay]:
    """label -> replay."""
    wanted = options.learners or USUAL
    twice = sorted(text for text, count in Counter(wanted).items() if count > 1)
    if twice:
        raise ValueError(
            f"each --learner must be named once, but {', '.join(twice)} is there twice"
        )
    learners = dict(specs.learner(text) for text in wanted)  # before any is played
    log = logs.read(options.file, options)
    names = "kind", "window", "traffic", "order", "horizon", "runs", "resamples", "level", "seed"
    given = {name: getattr(options, name) for name in names}
    given |= {"probability": probability(log, options), "progress": not options.quiet}
    with warnings.catch_warnings():  # the text has them
        warnings.simplefilter("ignore", LogWarning)
        return {label: replay(log, learner, **given) for label, learner in learners.items()}


def probability(log: Log, options: Any) -> Any:
    """[rows] of the log, or None."""
    if options.probability is None:
        return None
    return further_column(
        options.file, "probability", options.probability, log,
        separator=options.separator, decimal=options.decimal, encoding=options.encoding,
    )  # fmt: skip


def versus(replays: dict[str, Replay]) -> dict[str, dict[str, dict[str, float]]]:
    """label -> other label -> what it loses more than the other."""
    return {
        label: {
            other: one.versus(against)._asdict()
            for other, against in replays.items()
            if other != label
        }
        for label, one in replays.items()
    }
