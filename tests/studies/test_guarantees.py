"""Bounds against runs: the numbers of the study, and whether it notices what is broken."""

from __future__ import annotations

import dataclasses
import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import jaxbio as jb
from jaxbio import theory
from jaxbio.analysis.intervals import (
    NO,
    UNDECIDED,
    YES,
    judged,
    of_mean,
    of_quantile,
    of_share,
)
from jaxbio.cli import main as cli
from jaxbio.studies.guarantees import command, lemmas
from jaxbio.studies.guarantees import study as guarantees
from jaxbio.studies.guarantees.study import (
    TRIVIAL,
    Check,
    check_guarantees,
    checked,
    compared,
    written_down,
)
from jaxbio.studies.guarantees.theorems import (
    EXPECTATIONS,
    GUARANTEES,
    HINDSIGHT,
    Expectation,
    Guarantee,
)
from jaxbio.studies.guarantees.watched import Watched

ENV = jb.make_environment("paper-utility", delays=jb.FixedDelay(9))
NAMED = {one.name: one for one in GUARANTEES}
PLAYED = (NAMED["MetaBIO"], NAMED["MetaAdaBIO"])
HORIZONS, DELTAS, RUNS = (60, 120), (0.3, 0.1), 40
GAME: dict[str, Any] = {"num_actions": 8, "num_states": 4, "delays": 9}
small = partial(check_guarantees, ENV, horizons=HORIZONS, deltas=DELTAS, runs=RUNS, progress=False)


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return small(guarantees=PLAYED, expectations=EXPECTATIONS[1:2])


def test_the_numbers_are_those_of_a_direct_computation(data: xr.Dataset) -> None:
    """Also: MetaBIO under observation plays as it does alone."""
    learner = jb.make_learner("metabio", delta=0.1)
    played = jb.simulate(ENV, learner, horizon=120, runs=RUNS, rounds=1, progress=False)
    regret = played.final_regret
    cell = data.sel(guarantee="MetaBIO", horizon=120, delta=0.1)
    bound = theory.metabio_bound(horizon=120, num_actions=8, num_states=4, delays=9, delta=0.1)
    assert float(cell.regret_quantile) == np.sort(regret)[35]  # 36 of 40 are at most that
    assert float(cell.bound) == bound.total
    assert float(cell.ratio) == bound.total / np.sort(regret)[35]
    assert {str(t): float(v) for t, v in cell.terms.to_series().dropna().items()} == bound.terms
    assert str(cell.dominant.values) == "states"
    assert int(cell.exceeded) == 0
    assert float(cell.share_high) == pytest.approx(1 - 0.025 ** (1 / RUNS))
    assert data.most_possible.values == pytest.approx(0.32 * data.horizon.values)
    assert (data.verdict == TRIVIAL).all()  # games this short are below any bound


def test_every_game_has_its_own_bound(data: xr.Dataset) -> None:
    for horizon, delta in itertools.product(HORIZONS, DELTAS):
        terms: Any = GAME | {"horizon": horizon, "delta": delta}
        cell = data.sel(horizon=horizon, delta=delta)
        for name, bound in (
            ("MetaBIO", theory.metabio_bound),
            ("MetaAdaBIO", theory.metaadabio_bound),
        ):
            assert float(cell.bound.sel(guarantee=name)) == bound(**terms).total


def test_every_learner_is_tuned_as_its_theorem_supposes() -> None:
    """How the theorems share delta among the parts; delta' is half of what DAda-Exp3 is told."""
    delta = 0.24
    alone, metabio, ada = (
        NAMED[name].learner(delta) for name in ("DAda-Exp3", "MetaBIO", "MetaAdaBIO")
    )
    assert (metabio.delta, ada.delta) == pytest.approx((delta, delta))
    told = [alone.delta, metabio.base.delta, ada.base.delta, ada.after.delta]
    assert told == pytest.approx([2 * delta / 3, delta / 2, delta / 3, delta / 4])
    assert (ada.rule, ada.at_switch) == ("theory", "fresh")
    assert NAMED["DAda-Exp3, anytime"].learner.tuning == "anytime"
    assert NAMED[HINDSIGHT].learner(delta).delta == pytest.approx(2 * delta / 3)
    certified = [one.name for one in GUARANTEES if one.certified]
    assert certified == ["DAda-Exp3", "DAda-Exp3, anytime", HINDSIGHT]
    assert EXPECTATIONS[2].learner.at_switch == "fresh"


