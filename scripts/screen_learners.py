"""Who of the registered learners has the least regret, on 76 small problems?

    python scripts/screen_learners.py [--runs 64]

Nineteen problems with K = 4 and S = 8 and the same with K = 16 and S = 3, each after 500 and after
2,000 of 2,000 rounds: delays from 0 to 400, heavy tails, bursts, tiny gaps, rare conversions, and
three with mappings that change. All problems of a size are in arrays of the same form, so that each
learner is compiled twice only. Learners that are very slow where delays are long are left out. Who
never wins need not play in `advise`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import check_advice as tables
import numpy as np

import jaxbio as jb

ROUNDS = (500, 2_000)
SIZES = ((4, 8), (16, 3))  # K, S
TWO_STATES = np.array([[0.7, 0.3], [0.4, 0.6], [0.3, 0.7]]), np.array([0.1, 0.9])
BAD, GOOD = (np.array(rows) for rows in jb.make_environment("paper-adversarial").mapping.P_phases)


def delays(law: str) -> Any:
    """A table of one of these laws: a number, geometric with a mean, "heavy" or "burst"."""
    generator, rounds = np.random.default_rng(1), ROUNDS[-1]
    if law == "heavy":
        return jb.TableDelay(np.minimum(5 * generator.pareto(0.7, rounds), 10_000).astype(int))
    if law.startswith("geometric"):
        return jb.TableDelay(generator.geometric(1 / (int(law[9:]) + 1), rounds) - 1)
    if law != "burst":
        return jb.TableDelay(np.full(rounds, int(law)))
    found = generator.geometric(1 / 21, rounds) - 1
    for begins in (100, 700, 1_500):  # 400 rounds that are all answered at their end
        found[begins : begins + 400] = np.maximum(
            found[begins : begins + 400], 400 - np.arange(400)
        )
    return jb.TableDelay(found)


def filled(table: tables.Table, actions: int, states: int) -> tables.Table:
    """The last action again and again, and states that are never shown."""
    P, theta = table
    found = np.zeros((actions, states))
    found[:, : P.shape[1]] = P[np.minimum(np.arange(actions), len(P) - 1)]
    return found, np.concatenate([theta, np.full(states - len(theta), 0.5)])


def problems(K: int, S: int) -> dict[str, jb.Environment]:
    def made(table: tables.Table, law: str, other: np.ndarray | None = None) -> jb.Environment:
        P, theta = filled(table, K, S)
        second = P if other is None else filled((other, table[1]), K, S)[0]
        return jb.Environment(
            jb.AlternatingMapping([P, second]), jb.BernoulliLosses(theta), delays(law)
        )

    swapped = TWO_STATES[0][::-1].copy()
    adversarial = (BAD, np.array([0.0, 1.0, 1.0]))
    sure = np.array([[0.95, 0.05], [0.9, 0.1]]), np.array([0.02, 0.98])
    return {
        "utility, 50": made(tables.one_good(K, S), "50"),
        "utility, heavy": made(tables.one_good(K, S), "heavy"),
        "random, 60": made(tables.at_random(K, S, 0), "60"),
        "random, bursts": made(tables.at_random(K, S, 1), "burst"),
        "random, 400": made(tables.at_random(K, S, 2), "400"),
        "experiment 1, 200": made(tables.EXPERIMENT_1, "200"),
        "small gap, 20": made(tables.small_gap(0.02, S), "20"),
        "small gap, geometric": made(tables.small_gap(0.06, S), "geometric200"),
        "an action for each state": made(tables.diagonal(min(K, S)), "100"),
        "an action for each state, no delay": made(tables.diagonal(3, 0.4), "0"),
        "rare conversions": made(tables.rare(0.05), "geometric100"),
        "one state counts, bursts": made(tables.same_loss(S), "burst"),
        "ladder, 50": made(tables.ladder(K), "50"),
        "ladder, no delay": made(tables.ladder(K), "0"),
        "certain": made((np.eye(2), np.array([0.0, 1.0])), "30"),
        "nearly certain": made(sure, "5"),
        "experiment 2": made(adversarial, "50", GOOD),
        "the best becomes the worst": made(TWO_STATES, "geometric100", swapped),
        "random in turns": made(
            tables.at_random(K, S, 3), "30", tables.at_random(K, S, 4)[0]
        ),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=64)
    runs = parser.parse_args().runs
    learners = {name: jb.make_learner(name) for name in jb.learner_names()
                if name not in tables.FAR}  # fmt: skip
    won: Counter[str] = Counter()
    least = dict.fromkeys(learners, np.inf)
    for size in SIZES:
        made = list(problems(*size).values())
        found = jb.sweep(
            lambda place, made=made: made[place], learners, {"place": list(range(len(made)))},
            horizon=ROUNDS[-1], runs=runs, rounds=list(ROUNDS), seed=123,
        ).regret.mean("run").transpose("learner", ...)  # fmt: skip
        means = found.values.reshape(len(learners), -1)
        won.update(found.learner.values[means.argmin(axis=0)].tolist())
        ratios = means[:, means.min(axis=0) > 0] / means[:, means.min(axis=0) > 0].min(axis=0)
        least = {name: min(least[name], ratio)
                 for name, ratio in zip(learners, ratios.min(axis=1), strict=True)}  # fmt: skip
    print(
        "learner: how often it is the best, and the least ratio of its regret to that of the best"
    )
    for name in sorted(learners, key=lambda name: (-won[name], least[name])):
        print(f"{name}: {won[name]}, {least[name]:.2f}")


if __name__ == "__main__":
    main()
