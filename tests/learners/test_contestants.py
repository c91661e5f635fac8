"""What is special about the wrappers that hide delay, and the learner that knows theta.

That they play as specified is shown in tests/properties/test_oracle.py.
"""

from __future__ import annotations

from typing import Any

import helpers
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference

import jaxbio as jb
from jaxbio import rng

UCB1, DADA = {"name": "ucb1"}, {"name": "dada-exp3"}


@pytest.mark.parametrize("name", ["qpmd", "bold"])
@pytest.mark.parametrize("base", [UCB1, DADA], ids=lambda spec: spec["name"])
def test_without_delay_the_base_itself_plays(name: str, base: Any) -> None:
    """Of the oracle, which the package equals for the delay 0, too."""
    game = helpers.table_game(np.zeros(helpers.HORIZON, int), 0)
    given = helpers.uniforms(game.seed, game.run, helpers.HORIZON, 1)
    wrapped = reference.play({"name": name, "base": base}, game.world, given)
    assert wrapped.actions == reference.play(base, game.world, given).actions


def test_a_fixed_delay_keeps_one_more_copy_busy_than_its_rounds() -> None:
    """Copies take turns, and d + 1 of them are just enough."""
    env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(3))
    ticket = jb.trajectory(env, jb.BOLD(jb.UCB1(), copies=4), 0, 20).ticket
    np.testing.assert_array_equal(ticket.copy, np.arange(20) % 4)


def test_too_few_copies_are_reported_when_the_game_ends() -> None:
    env = jb.make_environment("paper-stochastic", delays=jb.UniformDelay(0, 9))
    learner = jb.Restarting(jb.BOLD(jb.UCB1(), copies=2), 10)
    with pytest.raises(RuntimeError, match="too few copies"):
        jb.trajectory(env, learner, 0, 40)


def test_further_uniforms_are_uniform_and_unrelated() -> None:
    """Of the first 4 requests in 2,000 rounds: moments, and correlations with each other and u."""
    t = jnp.arange(1, 2001, dtype=jnp.int32)
    u = jnp.asarray(helpers.uniforms(0, 0, 2000, 1), jnp.float32)
    index = jnp.arange(4, dtype=jnp.int32)
    further = jax.vmap(lambda u, t: jax.vmap(lambda i: rng.derived(u, t, i, 1))(index))(u, t)
    columns = np.column_stack([np.asarray(u), np.asarray(further)])
    np.testing.assert_allclose(columns.mean(0), 0.5, atol=4 * np.sqrt(1 / 12 / 2000))
    np.testing.assert_allclose(columns.var(0), 1 / 12, atol=4 * np.sqrt(1 / 180 / 2000))
    np.testing.assert_allclose(np.corrcoef(columns.T), np.eye(5), atol=4 / np.sqrt(2000))


def utility(states: int) -> jb.Environment:
    return jb.make_environment("paper-utility", actions=3, states=states, delays=jb.FixedDelay(4))


def informed(states: int) -> jb.KnownLosses:
    return jb.KnownLosses(jb.UCB1(), utility(states).losses.theta)


def informed_and_restarting(states: int) -> jb.Restarting:
    return jb.Restarting(informed(states), 40)


@pytest.mark.parametrize("learner", [informed, informed_and_restarting])
def test_known_losses_of_several_numbers_of_states_share_a_program(learner: Any) -> None:
    """Padded, and bit for bit the run that is not."""
    setting: Any = {
        "environment": utility,
        "learners": {"informed": learner},
        "axes": {"states": [2, 5]},
        "horizon": 100,
        "runs": 3,
    }
    assert jb.plan_sweep(**setting).programs == 1
    data = jb.sweep(**setting, progress=False)
    alone = jb.simulate(utility(2), learner(2), horizon=100, runs=3, progress=False)
    together = data.sel(learner="informed", states=2)
    np.testing.assert_array_equal(together["rounds_fed"], alone.info["rounds_fed"])
    np.testing.assert_array_equal(together["regret"].isel(round=-1), alone.final_regret)


def test_known_losses_wait_for_nothing() -> None:
    info = jb.simulate(utility(2), informed(2), horizon=100, runs=3, progress=False).info
    np.testing.assert_array_equal(info["rounds_fed"], 100)
    np.testing.assert_array_equal(info["waiting_rounds"], 0)


def test_a_period_beyond_the_horizon_changes_nothing() -> None:
    """The base is told the real horizon, which its radius depends on."""
    base = jb.SuccessiveElimination(scale=0.25)
    alone, wrapped = (
        jb.trajectory(utility(2), learner, 1, 100) for learner in (base, jb.Restarting(base, 2**20))
    )
    np.testing.assert_array_equal(wrapped.action, alone.action)
    assert len(np.unique(np.asarray(alone.action)[-20:])) == 1, "nothing is dropped"


def test_a_dropped_action_drops_nobody() -> None:
    """Its late losses are all 0, those of the only action left all 1."""
    learner, two = jb.SuccessiveElimination(scale=0.1), jnp.int32(2)
    known = jb.Known(two, jnp.int32(100), jnp.int32(9), num_actions=2, state_slots=2, ring_depth=16)
    state = learner.init(known)._replace(active=jnp.array([False, True]), last=jnp.int32(1))
    actions = jnp.repeat(jnp.arange(2, dtype=jnp.int32), 10)
    late = jb.Play(actions, actions, actions.astype(jnp.float32), None)
    own = jb.Play(jnp.int32(1), jnp.int32(1), jnp.float32(1), None)
    new, _ = learner.learn(state, jnp.int32(30), own, jb.Arrivals(late, jnp.ones(20, bool)))
    assert new.active.tolist() == [False, True]
