"""The same program gives the same bits on every CPU, and for a run whatever is played beside it."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import llvmlite.binding as llvm
import numpy as np
import pytest

import jaxbio as jb
from jaxbio import rng
from jaxbio.engine.backends.choice import flattened
from jaxbio.engine.backends.layout import WIDTH
from jaxbio.engine.backends.llvm_game import module_of
from jaxbio.engine.backends.machine_code import Target, object_code
from jaxbio.engine.backends.native import Native
from jaxbio.engine.backends.single import Code, Function
from jaxbio.engine.round import make_game
from jaxbio.engine.rules import GAME
from jaxbio.engine.single import single_program
from jaxbio.engine.sizing import ring_sizes

RUNS, HORIZON = 2 * WIDTH + 5, 240
STOPS = np.array([1, 50, -130, HORIZON], np.int32)
MAPPING = jb.StochasticMapping([[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.3, 0.7, 0.0]])
LOSSES = jb.BernoulliLosses([0.2, 0.4, 0.8])
DELAYS = {
    "fixed": jb.FixedDelay(7),
    "uniform": jb.UniformDelay(0, 5),  # six may arrive together, one of them at once
    "laplace": jb.LaplaceDelay(6, 3),
}
LANES = {"fixed": 1, "uniform": 5, "laplace": 10}  # as few as are enough, which is less code
TARGETS = {
    "baseline": Target("x86-64", ""),
    "AVX2": Target("x86-64-v3", ""),
    "AVX-512": Target("x86-64-v4", ""),
}
NEEDS = {"AVX2": "avx2", "AVX-512": "avx512vl"}
SIGN = np.uint32(0x80000000)
AARCH64 = Target("generic", "", "aarch64-unknown-linux-gnu")
SOME = [("metabio", "laplace"), ("tsallis-inf", "fixed")]
# The code of a fixed delay is that of one lane, which is among what several lanes need.
EVERY = [*((name, "uniform") for name in jb.learner_names()), *SOME, ("dada-exp3", "laplace")]
EVERY += [(name, "fixed") for name in ("metabio", "bold-exp3")]


def game_of(name: str, delay: str) -> Any:
    env = jb.Environment(MAPPING, LOSSES, DELAYS[delay])
    depth, _ = ring_sizes(env, HORIZON)
    return make_game(env, jb.make_learner(name), HORIZON, depth, LANES[delay], library=np)


@functools.cache
def program_of_game(name: str, delay: str) -> Any:
    return flattened(GAME, game_of(name, delay), False)


def played(name: str, delay: str, target: Target, runs: Any) -> list[np.ndarray]:
    """All that a game leaves behind: what is recorded, the facts, and every byte of its state."""
    machine = Native(program_of_game(name, delay), target)
    numbers = [np.asarray(leaf) for leaf in jax.tree.leaves(game_of(name, delay))]
    keys = np.asarray(rng.run_keys(3, runs)).astype(np.uint32)
    state, outputs, facts = machine.play(numbers, keys, machine.fresh(runs.size), 0, STOPS)
    order = sorted(jax.eval_shape(lambda g: GAME.summary(g, GAME.begin(g)), game_of(name, delay)))
    assert not facts[order.index("overflow")].any()
    taken = STOPS > 0
    return [*(output[taken] for output in outputs), *facts, state]


def same_bits(one: list[np.ndarray], two: list[np.ndarray]) -> bool:
    pairs = zip(one, two, strict=True)
    return all(x.dtype == y.dtype and same_bytes(x, y) for x, y in pairs)


def same_bytes(x: np.ndarray, y: np.ndarray) -> bool:
    """The same bytes, but for the sign of NaN: where two of them meet, in a lane in which nothing
    has arrived, the CPU keeps the sign of either.
    """
    if x.dtype.itemsize == 1 and x.size % 4:
        return x.tobytes() == y.tobytes()
    words, others = (np.frombuffer(one.tobytes(), np.uint32) for one in (x, y))
    is_nan = (words & 0x7FFFFFFF) > 0x7F800000
    return np.array_equal(words & ~(is_nan * SIGN), others & ~(is_nan * SIGN))


def is_here(target: str) -> bool:
    features = llvm.get_host_cpu_features()
    return llvm.get_process_triple().startswith("x86_64") and (
        target not in NEEDS or bool(features.get(NEEDS[target]))
    )


@pytest.mark.alike
@pytest.mark.parametrize(("name", "delay"), EVERY)
def test_every_vector_extension_gives_the_same_bits(name: str, delay: str) -> None:
    here = [target for target in TARGETS if is_here(target)]
    if len(here) < 2:
        pytest.skip("nothing to compare")
    runs = np.arange(RUNS)
    found = [played(name, delay, TARGETS[target], runs) for target in here]
    assert all(same_bits(found[0], other) for other in found[1:])
    assert any(len(np.unique(x)) > 1 for x in found[0][:-1])


def numbers(x: Any, key: Any) -> list[Any]:
    """Of all kinds that decisions of learners are made of."""
    word = rng.block(key, jnp.int32(1), rng.DRAW)[0]
    u = rng.open_unit(word)
    return [x, word, jnp.exp(-x * u), jnp.log(u) / x, jax.scipy.special.erfinv(u), jnp.sqrt(x) * u]


def test_a_run_alone_has_the_same_bits_on_every_cpu() -> None:
    """The code of an agent; plain CPUs call a function for products that are added unrounded."""
    types = [jax.ShapeDtypeStruct((), np.float32), jax.ShapeDtypeStruct((2,), np.uint32)]
    program = single_program(lambda given, _: numbers(*given), types, [])
    found = []
    for target in filter(is_here, TARGETS):
        code = Code(program, TARGETS[target])
        function = Function(code, code.fresh())
        for run in range(100):
            function.give(0, np.float32(0.1 + run / 30))
            function.give(1, rng.run_keys(3, [run])[:, 0])
            function()
            found.append((target, bytes(function.raw[4 * function.outputs :][: 4 * 6])))
    here = [
        [words for name, words in found if name == target] for target in filter(is_here, TARGETS)
    ]
    assert all(words == here[0] for words in here)
    assert len(set(here[0])) == 100


@pytest.mark.parametrize(("name", "delay"), SOME)
def test_neither_neighbours_nor_places_change_a_run(name: str, delay: str) -> None:
    together = played(name, delay, Target(), np.arange(RUNS))[:-1]
    for runs in (np.arange(1), np.arange(RUNS)[::-1], np.array([RUNS - 1, 4, 4, 60])):
        apart = played(name, delay, Target(), runs)[:-1]
        assert same_bits(apart, [np.ascontiguousarray(x[..., runs]) for x in together])


def test_different_games_differ() -> None:
    """So that `same_bits` is not always true."""
    one, two = (played("metabio", "fixed", Target(), np.arange(n, n + 33)) for n in (0, 1))
    assert not same_bits(one, two)


@pytest.mark.parametrize(("name", "delay"), SOME)
def test_nothing_is_contracted(name: str, delay: str, tmp_path: Path) -> None:
    """Products and sums are rounded one by one, but where a function asks for both at once."""
    text, _ = module_of(program_of_game(name, delay))
    loose = r"\b(fast|contract|reassoc|nnan|ninf|nsz|arcp|afn|fmuladd)\b"
    assert not re.search(loose, text)
    assert "fmul" in text
    asked = text.count('call <32 x float> @"llvm.fma')
    text = text.replace("llvm.fma", "one.rounding")  # called, and so not among the instructions
    assert asked > 10
    if not shutil.which("objdump") or not is_here("baseline"):
        pytest.skip("no disassembler")
    file = tmp_path / "code.o"
    file.write_bytes(object_code(text, TARGETS["AVX-512"]))
    lines = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", file], capture_output=True, text=True, check=True
    ).stdout
    assert "vmulps" in lines
    assert not re.search(r"\bvfn?m(add|sub)", lines)


@pytest.mark.parametrize(("name", "delay"), SOME)
def test_compiles_for_aarch64(name: str, delay: str) -> None:
    code = object_code(module_of(program_of_game(name, delay))[0], AARCH64)
    assert code[:4] == b"\x7fELF"
    assert int.from_bytes(code[18:20], "little") == 183  # EM_AARCH64
