"""A run is a function of (seed, run index) alone, bit for bit.

Whatever the width of the blocks, their number, the workers, the padding of the states, the size of
the ring or the way the host cuts the horizon, run i is the same game, and `rollout` plays it too.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbio as jb
from jaxbio.learners import tsallis

sim = importlib.import_module("jaxbio.simulate")

HORIZON = 700
POINTS = (320, 700)
RUNS = 11
SEED = 3


def fixed() -> jb.Environment:
    return jb.make_environment("paper-stochastic", delays=jb.FixedDelay(50))


def laplace() -> jb.Environment:
    return jb.make_environment("paper-stochastic", delays=jb.LaplaceDelay(50, 25))


@dataclasses.dataclass(frozen=True)
class Case:
    """A learner in a problem, and which variations of the run to play."""

    learner: Any
    env: jb.Environment
    widths: tuple[int, ...] = (3,)
    slots: int = 0
    ring: tuple[int, int] = (0, 0)  # depth, lanes
    jit: bool = False


CASES = {
    "dada-exp3, fixed": Case(
        jb.make_learner("dada-exp3"), fixed(), (1, 3, 32, 128), slots=7, ring=(1024, 1), jit=True
    ),
    "metabio, fixed": Case(jb.make_learner("metabio"), fixed(), (32,)),
    "metabio, laplace": Case(
        jb.make_learner("metabio"), laplace(), (3, 128), slots=16, ring=(4096, 19), jit=True
    ),
    "dada-exp3-skipping, laplace": Case(
        jb.make_learner("dada-exp3-skipping"), laplace(), (32,), ring=(4096, 19)
    ),
    "metaadabio, laplace": Case(
        jb.make_learner("metaadabio", rule="practical", switch_scale=0.5), laplace(), slots=7
    ),
    "tsallis-inf, fixed": Case(jb.make_learner("tsallis-inf"), fixed()),
    "ucb1, laplace": Case(jb.make_learner("ucb1"), laplace()),
    "nsd-ucrl2, fixed": Case(jb.make_learner("nsd-ucrl2"), fixed(), slots=7),
    "thompson, laplace": Case(jb.make_learner("thompson"), laplace(), (128,)),
}


def play(case: Case, **options: Any) -> jb.Result:
    base = {"horizon": HORIZON, "runs": RUNS, "seed": SEED, "rounds": POINTS, "width": 8}
    return jb.simulate(case.env, case.learner, **(base | {"progress": False} | options))


def same(expected: jb.Result, other: jb.Result, what: str) -> None:
    """The runs that both have are equal, bit for bit."""
    n = min(len(expected.regret), len(other.regret))
    assert np.array_equal(expected.regret[:n], other.regret[:n]), f"regret under {what}"
    assert np.array_equal(expected.loss[:n], other.loss[:n]), f"loss under {what}"
    assert expected.info.keys() == other.info.keys()
    for name, values in expected.info.items():
        assert np.array_equal(values[:n], other.info[name][:n]), f"{name} under {what}"


def variations(case: Case, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, jb.Result]]:
    """The same runs, played in other ways."""
    yield "another number of runs and workers", play(case, runs=2, workers=1)
    for width in case.widths:
        yield f"width {width}", play(case, width=width, runs=2 if width == 1 else RUNS)
    if case.slots:
        padded = dataclasses.replace(case, env=case.env.padded(case.slots))
        yield f"{case.slots} state slots", play(padded)
    if case.ring != (0, 0):
        with patch.context() as context:
            context.setattr(sim, "ring_sizes", lambda *_: case.ring)
            yield f"a ring of {case.ring}", play(case)


@pytest.fixture(autouse=True)
def few_newton_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tsallis-INF compiles five times faster, and rounds as it does with more steps."""
    monkeypatch.setattr(tsallis, "OUTER_STEPS", 3)
    monkeypatch.setattr(tsallis, "INNER_STEPS", 2)


