"""The studies: ratios and boundaries, the four regimes, advice."""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.contour import QuadContourSet
from utility_oracle import final_regret, log_ratio

import jaxbio as jb
from jaxbio.figures.advice import advice as draw_advice
from jaxbio.figures.phase import phase as draw_phase
from jaxbio.figures.regimes import regimes as draw_regimes
from jaxbio.lab.advise import FAMILIES, advise
from jaxbio.lab.beyond import (
    CHANGES,
    MEMORIES,
    at_best,
    changing,
    dynamic_gap,
    phase_length,
    play_changes,
    play_unknowns,
    remembered,
    uniform_regret,
    with_spare_states,
)
from jaxbio.lab.contestants import robust
from jaxbio.lab.phase import (
    helpful_delays,
    phase_diagram,
    ratios,
    utility_family,
)
from jaxbio.lab.regimes import (
    alternating,
    four_regimes,
    play_delays,
    play_regimes,
    swapping_states,
    turning_losses,
)
from jaxbio.plot import Look

# --- ratios and their boundary


def finals(means: np.ndarray, runs: int, noise: float) -> xr.DataArray:
    """Final regrets [learner, states, delay, run] around means [learner, states, delay]."""
    spread = np.random.default_rng(0).normal(0, noise, (*means.shape, runs))
    learners = ["base", *(f"wrapper {i}" for i in range(1, len(means)))]
    return xr.DataArray(
        means[..., None] + spread,
        dims=("learner", "states", "delay", "run"),
        coords={"learner": learners, "states": [2, 4], "delay": [1, 3, 7]},
    )


def test_ratios_and_their_intervals() -> None:
    """An interval of 99.9 % misses one of the 6 true ratios with probability below 0.006."""
    base = np.full((2, 3), 100.0)
    wrapper = np.array([[200.0, 100.0, 50.0], [300.0, 120.0, 90.0]])
    found = ratios(finals(np.stack([base, wrapper]), 400, 20.0), level=0.999)
    true = wrapper / base
    assert found.ratio.dims == ("wrapper", "states", "delay")
    assert found["wrapper"].values.tolist() == ["wrapper 1"]
    np.testing.assert_allclose(found.ratio[0], true, rtol=0.05)
    assert ((found.low[0] < true) & (true < found.high[0])).all()
    assert (found.high - found.low < 0.15 * found.ratio).all()


def test_ratios_keep_the_pairing_of_runs() -> None:
    """Twice the base's regret, run by run: without the pairing the interval has a width."""
    base = finals(np.full((1, 2, 3), 100.0), 30, 40.0)
    double = (2 * base).assign_coords(learner=["wrapper"])
    found = ratios(xr.concat([base, double], "learner"))
    np.testing.assert_allclose(found.low, 2)
    np.testing.assert_allclose(found.high, 2)


def test_states_help_from_one_delay_to_another() -> None:
    rows = [[2.0, 0.5, 0.5], [1.0, 0.25, 4.0], [0.9, 0.9, 0.9], [2.0, 2.0, 2.0], [0.5, 2.0, 0.25]]
    data = xr.Dataset(
        {"ratio": (("wrapper", "states", "delay"), [rows])},
        {"wrapper": ["w"], "states": [1, 2, 3, 4, 5], "delay": [1, 3, 7]},
    )
    found = helpful_delays(data, "w").transpose("states", "end").values
    # The logarithms of 1 + d are 1, 2, 3 times ln 2, those of the ratios whole multiples of it: the
    # line crosses half way (2**1.5), then half way again (2**2.5), then a third of the way back.
    expected = [[2**1.5 - 1, 7], [1, 2**2.5 - 1], [1, 7], [np.nan] * 2, [2 ** (2 + 1 / 3) - 1, 7]]
    np.testing.assert_allclose(found, expected)


# --- the phase diagram


SMALL: dict[str, Any] = {"actions": [4], "horizons": [1500], "progress": False}
CELLS = [(2, 32), (8, 32), (8, 4)]


