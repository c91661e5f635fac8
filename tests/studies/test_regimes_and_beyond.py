"""The studies of the four regimes, and of what lies beyond the assumptions."""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy import stats

import jaxbio as jb
from jaxbio import rng
from jaxbio.figures.style import Look
from jaxbio.studies import adversaries
from jaxbio.studies.adversaries import coins
from jaxbio.studies.beyond import study as beyond
from jaxbio.studies.beyond.study import (
    CHANGES,
    MEMORIES,
    at_best,
    changing,
    dynamic_gap,
    phase_length,
    play_beyond,
    play_changes,
    play_unknowns,
    remembered,
    uniform_regret,
    with_spare_states,
)
from jaxbio.studies.contestants import UNIFORM, robust
from jaxbio.studies.regimes import study as regimes
from jaxbio.studies.regimes.figure import regimes as draw_regimes
from jaxbio.studies.regimes.study import (
    DIFFERENCES,
    REGIMES,
    alternating,
    four_regimes,
    play_delays,
    play_regimes,
    swapping_states,
    turning_losses,
)


def made_up_sweeps(monkeypatch: pytest.MonkeyPatch, *modules: Any) -> list[dict[str, Any]]:
    """What is asked of `sweep` from here on; nothing is played, and all regret is 0."""
    asked: list[dict[str, Any]] = []

    def sweep(environment: Any, learners: Any, axes: Any, *, runs: int, **options: Any) -> Any:
        names = {"environment": environment, "learners": learners, "axes": axes, "runs": runs}
        asked.append(names | options)
        regret = np.zeros((len(learners), *map(len, axes.values()), runs))
        dims = ("learner", *axes, "run")
        coords = {name: list(values) for name, values in axes.items()}
        return xr.Dataset({"final_regret": (dims, regret)}, {"learner": list(learners)} | coords)

    for module in modules:
        monkeypatch.setattr(module, "sweep", sweep)
    return asked


# --- the four regimes


def test_each_regime_is_what_its_name_says() -> None:
    made = four_regimes(100, 9)
    kinds = [(type(env.mapping), type(env.losses)) for env in made.values()]
    assert kinds == [
        (jb.StochasticMapping, jb.BernoulliLosses),
        (jb.AlternatingMapping, jb.BernoulliLosses),
        (jb.StochasticMapping, jb.TableLosses),
        (jb.TableMapping, jb.TableLosses),
    ]
    assert {env.delays.longest() for env in made.values()} == {9}


def test_losses_are_drawn_for_the_regime_the_delay_and_the_coins() -> None:
    drawn = [regimes._drawn_losses(90, 5, name, 4) for name in regimes.REGIMES[2:]]
    assert [type(env.mapping) for env in drawn] == [jb.StochasticMapping, jb.TableMapping]
    assert [env.delays.longest() for env in drawn] == [4, 4]
    plain: Any = jb.make_environment("hard-adversarial", horizon=90, delay=4, seed=5)
    values: Any = drawn[0].losses
    np.testing.assert_array_equal(values.values, plain.losses.values)


