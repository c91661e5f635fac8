"""Slopes on logarithmic axes: on data whose slope is known, and on a few games."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr
from scipy import stats

import jaxbio as jb
from jaxbio import rng
from jaxbio.analysis.intervals import of_mean
from jaxbio.cli import main as cli
from jaxbio.studies.adversaries import coins
from jaxbio.studies.contestants import UNIFORM
from jaxbio.studies.rates import command
from jaxbio.studies.rates import study as rates
from jaxbio.studies.rates.series import PROBLEMS, VALUES, Series, default_series
from jaxbio.studies.rates.study import Fit, fitted, measure_rates, slope

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
    fit = fitted(X, exact)
    assert [fit.slope, fit.low, fit.high, fit.first, fit.last] == pytest.approx([0.7] * 5)
    bent = fitted(X, np.tile(np.array([[1.0], [1], [2], [8]]), 20))
    assert bent.first == pytest.approx(0)
    assert bent.last == pytest.approx(2)
    assert bent.slope == pytest.approx(np.polyfit(np.log(X), np.log([1, 1, 2, 8]), 1)[0])
    assert np.isnan(slope(X, np.array([1.0, 2.0, -1.0, 3.0])))
    uneven = fitted(np.array([10.0, 20.0, 80.0]), np.tile(np.array([[1.0], [2], [32]]), 20))
    assert (uneven.first, uneven.last) == pytest.approx((1, 2))


@pytest.mark.parametrize("units", [8, 60])
def test_intervals_contain_the_slope_as_often_as_they_say(units: int) -> None:
    """1,000 intervals of 95 %: fewer than 922 that contain the slope, or more than 976, have a
    probability of 1e-4. (A bootstrap of 8 runs has 893.)
    """
    assert stats.binom.cdf(921, 1_000, 0.95) + stats.binom.sf(976, 1_000, 0.95) < 1e-4
    fits = [fitted(X, noisy(units, 0.5, seed)) for seed in range(1_000)]
    inside = sum(fit.low <= 0.5 <= fit.high for fit in fits)
    assert 922 <= inside <= 976
    assert np.mean([fit.slope for fit in fits]) == pytest.approx(0.5, abs=0.02)
    mean, low, high = of_mean(noisy(60, 0.5, 0))
    assert (low < mean).all()
    assert (mean < high).all()


def test_a_run_counts_at_all_points_together() -> None:
    """A run's luck that is the same at every point moves the line and does not turn it."""
    luck = np.random.default_rng(0).gamma(1, 1, (1, 60))
    fit = fitted(X, X[:, None] ** 0.5 * luck)
    assert fit.high - fit.low < 1e-9


def test_the_means_are_those_of_the_games(data: xr.Dataset) -> None:
    """A table that serves all horizons changes no game; instances are averaged over seeds."""
    env = jb.make_environment("hard-states", horizon=60, states=8, delay=7)
    learner = jb.make_learner("metabio")
    alone = jb.simulate(env, learner, horizon=60, runs=40, progress=False).final_regret
    assert float(data.regret_mean[0, 0]) == pytest.approx(alone.mean())
    keys = [rng.stream_key(0, instance) for instance in range(5)]
    instances = [
        jb.simulate(
            jb.make_environment("hard-adversarial", horizon=120, delay=7, seed=coins(key)),
            jb.make_learner("dada-exp3"),
            horizon=120,
            runs=8,
            seed=key,
            progress=False,
        ).final_regret.mean()
        for key in keys
    ]
    assert float(data.regret_mean[2, 1]) == pytest.approx(np.mean(instances))


