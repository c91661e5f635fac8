"""Problems: the paper's tables, phases, hard instances, padding, and the worlds that runs see."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import phase_index_ceil, phase_index_log

import jaxbio as jb
from jaxbio.environment.mappings import NEVER

HORIZON = 300
STARTS_CEIL = [1, 2, 4, 8, 15, 27, 47, 79, 131, 215, 350, 566, 912, 1466, 2353, 3773, 6045, 9681]
STARTS_LOG = [
    *(1, 2, 3, 5, 7, 11, 18, 29, 46, 73, 118, 190, 305, 491, 790, 1272, 2049, 3299, 5314, 8557),
]


def action_means(P: Any, theta: Any) -> np.ndarray:
    return np.asarray(P) @ np.asarray(theta)


# --- the paper's instances


def test_paper_stochastic_is_the_table_of_the_appendix() -> None:
    env: Any = jb.make_environment("paper-stochastic")
    P = [[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.3, 0.7, 0.0], [0.5, 0.3, 0.2]]
    np.testing.assert_array_equal(env.mapping.P, P)
    np.testing.assert_array_equal(env.losses.theta, [0.2, 0.4, 0.8])
    means = action_means(env.mapping.P, env.losses.theta)
    np.testing.assert_allclose(means, [0.28, 0.36, 0.34, 0.38])
    np.testing.assert_allclose(means - means.min(), [0, 0.08, 0.06, 0.10], atol=1e-12)
    assert (env.num_actions, env.num_states, env.delays.d) == (4, 3, 50)
    assert isinstance(env.losses, jb.BernoulliLosses)
    assert env.best_action(jnp.int32(100)) == 0


def test_paper_adversarial_is_the_table_of_the_appendix() -> None:
    env: Any = jb.make_environment("paper-adversarial")
    first = [[0.06, 0.47, 0.47], *[[0.0, 0.5, 0.5]] * 3]
    second = [[1.0, 0.0, 0.0], *[[0.94, 0.03, 0.03]] * 3]
    np.testing.assert_array_equal(env.mapping.P_phases, [first, second])
    np.testing.assert_array_equal(env.losses.theta, [0, 1, 1])
    means = [action_means(P, env.losses.theta) for P in env.mapping.P_phases]
    np.testing.assert_allclose(means, [[0.94, 1, 1, 1], [0, 0.06, 0.06, 0.06]])
    assert (env.mapping.start, env.mapping.growth, env.mapping.reading) == (0, 1.6, "ceil")


@pytest.mark.parametrize(("actions", "states"), [(8, 4), (8, 12), (8, 14), (3, 2)])
def test_paper_utility_has_one_good_state(actions: int, states: int) -> None:
    env: Any = jb.make_environment("paper-utility", actions=actions, states=states)
    P, theta = env.mapping.P, env.losses.theta
    assert P.shape == (actions, states)
    np.testing.assert_array_equal(theta, [0.2] + [1.0] * (states - 1))
    np.testing.assert_array_equal(P[0], [1.0] + [0.0] * (states - 1))
    np.testing.assert_allclose(P[1:, 0], 0.6)
    np.testing.assert_allclose(P[1:, 1:], 0.4 / (states - 1))
    np.testing.assert_allclose(action_means(P, theta), [0.2] + [0.52] * (actions - 1))
    assert env.delays.d == 100


def test_defaults_are_those_of_the_experiments() -> None:
    env: Any = jb.make_environment("paper-utility")
    assert (env.num_actions, env.num_states) == (8, 4)
    delays: Any = jb.make_environment("paper-stochastic", delays=jb.LaplaceDelay(50, 25)).delays
    assert (delays.location, delays.scale) == (50, 25)
    assert all(isinstance(jb.make_environment(n), jb.Environment) for n in jb.environment_names())


# --- phases


@pytest.mark.parametrize(("reading", "expected"), [("ceil", STARTS_CEIL), ("log", STARTS_LOG)])
def test_phase_starts(reading: str, expected: list[int]) -> None:
    mapping: Any = jb.make_environment("paper-adversarial", reading=reading).mapping
    starts = mapping.starts
    assert starts[starts <= 10_000].tolist() == expected
    assert (np.diff(starts[starts < NEVER]) > 0).all()


@pytest.mark.parametrize(
    ("options", "phase"),
    [
        ({}, phase_index_ceil),
        ({"start": 1}, phase_index_ceil),
        ({"growth": 1.25, "first": 3}, lambda t: phase_index_ceil(t, 1.25, 3)),
        ({"growth": 1, "first": 20}, lambda t: phase_index_ceil(t, 1, 20)),
        ({"reading": "log"}, phase_index_log),
        ({"reading": "log", "growth": 2}, lambda t: phase_index_log(t, 2, 1)),
    ],
)
def test_which_mapping_is_in_force(options: dict[str, Any], phase: Any) -> None:
    mapping: Any = jb.make_environment("paper-adversarial", **options).mapping
    rounds = range(1, 2001)
    expected = [(phase(t) + options.get("start", 0)) % 2 for t in rounds]
    got = jax.vmap(mapping.environment)(jnp.asarray(rounds, jnp.int32))
    np.testing.assert_array_equal(got, expected)


# --- hard instances


@pytest.mark.parametrize(("states", "delay", "best"), [(8, 50, 0), (9, 3, 1), (2, 1, 1)])
def test_hard_states_shares_losses_within_a_block(states: int, delay: int, best: int) -> None:
    env: Any = jb.make_environment(
        "hard-states", horizon=HORIZON, states=states, delay=delay, best=best
    )
    block = math.floor(min(states / 2, delay))
    shift = 0.25 * math.sqrt(block / (2 * HORIZON * math.log(4 / 3)))
    theta = env.losses.theta
    np.testing.assert_allclose(theta[best::2], 0.5 - shift)
    np.testing.assert_allclose(theta[1 - best :: 2], 0.5)
    world = jb.sample_world(env, 0, 0, HORIZON)
    assert env.num_actions == 2
    place = np.arange(HORIZON) % block
    np.testing.assert_array_equal(world["states"], np.stack([2 * place, 2 * place + 1], axis=1))
    np.testing.assert_array_equal(world["delays"], delay)
    taken = np.take_along_axis(world["losses"], world["states"], axis=1)  # [T, 2]
    for first in range(0, HORIZON, block):
        assert (taken[first : first + block] == taken[first]).all()
    blocks = taken[::block]
    assert {tuple(row) for row in blocks} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    other = jb.sample_world(env, 0, 1, HORIZON)
    assert (other["losses"] != world["losses"]).any()
    assert env.best_action(jnp.int32(HORIZON)) == best


@pytest.mark.parametrize(("states", "delay"), [(8, 20), (8, 200), (9, 60), (2, 0)])
def test_hard_delay_gives_each_block_its_own_states(states: int, delay: int) -> None:
    env: Any = jb.make_environment("hard-delay", horizon=HORIZON, states=states, delay=delay)
    world = jb.sample_world(env, 0, 0, HORIZON)
    blocks = min(states // 2, HORIZON // (delay + 1))
    index = np.arange(HORIZON) // (delay + 1)
    inside = index < blocks
    expected = np.stack([2 * index, 2 * index + 1], axis=1)
    np.testing.assert_array_equal(world["states"][inside], expected[inside])
    theta = env.losses.theta[: 2 * blocks].reshape(blocks, 2)
    np.testing.assert_array_equal(np.sort(theta, axis=1), [[0, 1]] * blocks)
    np.testing.assert_array_equal(world["losses"], np.tile(env.losses.theta, (HORIZON, 1)))
    rest = np.take_along_axis(world["losses"], world["states"], axis=1)[~inside]
    assert (rest[:, 0] == rest[:, 1]).all()
    np.testing.assert_array_equal(world["delays"], delay)


def test_hard_delay_draws_the_order_from_its_seed() -> None:
    orders = {
        tuple(jb.make_environment("hard-delay", states=16, seed=seed).losses.theta)
        for seed in range(20)
    }
    assert len(orders) > 10


@pytest.mark.parametrize("best", [0, 3])
def test_hard_actions_differ_by_a_little(best: int) -> None:
    env: Any = jb.make_environment("hard-actions", horizon=1600, actions=4, best=best)
    shift = math.sqrt(4 / 1600) / 4
    means = action_means(env.mapping.P, env.losses.theta)
    np.testing.assert_allclose(means, 0.5 - shift * (np.arange(4) == best))


def test_hard_adversarial_keeps_its_losses_for_a_block() -> None:
    env: Any = jb.make_environment("hard-adversarial", horizon=2000, actions=3, delay=9, best=2)
    values = env.losses.values.reshape(200, 10, 2)
    np.testing.assert_array_equal(values, np.repeat(values[:, :1], 10, axis=1))
    np.testing.assert_array_equal(env.mapping.P, [[1, 0], [1, 0], [0, 1]])
    shift = math.sqrt(10 / 2000) / 4
    # 200 coins each: four standard deviations of a mean are 0.14.
    np.testing.assert_allclose(values[:, 0].mean(0), [0.5, 0.5 - shift], atol=0.14)
    assert env.delays.d == 9


# --- worlds


def table_env() -> jb.Environment:
    generator = np.random.default_rng(0)
    return jb.Environment(
        jb.TableMapping(generator.integers(0, 5, (HORIZON, 3))),
        jb.TableLosses(generator.random((HORIZON, 5))),
        jb.TableDelay(generator.integers(0, 40, HORIZON)),
    )


ENVIRONMENTS: dict[str, Any] = {
    "stochastic": lambda: jb.make_environment("paper-stochastic", delays=jb.LaplaceDelay(9, 5)),
    "alternating": lambda: jb.Environment(
        jb.AlternatingMapping(np.random.default_rng(1).dirichlet(np.ones(3), (2, 4))),
        jb.BetaLosses([0.2, 0.5, 0.9], 2.0),
        jb.GeometricDelay(6),
    ),
    "tables": table_env,
    "independent": lambda: jb.Environment(
        jb.StochasticMapping([[0.5, 0.5], [0.1, 0.9]]),
        jb.BernoulliLosses([0.4, 0.6], "independent"),
        jb.UniformDelay(2, 9),
    ),
    "blocks": lambda: jb.make_environment("hard-states", horizon=HORIZON, delay=3),
    "events": lambda: jb.Environment(
        jb.StochasticMapping([[0.5, 0.5], [0.1, 0.9]]),
        jb.EventLosses([0.4, 0.7], [0.1, 0.6]),
        jb.UniformDelay(2, 9),
    ),
}


def assert_seen(played: jb.Round, world: dict[str, np.ndarray]) -> None:
    """What a run met at its own actions is what the world holds there."""
    t = np.arange(HORIZON)
    np.testing.assert_array_equal(played.state, world["states"][t, played.action])
    # Beta losses go through a logarithm, whose last bit may differ between two programs.
    np.testing.assert_allclose(played.loss, world["losses"][t, played.state], rtol=2e-6)
    np.testing.assert_array_equal(played.delay, world["delays"])


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_run_sees_the_sampled_world(name: str) -> None:
    env = ENVIRONMENTS[name]()
    world = jb.sample_world(env, 4, 2, HORIZON)
    played = jax.device_get(jb.trajectory(env, jb.UCB1(), 4, HORIZON, run=2))
    assert_seen(played, world)
    assert len(set(played.action.tolist())) > 1


def test_the_world_does_not_depend_on_the_learner() -> None:
    """Two learners that play differently meet the same world: a paired comparison."""
    env = ENVIRONMENTS["stochastic"]()
    world = jb.sample_world(env, 4, 2, HORIZON)
    first = jax.device_get(jb.trajectory(env, jb.make_learner("exp3"), 4, HORIZON, run=2))
    second = jax.device_get(jb.trajectory(env, jb.UCB1(), 4, HORIZON, run=2))
    assert_seen(first, world)
    assert_seen(second, world)
    same = first.action == second.action
    assert 0 < same.sum() < HORIZON
    np.testing.assert_array_equal(first.state[same], second.state[same])
    np.testing.assert_array_equal(first.loss[same], second.loss[same])
    np.testing.assert_array_equal(first.delay, second.delay)


def test_worlds_differ_by_seed_and_run() -> None:
    env = ENVIRONMENTS["alternating"]()
    worlds = [jb.sample_world(env, seed, run, HORIZON) for seed, run in [(0, 0), (0, 1), (1, 0)]]
    again = jb.sample_world(env, 0, 1, HORIZON)
    for part in ("states", "losses", "delays"):
        np.testing.assert_array_equal(worlds[1][part], again[part])
        for i, j in [(0, 1), (0, 2), (1, 2)]:
            assert (worlds[i][part] != worlds[j][part]).any()


def test_a_world_is_the_beginning_of_a_longer_one() -> None:
    env = ENVIRONMENTS["independent"]()
    long, short = (jb.sample_world(env, 0, 0, horizon) for horizon in (HORIZON, 50))
    assert all((long[part][:50] == short[part]).all() for part in long)


def test_states_of_different_actions_are_not_coupled() -> None:
    """s_t(a) and s_t(b) with equal rows of P agree as often as independent draws do."""
    env = jb.Environment(
        jb.StochasticMapping([[0.5, 0.5]] * 2), jb.ConstantLosses([0, 1]), jb.FixedDelay(0)
    )
    states = jb.sample_world(env, 0, 0, 10_000)["states"]
    assert abs(np.mean(states[:, 0] == states[:, 1]) - 0.5) < 0.025  # five standard deviations


def test_shared_and_independent_losses_have_the_same_means_but_not_the_same_joint_law() -> None:
    joint = {}
    for coupling in ("shared", "independent"):
        env = jb.Environment(
            jb.StochasticMapping([[0.5, 0.5]] * 2),
            jb.BernoulliLosses([0.5, 0.5], coupling),
            jb.FixedDelay(0),
        )
        losses = jb.sample_world(env, 0, 0, 10_000)["losses"]
        np.testing.assert_allclose(losses.mean(0), 0.5, atol=0.025)
        joint[coupling] = np.mean(losses[:, 0] == losses[:, 1])
    assert joint["shared"] == 1
    assert abs(joint["independent"] - 0.5) < 0.025


def test_events_have_their_value_and_everything_else_is_absent() -> None:
    losses = jb.EventLosses([0.25, 0.0, 1.0], [0.125, 0.5, 0.75], absent=0.5)
    np.testing.assert_allclose(losses.theta, [0.25 * 0.125 + 0.75 * 0.5, 0.5, 0.75])
    mapping = jb.StochasticMapping([[0.2, 0.3, 0.5]] * 2)
    env = jb.Environment(mapping, losses, jb.FixedDelay(0))
    world = jb.sample_world(env, 0, 0, 10_000)["losses"]
    assert set(world[:, 0]) == {0.125, 0.5}
    assert (set(world[:, 1]), set(world[:, 2])) == ({0.5}, {0.75})
    assert abs(np.mean(world[:, 0] == 0.125) - 0.25) < 0.022  # five standard deviations
    assert jb.EventLosses([0.25, 0.5], 0.125).value.tolist() == [0.125, 0.125]


# --- padding


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_padding_leaves_the_world_as_it_is(name: str) -> None:
    env = ENVIRONMENTS[name]()
    padded = env.padded(11)
    assert (padded.state_slots, padded.num_states) == (11, env.num_states)
    assert env.padded(env.state_slots) is env
    before, after = (jb.sample_world(e, 1, 0, HORIZON) for e in (env, padded))
    np.testing.assert_array_equal(before["states"], after["states"])
    np.testing.assert_array_equal(before["losses"], after["losses"][:, : env.num_states])
    np.testing.assert_array_equal(before["delays"], after["delays"])
    best = [int(e.best_action(jnp.int32(HORIZON))) for e in (env, padded)]
    assert best[0] == best[1]


def test_padded_twice_is_padded_once() -> None:
    env = jb.make_environment("paper-stochastic").padded(5).padded(9)
    assert (env.num_states, env.state_slots) == (3, 9)
    assert isinstance(env.mapping, jb.StochasticMapping)
    np.testing.assert_array_equal(env.mapping.P[:, 3:], 0)


def test_a_table_of_states_takes_the_number_of_states_from_the_losses() -> None:
    env = jb.Environment(jb.TableMapping([[0, 1]]), jb.BernoulliLosses([0.1] * 6), jb.FixedDelay(0))
    assert env.num_states == 6


LARGE = {
    "hard-states": {"horizon": 10**9},
    "hard-delay": {"horizon": 10**9},
    "hard-adversarial": {"horizon": 10**9},
    "hard-actions": {"actions": 10**9},
    "paper-utility": {"states": 10**9},
}


@pytest.mark.parametrize("name", LARGE)
def test_a_table_without_room_is_refused_before_it_is_made(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("allocated")

    monkeypatch.setattr("jaxbio.checks.memory.free_memory", lambda: 2e9)
    for function in ("arange", "full", "ones", "zeros", "tile", "stack"):
        monkeypatch.setattr(np, function, never)
    with pytest.raises(
        MemoryError, match=r"1,000,000,000 .* takes .* GB while it is made"
    ) as found:
        jb.make_environment(name, **LARGE[name])
    assert isinstance(found.value, ValueError)
    assert "use a shorter horizon, or fewer states or actions" in str(found.value)


def test_no_table_is_larger_than_what_it_is_made_for() -> None:
    """Not S times S for S states, nor a whole block of a delay for few rounds."""
    tracemalloc.start()
    jb.make_environment("paper-utility", states=4000)
    jb.make_environment("hard-adversarial", horizon=100, delay=2_000_000)
    jb.make_environment("hard-adversarial", horizon=100, delay=2**30)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 5_000_000