@pytest.mark.parametrize(
    ("name", "tuning"), [("DAda-Exp3", "corrected"), ("DAda-Exp3, anytime", "anytime")]
)
def test_a_certified_bound_is_of_the_pseudo_regret_with_the_largest_delay(
    name: str, tuning: str
) -> None:
    """One long delay among short ones: few losses are ever outstanding."""
    given: Any = {"horizon": 60, "num_actions": 8, "delays": [0, 30] + [0] * 58, "delta": 0.1}
    found = NAMED[name].bound(num_states=4, **given)
    assert found.terms["lower_order"] == pytest.approx((30 + 2) / 2 * np.log(3 / 0.1))
    like = theory.dada_bound(tuning=tuning, regret="pseudo", split=False, **given).terms
    assert {**found.terms, "lower_order": 0} == {**like, "lower_order": 0}


def test_a_mean_has_the_bound_of_its_learner() -> None:
    for one, learner in zip(EXPECTATIONS, ("tsallis-inf", "metabio", "metaadabio"), strict=True):
        expected = theory.expected_bound(horizon=60, learner=learner, **GAME)
        assert one.bound(horizon=60, **GAME) == expected


def test_the_mean_is_tested_too(data: xr.Dataset) -> None:
    cell = data.sel(expectation="MetaBIO, Tsallis-INF", horizon=60)
    expected = theory.expected_bound(horizon=60, learner="metabio", **GAME)
    assert float(cell.expected_bound) == expected.total
    learner = jb.make_learner("metabio-tsallis")
    played = jb.simulate(ENV, learner, horizon=60, runs=RUNS, rounds=1, progress=False)
    assert float(cell.regret_mean) == pytest.approx(played.final_regret.mean())
    assert 0 < float(cell.mean_low) < float(cell.regret_mean) < float(cell.mean_high)
    assert (data.expected_verdict == TRIVIAL).all()


def test_a_broken_mean_is_reported() -> None:
    """1 to 1,000 at one horizon; the interval of the mean reaches 18 to either side."""
    dims = ("learner", "horizon", "run")
    played = xr.Dataset(
        {"final_regret": (dims, np.arange(1.0, 1_001.0).reshape(1, 1, -1))},
        {"learner": ["claim"], "horizon": [5_000]},
    )

    def claim(total: float) -> str:
        bound = theory.Bound("claimed", (("all", total),), "never")
        made = guarantees._averaged(
            [Expectation("claim", None, lambda **_: bound)], played, {5_000: {}}, ENV
        )
        return str(made.expected_verdict.item())

    assert claim(470.0) == NO
    assert claim(500.0) == UNDECIDED
    assert claim(530.0) == YES
    assert claim(0.32 * 5_000) == TRIVIAL


def test_every_lemma_is_checked_and_holds(data: xr.Dataset) -> None:
    assert data.sizes["lemma"] == 6  # the one about DAda-Exp3 has no runs here
    certain = data.drop_sel(lemma="estimates within their radius")
    assert (certain.lemma_verdict == YES).all()
    assert int(data.failures.sum()) == 0
    close = data.tightness.sel(lemma=["perceived delay <= D_Phi", "sum of errors"])
    assert ((close > 0.05) & (close <= 1)).all()


