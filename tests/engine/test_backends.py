"""Every back-end plays a program as machine code does.

Integers and flags must be equal. Floats are sums of the same numbers in the same order; they may
differ by RTOL, of their size or absolutely, as XLA may add a product in one step.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from jax import lax

import jaxbio as jb
from jaxbio import rng
from jaxbio.engine import player
from jaxbio.engine.backends import choice, jnp, pallas
from jaxbio.engine.backends.jnp import Vectors
from jaxbio.engine.backends.native import Native
from jaxbio.engine.backends.pallas import BLOCK, Kernel
from jaxbio.engine.backends.vectors import padded_stops
from jaxbio.engine.game_program import GameProgram
from jaxbio.engine.marks import most_of_block
from jaxbio.engine.round import begin, make_game
from jaxbio.engine.rules import GAME, WORLD, Rules
from jaxbio.engine.sizing import ring_sizes
from jaxbio.environment import (
    delays,
    empirical,
    heavy_tails,
    losses,
    mappings,
    negative_binomial,
    windowed,
)
from jaxbio.trees import as_arrays

RTOL = 1e-6
HORIZON = 96
RUNS = 5
P = np.array([[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.3, 0.7, 0.0], [0.5, 0.3, 0.2]])
THETA = np.array([0.2, 0.4, 0.8])
STOPS = np.array([10, 32, -50, HORIZON], np.int32)
BACKENDS = ("jnp", "pallas")
NEAR = {"fixed": jb.FixedDelay(70), "laplace": jb.LaplaceDelay(12, 6)}
FAR = {"fixed": jb.FixedDelay(50), "laplace": jb.LaplaceDelay(50, 25)}


class Case(NamedTuple):
    """A program and the numbers that it is played with."""

    program: GameProgram
    numbers: list[Any]


def make_case(rules: Rules, trees: Sequence[Any]) -> Case:
    """Of one tree that all runs share, or of a tree for each run. The one place that builds."""
    per_run = len(trees) > 1
    program = choice.flattened(rules, trees[0], per_run)
    return Case(program, jax.tree.leaves(player.stack(list(trees)) if per_run else trees[0]))


def make_env(mapping: Any = None, losses: Any = None, delays: Any = None) -> jb.Environment:
    mapping = jb.StochasticMapping(P) if mapping is None else mapping
    losses = jb.BernoulliLosses(THETA) if losses is None else losses
    return jb.Environment(mapping, losses, jb.FixedDelay(20) if delays is None else delays)


def game_of(env: jb.Environment, learner: Any, **sizes: Any) -> Any:
    """sizes: other boxes and lanes than few, with which a round is compiled more quickly, and still
    chooses how many lanes to look at, in boxes and in lists.
    """
    depth, lanes = ring_sizes(env, HORIZON)
    sizes = {"lanes": min(lanes, 4), "boxes": 2} | sizes
    return make_game(env, learner, HORIZON, depth, library=np, **sizes)


@cache
def registered(learner: str, delays: str) -> Case:
    game = game_of(make_env(delays=NEAR[delays]), jb.make_learner(learner))
    return make_case(GAME, [game])


def machine(backend: str, program: GameProgram) -> Any:
    return Kernel(program, interpret=True) if backend == "pallas" else Vectors(program)


def rounds_of(stops: list[int]) -> np.ndarray:
    return np.array(stops, np.int32)


def keys_of(runs: int) -> np.ndarray:
    return rng.run_keys(0, np.arange(runs)).astype(np.uint32)


def assert_same(found: Any, expected: Any) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        if theirs.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=RTOL, atol=RTOL)
        else:
            np.testing.assert_array_equal(ours, theirs)


def assert_plays_alike(backend: str, case: Case, runs: int = RUNS) -> None:
    keys = keys_of(runs)
    _, outputs, facts = machine(backend, case.program).play(case.numbers, keys, None, 0, STOPS)
    _, expected, expected_facts = Native(case.program).play(case.numbers, keys, None, 0, STOPS)
    assert_same(outputs, expected)
    assert_same(facts, expected_facts)
    # Runs differ, so that a mix-up of runs is seen.
    assert any(len(np.unique(rows[-1])) > 1 for rows in expected)


# Every learner with both back-ends and both delays, but not with all four pairs of them: operations
# are the learner's, and how lanes are read is the back-end's. XLA takes long to compile.
LEARNERS = [
    (learner, backend, delays)
    for number, learner in enumerate(jb.learner_names())
    for backend, delays in zip(BACKENDS, list(NEAR)[:: 1 if number % 2 else -1], strict=True)
]


@pytest.mark.alike
@pytest.mark.parametrize(("learner", "backend", "delays"), LEARNERS)
def test_registered_learners(learner: str, backend: str, delays: str) -> None:
    assert_plays_alike(backend, registered(learner, delays))


GENERATOR = np.random.default_rng(0)
PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "alternating mapping": ("metabio", {"mapping": jb.AlternatingMapping(np.stack([P, P[::-1]]))}),
    "table mapping": (
        "dada-exp3",
        {"mapping": jb.TableMapping(GENERATOR.integers(0, 3, (HORIZON, 4)), 3)},
    ),
    "constant losses": ("ucb1", {"losses": jb.ConstantLosses(THETA)}),
    "event losses": ("exp3", {"losses": jb.EventLosses(THETA, THETA[::-1])}),
    "beta losses": ("exp3", {"losses": jb.BetaLosses(THETA, 5.0)}),
    "table losses": ("metabio", {"losses": jb.TableLosses(GENERATOR.random((HORIZON, 3)))}),
    "block losses": ("exp3", {"losses": jb.BlockBernoulliLosses(THETA, np.array([0, 0, 1]), 4)}),
    "geometric delay": ("metaadabio", {"delays": jb.GeometricDelay(9)}),
    "log-normal delay": ("ucb1", {"delays": jb.LogNormalDelay(9, 0.8)}),
    "pareto delay": ("ucb1", {"delays": jb.ParetoDelay(3, 0.7)}),
    "negative binomial delay": ("exp3", {"delays": jb.NegativeBinomialDelay(9, 0.5)}),
    "uniform delay": ("nsd-ucrl2", {"delays": jb.UniformDelay(0, 80)}),
    "table delay": ("dada-exp3", {"delays": jb.TableDelay(GENERATOR.integers(0, 80, HORIZON))}),
    "empirical delay": ("exp3", {"delays": jb.EmpiricalDelay(np.full(40, 0.02), never=0.2)}),
    "delays that are far apart": (
        "ucb1",
        {"delays": jb.EmpiricalDelay([[0.5, 0.4], [0, 1], [1, 0]], [0.1, 0, 0], values=[3, 44])},
    ),
    "windowed delay": (
        "metabio",
        {"delays": jb.WindowedDelay(jb.EmpiricalDelay(GENERATOR.dirichlet(np.ones(60), 3)), 30)},
    ),
}


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_environments(part: str) -> None:
    learner, parts = PARTS[part]
    game = game_of(make_env(**parts), jb.make_learner(learner))
    assert_plays_alike("jnp", make_case(GAME, [game]))


# Every part once more by a kernel, several in one environment.
TOGETHER = {
    "ucb1": ("alternating mapping", "beta losses", "uniform delay"),
    "exp3": ("table mapping", "table losses", "geometric delay"),
    "tsallis-inf": ("block losses", "table delay"),
    "dada-exp3": ("constant losses", "empirical delay"),
    "thompson": ("log-normal delay",),
    "successive-elimination": ("pareto delay",),
    "qpmd-ucb1": ("negative binomial delay",),
    "metabio": ("windowed delay",),
    "metabio-mean": ("event losses", "delays that are far apart"),
}


@pytest.mark.parametrize("learner", TOGETHER)
def test_parts_together_by_a_kernel(learner: str) -> None:
    parts = {kind: part for name in TOGETHER[learner] for kind, part in PARTS[name][1].items()}
    game = game_of(make_env(**parts), jb.make_learner(learner))
    assert_plays_alike("pallas", make_case(GAME, [game]))


def test_every_part_is_among_them() -> None:
    """A new mapping, loss or delay is tested here, or this fails."""
    modules = (mappings, losses, delays, empirical, heavy_tails, negative_binomial, windowed)
    kinds = {
        kind
        for module in modules
        for kind in vars(module).values()
        if inspect.isclass(kind)
        and kind.__module__ == module.__name__
        and hasattr(jb, kind.__name__)
    }
    envs = [make_env(**parts) for _, parts in PARTS.values()]
    envs += [make_env(delays=one) for one in NEAR.values()]
    played = {type(part) for env in envs for part in (env.mapping, env.losses, env.delays)}
    assert len(kinds) >= 15
    assert kinds == played
    assert sorted(name for names in TOGETHER.values() for name in names) == sorted(PARTS)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_environment_alone(backend: str) -> None:
    tables = {"losses": jb.TableLosses(GENERATOR.random((HORIZON, 3)))}
    assert_plays_alike(backend, make_case(WORLD, [as_arrays(make_env(**tables), np)]))


class Odd(NamedTuple):
    """The carry of a game that is none, and has what games have not."""

    seen: jax.Array
    walked: jax.Array
    highest: jax.Array


def odd_begin(limits: jax.Array) -> Odd:
    return Odd(np_zeros(100), lax.full((), 0, np.int32), lax.full((), 0.0, np.float32))


def np_zeros(size: int) -> jax.Array:
    return lax.full((size,), 0, np.int32)


def odd_step(limits: jax.Array, key: jax.Array, t: jax.Array, carry: Odd) -> Odd:
    """Writes into a large array, walks for as long as its own run wants to, chooses by what the
    busiest run wants, divides integers of both signs, and meets infinities and NaN.
    """
    bits = key[0] ^ (key[1] >> lax.convert_element_type(t & 7, np.uint32))
    place = lax.convert_element_type(bits % np.uint32(100), np.int32)
    seen = carry.seen.at[place].add(1)
    wanted = limits[place % 3] + (t % 4)

    def turn(state: Any) -> Any:
        steps, seen = state
        return steps + 1, seen.at[steps].add(steps)

    steps, seen = lax.while_loop(lambda state: state[0] < wanted, turn, (np.int32(0), seen))
    least = lax.switch(
        lax.min(most_of_block(steps), np.int32(1)),
        [lambda x: x, lambda x: lax.div(-x, np.int32(3)) + lax.rem(-x, np.int32(3))],
        steps,
    )
    number = lax.log(lax.convert_element_type(place - 50, np.float32))
    higher = lax.select(place % 5 == 0, carry.highest, lax.max(carry.highest, -number))
    return Odd(seen, carry.walked + least, higher)


def odd_take(carry: Odd) -> tuple[Odd, Any]:
    kept = carry._replace(seen=np_zeros(100), highest=lax.full((), 0.0, np.float32))
    return kept, {"most": carry.seen.max(), "spot": carry.seen.argmax(), "high": carry.highest}


ODD = Rules(
    odd_begin,
    odd_step,
    odd_take,
    lambda limits, carry: {"walked": carry.walked, "left": carry.seen.sum() > limits[0]},
    lambda carry: [],
)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_no_game_has(backend: str) -> None:
    assert_plays_alike(backend, make_case(ODD, [np.array([3, 0, 5], np.int32)]))


@cache
def own_numbers(tables: bool) -> Case:
    """Every run has its own losses and delays, some of them in memories."""
    generator = np.random.default_rng(1)

    def env(run: int) -> jb.Environment:
        if tables:
            losses = jb.TableLosses(generator.random((HORIZON, 3)))
            return make_env(losses=losses, delays=jb.FixedDelay(10 + run))
        theta = jb.BernoulliLosses(THETA * (run + 1) / 8)
        return make_env(losses=theta, delays=jb.UniformDelay(run, run + 80))

    envs = [env(run) for run in range(RUNS)]
    return make_case(GAME, [game_of(one, jb.make_learner("metabio")) for one in envs])


@pytest.mark.parametrize("tables", [False, True], ids=["scalars", "tables"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_of_every_run(backend: str, tables: bool) -> None:
    case = own_numbers(tables)
    assert case.program.per_run
    assert bool(case.program.numbers.memories) == tables
    assert_plays_alike(backend, case)


@pytest.mark.parametrize(("learner", "delays"), [("metabio", "laplace"), ("bold-exp3", "fixed")])
@pytest.mark.parametrize("backend", BACKENDS)
def test_pauses_change_nothing(
    backend: str, learner: str, delays: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several calls, pauses and scans of other lengths give what one call gives."""
    case, keys, stops = registered(learner, delays), keys_of(RUNS), np.array([10, 64], np.int32)
    mine = machine(backend, case.program)
    monkeypatch.setattr(jnp, "LENGTHS", (64,))
    nothing, whole, facts = mine.play(case.numbers, keys, None, 0, stops)
    assert nothing is None
    monkeypatch.setattr(jnp, "LENGTHS", (2,))
    state, pieces, last = mine.fresh(RUNS), [], 0
    for some in ([-8], [10, -30], [64]):
        state, outputs, later = mine.play(case.numbers, keys, state, last, rounds_of(some))
        pieces.append([rows[np.array(some) > 0] for rows in outputs])
        last = abs(some[-1])
    assert_same([np.concatenate(rows) for rows in zip(*pieces, strict=True)], whole)
    assert_same(later, facts)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_state_survives_being_saved(backend: str) -> None:
    case, keys = registered("metabio", "laplace"), keys_of(RUNS)
    mine = machine(backend, case.program)
    half, _, _ = mine.play(case.numbers, keys, mine.fresh(RUNS), 0, rounds_of([32]))
    leaves, structure = jax.tree.flatten(mine.state_types(RUNS))
    saved = [np.array(leaf) for leaf in jax.tree.leaves(half)]
    assert [(x.shape, x.dtype) for x in saved] == [(x.shape, x.dtype) for x in leaves]
    again = structure.unflatten([mine.restored(leaf) for leaf in saved])
    _, outputs, facts = mine.play(case.numbers, keys, half, 32, rounds_of([64]))
    _, others, other_facts = mine.play(case.numbers, keys, again, 32, rounds_of([64]))
    assert_same(outputs, others)
    assert_same(facts, other_facts)


