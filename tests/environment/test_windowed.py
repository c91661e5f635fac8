"""Windows and observed delays in whole games: what is shown, what regret counts, how many lanes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr
from helpers import THETA, P, forget_programs
from scipy.stats import poisson

import jaxbio as jb
from jaxbio.analysis import windows
from jaxbio.core import looks
from jaxbio.engine import player
from jaxbio.engine.rules import GAME
from jaxbio.environment.delays import NEVER, most_together

HORIZON = 400
ROWS = np.random.default_rng(0).dirichlet(np.full(40, 0.5), 3)


def world(delays: Any, losses: Any = None) -> jb.Environment:
    losses = jb.BernoulliLosses(THETA) if losses is None else losses
    return jb.Environment(jb.StochasticMapping(P), losses, delays)


def play(env: jb.Environment, learner: Any, **options: Any) -> jb.Result:
    settings = {"horizon": HORIZON, "runs": 24, "seed": 1, "rounds": 5, "progress": False}
    return jb.simulate(env, learner, **(settings | options))


# --- laws


@pytest.mark.parametrize("length", [1, 126, 127, 128, 5000])
def test_probabilities_are_kept_to_the_last_word(length: int) -> None:
    """Of the 2**32 words as many belong to each delay as its probability says, to one word."""
    given = np.random.default_rng(length).dirichlet(np.full(length, 0.2)) * 0.75
    law = jb.EmpiricalDelay(given, never=0.25)
    masses = law.masses()
    assert masses.sum() == 1
    kept = len(masses) - 1
    assert kept == law.longest() + 1
    assert given[kept:].sum() < 2**-31
    np.testing.assert_allclose(masses[:-1], given[:kept], rtol=0, atol=2.0**-32)
    assert abs(masses[-1] - 0.25) <= 2.0**-32
    assert not masses[:-1][given[:kept] == 0].any()


def test_a_law_of_a_sample_and_of_a_survival_curve() -> None:
    sample, states = [3, 0, 3, 9, 1, 0, 0, 3], [0, 0, 0, 0, 1, 1, 1, 1]
    law = jb.EmpiricalDelay.from_delays(sample)
    np.testing.assert_array_equal(law.masses(), np.bincount(sample, minlength=11) / 8)
    assert (law.longest(), looks(law), law.num_states) == (9, False, None)
    both = jb.EmpiricalDelay.from_delays(sample, states)
    wanted = [np.bincount(sample[:4], minlength=11) / 4, np.bincount(sample[4:], minlength=11) / 4]
    np.testing.assert_array_equal(both.masses(), wanted)
    assert (both.longest(), looks(both), both.num_states) == (9, True, 2)
    curve = jb.EmpiricalDelay.from_survival([0.75, 0.75, 0.25])
    np.testing.assert_array_equal(curve.masses(), [0.25, 0, 0.5, 0.25])
    assert curve.never == 0.25
    with pytest.raises(ValueError, match="delays must be <= 16777213"):
        jb.EmpiricalDelay.from_delays([1, 2**24 - 2])


def test_what_never_comes_needs_no_room() -> None:
    """The ring is as deep as the longest delay after which a loss comes, and nothing is lost."""
    env = world(jb.EmpiricalDelay(np.full(10, 0.05), never=0.5))
    assert jb.ring_sizes(env, 10**6) == (80, 16)
    info = play(env, jb.UCB1()).info
    waiting = HORIZON - info["arrived"]
    assert abs(waiting.mean() - HORIZON / 2) < 5 * np.sqrt(HORIZON / 4 / 24)  # 5 standard errors
    delays = jb.sample_world(env, 0, 0, HORIZON)["delays"]
    assert set(delays[delays > 9]) == {NEVER}


def test_delays_may_be_far_apart() -> None:
    """Three of them, in a table of three; drawn as often as they should, to 5 standard errors."""
    law = jb.EmpiricalDelay([[0.5, 0.3, 0.1], [0.0, 0.2, 0.6]], never=[0.1, 0.2], values=[0, 7, 90])
    assert (law.longest(), looks(law), law.num_states) == (90, True, 2)
    table = jb.StochasticMapping(np.full((2, 2), 0.5))
    env = jb.Environment(table, jb.BernoulliLosses([0.5, 0.5]), law)
    delays = jb.sample_world(env, 0, 0, 20_000)["delays"]
    for state, wanted in enumerate(law.masses()):
        shares = [np.mean(delays[:, state] == value) for value in (0, 7, 90, NEVER)]
        assert np.all(np.abs(shares - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / 20_000))
    assert jb.EmpiricalDelay([1.0, 0.0], values=[4, 5]).longest() == 4
    assert most_together(law, 100) == most_together(jb.EmpiricalDelay([[0.5, 0.3, 0.1, 0],
        [0, 0.2, 0, 0.6]], never=[0.1, 0.2]), 100)  # fmt: skip


def test_a_coarser_law_is_nearly_the_same() -> None:
    """What comes within a window is the same to the last word, short delays are, and the mean of
    all states together; each state's own mean is, to the width of a step.
    """
    late = np.random.default_rng(1).lognormal(9, 1.2, (3, 40_000)).astype(int)
    states = np.repeat([0, 1, 2], 40_000)
    law = jb.EmpiricalDelay.from_delays(np.minimum(late.ravel(), 10**6), states)
    rough = law.coarser(64, edges=[12_345])
    own, other = law.masses(), rough.masses()
    assert rough.cells.shape == (3, 1024)
    assert len(rough.values) == other.shape[1] - 1 < 900
    for end in (255, 256, 12_345):
        within = other[:, :-1][:, np.asarray(rough.values) <= end].sum(axis=1)
        np.testing.assert_allclose(within, own[:, : end + 1].sum(axis=1), atol=2.0**-31)
    np.testing.assert_array_equal(other[:, :200], own[:, :200])
    means = own[:, :-1] @ np.arange(own.shape[1] - 1), other[:, :-1] @ np.asarray(rough.values)
    np.testing.assert_allclose(means[1], means[0], rtol=2e-3)
    assert means[1].sum() == pytest.approx(means[0].sum(), rel=1e-5)
    again = rough.coarser(4)
    assert len(again.values) < 320
    assert again.masses()[:, :-1] @ again.values == pytest.approx(means[0], rel=2e-2)
    short = jb.EmpiricalDelay([0.5, 0.25], never=0.25)
    np.testing.assert_array_equal(short.coarser().masses(), short.masses())
    assert not looks(short.coarser())


# --- windows


def test_a_window_over_equal_delays_hides_nothing() -> None:
    """All losses are known after 30 rounds, so it is the game with that fixed delay."""
    fixed, learner = jb.FixedDelay(30), jb.make_learner("metabio")
    expected, found = play(world(fixed), learner), play(world(jb.WindowedDelay(fixed, 30)), learner)
    np.testing.assert_array_equal(found.regret, expected.regret)
    np.testing.assert_array_equal(found.realized_regret, expected.realized_regret)
    np.testing.assert_array_equal(found.info["sigma_max"], expected.info["sigma_max"])


@pytest.mark.parametrize("losses", [None, jb.BetaLosses(THETA, 3.0)], ids=["coins", "graded"])
def test_regret_counts_what_the_learner_is_not_shown(losses: Any) -> None:
    """No conversion is in time: the learner sees nothing but losses of 1, `loss` what there was."""
    env = world(jb.WindowedDelay(jb.FixedDelay(3), 2), losses)
    rounds = jax.device_get(jb.trajectory(env, jb.UCB1(), 0, HORIZON))
    record = jb.rollout(env, jb.UCB1(), 0, HORIZON, rounds=4)
    assert np.all(rounds.shown == 1)
    assert np.all(rounds.delay == 2)
    table = jb.sample_world(env, 0, 0, HORIZON)
    np.testing.assert_allclose(
        rounds.loss, table["losses"][np.arange(HORIZON), rounds.state], rtol=2e-6
    )
    assert rounds.loss.mean() < 0.8
    costs = P @ THETA
    regret = np.cumsum((costs - costs.min())[rounds.action])
    np.testing.assert_allclose(record.regret, regret[record.rounds - 1], rtol=1e-5)
    assert regret[-1] > 0.5 * HORIZON * (costs.mean() - costs.min())  # nothing to learn from
    every = np.take_along_axis(table["losses"], table["states"], axis=1).sum(axis=0)
    realised = rounds.loss.sum() - every.min()
    np.testing.assert_allclose(record.realized_regret[-1], realised, rtol=1e-4)


def test_a_binary_loss_that_is_shown_as_another_one_keeps_its_value() -> None:
    """A loss of 1/2 does not fit into the one bit of a coin."""
    env = world(jb.WindowedDelay(jb.FixedDelay(9), 4, absent=0.5), jb.BernoulliLosses([1, 1, 1]))
    record = jb.rollout(env, Averaging(), 0, HORIZON, rounds=1)
    assert record.info["mean"] == 0.5


@jb.pytree
class Averaging:
    """Plays action 0 and reports the mean of the losses that arrive."""

    def init(self, known: Any) -> Any:
        return np.float32(0), np.int32(0)

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return np.int32(0), None

    def learn(self, state: Any, t: Any, play: Any, arrivals: Any) -> Any:
        total, count = state
        return (total + arrivals.play.loss.sum(), count + arrivals.due.sum(dtype=np.int32)), None

    def facts(self, state: Any) -> dict[str, Any]:
        return {"mean": state[0] / state[1].astype(np.float32)}


def test_what_a_learner_is_shown_on_average() -> None:
    """absent + (theta - absent) P(d <= window), to 5 standard errors (false alarm 6e-7)."""
    law = jb.WindowedDelay(jb.EmpiricalDelay(ROWS), 15)
    seen = jb.sample_world(world(law), 0, 0, 20_000)["shown"].mean(axis=0)
    mean = 1 - (1 - THETA) * ROWS[:, :16].sum(axis=1)
    assert np.all(np.abs(seen - mean) < 5 * np.sqrt(mean * (1 - mean) / 20_000))


# --- lanes


def test_lanes() -> None:
    """One loss ends with its window, and conversions arrive besides."""
    by_state = jb.EmpiricalDelay(ROWS)
    mean = ROWS[:, 1:].max(axis=0).sum()
    most = int(poisson.isf(1e-14, mean))
    assert most > 16
    table = jb.TableDelay(np.arange(HORIZON)[::-1] % 20)  # 20 arrive together
    laws = {
        jb.WindowedDelay(jb.FixedDelay(3), 30): 2,
        jb.WindowedDelay(table, 30): most_together(table, HORIZON) + 1,
        jb.WindowedDelay(jb.GeometricDelay(9), 30): 16,
        jb.WindowedDelay(jb.GeometricDelay(9), 5): 5,
        by_state: most,
        jb.WindowedDelay(by_state, 30): most + 1,
    }
    assert [most_together(law, HORIZON) for law in laws] == list(laws.values())


@jb.pytree
class Crowding:
    """Plays the action whose loss arrives in the next round that is a multiple of 8."""

    ignores_empty_lanes = True

    def init(self, known: Any) -> Any:
        return np.int32(0)

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return 7 - t % 8, None

    def learn(self, state: Any, t: Any, play: Any, arrivals: Any) -> Any:
        return state, None


def test_losses_that_a_learner_makes_arrive_together_find_lanes() -> None:
    """With delays by state the actions decide how many arrive in one round."""
    states = np.tile(np.arange(8), (HORIZON, 1))
    law = jb.WindowedDelay(jb.EmpiricalDelay(np.eye(9)[1:]), 30, absent=0.5)
    losses = jb.BernoulliLosses(np.full(8, 0.5))
    env = jb.Environment(jb.TableMapping(states, 8), losses, law)
    assert jb.rollout(env, Crowding(), 0, HORIZON).info["sigma_max"] >= 7
    with pytest.raises(RuntimeError, match="more losses arrived in one round than the ring has"):
        jb.rollout(env, Crowding(), 0, HORIZON, lanes=7)


# --- sweeps


def test_windows_are_swept_by_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every point is the games that `simulate` plays, and `in_time` what the law says, to about 5
    standard errors (at least 80 rounds of a state have a conversion).
    """
    forget_programs(monkeypatch)
    law, waits = jb.EmpiricalDelay(ROWS), [0, 5, 39]
    options: dict[str, Any] = {"horizon": HORIZON, "runs": 24, "seed": 1, "rounds": 5}
    data = jb.sweep_windows(world(law), {"ucb1": jb.UCB1()}, waits, **options, progress=False)
    assert [one.rules for one in player._players.values()].count(GAME) == 1
    for window in waits:
        one = play(world(jb.WindowedDelay(law, window)), jb.UCB1())
        found = data.regret.sel(learner="ucb1", window=window)
        np.testing.assert_allclose(found, one.regret, rtol=1e-6)
    assert len(np.unique(data.final_regret.mean("run"))) == len(waits)
    shares = np.cumsum(ROWS, axis=1)[:, waits].T
    error = np.sqrt(shares * np.maximum(0, 1 - shares) / (HORIZON * (1 - THETA)))
    assert data.in_time.dims == ("window", "state")
    assert np.all(np.abs(data.in_time.values - shares) <= 5 * error + 1e-9)


