"""Bounds against runs: the numbers of the study, and whether it notices what is broken."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import jaxbio as jb
from jaxbio import cli, theory
from jaxbio.commands import guarantees as command
from jaxbio.lab.guarantees import TRIVIAL, check_guarantees, compared, written_down
from jaxbio.lab.intervals import HOLDS, UNDECIDED, VIOLATED, judged, of_quantile, of_share
from jaxbio.lab.theorems import EXPECTATIONS, GUARANTEES, Guarantee
from jaxbio.lab.watched import Watched

ENV = jb.make_environment("paper-utility", delays=jb.FixedDelay(9))
NAMED = {one.name: one for one in GUARANTEES}
PLAYED = (NAMED["MetaBIO"], NAMED["MetaAdaBIO"])
HORIZONS, DELTAS, RUNS = (60, 120), (0.3, 0.1), 40
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


def test_the_mean_is_tested_too(data: xr.Dataset) -> None:
    cell = data.sel(expectation="MetaBIO, Tsallis-INF", horizon=60)
    expected = theory.expected_bound(
        horizon=60, num_actions=8, num_states=4, delays=9, learner="metabio"
    )
    assert float(cell.expected_bound) == expected.total
    assert 0 < float(cell.mean_low) < float(cell.regret_mean) < float(cell.mean_high)
    assert (data.expected_verdict == TRIVIAL).all()


def test_every_lemma_is_checked_and_holds(data: xr.Dataset) -> None:
    assert data.sizes["lemma"] == 6  # the one about DAda-Exp3 has no runs here
    certain = data.drop_sel(lemma="estimates within their radius")
    assert (certain.lemma_verdict == HOLDS).all()
    assert int(data.failures.sum()) == 0
    close = data.tightness.sel(lemma=["perceived delay <= D_Phi", "sum of errors"])
    assert ((close > 0.05) & (close <= 1)).all()


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
    assert verdicts["estimates within their radius"] == VIOLATED
    assert (verdicts.drop("estimates within their radius") == HOLDS).all()
    assert "expectation" not in found.dims


def test_a_broken_bound_is_reported() -> None:
    regret = np.arange(1000.0)
    terms = {"delta": 0.1}

    def claim(total: float) -> str:
        bound = theory.Bound("claimed", (("all", total),), "never")
        claimed = Guarantee("claim", None, lambda delta: bound, True)
        return compared(claimed, regret, terms, 1_000.0).verdict

    assert claim(800.0) == VIOLATED  # 199 of 1,000 runs are above, 100 may be
    assert claim(895.0) == UNDECIDED
    assert claim(950.0) == HOLDS
    assert claim(1_000.0) == TRIVIAL


def test_intervals() -> None:
    beta = scipy.stats.beta
    assert of_share(3, 100) == pytest.approx((beta.ppf(0.025, 3, 98), beta.ppf(0.975, 4, 97)))
    assert of_share(0, 50)[0] == 0
    value, low, high = of_quantile(np.arange(1, 1001.0), 0.9)
    assert value == 900
    assert low < 890 < 910 < high
    assert judged(0.0, 0.01, 0) == HOLDS  # never seen, never allowed
    assert judged(1e-5, 0.01, 0) == VIOLATED


def test_random_delays_are_written_down_once() -> None:
    env = written_down(jb.make_environment("paper-utility", delays=jb.LaplaceDelay(50, 25)), 0, 70)
    assert isinstance(env.delays, jb.TableDelay)
    world = jb.sample_world(env, 0, 5, 70)
    assert world["delays"].tolist() == env.delays.delays.tolist()
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
