"""The studies of the four regimes, and of what lies beyond the assumptions."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbio as jb
from jaxbio.figures.beyond import beyond as draw_beyond
from jaxbio.figures.regimes import regimes as draw_regimes
from jaxbio.lab.beyond import (
    MEMORY,
    changing,
    dynamic_gap,
    phase_length,
    play_changes,
    play_unknowns,
    remembered,
    with_spare_states,
)
from jaxbio.lab.contestants import robust
from jaxbio.lab.regimes import four_regimes, play_regimes, swapping_states, turning_losses
from jaxbio.plot import Look

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
def test_metabio_gains_from_states_until_losses_are_adversarial() -> None:
    """Far apart: the tolerances are many standard errors wide."""
    known = robust()
    learners = {name: known[name] for name in ("DAda-Exp3", "MetaBIO")}
    data = play_regimes(
        horizon=4000, delay=50, runs=16, rounds=4, learners=learners, progress=False
    )
    assert data.regime.values.tolist() == list(four_regimes(4000, 50))
    alone, wrapped = (data.final_regret.sel(learner=name).mean("run").values for name in learners)
    assert (wrapped[:2] < alone[:2] - 5).all()
    assert (wrapped[2:] > alone[2:] + 0.02 * 4000).all()
    titles = [axes.get_title(loc="left") for axes in draw_regimes(data, Look()).axes]
    assert titles == data.regime.values.tolist()


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
    assert dynamic_gap(3, 5, 90, 2) == pytest.approx(single - least)
    assert dynamic_gap(3, 5, 90, 0) == pytest.approx(0)


def test_nobody_is_told_when_the_mapping_changes() -> None:
    """No restart of the default study falls within five rounds of a change."""
    for changes in (1, 3, 7):
        period = remembered(10_000, MEMORY, changes)
        restarts = np.arange(period, 10_000, period)
        change = np.arange(1, changes + 1) * phase_length(10_000, changes)
        assert np.abs(restarts[:, None] - change).min() > 5


def test_dynamic_regret_is_what_the_actions_cost_more_than_the_best_of_each_phase() -> None:
    data = play_changes([3], actions=2, delay=5, horizon=200, runs=2, progress=False)
    env, learner = changing(2, 5, 200, 3), jb.make_learner("metabio")
    costs = np.asarray(env.mapping.P_phases) @ np.asarray(env.losses.theta)
    for run in range(2):
        actions = np.asarray(jb.trajectory(env, learner, 0, 200, run=run).action)
        paid = costs[np.arange(200) // 50 % 2]
        expected = np.sum(paid[np.arange(200), actions] - paid.min(axis=1))
        found = float(data.dynamic_regret.sel(learner="MetaBIO", changes=3, run=run))
        assert found == pytest.approx(expected, abs=1e-3)


def test_spare_states_are_never_seen() -> None:
    env = with_spare_states(4, 20)
    assert env.num_states == 12
    assert jb.sample_world(env, 0, 0, 200)["states"].max() == 2
    data = play_unknowns([1, 4], delay=20, horizon=300, runs=3, progress=False)
    alone = data.final_regret.sel(learner="DAda-Exp3")  # does not look at states
    np.testing.assert_array_equal(alone.sel(spare=1), alone.sel(spare=4))
    assert (data.final_regret.sel(learner="MetaBIO").diff("spare") != 0).any()
    changes = data.rename(spare="changes", final_regret="dynamic_regret")
    titles = [axes.get_title(loc="left") for axes in draw_beyond(changes, data, Look()).axes]
    assert titles == ["The best action changes", "The number of states is overestimated"]
