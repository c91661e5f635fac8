"""How many runs a block has: the one place that says so. Never part of a result."""

from __future__ import annotations

from jaxbio.engine.backends.choice import platform
from jaxbio.engine.backends.layout import WIDTH
from jaxbio.engine.player import ROUNDS_PER_CALL

ROUNDS_OF_A_BLOCK = 1 << 22  # of all its runs: some 20 ms of play, so that a call costs nothing
EVEN = 4  # blocks of a sweep are a multiple of so many: no worker is idle in the last turn
LONG = 2 * WIDTH  # runs of a block whose games take many calls
BLOCK_BYTES = 1 << 28  # what a block carries, and its stacked tables, stay below this
DEVICE_BYTES = 1 << 32  # the same on a GPU, where runs are threads:
DEVICE_RUNS = 1 << 17  # 132 multiprocessors with a thousand threads each have enough of them
FILLING = 1 << 16  # with fewer, less than 16 warps of 32 runs for each of these, some have to wait


def is_whole(horizon: int, backend: str | None) -> bool:
    """Are games of this length played vector by vector, each from beginning to end?

    Then a block needs room for what one vector of runs carries, however many runs it has.
    """
    on_cpu = backend == "llvm" or (backend is None and platform() == "cpu")
    return on_cpu and horizon <= ROUNDS_PER_CALL


def widest(horizon: int, carried: int, backend: str | None) -> int:
    """The most runs of a block that are worth having. carried: bytes of a run."""
    if platform() == "cpu":
        whole = is_whole(horizon, backend)
        width = max(WIDTH, ROUNDS_OF_A_BLOCK // horizon) if whole else LONG
        room = width if whole else max(WIDTH, BLOCK_BYTES // max(1, carried))
    else:
        width, room = DEVICE_RUNS, max(WIDTH, DEVICE_BYTES // max(1, carried))
    return stepped(min(width, room))


def stepped(runs: int) -> int:
    """A whole number of vectors with room for so many runs."""
    return -(-runs // WIDTH) * WIDTH


def shared_out(runs: int, most: int, workers: int) -> int:
    """Runs of a block, at most so many, such that every worker plays equally many blocks."""
    turns = -(-runs // (most * workers))
    return stepped(-(-runs // (turns * workers)))


def side_by_side(runs: int, horizon: int, carried: int, backend: str | None) -> int:
    """Runs of a block of a sweep that has so many: a measured default. It leaves work for a second
    worker where there are runs enough (on a GPU, where half of them fill it), and as much for every
    one of two or four. How many workers there are does not count, so that a store can move to
    another machine.
    """
    most = widest(horizon, carried, backend)
    blocks = -(-runs // most)
    even = EVEN * -(-blocks // EVEN) if blocks > 2 else 2
    own = stepped(-(-runs // even))
    if platform() != "cpu":
        own = min(max(own, FILLING), stepped(runs))
    return min(own, most)


def of_several(width: int, runs: int, tables: int) -> int:
    """Runs of a block, at most `width`, that plays several settings side by side; 0 where the runs
    of one setting are worth blocks of their own. tables: bytes of those of a setting.
    """
    while tables * width > BLOCK_BYTES and width > 1:
        width //= 2
    enough = WIDTH if platform() == "cpu" else FILLING
    return 0 if runs >= min(enough, width) or tables * WIDTH > BLOCK_BYTES else width


def in_memory(width: int, horizon: int, backend: str | None) -> int:
    """Runs of a block whose state is in memory at the same time."""
    return WIDTH if is_whole(horizon, backend) else stepped(width)
