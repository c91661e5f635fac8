"""A process that is killed and comes back."""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sweeping import blocks_in, same, small_alone, start, wait_until


@pytest.fixture
def begun() -> Iterator[list[Any]]:
    """Processes that do not outlive the test."""
    processes: list[Any] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def test_killed_at_any_time_it_goes_on_to_the_same_bits(tmp_path: Path, begun: list[Any]) -> None:
    """Killed at random moments, the first before there is a block, and resumed until it is done.

    Blocks are played in three stretches with a checkpoint after each, two blocks at a time.
    """
    moments = random.Random(3)
    store, out, log = tmp_path / "store", tmp_path / "out", tmp_path / "log"
    options = {"store": str(store), "out": str(out), "call": 100, "checkpoint": 0, "workers": 2}
    options |= {"begun": str(log), "pause": 0.05}  # 12 blocks take two seconds or more
    left, written = [], {}
    while not out.exists():
        process = start(tmp_path / "programs", options)
        begun.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if left:  # it goes on from here, how far is a matter of luck
            wait_until(lambda: out.exists() or len(blocks_in(store)) > left[-1], "it has begun")
        time.sleep(moments.uniform(0.3, 1.2) if left else moments.uniform(0, 0.05))
        process.kill()
        process.communicate()
        left.append(len(blocks_in(store)))
        for name in blocks_in(store):
            time_of_writing = (store / "blocks" / name).stat().st_mtime_ns
            assert written.setdefault(name, time_of_writing) == time_of_writing
    assert left[0] == 0
    assert len(left) >= 3
    assert left == sorted(left)
    assert {int(line) for line in log.read_text().split()} > {0}  # from the middle of a block too
    same(pickle.loads(out.read_bytes())[0], small_alone())
