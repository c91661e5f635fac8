"""Figures to files: every variant of every drawing, in several processes if asked.

Matplotlib draws in one thread, and a report has some thirty files: drawn side by side they take
little more than half the time on two cores.
"""

from __future__ import annotations

import io
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from PIL import Image

from jaxbio.display.bars import tqdm
from jaxbio.figures.style import DPI, THEMES, Look, style
from jaxbio.storage import atomic

COLOURS = 256  # in a PNG


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


def save(figure: Figure, stem: Path, kinds: Sequence[str] = ("png", "pdf")) -> list[Path]:
    """Write a figure as PNG and PDF, named by the stem; the same bytes for the same figure."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    saved = []
    for kind in kinds:
        path = stem.with_name(f"{stem.name}.{kind}")
        if kind == "png":
            atomic.write(path, as_png(figure))
        else:
            with rc_context({"pdf.fonttype": 42}), atomic.aside(path) as scratch:
                figure.savefig(scratch, format=kind, metadata={"CreationDate": None})
        saved.append(path)
    return saved


def save_as(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the file's name asks for."""
    if path.suffix in (".png", ".pdf"):
        save(figure, path.with_suffix(""), [path.suffix[1:]])
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic.aside(path) as scratch:
        figure.savefig(scratch, format=path.suffix[1:], dpi=DPI)


def as_png(figure: Figure) -> bytes:
    """The bytes of a file. 256 colours are enough for lines and letters, and take a third of the
    space; a figure whose colours are numbers keeps them all.
    """
    figure.set_dpi(DPI)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    if _colours_are_numbers(figure):
        image = Image.fromarray(pixels)
    else:
        palette, indices = _few_colours(pixels)
        image = Image.fromarray(indices, "P")
        image.putpalette(palette.tobytes())
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", dpi=(DPI, DPI))
    return buffer.getvalue()


def _colours_are_numbers(figure: Figure) -> bool:
    """Is something drawn with a scale of colours? Steps of a scale are few pixels each, and would
    lose their colours to those of letters.
    """
    drawn: Any = figure.findobj(lambda one: isinstance(one, ScalarMappable))
    return any(one.get_array() is not None for one in drawn)


def _few_colours(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most frequent colours, uint8 [colours, 3], and the one of each pixel, uint8 [h, w].

    Areas of one colour keep it exactly, being frequent; the blurred edges of lines and letters are
    rounded to the nearest. (Pillow's own ways give pale areas another hue.) Not for scales of
    colours, see `_colours_are_numbers`. pixels: uint8 [h, w, 3].
    """
    packed = pixels.astype(np.int32) @ np.array([1 << 16, 1 << 8, 1], np.int32)
    counts = np.bincount(packed.ravel(), minlength=1 << 24)
    found = np.flatnonzero(counts)
    found = found[np.argsort(-counts[found], kind="stable")]
    colours = np.stack([found >> 16, (found >> 8) & 255, found & 255], axis=1)  # [found, 3]
    palette = colours[:COLOURS]
    rest = colours[COLOURS:].astype(np.float32)
    # The nearest has the least |p|^2 - 2 p c; |c|^2 is the same for all.
    score = np.sum(palette**2, axis=1) - 2 * rest @ palette.T.astype(np.float32)
    index = np.zeros(1 << 24, np.uint8)
    index[found[:COLOURS]] = np.arange(len(palette))
    index[found[COLOURS:]] = np.argmin(score, axis=1)
    return palette.astype(np.uint8), index[packed]
