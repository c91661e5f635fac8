"""Blocks in flight at once: threads on the cores or devices of this process, and a bar."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import jax
import numpy as np

from jaxbio import checks
from jaxbio.display.bars import tqdm

T = TypeVar("T")
Advance = Callable[[int], None]


class OutOfTime(Exception):  # noqa: N818
    """The time for play is over (`time_limit`).

    finals: (label of a learner, final regrets [runs]) for each setting, NaN where a run is not
    finished. rounds, played: of all runs together, and how many of them were played.
    """

    finals: list[tuple[str, np.ndarray]]
    rounds: int
    played: int


# When whoever begins to play now has to end.
_limit: ContextVar[Callable[[], float]] = ContextVar("limit", default=lambda: math.inf)


@contextmanager
def time_limit(seconds: float, *, compiling: bool = False) -> Iterator[None]:
    """Within this block whatever plays, plays no longer: it raises `OutOfTime` between two calls
    of a program. compiling: does it count? It is not interrupted in any case.
    """
    end = time.monotonic() + seconds if compiling else None
    token = _limit.set(lambda: time.monotonic() + seconds if end is None else end)
    try:
        yield
    finally:
        _limit.reset(token)


def number_of_workers(workers: Any = None) -> int:
    """Blocks in flight at once: as asked, or one per device, or one per core on a single CPU."""
    if workers is not None:
        return checks.size("workers", workers, 1)
    devices = jax.local_devices()
    if len(devices) > 1 or devices[0].platform != "cpu":
        return len(devices)
    own = getattr(os, "sched_getaffinity", None)  # the cores this process may use, where known
    return len(own(0)) if own else (os.cpu_count() or 1)


def bar(total: int, progress: bool, **options: Any) -> tqdm:
    """A bar that counts rounds; without a terminal (a pipe) it stays quiet."""
    shown = None if progress else True
    return tqdm(total=total, unit="round", unit_scale=True, disable=shown, **options)


# Of JAX: what may be set in a `with` block of one thread, and decides what another one compiles.
IN_THREADS = (
    "enable_x64", "default_prng_impl", "threefry_partitionable", "default_matmul_precision",
    "numpy_dtype_promotion", "numpy_rank_promotion",
)  # fmt: skip


def set_here() -> dict[str, Any]:
    """Name -> value, for those that play for this thread."""
    return {name: getattr(jax.config, f"jax_{name}") for name in IN_THREADS}


@contextmanager
def as_set(values: dict[str, Any]) -> Iterator[None]:
    """JAX as it was set where `set_here` gave these values."""
    with ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(getattr(jax, name)(value))
        yield


def in_parallel(
    play: Callable[[T, Advance], Any],
    tasks: Iterable[T],
    workers: int,
    shown: Any = None,
) -> Iterator[tuple[T, Any]]:
    """Play the tasks, several at once; yields (task, result) as they are finished.

    play: gets a function to call with the number of rounds played; Ctrl-C, or an error in one
    task, stops the others there, before their next stretch; a `time_limit` stops all of them.
    shown: a tqdm bar, or None.
    """
    stopped, deadline = False, _limit.get()()
    here = set_here()

    def advance(rounds: int) -> None:
        if time.monotonic() > deadline:
            raise OutOfTime
        if stopped:
            raise KeyboardInterrupt
        if shown is not None:
            shown.update(rounds)

    begin = threading.Event()  # a thread that plays at once would keep the next from starting

    def play_one(task: T) -> tuple[T, Any]:
        begin.wait()
        with as_set(here):
            return task, play(task, advance)

    with ThreadPoolExecutor(workers) as pool:
        try:
            futures = [pool.submit(play_one, task) for task in tasks]
        finally:
            begin.set()
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            stopped = True
            for future in futures:
                future.cancel()
            raise