def test_regimes_are_played_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over delays an adversary draws the losses anew for every run."""
    asked = made_up_sweeps(monkeypatch, regimes, adversaries)
    play_regimes(horizon=90, delay=7, seed=3, progress=False)
    (curves,) = asked
    assert {curves["environment"](name).delays.longest() for name in regimes.REGIMES} == {7}
    assert curves["seed"] == 3
    del asked[:]
    play_delays([2], horizon=90, runs=40, seed=4, progress=False)
    stochastic, *instances = asked
    assert (stochastic["runs"], stochastic["seed"]) == (40, 4)
    assert [one["runs"] for one in instances] == [1] * 40
    assert list(stochastic["learners"]) == ["DAda-Exp3", "MetaBIO", "MetaAdaBIO", UNIFORM]


def test_states_tell_nothing_in_the_adversarial_regimes() -> None:
    turning, swapping = (make(1000, 10) for make in (turning_losses, swapping_states))
    cost = turning.mapping.P @ np.asarray(turning.losses.values).T  # [K, T]
    assert cost.sum(1).argmin() == 1
    assert cost[:, :400].sum(1).argmin() == 0
    world = jb.sample_world(swapping, 0, 0, 1000)
    paid = np.take_along_axis(world["losses"], world["states"], axis=1)
    np.testing.assert_allclose(
        paid, np.where(np.arange(1000)[:, None] < 400, [0.25, 0.75], [0.75, 0.25])
    )
    np.testing.assert_allclose(world["losses"].mean(0), 0.5)


@pytest.mark.slow
def test_both_wrappers_gain_from_states_until_losses_are_adversarial() -> None:
    """There they fail: their regret rises in a straight line to the end, while that of the base
    bends. Far apart: the tolerances are many standard errors wide.
    """
    data = play_regimes(
        horizon=4000, delay=50, runs=16, rounds=5, learners=robust(), progress=False
    )
    assert data.regime.values.tolist() == list(four_regimes(4000, 50))
    regret = data.regret.mean("run").transpose("regime", "learner", "round")
    final = regret.isel(round=-1)
    alone = final.sel(learner="DAda-Exp3")
    rise = regret.diff("round").isel(round=[-2, -1])  # in rounds 2,401 to 3,200, and to 4,000
    for name in ("MetaBIO", "MetaAdaBIO"):
        wrapped = final.sel(learner=name)
        assert (wrapped[:2] < alone[:2] - 5).all()
        assert (wrapped[2:] > alone[2:] + 0.02 * 4000).all()
        before, after = rise.sel(learner=name)[2:].values.T
        assert (after > 0.8 * before).all()
        assert (after > 0.15 * 800).all()
    before, after = rise.sel(learner="DAda-Exp3")[2:].values.T
    assert (after < 0.75 * before).all()
    titles = [axes.get_title(loc="left") for axes in draw_regimes(data, Look()).axes]
    assert titles == data.regime.values.tolist()


def test_states_that_change_places_leave_actions_what_they_cost() -> None:
    env = jb.make_environment("hard-adversarial", horizon=90, delay=4, seed=5)
    plain, swapped = (jb.sample_world(one, 0, 0, 90) for one in (env, alternating(env)))
    paid = [np.take_along_axis(one["losses"], one["states"], axis=1) for one in (plain, swapped)]
    np.testing.assert_array_equal(paid[0], paid[1])
    np.testing.assert_array_equal(swapped["states"][:4], [[1, 0], [0, 1], [1, 0], [0, 1]])


def test_regret_over_delays() -> None:
    """Means of the games, and the rates of the paper's table."""
    learners = {"DAda-Exp3": jb.DAdaExp3()}
    data = play_delays([2, 20], horizon=200, runs=4, learners=learners, progress=False)
    assert data.regime.values.tolist() == list(four_regimes(200, 2))
    cell = data.sel(regime=data.regime[1], learner="DAda-Exp3", delay=20)
    env = four_regimes(200, 20)[str(data.regime.values[1])]
    alone = jb.simulate(env, learners["DAda-Exp3"], horizon=200, runs=4, progress=False)
    assert float(cell.regret_mean) == pytest.approx(alone.final_regret.mean())
    assert (data.mean_low < data.mean_high).all()
    means = data.regret_mean.values
    np.testing.assert_array_equal(means[2], means[3])  # who does not look at states sees no swap
    assert data.rate[0].values == pytest.approx(np.sqrt(200 * np.array([[6, 7], [6, 24]])))
    assert data.rate[3].values == pytest.approx(np.sqrt(200 * np.array([[4, 22], [4, 22]])))


def test_differences_are_of_the_same_runs() -> None:
    """To the first learner: in the same runs, and in the same draws of adversarial losses."""
    learners = {"UCB1": jb.UCB1(), "MetaBIO": jb.MetaBIO(jb.UCB1())}
    data = play_delays([20], horizon=200, runs=5, learners=learners, progress=False)
    assert data.attrs["reference"] == "UCB1"
    own = data.sel(learner="MetaBIO", delay=20)
    for regime in (REGIMES[0], REGIMES[2]):
        finals = [_finals(regime, one) for one in learners.values()]
        interval = stats.ttest_1samp(finals[1] - finals[0], 0).confidence_interval(0.95)
        found = [float(own[name].sel(regime=regime)) for name in DIFFERENCES[1:]]
        assert found == pytest.approx(list(interval), abs=1e-4)
    assert (data.difference.sel(learner="UCB1") == 0).all()
    np.testing.assert_allclose(
        data.difference, data.regret_mean - data.regret_mean.sel(learner="UCB1", drop=True)
    )


