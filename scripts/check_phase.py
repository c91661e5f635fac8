"""Play three cells of the phase diagram with the plain-Python oracle of the tests.

    python scripts/check_phase.py [--runs 24] [--horizon 10000]

The cells lie next to the line where MetaBIO and DAda-Exp3 have the same regret (K = 8). The oracle
shares no code with the package and plays in worlds of its own. Both ratios are printed with their
95 % intervals (delta method; the oracle's learners are independent), and the difference of their
logarithms in standard errors.
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
from jaxbio.lab.phase import contestants

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import reference  # pyright: ignore[reportMissingImports]

CELLS = ((4, 16), (7, 36), (10, 68))  # S, d
ACTIONS, GAP = 8, 0.32
SPECS: tuple[reference.Spec, ...] = (
    {"name": "dada-exp3", "delta": 0.1},
    {"name": "metabio", "delta": 0.1, "base": {"name": "dada-exp3", "delta": 0.05}},
)


def oracle_final(states: int, delay: int, horizon: int, task: tuple[int, int]) -> float:
    """Final pseudo-regret of one run; task: which spec, which run."""
    which, run = task
    generator = np.random.default_rng([states, delay, which, run])
    table = np.full((ACTIONS, states), 0.4 / (states - 1))
    table[:, 0] = 0.6
    table[0] = np.eye(states)[0]
    theta = np.array([0.2] + [1.0] * (states - 1))
    cdf = np.cumsum(table, axis=1)[:, :-1]
    seen = np.sum(generator.random((horizon, ACTIONS, 1)) >= cdf, axis=2)
    losses = (generator.random((horizon, states)) < theta).astype(float)
    world = reference.World(seen.tolist(), losses.tolist(), [delay] * horizon, states)
    trace = reference.play(SPECS[which], world, generator.random(horizon).tolist())
    return GAP * sum(action > 0 for action in trace.actions)


def log_ratio(base: np.ndarray, wrapper: np.ndarray, paired: bool) -> tuple[float, float]:
    """The logarithm of the ratio of means, wrapper to base, and its standard error."""
    relative = wrapper / wrapper.mean(), base / base.mean()
    runs = len(base)
    if paired:
        error = np.std(relative[0] - relative[1], ddof=1) / np.sqrt(runs)
    else:
        error = np.linalg.norm([np.std(x, ddof=1) for x in relative]) / np.sqrt(runs)
    return float(np.log(wrapper.mean() / base.mean())), float(error)


def shown(value: float, error: float) -> str:
    low, high = np.exp([value - 1.96 * error, value + 1.96 * error])
    return f"{np.exp(value):.3f} ({low:.3f} to {high:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=24, help="of the oracle")
    parser.add_argument("--horizon", type=int, default=10_000)
    options = parser.parse_args()
    learners = {name: contestants()[name] for name in ("DAda-Exp3", "MetaBIO")}
    for states, delay in CELLS:
        data = jb.phase_diagram(
            [states], [delay], horizons=[options.horizon], runs=300, learners=learners,
            progress=False,
        )  # fmt: skip
        ours = log_ratio(*data.final_regret.squeeze().values, paired=True)
        tasks = [(which, run) for which in range(2) for run in range(options.runs)]
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            finals = list(pool.map(partial(oracle_final, states, delay, options.horizon), tasks))
        theirs = log_ratio(*np.reshape(finals, (2, -1)), paired=False)
        apart = (ours[0] - theirs[0]) / np.hypot(ours[1], theirs[1])
        print(f"S = {states}, d = {delay}: package {shown(*ours)}, oracle {shown(*theirs)}, "
              f"{apart:+.1f} standard errors apart")  # fmt: skip


if __name__ == "__main__":
    main()
