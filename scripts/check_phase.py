"""Ask the plain-Python oracle of the tests about three places of the phase diagram's line.

    python scripts/check_phase.py [--runs 300] [--horizon 10000]

Two are on the near side and one is on the far side of the delays at which MetaBIO helps (K = 8).
The package plays these rows of the wide grid and finds the line with its band, as in the figure: at
the inner end of a band MetaBIO has less regret than its base, at the outer end it has not. The
oracle shares no code with the package and plays both ends in worlds of its own, MetaBIO and its
base in the same ones. It agrees where its own ratio is below 1 at the inner end and above 1 at the
outer one. The script fails where a ratio is on the wrong side of 1 by more than three standard
errors (delta method; by chance: once in 120 times at most, six ends together).
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import jaxbio as jb
from jaxbio.studies.contestants import wrappers
from jaxbio.studies.phase.command import GRIDS
from jaxbio.studies.phase.study import helpful_delays

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from utility_oracle import final_regret, log_ratio  # pyright: ignore[reportMissingImports]

PLACES = ((4, "from"), (8, "from"), (3, "to"))  # S, and which end of the helpful delays
ACTIONS = 8
ALARM = 3.0  # standard errors


def band(states: int, end: str, horizon: int) -> tuple[int, int]:
    """The package's band: the delay at its inner end, and that at its outer one."""
    data = jb.phase_diagram(
        [states],
        GRIDS["wide"][1],
        actions=[ACTIONS],
        horizons=[horizon],
        runs=300,
        learners={"MetaBIO": wrappers()["MetaBIO"]},
        progress=False,
    )
    ends = helpful_delays(data, "MetaBIO").squeeze().sel(end=end)
    return int(ends.sel(reach="surely")), int(ends.sel(reach="perhaps"))


def oracle(states: int, delay: int, horizon: int, runs: int) -> tuple[float, float]:
    """The logarithm of the oracle's ratio in a cell, and its standard error."""
    size = {"actions": ACTIONS, "states": states, "delay": delay, "horizon": horizon}
    tasks = zip(*np.ndindex(2, runs), strict=True)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        finals = list(pool.map(partial(final_regret, **size), *tasks, chunksize=4))
    return log_ratio(np.reshape(finals, (2, -1)), paired=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="of the oracle")
    parser.add_argument("--horizon", type=int, default=10_000)
    options, failed = parser.parse_args(), False
    for states, end in PLACES:
        for side, delay in zip((-1, 1), band(states, end, options.horizon), strict=True):
            found, error = oracle(states, delay, options.horizon, options.runs)
            right = side * found / error
            failed |= right < -ALARM
            low, high = np.exp([found - 1.96 * error, found + 1.96 * error])
            where = "inner" if side < 0 else "outer"
            print(f"S = {states}, {end}, {where} end d = {delay}: oracle {np.exp(found):.4f} "
                  f"({low:.4f} to {high:.4f}), {right:+.1f} standard errors on the right side",
                  flush=True)  # fmt: skip
    sys.exit("the oracle contradicts the phase diagram" if failed else 0)


if __name__ == "__main__":
    main()