def test_several_blocks_of_a_kernel() -> None:
    """Runs of the last block that are not there do no harm to those that are."""
    assert_plays_alike("pallas", registered("metabio", "laplace"), 2 * BLOCK + 3)


def test_stops_of_few_lengths() -> None:
    assert padded_stops(rounds_of([3, -5, 9])).tolist() == [3, -5, 9, -9]
    assert padded_stops(rounds_of([4])).tolist() == [4]
    assert padded_stops(rounds_of([-4, 7])).tolist() == [-4, 7]


def test_scans_play_every_round_once() -> None:
    rounds = [first + i for first, length in jnp.spans(3, 2500) for i in range(length)]
    assert rounds == list(range(3, 2501))


# --- for GPUs, without one


def an_h100() -> Any:
    """Where newer versions of JAX lower for a device that is not there."""
    device = jax.sharding.AbstractDevice
    if "platform" not in inspect.signature(device).parameters:
        return contextlib.nullcontext()
    made = device(device_kind="NVIDIA H100", num_cores=None, platform="gpu")
    mesh = jax.sharding.AbstractMesh((1,), ("gpus",), abstract_device=made)
    return jax.sharding.use_abstract_mesh(mesh)


def gpu_game(env: jb.Environment, learner: str, horizon: int) -> Any:
    """As a GPU would get it."""
    sizes = {"library": np, "boxes": choice.boxes("pallas")}
    return make_game(env, jb.make_learner(learner), horizon, *ring_sizes(env, horizon), **sizes)


