"""Several devices: each plays blocks, and the results do not say which."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from sweeping import BLOCKS, finish, same, small, small_alone, start


@pytest.mark.parametrize(("devices", "backend"), [(2, "llvm"), (4, "llvm"), (2, "vmap")])
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
