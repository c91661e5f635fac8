"""How long does one wait for each study of the lab, at its defaults?

    python -m benchmarks.studies [--studies phase advise]

The commands as a user types them, from the start of the process to its end, imports, compilation,
figures and files included: the first time (cold: an empty compilation cache and an empty folder),
with the programs that the first time compiled (warm: an empty folder), and asked once more (again:
in the folder that the second time left). Processor seconds and peak memory are those of the first.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import machine, measure


class Study(NamedTuple):
    """A command, and the seconds within which it must answer the first time."""

    command: str
    limit: float


STUDIES = {
    "phase": Study("jaxbio phase", 120),
    "advise": Study(
        "jaxbio advise --actions 8 --states 12 --horizon 100000 --delay laplace:50,25", 60
    ),
    "guarantees": Study("jaxbio guarantees", 120),
    "rates": Study("jaxbio rates", 120),
    "regimes": Study("jaxbio regimes", 120),
    "beyond": Study("jaxbio beyond", 120),
    "tune": Study(
        "jaxbio tune paper-stochastic metabio --param scale=1 --param radius_scale=1", 120
    ),
}
STAGES = ("cold", "warm", "again")


def whole(command: str, folder: Path, cache: Path) -> dict[str, float]:
    """Wall and processor seconds of a command in this folder, and its peak memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", *shlex.split(command), "--quiet"],
        cwd=folder,
        env=os.environ | measure.compilation_cache(cache),
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} ended with exit code {process.returncode}")
    return {
        "seconds": seconds,
        "processor": used.ru_utime + used.ru_stime,
        "peak": measure.megabytes(used.ru_maxrss),
    }


def in_stages(command: str) -> dict[str, dict[str, float]]:
    """By stage: what a command took."""
    with tempfile.TemporaryDirectory() as scratch:
        cache, first, second = (Path(scratch, name) for name in ("cache", "first", "second"))
        for made in (cache, first, second):
            made.mkdir()
        folders = zip(STAGES, (first, second, second), strict=True)
        return {stage: whole(command, folder, cache) for stage, folder in folders}


def row(name: str, found: dict[str, dict[str, float]]) -> tuple[str, ...]:
    limit, cold = STUDIES[name].limit, found["cold"]
    return (
        f"`{STUDIES[name].command}`",
        *(f"{found[stage]['seconds']:.1f}" for stage in STAGES),
        f"{cold['processor']:.1f}",
        f"{cold['peak']:.0f}",
        f"< {limit:g}",
        "yes" if cold["seconds"] < limit else "no",
    )


def main() -> None:
    parser = measure.parser(__doc__, "studies")
    parser.add_argument("--studies", nargs="+", choices=list(STUDIES), default=list(STUDIES))
    options: Any = parser.parse_args()
    print(machine.one_line(), flush=True)
    results = {name: in_stages(STUDIES[name].command) for name in options.studies}
    header = (
        "command | cold, s | warm, s | again, s | processor, s | peak, MB | target, s | reached"
    )
    print(f"\n{measure.markdown(header, [row(name, found) for name, found in results.items()])}")
    measure.save(options.json, results=results)


if __name__ == "__main__":
    main()