def lowered_game(env: jb.Environment, learner: str, horizon: int) -> None:
    assert_is_one_launch(make_case(GAME, [gpu_game(env, learner, horizon)]))


def assert_is_one_launch(case: Case, runs: int = 2 * BLOCK) -> None:
    kernel = Kernel(case.program)
    arguments = kernel.arguments(case.numbers, keys_of(runs), 0, STOPS)
    state = kernel.state_types(runs)
    with an_h100():
        lowered = kernel.call.trace(*arguments, state).lower(lowering_platforms=("cuda",))
    text = lowered.as_text()
    assert text.count("stablehlo.custom_call") == 1  # one launch, and nothing around it:
    assert text.count(" = stablehlo.") == 1


@pytest.mark.alike
@pytest.mark.parametrize("learner", jb.learner_names())
def test_kernels_are_lowered_for_cuda(learner: str) -> None:
    """With lanes to read. A ring of one lane is lowered with the parts of environments."""
    lowered_game(make_env(delays=FAR["laplace"]), learner, 10_000)


@pytest.mark.alike
@pytest.mark.parametrize("delays", FAR)
@pytest.mark.parametrize("learner", jb.learner_names())
def test_the_ring_of_a_kernel_takes_few_bytes(learner: str, delays: str) -> None:
    game = gpu_game(make_env(delays=FAR[delays]), learner, 10_000)
    slots = jax.tree.leaves(jax.eval_shape(begin, game).ring)
    assert sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in slots) <= 32_000


