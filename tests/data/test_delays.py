"""Delays estimated from logs that end before all outcomes have come, against the truth.

Every round of a log has an outcome with probability 0.7, late by a delay of at most 59 rounds. The
log ends after 200 rounds: 79 of them have no outcome then, and for 19 of those one will come.
"""

from __future__ import annotations

import tracemalloc
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import scipy.stats

import jaxbio as jb

NEVER = 0.3
COMING = np.append(0.97 ** np.arange(1, 60), 0)  # the survival of what comes: slowly
TRUTH = NEVER + (1 - NEVER) * COMING
LOGS = 300
ROUNDS = 200
AT = np.array([0, 10, 30, 58])  # at 59 the curve ends, at `never`
FAR = 4.5  # standard errors: a false alarm has probability 7e-6


class Log(NamedTuple):
    """came, waiting: as `fit_delays` takes them; hidden: how many of the latter will come."""

    came: np.ndarray
    waiting: np.ndarray
    hidden: int


def draw(length: int, seed: int) -> Log:
    generator = np.random.default_rng(seed)
    steps = -np.diff(TRUTH, prepend=1)
    delays = generator.choice(len(steps) + 1, length, p=np.append(steps, NEVER))
    never = delays == len(steps)
    left = length - np.arange(1, length + 1)
    came = ~never & (delays <= left)
    return Log(delays[came], left[~came], int(np.sum(~never & ~came)))


@cache
def logs() -> list[Log]:
    return [draw(ROUNDS, seed) for seed in range(LOGS)]


@cache
def fits() -> list[jb.DelayFit]:
    return [jb.fit_delays(log.came, log.waiting) for log in logs()]


def errors(values: np.ndarray, truth: np.ndarray | float) -> np.ndarray:
    """How many standard errors the mean of values [logs, ...] is away from the truth."""
    return (values.mean(axis=0) - truth) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def test_estimates_are_not_biased() -> None:
    """And both simple ways are, far beyond what this test would notice."""
    curves = np.stack([fit.survival_at(AT) for fit in fits()])
    never = np.array([fit.never for fit in fits()])
    assert np.all(np.abs(errors(curves, TRUTH[AT])) < FAR)
    assert abs(errors(never, NEVER)) < FAR
    dropped = np.stack([[np.mean(log.came > d) for d in AT] for log in logs()])
    coming = np.stack([(fit.survival_at(AT) - fit.never) / (1 - fit.never) for fit in fits()])
    assert np.all(np.abs(errors(coming, COMING[AT])) < FAR)
    assert np.all(errors(dropped, COMING[AT])[1:3] < -2 * FAR), "delays look short"
    counted = np.array([len(log.waiting) / ROUNDS for log in logs()])
    assert errors(counted, NEVER) > 4 * FAR, "too much counts as never"


def test_intervals_cover_what_they_promise() -> None:
    """At 95 %: Clopper-Pearson intervals of the coverage, each with a false alarm rate of 1e-4,
    hold a coverage of 93.5 to 96.5 %. (Log-log intervals are good to about a percent.)
    """
    low, high = (np.stack([side_at(fit, side) for fit in fits()]) for side in ("low", "high"))
    truth = np.append(TRUTH[AT], NEVER)
    for covered in ((low <= truth) & (truth <= high)).sum(axis=0):
        found = scipy.stats.binomtest(int(covered), LOGS).proportion_ci(1 - 1e-4)
        assert found.low < 0.965
        assert found.high > 0.935
    assert np.mean(high - low) < 0.14  # and they are no wider than need be: 2 * 1.96 sqrt(1/4/200)


def side_at(fit: jb.DelayFit, side: str) -> np.ndarray:
    """An end of the interval at AT, and of never."""
    ends = getattr(fit, side)[np.searchsorted(fit.rounds, AT, side="right") - 1]
    return np.append(ends, getattr(fit, f"never_{side}"))


def test_what_is_waited_for_comes_or_never_does() -> None:
    expected = np.array(
        [fit.expected - log.hidden for fit, log in zip(fits(), logs(), strict=True)]
    )
    assert abs(errors(expected, 0)) < FAR
    assert np.mean([log.hidden for log in logs()]) > 12


