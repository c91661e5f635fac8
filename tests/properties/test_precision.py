"""Long horizons in float32: sums keep their bits, and memory does not grow.

How float32 is compared with float64. Two runs of a learner part at the first draw that falls
between two roundings, and from then on differ by chance: over 64 paired runs of 10^6 rounds the
final regrets differed by 1 % a run (standard deviation), so a mean would need thousands of runs to
show 0.1 %. Instead float64 is taken along the float32 run: same actions, same importance weights
(left alone, these would amplify the least difference), everything else computed in float64, and it
says with which probability it would have taken each action. On that path
sum_t gap(A_t) (p64(A_t) / p32(A_t) - 1) estimates, without bias, how much regret float64 would have
had on top of the sum_t gap(A_t) of float32; the ratios are so close to 1 that it has hardly any
noise.
"""

from __future__ import annotations

import gc
import importlib
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import AS_USERS
from jax import lax

import jaxbio as jb
from jaxbio import rng
from jaxbio.engine import player
from jaxbio.learners.exp3 import ExponentialTicket, weights
from jaxbio.learners.state_thompson import by_moments
from jaxbio.ops import (
    Wide,
    means_add,
    means_value,
    means_zero,
    select,
    sum_add,
    sum_zero,
    wide_add,
    wide_value,
    wide_zero,
)
from jaxbio.trees import as_arrays

sim = importlib.import_module("jaxbio.sweeps.simulate")

HORIZON = 1_000_000
SEED = 1
GAPS = np.array([0.0, 0.08, 0.06, 0.10])


# --- sums


def test_a_sum_of_ten_million_terms_keeps_its_bits() -> None:
    term = jnp.float32(0.3)

    def both(_: int, sums: Any) -> Any:
        return sum_add(sums[0], term), sums[1] + term

    careful, plain = jax.jit(lambda: lax.fori_loop(0, 10**7, both, (sum_zero(), jnp.float32(0))))()
    exact = 10**7 * float(term)
    assert abs(float(careful.total) - exact) <= exact * 2.0**-24
    assert abs(float(plain) - exact) > exact * 1e-3  # what a plain float32 sum would lose


def test_a_sum_of_small_and_large_terms() -> None:
    """Terms of both signs: 10^6 times (0.7, -0.4)."""
    pair = jnp.array([0.7, -0.4], jnp.float32)

    def add(_: int, total: Any) -> Any:
        return sum_add(sum_add(total, pair[0]), pair[1])

    total = jax.jit(lambda: lax.fori_loop(0, 10**6, add, sum_zero()))()
    exact = 10**6 * (float(pair[0]) + float(pair[1]))
    assert abs(float(total.total) - exact) <= 4 * exact * 2.0**-24


def test_a_wide_counter_goes_past_two_to_the_31() -> None:
    def count(i: Any, total: Wide) -> Wide:
        return wide_add(total, i + (1 << 20))

    total = jax.jit(lambda: lax.fori_loop(0, 10**6, count, wide_zero()))()
    exact = 10**6 * (1 << 20) + (10**6 - 1) * 10**6 // 2
    assert exact > 2**40
    assert int(total.high) * 2**24 + int(total.low) == exact
    assert abs(float(wide_value(total)) - exact) <= exact * 2.0**-23


def test_means_of_equal_losses_stay_that_loss() -> None:
    loss, due = jnp.full(3, 0.3, jnp.float32), jnp.array([True, True, False])
    states = jnp.array([0, 1, 1], jnp.int32)

    def observe(_: int, means: Any) -> Any:
        return means_add(means, states, loss, due)

    means = jax.jit(lambda: lax.fori_loop(0, 3 * 10**6, observe, means_zero(2)))()
    assert (np.asarray(means.count) == 3 * 10**6).all()
    np.testing.assert_allclose(means_value(means), np.float32(0.3), rtol=2.0**-22)


# --- float32 against float64


class EchoTicket(NamedTuple):
    weight: Any
    probability: Any


@jb.pytree
class Echo:
    """DAda-Exp3 that tells the probability of its action, or of the action it is made to take.

    forced: None, or actions int32 [T] and their weights float [T].
    """

    base: jb.DAdaExp3
    forced: Any = None

    def init(self, known: jb.Known) -> Any:
        return self.base.init(known)

    def act(self, state: Any, t: Any, u: Any) -> tuple[Any, EchoTicket]:
        action, ticket = self.base.act(state, t, u)
        weight = ticket.weight
        if self.forced is not None:
            action, weight = (
                lax.dynamic_index_in_dim(table, t - 1, keepdims=False) for table in self.forced
            )
        w = weights(state.cumulative, self.base.rate(state, t))
        return action, EchoTicket(weight, select(w, action) / jnp.sum(w))

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        ticket = ExponentialTicket(arrivals.play.ticket.weight, None)
        lanes = arrivals._replace(play=arrivals.play._replace(ticket=ticket))
        own = play._replace(ticket=ExponentialTicket(play.ticket.weight, None))
        return self.base.learn(state, t, own, lanes)[0], play.ticket


