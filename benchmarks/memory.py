"""Peak resident memory of simulate against the horizon: it must not grow.

    python -m benchmarks.memory [--runs 64]

Every horizon plays in a process of its own. One float32 per round and run would show as 4 * runs
bytes per round: 244 MB (of 2**20 bytes) at a million rounds and 64 runs.
"""

import argparse
import json
import sys
from pathlib import Path

from benchmarks import measure

HORIZONS = (10_000, 100_000, 1_000_000)


def peak_megabytes():
    """The high-water mark of this process."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def child(delays, horizon, runs):
    """Play, and print the peak before (imports only) and after as JSON."""
    import jax

    made = measure.make_delays(delays)
    jax.block_until_ready(jax.numpy.zeros(1))
    before = peak_megabytes()
    measure.simulate("metabio", made, horizon=horizon, runs=runs, rounds=200)
    print(json.dumps([before, peak_megabytes()]))


def report(runs):
    print(f"MetaBIO over DAda-Exp3, {runs} runs, 200 recorded rounds; MB = 2**20 bytes\n")
    print("| delays | T | after imports, MB | peak, MB | peak / peak at smallest T |")
    print("|---|--:|--:|--:|--:|", flush=True)
    for delays in measure.DELAYS:
        smallest = None
        for horizon in HORIZONS:
            before, peak = measure.in_fresh_process(
                "benchmarks.memory", "--child", delays, horizon, "--runs", runs
            )
            smallest = smallest or peak
            print(
                f"| {delays} | {horizon:,} | {before:.0f} | {peak:.0f} | {peak / smallest:.2f} |",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--child", nargs=2, metavar=("DELAYS", "T"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], int(options.child[1]), options.runs)
    else:
        report(options.runs)


if __name__ == "__main__":
    main()
