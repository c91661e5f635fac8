"""Ask for advice on thirty problems and compare it with a brute-force comparison of 2,000 runs.

    python scripts/check_advice.py [--runs 2000] [--seconds 45] [--problems 1 2 3]

Six are of the family that `advise` plays by default, six of its random ones (2,000 runs on each of
the eight), and eighteen are none of its own: tables written here, of six classes, which it is given
as a family. The tables of the brute force are made here too, so that a mistake in a family would
show. Nothing was tuned on any of them.

The brute force plays all registered learners as they are, and all forms that `advise` plays; those
that are far behind after 64 runs (1.3 times the least regret of the registered ones, by ten
standard errors) stay out of the many runs. Three are left out (`FAR`): they are very slow where
delays are long, and had eleven times the least regret and more in 300 runs of three small problems.

The advice holds on a problem where the learner that it names has a mean regret within 5 % of the
least one of the registered learners, by the many runs, in worlds that the advice has not seen (or
where the difference is less than two standard errors). The script fails where it does not hold. It
says too which of all forms is the best.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, NamedTuple

import numpy as np

import jaxbio as jb
from jaxbio.analysis.statistics import of_margin
from jaxbio.studies.contestants import asked_as, everybody

Table = tuple[np.ndarray, np.ndarray]  # P [K, S], theta [S]
WITHIN = 0.05  # of the least mean regret
FEW = 64  # runs that show who is hopeless
FAR = ("bold-exp3", "dada-exp3-skipping", "metabio-skipping")


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


def environment(table: Table, delays: Any) -> jb.Environment:
    P, theta = table
    return jb.Environment(jb.StochasticMapping(P), jb.BernoulliLosses(theta), delays)


def diagonal(actions: int, best: float = 0.1) -> Table:
    """An action for each state: losses are all that there is to learn."""
    return np.eye(actions), np.array([best] + [0.5] * (actions - 1))


def small_gap(gap: float, states: int) -> Table:
    """Four actions, of which the first shows the best state more often and the worst one less."""
    P = np.full((4, states), 1 / states)
    P[0, 0] += gap
    P[0, -1] -= gap
    return P, np.linspace(0.2, 0.8, states)


def rare(share: float) -> Table:
    """Conversions: nearly every round ends in the state of no interest."""
    P = np.array([[1 - 3 * share, 2 * share, share], [1 - 2 * share, share, share],
                  [1 - 2 * share, 1.5 * share, 0.5 * share]])  # fmt: skip
    return P, np.array([0.99, 0.7, 0.1])


def same_loss(states: int) -> Table:
    """States tell nothing: all cost nearly the same, and actions differ in one of them."""
    P = np.full((3, states), 1 / states)
    P[0] = 0.5 / (states - 1)
    P[0, 0] = 0.5
    theta = np.full(states, 0.5)
    theta[0] = 0.3
    return P, theta


def ladder(actions: int) -> Table:
    """Two states, and actions that reach the good one more and more often."""
    reach = np.linspace(0.2, 0.7, actions)
    return np.stack([reach, 1 - reach], axis=1), np.array([0.1, 0.9])


EXPERIMENT_1 = (
    np.array([[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.3, 0.7, 0.0], [0.5, 0.3, 0.2]]),
    np.array([0.2, 0.4, 0.8]),
)
NO_ACTION_IS_BETTER = np.full((3, 2), 0.5), np.array([0.3, 0.7])


def own(name: str, table: Table, horizon: int, delays: Any) -> Problem:
    return Problem(name, [table], horizon, delays, lambda *size: environment(table, size[-1]))


PROBLEMS = (
    usual(2, 8, 3_000, jb.FixedDelay(100)),
    usual(6, 3, 6_000, jb.FixedDelay(150)),
    usual(12, 12, 2_000, jb.UniformDelay(0, 10)),
    usual(4, 32, 5_000, jb.FixedDelay(500)),
    usual(16, 4, 5_000, jb.GeometricDelay(200)),
    usual(3, 6, 20_000, jb.LaplaceDelay(50, 25)),
    random(3, 3, 2_000, jb.GeometricDelay(30)),
    random(5, 8, 1_500, jb.FixedDelay(60)),
    random(8, 2, 2_000, jb.LaplaceDelay(100, 30)),
    random(4, 16, 4_000, jb.UniformDelay(0, 200)),
    random(10, 5, 3_000, jb.FixedDelay(10)),
    random(2, 3, 8_000, jb.FixedDelay(1_000)),
    own("experiment 1", EXPERIMENT_1, 5_000, jb.LaplaceDelay(50, 25)),
    own("experiment 1", EXPERIMENT_1, 10_000, jb.FixedDelay(500)),
    own("no action is better", NO_ACTION_IS_BETTER, 2_000, jb.FixedDelay(40)),
    own("small gap", small_gap(0.02, 6), 4_000, jb.FixedDelay(20)),
    own("small gap", small_gap(0.05, 4), 20_000, jb.GeometricDelay(100)),
    own("small gap", small_gap(0.06, 12), 5_000, jb.UniformDelay(0, 500)),
    own("an action for each state", diagonal(5), 4_000, jb.FixedDelay(200)),
    own("an action for each state", diagonal(3, 0.4), 8_000, jb.LaplaceDelay(100, 50)),
    own("an action for each state", diagonal(10), 3_000, jb.FixedDelay(20)),
    own("rare conversions", rare(0.05), 10_000, jb.GeometricDelay(300)),
    own("rare conversions", rare(0.1), 5_000, jb.FixedDelay(1_000)),
    own("rare conversions", rare(0.2), 20_000, jb.UniformDelay(0, 2_000)),
    own("one state counts", same_loss(8), 5_000, jb.FixedDelay(100)),
    own("one state counts", same_loss(20), 10_000, jb.GeometricDelay(50)),
    own("one state counts", same_loss(3), 3_000, jb.FixedDelay(300)),
    own("ladder", ladder(4), 3_000, jb.FixedDelay(50)),
    own("ladder", ladder(12), 10_000, jb.LaplaceDelay(200, 100)),
    own("ladder", ladder(24), 5_000, jb.FixedDelay(20)),
)


def everyone() -> dict[str, Any]:
    """All registered learners as they are, and those of `advise` that are set differently."""
    registered = {name: jb.make_learner(name) for name in jb.learner_names() if name not in FAR}
    return registered | {asked_as(label) or label: one for label, one in everybody().items()}


def brute_force(problem: Problem, runs: int, named: str) -> tuple[dict[str, np.ndarray], int]:
    """learner -> final regrets [runs], means over the problem's tables; and of how many: those that
    are far behind the registered ones after a few runs are not played further.
    """
    learners = everyone()
    first = {name: regrets(problem, one, FEW) for name, one in learners.items()}
    best = min((first[name] for name in first if name in jb.learner_names()), key=np.mean)
    close = [name for name, own in first.items() if name == named or not hopeless(own, best)]
    return {name: regrets(problem, learners[name], runs) for name in close}, len(first)


def hopeless(own: np.ndarray, best: np.ndarray) -> bool:
    """Is its mean more than 1.3 times the least one, by ten standard errors?"""
    behind = of_margin(own - 1.3 * best)
    return behind.mean > 10 * behind.error


def regrets(problem: Problem, learner: Any, runs: int) -> np.ndarray:
    def regret(table: Table) -> np.ndarray:
        env = environment(table, problem.delays)
        played = jb.simulate(
            env, learner, horizon=problem.horizon, runs=runs, rounds=1, seed=10_000, progress=False
        )
        return played.final_regret

    return np.mean([regret(table) for table in problem.tables], axis=0)


def check(problem: Problem, runs: int, seconds: float) -> tuple[bool, bool]:
    """Does the advice hold against the registered learners? Against all forms?"""
    actions, states = problem.tables[0][0].shape
    given = jb.advise(
        actions=actions, states=states, horizon=problem.horizon, delays=problem.delays,
        family=problem.family, seconds=seconds, progress=False,
    )  # fmt: skip
    named = asked_as(given.recommended) or given.recommended
    finals, played = brute_force(problem, runs, named)
    best, registered = (min(some, key=lambda name: finals[name].mean())
                        for some in (finals, set(finals) & set(jb.learner_names())))  # fmt: skip
    against = {name: not behind(finals[named], finals[name]) for name in (registered, best)}
    size = f"K = {actions}, S = {states}, T = {problem.horizon:,}, {problem.delays}"
    sure = "" if given.overall.winner else " (too close to call)"
    print(
        f"{problem.name}: {size}, {given.runs} games in {given.seconds:.0f} s\n"
        f"  advice: {named}{sure}, {finals[named].mean():,.1f} in {runs:,} runs\n"
        + "".join(
            f"  best of {those}: {name}, {finals[name].mean():,.1f}: "
            f"{'holds' if against[name] else 'DOES NOT HOLD'}\n"
            for those, name in (("the registered", registered), ("all forms", best))
        )
        + f"  {played - len(finals)} of {played} were hopeless after {FEW} runs",
        flush=True,
    )
    if given.unfinished:
        print(f"  not finished in time: {', '.join(given.unfinished)}", flush=True)
    return against[registered], against[best]


def behind(own: np.ndarray, best: np.ndarray) -> bool:
    """Is its mean more than 5 % larger, and by more than noise?"""
    margin = of_margin(own - best)
    return margin.mean > max(WITHIN * abs(best.mean()), 2 * margin.error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=45.0)
    parser.add_argument("--problems", type=int, nargs="+", help="their numbers, from 1 (all)")
    options = parser.parse_args()
    chosen = options.problems or range(1, len(PROBLEMS) + 1)
    found = [check(PROBLEMS[i - 1], options.runs, options.seconds) for i in chosen]
    held, all_forms = (sum(one) for one in zip(*found, strict=True))
    print(f"the advice holds on {held} of {len(found)} problems, against all forms on {all_forms}")
    if held < len(found):
        sys.exit("the advice does not hold")


if __name__ == "__main__":
    main()
