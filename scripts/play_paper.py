"""Play MetaBIO against DAda-Exp3 on the paper's first instance; print a table, save a figure."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import jaxbio as jb
from jaxbio import plot

LEARNERS = {"DAda-Exp3": "dada-exp3", "MetaBIO": "metabio"}


def main() -> None:
    options = parse()
    env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(options.delay))
    print(f"K = 4, S = 3, delay {options.delay}, T = {options.horizon:,}, {options.runs} runs\n")
    print(f"{'learner':<12}{'regret':>10}{'sd':>8}{'waiting rounds':>16}{'seconds':>9}")
    results = {}
    for label, name in LEARNERS.items():
        start = time.perf_counter()
        result = jb.simulate(
            env,
            jb.make_learner(name, delta=options.delta),
            horizon=options.horizon,
            runs=options.runs,
            seed=options.seed,
        )
        seconds = time.perf_counter() - start
        waiting = result.info["waiting_rounds"].mean()
        final = result.final_regret
        print(
            f"{label:<12}{final.mean():>10.1f}{final.std():>8.1f}{waiting:>16,.0f}{seconds:>9.1f}"
        )
        results[label] = result
    figure = plot.regret_curves(results, f"Stochastic mapping, delay {options.delay}")
    options.figure.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.figure, dpi=160)
    print(f"\nfigure: {options.figure}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--delay", type=int, default=50, help="fixed delay d")
    parser.add_argument("--horizon", type=int, default=10_000, help="rounds T")
    parser.add_argument("--runs", type=int, default=20, help="independent runs")
    parser.add_argument("--delta", type=float, default=0.1, help="confidence")
    parser.add_argument("--seed", type=int, default=0, help="root seed")
    parser.add_argument(
        "--figure", type=Path, default=Path("results/paper-stochastic.png"), help="where to save"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