def _finals(regime: str, learner: Any) -> np.ndarray:
    """[5]: final regrets at d = 20, T = 200; adversarial losses are drawn anew for each run."""
    sizes = {"horizon": 200, "progress": False}
    if regime == REGIMES[0]:
        env = four_regimes(200, 20)[regime]
        return jb.simulate(env, learner, runs=5, **sizes).final_regret
    keys = [rng.stream_key(0, number) for number in range(5)]
    envs = [jb.make_environment("hard-adversarial", horizon=200, delay=20, seed=coins(key))
            for key in keys]  # fmt: skip
    played = [jb.simulate(env, learner, runs=1, seed=key, **sizes)
              for env, key in zip(envs, keys, strict=True)]  # fmt: skip
    return np.concatenate([one.final_regret for one in played])


def test_uniform_play_is_among_those_that_play_over_delays() -> None:
    """It costs what an action chosen at random does."""
    data = play_delays([5], horizon=2000, runs=2, progress=False)
    assert data.learner.values.tolist() == [*robust(), UNIFORM]
    env = four_regimes(2000, 5)[REGIMES[0]]
    costs = env.mapping.P @ np.asarray(env.losses.theta)
    found = data.regret_mean.sel(regime=REGIMES[0], learner=UNIFORM, delay=5)
    assert float(found) == pytest.approx(2000 * (costs.mean() - costs.min()), rel=0.15)


@pytest.mark.parametrize(
    ("study", "given", "message"),
    [
        (play_regimes, {"learners": [jb.UCB1()]}, "learners must map labels to learners, but got"),
        (play_delays, {"learners": {}}, "learners must map labels to learners, but got"),
        (play_delays, {"delays": []}, r"delays must have at least one value, but got \[\]"),
        (play_delays, {"runs": 1}, "runs must be at least 2, but got 1"),
        (play_regimes, {"horizon": 50, "delay": 50}, r"delay must be in \[0, 49\], but got 50"),
        (play_delays, {"horizon": 50, "delays": [50]}, r"delays must be in \[1, 49\], but got 50"),
    ],
)
def test_bad_regimes_are_refused(study: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        study(**given)


# --- beyond the assumptions


def test_the_best_action_changes_in_time() -> None:
    env = changing(3, 5, 90, 2)
    theta = np.asarray(env.losses.theta)
    costs = np.asarray(env.mapping.P_phases) @ theta  # [E, K]
    in_force = [int(env.mapping.environment(jnp.int32(t))) for t in range(1, 91)]
    assert in_force == [0] * 30 + [1] * 30 + [2] * 30
    assert costs.argmin(axis=1).tolist() == [0, 1, 2]
    least = sum(costs[e].min() for e in in_force)
    single = min(sum(costs[e][a] for e in in_force) for a in range(3))
    assert dynamic_gap(3, 90, 2) == pytest.approx(single - least)
    assert dynamic_gap(3, 90, 0) == pytest.approx(0)
    assert uniform_regret(3, 90) == pytest.approx(sum(costs[e].mean() for e in in_force) - least)


def test_nobody_is_told_when_the_mapping_changes() -> None:
    """No restart of the default study falls within forty rounds of a change."""
    for changes, memory in itertools.product(CHANGES[1:], MEMORIES):
        period = remembered(10_000, memory, changes)
        restarts = np.arange(period, 10_000, period)
        change = np.arange(1, changes + 1) * phase_length(10_000, changes)
        assert (np.abs(restarts[:, None] - change) > 40).all()


def test_the_number_of_changes_is_what_it_says() -> None:
    for changes in (0, 1, 7, 99, 151):
        phase = np.arange(10_000) // phase_length(10_000, changes)
        assert np.count_nonzero(np.diff(phase)) == changes
    for wanted, possible in ((150, 149), (3_000, 2_499)):
        with pytest.raises(ValueError, match=f"cannot have {wanted} changes so; .* {possible}"):
            play_changes([wanted])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"horizon": "x"}, "horizon must be an integer, but got 'x'"),
        ({"changes": 3}, "changes must be a list of numbers, but got 3"),
        ({"memories": []}, r"memories must be a list of numbers, but got \[\]"),
        ({"memories": [0]}, "memories must be greater than 0"),
    ],
)
def test_bad_changes_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        play_changes(**given)


