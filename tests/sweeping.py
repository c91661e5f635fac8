"""What the tests of sweeps share: a small sweep, comparisons, and a script that plays it.

    python tests/sweeping.py '{"out": "result.pickle", "store": "folder", ...}'

plays `SMALL` in a process of its own, so that it can be killed or given other devices. Options
besides those of `jb.sweep`:

- out: where the pickled outcome goes;
- call: rounds per call of the program, so that blocks are played in several stretches;
- pause: seconds spent in every writing of a file, and before its renaming;
- begun: a file that gets the round from which each block was begun.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

import jaxbio as jb

HERE = Path(__file__)
DELAYS, STATES = [2, 9, 5], [2, 4]


def utility(delay: Any = 9, states: int = 4) -> jb.Environment:
    """The paper's third problem with 3 actions; delay: a number, or delays."""
    delays = jb.FixedDelay(delay) if isinstance(delay, int) else delay
    return jb.make_environment("paper-utility", actions=3, states=states, delays=delays)


# 12 blocks of one program.
SMALL: dict[str, Any] = {
    "environment": utility,
    "learners": {"dada": jb.make_learner("dada-exp3")},
    "axes": {"delay": DELAYS, "states": STATES},
    "horizon": 300,
    "runs": 16,
    "rounds": 6,
    "width": 8,
    "progress": False,
}
BLOCKS = 12


def small(**options: Any) -> xr.Dataset:
    return jb.sweep(**(SMALL | options))


@cache
def small_alone() -> xr.Dataset:
    """`SMALL` in this process, never interrupted."""
    return small()


def same(one: xr.Dataset, other: xr.Dataset) -> None:
    """Equal in every bit, type and attribute."""
    xr.testing.assert_identical(one, other)
    for name in one.variables:
        assert one[name].dtype == other[name].dtype, name


def is_played_alike(cell: xr.Dataset, result: jb.Result) -> None:
    """A point of a sweep holds what `simulate` gives there, bit for bit."""
    assert np.array_equal(cell["round"], result.rounds)
    np.testing.assert_array_equal(cell["regret"], result.regret)
    np.testing.assert_array_equal(cell["loss"], result.loss)
    np.testing.assert_array_equal(cell["final_regret"], result.final_regret)
    assert result.info
    for name, fact in result.info.items():
        np.testing.assert_array_equal(cell[name], fact, err_msg=name)
        assert cell[name].dtype == fact.dtype, name


def blocks_in(store: Path) -> set[str]:
    return {file.name for file in (store / "blocks").glob("*.npz")}


def wait_until(condition: Callable[[], Any], what: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.01)


# --- processes


class Outcome(NamedTuple):
    """What a process has to tell: its dataset, the blocks that it saved, block -> its device."""

    dataset: xr.Dataset
    saved: list[int]
    devices: dict[int, str]


def start(cache_dir: Path, options: dict[str, Any], **variables: str) -> subprocess.Popen[str]:
    """The script in a process of its own. Programs compiled by one are kept for the next."""
    given = {
        "PYTHONPATH": str(HERE.parents[1]),
        "JAX_COMPILATION_CACHE_DIR": str(cache_dir),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return subprocess.Popen(
        [sys.executable, str(HERE), json.dumps(options)],
        env=environment | given | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], out: Path) -> Outcome:
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors[-3000:]
    return Outcome(*pickle.loads(out.read_bytes()))


def _stretch_writing(pause: float) -> None:
    """Spend that long in the middle of writing a file, and again before it gets its name."""
    files: Any = sys.modules["jaxbio.storage.atomic"]

    rename = os.replace

    class Slow(io.FileIO):
        def write(self, content: Any) -> int:
            half = len(content) // 2
            written = super().write(content[:half])
            time.sleep(pause)
            return written + super().write(content[half:])

    def replace(source: Any, target: Any) -> None:
        time.sleep(pause)
        rename(source, target)

    os.replace = replace
    files.open = Slow  # in the place of the builtin


class _Noting:
    """A machine, and the device on which it has played last."""

    def __init__(self, machine: Any) -> None:
        self.machine, self.device = machine, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.machine, name)

    def play(self, numbers: Any, keys: Any, state: Any, *rest: Any) -> Any:
        if state is None and self.machine.name != "llvm":  # it would not be given back
            state = self.machine.fresh(keys.shape[-1])
        out = self.machine.play(numbers, keys, state, *rest)
        device: Any = jax.config.jax_default_device  # type: ignore[attr-defined]
        if self.machine.name != "llvm":  # where it was really played
            (device,) = jax.tree.leaves(out[0])[0].devices()
        self.device = str(device)
        return out


def _watch(begun: str | None) -> tuple[list[int], dict[int, str]]:
    """Lists that will hold the blocks saved and the device of each block."""
    from jaxbio.storage.store import Store

    module: Any = sys.modules["jaxbio.sweeps.execute"]
    saved: list[int] = []
    devices: dict[int, str] = {}
    save, play_one, play_block = Store.save, module._play_one, module.play_block
    lock = threading.Lock()

    def watched_save(self: Any, block: int, arrays: Any) -> None:
        with lock:
            save(self, block, arrays)
            saved.append(block)

    def watched_block(*args: Any) -> Any:
        if begun is not None:
            with open(begun, "a") as lines:
                lines.write(f"{args[5].last if args[5] else 0}\n")
        return play_block(*args)

    def watched_play(player: Any, block: Any, job: Any, number: int, *rest: Any) -> Any:
        machine = _Noting(player.machine)
        played = play_one(player._replace(machine=machine), block, job, number, *rest)
        devices[number] = machine.device
        return played

    Store.save, module._play_one, module.play_block = watched_save, watched_play, watched_block
    return saved, devices


def main(options: dict[str, Any]) -> None:
    from jaxbio.engine import player

    out = options.pop("out")
    saved, devices = _watch(options.pop("begun", None))
    player.ROUNDS_PER_CALL = options.pop("call", player.ROUNDS_PER_CALL)
    if "pause" in options:
        _stretch_writing(options.pop("pause"))
    print("ready", flush=True)
    dataset = small(**options)
    Path(f"{out}.part").write_bytes(pickle.dumps((dataset, saved, devices)))
    Path(f"{out}.part").rename(out)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
