"""What the scripts share: the game that is timed, clocks, fresh processes, files of results."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
INSTANCE = "paper-stochastic"
DELTA = 0.1  # what learners of jaxbio take by default
SEED = 0
DELAYS: tuple[str, ...] = ("fixed(50)", "laplace(50,25)")


def make_delays(name: str) -> Any:
    """One of DELAYS."""
    import jaxbio as jb

    return dict(zip(DELAYS, (jb.FixedDelay(50), jb.LaplaceDelay(50, 25)), strict=True))[name]


def simulate(learner: str, delays: Any, env: Any = None, **options: Any) -> np.ndarray:
    """Final pseudo-regret [runs] of a named learner, on the paper's instance unless `env` is given.

    options: of jaxbio.simulate.
    """
    import jaxbio as jb

    env = jb.make_environment(INSTANCE, delays=delays) if env is None else env
    made = jb.make_learner(learner)
    options = {"seed": SEED, "rounds": 1, "progress": False} | options
    return jb.simulate(env, made, **options).final_regret


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """(what work returns, wall seconds, CPU seconds of all threads)."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def in_turns(works: Mapping[Any, Callable[[], Any]], repeats: int) -> dict[Any, np.ndarray]:
    """The best (wall, CPU) seconds of each work. They take turns, so noise meets them alike.

    Whatever must be warm has to be called once before.
    """
    times = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(timed(work)[1:])
    return {name: np.min(seconds, axis=0) for name, seconds in times.items()}


def nanoseconds(seconds: float, runs: int, horizon: int) -> float:
    """Per round and run."""
    return float(seconds * 1e9 / (runs * horizon))


def in_fresh_process(module: str, *arguments: Any, **variables: str) -> Any:
    """What `python -m module arguments` prints last, as JSON. variables: of its environment."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def compilation_cache(directory: str | Path) -> dict[str, str]:
    """The environment of a process that keeps every compiled program in this directory."""
    return {
        "XDG_CACHE_HOME": str(directory),
        "JAX_COMPILATION_CACHE_DIR": str(directory),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def megabytes(high_water: int) -> float:
    """Of what the system says of a process's largest memory (ru_maxrss), in its own unit."""
    return high_water / (2**20 if sys.platform == "darwin" else 2**10)


def parser(doc: str | None, script: str) -> argparse.ArgumentParser:
    """A command line with the first line of the module's docstring and `--json`."""
    made = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    made.add_argument("--json", type=Path, default=Path(f"results/{script}.json"))
    return made


def save(path: Path, **report: Any) -> None:
    """Write a report as JSON, with a description of the machine."""
    from benchmarks import machine

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": machine.describe(), **report}, indent=2) + "\n")
    print(f"\nSaved in {path}.")


def markdown(header: str, rows: Iterable[Iterable[Any]], left: int = 1) -> str:
    """A table; header: "name | name | ...". The first `left` columns are set flush left."""
    names = header.split(" | ")
    rule = ["---"] * left + ["--:"] * (len(names) - left)
    lines = [names, rule, *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
