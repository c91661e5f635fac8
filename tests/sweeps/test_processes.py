"""Processes that are killed, that share their work, and that come back.

How `jax.distributed` takes a loss (jax 0.10): by default its service stops every process when one
is lost, or as soon as the lost one comes back. With `jax.config.update("jax_enable_recoverability",
True)` before `jax.distributed.initialize` the others go on and a process that was killed may join
again, except for process 0, in which the service lives: without it the others are stopped, and all
have to be started again. And then process 0 must be the last to leave, since it no longer waits for
the others at the end. A sweep exchanges nothing but files, so `processes=(index, count)` without
`jax.distributed` does the same and is free of all that. Both ways are tested here.
"""

from __future__ import annotations

import os
import pickle
import random
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sweeping import (
    BLOCKS,
    Outcome,
    blocks_in,
    finish,
    same,
    small,
    small_alone,
    start,
    wait_until,
)

from jaxbio.storage.store import Store
from jaxbio.sweeps import claims
from jaxbio.sweeps.claims import Claims


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that the processes leave for each other."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture
def begun() -> Iterator[list[Any]]:
    """Processes that do not outlive the test."""
    processes: list[Any] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# --- one process, killed


def test_killed_at_any_time_it_goes_on_to_the_same_bits(
    tmp_path: Path, programs: Path, begun: list[Any]
) -> None:
    """Killed at random moments, the first before there is a block, and resumed until it is done.

    Blocks are played in three stretches with a checkpoint after each, two blocks at a time.
    """
    moments = random.Random(3)
    store, out, log = tmp_path / "store", tmp_path / "out", tmp_path / "log"
    options = {"store": str(store), "out": str(out), "call": 100, "checkpoint": 0, "workers": 2}
    options |= {"begun": str(log), "pause": 0.05}  # 12 blocks take two seconds or more
    left, written = [], {}
    while not out.exists():
        process = start(programs, options)
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


# --- two processes


class Pair:
    """Two processes with one store. Each stops after two blocks until it is told to go on."""

    def __init__(self, folder: Path, programs: Path, begun: list[Any], port: int | None) -> None:
        self.folder, self.programs, self.begun, self.port = folder, programs, begun, port
        self.store = folder / "store"

    def out(self, index: int) -> Path:
        return self.folder / f"out{index}"

    def start(self, index: int, hold: bool = True) -> Any:
        options: dict[str, Any] = {"store": str(self.store), "out": str(self.out(index))}
        if self.port is None:
            options["processes"] = [index, 2]
        else:
            options |= {"port": self.port, "index": index}
            options |= {"wait": str(self.out(1))} if index == 0 else {}
        if hold:
            options["hold"] = [2, str(self.folder / "go")]
        process = start(self.programs, options)
        self.begun.append(process)
        return process

    def both_have_begun(self) -> None:
        wait_until(lambda: len(blocks_in(self.store)) == 4, "each has saved two blocks")

    def go(self) -> None:
        (self.folder / "go").touch()

    def finish(self, *processes: Any) -> list[Outcome]:
        return [finish(process, self.out(i)) for i, process in enumerate(processes)]


def test_two_processes_give_the_dataset_of_one(
    tmp_path: Path, programs: Path, begun: list[Any]
) -> None:
    pair = Pair(tmp_path, programs, begun, free_port())
    both = [pair.start(0), pair.start(1)]
    pair.both_have_begun()
    pair.go()
    outcomes = pair.finish(*both)
    for index, outcome in enumerate(outcomes):
        same(outcome.dataset, small_alone())
        assert {block % 2 for block in outcome.saved[:2]} == {index}  # its own share comes first
    assert {*outcomes[0].saved, *outcomes[1].saved} == set(range(BLOCKS))