def test_dynamic_regret_is_what_the_actions_cost_more_than_the_best_of_each_phase() -> None:
    """And a learner that forgets does so after as many rounds as it is told."""
    memories = [0.5, 0.8]
    data = play_changes(
        [3], memories=memories, actions=2, delay=5, horizon=200, runs=2, progress=False
    )
    env = changing(2, 5, 200, 3)
    costs = np.asarray(env.mapping.P_phases) @ np.asarray(env.losses.theta)
    paid = costs[np.arange(200) // 50 % 2]
    learners = {
        ("MetaBIO", 0.5): jb.make_learner("metabio"),
        ("MetaBIO, restarting", 0.8): jb.make_learner("metabio-restarting", period=40),
        ("NSD-UCRL2, window", 0.8): jb.make_learner("nsd-ucrl2", window=40),
    }
    for (name, memory), learner in learners.items():
        for run in range(2):
            actions = np.asarray(jb.trajectory(env, learner, 0, 200, run=run).action)
            expected = np.sum(paid[np.arange(200), actions] - paid.min(axis=1))
            place = {"learner": name, "changes": 3, "memory": memory, "run": run}
            assert float(data.dynamic_regret.sel(place)) == pytest.approx(expected, abs=1e-3)
    best = at_best(data.dynamic_regret).mean("run")
    means = data.dynamic_regret.mean("run")
    np.testing.assert_allclose(best, means.min("memory"))


def test_each_number_of_changes_has_a_gap_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the regret of the sweep, here 0."""
    made_up_sweeps(monkeypatch, beyond)
    data = play_changes([3, 0, 1], memories=[0.5], horizon=96, runs=2, progress=False)
    gaps = [dynamic_gap(4, 96, changes) for changes in (3, 0, 1)]
    assert len(set(gaps)) == 3
    for name in data.learner.values:
        found = data.dynamic_regret.sel(learner=name, memory=0.5)
        np.testing.assert_array_equal(found, np.repeat(np.array(gaps)[:, None], 2, axis=1))


def test_the_best_memory_has_the_least_mean_for_each_number_of_changes() -> None:
    """Neither that of all changes together nor the best of each run: [changes, memory, run]."""
    values = [[[0.0, 10.0], [4.0, 4.0]], [[1.0, 1.0], [9.0, 9.0]]]
    dims = ("learner", "changes", "memory", "run")
    regret = xr.DataArray([values], {"memory": [0.5, 2.0]}, dims)
    found = at_best(regret).squeeze("learner")
    assert found.transpose("changes", "run").values.tolist() == [[4, 4], [1, 1]]
    assert found.memory.values.ravel().tolist() == [2.0, 0.5]


def test_what_is_unknown_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And both studies beyond the assumptions are played as asked."""
    asked = made_up_sweeps(monkeypatch, beyond)
    numbers: dict[str, Any] = {"horizon": 90, "runs": 2, "seed": 5}
    play_beyond(changes=[1], memories=[0.4], delay=7, progress=False, **numbers)
    assert [{name: one[name] for name in numbers} for one in asked] == [numbers] * 3
    assert asked[1]["axes"]["memory"] == [0.4]
    unknowns = asked[-1]
    assert unknowns["environment"](spare=1).delays.longest() == 7
    learners = unknowns["learners"]
    radii = [learners[name].radius for name in ("MetaBIO", "MetaBIO, no horizon")]
    assert radii == ["horizon", "anytime"]
    adas = [learners[name] for name in ("MetaAdaBIO", "MetaAdaBIO, no horizon")]
    assert [one.doubling for one in adas] == [None, 200]
    assert [one.rule for one in adas] == ["practical", "practical"]


def test_spare_states_are_never_seen() -> None:
    env = with_spare_states(4, 20)
    assert env.num_states == 12
    assert jb.sample_world(env, 0, 0, 200)["states"].max() == 2
    data = play_unknowns([1, 4], delay=20, horizon=300, runs=3, progress=False)
    alone = data.final_regret.sel(learner="DAda-Exp3")  # does not look at states
    np.testing.assert_array_equal(alone.sel(spare=1), alone.sel(spare=4))
    assert (data.final_regret.sel(learner="MetaBIO").diff("spare") != 0).any()
