"""Ask for advice on ten problems and compare it with a brute-force comparison of 1,000 runs.

    python scripts/check_advice.py [--runs 1000]

Both may name the same winner or find it too close to call: then they agree. Where only one of them
names a winner, the other was more careful. Where they name different ones, the advice is wrong, and
the script fails.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

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
WRONG = "different winners"
TOLD_APART = 0.05  # the level of the brute-force comparison


def relation(told: str | None, found: str | None) -> str:
    """How two answers relate; None is "too close to call"."""
    if told == found:
        return "agree" if told else "both too close to call"
    if told and found:
        return WRONG
    return "only the advice decides" if told else "only the many runs decide"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs, counts = parser.parse_args().runs, Counter()
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
            ("robust", given.robust, jb.compare(robust, level=TOLD_APART)),
        ):
            assert told is not None
            kind = relation(told.winner, found.winner)
            counts[kind] += 1
            print(f"  {what:<11}advice {told.verdict}\n  {'':<11}{runs:,} runs: {found.verdict}"
                  f"  ({kind})")  # fmt: skip
    print(", ".join(f"{kind}: {count}" for kind, count in counts.items()))
    sys.exit("some advice is wrong" if counts[WRONG] else 0)


if __name__ == "__main__":
    main()