@pytest.mark.parametrize(
    ("distributed", "victim"), [(True, 1), (False, 0)], ids=["jax.distributed", "by hand"]
)
def test_one_of_two_is_killed_and_comes_back(
    tmp_path: Path, programs: Path, begun: list[Any], distributed: bool, victim: int
) -> None:
    pair = Pair(tmp_path, programs, begun, free_port() if distributed else None)
    both = [pair.start(0), pair.start(1)]
    pair.both_have_begun()
    both[victim].kill()
    both[victim].communicate()
    assert len(blocks_in(pair.store)) == 4
    both[victim] = pair.start(victim, hold=False)  # the other one still waits
    wait_until(lambda: len(blocks_in(pair.store)) > 4, "the one that came back has saved a block")
    assert both[1 - victim].poll() is None
    pair.go()
    outcomes = pair.finish(*both)
    for outcome in outcomes:
        same(outcome.dataset, small_alone())
    assert outcomes[victim].saved
    assert outcomes[1 - victim].saved


def test_a_process_alone_plays_what_others_leave(tmp_path: Path) -> None:
    store = tmp_path / "store"
    same(small(store=store, processes=(1, 3)), small_alone())
    assert len(blocks_in(store)) == BLOCKS
    same(small(store=store, processes=(0, 3)), small_alone())


# --- who plays what


def test_a_claim_holds_while_its_process_lives(tmp_path: Path) -> None:
    with Claims(tmp_path, 0) as one, Claims(tmp_path, 1) as two:
        assert one.take(3)
        assert one.take(3)  # come back after a kill
        assert not two.take(3)
        assert two.take(4)
        one.give_back(3)
        assert two.take(3)
        assert not one.take(3)
        os.utime(tmp_path / "process-1", (0, 0))  # silent for long
        assert one.take(3)
    assert {file.name for file in tmp_path.iterdir()} == {"0000003", "0000004"}
    with Claims(tmp_path, 2) as three:
        assert three.take(4)  # of one that is gone


@pytest.mark.parametrize("content", [b"", b"one", b"\xff"])
def test_a_claim_that_cannot_be_read_is_nobodys(tmp_path: Path, content: bytes) -> None:
    """As a machine that failed may leave it."""
    with Claims(tmp_path, 0) as one, Claims(tmp_path, 1) as two:
        (tmp_path / "0000003").write_bytes(content)
        assert one.take(3)
        assert not two.take(3)


def test_a_process_that_lives_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "BEAT", 0.01)
    with Claims(tmp_path, 0):
        first = (tmp_path / "process-0").stat().st_mtime_ns
        wait_until(lambda: (tmp_path / "process-0").stat().st_mtime_ns > first, "it beats")


def test_few_blocks_are_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks, and two processes (here: threads) with two workers each: one block for each.

    The first has finished its own and looks at the other's twice before that one is saved.
    """
    saved: list[int] = []
    asked: list[bool] = []
    save, take = Store.save, Claims.take

    def watched_take(self: Claims, number: int) -> bool:
        taken = take(self, number)
        if (self.index, number) == (0, 1):
            asked.append(taken)
        return taken

    def watched_save(self: Store, number: int, arrays: Any) -> None:
        saved.append(number)
        if number == 1:
            wait_until(lambda: len(asked) >= 2, "the first process has looked twice", 30)
        save(self, number, arrays)

    monkeypatch.setattr(Store, "save", watched_save)
    monkeypatch.setattr(Claims, "take", watched_take)
    options: dict[str, Any] = {"axes": {"delay": [9], "states": [4]}, "workers": 2}
    with ThreadPoolExecutor(2) as pool:
        second = pool.submit(small, store=tmp_path, processes=(1, 2), **options)
        wait_until(lambda: (tmp_path / "claims" / "0000001").exists(), "the second has begun")
        first = pool.submit(small, store=tmp_path, processes=(0, 2), **options)
        same(first.result(timeout=120), second.result(timeout=120))
    assert sorted(saved) == [0, 1]
    assert not any(asked)
    assert list((tmp_path / "claims").iterdir()) == []