def run(forced: Any = None) -> dict[str, np.ndarray]:
    """One run of 10^6 rounds of MetaBIO over DAda-Exp3, in the precision of this process.

    With this seed no uniform, of 24 bits, lies between a probability in single and in double
    precision; one in 20 seeds has such a round, and then shows another state in it.
    """
    env = jb.make_environment("paper-stochastic")
    play = jax.jit(
        lambda tables: jb.trajectory(
            env, jb.MetaBIO(Echo(jb.DAdaExp3(0.05), tables), 0.1), SEED, HORIZON
        ),
        compiler_options=AS_USERS,
    )
    rounds = play(as_arrays(forced))
    values = {"action": rounds.action, "state": rounds.state, "loss": rounds.loss}
    return jax.tree.map(np.asarray, values | rounds.ticket.base._asdict())


def in_float64(single: dict[str, np.ndarray], folder: Path) -> dict[str, np.ndarray]:
    """The same run, action by action, in a process with 64-bit numbers."""
    np.savez(folder / "single.npz", allow_pickle=False, **single)
    code = (
        "import numpy as np, test_precision as t\n"
        f"single = np.load({str(folder / 'single.npz')!r})\n"
        "forced = single['action'], single['weight']\n"
        f"np.savez({str(folder / 'double.npz')!r}, **t.run(forced))\n"
    )
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    environment = os.environ | {"JAX_ENABLE_X64": "1", "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=environment)
    return dict(np.load(folder / "double.npz"))


@pytest.mark.slow
def test_regret_of_a_million_rounds_in_float32(tmp_path: Path) -> None:
    single = run()
    assert single["probability"].dtype == np.float32
    double = in_float64(single, tmp_path)
    assert double["probability"].dtype == np.float64
    for what in ("action", "state", "loss"):
        assert np.array_equal(single[what], double[what]), what
    ratio = double["probability"] / single["probability"].astype(np.float64)
    gaps = GAPS[single["action"]]
    difference = np.sum(gaps * (ratio - 1)) / np.sum(gaps)
    print(f"regret {gaps.sum():.0f}, relative difference {difference:.1e}, "
          f"largest of a probability {np.abs(ratio - 1).max():.1e}")  # fmt: skip
    assert np.sum(gaps) > 1000
    assert abs(difference) < 1e-3
    assert np.quantile(np.abs(ratio - 1), 0.99) < 1e-2


# --- ten million rounds of what a learner remembers of states

LONG = 10_000_000
SHOWN = np.array([[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.3, 0.7, 0.0], [0.5, 0.3, 0.2]])


class Long(NamedTuple):
    """What a learner holds after LONG rounds without delay, and what it was told: int [T]
    actions and states, float [T] weights of the play; the losses of a state are its mean.
    """

    state: Any
    actions: np.ndarray
    states: np.ndarray
    weights: np.ndarray


def long_game(learner: Any) -> Long:
    known = jb.Known(
        jnp.int32(3), jnp.int32(LONG), jnp.int32(0), num_actions=4, state_slots=3, ring_depth=64
    )
    theta, cdf = jnp.array([0.2, 0.4, 0.8]), jnp.cumsum(jnp.array(SHOWN, jnp.float32), axis=1)
    weighs = hasattr(learner, "rate")

    def one(state: Any, t: Any) -> Any:
        u, v = rng.round_uniforms(jnp.array([3, 7], jnp.uint32), t)
        action, ticket = (u * 4).astype(jnp.int32), None
        if weighs:  # else its draws are slow, and not what is asked about
            action, ticket = learner.act(state, t, u)
        shown = jnp.sum(v >= select(cdf, action)[:-1], dtype=jnp.int32)
        play = jb.Play(action, shown, select(theta, shown), ticket)
        lane = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], play)
        new, _ = learner.learn(state, t, play, jb.Arrivals(lane, jnp.array([True])))
        weight = getattr(ticket, "weight", jnp.float32(1))
        return new, (action.astype(jnp.int8), shown.astype(jnp.int8), weight)

    rounds = jnp.arange(1, LONG + 1, dtype=jnp.int32)
    play = jax.jit(lambda: lax.scan(one, learner.init(known), rounds), compiler_options=AS_USERS)
    return Long(*jax.tree.map(np.asarray, (lambda state, seen: (state, *seen))(*play())))


def shown_in_float64(game: Long) -> np.ndarray:
    """[K, S]: the weights of the rounds of each action and state."""
    cells = game.actions.astype(int) * 3 + game.states
    return np.bincount(cells, game.weights.astype(np.float64), 12).reshape(4, 3)