def test_a_log_that_ends_too_early_says_so() -> None:
    """With 40 rounds, delays of up to 59 are cut: what has not come by the end looks like never.
    The upper end of the interval still holds, and few are beyond the longest delay.
    """
    short = [jb.fit_delays(*draw(40, seed)[:2]) for seed in range(100)]
    assert np.mean([fit.never for fit in short]) > NEVER + 0.1
    assert np.mean([fit.never_high >= NEVER for fit in short]) > 0.95
    assert np.median([fit.beyond for fit in short]) < 10 < min(fit.beyond for fit in fits())


def test_a_log_in_which_everything_came_is_counted() -> None:
    came = np.array([3, 1, 1, 0, 7, 3, 3])
    fit = jb.fit_delays(came)
    np.testing.assert_array_equal(fit.rounds, [0, 1, 3, 7])
    np.testing.assert_allclose(fit.survival, [6 / 7, 4 / 7, 1 / 7, 0], atol=1e-12)
    assert (fit.never, fit.never_low, fit.came, fit.waiting, fit.expected) == (0, 0, 7, 0, 0)
    assert np.all(fit.low <= fit.survival)
    assert np.all(fit.survival <= fit.high)


def test_by_hand() -> None:
    """Of four, one comes at once; one of three after 2 rounds, when one has left after 1."""
    fit = jb.fit_delays([0, 2], [1, 5])
    np.testing.assert_allclose(fit.survival, [3 / 4, 3 / 4 * 1 / 2])
    # Of the one that waits for 1 round half the survivors never come, of the other all.
    assert fit.expected == pytest.approx(1 / 2)
    assert (fit.beyond, fit.waiting) == (1, 2)


def test_a_fit_is_simulated() -> None:
    """`law` draws the fitted curve; `conversions` what comes, with never as the losses' mean."""
    some = [fits()[0], jb.fit_delays([0, 1, 1], [4, 4, 9])]
    law, late = some[0].law(), some[0].law(conversions=True)
    curve = some[0].survival_at(np.arange(law.longest() + 1))
    np.testing.assert_allclose(1 - np.cumsum(law.masses()[:-1]), curve, atol=1e-7)
    np.testing.assert_allclose(law.masses()[-1], some[0].never, atol=1e-9)
    assert late.masses()[-1] == 0
    scaled = np.cumsum(late.masses()[:-1]) * (1 - some[0].never)
    np.testing.assert_allclose(scaled, np.cumsum(law.masses()[:-1]), atol=1e-7)
    both = jb.law_by_state(some)
    assert (both.num_states, both.longest()) == (2, law.longest())
    np.testing.assert_allclose(both.masses()[:, -1], [fit.never for fit in some], atol=1e-9)
    np.testing.assert_allclose(both.masses()[1, :2], [1 / 6, 1 / 3], atol=1e-9)


@pytest.mark.parametrize("longest", [10**9, 2**24 - 2])
def test_a_law_of_an_endless_delay_is_refused_at_once(longest: int) -> None:
    """Its table would take 8 GB."""
    fit = jb.fit_delays([1, longest])
    for make in (fit.law, lambda: jb.law_by_state([fit])):
        tracemalloc.start()
        with pytest.raises(ValueError, match=f"came after {longest:,}: is it a word for what has"):
            make()
        assert tracemalloc.get_traced_memory()[1] < 1e6
        tracemalloc.stop()


def test_a_game_gives_its_law_back() -> None:
    env = jb.Environment(
        jb.StochasticMapping([[1.0], [1.0]]),
        jb.BernoulliLosses([NEVER]),
        jb.WindowedDelay(jb.EmpiricalDelay.from_survival(COMING), 200),
    )
    played = jb.trajectory(env, jb.UCB1(), 3, 4_000)
    loss, delay = np.asarray(played.loss), np.asarray(played.delay)
    left = 4_000 - np.arange(1, 4_001)
    came = (loss == 0) & (delay <= left)
    fit = jb.fit_delays(delay[came], left[~came], level=0.9999)
    assert fit.never_low <= NEVER <= fit.never_high
    inside = fit.rounds < 59
    truth = TRUTH[fit.rounds[inside]]
    # 59 dependent intervals at 0.9999: a false alarm has probability below 0.006.
    assert np.all((fit.low[inside] <= truth) & (truth <= fit.high[inside]))
