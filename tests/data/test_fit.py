"""jb.fit on small logs that can be computed by hand, what it refuses, and its draws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import jaxbio as jb
from jaxbio.cli import main as cli
from jaxbio.data import curing, waits
from jaxbio.data.betas import Betas
from jaxbio.data.fading import fading
from jaxbio.data.survival import curve
from jaxbio.data.waits import Waits

NAMES: dict[str, Any] = {
    "time": "at", "action": "arm", "state": "seen", "loss": "cost", "arrived": "known"
}  # fmt: skip
ANY: Any = {"a": 1}
pytestmark = pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")


def read(**columns: Any) -> jb.Log:
    """A log of rounds; columns that are not given: every outcome came in its own round."""
    rows = len(columns["seen"])
    at = np.arange(1, rows + 1)
    usual = {"at": at, "arm": at % 2, "cost": np.zeros(rows), "known": at.astype(float)}
    names = {role: name for role, name in NAMES.items() if (usual | columns)[name] is not None}
    table = {name: value for name, value in (usual | columns).items() if value is not None}
    return jb.read_log(table, **names, progress=False)


def some(rows: int = 400, seed: int = 0) -> jb.Log:
    """Outcomes of 0 and 1 after 0 to 59 rounds."""
    generator = np.random.default_rng(seed)
    known = np.arange(1.0, rows + 1) + generator.integers(60, size=rows)
    known[known > rows] = np.nan
    seen = generator.integers(3, size=rows)
    cost = (generator.random(rows) < np.array([0.1, 0.5, 0.8])[seen]).astype(float)
    arm = generator.integers(2, size=rows)
    return read(seen=seen, cost=np.where(np.isnan(known), np.nan, cost), known=known, arm=arm)


def shop(rows: int = 400, seed: int = 0, least: float = 0.0) -> jb.Log:
    """Conversions only, after 0 to 59 rounds. least: of their losses, up to 0.5."""
    generator = np.random.default_rng(seed)
    known = np.arange(1.0, rows + 1) + generator.integers(60, size=rows)
    seen = generator.integers(3, size=rows)
    known[(known > rows) | (generator.random(rows) < np.array([0.1, 0.5, 0.8])[seen])] = np.nan
    value = generator.uniform(least, 0.5, rows) if least else 0.0
    return read(seen=seen, cost=np.where(np.isnan(known), 1.0, value), known=known)


# --- by hand


def test_a_mapping_by_hand() -> None:
    """Action 0 has 4 rows with state a and 1 with b, action 1 has a, b, c: of all 8 rows 5 have a,
    2 have b and 1 has c. The prior row of each action has these shares.
    """
    log = read(arm=[0] * 5 + [1] * 3, seen=list("aaaababc"), cost=[0, 1] * 4)
    found = jb.fit(log).mapping
    expected = [[(4 + 5 / 8) / 6, (1 + 2 / 8) / 6, (0 + 1 / 8) / 6],
                [(1 + 5 / 8) / 4, (1 + 2 / 8) / 4, (1 + 1 / 8) / 4]]  # fmt: skip
    np.testing.assert_allclose(found.mean, expected)
    np.testing.assert_allclose(found.mean.sum(axis=1), 1)
    for k, s, count, rows in ((0, 0, 4, 5), (0, 2, 0, 5), (1, 1, 1, 3)):
        ends = stats.binomtest(count, rows).proportion_ci(0.95, "exact")
        np.testing.assert_allclose((found.low[k, s], found.high[k, s]), (ends.low, ends.high))


def test_mean_losses_of_zeros_and_ones_by_hand() -> None:
    """State a has losses 1, 0, 0, state b has 1, 1: three of five are 1."""
    log = read(seen=list("aaabb"), cost=[1.0, 0.0, 0.0, 1.0, 1.0])
    fit = jb.fit(log, level=0.9)
    np.testing.assert_allclose(fit.losses.mean, [(1 + 0.6) / 4, (2 + 0.6) / 3])
    for s, count, rows in ((0, 1, 3), (1, 2, 2)):
        ends = stats.binomtest(count, rows).proportion_ci(0.9, "exact")
        np.testing.assert_allclose((fit.losses.low[s], fit.losses.high[s]), (ends.low, ends.high))
    env = fit.environment()
    assert isinstance(env.losses, jb.BernoulliLosses)
    np.testing.assert_allclose(env.losses.theta, fit.losses.mean)
    np.testing.assert_allclose(env.mapping.P, fit.mapping.mean)
    assert (env.delays.d, fit.kind, fit.window) == (0, "outcomes", None)


def test_an_outcome_speaks_for_rows_that_are_too_young() -> None:
    """Two outcomes come after 1 round, of four rows; one row has waited for 1 round, one has its
    outcome after 3. So the late one has the weight of half of all.
    """
    came, waiting = np.array([1.0, 1.0, 3.0]), np.array([2.0])
    np.testing.assert_allclose(curve(came, waiting).weights(came), [1 / 4, 1 / 4, 1 / 2])
    log = read(seen=["a"] * 6, cost=[0, 0, 1, np.nan, np.nan, np.nan],
               known=[2, 3, 6, np.nan, np.nan, np.nan], arm=[0, 1] * 3)  # fmt: skip
    # Rows 4 to 6 have waited for 2, 1 and 0 rounds: of six one never came within its own round.
    at_one, at_three = 2 / 5, (3 / 5) * 1
    mean = at_three / (at_one + at_three)
    weights = np.array([at_one / 2, at_one / 2, at_three])
    count = weights.sum() ** 2 / (weights**2).sum()
    expected = (count * mean + 1 / 3) / (count + 1)
    np.testing.assert_allclose(jb.fit(log).losses.mean, [expected])


def test_the_kaplan_meier_estimate_is_that_of_scipy() -> None:
    generator = np.random.default_rng(1)
    came, waiting = generator.integers(50, size=80), generator.integers(60, size=70)
    found = curve(came, waiting)
    expected = stats.ecdf(stats.CensoredData(uncensored=came, right=waiting)).sf
    np.testing.assert_allclose(found.survival, expected.evaluate(found.at))
    np.testing.assert_allclose(found.weights(came).sum(), 1 - found.survival[-1])
    shares = 1 - expected.evaluate(np.arange(60))
    np.testing.assert_allclose(found.came_by(np.arange(60)), shares / shares.max())


def test_losses_between_zero_and_one_have_the_moments_of_the_bootstrap() -> None:
    """The posterior of a mean: of the Bayesian bootstrap, with all values as one more."""
    generator = np.random.default_rng(2)
    cost = generator.beta(2, 3, 60)
    fit = jb.fit(read(seen=[0] * 20 + [1] * 40, cost=cost))
    draws = generator.dirichlet(np.append(np.ones(20), np.full(60, 1 / 60)), 200_000)
    means = draws @ np.append(cost[:20], cost)
    posterior = fit.shares.middle
    # Of 200,000 draws the mean has a standard error of 1e-4, the variance one of 0.3 %.
    assert posterior.mean[0] == pytest.approx(means.mean(), abs=5e-4)
    variance = posterior.mean[0] * (1 - posterior.mean[0]) / (posterior.total[0] + 1)
    assert variance == pytest.approx(means.var(), rel=0.02)


def test_beta_losses_have_the_spread_of_the_log() -> None:
    generator = np.random.default_rng(3)
    seen = generator.integers(2, size=4_000)
    mean = np.array([0.2, 0.7])[seen]
    fit = jb.fit(read(seen=seen, cost=generator.beta(6 * mean, 6 * (1 - mean))))
    losses = fit.environment().losses
    assert isinstance(losses, jb.BetaLosses)
    assert losses.concentration == pytest.approx(6, rel=0.1)  # a standard error is 2 %
    one = jb.fit(read(seen=[0, 1] * 5, cost=[0.25, 0.75] * 5))
    assert isinstance(one.environment().losses, jb.ConstantLosses)


def test_a_state_without_outcomes_has_the_mean_of_all_and_no_interval() -> None:
    known = np.array([1.0, 2.0, 3.0, np.nan, np.nan, np.nan])
    fit = jb.fit(read(seen=list("aabbcc"), cost=[1, 0, 1, 0, 0, 0], known=known), kind="outcomes")
    assert fit.losses.mean[2] == pytest.approx(2 / 3)
    assert (fit.losses.low[2], fit.losses.high[2]) == (0, 1)
    assert any("'c' (0)" in note for note in fit.notes)


# --- conversions


def posterior_by_quadrature(came: int, waiting: Any, share: Any, guess: float) -> Any:
    """Mean and variance of q, where F of the rows that wait is known."""

    def density(q: float) -> float:
        logs = (came + guess - 1) * np.log(q) - guess * np.log1p(-q)
        return float(np.exp(logs + np.sum(waiting * np.log1p(-q * share)) + 60))

    moments = [
        integrate.quad(lambda q, p=p: q**p * density(q), 0, 1, limit=200)[0] for p in range(3)
    ]
    mean = moments[1] / moments[0]
    return mean, moments[2] / moments[0] - mean**2


@pytest.mark.parametrize(
    ("came", "guess", "close"), [(0, 0.05, 0.02), (3, 0.3, 1e-3), (40, 0.7, 1e-3), (90, 0.9, 1e-3)]
)
def test_the_posterior_of_conversions_is_that_of_quadrature(
    came: int, guess: float, close: float
) -> None:
    """With F known: half of the conversions come after 1, the others after 2."""
    found = curve(np.array([1.0, 2.0]), np.array([]))
    law = curing.Law(np.array([1.0, 2.0]), np.array([[0.5, 1.0]] * 3), found, 0.0)
    rows = Waits(np.ones(came), np.repeat([0.0, 1.5, 5.0], [7, 30, 25]), np.full(came, 5.0))
    middle = curing.posterior([rows], [law], guess).middle
    mean, variance = posterior_by_quadrature(came, np.array([30, 25]), np.array([0.5, 1.0]), guess)
    assert middle.mean[0] == pytest.approx(mean, rel=close)
    assert middle.mean[0] * (1 - middle.mean[0]) / (middle.total[0] + 1) == pytest.approx(
        variance, rel=0.02
    )


def test_what_is_not_known_of_delays_widens_the_posterior() -> None:
    """Fifteen rows are old, 285 young: the share that never converts is a product of independent
    Beta variables, one per delay, whose moments multiply. With F taken for known the variance would
    be less than three quarters of it.
    """
    generator = np.random.default_rng(0)
    age = np.append(generator.integers(5, size=285), np.full(15, 400)).astype(float)
    delay = 2.0 * generator.integers(1, 4, 300)
    come = (delay <= age) & (generator.random(300) < 0.7)
    rows = Waits(delay[come], age[~come], age[come])
    law = curing.law(rows)
    found = curing.posterior([rows], [law], 0.5).middle
    one = curve(rows.came, rows.waiting)
    left = one.risk - one.events
    never = np.prod(left / one.risk)
    square = np.prod(left * (left + 1) / (one.risk * (one.risk + 1)))
    assert 1 - found.mean[0] == pytest.approx(never, abs=0.03)
    variance = found.mean[0] * (1 - found.mean[0]) / (found.total[0] + 1)
    assert variance == pytest.approx(square - never**2, rel=0.25)
    known = law._replace(drawn=np.repeat(law.drawn.mean(axis=0, keepdims=True), 64, axis=0))
    less = curing.posterior([rows], [known], 0.5).middle
    assert less.mean[0] * (1 - less.mean[0]) / (less.total[0] + 1) < 0.75 * variance


def test_a_law_of_few_points_says_what_its_estimate_says() -> None:
    """2,000 different delays in 100 points: rows in between have seen a part of a step."""
    generator = np.random.default_rng(1)
    delay, age = generator.uniform(0, 1, 2_000), generator.uniform(0, 2, 2_000)
    rows = Waits(delay[:1_000], age[1_000:], np.full(1_000, 2.0))
    law = curing.law(rows)
    assert len(law.at) < 110
    count, share = curing._seen(rows.waiting, law._replace(drawn=law.curve.came_by(law.at)[None]))
    assert count @ share[0] == pytest.approx(law.curve.came_by(rows.waiting).sum())


def test_conversions_that_all_had_their_time_are_shares() -> None:
    """If conversions come at once, those that wait never convert: Clopper and Pearson again."""
    known = np.arange(1.0, 41)
    known[::4] = np.nan
    log = read(seen=[0] * 20 + [1] * 20, cost=np.where(np.isnan(known), 1.0, 0.0), known=known)
    fit = jb.fit(log)
    assert (fit.kind, fit.window) == ("conversions", 0)
    ends = stats.binomtest(5, 20).proportion_ci(0.95, "exact")
    np.testing.assert_allclose(fit.losses.low, ends.low, rtol=2e-3)
    np.testing.assert_allclose(fit.losses.high, ends.high, rtol=2e-3)
    np.testing.assert_allclose(fit.losses.mean, (5 + 0.25) / 21, rtol=1e-3)


def test_a_young_row_says_little() -> None:
    """30 rows, of which the last 6 have state b and no conversion yet: it would be too early."""
    known = np.arange(1.0, 31) + 8
    known[[2, 9, 15, 22]] = np.nan
    known[known > 30] = np.nan
    log = read(seen=["a"] * 24 + ["b"] * 6, cost=np.where(np.isnan(known), 1.0, 0.0), known=known)
    fit = jb.fit(log)
    assert fit.losses.high[1] > 0.99
    assert fit.losses.low[1] == pytest.approx(0, abs=0.01)


def test_what_comes_after_the_end_is_extrapolated() -> None:
    """Exponential delays with a mean of 100, in a log of 250: what is missed is 10 % on average.
    The mean over 100 logs is to be within 2.5 % (a standard error is 0.5 %).
    """
    found, missed = [], []
    for seed in range(100):
        generator = np.random.default_rng(seed)
        age = generator.uniform(0, 250, 2_000)
        delay = generator.exponential(100, 2_000)
        come = (delay <= age) & (generator.random(2_000) < 0.5)
        rows = Waits(delay[come], age[~come], age[come])
        found.append(curing.law(rows).unseen)
        missed.append(np.exp(-rows.came.max() / 100))
    assert np.mean(found) == pytest.approx(np.mean(missed), abs=0.025)
    law = curing.law(Waits(np.full(50, 3.0), np.full(50, 9.0), np.full(50, 9.0)))
    assert law.unseen == 0


def test_nothing_is_extrapolated_where_rows_have_waited_for_long() -> None:
    generator = np.random.default_rng(0)
    delay, rest = generator.uniform(0, 10, 500), np.full(64, 0.2)
    rows = Waits(delay, np.full(500, 1_000.0), np.full(500, 1_000.0))
    later = fading(rows, curve(rows.came, rows.waiting), rest, generator).later
    assert later.max() < 0.02


def test_revenue_counts_with_its_mean() -> None:
    """A quarter of rows buy, at losses of 0.2 or 0.6; else the loss is 1."""
    known = np.arange(1.0, 401)
    known[np.arange(400) % 4 > 0] = np.nan
    value = np.where(np.arange(400) % 8 > 0, 0.2, 0.6)
    cost = np.where(np.isnan(known), 1.0, value)
    log = read(seen=[0] * 400, cost=cost, known=known, arm=[0, 1] * 200)
    fit = jb.fit(log)
    assert fit.kind == "conversions"
    losses = fit.environment().losses
    assert isinstance(losses, jb.EventLosses)
    np.testing.assert_allclose(losses.theta, fit.losses.mean)
    assert losses.theta[0] == pytest.approx(cost.mean(), abs=0.002)
    assert fit.losses.low[0] < cost.mean() < fit.losses.high[0]
    wide = fit.losses.high[0] - fit.losses.low[0]
    assert wide == pytest.approx(2 * 1.96 * cost.std() / 20, rel=0.1)


# --- which kind


def test_kinds_are_found() -> None:
    assert jb.fit(some()).kind == "outcomes"
    assert jb.fit(shop()).kind == "conversions"
    assert jb.fit(shop(least=0.1)).kind == "conversions"
    wait = np.where(np.arange(40) > 30, np.nan, np.arange(10.0, 50))
    spread = np.where(np.isnan(wait), 0.0, np.linspace(0.1, 0.9, 40))
    # All old rows have an outcome: a zero stands for one that is to come.
    assert jb.fit(read(seen=[0, 1] * 20, cost=spread, known=wait)).kind == "outcomes"
    bare = read(seen=[0, 1] * 20, cost=np.where(np.isnan(wait), np.nan, 1.0), known=wait)
    assert (jb.fit(bare).kind, jb.fit(bare).absent) == ("conversions", 0.0)
    assert jb.fit(bare, kind="outcomes").kind == "outcomes"
    assert jb.fit(read(seen=[0, 1] * 20, cost=[0.0, 1.0] * 20, known=None)).kind == "outcomes"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jb.fit(ANY), TypeError, "log must be a Log, which read_log makes, but got"),
        (lambda: jb.fit(some(), kind="clicks"), ValueError, "kind must be one of 'outcomes'"),
        (lambda: jb.fit(some(), window=9), ValueError, "window is for a log of conversions"),
        (lambda: jb.fit(some()).environment(9), ValueError, "window is for a log of conversions"),
        (lambda: jb.fit(shop(), window=-1), ValueError, "window must be in"),
        (lambda: jb.fit(some(), level=1), ValueError, r"level must be in \(0, 1\)"),
        (lambda: jb.fit(some(), width=0), ValueError, "width must be in"),
        (lambda: jb.fit(some()).sample(-1), ValueError, "seed must be at least 0"),
        (lambda: jb.fit(some(), kind="conversions"), ValueError,
         "the table gives none: fill in column 'cost' of rows that have no arrival"),
        (lambda: jb.fit(read(seen=[0, 1], cost=[0, 1]), kind="conversions"), ValueError,
         "in this one all outcomes have come: use kind='outcomes'"),
        (lambda: jb.fit(read(seen=[0] * 4, cost=[0, 1, 0.5, 0.5], known=[1, 2, 3, None]),
                        kind="conversions"), ValueError,
         "a row without one has the loss 0.5, and conversions have losses from 0 to 1"),
        (lambda: jb.fit(read(seen=[0] * 4, at=[5] * 4, known=[6] * 4, cost=[0, 1] * 2)), ValueError,
         r"all decisions were made at the same time \(column 'at'\)"),
    ],
)  # fmt: skip
def test_wrong_use(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


# --- delays


def test_rounds_after_the_last_decision_go_on_at_the_mean_pace() -> None:
    """Ten decisions at times 0 to 9, one of them late by 15: 6 are made by 9, 9 more until 18."""
    at = np.arange(10.0)
    known = at + 2
    known[3] = 18.0
    log = read(at=at, seen=[0] * 10, cost=[0, 1] * 5, known=known)
    rounds, come = waits.in_rounds(log, 1)
    assert come.all()
    assert rounds.tolist() == [2, 2, 2, 15, 2, 2, 2, 2, 2, 2]
    assert log.delays_in_rounds()[3] == 6
    assert any("at the log's mean pace" in note for note in jb.fit(log).notes)


def test_wide_rounds_keep_every_so_many_decisions() -> None:
    """With a width of 7 delays are those of the log in which every seventh decision is left."""
    log = some(700)
    rounds, come = waits.in_rounds(log, 7)
    for first in range(7):
        keep = np.arange(first, 700, 7)
        part = jb.read_log(
            {"at": log.time[keep], "arm": log.action[keep], "seen": log.state[keep],
             "cost": log.loss[keep], "known": log.arrived[keep]},
            **NAMES, end=700.0, progress=False,
        )  # fmt: skip
        seen = part.seen_in_rounds
        assert (rounds[keep][seen] == part.delays_in_rounds()[seen]).all()
    young = rounds[-7:][~come[-7:]]  # of the last row nothing is known, nor of the 5 before it
    assert set(young[1:]) == {-1}
    left = np.arange(699, -1, -1)[~come]
    assert (rounds[~come] == (left + 1) // 7 - 1).all()
    fit = jb.fit(log, width=7)
    assert fit.delays[0].rounds[-1] == 59 // 7
    assert "a round stands for 7 decisions" in fit.summary()


def test_the_usual_window_has_19_of_20_conversions() -> None:
    log = shop(4_000)
    fit = jb.fit(log)
    inside = (log.delays_in_rounds()[log.seen_in_rounds] <= fit.window).mean()
    assert 0.94 < inside < 0.98
    assert fit.environment().delays.window == fit.window
    assert fit.environment(window=7).delays.window == 7
    assert jb.fit(log, window=9).environment().delays.window == 9


def test_a_fit_of_a_shop_hides_what_takes_longer() -> None:
    """Of all conversions the share `unseen` is not shown by any window."""
    log = shop()
    fit = jb.fit(log)
    law = fit.environment().delays.law
    masses = law.masses()
    assert masses[-1] == pytest.approx(fit.laws[0].unseen, abs=1e-9)
    never = fit.delays[0].never
    gone = (1 - fit.delays[0].survival) / (1 - never) * (1 - fit.laws[0].unseen)
    np.testing.assert_allclose(np.cumsum(masses[:-1])[fit.delays[0].rounds], gone, atol=1e-8)


# --- draws


def test_draws_have_the_mean_and_the_spread_of_the_posterior() -> None:
    """Means of 400 draws within 5 standard errors; variances within 40 % (of 400 normal variables a
    relative standard error of 7 %; entries of small mass are skewed).
    """
    for log in (some(), shop(), shop(least=0.1)):
        fit = jb.fit(log)
        drawn = [fit.sample(seed) for seed in range(400)]
        counts = log.counts + log.counts.sum(axis=0) / len(log)
        total = counts.sum(axis=1, keepdims=True)
        mean = fit.mapping.mean
        _agree([env.mapping.P for env in drawn], mean, mean * (1 - mean) / (total + 1))
        tail = float(
            stats.norm.sf(1)
        )  # the interval from one standard deviation below to one above
        ends = fit.shares.middle if fit.gains is None else fit.shares.middle.times(fit.gains.middle)
        spread = (ends.quantile(1 - tail) - ends.quantile(tail)) / 2 * abs(fit.most)
        _agree([env.losses.theta for env in drawn], fit.losses.mean, spread**2)


def _agree(draws: list[np.ndarray], mean: np.ndarray, variance: np.ndarray) -> None:
    found = np.stack(draws)
    assert (np.abs(found.mean(axis=0) - mean) < 5 * np.sqrt(variance / len(draws))).all()
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.4)


def test_delays_are_drawn_too() -> None:
    """Of n outcomes without censoring: the Bayesian bootstrap. Share s within some rounds varies by
    s (1 - s) / (n + 1).
    """
    log = read(seen=[0] * 50, cost=[0, 1] * 25, known=np.arange(1.0, 51) + np.arange(50) % 5)
    fit = jb.fit(log)
    count = fit.delays[0].came
    assert fit.delays[0].waiting <= 4
    shares = [1 - fit.delays[0].drawn(np.random.default_rng(i)).survival[1] for i in range(2_000)]
    share = 1 - fit.delays[0].survival[1]
    # Of 2,000 draws: standard errors of 0.0015 and 3 %.
    assert np.mean(shares) == pytest.approx(share, abs=0.0075)
    assert np.var(shares) == pytest.approx(share * (1 - share) / (count + 1), rel=0.16)
    laws = [fit.sample(seed).delays.masses()[:3] for seed in (1, 1, 2)]
    assert (laws[0] == laws[1]).all()
    assert (laws[0] != laws[2]).any()


def test_fits_are_played() -> None:
    """Environments of both kinds go through the engine; a window bounds the delays."""
    for log in (some(), shop(), shop(least=0.1)):
        fit = jb.fit(log)
        for env in (fit.environment(), fit.sample(0)):
            result = jb.simulate(env, jb.UCB1(), horizon=100, runs=2, progress=False)
            assert np.isfinite(result.final_regret).all()


def test_a_fit_of_the_log_of_a_fit_is_close_to_it() -> None:
    """There and back, with 20,000 rows: mean losses and mapping within 6 standard errors of 0.005
    and of 0.0085.
    """
    for log in (some(), shop()):
        first = jb.fit(log)
        played = jb.play_log(first.environment(), 20_000, seed=5)
        names: dict[str, Any] = {
            "time": "round", "action": "action", "state": "state", "loss": "loss",
            "arrived": "arrived",
        }  # fmt: skip
        again = jb.fit(jb.read_log(played, **names, progress=False))
        assert again.kind == first.kind
        np.testing.assert_allclose(again.losses.mean, first.losses.mean, atol=0.05)
        np.testing.assert_allclose(again.mapping.mean, first.mapping.mean, atol=0.03)
        assert again.delays[0].rounds[-1] == first.delays[0].rounds[-1]


# --- words


def test_the_numbers_of_the_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    file = tmp_path / "shop.csv"
    jb.example_log(20_000, 3).to_csv(file, index=False)
    words = ["--time", "clicked", "--action", "campaign", "--state", "bucket", "--reward", "bought",
             "--arrived", "bought_at", "--quiet"]  # fmt: skip
    assert (
        cli.main(["log", "fit", str(file), *words, "--json", "--level", "0.9", "--width", "10"])
        == 0
    )
    said = json.loads(capsys.readouterr().out)
    log = jb.read_log(file, time="clicked", action="campaign", state="bucket", reward="bought",
                      arrived="bought_at", progress=False)  # fmt: skip
    fit = jb.fit(log, level=0.9, width=10)
    assert said == json.loads(json.dumps(fit.to_dict()))
    assert said["losses"]["low"] == fit.losses.low.tolist()
    assert (said["kind"], said["window"], said["loss_law"]) == (
        "conversions", fit.window, "BernoulliLosses")  # fmt: skip
    assert cli.main(["log", "fit", str(file), *words]) == 0
    text = capsys.readouterr().out
    assert text == f"{jb.fit(log).summary()}\n"
    assert f"waited for {jb.fit(log).window:,} rounds" in text
    assert cli.main(["log", "fit", str(file), *words, "--kind", "outcomes", "--window", "9"]) == 2
    assert "window is for a log of conversions" in capsys.readouterr().err
    assert repr(fit).splitlines()[0] == "Fit of 20,000 decisions, 5 actions, 4 states"


def test_a_played_log_is_that_of_the_game() -> None:
    """What is in it is what the world of that seed holds."""
    env = jb.make_environment("paper-stochastic", delays=jb.UniformDelay(0, 30))
    table = jb.play_log(env, 200, seed=4)
    world, at = jb.sample_world(env, 4, 0, 200), np.arange(200)
    action, state, loss, arrived = (
        table[name].to_numpy() for name in ("action", "state", "loss", "arrived")
    )
    assert (state == world["states"][at, action]).all()
    late, true = at + 1 + world["delays"], world["losses"][at, state]
    np.testing.assert_array_equal(arrived, np.where(late > 200, np.nan, late))
    np.testing.assert_array_equal(loss, np.where(late > 200, np.nan, true))
    assert set(action) == set(range(env.num_actions))
    pd.testing.assert_frame_equal(table, jb.play_log(env, 200, seed=4))
    window = jb.WindowedDelay(jb.UniformDelay(0, 30), 5)
    events = jb.play_log(jb.Environment(env.mapping, env.losses, window), 200, seed=4)
    gone = (late > 200) | (true == 1)
    np.testing.assert_array_equal(events["arrived"], np.where(gone, np.nan, late))
    np.testing.assert_array_equal(events["loss"], np.where(gone, 1.0, 0.0))


def test_products_of_beta_variables() -> None:
    one = Betas.of_counts(np.array([3.0]), np.array([5.0]))
    other = Betas.of_counts(np.array([2.0]), np.array([2.0]))
    generator = np.random.default_rng(0)
    draws = generator.beta(3, 5, 10**6) * generator.beta(2, 2, 10**6)
    found = one.times(other)
    assert found.mean[0] == pytest.approx(draws.mean(), abs=1e-3)
    variance = found.mean[0] * (1 - found.mean[0]) / (found.total[0] + 1)
    assert variance == pytest.approx(draws.var(), rel=0.01)
    fixed = one.times(Betas(np.array([1.0]), np.array([np.inf])))
    np.testing.assert_allclose([fixed.mean, fixed.total], [one.mean, one.total])
