"""Verdicts on claims: right on made-up data, honest about noise."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from jaxbio.experiments.experiment import Options, lower
from jaxbio.experiments.registry import EXPERIMENTS
from jaxbio.experiments.verdicts import FactClaim, MeanClaim, judge
from jaxbio.statistics import holm, interval, two_sided

RUNS = 20


def made_up(margin: float, seed: int = 0) -> xr.Dataset:
    """Two learners whose final regrets differ by `margin` on average, sd 1."""
    rng = np.random.default_rng(seed)
    world = rng.normal(100, 30, RUNS)
    values = np.stack([world, world + margin + rng.normal(0, 1, RUNS)])
    return xr.Dataset({"final_regret": (("learner", "run"), values)}, {"learner": ["good", "bad"]})


@pytest.mark.parametrize(("margin", "outcome"), [(3.0, "yes"), (-3.0, "no"), (0.0, "undecided")])
def test_a_paired_difference_decides(margin: float, outcome: str) -> None:
    verdict = judge([lower("good", "bad")], made_up(margin))[0]
    assert verdict.outcome == outcome
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < verdict.mean < verdict.high  # type: ignore[operator]
    assert abs(verdict.mean - margin) < 4.5 / np.sqrt(RUNS)  # type: ignore[operator]


def test_claims_without_substance_are_rarely_decided() -> None:
    """At most 5 % of experiments decide any of five empty claims.

    300 experiments: more than 33 of them would be a surprise of probability 2e-5.
    """
    rng = np.random.default_rng(1)
    decided = 0
    for _ in range(300):
        p_values = holm([two_sided(rng.normal(size=RUNS)) for _ in range(5)])
        decided += min(p_values) <= 0.05
    assert scipy.stats.binom.sf(33, 300, 0.05) < 2e-5
    assert decided <= 33


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_intervals_cover_the_mean() -> None:
    """95 % intervals of 200 samples: fewer than 178 hits have probability below 1e-3."""
    rng = np.random.default_rng(2)
    hits = 0
    for i in range(200):
        low, high = interval(rng.exponential(size=40), i)
        hits += low <= 1 <= high
    assert hits >= 175


def test_runs_that_agree_need_no_statistics() -> None:
    assert two_sided(np.zeros(5)) == 1.0
    assert two_sided(np.full(5, 2.0)) == 2.0**-4  # 2 of 32 ways to deal signs
    assert two_sided(np.ones(1)) == 1.0
    assert interval(np.full(5, 2.0), 0) == (2.0, 2.0)


def test_a_fact_must_hold_in_every_run() -> None:
    data = made_up(1)
    for good, outcome in ((RUNS, "yes"), (RUNS - 1, "no")):
        claim = FactClaim("all", lambda _, good=good: np.arange(RUNS) < good, lambda _: "seen")
        verdict = judge([claim], data)[0]
        assert verdict.outcome == outcome
        assert f"{good} of {RUNS}" in verdict.detail


def test_every_experiment_has_claims_in_words() -> None:
    for number, experiment in EXPERIMENTS.items():
        claims = experiment.claims(Options())
        assert experiment.number == number
        assert claims
        assert len({claim.statement for claim in claims}) == len(claims)
        assert all(isinstance(claim, MeanClaim | FactClaim) for claim in claims)