@pytest.mark.slow
def test_hindsight_after_ten_million_rounds() -> None:
    """W, and the probabilities that follow, against sums of the same weights in float64."""
    learner = jb.HindsightExp3()
    game = long_game(learner)
    exact = shown_in_float64(game)
    assert exact.max() > 5e6
    np.testing.assert_allclose(game.state.shown.total, exact, rtol=2.0**-23)
    assert float(game.state.rounds.total) == LONG + 1
    losses = exact @ np.array([0.2, 0.4, 0.8])
    rate = float(learner.rate(jax.tree.map(jnp.asarray, game.state), jnp.int32(LONG + 1)))
    expected = np.exp(-rate * (losses - losses.min()))
    found = np.exp(-rate * np.asarray(learner.losses(game.state), np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.slow
def test_state_thompson_counts_ten_million_rounds() -> None:
    """Every visit, and every loss."""
    state = long_game(jb.StateThompson()).state
    visits = np.asarray(state.visits.total, np.float64)
    assert visits.sum() == LONG
    np.testing.assert_allclose(visits / visits.sum(axis=1, keepdims=True), SHOWN, atol=1e-3)
    np.testing.assert_array_equal(visits.sum(axis=0), state.seen.count)
    np.testing.assert_allclose(means_value(state.seen), [0.2, 0.4, 0.8], rtol=2.0**-22)


def test_visits_past_the_integers_of_float32() -> None:
    learner = jb.StateThompson()
    known = jb.Known(
        jnp.int32(1), jnp.int32(9), jnp.int32(0), num_actions=2, state_slots=1, ring_depth=64
    )
    play = jb.Play(jnp.int32(1), jnp.int32(0), jnp.float32(0.5), None)
    lane = jb.Arrivals(jax.tree.map(lambda leaf: leaf[None], play), jnp.array([False]))
    start = learner.init(known)
    start = start._replace(visits=start.visits._replace(total=jnp.full((2, 1), 2.0**24)))
    more = jax.jit(
        lambda s: lax.fori_loop(
            0, 1001, lambda _, x: learner.learn(x, play.action, play, lane)[0], s
        )
    )(start)
    assert more.visits.total.tolist() == [[2.0**24], [2.0**24 + 1000]]
    assert float(more.visits.error[1, 0]) == -1.0


def test_samples_by_moments_have_those_of_the_exact_law() -> None:
    """10^6 draws from the Dirichlet law: mean and variance to 4.5 standard errors."""
    generator = np.random.default_rng(0)
    shape, theta = (
        np.array([[0.25, 3.25, 0.25, 1.25], [7.25, 0.25, 0.25, 0.25]]),
        generator.random(4),
    )
    u = (np.arange(100_000) + 0.5) / 100_000
    by_rows = jax.vmap(lambda x: by_moments(jnp.asarray(shape), jnp.asarray(theta), x))
    ours = np.asarray(by_rows(jnp.asarray(np.stack([u, u], axis=1), jnp.float32)), np.float64)
    for a in range(2):
        values = generator.dirichlet(shape[a], 1_000_000) @ theta
        variance = values.var()
        spread = np.sqrt(((values - values.mean()) ** 2 - variance).var() / 1e6)
        assert abs(ours[:, a].mean() - values.mean()) < 4.5 * np.sqrt(variance / 1e6)
        assert abs(ours[:, a].var() - variance) < 4.5 * spread + 1e-4 * variance


# --- memory


@pytest.mark.parametrize("backend", ["llvm", "vmap"])
@pytest.mark.parametrize("delays", [jb.FixedDelay(50), jb.LaplaceDelay(50, 25)])
def test_memory_does_not_grow_with_the_horizon(
    delays: Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what NumPy and JAX hold while a game is played, call by call."""
    env, learner = jb.make_environment("paper-stochastic", delays=delays), jb.DAdaExp3()
    live: list[int] = []

    def watched(*args: Any) -> Iterator[Any]:
        for call in CALLS(*args):
            yield call
            arrays = sum(array.nbytes for array in jax.live_arrays())
            live.append(arrays + tracemalloc.get_traced_memory()[0])

    monkeypatch.setattr(player, "calls", watched)
    monkeypatch.setattr(player, "ROUNDS_PER_CALL", 1000)
    monkeypatch.setattr(sim, "ring_sizes", lambda *_: (1024, 1 if env.delays.constant else 12))
    options = {"runs": 32, "rounds": 50, "workers": 1, "backend": backend, "progress": False}
    jb.simulate(env, learner, horizon=100, **options)  # compiled before anything is measured
    peaks = []
    for horizon in (2000, 16_000):
        live.clear()
        gc.collect()
        tracemalloc.start()
        before = sum(array.nbytes for array in jax.live_arrays())
        result = jb.simulate(env, learner, horizon=horizon, **options)
        tracemalloc.stop()
        assert result.regret.shape == (32, 50)
        assert len(live) >= horizon // 1000
        peaks.append(max(live) - before)
    assert peaks[0] > 32 * 4 * 1024  # the rings at least are seen
    assert peaks[1] <= 1.2 * peaks[0]  # of 8 times as many rounds, a few recorded numbers


CALLS = player.calls