def test_conversions_in_time_are_counted_first_and_in_as_many_rounds_as_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is wrong with them is not said after hours of games."""
    done: list[str] = []

    def games(*_: Any, **__: Any) -> xr.Dataset:
        done.append("games")
        return xr.Dataset(coords={"window": [5], "state": range(3)})

    def drawn(env: jb.Environment, seed: Any, run: int, rounds: int) -> Any:
        done.append(f"{rounds} rounds")
        return jb.sample_world(env, seed, run, rounds)

    monkeypatch.setattr(windows, "sweep", games)
    monkeypatch.setattr(windows, "sample_world", drawn)
    monkeypatch.setattr(windows.memory, "free_memory", lambda: 1e6)
    env = world(jb.EmpiricalDelay(ROWS))
    jb.sweep_windows(env, {"ucb1": jb.UCB1()}, [5], horizon=10**6)
    numbers = len(P) + 3 * 3  # states of actions; losses, delays and what is shown of states
    assert done == [f"{int(5e5 / (40 * numbers))} rounds", "games"]


def test_windows_are_swept_over_several_problems() -> None:
    """Problem i is played in the world of run i, and conversions of all are counted together."""
    laws = [jb.EmpiricalDelay(ROWS), jb.EmpiricalDelay(ROWS[::-1])]
    envs, waits = [world(law) for law in laws], [0, 39]
    options: dict[str, Any] = {"horizon": HORIZON, "seed": 1, "rounds": 5, "progress": False}
    data = jb.sweep_windows(envs, {"ucb1": jb.UCB1()}, waits, runs=1, **options)
    assert dict(data.sizes)["world"] == 2
    for i, law in enumerate(laws):
        alone = play(world(jb.WindowedDelay(law, 39)), jb.UCB1(), runs=2)
        found = data.regret.sel(learner="ucb1", window=39, world=i)
        np.testing.assert_array_equal(found.squeeze(), alone.regret[i])
    mean = (ROWS[:, 0] + ROWS[::-1, 0]) / 2
    np.testing.assert_allclose(data.in_time.sel(window=0), mean, atol=0.15)
    assert np.all(data.in_time.sel(window=39) == 1)
    with pytest.raises(TypeError, match="env must be an Environment, but got"):
        jb.sweep_windows([], {"ucb1": jb.UCB1()}, waits, **options)