def test_instances_share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were runs the same in all instances, those of one problem would have one and the same
    regret; and another root seed is another adversary.
    """
    units, given = [], []
    line = rates._line
    monkeypatch.setattr(rates, "_line", lambda *a: (units.append(a[2]), line(*a))[1])

    def build(seed: int, horizon: int, **_: int) -> jb.Environment:
        given.append(seed)
        return jb.make_environment("hard-states", horizon=horizon, states=4, delay=3)

    problem = dataclasses.replace(PROBLEMS["hard-states"], build=build, seeded=True)
    series = [Series("horizon", problem, (30, 60), {"states": 4, "delay": 3, "actions": 2},
                     (UNIFORM,))]  # fmt: skip
    for seed in (0, 1):
        measure_rates(series=series, runs=40, seed=seed, progress=False)
    drawn = np.concatenate([one[1] for one in units])  # of ten instances
    assert len(set(drawn.tolist())) == 10
    assert len(set(given) - {0}) == 10  # 0: built to see whether it can be, not played


def test_a_line_has_its_numbers_in_their_places() -> None:
    ends = {"low": np.array([1.0, 3.0]), "high": np.array([5.0, 7.0])}
    line = rates.Line(SERIES[0], "MetaBIO", np.array([2.0, 4.0]), **ends, fit=Fit(1, 2, 3, 4, 5))
    found = rates._labelled([line]).isel(line=0)
    names = ("slope", "slope_low", "slope_high", "slope_first", "slope_last")
    assert [float(found[name]) for name in names] == [1, 2, 3, 4, 5]
    rows = {"value": [60, 120], "mean_low": [1, 3], "regret_mean": [2, 4], "mean_high": [5, 7]}
    assert {name: found[name].values.tolist() for name in rows} == rows
    assert bool(found.hard)


def test_learners_are_told_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []

    def stop(*_: Any, learners: dict[str, Any], **__: Any) -> None:
        told.append(learners["MetaBIO"].delta)
        raise KeyboardInterrupt

    monkeypatch.setattr(rates, "sweep", stop)
    with pytest.raises(KeyboardInterrupt):
        measure_rates(series=SERIES[:1], delta=0.03, progress=False)
    assert told == [pytest.approx(0.03)]


def test_the_rates_are_those_of_the_instances(data: xr.Dataset) -> None:
    assert data.rate[0].values == pytest.approx(np.sqrt([4 * 60, 4 * 120]))
    assert data.rate_slope.values[:2] == pytest.approx(0.5)
    assert float(data.rate_slope[2]) == pytest.approx(np.log(8 / 4) / 2 / np.log(7 / 3))
    uniform = data.regret_mean[1].values  # half the gap in every round, the gap as in the proof
    gap = 0.25 * np.sqrt(4 / (2 * np.array([60, 120]) * np.log(4 / 3)))
    assert uniform == pytest.approx(gap * np.array([60, 120]) / 2, rel=0.15)


def test_the_rate_of_hard_states_is_that_of_its_gap() -> None:
    """Uniform play costs half the gap in every round, which is to be of the order of the rate."""
    series = [one for one in default_series(**VALUES, horizon=8_000)
              if one.problem.name == "hard-states"]  # fmt: skip
    assert [one.axis for one in series] == ["horizon", "states", "delay"]
    for one in series:
        gaps = [np.ptp(np.asarray(one.environment(**{one.axis: value}).losses.theta))
                for value in one.values]  # fmt: skip
        costs = np.array(gaps) * [one.point(value)["horizon"] for value in one.values]
        assert costs / one.rates() == pytest.approx(0.25 / np.sqrt(2 * np.log(4 / 3)), rel=1e-5)


def test_the_default_series_cross_the_number_of_states() -> None:
    """min(S, d): the rate rises with d up to S / 2, and is flat from there on."""
    (one,) = [one for one in default_series(**VALUES, horizon=8_000)
              if (one.axis, one.problem.name) == ("delay", "hard-states")]  # fmt: skip
    below = np.array(one.values) <= one.fixed["states"] / 2
    assert below.sum() >= 3
    assert max(one.values) > one.fixed["states"]
    rates = one.rates()
    assert slope(np.array(one.values)[below], rates[below]) == pytest.approx(0.5)
    assert (rates[~below] == rates[below][-1]).all()
    assert (~below).sum() >= 2


def test_metaadabio_plays_where_it_can_switch_and_losses_have_means() -> None:
    for one in default_series(**VALUES, horizon=8_000):
        never = one.problem.name in ("hard-adversarial", "hard-actions")
        assert ("MetaAdaBIO" in one.learners) != never


def test_a_problem_that_is_not_hard_has_the_rate_of_the_table() -> None:
    one = Series("states", PROBLEMS["paper-utility"], (4, 8, 16),
                 {"horizon": 100, "delay": 10, "actions": 8}, ("MetaBIO",))  # fmt: skip
    assert one.rates() == pytest.approx(10 * np.sqrt([12, 16, 18]))


def test_the_rates_by_hand() -> None:
    """T = 100, S = 9, d = 3, K = 4: K T = 400, min(S // 2, d) T = 300, (d + 1) sqrt(S) = 12."""
    numbers = {"horizon": 100, "states": 9, "delay": 3, "actions": 4}
    assert {name: one.rate(**numbers) for name, one in PROBLEMS.items()} == pytest.approx(
        {
            "hard-actions": 20,
            "hard-states": np.sqrt(300),
            "hard-delay": 12,
            "hard-adversarial": 20,
            "paper-utility": np.sqrt(700),
        }
    )


def test_an_adversary_has_coins_of_its_own() -> None:
    numbers = {"horizon": 100, "states": 16, "delay": 3, "actions": 2}
    for one in PROBLEMS.values():
        numbers_of = [jax.tree.leaves(one.build(**numbers, seed=seed)) for seed in (0, 1)]
        same = all(np.array_equal(*both) for both in zip(*numbers_of, strict=True))
        assert same != one.seeded, one.name


def test_more_states_than_rounds_of_delay_are_never_asked_for() -> None:
    """Else the rate along the states, sqrt(min(S // 2, d) T), would not rise."""
    values = {"horizons": [64, 128], "delays": [2, 4], "actions": [2, 3]}
    made = default_series(states=[64, 256], horizon=128, **values)
    (hard,) = (one for one in made if (one.axis, one.problem.name) == ("states", "hard-states"))
    assert hard.rates() == pytest.approx(np.sqrt([32 * 128, 128 * 128]))


def test_the_default_series_can_be_built() -> None:
    values = {"horizons": [64, 128], "states": [4, 8], "delays": [2, 4], "actions": [2, 3]}
    made = default_series(**values, horizon=128)
    assert {one.axis for one in made} == {"horizon", "states", "delay", "actions"}
    assert {one.fixed.get("horizon", 128) for one in made} == {128}
    easy = [one for one in made if one.problem.name == "paper-utility"]
    assert easy == [one for one in made if not one.problem.hard]
    assert easy == [one for one in made if UNIFORM not in one.learners]
    for one in made:
        for value in one.values:
            env = one.environment(**{one.axis: value})
            assert env.num_actions == one.point(value)["actions"]
            assert env.num_states == one.point(value)["states"]
            assert env.delays.longest() == one.point(value)["delay"]
        assert (np.diff(one.rates()) >= 0).all()


def test_one_value_has_no_slope() -> None:
    with pytest.raises(ValueError, match="horizons must have at least two values"):
        measure_rates(horizons=[100])


@pytest.mark.parametrize("series", [[], ["hard-states"]])
def test_series_are_needed(series: Any) -> None:
    with pytest.raises(ValueError, match="series must hold one Series or more, but got"):
        measure_rates(series=series)


def test_what_is_refused_is_refused_before_anything_is_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("sweep", "play_instances"):
        monkeypatch.setattr(rates, name, lambda *_, **__: pytest.fail("something was played"))
    with pytest.raises(ValueError, match=r"delay must be in \[0, 7999\], but got 20000"):
        measure_rates(delays=[8, 20_000], progress=False)
    foo = dataclasses.replace(SERIES[0], learners=("foo",))
    with pytest.raises(ValueError, match=r"a learner of a series must be one of .* but got 'foo'"):
        measure_rates(series=[SERIES[0], foo], progress=False)


def test_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(rates, "default_series", lambda **_: SERIES)
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    words = ["rates", "--runs", "40", "--quiet", "--folder", str(tmp_path), "--json"]
    assert cli.main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["learner"] for row in found["lines"]] == ["MetaBIO", UNIFORM, "DAda-Exp3"]
    (store,) = (tmp_path / "store").iterdir()
    assert (store / "0-horizon-hard-states" / "settings.json").exists()
    assert (store / "1-delay-hard-adversarial" / "instance-4" / "settings.json").exists()
    assert f"{found['lines'][0]['slope']:.3f}" in command.as_text(found)
    assert {Path(file).suffix for file in found["files"]} == {".nc", ".png", ".pdf"}
    assert all(Path(file).exists() for file in found["files"])
