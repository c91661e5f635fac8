"""Regret in each regime, against the plain-Python definition and the sampled world."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import phase_index_ceil, pseudo_regret, realized_regret

import jaxbio as jb
from jaxbio import theory

HORIZON, RUNS, SEED = 200, 3, 6
RECORDED = [7, 50, 133]
GENERATOR = np.random.default_rng(3)
K, S = 3, 4
P = GENERATOR.dirichlet(np.ones(S), K)
PHASES = GENERATOR.dirichlet(np.ones(S), (2, K))
THETA = GENERATOR.random(S)
STATES = GENERATOR.integers(0, S, (HORIZON, K))
VALUES = GENERATOR.random((HORIZON, S))
SCRIPT = GENERATOR.integers(0, K, HORIZON)
DELAYS = np.where(GENERATOR.random(HORIZON) < 0.2, 10**6, GENERATOR.integers(0, 30, HORIZON))
IN_FORCE = [PHASES[phase_index_ceil(t) % 2].tolist() for t in range(1, HORIZON + 1)]


@jb.pytree
class Scripted:
    """Plays what it is told, if u < 1, as it always is. actions: int32 [T]."""

    actions: Any

    def init(self, known: jb.Known) -> None:
        return None

    def act(self, state: None, t: Any, u: Any) -> Any:
        return jnp.where(u < 1, self.actions[t - 1], 0), None

    def learn(self, state: None, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        return None, None


class Regime(NamedTuple):
    """An environment, and what the oracle's definition of its regret is given."""

    env: jb.Environment
    given: dict[str, Any]


def regime(mapping: Any, cost: Any, /, **given: Any) -> Regime:
    return Regime(jb.Environment(mapping, cost, jb.FixedDelay(2)), given)


REGIMES: dict[str, Regime] = {
    "stochastic map, stochastic losses": regime(
        jb.StochasticMapping(P), jb.BernoulliLosses(THETA), P=P.tolist(), theta=THETA
    ),
    "stochastic map, adversarial losses": regime(
        jb.StochasticMapping(P), jb.TableLosses(VALUES), P=P.tolist(), losses=VALUES
    ),
    "adversarial map, stochastic losses": regime(
        jb.TableMapping(STATES, S), jb.BernoulliLosses(THETA), states=STATES, theta=THETA
    ),
    "adversarial map, adversarial losses": regime(
        jb.TableMapping(STATES, S), jb.TableLosses(VALUES), states=STATES, losses=VALUES
    ),
    "alternating map, stochastic losses": regime(
        jb.AlternatingMapping(PHASES), jb.BernoulliLosses(THETA), P=IN_FORCE, theta=THETA
    ),
    "alternating map, adversarial losses": regime(
        jb.AlternatingMapping(PHASES), jb.TableLosses(VALUES), P=IN_FORCE, losses=VALUES
    ),
}


@cache
def simulated(name: str) -> jb.Result:
    return simulate(REGIMES[name].env, Scripted(SCRIPT))


def simulate(env: jb.Environment, learner: Any, **changes: Any) -> jb.Result:
    options = {"horizon": HORIZON, "runs": RUNS, "seed": SEED, "rounds": RECORDED, "width": 8}
    return jb.simulate(env, learner, **(options | changes), progress=False)


def oracle_realized(env: jb.Environment, actions: Any, run: int) -> np.ndarray:
    world = jb.sample_world(env, SEED, run, HORIZON)
    return np.array(realized_regret(actions, world["states"].tolist(), world["losses"].tolist()))


@pytest.mark.parametrize("name", REGIMES)
def test_pseudo_regret_of_the_regime(name: str) -> None:
    result = simulated(name)
    curve = np.array(pseudo_regret(SCRIPT.tolist(), **REGIMES[name].given))
    np.testing.assert_array_equal(result.rounds, [*RECORDED, HORIZON])
    assert result.regret.shape == (RUNS, len(RECORDED) + 1)
    for row in result.regret:
        np.testing.assert_allclose(row, curve[result.rounds - 1], atol=1e-4)
    np.testing.assert_array_equal(result.final_regret, result.regret[:, -1])
    assert abs(curve[-1]) > 1


@pytest.mark.parametrize("name", REGIMES)
def test_realised_regret_of_the_regime(name: str) -> None:
    result = simulated(name)
    assert result.realized_regret.shape == result.regret.shape
    for run, row in enumerate(result.realized_regret):
        curve = oracle_realized(REGIMES[name].env, SCRIPT.tolist(), run)
        np.testing.assert_allclose(row, curve[result.rounds - 1], atol=1e-4)


@pytest.mark.parametrize(
    "name", ["stochastic map, stochastic losses", "alternating map, adversarial losses"]
)
def test_a_rollout_has_the_same_regret(name: str) -> None:
    env, result = REGIMES[name].env, simulated(name)
    play = jax.jit(
        lambda run: jb.rollout(
            env, Scripted(SCRIPT), SEED, HORIZON, run=run, rounds=RECORDED, ring_depth=64, lanes=1
        )
    )
    for run in range(RUNS):
        record = jax.device_get(play(run))
        np.testing.assert_array_equal(record.rounds, result.rounds)
        np.testing.assert_allclose(record.regret, result.regret[run], atol=1e-4)
        np.testing.assert_allclose(record.realized_regret, result.realized_regret[run], atol=1e-4)
        np.testing.assert_allclose(record.loss, result.loss[run], rtol=1e-6)