@pytest.mark.parametrize("name", CASES)
def test_a_run_is_the_same_game_however_it_is_played(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    expected = play(case)
    assert len(np.unique(expected.final_regret)) > RUNS - 3  # the runs do differ
    for what, result in variations(case, monkeypatch):
        same(expected, result, what)
    sizes = jb.ring_sizes(case.env, SEED, range(RUNS), HORIZON)
    rolled_out(case, expected, sizes)


def rolled_out(case: Case, expected: jb.Result, sizes: tuple[int, int]) -> None:
    """`rollout`, vmapped or one run at a time, plays the runs of `simulate`."""

    def one(run: Any) -> jb.Record:
        return jb.rollout(
            case.env, case.learner, SEED, HORIZON, run=run, rounds=POINTS,
            ring_depth=sizes[0], lanes=sizes[1],
        )  # fmt: skip

    records = [(jax.jit(jax.vmap(one))(jnp.arange(RUNS)), slice(RUNS))]
    if case.jit:
        single = jax.jit(one)(jnp.int32(2))
        records.append((jax.tree.map(lambda x: x[None], single), slice(2, 3)))
    for record, runs in records:
        # Regret is recorded twice, so rollout's float32 sum is simulate's float64 sum, rounded.
        assert np.array_equal(record.regret, expected.regret[runs].astype(np.float32))
        assert np.array_equal(record.loss, expected.loss[runs])
        for what, values in expected.info.items():
            assert np.array_equal(record.info[what], values[runs]), what


def test_the_order_of_the_calls_and_what_else_is_played_do_not_matter() -> None:
    first, second = CASES["dada-exp3, fixed"], CASES["metabio, fixed"]
    before = play(first), play(second)
    after = play(second), play(first)
    same(before[0], after[1], "another order")
    same(before[1], after[0], "another order")
    assert not np.array_equal(before[0].regret, play(first, seed=SEED + 1).regret)


def test_workers_and_blocks_do_not_matter() -> None:
    case = CASES["metabio, laplace"]
    expected = play(case, runs=30, workers=1)
    same(expected, play(case, runs=30, workers=4), "four workers")
    again = play(case, runs=30, workers=3)
    assert np.array_equal(expected.realized_regret, again.realized_regret)


def test_calls_may_be_cut_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many recorded rounds and how many rounds one call plays never shows in the results.

    Stops at recorded rounds only: there the tallies begin anew in any case.
    """
    case = CASES["metabio, fixed"]
    rounds = range(50, HORIZON + 1, 50)
    expected = play(case, rounds=rounds)
    monkeypatch.setattr(sim, "ROUNDS_PER_CALL", 100)
    same(expected, play(case, rounds=rounds), "calls of 100 rounds")
    monkeypatch.setattr(sim, "STOPS_PER_CALL", 3)
    same(expected, play(case, rounds=rounds), "three recorded rounds per call")


def test_stops_between_recorded_rounds_only_round_the_sum_of_regret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stop at a round that is not recorded leaves the game alone, bit for bit.

    The regret between two recorded rounds is then added up from several float32 tallies, each
    rounded once: the last bits of that sum are all that can change.
    """
    case = CASES["metabio, fixed"]
    expected = play(case)
    monkeypatch.setattr(sim, "ROUNDS_PER_CALL", 97)
    cut = play(case)
    assert np.array_equal(expected.loss, cut.loss)
    for name, values in expected.info.items():
        assert np.array_equal(values, cut.info[name]), name
    np.testing.assert_allclose(cut.regret, expected.regret, rtol=2.0**-22)


def test_recording_more_rounds_does_not_change_the_game() -> None:
    case = CASES["dada-exp3, fixed"]
    few, many = play(case, rounds=1), play(case, rounds=HORIZON)
    assert np.array_equal(few.loss[:, -1], many.loss[:, -1])
    np.testing.assert_allclose(few.final_regret, many.final_regret, rtol=2.0**-22)
    same(few, dataclasses.replace(many, regret=few.regret, loss=few.loss), "more records")


ON_THREE_DEVICES = """
import json, sys, jax, jaxbio as jb
jax.config.update("jax_num_cpu_devices", 3)
assert len(jax.devices()) == 3
env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(50))
result = jb.simulate(env, jb.make_learner("dada-exp3"), horizon=700, runs=11, seed=3,
                     rounds=(320, 700), width=8, progress=False)
print(json.dumps([result.regret.tolist(), result.loss.tolist()]))
"""


def test_the_number_of_devices_does_not_matter() -> None:
    expected = play(CASES["dada-exp3, fixed"])
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ON_THREE_DEVICES],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    regret, loss = json.loads(done.stdout)
    assert np.array_equal(regret, expected.regret)
    assert np.array_equal(loss, expected.loss)
