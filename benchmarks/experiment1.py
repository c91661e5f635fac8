"""The paper's Experiment 1 whole, compilation included: how long does one wait for it?

    python -m benchmarks.experiment1 [--workers 2]

Delays 50, 100, 200 and Laplace(50, 25), five learners, 20 runs of T = 10,000, in a fresh process
with an empty compilation cache (cold) and in another one with the cache that the first filled
(warm). Imports count: the clock runs from the start of the process to its end.

Compilation dominates. So the fixed delays are played as LaplaceDelay(d, 0), which are the same
delays: one sweep, one program per learner.
"""

import json
import math
import tempfile
import time
from typing import Any

import jax
import numpy as np

import jaxbio as jb
from benchmarks import machine, measure
from jaxbio.studies.paper.experiment import PAPER_DELAYS, Options, on_paper_delays

LEARNERS = ("metabio", "nsd-ucrl2", "thompson", "dada-exp3", "ucb1")
TARGETS = {"cold": 8.0, "warm": 5.0}
COMPILED = "/jax/core/compile/backend_compile_duration"  # counts what a cache serves as well


def play(horizon: int, runs: int, workers: int) -> dict[str, dict[str, float]]:
    """Mean final regret by learner and delays."""
    data = jb.sweep(
        on_paper_delays(measure.INSTANCE)(Options()),
        {learner: jb.make_learner(learner) for learner in LEARNERS},
        {"delay": list(PAPER_DELAYS)},
        horizon=horizon,
        runs=runs,
        seed=measure.SEED,
        workers=workers,
        progress=False,
    )
    mean = data.final_regret.mean("run")
    return {
        learner: {name: float(mean.sel(learner=learner, delay=name)) for name in PAPER_DELAYS}
        for learner in LEARNERS
    }


def child(horizon: int, runs: int, workers: int) -> None:
    """Play everything in this process; print regrets and the number of programs as JSON."""
    programs = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: programs.append(event) if event == COMPILED else None
    )
    regrets = play(horizon, runs, workers)
    print(json.dumps({"programs": len(programs), "regret": regrets}))


def whole(options: Any, directory: str) -> dict[str, Any]:
    """Seconds of a whole process, and what it found."""
    start = time.perf_counter()
    found = measure.in_fresh_process(
        "benchmarks.experiment1",
        *("--child", "--workers", options.workers),
        *("--horizon", options.horizon, "--runs", options.runs),
        **measure.compilation_cache(directory),
    )
    return {"seconds": time.perf_counter() - start, **found}


def best(options: Any) -> dict[str, dict[str, Any]]:
    """By state of the cache: the fastest of the repeats, each with a cache of its own."""
    every = {cache: [] for cache in TARGETS}
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory() as directory:
            for cache in TARGETS:
                every[cache].append(whole(options, directory))
    return {cache: min(many, key=lambda one: one["seconds"]) for cache, many in every.items()}


def report(results: dict[str, dict[str, Any]]) -> str:
    """Two tables: how long it took, and the mean regrets."""
    times = [
        (
            cache,
            f"{found['seconds']:.1f}",
            found["programs"],
            f"<= {TARGETS[cache]:g}",
            "yes" if found["seconds"] <= TARGETS[cache] else "no",
        )
        for cache, found in results.items()
    ]
    regrets = [
        (learner, *(f"{by_delays[name]:.0f}" for name in PAPER_DELAYS))
        for learner, by_delays in results["cold"]["regret"].items()
    ]
    return "\n\n".join(
        [
            measure.markdown("process | seconds | programs | target | reached", times),
            measure.markdown(" | ".join(["mean regret at delay", *PAPER_DELAYS]), regrets),
        ]
    )


def check_same(results: dict[str, dict[str, Any]]) -> None:
    """A cached program must play the very same games, and none may be broken."""
    if results["cold"]["regret"] != results["warm"]["regret"]:
        raise RuntimeError("the regrets with a warm compilation cache differ from the cold ones")
    values = [list(by_delays.values()) for by_delays in results["cold"]["regret"].values()]
    if not np.isfinite(values).all() or math.isclose(np.min(values), 0):
        raise RuntimeError(f"not a regret: {values}")


def main() -> None:
    parser = measure.parser(__doc__, "experiment1")
    parser.add_argument("--workers", type=int, default=2, help="compiling and playing at once")
    parser.add_argument("--repeats", type=int, default=1, help="the fastest counts")
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--child", action="store_true", help="(internal) play in this process")
    options = parser.parse_args()
    if options.child:
        child(options.horizon, options.runs, options.workers)
        return
    print(machine.one_line(), flush=True)
    results = best(options)
    check_same(results)
    print(f"\nT = {options.horizon}, {options.runs} runs\n\n{report(results)}")
    measure.save(options.json, horizon=options.horizon, runs=options.runs, results=results)


if __name__ == "__main__":
    main()
