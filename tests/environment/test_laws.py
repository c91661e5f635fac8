"""Log-normal, Pareto and negative binomial delays: their distributions, and games with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import jaxbio as jb
from jaxbio.environment.delays import NEVER, realised_delays

DRAWN = 100_000
FALSE_ALARM = 1e-4  # of one test; with fixed seeds it alarms always or never
BINS = 40


def lognormal(median: float, spread: float) -> Any:
    """P(d <= k), k an integer."""
    return lambda k: scipy.stats.norm.cdf(np.log((k + 0.5) / median) / spread)


def pareto(minimum: float, tail: float) -> Any:
    return lambda k: 1 - np.minimum(1, minimum / (k + 1.0)) ** tail


LAWS = {
    "log-normal": (jb.LogNormalDelay(50, 1), lognormal(50, 1)),
    "log-normal, narrow": (jb.LogNormalDelay(200, 0.05), lognormal(200, 0.05)),
    "pareto": (jb.ParetoDelay(25, 1.2), pareto(25, 1.2)),
    "pareto, no whole minimum": (jb.ParetoDelay(0.7, 0.5), pareto(0.7, 0.5)),
    "negative binomial": (
        jb.NegativeBinomialDelay(50, 2),
        scipy.stats.nbinom(2, 2 / 52).cdf,
    ),
    "negative binomial, wide": (
        jb.NegativeBinomialDelay(8, 0.25),
        scipy.stats.nbinom(0.25, 0.25 / 8.25).cdf,
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_delays_have_their_distribution(name: str) -> None:
    """A chi-square test of 100,000 delays in up to 40 bins of about equal probability, and one of
    how many lie in the furthest hundredth: a false alarm has probability 2e-4 in each case. Shares
    of bins that are wrong by 8 % of themselves are found.
    """
    law, cdf = LAWS[name]
    found = realised_delays(law, 5, DRAWN)
    ends = np.unique(np.quantile(found, np.linspace(0, 1, BINS + 1)[1:-1]).astype(int))
    expected = np.diff(cdf(ends), prepend=0, append=1) * DRAWN
    observed = np.bincount(np.searchsorted(ends, found, side="left"), minlength=len(ends) + 1)
    enough = expected > 20
    assert enough.sum() >= 5
    assert (
        scipy.stats.chisquare(
            [*observed[enough], observed[~enough].sum() + 1e-9],
            [*expected[enough], expected[~enough].sum() + 1e-9],
        ).pvalue
        > FALSE_ALARM
    )
    far = int(np.quantile(found, 0.99))
    beyond = scipy.stats.binomtest(int(np.sum(found > far)), DRAWN, 1 - cdf(far))
    assert beyond.pvalue > FALSE_ALARM


def test_negative_binomial_delays_are_geometric_ones_with_a_dispersion_of_one() -> None:
    masses = jb.NegativeBinomialDelay(9, 1).masses()[:-1]
    np.testing.assert_allclose(masses, 0.1 * 0.9 ** np.arange(len(masses)), rtol=0, atol=2.0**-32)


def test_a_spread_of_zero_is_a_fixed_delay_and_no_mean_is_none_at_all() -> None:
    assert set(realised_delays(jb.LogNormalDelay(7, 0), 0, 100)) == {7}
    assert set(realised_delays(jb.NegativeBinomialDelay(0, 2), 0, 100)) == {0}
    assert realised_delays(jb.ParetoDelay(3, 1000), 0, 1000).max() == 3
    longest = [law.longest() for law in (jb.LogNormalDelay(5, 100), jb.ParetoDelay(5, 0.01))]
    assert longest == [NEVER, NEVER]


HORIZON = 600
FAR = {
    "pareto": jb.ParetoDelay(4, 0.4),
    "log-normal": jb.LogNormalDelay(40, 3),
    "negative binomial": jb.NegativeBinomialDelay(60, 0.2),
}


@pytest.mark.parametrize("name", FAR)
def test_what_would_come_after_the_end_never_does(name: str) -> None:
    """Games are those with the same delays written down, to the last bit of every fact. With the
    first two laws one loss in seven comes too late, most of them after millions of rounds.
    """
    law, learner = FAR[name], jb.make_learner("metabio")
    options: Any = {"horizon": HORIZON, "runs": 1, "seed": 2, "rounds": 6, "progress": False}
    drawn = realised_delays(law, 2, HORIZON)
    late = np.arange(1, HORIZON + 1) + drawn > HORIZON
    assert late.sum() > HORIZON / 10
    found, expected = (
        jb.simulate(jb.make_environment("paper-stochastic", delays=delays), learner, **options)
        for delays in (law, jb.TableDelay(drawn))
    )
    np.testing.assert_array_equal(found.regret, expected.regret)
    for fact, value in expected.info.items():
        np.testing.assert_array_equal(found.info[fact], value, err_msg=fact)
    assert found.info["arrived"] == HORIZON - late.sum()


def test_their_numbers_are_axes_of_a_sweep() -> None:
    """One program plays all medians, and a point is what `simulate` plays."""
    data = jb.sweep(
        lambda median, spread: jb.make_environment(
            "paper-stochastic", delays=jb.LogNormalDelay(median, spread)
        ),
        {"UCB1": jb.UCB1()},
        {"median": [3, 30], "spread": [0.5, 1.0]},
        horizon=200, runs=4, progress=False,
    )  # fmt: skip
    env = jb.make_environment("paper-stochastic", delays=jb.LogNormalDelay(30, 0.5))
    alone = jb.simulate(env, jb.UCB1(), horizon=200, runs=4, progress=False)
    cell = data.final_regret.sel(learner="UCB1", median=30, spread=0.5)
    np.testing.assert_array_equal(cell, alone.final_regret)
    tables = jb.sweep(
        lambda mean: jb.make_environment(
            "paper-stochastic", delays=jb.NegativeBinomialDelay(mean, 2)
        ),
        {"UCB1": jb.UCB1()},
        {"mean": [3, 90]},
        horizon=200, runs=4, progress=False,
    )  # fmt: skip
    env = jb.make_environment("paper-stochastic", delays=jb.NegativeBinomialDelay(90, 2))
    alone = jb.simulate(env, jb.UCB1(), horizon=200, runs=4, progress=False)
    np.testing.assert_array_equal(tables.final_regret.sel(learner="UCB1", mean=90),
                                  alone.final_regret)  # fmt: skip