@pytest.fixture(scope="module")
def diagram() -> xr.Dataset:
    known = robust()
    learners = {name: known[name] for name in ("DAda-Exp3", "MetaBIO")}
    return phase_diagram([2, 8], [4, 32], runs=128, learners=learners, **SMALL)


def test_a_cell_is_what_simulate_gives(diagram: xr.Dataset) -> None:
    env = utility_family(4, 2, 32)
    sizes = {"horizon": 1500, "runs": 128, "rounds": 1}
    alone = jb.simulate(env, robust()["MetaBIO"], **sizes, progress=False)
    cell = diagram.final_regret.sel(learner="MetaBIO", actions=4, horizon=1500, states=2, delay=32)
    np.testing.assert_array_equal(cell, alone.final_regret)


@pytest.mark.slow
@pytest.mark.parametrize(("states", "delay"), CELLS)
def test_an_independent_program_finds_the_same_ratio(
    diagram: xr.Dataset, states: int, delay: int
) -> None:
    """The oracle's ratio of 12 runs, in worlds of its own, and the package's of 128.

    Both are means of independent runs, so the difference of their logarithms has about a normal
    law, whose spread is taken from the runs (delta method); 4.5 of them are exceeded with
    probability 7e-6.
    """
    found = diagram.sel(actions=4, horizon=1500, states=states, delay=delay)
    size = {"actions": 4, "states": states, "delay": delay, "horizon": 1500}
    theirs = np.array([[final_regret(i, run, **size) for run in range(12)] for i in range(2)])
    both = log_ratio(found.final_regret.values, paired=False), log_ratio(theirs, paired=False)
    error = np.hypot(both[0][1], both[1][1])
    assert error < 0.25, "too few runs to see anything"
    assert abs(both[0][0] - both[1][0]) < 4.5 * error


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": [4, 2]}, r"states must be increasing integers, but got \[4, 2\]"),
        ({"delays": []}, "delays must be increasing"),
        ({"actions": [1]}, "actions must be"),
        ({"learners": {"alone": jb.UCB1()}}, "a base and a wrapper"),
    ],
)
def test_bad_grids_are_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"states": [2], "delays": [1]} | change
    with pytest.raises(ValueError, match=message):
        phase_diagram(given.pop("states"), given.pop("delays"), progress=False, **given)


def test_the_phase_diagram_is_drawn(diagram: xr.Dataset) -> None:
    figure = draw_phase(diagram, Look())
    (axes,) = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert axes.get_title(loc="left") == "MetaBIO"
    assert axes.get_xlabel() == "delay d in rounds"
    band, line = (drawn for drawn in axes.collections if isinstance(drawn, QuadContourSet))
    assert band.hatches == ["//////"]
    np.testing.assert_array_equal(line.levels, [0])
    (theory,) = axes.lines
    np.testing.assert_array_equal(theory.get_xdata(), theory.get_ydata())


def test_an_axis_is_logarithmic_where_its_values_are(diagram: xr.Dataset) -> None:
    cells = diagram.isel(delay=[0, 0, 1])
    for delays, scale in (([2, 4, 32], "log"), ([2, 4, 6], "linear"), ([0, 1, 9], "linear")):
        data = cells.assign_coords(delay=delays)
        axes = next(axes for axes in draw_phase(data, Look()).axes if axes.get_title(loc="left"))
        assert axes.get_xscale() == scale


# --- the four regimes


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
    data = play_delays([2, 20], horizon=200, runs=16, learners=learners, progress=False)
    assert data.regime.values.tolist() == list(four_regimes(200, 2))
    cell = data.sel(regime=data.regime[1], learner="DAda-Exp3", delay=20)
    env = four_regimes(200, 20)[str(data.regime.values[1])]
    alone = jb.simulate(env, learners["DAda-Exp3"], horizon=200, runs=16, progress=False)
    assert float(cell.regret_mean) == pytest.approx(alone.final_regret.mean())
    assert (data.mean_low < data.mean_high).all()
    means = data.regret_mean.values
    np.testing.assert_array_equal(means[2], means[3])  # who does not look at states sees no swap
    assert data.rate[0].values == pytest.approx(np.sqrt(200 * np.array([[6, 7], [6, 24]])))
    assert data.rate[3].values == pytest.approx(np.sqrt(200 * np.array([[4, 22], [4, 22]])))


