"""A log that jaxbio made from a known problem gives that problem back, within its intervals.

jaxbio plays one long game at random; 200 pieces of it are 200 logs. Each ends without the outcomes
that were to come after its end: in most problems here, 30 % of all. Of every number the truth is to
be in its 95 % interval in 95 % of logs or more. A test fails if it is in so few that this would
happen, with intervals that hold in exactly 95 %, with a probability below 1e-6; with 200 logs of 4
states that is below 90.4 %, with the 200 of a single number below 88 %. As intervals that are far
too wide hold always, their width is tested too: against that of an interval from outcomes of all
rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import jaxbio as jb

P = np.array([[0.6, 0.25, 0.1, 0.05], [0.3, 0.3, 0.2, 0.2], [0.05, 0.05, 0.3, 0.6]])
THETA = np.array([0.05, 0.3, 0.6, 0.9])
LOGS, ROWS = 200, 600
FALSE_ALARM = 1e-6
NAMES: dict[str, Any] = {
    "time": "round", "action": "action", "state": "state", "loss": "loss", "arrived": "arrived"
}  # fmt: skip


class Case(NamedTuple):
    """losses and delays of the problem; kind: of the log; wide: how much wider an interval may be
    than one from outcomes of all rows.
    """

    losses: Any
    delays: Any
    kind: str
    wide: float


def late(law: Any) -> jb.WindowedDelay:
    """A shop: a loss of 0 is a conversion, and nothing else is ever seen."""
    return jb.WindowedDelay(law, 10)


# Every second state is fast, every other one slow.
MIXED = jb.EmpiricalDelay(np.where(np.arange(400) < np.array([[40], [400]] * 2), 1.0, 0)
                          / np.array([[40], [400]] * 2))  # fmt: skip
COINS = jb.BernoulliLosses(THETA)
CASES = {
    "soon": Case(COINS, jb.FixedDelay(3), "outcomes", 1.05),
    "fixed": Case(COINS, jb.FixedDelay(180), "outcomes", 1.3),
    "uniform": Case(COINS, jb.UniformDelay(0, 360), "outcomes", 1.4),
    "geometric": Case(COINS, jb.GeometricDelay(180), "outcomes", 1.5),
    "by state": Case(COINS, MIXED, "outcomes", 1.5),
    "spread": Case(jb.BetaLosses(THETA, 2.0), jb.GeometricDelay(180), "outcomes", 1.1),
    "constant": Case(jb.ConstantLosses(THETA), jb.GeometricDelay(180), "outcomes", 0.6),
    "shop, soon": Case(COINS, late(jb.GeometricDelay(3)), "conversions", 1.1),
    "shop, fixed": Case(COINS, late(jb.FixedDelay(180)), "conversions", 1.3),
    "shop, uniform": Case(COINS, late(jb.UniformDelay(0, 360)), "conversions", 1.4),
    "shop, geometric": Case(COINS, late(jb.GeometricDelay(180)), "conversions", 2.3),
    "shop, by state": Case(COINS, late(MIXED), "conversions", 1.6),
    "shop, revenue": Case(jb.EventLosses(1 - THETA, [0.1, 0.2, 0.4, 0.7]),
                          late(jb.UniformDelay(0, 360)), "conversions", 1.4),
}  # fmt: skip


def logs(case: Case) -> Iterator[jb.Log]:
    """Pieces of one game: what comes after the end of a piece is not in it."""
    env = jb.Environment(jb.StochasticMapping(P), case.losses, case.delays)
    whole = jb.play_log(env, (LOGS + 1) * ROWS, seed=1)
    absent = 1.0 if case.kind == "conversions" else np.nan
    for i in range(LOGS):
        piece = whole.iloc[i * ROWS : (i + 1) * ROWS].copy()
        lost = ~(piece["arrived"] <= (i + 1) * ROWS)
        piece.loc[lost, "arrived"] = np.nan
        piece.loc[lost, "loss"] = absent
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", jb.LogWarning)
            yield jb.read_log(piece, **NAMES, progress=False)


@cache
def fits(name: str) -> list[jb.Fit]:
    return [jb.fit(log) for log in logs(CASES[name])]


def fewest(size: int, tests: int = 1) -> int:
    """So many of `size` intervals that hold in 95 % are held by fewer with probability 1e-6."""
    return int(stats.binom.ppf(FALSE_ALARM / tests, size, 0.95))


def hits(tables: list[jb.Table], truth: np.ndarray) -> np.ndarray:
    """bool [logs, ...]"""
    low, high = (np.stack([table[i] for table in tables]) for i in (1, 2))
    return (low <= truth) & (truth <= high)


def test_pieces_lack_three_of_ten_outcomes() -> None:
    for name in ("fixed", "uniform", "geometric", "spread"):
        shares = [fit.log.come.mean() for fit in fits(name)]
        assert 0.68 < np.mean(shares) < 0.73
    converting = 1 - (P @ THETA).mean()
    for name in ("shop, fixed", "shop, uniform", "shop, geometric"):
        shares = [fit.log.come.mean() / converting for fit in fits(name)]
        assert 0.68 < np.mean(shares) < 0.73


@pytest.mark.parametrize("name", CASES)
def test_intervals_hold_the_truth(name: str) -> None:
    """Mean losses: over all states, and each for itself. Of 13 problems with 5 tests each one fails
    by chance with probability below 7e-5.
    """
    case, found = CASES[name], fits(name)
    assert all(fit.kind == case.kind for fit in found)
    held = hits([fit.losses for fit in found], np.asarray(case.losses.theta))
    assert held.sum() >= fewest(held.size)
    assert (held.sum(axis=0) >= fewest(LOGS)).all()


@pytest.mark.parametrize("name", ["geometric", "shop, geometric"])
def test_the_mapping_is_in_its_intervals(name: str) -> None:
    """12 entries, each for itself, and those of three different rows together."""
    held = hits([fit.mapping for fit in fits(name)], P)
    assert (held.sum(axis=0) >= fewest(LOGS)).all()
    rows = held[:, np.arange(3), np.arange(3)]
    assert rows.sum() >= fewest(rows.size)


@pytest.mark.parametrize("name", CASES)
def test_intervals_are_no_wider_than_they_need_be(name: str) -> None:
    case, found = CASES[name], fits(name)
    rows = np.stack([fit.log.counts.sum(axis=0) for fit in found])
    theta = np.asarray(case.losses.theta)
    full = stats.beta.ppf(0.975, theta * rows + 1, (1 - theta) * rows)
    full = full - stats.beta.ppf(0.025, theta * rows, (1 - theta) * rows + 1)
    wide = np.stack([fit.losses.high - fit.losses.low for fit in found])
    assert wide.mean() < case.wide * full.mean()


def test_delays_that_differ_between_states_are_found_and_others_are_not() -> None:
    """At 1 % there are 2 false alarms in 200 logs on average, 12 or more with probability 2e-6."""
    for name in ("by state", "shop, by state"):
        assert np.mean([len(fit.delays) == 4 for fit in fits(name)]) > 0.9
    for name in ("uniform", "geometric", "shop, uniform", "shop, geometric"):
        assert sum(len(fit.delays) > 1 for fit in fits(name)) < 12


@pytest.mark.parametrize("name", ["uniform", "shop, uniform"])
def test_delays_are_those_of_the_problem(name: str) -> None:
    """The mean of 200 curves at three delays, each within 5 standard errors and 0.004."""
    found = fits(name)
    for rounds in (60, 180, 300):
        gone = 1 - np.array([fit.delays[0].survival_at(rounds) for fit in found])
        whole = 1 - np.array([fit.delays[0].never for fit in found])
        shares = gone / whole
        error = shares.std(ddof=1) / np.sqrt(LOGS)
        assert abs(shares.mean() - (rounds + 1) / 361) < 5 * error + 0.004


def test_good_news_may_take_longer() -> None:
    """Losses of 0 come after up to 59 rounds, those of 1 after 200, as where "nothing came" is
    known only after a while. Counting what has come makes everything look good.
    """
    generator = np.random.default_rng(2)
    held, naive = [], []
    for _ in range(LOGS):
        state = generator.integers(4, size=ROWS)
        loss = (generator.random(ROWS) < THETA[state]).astype(float)
        at = np.arange(1, ROWS + 1)
        arrived = at + np.where(loss == 1, 200.0, generator.integers(60, size=ROWS))
        arrived[arrived > ROWS] = np.nan
        loss[np.isnan(arrived)] = np.nan
        table = {"round": at, "action": state % 2, "state": state, "loss": loss}
        log = jb.read_log(pd.DataFrame(table | {"arrived": arrived}), **NAMES, progress=False)
        held.append(hits([jb.fit(log).losses], THETA)[0])
        naive.append([log.loss[log.come & (log.state == s)].mean() for s in range(4)])
    assert np.sum(held) >= fewest(np.size(held))
    assert np.mean(naive, axis=0)[2] < THETA[2] - 0.05


def test_a_wrong_interval_would_be_noticed() -> None:
    """Of normal distributions, intervals of 88 % in place of 95 % fail."""
    generator = np.random.default_rng(0)
    held = np.abs(generator.standard_normal((LOGS, 4))) < stats.norm.ppf(0.94)
    assert held.sum() < fewest(held.size)
