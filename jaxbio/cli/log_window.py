"""jaxbio log window: what waiting longer for conversions is worth, by a log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jaxbio.studies import logs, parsing, specs
from jaxbio.studies.advise.from_log import store_name
from jaxbio.studies.waiting.study import SHARES, Waiting, worth_of_waiting

EXAMPLE = (
    "jaxbio log window shop.csv --time clicked --action campaign --state bucket --reward bought "
    "--arrived bought_at"
)
PLACE = Path("results") / "window"


def add(kinds: Any) -> None:
    about = "how long to wait before what has not come counts as not coming"
    made = parsing.add_command(kinds, "window", about, command, EXAMPLE)
    logs.add_file(made, "CSV (also .gz, .bz2, .xz, .zip) or Parquet")
    logs.add_columns(made)
    found = "those that let through 10 to 99.9 %% of the conversions"
    made.add_argument("--windows", type=int, nargs="+", metavar="ROUNDS", help=f"({found})")
    made.add_argument("--learners", nargs="+", metavar="LEARNER", help="instead of the usual four")
    made.add_argument("--horizon", type=int, help="rounds T; as many as the log has rows")
    made.add_argument("--games", type=int, help="of each learner with each window; 8 to 64")
    parsing.option(made, "--seed", worth_of_waiting, "root seed", type=int)
    made.add_argument("--store", type=parsing.path, help=f"of finished parts (below {PLACE})")
    parsing.figure(made)
    made.set_defaults(folder=PLACE)


def command(options: Any) -> tuple[Any, str]:
    found = ask(options)
    figure = options.figure or PLACE / f"{options.file.stem}.png"
    draw(found, figure)
    return {**found.to_dict(), "figure": str(figure)}, f"{found.summary()}\n\nfigure: {figure}"


def ask(options: Any) -> Waiting:
    log = logs.read(options.file, options)
    learners = dict(specs.learner(text) for text in options.learners) if options.learners else None
    given = (
        options.windows or SHARES,
        options.learners,
        options.horizon,
        options.games,
        options.seed,
    )
    return worth_of_waiting(
        log,
        windows=options.windows,
        learners=learners,
        horizon=options.horizon,
        games=options.games,
        seed=options.seed,
        store=options.store or PLACE / "store" / store_name(log, *given),
        progress=not options.quiet,
    )


def draw(found: Waiting, figure: Path) -> None:
    """Save the figure."""
    from jaxbio.figures.saving import save_as  # matplotlib takes a while to import
    from jaxbio.figures.style import Look
    from jaxbio.studies.waiting.figure import waiting

    save_as(waiting(found, Look()), figure)
