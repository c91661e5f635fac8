"""Verdicts on claims: right on made-up data, honest about noise."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from jaxbio.analysis.statistics import holm, of_margin
from jaxbio.studies.paper.experiment import Options, lower
from jaxbio.studies.paper.registry import EXPERIMENTS
from jaxbio.studies.paper.report.section import margin as shown_margin
from jaxbio.studies.paper.verdicts import FactClaim, MeanClaim, judge

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
        p_values = holm([of_margin(rng.normal(size=RUNS)).two_sided() for _ in range(5)])
        decided += min(p_values) <= 0.05
    assert scipy.stats.binom.sf(33, 300, 0.05) < 2e-5
    assert decided <= 33


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_intervals_cover_the_mean() -> None:
    """95 % intervals of 8 runs, 400 normal margins: fewer than 360 hits have a probability below
    1e-4. (A bootstrap has 352.)
    """
    assert scipy.stats.binom.cdf(359, 400, 0.95) < 1e-4
    rng, hits = np.random.default_rng(2), 0
    for _ in range(400):
        claim = MeanClaim("above", lambda data: data.margin.values)
        data = xr.Dataset({"margin": ("run", rng.normal(1, 3, 8))})
        (verdict,) = judge([claim], data)
        hits += verdict.low <= 1 <= verdict.high  # type: ignore[operator]
    assert hits >= 360


def test_runs_that_agree_need_no_statistics() -> None:
    found = of_margin(np.full(5, 2.0))
    assert found.two_sided() == 2.0**-4  # 2 of 32 ways to deal signs
    assert found.interval() == (2.0, 2.0)


def test_one_run_decides_nothing_and_has_no_interval() -> None:
    (verdict,) = judge([MeanClaim("above", lambda data: data.margin.values)], one_run(9.0))
    assert (verdict.outcome, verdict.low, verdict.high, verdict.p) == ("undecided", None, None, 1)
    assert shown_margin(verdict) == verdict.detail == "margin 9.0 in the only run"


def one_run(value: float) -> xr.Dataset:
    return xr.Dataset({"margin": ("run", [value])})


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
