"""Slopes on logarithmic axes: on data whose slope is known, and on a few games."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import jaxbio as jb
from jaxbio import cli
from jaxbio.commands import rates as command
from jaxbio.lab import rates
from jaxbio.lab.intervals import of_mean
from jaxbio.lab.rates import fitted, measure_rates, slope
from jaxbio.lab.series import PROBLEMS, UNIFORM, Series, default_series

X = np.array([10.0, 20.0, 40.0, 80.0])
SERIES = [
    Series("horizon", PROBLEMS["hard-states"], (60, 120),
           {"states": 8, "delay": 7, "actions": 2}, ("MetaBIO", UNIFORM)),
    Series("delay", PROBLEMS["hard-adversarial"], (3, 7),
           {"horizon": 120, "states": 2, "actions": 2}, ("DAda-Exp3",)),
]  # fmt: skip


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return measure_rates(series=SERIES, runs=40, progress=False)


def noisy(units: int, exponent: float, seed: int) -> np.ndarray:
    """[points, units]: values whose mean grows like X to the exponent."""
    noise = np.random.default_rng(seed).gamma(4, 1 / 4, (len(X), units))
    return 3 * X[:, None] ** exponent * noise


def test_a_known_slope_is_found() -> None:
    exact = np.tile(3 * X[:, None] ** 0.7, 20)
    fit = fitted(X, exact, 0)
    assert [fit.slope, fit.low, fit.high, fit.first, fit.last] == pytest.approx([0.7] * 5)
    bent = fitted(X, np.tile(np.array([[1.0], [1], [2], [8]]), 20), 0)
    assert bent.first == pytest.approx(0)
    assert bent.last == pytest.approx(2)
    assert bent.slope == pytest.approx(np.polyfit(np.log(X), np.log([1, 1, 2, 8]), 1)[0])
    assert np.isnan(slope(X, np.array([1.0, 2.0, -1.0, 3.0])))


def test_intervals_contain_the_slope_as_often_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "RESAMPLES", 300)
    fits = [fitted(X, noisy(60, 0.5, seed), seed) for seed in range(120)]
    inside = np.mean([fit.low <= 0.5 <= fit.high for fit in fits])
    assert 0.87 <= inside <= 0.99
    assert np.mean([fit.slope for fit in fits]) == pytest.approx(0.5, abs=0.02)
    mean, low, high = of_mean(noisy(60, 0.5, 0))
    assert (low < mean).all()
    assert (mean < high).all()


def test_runs_are_resampled_together() -> None:
    """A run's luck that is the same at every point moves the line and does not turn it."""
    luck = np.random.default_rng(0).gamma(1, 1, (1, 60))
    fit = fitted(X, X[:, None] ** 0.5 * luck, 0)
    assert fit.high - fit.low < 1e-9


def test_the_means_are_those_of_the_games(data: xr.Dataset) -> None:
    """A table that serves all horizons changes no game; instances are averaged over seeds."""
    env = jb.make_environment("hard-states", horizon=60, states=8, delay=7)
    learner = jb.make_learner("metabio")
    alone = jb.simulate(env, learner, horizon=60, runs=40, progress=False).final_regret
    assert float(data.regret_mean[0, 0]) == pytest.approx(alone.mean())
    seeds = [
        jb.simulate(
            jb.make_environment("hard-adversarial", horizon=120, delay=7, seed=seed),
            jb.make_learner("dada-exp3"),
            horizon=120,
            runs=8,
            progress=False,
        ).final_regret.mean()
        for seed in range(5)
    ]
    assert float(data.regret_mean[2, 1]) == pytest.approx(np.mean(seeds))


def test_the_rates_are_those_of_the_table(data: xr.Dataset) -> None:
    assert data.rate[0].values == pytest.approx(np.sqrt([(2 + 7) * 60, (2 + 7) * 120]))
    assert data.rate_slope.values[:2] == pytest.approx(0.5)
    assert float(data.rate_slope[2]) == pytest.approx(np.log(9 / 5) / 2 / np.log(7 / 3))
    uniform = data.regret_mean[1].values  # half the gap in every round, the gap as in the proof
    gap = 0.25 * np.sqrt(4 / (2 * np.array([60, 120]) * np.log(4 / 3)))
    assert uniform == pytest.approx(gap * np.array([60, 120]) / 2, rel=0.15)


def test_the_default_series_can_be_built() -> None:
    values = {"horizons": [64, 128], "states": [4, 8], "delays": [2, 4], "actions": [2, 3]}
    made = default_series(**values, horizon=128)
    assert {one.axis for one in made} == {"horizon", "states", "delay", "actions"}
    for one in made:
        for value in one.values:
            env = one.environment(**{one.axis: value})
            assert env.num_actions == one.point(value)["actions"]
            assert env.num_states == one.point(value)["states"]
        assert (np.diff(one.rates()) >= 0).all()


def test_one_value_has_no_slope() -> None:
    with pytest.raises(ValueError, match="horizons must have at least two values"):
        measure_rates(horizons=[100])


def test_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(rates, "default_series", lambda **_: SERIES)
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    words = ["rates", "--runs", "40", "--quiet", "--folder", str(tmp_path)]
    words += ["--store", str(tmp_path / "store"), "--json"]
    assert cli.main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["learner"] for row in found] == ["MetaBIO", UNIFORM, "DAda-Exp3"]
    assert (tmp_path / "store" / "0-horizon-hard-states" / "settings.json").exists()
    assert f"{found[0]['slope']:.3f}" in command.as_text(found, tmp_path)
    saved = {path.name for path in tmp_path.iterdir()}
    assert {"rates.nc", "rates-slopes-light.png", "rates-slopes-dark.pdf"} <= saved
