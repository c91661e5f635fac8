"""jaxbio log: a user's own log, checked; and one that is made up, to try the commands on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jaxbio.cli import log_fit, log_model, log_replay, log_window
from jaxbio.data.blocks import TEXTS
from jaxbio.data.example import PART, Shop, example_log, example_parts
from jaxbio.display.bars import tqdm
from jaxbio.studies import logs, outputs, parsing

COLUMNS = "--time clicked --action campaign --state bucket --reward bought --arrived bought_at"


def add(commands: Any) -> None:
    about = "a log of your own: is it what you think it is?"
    group = commands.add_parser("log", help=about, description=about)
    kinds = group.add_subparsers(required=True, metavar="what")
    _add_check(kinds)
    log_fit.add(kinds)
    log_model.add(kinds)
    log_replay.add(kinds)
    log_window.add(kinds)
    _add_example(kinds)


def _add_check(kinds: Any) -> None:
    def command(options: Any) -> tuple[Any, str]:
        log = logs.read(options.file, options)
        return log.to_dict(), log.summary()

    made = parsing.add_command(
        kinds,
        "check",
        "read a log and say what is in it, what cannot be used and what looks wrong",
        command,
        f"jaxbio log check shop.csv {COLUMNS}",
    )
    logs.add_file(made, "CSV (also .gz, .bz2, .xz, .zip) or Parquet")
    logs.add_columns(made)


def _add_example(kinds: Any) -> None:
    def command(options: Any) -> tuple[Any, str]:
        found = write_example(options)
        lines = [f"{found['rows']:,} rows in {found['file']}; to check them:", found["check"]]
        return found, "\n".join(lines)

    made = parsing.add_command(
        kinds,
        "example",
        "write the log of a made-up shop as CSV",
        command,
        "jaxbio log example shop.csv --rows 200000",
    )
    logs.add_file(made, "to be written: .csv, or .csv.gz")
    parsing.option(made, "--rows", example_log, "clicks", type=parsing.whole)
    parsing.option(made, "--seed", example_log, "of the numbers", type=parsing.whole)
    parsing.option(made, "--drift", example_log, "how far the mapping moves, 0 to 1", type=float)
    about = "of the campaign beyond the bucket, 0 to 1"
    parsing.option(made, "--effect", example_log, about, type=float)
    parsing.option(made, "--days", example_log, "that the log covers", type=float)


def write_example(options: Any) -> dict[str, Any]:
    """Write the file, a million rows at a time. Returns its truth."""
    file: Path = options.file
    name = file.name.removesuffix(".gz")
    if not name.endswith(TEXTS):
        raise ValueError(f"FILE must end in .csv or .csv.gz, but got {file.name!r}")
    outputs.try_file("FILE", file)
    given = {one: getattr(options, one) for one in ("drift", "effect", "days")}
    shop = Shop(**given)
    parts = example_parts(options.rows, options.seed, **given)
    total = -(-options.rows // PART)
    hidden = True if options.quiet else None
    file.parent.mkdir(parents=True, exist_ok=True)
    for i, part in enumerate(tqdm(parts, file.name, total, unit="million rows", disable=hidden)):
        part.to_csv(file, index=False, mode="a" if i else "w", header=i == 0)
    return {
        "file": str(file),
        "rows": options.rows,
        "check": f"jaxbio log check {file} {COLUMNS}",
        "truth": {
            "campaigns": list(shop.campaigns),
            "buckets": list(shop.buckets),
            "probability": shop.probability.tolist(),
            "mapping_at_first": shop.mapping_at(0.0).tolist(),
            "mapping_at_last": shop.mapping_at(1.0).tolist(),
            "purchase": shop.purchase.tolist(),
            "median_hours": shop.hours.tolist(),
            "spread": shop.spread,
        },
    }