@pytest.mark.parametrize("part", PARTS)
def test_kernels_of_parts_are_lowered_for_cuda(part: str) -> None:
    learner, parts = PARTS[part]
    lowered_game(make_env(**parts), learner, HORIZON)


@pytest.mark.parametrize("tables", [False, True], ids=["scalars", "tables"])
def test_kernels_with_numbers_of_every_run_are_lowered_for_cuda(tables: bool) -> None:
    assert_is_one_launch(own_numbers(tables), RUNS)


def test_a_kernel_that_agrees() -> None:
    case = registered("metabio", "laplace")
    assert pallas.agrees(case.program, case.numbers, keys_of(BLOCK), 64, interpret=True) is None


def test_a_kernel_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    case = registered("metabio", "laplace")
    wrong = pallas.OF_TRITON | {"sub": pallas.OF_TRITON["add"]}
    monkeypatch.setattr(pallas, "OF_TRITON", wrong)
    reason = pallas.agrees(case.program, case.numbers, keys_of(BLOCK), 64, interpret=True)
    assert reason is not None
    assert "differ from those of plain JAX" in reason


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="is about a machine without a GPU")
def test_a_kernel_that_cannot_be_compiled() -> None:
    case = registered("metabio", "laplace")
    reason = pallas.agrees(case.program, case.numbers, keys_of(BLOCK))
    assert reason is not None
    assert reason.startswith("the kernel cannot be compiled or run here (")


def test_a_jax_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("jax.experimental.pallas.triton", raising=False)
    monkeypatch.setitem(sys.modules, "jax.experimental.pallas.triton", None)
    case = registered("metabio", "laplace")
    with pytest.raises(pallas.Unavailable, match="has no Pallas with Triton"):
        Kernel(case.program)
    reason = pallas.agrees(case.program, case.numbers, keys_of(BLOCK))
    assert reason is not None
    assert "Unavailable" in reason
