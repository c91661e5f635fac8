"""A run is a function of (seed, run index) alone, bit for bit.

Whatever the width of the blocks, their number, the workers, the padding of the states, the size of
the ring, its boxes and lanes, or the way the host cuts the horizon, run i is the same game, bit for
bit, with each back-end. `rollout` plays it too: every loss and every fact is the same, regret to
rounding (XLA contracts products and sums, LLVM's code does not).
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
from helpers import forget_programs, with_boxes

import jaxbio as jb
from jaxbio import rng
from jaxbio.engine import player
from jaxbio.engine import round as rounds
from jaxbio.engine.backends import native, vmap
from jaxbio.engine.round import is_late, make_game
from jaxbio.environment import delays as laws

sim = importlib.import_module("jaxbio.sweeps.simulate")

HORIZON = 700
POINTS = (320, 700)
RUNS = 11
SEED = 3


def fixed() -> jb.Environment:
    return jb.make_environment("paper-stochastic", delays=jb.FixedDelay(50))


def laplace() -> jb.Environment:
    return jb.make_environment("paper-stochastic", delays=jb.LaplaceDelay(50, 25))


def windowed() -> jb.Environment:
    """Delays that look at states and losses, and change what is shown of a loss."""
    law = jb.EmpiricalDelay(np.random.default_rng(0).dirichlet(np.ones(90), 3) * 0.8, never=0.2)
    return jb.make_environment("paper-stochastic", delays=jb.WindowedDelay(law, 50, absent=0.0))


def large() -> jb.Environment:
    """Axes beyond those that are written out; its table of states is searched."""
    return jb.make_environment("paper-utility", actions=40, states=9, delays=jb.FixedDelay(50))


@dataclasses.dataclass(frozen=True)
class Case:
    """A learner in a problem, and which variations of the run to play."""

    learner: Any
    env: jb.Environment
    widths: tuple[int, ...] = (48,)
    slots: int = 0
    ring: tuple[int, int] | None = None  # depth, lanes
    boxes: tuple[int, ...] = ()
    rollout: bool = False  # test_contract.py has every learner
    backends: tuple[str, ...] = ()  # that play the same, each for itself; one by itself is llvm
    ladder: tuple[int, ...] = ()  # another one


CASES = {
    "dada-exp3, fixed": Case(
        jb.make_learner("dada-exp3"),
        fixed(),
        (1, 3, 128),
        slots=7,
        ring=(1000, 1),
        rollout=True,
        backends=("vmap",),
    ),
    "metabio, fixed": Case(jb.make_learner("metabio"), fixed()),
    "metabio, laplace": Case(
        jb.make_learner("metabio"),
        laplace(),
        slots=16,
        ring=(3999, 40),
        boxes=(1, 3, 7),  # tests/engine/test_ring.py has others
        ladder=(1, 2, 4, 8),
        rollout=True,
        backends=("vmap",),
    ),
    "ucb1, delays by state within a window": Case(
        jb.make_learner("ucb1"),
        windowed(),
        (3,),
        slots=7,
        ring=(200, 40),
        boxes=(1,),
        rollout=True,
        backends=("vmap",),
    ),
    "dada-exp3-skipping, laplace": Case(
        jb.make_learner("dada-exp3-skipping"), laplace(), ring=(4096, 19)
    ),
    "metaadabio, laplace": Case(
        jb.make_learner("metaadabio", rule="practical", switch_scale=0.5), laplace()
    ),
    "tsallis-inf, fixed": Case(jb.make_learner("tsallis-inf"), fixed()),
    "ucb1, laplace": Case(jb.make_learner("ucb1"), laplace(), boxes=(1,), ladder=(2,)),
    "nsd-ucrl2, fixed": Case(jb.make_learner("nsd-ucrl2"), fixed(), slots=7),
    "nsd-ucrl2 with a window, laplace": Case(
        jb.make_learner("nsd-ucrl2", window=300), laplace(), ladder=(6,)
    ),
    "dada-exp3, 40 actions": Case(jb.make_learner("dada-exp3"), large(), slots=40, rollout=True),
    "ucb1, 40 actions": Case(jb.make_learner("ucb1"), large(), rollout=True),
    "thompson, laplace": Case(jb.make_learner("thompson"), laplace()),
    "ucb1 with a discount, laplace": Case(
        jb.make_learner("ucb1", discount=0.99), laplace(), slots=7, boxes=(1,), backends=("vmap",)
    ),
    "thompson with a discount, laplace": Case(
        jb.make_learner("thompson", discount=0.99, proposals=3), laplace(), backends=("vmap",)
    ),
    "hindsight-exp3 with a discount, laplace": Case(
        jb.make_learner("hindsight-exp3", discount=0.99), laplace(), slots=7
    ),
    "hindsight-tsallis of bounds, fixed": Case(
        jb.make_learner("hindsight-tsallis", estimator="lcb"), fixed(), slots=40
    ),
    "state-thompson with a discount, laplace": Case(
        jb.make_learner("state-thompson", discount=0.99), laplace(), slots=7, backends=("vmap",)
    ),
    "state-thompson that forgets losses, laplace": Case(
        jb.make_learner("state-thompson", loss_discount=0.99), laplace(), slots=7
    ),
    "state-thompson, exact, fixed": Case(
        jb.make_learner("state-thompson", sampler="exact"), fixed(), slots=40
    ),
}


def play(case: Case, **options: Any) -> jb.Result:
    base: dict[str, Any] = {
        "horizon": HORIZON,
        "runs": RUNS,
        "seed": SEED,
        "rounds": POINTS,
        "width": 8,
        "progress": False,
    }
    return jb.simulate(case.env, case.learner, **(base | options))


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
        yield f"width {width}", play(case, width=width)
    with patch.context() as context:
        if case.ring:
            context.setattr(sim, "ring_sizes", lambda *_: case.ring)
        env = case.env.padded(case.slots) if case.slots else case.env
        if case.ring or case.slots:
            what = f"a ring of {case.ring} and {case.slots} state slots"
            yield what, play(dataclasses.replace(case, env=env))
    for boxes in case.boxes:
        with patch.context() as context:
            games = with_boxes(boxes, context)
            yield f"{boxes} boxes", play(case)
            assert [game.boxes for game in games] == [boxes]
    if case.ladder:
        with patch.context() as context:
            context.setattr(rounds, "LADDER", case.ladder)
            forget_programs(context)
            yield f"branches for {case.ladder}", play(case)


@pytest.mark.alike
@pytest.mark.parametrize("name", CASES)
def test_a_run_is_the_same_game_however_it_is_played(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    expected = play(case)
    assert len(np.unique(expected.final_regret)) > RUNS - 3  # the runs do differ
    for what, result in variations(case, monkeypatch):
        same(expected, result, what)
    assert expected.backend == "llvm"
    for backend in case.backends:
        one = play(case, backend=backend)
        alike(expected, one, backend)
        same(one, play(case, backend=backend, runs=2, workers=1), f"{backend} and 2 runs")
        same(one, play(case, backend=backend, width=48), f"{backend} and width 48")
    if case.rollout:
        rolled_out(case, expected, jb.ring_sizes(case.env, HORIZON))


def alike(expected: jb.Result, other: Any, what: str, runs: slice = slice(RUNS)) -> None:
    """Every loss and every fact is the same; regret is a sum whose terms are rounded otherwise."""
    np.testing.assert_array_equal(other.loss, expected.loss[runs], err_msg=what)
    np.testing.assert_allclose(other.regret, expected.regret[runs], rtol=1e-6, err_msg=what)
    for name, values in expected.info.items():
        np.testing.assert_array_equal(other.info[name], values[runs], err_msg=f"{name} {what}")


def rolled_out(case: Case, expected: jb.Result, sizes: tuple[int, int]) -> None:
    """`rollout`, vmapped or one run at a time, plays the runs of `simulate`."""

    def one(run: Any) -> jb.Record:
        return jb.rollout(
            case.env, case.learner, SEED, HORIZON, run=run, rounds=POINTS,
            ring_depth=sizes[0], lanes=sizes[1],
        )  # fmt: skip

    single = jax.tree.map(lambda x: x[None], jax.jit(one)(jnp.int32(2)))
    alike(expected, jax.jit(jax.vmap(one))(jnp.arange(RUNS)), "runs side by side")
    alike(expected, single, "one run", slice(2, 3))


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
    points = range(50, HORIZON + 1, 50)
    expected = play(case, rounds=points)
    by_vmap = play(case, rounds=points, backend="vmap")
    monkeypatch.setattr(player, "ROUNDS_PER_CALL", 100)
    same(expected, play(case, rounds=points), "calls of 100 rounds")
    same(by_vmap, play(case, rounds=points, backend="vmap"), "calls of 100 rounds, vmap")
    monkeypatch.setattr(vmap, "STOPS", 3)
    same(by_vmap, play(case, rounds=points, backend="vmap"), "three recorded rounds per call")


def test_stops_between_recorded_rounds_only_round_the_sum_of_regret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stop at a round that is not recorded leaves the game alone, bit for bit.

    The regret between two recorded rounds is then added up from several float32 tallies, each
    rounded once: the last bits of that sum are all that can change.
    """
    case = CASES["metabio, fixed"]
    expected = play(case)
    monkeypatch.setattr(player, "ROUNDS_PER_CALL", 97)
    cut = play(case)
    assert np.array_equal(expected.loss, cut.loss)
    for name, values in expected.info.items():
        assert np.array_equal(values, cut.info[name]), name
    np.testing.assert_allclose(cut.regret, expected.regret, rtol=2.0**-22)


