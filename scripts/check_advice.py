"""Ask for advice on ten problems and compare it with a brute-force comparison of 1,000 runs.

    python scripts/check_advice.py [--runs 1000] [--seconds 45]

Three problems are of the family that `advise` plays by default, three of its random ones (1,000
runs on each of the eight), and four are none of its own: tables written here, which it is given as
a family. The tables of the brute force are made here too, so that a mistake in a family would show.
Nothing was tuned on any of them.

Each problem has two questions (all learners; those for a mapping that may change) and a verdict for
each. The script fails where the advice names a winner that the many runs rule out, and where it
decides alone, without the many runs, on more than two problems: with a level of 5 % per problem
that happens among equals once in 87 times.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

import jaxbio as jb
from jaxbio.analysis.comparison import Comparison
from jaxbio.studies.contestants import ROBUST, contestants

Table = tuple[np.ndarray, np.ndarray]  # P [K, S], theta [S]
ALLOWED = 2  # problems on which only the advice decides
LEVEL = 0.05  # of the brute-force comparison
AGREE, BOTH_CLOSE, CAUTIOUS, ALONE, WRONG = (
    "agree",
    "both too close to call",
    "only the many runs decide",
    "only the advice decides",
    "contradiction",
)


class Problem(NamedTuple):
    """tables: one for each instance; family: as `advise` is asked for it."""

    name: str
    tables: list[Table]
    horizon: int
    delays: Any
    family: Any


def one_good(actions: int, states: int) -> Table:
    """Action 0 always meets state 0, the others in six of ten rounds; all other states cost 1."""
    rows = [[1.0] + [0.0] * (states - 1)]
    rows += [[0.6] + [0.4 / (states - 1)] * (states - 1)] * (actions - 1)
    return np.array(rows), np.array([0.2] + [1.0] * (states - 1))


def at_random(actions: int, states: int, instance: int) -> Table:
    """As the documentation describes the random family: simplex, then mean losses."""
    generator = np.random.default_rng([instance, actions, states])
    weights = generator.standard_gamma(1.0, (actions, states))
    return weights / weights.sum(axis=1, keepdims=True), generator.random(states)


def usual(actions: int, states: int, horizon: int, delays: Any) -> Problem:
    return Problem("utility", [one_good(actions, states)], horizon, delays, "utility")


def random(actions: int, states: int, horizon: int, delays: Any) -> Problem:
    tables = [at_random(actions, states, i) for i in range(8)]
    return Problem("random", tables, horizon, delays, "random")


def own(name: str, P: Any, theta: Any, horizon: int, delays: Any) -> Problem:
    table = np.array(P), np.array(theta)
    return Problem(name, [table], horizon, delays, lambda *size: environment(table, size[-1]))


def environment(table: Table, delays: Any) -> jb.Environment:
    P, theta = table
    return jb.Environment(jb.StochasticMapping(P), jb.BernoulliLosses(theta), delays)


PROBLEMS = (
    usual(2, 8, 3_000, jb.FixedDelay(100)),
    usual(6, 3, 6_000, jb.FixedDelay(150)),
    usual(12, 12, 2_000, jb.UniformDelay(0, 10)),
    random(3, 3, 2_000, jb.GeometricDelay(30)),
    random(5, 8, 1_500, jb.FixedDelay(60)),
    random(8, 2, 2_000, jb.LaplaceDelay(100, 30)),
    own("experiment 1", [[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.3, 0.7, 0.0], [0.5, 0.3, 0.2]],
        [0.2, 0.4, 0.8], 5_000, jb.LaplaceDelay(50, 25)),
    own("no action is better", [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], [0.3, 0.7], 2_000,
        jb.FixedDelay(40)),
    own("gaps of 0.005 and 0.01", 0.9 / 6 + 0.1 * np.eye(4, 6, 2),
        [0.5, 0.5, 0.5, 0.5, 0.55, 0.6], 4_000, jb.FixedDelay(20)),
    own("an action for each state", np.eye(5), [0.5, 0.45, 0.55, 0.6, 0.4], 4_000,
        jb.FixedDelay(200)),
)  # fmt: skip


def relation(told: Comparison, found: Comparison) -> str:
    """How the advice relates to the many runs."""
    if told.winner is None:
        return BOTH_CLOSE if found.winner is None else CAUTIOUS
    if told.winner == found.winner:
        return AGREE
    return ALONE if told.winner in found.contenders else WRONG


def brute_force(problem: Problem, runs: int) -> dict[str, np.ndarray]:
    """learner -> final regrets [runs], means over the problem's tables."""

    def regret(learner: Any, table: Table) -> np.ndarray:
        env = environment(table, problem.delays)
        played = jb.simulate(
            env, learner, horizon=problem.horizon, runs=runs, rounds=1, seed=10_000, progress=False
        )
        return played.final_regret

    return {
        name: np.mean([regret(learner, table) for table in problem.tables], axis=0)
        for name, learner in contestants().items()
    }


def shown(one: Comparison) -> str:
    return one.winner or f"too close ({', '.join(one.contenders)})"


def check(problem: Problem, runs: int, seconds: float) -> list[str]:
    """The relations of both questions."""
    actions, states = problem.tables[0][0].shape
    given = jb.advise(
        actions=actions, states=states, horizon=problem.horizon, delays=problem.delays,
        family=problem.family, seconds=seconds, progress=False,
    )  # fmt: skip
    finals = brute_force(problem, runs)
    size = f"K = {actions}, S = {states}, T = {problem.horizon:,}, {problem.delays}"
    print(f"{problem.name}: {size}, {given.runs} games in {given.seconds:.0f} s", flush=True)
    assert given.robust is not None
    relations = []
    for what, told, found in (
        ("stationary", given.overall, jb.compare(finals, level=LEVEL)),
        ("robust", given.robust, jb.compare({name: finals[name] for name in ROBUST}, level=LEVEL)),
    ):
        relations.append(relation(told, found))
        print(f"  {what:<11}advice: {shown(told)}; {runs:,} runs: {shown(found)}: {relations[-1]}")
    return relations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=45.0)
    options = parser.parse_args()
    found = [check(one, options.runs, options.seconds) for one in PROBLEMS]
    counts = Counter(kind for relations in found for kind in relations)
    alone = sum(ALONE in relations for relations in found)
    print(
        "; ".join(f"{kind}: {counts[kind]}" for kind in (AGREE, BOTH_CLOSE, CAUTIOUS, ALONE, WRONG))
    )
    if counts[WRONG] or alone > ALLOWED:
        sys.exit("the advice does not hold")


if __name__ == "__main__":
    main()
