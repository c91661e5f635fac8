"""How many modules a reader passes on the way from a call to its result."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
import xarray as xr

import jaxbio as jb
from jaxbio.engine.backends import choice
from jaxbio.storage.store import Store
from jaxbio.sweeps.result import Result, running_sum

ROOT = Path(jb.__file__).parent
BACKENDS = ROOT / "engine" / "backends"
# Where a walk ends: a program is made, what it played is added up, stored, and handed back.
ENDS: set[CodeType] = {
    one.__code__
    for one in (choice.make, running_sum, Store.save, Result.__init__, xr.Dataset.__init__)
}


def delayed(delay: int) -> jb.Environment:
    # Sizes that no other test has: the program is made here.
    return jb.make_environment("paper-utility", actions=5, states=7, delays=jb.FixedDelay(delay))


def simulated(folder: Path) -> Any:
    return jb.simulate(delayed(3), jb.UCB1(), horizon=50, runs=4, progress=False)


def swept(folder: Path) -> Any:
    return jb.sweep(
        delayed, {"ucb1": jb.UCB1()}, {"delay": [3, 4]}, horizon=50, runs=4,
        store=folder / "store", progress=False,
    )  # fmt: skip


def passed(call: Callable[[], Any]) -> set[str]:
    """The modules on the way: of all functions that are running where a walk ends, or where a
    compiled program is called. Threads begin where they are handed their work.
    """
    found: set[str] = set()

    def look(frame: FrameType | None, event: str, _: Any) -> None:
        if frame is None or event != "call" or not _is_end(frame.f_code):
            return
        while frame is not None:
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(ROOT):
                found.add(str(file.relative_to(ROOT).with_suffix("")))
            frame = frame.f_back

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def _is_end(code: CodeType) -> bool:
    played = code.co_name == "play" and Path(code.co_filename).parent == BACKENDS
    handed = code.co_name == "submit" and Path(code.co_filename).parent.name == "futures"
    return code in ENDS or played or handed


@pytest.mark.parametrize(
    ("call", "most", "known"),
    [
        (simulated, 8, {"sweeps/simulate", "sweeps/workers", "engine/player", "sweeps/result"}),
        (swept, 12, {"sweeps/sweep", "sweeps/execute", "sweeps/landing", "sweeps/dataset"}),
    ],
)
def test_walks_are_short(
    call: Callable[[Path], Any], most: int, known: set[str], tmp_path: Path
) -> None:
    found = passed(lambda: call(tmp_path))
    assert found > known
    assert any(name.startswith("engine/backends/") for name in found)
    assert len(found) <= most, sorted(found)
