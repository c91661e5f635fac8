"""Several devices: each plays blocks, and the results do not say which."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweeping import BLOCKS, finish, same, small, small_alone, start

import jaxbio as jb

SIMULATED = """
import json, jax, jaxbio as jb
from jaxbio.engine.backends.pallas import Kernel
play, where = Kernel.play, []
def noted(self, numbers, keys, state, *rest):
    state = self.fresh(keys.shape[-1]) if state is None else state
    out = play(self, numbers, keys, state, *rest)
    where.extend(map(str, out[0][0].devices()))
    return out
Kernel.play = noted
env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(9))
result = jb.simulate(env, jb.UCB1(), horizon=64, runs=96, backend="pallas", progress=False)
print(json.dumps([where, result.final_regret.tolist()]))
"""


@pytest.mark.parametrize(("devices", "backend"), [(4, "llvm"), (2, "vmap"), (2, "pallas")])
def test_every_device_plays_and_the_bits_are_those_of_one(
    tmp_path: Path, devices: int, backend: str
) -> None:
    options: dict[str, Any] = {"out": str(tmp_path / "out"), "backend": backend}
    if devices == 2:
        options |= {"store": str(tmp_path / "store")}
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices}"
    process = start(tmp_path / "programs", options, XLA_FLAGS=flags)
    outcome = finish(process, tmp_path / "out")
    same(outcome.dataset, small_alone() if backend == "llvm" else small(backend=backend))
    assert sorted(outcome.devices) == list(range(BLOCKS))
    assert len(set(outcome.devices.values())) == devices


def test_simulate_spreads_blocks_over_devices() -> None:
    """Of 96 runs each of two devices gets a block, by default."""
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, "-c", SIMULATED],
        env=os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": str(Path(jb.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    where, regrets = json.loads(done.stdout.splitlines()[-1])
    assert len(where) == len(set(where)) == 2
    env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(9))
    alone = jb.simulate(env, jb.UCB1(), horizon=64, runs=96, progress=False)
    np.testing.assert_allclose(regrets, alone.final_regret, rtol=1e-5, atol=1e-5)
