"""Peak resident memory: of simulate against the horizon, and of a sweep of 100,000 runs.

    python -m benchmarks.memory [--runs 64] [--sweep-runs 100000]

Everything plays in a process of its own. Memory must not grow with the horizon: one float32 per
round and run would show as 4 * runs bytes per round, 244 MB (of 2**20 bytes) at a million rounds
and 64 runs. The sweep keeps whole curves, its finished blocks in a store; the target is 1 GiB.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import machine, measure

HORIZONS = (10_000, 100_000, 1_000_000)
SWEEP_HORIZON = 10_000
SWEEP_POINTS = 10  # delays from 10 to 100
SWEEP_LIMIT = 1024  # MB


def peak_megabytes() -> float:
    """The high-water mark of this process."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    import resource

    return measure.megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def child(delays: str, horizon: int, runs: int) -> None:
    """Play, and print the peak before (imports only) and after as JSON."""
    import jax

    made = measure.make_delays(delays)
    jax.block_until_ready(jax.numpy.zeros(1))
    before = peak_megabytes()
    measure.simulate("metabio", made, horizon=horizon, runs=runs, rounds=200)
    print(json.dumps([before, peak_megabytes()]))


def child_sweep(runs: int) -> None:
    """Sweep with a store; print peak, seconds and the size of the store in MB as JSON."""
    import jaxbio as jb

    with tempfile.TemporaryDirectory() as store:
        start = time.perf_counter()
        data = jb.sweep(
            lambda delay: jb.make_environment(measure.INSTANCE, delays=jb.FixedDelay(delay)),
            {"metabio": jb.make_learner("metabio")},
            {"delay": [10 * (i + 1) for i in range(SWEEP_POINTS)]},
            horizon=SWEEP_HORIZON,
            runs=runs // SWEEP_POINTS,
            seed=measure.SEED,
            store=store,
            progress=False,
        )
        seconds = time.perf_counter() - start
        size = sum(file.stat().st_size for file in Path(store).rglob("*.npz")) / 2**20
    print(json.dumps([peak_megabytes(), seconds, size, data.nbytes / 2**20]))


def report_sweep(runs: int) -> dict[str, Any]:
    peak, seconds, size, result = measure.in_fresh_process(
        "benchmarks.memory", "--child-sweep", "--sweep-runs", runs
    )
    reached = "yes" if peak < SWEEP_LIMIT else "no"
    cells = (f"{seconds:.0f}", f"{peak:.0f}", f"< {SWEEP_LIMIT}", reached)
    header = "seconds | peak, MB | target | reached | result, MB | store, MB"
    print(f"\nMetaBIO, {runs:,} runs of T = {SWEEP_HORIZON:,} in one sweep, 200 recorded rounds\n")
    row = (*cells, f"{result:.0f}", f"{size:.0f}")
    print(measure.markdown(header, [row], left=0), flush=True)
    return {"runs": runs, "peak": peak, "seconds": seconds, "store": size, "result": result}


def report(runs: int) -> list[dict[str, Any]]:
    found, rows = [], []
    for delays in measure.DELAYS:
        smallest = None
        for horizon in HORIZONS:
            before, peak = measure.in_fresh_process(
                "benchmarks.memory", "--child", delays, horizon, "--runs", runs
            )
            smallest = smallest or peak
            found.append({"delays": delays, "horizon": horizon, "before": before, "peak": peak})
            growth = f"{peak / smallest:.2f}"
            rows.append((delays, f"{horizon:,}", f"{before:.0f}", f"{peak:.0f}", growth))
    print(f"\nMetaBIO over DAda-Exp3, {runs} runs, 200 recorded rounds; MB = 2**20 bytes\n")
    header = "delays | T | after imports, MB | peak, MB | peak / peak at smallest T"
    print(measure.markdown(header, rows), flush=True)
    return found


def main() -> None:
    parser = measure.parser(__doc__, "memory")
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--child", nargs=2, metavar=("DELAYS", "T"), help=argparse.SUPPRESS)
    parser.add_argument("--sweep-runs", type=int, default=100_000)
    parser.add_argument("--child-sweep", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], int(options.child[1]), options.runs)
    elif options.child_sweep:
        child_sweep(options.sweep_runs)
    else:
        print(machine.one_line(), flush=True)
        by_horizon = report(options.runs)
        measure.save(options.json, by_horizon=by_horizon, sweep=report_sweep(options.sweep_runs))


if __name__ == "__main__":
    main()