def test_lemmas_by_hand() -> None:
    """Losses of the four rounds arrive in rounds 1, 4, 4 and 5."""
    terms = {"horizon": 4, "num_actions": 2, "num_states": 2, "delta": 0.5}
    terms["delays"] = np.array([0, 2, 1, 1])
    assert lemmas.outstanding_at_the_end(terms) == 1
    assert lemmas.most_errors(terms) == pytest.approx((4 + 8**0.5) * (8 * np.log(64)) ** 0.5)
    switch = theory.switch_round(delays=terms["delays"], num_actions=2, num_states=2, delta=0.5)
    runs = {"rounds_fed": [3, 4, 5], "total_delay": [3, 2, 4]}
    runs["switch_round"] = [switch, switch - 1, switch + 1]
    facts = xr.Dataset({name: ("run", values) for name, values in runs.items()})
    assert lemmas.not_fed(facts, terms).tolist() == [1, 0, np.inf]
    assert lemmas.delay_miscounted(facts, terms).tolist() == [0, 1, 1]
    assert lemmas.switch_missed(facts, terms).tolist() == [0, 1, 1]


def test_a_lemma_may_fail_as_often_as_it_says() -> None:
    """Estimates may leave their radius in a share delta / 2 of the runs: 150 of 1,000 are more."""
    (lemma,) = (one for one in lemmas.LEMMAS if one.name == "estimates within their radius")

    def made(failures: int) -> Check:
        worst = np.where(np.arange(1_000) < failures, 1.5, 1.0)
        return checked(lemma, xr.Dataset({"worst_error": ("run", worst)}), {"delta": 0.2})

    assert made(150) == Check(150, 1.5, NO)
    assert made(100).lemma_verdict == UNDECIDED
    assert made(50).lemma_verdict == YES


def test_what_is_watched_is_what_was_fed() -> None:
    """Worst error and sum of errors, made here from the rounds of a run."""
    env = jb.make_environment("paper-utility", delays=jb.UniformDelay(0, 20))
    theta, horizon = np.array([0.2, 1, 1, 1]), 120
    learner = Watched(jb.make_learner("metabio", delta=0.1, radius_scale=0.5), theta)
    info = jb.simulate(env, learner, horizon=horizon, runs=1, seed=3, progress=False).info
    played = jb.trajectory(env, learner, 3, horizon)
    due = np.arange(1, horizon + 1) + np.asarray(played.delay)
    states, wait = np.asarray(played.state), np.asarray(played.ticket.wait)
    fed = np.where(wait, due, np.arange(1, horizon + 1))
    worst, errors = 0.0, 0.0
    for t in range(horizon):
        if fed[t] > horizon:
            continue
        mine = (states == states[t]) & (due <= fed[t])
        losses = np.asarray(played.loss)[mine]
        radius = 0.5 * np.sqrt(np.log(4 * 4 * horizon / 0.1) / (2 * len(losses)))
        worst = max(worst, abs(losses.mean() - theta[states[t]]) / radius)
        errors += 2 * radius
    assert info["worst_error"][0] == pytest.approx(worst, rel=1e-4)
    assert info["sum_of_errors"][0] == pytest.approx(errors, rel=1e-4)


def test_a_broken_learner_is_reported() -> None:
    """Radii that are far too small: the estimates leave them, and nothing else fails."""
    broken = dataclasses.replace(
        NAMED["MetaBIO"],
        learner=lambda delta: jb.make_learner("metabio", delta=delta, radius_scale=0.1),
    )
    found = small(guarantees=[broken], expectations=())
    verdicts = found.lemma_verdict.sel(horizon=120, delta=0.1).to_series()
    assert verdicts["estimates within their radius"] == NO
    assert (verdicts.drop("estimates within their radius") == YES).all()
    assert "expectation" not in found.dims


def test_a_broken_bound_is_reported() -> None:
    regret = np.arange(1000.0)
    terms = {"delta": 0.1}

    def claim(total: float) -> str:
        bound = theory.Bound("claimed", (("all", total),), "never")
        claimed = Guarantee("claim", None, lambda delta: bound, True)
        return compared(claimed, regret, terms, 1_000.0).verdict

    assert claim(800.0) == NO  # 199 of 1,000 runs are above, 100 may be
    assert claim(895.0) == UNDECIDED
    assert claim(950.0) == YES
    assert claim(1_000.0) == TRIVIAL


