"""Several devices, and programs for devices that are not here."""

from __future__ import annotations

import os
import re
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from sweeping import BLOCKS, finish, same, small_alone, start, utility

import jaxbio as jb
from jaxbio import blocks
from jaxbio.rollout import begin, make_game
from jaxbio.sizing import ring_sizes

# --- forced devices of the CPU


@pytest.mark.parametrize("devices", [2, 4])
def test_every_device_plays_and_the_bits_are_those_of_one(tmp_path: Path, devices: int) -> None:
    """As the first of two processes, it uses all its devices for its own share too."""
    options: dict[str, Any] = {"out": str(tmp_path / "out")}
    if devices == 2:
        options |= {"store": str(tmp_path / "store"), "processes": [0, 2]}
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices}"
    process = start(tmp_path / "programs", options, XLA_FLAGS=flags)
    outcome = finish(process, tmp_path / "out")
    same(outcome.dataset, small_alone())
    assert sorted(outcome.devices) == list(range(BLOCKS))
    assert len(set(outcome.devices.values())) == devices
    own_share = [outcome.devices[block] for block in range(0, BLOCKS, 2)]
    assert devices == 4 or len(set(own_share)) == 2


# --- programs for other platforms

WIDTH = 8
CASES = {
    "metabio, fixed delay": ("metabio", 9, False),
    "dada-exp3, random delays, a game per run": ("dada-exp3", jb.UniformDelay(0, 9), True),
}


@cache
def program(case: str, play: Any = blocks._play) -> tuple[Any, tuple[Any, ...]]:
    """A block's program as machines without native loops compile it, and its arguments."""
    name, delay, stacked = CASES[case]
    env = utility(delay)
    game = make_game(env, jb.make_learner(name), 300, *ring_sizes(env, 300), library=np)
    shapes = jax.eval_shape(partial(begin, ahead=True), game)  # late reading is for CPUs
    carry = jax.tree.map(lambda x: jax.ShapeDtypeStruct((*x.shape, WIDTH), x.dtype), shapes)
    args = (
        blocks.stack([game] * WIDTH) if stacked else game,
        jax.ShapeDtypeStruct((2, WIDTH), jnp.uint32),
        carry,
        jax.ShapeDtypeStruct((), jnp.int32),
        jax.ShapeDtypeStruct((blocks.STOPS_PER_CALL,), jnp.int32),
    )
    return jax.jit(partial(play, loop=lax.fori_loop, stacked=stacked)), args


def exported(platform: str, case: str, play: Any = blocks._play) -> str:
    function, args = program(case, play)
    return export.export(function, platforms=[platform])(*args).mlir_module()


def called(text: str) -> set[str]:
    """What a program calls that is not made of its own instructions."""
    return set(re.findall(r"custom_call\s*@([\w.\-]+)", text)) | set(
        re.findall(r'call_target_name\s*=\s*"([^"]+)"', text)
    )


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("case", CASES)
def test_the_program_lowers_for_cuda_and_tpu_without_callbacks(case: str, platform: str) -> None:
    text = exported(platform, case)
    assert "stablehlo.while" in text
    assert called(text) == set()


def test_the_search_would_see_a_callback() -> None:
    def talking(game: Any, keys: Any, *rest: Any, **options: Any) -> Any:
        jax.debug.callback(lambda key: None, keys[0, 0])
        return blocks._play(game, keys, *rest, **options)

    function, args = program("metabio, fixed delay", talking)
    text = function.lower(*args).as_text()  # here: JAX exports no callbacks
    assert any("callback" in name for name in called(text))
