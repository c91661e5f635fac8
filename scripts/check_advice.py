"""Ask for advice on ten problems and compare it with a brute-force comparison of 1,000 runs.

    python scripts/check_advice.py [--runs 1000]

The advice is right where both name the same winner, and honest where one of them, or both, find it
too close to call; it is wrong only where they name different winners.
"""

from __future__ import annotations

import argparse

import jaxbio as jb
from jaxbio.lab.advise import advise, utility
from jaxbio.lab.contestants import ROBUST, contestants

PROBLEMS = (  # K, S, T, delays
    (2, 2, 2_000, jb.FixedDelay(10)),
    (2, 8, 3_000, jb.FixedDelay(100)),
    (3, 3, 4_000, jb.GeometricDelay(30)),
    (4, 2, 5_000, jb.FixedDelay(60)),
    (4, 6, 3_000, jb.LaplaceDelay(40, 20)),
    (5, 10, 4_000, jb.UniformDelay(0, 80)),
    (6, 3, 6_000, jb.FixedDelay(150)),
    (8, 4, 3_000, jb.FixedDelay(20)),
    (10, 5, 5_000, jb.LaplaceDelay(100, 30)),
    (12, 12, 2_000, jb.FixedDelay(5)),
)
TOLD_APART = 0.05  # the level of the brute-force comparison


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs, wrong = parser.parse_args().runs, 0
    for actions, states, horizon, delays in PROBLEMS:
        given = advise(
            actions=actions, states=states, horizon=horizon, delays=delays, progress=False
        )
        env = utility(actions, states, delays, 0)
        results = {
            name: jb.simulate(env, learner, horizon=horizon, runs=runs, seed=10_000, progress=False)
            for name, learner in contestants().items()
        }
        robust = {name: results[name] for name in ROBUST}
        print(f"K = {actions}, S = {states}, T = {horizon:,}, {delays}")
        for what, told, found in (
            ("stationary", given.overall, jb.compare(results, level=TOLD_APART)),
            ("changing", given.robust, jb.compare(robust, level=TOLD_APART)),
        ):
            assert told is not None
            both = told.winner, found.winner
            contradicts = None not in both and both[0] != both[1]
            wrong += contradicts
            print(f"  {what:<11}advice {told.verdict}\n  {'':<11}{runs:,} runs: {found.verdict}"
                  f"{'  WRONG' if contradicts else ''}")  # fmt: skip
    print(f"{wrong} of {2 * len(PROBLEMS)} pieces of advice are contradicted")


if __name__ == "__main__":
    main()