@pytest.mark.parametrize(
    ("study", "given", "message"),
    [
        (play_regimes, {"learners": [jb.UCB1()]}, "learners must map labels to learners, but got"),
        (play_delays, {"learners": {}}, "learners must map labels to learners, but got"),
        (play_delays, {"delays": []}, r"delays must have at least one value, but got \[\]"),
        (play_delays, {"runs": 8}, "runs must be at least 16, but got 8"),
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
        ({"changes": 3}, "changes must be a sequence of numbers, but got 3"),
        ({"memories": []}, r"memories must be a sequence of numbers, but got \[\]"),
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


def test_spare_states_are_never_seen() -> None:
    env = with_spare_states(4, 20)
    assert env.num_states == 12
    assert jb.sample_world(env, 0, 0, 200)["states"].max() == 2
    data = play_unknowns([1, 4], delay=20, horizon=300, runs=3, progress=False)
    alone = data.final_regret.sel(learner="DAda-Exp3")  # does not look at states
    np.testing.assert_array_equal(alone.sel(spare=1), alone.sel(spare=4))
    assert (data.final_regret.sel(learner="MetaBIO").diff("spare") != 0).any()


# --- advice


def problem(**changes: Any) -> dict[str, Any]:
    given = {"actions": 2, "states": 2, "horizon": 400, "delays": jb.FixedDelay(5)}
    return given | {"progress": False} | changes


def test_advice_names_the_winner_and_stops_early() -> None:
    learners = {"UCB1": jb.UCB1(), "idle": jb.UCB1(exploration=1e6)}
    found = advise(**problem(learners=learners, seconds=600))
    assert found.overall.winner == "UCB1"
    assert found.runs == 32
    assert found.robust is None
    drawn = draw_advice(found.overall, "a title", Look())
    assert [label.get_text() for label in drawn.axes[0].get_yticklabels()] == ["idle", "UCB1"]


def test_equals_are_too_close_to_call() -> None:
    """Different worlds for the same learner are not possible here, so it plays twice the same."""
    learners = {"DAda-Exp3": jb.DAdaExp3(), "MetaBIO": jb.DAdaExp3()}
    found = advise(**problem(learners=learners, seconds=600, looks=3, first=8))
    assert found.overall.winner is None
    assert found.robust is not None
    assert not found.decided
    assert found.runs == 8 * 4
    assert found.overall.level == pytest.approx(0.05 / 3)


def test_advice_knows_learners_by_any_spelling() -> None:
    learners = {name: jb.make_learner("ucb1") for name in ("dada-exp3:delta=0.2", "metabio", "x")}
    found = advise(**problem(learners=learners, seconds=0, first=8))
    assert found.robust is not None
    assert sorted(row.name for row in found.robust.rows) == ["dada-exp3:delta=0.2", "metabio"]
    assert found.robust.level == found.overall.level == pytest.approx(0.05 / 6 / 2)
    with pytest.raises(ValueError, match="two or more"):
        advise(**problem(learners={"x": jb.UCB1()}))


def test_no_look_begins_that_time_does_not_allow() -> None:
    learners = {"DAda-Exp3": jb.DAdaExp3(), "MetaBIO": jb.DAdaExp3()}
    assert advise(**problem(learners=learners, seconds=0, first=8)).runs == 8


def test_random_problems_differ_and_come_back() -> None:
    build, instances = FAMILIES["random"]
    made = [build(3, 4, jb.FixedDelay(1), i).mapping.P for i in range(instances)]
    assert len({table.tobytes() for table in made}) == instances
    np.testing.assert_array_equal(made[1], build(3, 4, jb.FixedDelay(9), 1).mapping.P)
    with pytest.raises(ValueError, match="family"):
        advise(**problem(family="odd"))
