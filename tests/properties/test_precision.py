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
from jaxbio.engine import player
from jaxbio.learners.exp3 import ExponentialTicket, weights
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
        return self.base.learn(state, t, play, lanes)[0], play.ticket


def run(forced: Any = None) -> dict[str, np.ndarray]:
    """One run of 10^6 rounds of MetaBIO over DAda-Exp3, in the precision of this process."""
    env = jb.make_environment("paper-stochastic")
    play = jax.jit(
        lambda tables: jb.trajectory(
            env, jb.MetaBIO(Echo(jb.DAdaExp3(0.05), tables), 0.1), 0, HORIZON
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
