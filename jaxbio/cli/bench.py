"""jaxbio bench: the benchmarks of the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from jaxbio.studies import parsing

SCRIPTS = ("throughput", "scaling", "memory", "compile_time", "gpu_program", "experiment1")


def add(commands: Any) -> None:
    def command(options: Any) -> None:
        root = Path(__file__).parents[2]
        if not (root / "benchmarks" / "throughput.py").exists():
            raise ValueError("the benchmarks are part of the repository, not of the package")
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{options.script}"], cwd=root)
        if done.returncode:
            raise RuntimeError(f"benchmarks.{options.script} ended with {done.returncode}")

    made = parsing.add_command(
        commands, "bench", "run a benchmark", command, "jaxbio bench throughput"
    )
    made.add_argument("script", nargs="?", default="throughput", choices=SCRIPTS)
