"""Running: rings of the right size, traced seeds, schedules, and what can only show in flight."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from helpers import BY_VMAP

import jaxbio as jb
from jaxbio.sweeps import workers
from jaxbio.trees import float_dtype

ENV = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(5))


@pytest.mark.parametrize("seed", range(8))
def test_losses_due_after_the_horizon_need_no_lanes(seed: int) -> None:
    """Many losses would arrive together just after the end; none of them takes a lane."""
    env = jb.make_environment("paper-stochastic", delays=jb.LaplaceDelay(50, 25))
    info = jb.simulate(env, jb.UCB1(), horizon=40, runs=64, seed=seed, progress=False).info
    assert (info["arrived"] < 40).all()


def test_all_losses_due_in_the_round_after_the_last() -> None:
    horizon = 30
    delays = jb.TableDelay(horizon + 1 - np.arange(1, horizon + 1))
    env = jb.make_environment("paper-stochastic", delays=delays)
    assert jb.ring_sizes(env, horizon)[1] == 1
    result = jb.simulate(env, jb.make_learner("metabio"), horizon=horizon, runs=2, progress=False)
    assert (result.info["arrived"] == 0).all()
    assert (result.info["sigma_max"] == horizon).all()


def test_rollout_maps_over_seeds_and_runs() -> None:
    def final(key: Any, run: Any) -> Any:
        return jb.rollout(ENV, jb.make_learner("metabio"), key, 50, run=run).loss[-1]

    one, runs, keys = jax.jit(final), jnp.arange(3), jax.random.split(jax.random.key(0), 3)
    by_run = jax.jit(jax.vmap(final, (None, 0)))(keys[0], runs)
    by_key = jax.jit(jax.vmap(final, (0, None)))(keys, 1)
    np.testing.assert_array_equal(by_run, [one(keys[0], run) for run in range(3)])
    np.testing.assert_array_equal(by_key, [one(key, 1) for key in keys])


def test_shapes_are_checked_under_jit() -> None:
    env = jb.Environment(
        jb.TableMapping(np.zeros((5, 2), int)), jb.BernoulliLosses([0.1, 0.2]), jb.FixedDelay(1)
    )
    with pytest.raises(ValueError, match="states has 5 rows, but the horizon is 20"):
        jax.jit(lambda env: jb.rollout(env, jb.UCB1(), 0, 20, ring_depth=64, lanes=1).loss)(env)


@pytest.mark.parametrize("backend", [None, "llvm", "vmap"])
def test_who_has_played_is_told(backend: str | None) -> None:
    options: Any = {"horizon": 20, "runs": 2, "backend": backend, "progress": False}
    name = backend or "llvm"
    assert jb.simulate(ENV, jb.UCB1(), **options).backend == name
    swept = jb.sweep(ENV, {"a": jb.UCB1()}, {}, **options)
    assert swept.attrs["backend"] == name


@pytest.mark.parametrize("play", ["simulate", "sweep"])
def test_a_backend_that_does_not_exist_is_refused(play: str) -> None:
    options: Any = {"horizon": 20, "runs": 2, "backend": "gpu", "progress": False}
    calls = {
        "simulate": lambda: jb.simulate(ENV, jb.UCB1(), **options),
        "sweep": lambda: jb.sweep(ENV, {"a": jb.UCB1()}, {}, **options),
    }
    with pytest.raises(ValueError, match=r"backend must be .*'llvm'.*'vmap'.*got 'gpu'"):
        calls[play]()


def test_a_constant_schedule_is_the_number_and_a_falling_one_is_not() -> None:
    def final(scale: Any) -> np.ndarray:
        learner = jb.MetaBIO(jb.DAdaExp3(scale=scale))
        return jb.simulate(ENV, learner, horizon=400, runs=4, progress=False).loss

    number = final(3.0)
    np.testing.assert_array_equal(final(optax.constant_schedule(3.0)), number)
    assert np.any(final(optax.linear_schedule(3.0, 0.1, 50)) != number)


def test_padding_past_any_switch_of_method_changes_no_bit() -> None:
    env = jb.make_environment("paper-utility", actions=2, states=30, delays=jb.FixedDelay(5))
    results = [
        jb.simulate(e, jb.NSDUCRL2(), horizon=150, runs=3, progress=False)
        for e in (env, env.padded(40))
    ]
    np.testing.assert_array_equal(results[0].loss, results[1].loss)
    np.testing.assert_array_equal(results[0].regret, results[1].regret)


@jb.pytree
class Broken:
    """Goes wrong in round 10 as `fault` says."""

    fault: str = jb.static(default="nan")

    def init(self, known: jb.Known) -> Any:
        return jnp.zeros((), float_dtype())

    def act(self, state: Any, t: Any, u: Any) -> tuple[Any, None]:
        return jnp.where((t == 10) & (self.fault == "range"), 4, 0), None

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> tuple[Any, None]:
        return jnp.where((t == 10) & (self.fault == "nan"), jnp.nan, state), None


@pytest.mark.parametrize(
    ("fault", "message"), [("nan", "state holds NaN"), ("range", "chose an action below 0 or not")]
)
def test_what_shows_in_flight_is_raised_when_it_lands(fault: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        jb.simulate(ENV, Broken(fault), horizon=20, runs=3, progress=False)
    with pytest.raises(RuntimeError, match=message):
        jb.rollout(ENV, Broken(fault), 0, 20)
    with pytest.raises(RuntimeError, match=message):
        jb.trajectory(ENV, Broken(fault), 0, 20)
    jb.simulate(ENV, Broken("none"), horizon=20, runs=3, progress=False)


def test_totals_past_2_to_the_24_are_exact() -> None:
    env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(3001))
    info = jb.simulate(env, jb.UCB1(), horizon=10_000, runs=1, progress=False).info
    assert info["total_delay"][0] == sum(min(3001, 10_000 - t) for t in range(1, 10_001))


@pytest.mark.filterwarnings(BY_VMAP)  # of float64
def test_realised_regret_keeps_the_precision_of_its_game() -> None:
    env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(5))
    with jax.enable_x64(True):
        inside = jb.simulate(env, jb.UCB1(), horizon=200, runs=2, progress=False)
        now = jb.simulate(env, jb.UCB1(), horizon=200, runs=2, progress=False).realized_regret
    np.testing.assert_array_equal(inside.realized_regret, now)


class Clock:
    """Shows 0 until it was looked at so many times, and then an hour later."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def monotonic(self) -> float:
        self.looks -= 1
        return 0.0 if self.looks >= 0 else 3600.0


