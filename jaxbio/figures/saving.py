"""Drawings to files: every variant of every drawing, in several processes if asked.

Matplotlib draws in one thread, and a report has some thirty files: drawn side by side they take
little more than half the time on two cores.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from matplotlib import rc_context
from matplotlib.figure import Figure
from tqdm.auto import tqdm

from jaxbio.figures.lines import THEMES, Look, save, style


@dataclass(frozen=True)
class Drawing:
    """A figure to be: its name in file names, what it shows in a sentence or two, how to draw."""

    name: str
    caption: str
    draw: Callable[[Look], Figure]

    def figure(self, look: Look) -> Figure:
        with rc_context(style(look)):
            return self.draw(look)


class Variant(NamedTuple):
    """How a drawing is saved: a name, a look, and the kinds of file."""

    name: str
    look: Look
    kinds: tuple[str, ...]


VARIANTS = tuple(
    Variant(f"{theme.name}{'-narrow' if narrow else ''}", Look(theme, narrow), kinds)
    for theme in THEMES
    for narrow, kinds in ((False, ("png", "pdf")), (True, ("png",)))
)


def save_all(
    drawings: Sequence[Drawing], folder: Path, prefix: str, workers: int = 1, progress: bool = False
) -> list[dict[str, Path]]:
    """PNG and PDF, light and dark, and PNG for narrow screens: of each drawing, variant -> file.

    workers: processes. More than one need a main module that can be imported again, as
    multiprocessing does: leave it at 1 in a script without a guard.
    """
    tasks = [(i, variant) for i in range(len(drawings)) for variant in VARIANTS]
    done = (
        _in_processes(drawings, tasks, folder, prefix, workers)
        if workers > 1
        else (_save(drawings[i], variant, folder, prefix) for i, variant in tasks)
    )
    shown = tqdm(done, "figures", len(tasks), unit="figure", disable=None if progress else True)
    files: list[dict[str, Path]] = [{} for _ in drawings]
    for (i, _), made in zip(tasks, shown, strict=True):
        files[i] |= made
    return files


def _save(drawing: Drawing, variant: Variant, folder: Path, prefix: str) -> dict[str, Path]:
    stem = folder / f"{prefix}-{drawing.name}-{variant.name}"
    png, *pdf = save(drawing.figure(variant.look), stem, variant.kinds)
    return {variant.name: png} | {f"{variant.name}-pdf": path for path in pdf}


def _in_processes(
    drawings: Sequence[Drawing],
    tasks: Sequence[tuple[int, Variant]],
    folder: Path,
    prefix: str,
    workers: int,
) -> Iterator[dict[str, Path]]:
    """What each task wrote, in their order."""
    context = get_context("spawn")  # JAX has threads, which do not survive a fork
    pool = ProcessPoolExecutor(workers, context, _remember, (list(drawings),))
    try:
        waiting = [pool.submit(_save_remembered, *task, folder, prefix) for task in tasks]
        for one in waiting:
            yield one.result()
    finally:
        pool.shutdown(cancel_futures=True)


_remembered: list[Drawing] = []  # of a process that draws: data are sent to it once


def _remember(drawings: list[Drawing]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's business
    _remembered[:] = drawings


def _save_remembered(index: int, variant: Variant, folder: Path, prefix: str) -> dict[str, Path]:
    return _save(_remembered[index], variant, folder, prefix)
