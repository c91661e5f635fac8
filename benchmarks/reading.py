"""How long does reading a log take, and how much memory?

    python -m benchmarks.reading [--rows 10000000] [--folder results/reading]

The log of `jaxbio.example_log` is written as CSV, as the same packed with gzip, and as Parquet
(where PyArrow is there), once: what is in the folder is used again. Each is read in a process of
its own, whose peak memory counts ("imports" is what it has before anything is read). Targets: ten
million rows of CSV within 60 seconds and 4 GiB, and their delays in rounds within seconds.
"""

import argparse
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

from benchmarks import machine, measure
from benchmarks.memory import peak_megabytes

TARGET_SECONDS, TARGET_MEGABYTES = 60, 4096
NAMES: dict[str, Any] = {
    "time": "clicked", "action": "campaign", "state": "bucket", "reward": "bought",
    "arrived": "bought_at",
}  # fmt: skip


def write(folder: Path, rows: int) -> list[Path]:
    """The files; those that are there are left alone."""
    from jaxbio.data.example import example_parts

    folder.mkdir(parents=True, exist_ok=True)
    csv, packed, parquet = (folder / f"{rows}.{end}" for end in ("csv", "csv.gz", "parquet"))
    if not csv.exists():
        begun = csv.with_suffix(".part")
        for i, part in enumerate(example_parts(rows)):
            part.to_csv(begun, index=False, mode="a" if i else "w", header=i == 0)
        begun.rename(csv)
    if not packed.exists():
        begun = packed.with_suffix(".part")
        with csv.open("rb") as source, gzip.open(begun, "wb", compresslevel=6) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        begun.rename(packed)
    if machine.version("pyarrow") is None:
        print("PyArrow is not installed: Parquet is left out", flush=True)
        return [csv, packed]
    if not parquet.exists():
        _write_parquet(parquet, rows)
    return [csv, packed, parquet]


def _write_parquet(file: Path, rows: int) -> None:
    import pyarrow as pa  # pyright: ignore[reportMissingImports]
    from pyarrow import parquet  # pyright: ignore[reportMissingImports]

    from jaxbio.data.example import example_parts

    begun = file.with_suffix(".part")
    tables = (pa.Table.from_pandas(part, preserve_index=False) for part in example_parts(rows))
    first = next(tables)
    with parquet.ParquetWriter(begun, first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
    begun.rename(file)


def child(file: Path) -> None:
    """Read, and print seconds and memory as JSON."""
    import jaxbio as jb

    before = peak_megabytes()
    log, wall, cpu = measure.timed(lambda: jb.read_log(file, **NAMES, progress=False))
    peak = peak_megabytes()
    _, rounds, _ = measure.timed(log.delays_in_rounds)
    _, summary, _ = measure.timed(log.summary)
    found = {"rows": len(log), "wall": wall, "cpu": cpu, "imports": before, "peak": peak}
    print(json.dumps(found | {"rounds": rounds, "summary": summary}))


def report(files: list[Path], repeats: int) -> list[dict[str, Any]]:
    found, rows = [], []
    for file in files:
        runs = [
            measure.in_fresh_process("benchmarks.reading", "--child", file) for _ in range(repeats)
        ]
        best = min(runs, key=lambda one: one["wall"])
        size = file.stat().st_size / 1e6
        found.append({"file": file.name, "megabytes": size, "runs": runs})
        reached = best["wall"] < TARGET_SECONDS and best["peak"] < TARGET_MEGABYTES
        rows.append(
            (file.name, f"{size:.0f}", f"{best['wall']:.1f}", f"{best['cpu']:.1f}",
             f"{best['imports']:.0f}", f"{best['peak']:.0f}", f"{best['rounds']:.2f}",
             f"{best['summary']:.2f}", "yes" if reached else "no")
        )  # fmt: skip
    header = (
        "file | MB | seconds | CPU s | imports, MB | peak, MB | rounds, s | summary, s | reached"
    )
    print(measure.markdown(header, rows), flush=True)
    return found


def main() -> None:
    parser = measure.parser(__doc__, "reading")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=Path("results/reading"))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child.resolve())
        return
    print(machine.one_line(), flush=True)
    files = [file.resolve() for file in write(options.folder, options.rows)]
    print(f"\n{options.rows:,} rows, the best of {options.repeats}; MB of a file are 10**6 bytes\n")
    measure.save(options.json, rows=options.rows, files=report(files, options.repeats))


if __name__ == "__main__":
    main()