def late_sweep(monkeypatch: pytest.MonkeyPatch, looks: int, **options: Any) -> workers.OutOfTime:
    """Three learners of 4 runs, one after the other, whose time is over after so many looks at the
    clock: two as the sweep begins to compile and to play, and two for each learner.
    """
    monkeypatch.setattr(workers, "time", Clock(looks))
    learners = {"a": jb.UCB1(), "b": jb.DAdaExp3(), "c": jb.make_learner("metabio")}
    with workers.time_limit(60), pytest.raises(workers.OutOfTime) as late:
        jb.sweep(ENV, learners, {}, horizon=50, runs=4, workers=1, progress=False, **options)
    return late.value


@pytest.mark.parametrize("stored", [False, True])
def test_a_sweep_whose_time_is_over_has_what_is_finished(
    stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = late_sweep(monkeypatch, 6, **({"store": tmp_path} if stored else {}))
    finals = dict(late.finals)
    first = jb.simulate(ENV, jb.UCB1(), horizon=50, runs=4, progress=False).final_regret
    np.testing.assert_array_equal(finals["a"], first)
    assert np.isfinite(finals["b"]).all()
    assert np.isnan(finals["c"]).all()
    assert (late.rounds, late.played) == (600, 400)


def test_nothing_is_played_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    late = late_sweep(monkeypatch, 2)
    assert all(np.isnan(regrets).all() for _, regrets in late.finals)
    assert late.played == 0


def test_a_limit_counts_compiling_where_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour passes after the first look at the clock."""
    given: dict[str, Any] = {"horizon": 20, "runs": 2, "workers": 1, "progress": False}
    for compiling in (False, True):
        monkeypatch.setattr(workers, "time", Clock(1))
        with workers.time_limit(60, compiling=compiling):
            if compiling:
                with pytest.raises(workers.OutOfTime):
                    jb.sweep(ENV, {"a": jb.UCB1()}, {}, **given)
            else:
                assert jb.sweep(ENV, {"a": jb.UCB1()}, {}, **given).final_regret.size == 2


def test_a_limit_ends_with_its_block() -> None:
    with workers.time_limit(0):
        pass
    assert jb.simulate(ENV, jb.UCB1(), horizon=20, runs=2, progress=False).final_regret.size == 2


DOOR: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a word for a bar": ({"progress": "abc"}, TypeError, "progress must be True or False"),
    "no number of bytes": ({"memory": "2GB"}, TypeError, "memory must be a number"),
    "bytes below 0": ({"memory": -5}, ValueError, "memory must be greater than 0"),
    "an array of bytes": ({"memory": np.ones(2)}, TypeError, "memory must be a number"),
    "a word for runs": ({"runs": "8"}, TypeError, "runs must be an integer"),
    "no rounds": ({"rounds": 0}, ValueError, "rounds must be at least 1"),
    "a seed too large": ({"seed": 2**32}, ValueError, "seed must be in"),
}


@pytest.mark.parametrize("what", DOOR)
def test_errors_at_the_front_door(what: str) -> None:
    options, kind, message = DOOR[what]
    with pytest.raises(kind, match=message):
        jb.simulate(ENV, jb.UCB1(), **({"horizon": 50, "runs": 2, "progress": False} | options))


def test_more_recorded_rounds_than_there_are_are_all_rounds() -> None:
    found = jb.rollout(ENV, jb.UCB1(), 0, 50, rounds=2**30)
    np.testing.assert_array_equal(found.rounds, np.arange(1, 51))


def test_more_rounds_than_can_be_recorded_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxbio.checks.memory.free_memory", lambda: 1e9)
    with pytest.raises(MemoryError, match=r"rounds=1,000,000,000 takes .* use fewer rounds="):
        jb.simulate(ENV, jb.UCB1(), horizon=10**9, rounds=10**9, progress=False)


@pytest.mark.parametrize(
    ("delay", "options", "remedy"),
    [
        (10**7, {"runs": 16}, "use fewer workers=, a smaller width="),
        (5, {"runs": 10**9}, "use fewer rounds= or runs="),
    ],
)
def test_games_without_room_are_refused(delay: int, options: dict[str, Any], remedy: str) -> None:
    env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(delay))
    learner = jb.make_learner("metabio")
    tracemalloc.start()
    with pytest.raises(MemoryError, match=r"simulate: .* more than the 2 GB there are") as found:
        jb.simulate(
            env, learner, horizon=2 * 10**7, memory=2e9, workers=1, progress=False, **options
        )
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert remedy in str(found.value)
    assert most < 20_000_000


def test_sizes_of_what_is_no_environment() -> None:
    nothing: Any = None
    with pytest.raises(TypeError, match="env must be an Environment, but got None"):
        jb.ring_sizes(nothing, 50)
    word: Any = "a"
    with pytest.raises(TypeError, match="ring_depth must be an integer, but got 'a'"):
        jb.rollout(ENV, jb.UCB1(), 0, 50, ring_depth=word)


def test_a_sweep_that_fits_with_one_worker_takes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless somebody asks for more."""
    monkeypatch.setattr("jaxbio.sweeps.workers.os.sched_getaffinity", lambda _: {0, 1})
    learners = {"a": jb.UCB1(), "b": jb.DAdaExp3()}

    def planned(**options: Any) -> Any:
        return jb.plan_sweep(ENV, learners, {}, horizon=50, runs=4, rounds=1, **options)

    one, two = planned(workers=1), planned(workers=2)
    between = (one.bytes + two.bytes) / 2
    assert planned().bytes == two.bytes > one.bytes
    assert planned(memory=between).bytes == one.bytes
    arguments = {"horizon": 50, "runs": 4, "rounds": 1, "progress": False, "memory": between}
    found = jb.sweep(ENV, learners, {}, **arguments)
    np.testing.assert_array_equal(
        found.final_regret.sel(learner="a"),
        jb.simulate(ENV, jb.UCB1(), horizon=50, runs=4, rounds=1, progress=False).final_regret,
    )
    with pytest.raises(MemoryError, match="fewer workers="):
        jb.sweep(ENV, learners, {}, workers=2, **arguments)
