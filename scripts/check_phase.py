"""Play three cells of the phase diagram with the plain-Python oracle of the tests.

    python scripts/check_phase.py [--runs 24] [--horizon 10000]

The cells lie on the line where MetaBIO and DAda-Exp3 have the same regret (K = 8, T = 10,000). The
oracle shares no code with the package and plays in worlds of its own. Both ratios are printed with
their 95 % intervals (delta method; the oracle's learners are independent), and the difference of
their logarithms in standard errors. The script fails where the oracle is more than three standard
errors from the package, or from a ratio of 1 (by chance: once in 60 times, six checks together).
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
from jaxbio.lab.contestants import robust

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from utility_oracle import final_regret, log_ratio  # pyright: ignore[reportMissingImports]

CELLS = ((4, 16), (7, 36), (10, 68))  # S, d
ACTIONS = 8
ALARM = 3.0  # standard errors


def shown(value: float, error: float) -> str:
    low, high = np.exp([value - 1.96 * error, value + 1.96 * error])
    return f"{np.exp(value):.3f} ({low:.3f} to {high:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=24, help="of the oracle")
    parser.add_argument("--horizon", type=int, default=10_000)
    options = parser.parse_args()
    learners, failed = {name: robust()[name] for name in ("DAda-Exp3", "MetaBIO")}, False
    for states, delay in CELLS:
        size = {"actions": ACTIONS, "states": states, "delay": delay, "horizon": options.horizon}
        data = jb.phase_diagram(
            [states], [delay], actions=[ACTIONS], horizons=[options.horizon], runs=300,
            learners=learners, progress=False,
        )  # fmt: skip
        ours = log_ratio(data.final_regret.squeeze().values, paired=True)
        tasks = np.ndindex(2, options.runs)
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            finals = list(pool.map(partial(final_regret, **size), *zip(*tasks, strict=True)))
        theirs = log_ratio(np.reshape(finals, (2, -1)), paired=False)
        apart = (ours[0] - theirs[0]) / np.hypot(ours[1], theirs[1])
        off = theirs[0] / theirs[1]
        failed |= max(abs(apart), abs(off)) > ALARM
        print(f"S = {states}, d = {delay}: package {shown(*ours)}, oracle {shown(*theirs)}, "
              f"{apart:+.1f} standard errors apart, {off:+.1f} from 1")  # fmt: skip
    sys.exit("the oracle contradicts the phase diagram" if failed else 0)


if __name__ == "__main__":
    main()
