"""Ask for advice on logs whose truth is known, and compare it with a brute-force comparison.

    python scripts/check_log_advice.py [--runs 1000] [--seconds 45] [--logs 1 2 3]

The logs are of the made-up shop (`jb.example_log`: only purchases arrive, after hours and days) and
of two environments written here, in which every decision has an outcome. `advise` sees the log
alone. The brute force does not see it: it plays all registered learners as they are, and all forms
that `advise` plays, on the true problem, in other worlds: the mapping, the losses and the delays
that the log was drawn from (of the shop with the window that the advice used, and with delays in
rounds drawn anew from its lognormal times at its mean pace). Those that are far behind after 32
runs stay out of the many.

The advice holds where the learner that it names has a mean regret within 5 % of the least of the
registered learners, or behind it by less than two standard errors. The script fails where it does
not. It says as well whether the regret that the advice expects is what the true problem gives: the
log is one of many, so that this need not be so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from check_advice import FAR, behind, everyone, hopeless

import jaxbio as jb
from jaxbio.studies.contestants import asked_as

FEW = 32  # runs that show who is hopeless
DRAWN = 400_000  # delays of the shop that its law is made of
SHOP: dict[str, Any] = {"time": "clicked", "action": "campaign", "state": "bucket",
                        "reward": "bought", "arrived": "bought_at"}  # fmt: skip
TRIAL: dict[str, Any] = {"action": "arm", "state": "seen", "loss": "lost", "delay": "late"}


class Known(NamedTuple):
    """log: what `advise` is shown; truth: the environment, of what the advice found."""

    name: str
    log: Callable[[], jb.Log]
    truth: Callable[[jb.LogAdvice], jb.Environment]


def shop_truth(found: jb.LogAdvice) -> jb.Environment:
    """The shop behind `jb.example_log`, in rounds of its mean pace."""
    shop, rows = jb.Shop(), len(found.log)
    generator = np.random.default_rng(99)
    hours = shop.hours[:, None] * np.exp(shop.spread * generator.standard_normal((4, DRAWN)))
    rounds = np.minimum(hours * rows / (24 * shop.days), 10 * rows).astype(int)
    states = np.repeat(np.arange(4), DRAWN)
    law = jb.EmpiricalDelay.from_delays(rounds.ravel(), states)
    assert found.fit.window is not None
    late = jb.WindowedDelay(law.coarser(edges=[found.fit.window]), found.fit.window, 1.0)
    losses = jb.BernoulliLosses(1 - shop.buying)
    return jb.Environment(jb.StochasticMapping(shop.mapping), losses, late)


def shop(rows: int) -> Known:
    return Known(
        f"the made-up shop, {rows:,} rows",
        lambda: jb.read_log(jb.example_log(rows, seed=7), **SHOP),
        shop_truth,
    )


def trial(name: str, P: Any, theta: Any, mean: float, rows: int) -> Known:
    """Arms at random; every outcome comes, after a geometric number of rounds."""
    P, theta = np.array(P), np.array(theta)

    def log() -> jb.Log:
        generator = np.random.default_rng(7)
        arm = generator.integers(len(P), size=rows)
        ends = np.cumsum(P, axis=1)[arm]
        seen = (generator.random(rows)[:, None] >= ends[:, :-1]).sum(axis=1)
        lost = (generator.random(rows) < theta[seen]).astype(int)
        late = generator.geometric(1 / (mean + 1), rows) - 1
        table = pd.DataFrame({"arm": arm, "seen": seen, "lost": lost, "late": late})
        return jb.read_log(table, **TRIAL)

    env = jb.Environment(
        jb.StochasticMapping(P), jb.BernoulliLosses(theta), jb.GeometricDelay(mean)
    )
    return Known(f"{name}, {rows:,} rows", log, lambda _: env)


FIVE = np.array([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.4, 0.4],
                 [0.1, 0.3, 0.6]])  # fmt: skip
LOGS = (
    shop(20_000),
    trial("five arms", FIVE, [0.2, 0.5, 0.7], 200, 10_000),
    trial("experiment 1", [[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.3, 0.7, 0.0], [0.5, 0.3, 0.2]],
          [0.2, 0.4, 0.8], 100, 5_000),
)  # fmt: skip


def regrets(env: jb.Environment, learner: Any, horizon: int, runs: int) -> np.ndarray:
    return jb.simulate(
        env, learner, horizon=horizon, runs=runs, rounds=1, seed=10_000, progress=False
    ).final_regret


def check(known: Known, runs: int, seconds: float) -> bool:
    """Does the advice hold against the registered learners?"""
    found = jb.advise(log=known.log(), seconds=seconds, progress=False)
    assert isinstance(found, jb.LogAdvice)
    named = asked_as(found.recommended) or found.recommended
    env, learners = known.truth(found), everyone()
    registered = [name for name in learners if name in jb.learner_names() and name not in FAR]
    first = {name: regrets(env, one, found.horizon, FEW) for name, one in learners.items()}
    best = min((first[name] for name in registered), key=np.mean)
    close = [name for name, own in first.items() if name == named or not hopeless(own, best)]
    finals = {name: regrets(env, learners[name], found.horizon, runs) for name in close}
    least = min(set(finals) & set(registered), key=lambda name: finals[name].mean())
    any_form = min(finals, key=lambda name: finals[name].mean())
    holds = not behind(finals[named], finals[least])
    said = found.regret(found.recommended)
    sure = "" if found.overall.winner else " (too close to call)"
    print(
        f"{known.name}: T = {found.horizon:,}, {found.runs} games in {found.seconds:.0f} s\n"
        f"  advice: {named}{sure}, expected {said.mean:,.1f} ({said.low:,.1f} to {said.high:,.1f}),"
        f" {finals[named].mean():,.1f} in {runs:,} runs of the truth\n"
        f"  best of the registered: {least}, {finals[least].mean():,.1f}: "
        f"{'holds' if holds else 'DOES NOT HOLD'}\n"
        f"  best of all forms: {any_form}, {finals[any_form].mean():,.1f}\n"
        f"  {len(first) - len(finals)} of {len(first)} were hopeless after {FEW} runs",
        flush=True,
    )
    if found.unfinished:
        print(f"  not finished in time: {', '.join(found.unfinished)}", flush=True)
    return holds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=45.0)
    parser.add_argument("--logs", type=int, nargs="+", help="their numbers, from 1 (all)")
    options = parser.parse_args()
    chosen = options.logs or range(1, len(LOGS) + 1)
    held = [check(LOGS[i - 1], options.runs, options.seconds) for i in chosen]
    print(f"the advice holds on {sum(held)} of {len(held)} logs")
    if not all(held):
        sys.exit("the advice does not hold")


if __name__ == "__main__":
    main()