def test_a_regret_as_large_as_the_bound_does_not_exceed_it() -> None:
    bound = theory.Bound("claimed", (("all", 3.0),), "never")
    claimed = Guarantee("claim", None, lambda delta: bound, True)
    assert compared(claimed, np.array([1.0, 3.0, 3.0, 4.0]), {"delta": 0.1}, 9.0).exceeded == 1


def test_intervals() -> None:
    beta = scipy.stats.beta
    assert of_share(3, 100) == pytest.approx((beta.ppf(0.025, 3, 98), beta.ppf(0.975, 4, 97)))
    assert of_share(0, 50)[0] == 0
    value, low, high = of_quantile(np.arange(1, 1001.0), 0.9)
    assert value == 900
    assert low < 890 < 910 < high
    below = scipy.stats.binom(1000, 0.9).cdf  # of how many values lie below the quantile
    assert 0.95 <= below(high - 1) - below(low - 1) < 0.96
    mean, low, high = of_mean(np.arange(5.0))  # sd 1.581, t 2.776 with four degrees of freedom
    assert (mean, low, high) == pytest.approx((2, 2 - 1.963, 2 + 1.963), abs=1e-3)
    assert judged(0.0, 0.01, 0) == YES  # never seen, never allowed
    assert judged(1e-5, 0.01, 0) == NO


def test_random_delays_are_written_down_once() -> None:
    """Those of run 0 of the seed, for every run."""
    drawn = jb.make_environment("paper-utility", delays=jb.LaplaceDelay(50, 25))
    env = written_down(drawn, 3, 70)
    assert isinstance(env.delays, jb.TableDelay)
    own, other = jb.sample_world(drawn, 3, 0, 70), jb.sample_world(env, 3, 5, 70)
    assert other["delays"].tolist() == env.delays.delays.tolist() == own["delays"].tolist()
    assert written_down(ENV, 0, 70) is ENV


def test_adversarial_losses_are_refused() -> None:
    with pytest.raises(ValueError, match="stochastic losses, but the environment has TableLosses"):
        check_guarantees(jb.make_environment("hard-adversarial"))


@pytest.mark.parametrize(("name", "words"), [("horizons", "horizons"), ("deltas", "deltas")])
def test_something_must_be_asked(name: str, words: str) -> None:
    given: dict[str, Any] = {name: []}
    with pytest.raises(ValueError, match=rf"{words} must have at least one value, but got \[\]"):
        check_guarantees(ENV, **given)


def test_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    few = partial(check_guarantees, guarantees=PLAYED, expectations=EXPECTATIONS[1:2])
    monkeypatch.setattr(command, "check_guarantees", few)
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    words = ["guarantees", "--delay", "9", "--horizons", "60", "120", "--deltas", "0.3", "0.1"]
    words += ["--runs", "40", "--quiet", "--json", "--folder", str(tmp_path)]
    assert cli.main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert [len(found[name]) for name in ("guarantees", "lemmas", "expectations")] == [8, 24, 2]
    name = "paper-utility-delay=9_60-120_0.3-0.1_40_0"
    assert (tmp_path / "store" / name / "probable" / "settings.json").exists()
    text = command.as_text(found)
    row = next(row for row in found["guarantees"] if row["guarantee"] == "MetaBIO")
    assert f"{row['bound']:,.0f}" in text
    assert "sum of errors" in text
    assert {row["tightness"] is None for row in found["lemmas"]} == {True, False}  # no NaN
    saved = {path.name for path in tmp_path.iterdir()}
    assert {f"{name}.nc", f"{name}-bounds-light.png", f"{name}-bounds-dark.pdf"} <= saved
    assert {Path(file).name for file in found["files"]} <= saved