def test_regret_of_a_learner_from_its_trajectory() -> None:
    env, given = REGIMES["stochastic map, stochastic losses"]
    learner = jb.UCB1()
    result = simulate(env, learner)
    for run in (0, RUNS - 1):
        played = jax.device_get(jb.trajectory(env, learner, SEED, HORIZON, run=run))
        actions, at = played.action.tolist(), result.rounds - 1
        expected = np.array(pseudo_regret(actions, **given))
        np.testing.assert_allclose(result.regret[run], expected[at], atol=1e-4)
        expected = oracle_realized(env, actions, run)
        np.testing.assert_allclose(result.realized_regret[run], expected[at], atol=1e-4)
        np.testing.assert_array_equal(result.loss[run], np.cumsum(played.loss)[at])


def test_a_curve_is_against_the_best_of_the_whole_horizon() -> None:
    """Action 0 is better for 80 rounds, action 1 in the end: regret falls below 0, then rises."""
    early = np.arange(HORIZON)[:, None] < 80
    values = np.where(early, [0.0, 1.0], [1.0, 0.0])
    env = jb.Environment(jb.StochasticMapping(np.eye(2)), jb.TableLosses(values), jb.FixedDelay(2))
    result = simulate(env, Scripted(np.zeros(HORIZON, int)), rounds=[40, 80, 160])
    for curves in (result.regret, result.realized_regret):
        np.testing.assert_array_equal(curves, [[-40, -80, 0, 40]] * RUNS)


def test_regret_of_the_best_action_is_zero() -> None:
    env, given = REGIMES["alternating map, stochastic losses"]
    best = int(env.best_action(jnp.int32(HORIZON)))
    totals = [pseudo_regret([a] * HORIZON, **given)[-1] for a in range(K)]
    assert totals[best] == 0
    assert sorted(totals)[1] > 0
    result = simulate(env, Scripted(np.full(HORIZON, best)))
    np.testing.assert_array_equal(result.regret, 0)


def test_the_comparator_belongs_to_the_horizon_that_is_played() -> None:
    """Tables may be longer than the game; what comes after it does not count."""
    values = np.concatenate([np.tile([0.0, 1.0], (50, 1)), np.tile([1.0, 0.0], (150, 1))])
    env = jb.Environment(jb.StochasticMapping(np.eye(2)), jb.TableLosses(values), jb.FixedDelay(2))
    table = jb.Environment(
        jb.TableMapping(np.tile([0, 1], (HORIZON, 1))), jb.TableLosses(values), jb.FixedDelay(2)
    )
    for problem in (env, table):
        assert problem.best_action(jnp.int32(60)) == 0
        assert problem.best_action(jnp.int32(HORIZON)) == 1


NO_RANDOMNESS = """
import numpy as np, jaxbio as jb
env = jb.Environment(
    jb.TableMapping(np.tile([0, 1], (50, 1))), jb.TableLosses(np.eye(2)[[0] * 50]), jb.FixedDelay(2)
)
class Always:
    def init(self, known): return None
    def act(self, state, t, u): return t * 0, None
    def learn(self, state, t, play, arrivals): return None, None
for learner in (jb.UCB1(), jb.pytree(Always)()):
    result = jb.simulate(env, learner, horizon=50, runs=3, rounds=1, progress=False)
    np.testing.assert_allclose(result.realized_regret, result.regret)
assert result.final_regret.tolist() == [50.0] * 3
"""


def test_a_game_without_randomness() -> None:
    """In a process of its own, which the compiler may end."""
    done = subprocess.run([sys.executable, "-c", NO_RANDOMNESS], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[:500]


# --- which rounds


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (1, [200]),
        (4, [50, 100, 150, 200]),
        (3, [67, 133, 200]),
        (200, range(1, 201)),
        (5000, range(1, 201)),
        ([9], [9, 200]),
        ([200, 3, 3, 120], [3, 120, 200]),
        (np.array([10.0, 20.0]), [10, 20, 200]),
    ],
)
def test_rounds_as_a_count_or_a_list(rounds: Any, expected: Any) -> None:
    name = "stochastic map, adversarial losses"
    result = simulate(REGIMES[name].env, Scripted(SCRIPT), rounds=rounds, runs=1)
    np.testing.assert_array_equal(result.rounds, list(expected))
    curve = np.array(pseudo_regret(SCRIPT.tolist(), **REGIMES[name].given))
    np.testing.assert_allclose(result.regret[0], curve[result.rounds - 1], atol=1e-4)


# --- facts


def outstanding(delays: np.ndarray) -> np.ndarray:
    """sigma_t, t = 1..T: rounds j <= t with j + d_j > t."""
    t = np.arange(1, HORIZON + 1)
    return np.sum((t[:, None] >= t) & (t + delays > t[:, None]), axis=1)


@pytest.mark.parametrize("delays", [DELAYS, np.zeros(HORIZON, int), np.full(HORIZON, 17)])
def test_facts_of_a_run(delays: np.ndarray) -> None:
    env = jb.Environment(jb.StochasticMapping(P), jb.BernoulliLosses(THETA), jb.TableDelay(delays))
    info = simulate(env, Scripted(SCRIPT), runs=2).info
    rounds = np.arange(1, HORIZON + 1)
    expected = {
        "arrived": np.sum(rounds + delays <= HORIZON),
        "rounds_fed": np.sum(rounds + delays <= HORIZON),
        "sigma_max": outstanding(delays).max(),
        "total_delay": theory.total_delay(delays.tolist()),
        "total_perceived_delay": theory.total_delay(delays.tolist()),
        "waiting_rounds": HORIZON,
        "switch_round": HORIZON + 1,
    }
    assert info.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(info[name], [value] * 2, err_msg=name)