@pytest.mark.parametrize("backend", ["llvm", "vmap"])
@pytest.mark.parametrize("name", ["metabio, fixed", "metabio, laplace"])
def test_games_may_pause_anywhere(name: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause is no stop: nothing is taken out of the tallies, so not even their last bit can tell.
    Slow games pause often; here all are taken for slow, and calls have 7 rounds.
    """
    case = CASES[name]
    expected = play(case, backend=backend)
    monkeypatch.setattr(player, "first_call", lambda *_: 7)
    monkeypatch.setattr(player, "_paced", lambda *_: 7)
    calls, seen = player.calls, []

    def watched(*args: Any) -> Iterator[Any]:
        for last, ahead in calls(*args):
            seen.append(int(ahead[-1]))
            yield last, ahead

    monkeypatch.setattr(player, "calls", watched)
    same(expected, play(case, backend=backend), "pauses after every 7 rounds")
    assert min(seen) < 0
    assert len(seen) >= 2 * HORIZON // 7


def test_slow_games_are_played_in_short_calls() -> None:
    """Made-up speeds: twice as long while that is fast, at once so long that half a second is
    about enough where it is slow, and never more than there may be.
    """
    assert player._paced(1024, 0.001) == 2048
    assert player._paced(1024, 0.4) == 1024
    assert player._paced(16_384, 32.0) == 256
    assert player._paced(1, 60.0) == 1
    assert player._paced(50_000, 0.001) == player.ROUNDS_PER_CALL


def test_recording_more_rounds_does_not_change_the_game() -> None:
    case = CASES["dada-exp3, fixed"]
    few, many = play(case, rounds=1), play(case, rounds=HORIZON)
    assert np.array_equal(few.loss[:, -1], many.loss[:, -1])
    np.testing.assert_allclose(few.final_regret, many.final_regret, rtol=2.0**-22)
    same(few, dataclasses.replace(many, regret=few.regret, loss=few.loss), "more records")


# --- memory that holds anything


def rubbish(shape: Any, dtype: Any = np.uint8) -> np.ndarray:
    """Memory with every bit set, as the code may find it."""
    found = ALIGNED(shape, dtype)
    found.view(np.uint8)[...] = 255
    return found


ALIGNED = native.aligned


@pytest.mark.parametrize(
    "name", ["dada-exp3, fixed", "metabio, laplace", "dada-exp3-skipping, laplace"]
)
@pytest.mark.parametrize("pauses", [False, True])
def test_what_memory_holds_before_does_not_matter(
    name: str, pauses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a block before has left, only worse. A vector of runs takes the place of another one,
    or (where calls end before the game does) has memory of its own.
    """
    case = CASES[name]
    expected = play(case, runs=100, width=100)
    monkeypatch.setattr(native, "aligned", rubbish)
    if pauses:
        monkeypatch.setattr(player, "first_call", lambda *_: 300)
    same(expected, play(case, runs=100, width=100), "memory full of rubbish")


@pytest.mark.parametrize("delays", [jb.FixedDelay(50), jb.LaplaceDelay(50, 25)])
def test_rounding_does_not_depend_on_the_width(delays: Any) -> None:
    """Many long runs, so that a last bit that differs shows."""
    env = jb.make_environment("paper-stochastic", delays=delays)
    learner = jb.make_learner("metabio")
    for horizon in (4000, 8000):
        options = {"horizon": horizon, "runs": 640, "rounds": 2, "progress": False}
        expected = jb.simulate(env, learner, **options)
        for width in (16, 48, 100, 640):
            same(expected, jb.simulate(env, learner, width=width, **options), f"width {width}")


@pytest.mark.parametrize("backend", ["llvm", "vmap"])
def test_blocks_that_overflow_are_played_again(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the number of lanes that the ring begins with, the runs are the same."""
    case = CASES["ucb1, laplace"]
    expected = play(case, backend=backend)
    compiled, used = player.compile_player, []

    def noted(game: Any, *options: Any) -> player.Player:
        used.append(game.lanes)
        return compiled(game, *options)

    monkeypatch.setattr(player, "compile_player", noted)
    monkeypatch.setattr(laws, "LANES", 1)
    same(expected, play(case, backend=backend), "one lane at first")
    assert {2, 4} <= set(used)


# --- games side by side in one block


def stochastic(states: int, delays: Any) -> jb.Environment:
    env = jb.make_environment("paper-utility", states=states, delays=delays)
    return env.padded(8)


def alternating(growth: float, high: int) -> jb.Environment:
    delays = jb.UniformDelay(0, high)
    return jb.make_environment("paper-adversarial", growth=growth, delays=delays)


def tables(index: int) -> jb.Environment:
    generator = np.random.default_rng(index)
    return jb.Environment(
        jb.TableMapping(generator.integers(0, 3, (HORIZON, 4)), 3),
        jb.TableLosses(generator.random((HORIZON, 3)) * [1.0, 0.5, 0.2]),
        jb.TableDelay(generator.integers(0, 10 * (index + 1), HORIZON)),
    )


def switching(scale: float) -> Any:
    return jb.make_learner("metaadabio", rule="practical", switch_scale=scale)


STACKS = {  # (environment, learner) of each game
    "states, fixed delays, delta": [
        (stochastic(4, jb.FixedDelay(0)), jb.make_learner("metabio", delta=0.01)),
        (stochastic(6, jb.FixedDelay(50)), jb.make_learner("metabio", delta=0.1)),
        (stochastic(8, jb.FixedDelay(63)), jb.make_learner("metabio", delta=0.5)),
    ],
    "random delays, scales": [
        (stochastic(4, jb.LaplaceDelay(50, 0)), jb.make_learner("dada-exp3", scale=2)),
        (stochastic(6, jb.LaplaceDelay(50, 25)), jb.make_learner("dada-exp3")),
        (stochastic(8, jb.LaplaceDelay(3, 2)), jb.make_learner("dada-exp3", scale=0.3)),
    ],
    "growth of the phases": [
        (alternating(1.5, 60), jb.make_learner("nsd-ucrl2", window=300)),
        (alternating(1.6, 5), jb.make_learner("nsd-ucrl2", window=300, delta=0.01)),
        (alternating(2.5, 0), jb.make_learner("nsd-ucrl2", window=300)),
    ],
    "tables": [(tables(0), switching(0.2)), (tables(1), switching(1)), (tables(2), switching(9))],
}


# How jax.vmap sees games side by side does not depend on what they are: one with numbers that
# memories hold, and one with delays of their own.
@pytest.mark.parametrize(
    ("name", "backend"),
    [*((name, "llvm") for name in STACKS), ("tables", "vmap"), ("random delays, scales", "vmap")],
)
def test_games_side_by_side_are_those_played_alone(name: str, backend: str) -> None:
    pairs, runs = STACKS[name], 2
    sizes = np.max([jb.ring_sizes(env, HORIZON) for env, _ in pairs], axis=0).tolist()
    late = all(is_late(env.delays) for env, _ in pairs)
    games = [
        make_game(env, learner, HORIZON, *sizes, library=np, late=late) for env, learner in pairs
    ]
    game = player.stack([one for one in games for _ in range(runs)])
    machine = player.compile_player(games[0], stacked=True, backend=backend)
    keys = np.tile(rng.run_keys(SEED, np.arange(runs)), len(games))
    side = player.play_block(machine, game, keys, np.array(POINTS, np.int32), lambda _: None)
    assert not side.info["overflow"].any()
    for index, (env, learner) in enumerate(pairs):
        mine = slice(index * runs, (index + 1) * runs)
        alone = play(Case(learner, env), runs=runs, width=runs, backend=backend)
        both = jax.tree.map(
            lambda x, mine=mine: np.cumsum(x.astype(np.float64), axis=0).T[mine], side.curve
        )
        info = {what: side.info[what][mine] for what in alone.info}
        same(alone, dataclasses.replace(alone, regret=both.regret, loss=both.loss, info=info), name)


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
