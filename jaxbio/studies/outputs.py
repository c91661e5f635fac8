"""What a study leaves in its folder: finished parts, its numbers as netCDF, and its figures.

Names are made of the options, so that no study overwrites another or meets its finished parts.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import xarray as xr

from jaxbio.storage import netcdf
from jaxbio.storage.atomic import SCRATCH
from jaxbio.studies import specs
from jaxbio.sweeps.workers import number_of_workers

LONGEST = 100  # letters of a name; file systems take 255 with what comes before and after


def named(*options: Any) -> str:
    """A name made of options: one of several values has them joined, one that is None is left out.

    What a file name should not have is replaced; a long name ends in a hash of the whole.
    """
    words = ["-".join(map(str, one)) if isinstance(one, list | tuple) else str(one)
             for one in options if one is not None]  # fmt: skip
    whole = "_".join(words)
    name = re.sub(r"[^\w.=+-]", "-", whole)
    if len(name) <= LONGEST:
        return name
    return f"{name[:LONGEST]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def problem(options: Any) -> list[str]:
    """What --environment, --set and --delay say, for a name."""
    changes = [f"{option}={value}" for option, value in options.set or []]
    delay = [] if options.delay is None else [f"delay={specs.delay_name(options.delay)}"]
    return [specs.environment_name(options.environment), *changes, *delay]


def parts(options: Any, name: str) -> Path:
    """Where finished parts are kept: as asked, or in the folder of the study."""
    asked = getattr(options, "store", None)
    return options.folder / "store" / name if asked is None else asked


def try_places(options: Any) -> None:
    """Raise where what a command makes could not be written, before anything is played."""
    folder = getattr(options, "folder", None)
    for name in ("figure", "report"):
        place = getattr(options, name, None)
        if place is not None:
            try_file(f"--{name}", place)
    if folder is not None:
        try_file("--folder", folder / "figure")


def try_file(what: str, path: Path) -> None:
    """Raise where a file cannot be written. Nothing is left behind, no folder either."""
    try:
        if path.is_dir():
            raise ValueError(f"{what} must be a file, but {path} is a folder")
        if path.exists() and not os.access(path, os.W_OK):
            raise ValueError(f"{what} cannot be written: {path} is protected")
        _try_beside(what, path)
    except OSError as error:
        raise ValueError(f"{what} cannot be written: {path}: {error.strerror}") from error


def _try_beside(what: str, path: Path) -> None:
    """Write an empty file beside this one, in a folder that is made if need be."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}{SCRATCH}")
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in path.parents:
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{what} cannot be written: {folder} is not a folder")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.touch(exist_ok=False)
        scratch.unlink()
    finally:
        for folder in missing:
            with suppress(OSError):  # never made, or another process has put something there
                folder.rmdir()


def write(
    folder: Path, prefix: str, data: Mapping[str, xr.Dataset], figure: str, draw: Callable[..., Any]
) -> list[str]:
    """Returns the files.

    data: name of a file -> what goes into it. figure: what follows the prefix in its names; draw:
    look -> figure.
    """
    from jaxbio.figures.saving import Drawing, save_all  # matplotlib takes a while to import

    numbers = [netcdf.save(one, folder / f"{name}.nc") for name, one in data.items()]
    (made,) = save_all([Drawing(figure, "", draw)], folder, prefix, number_of_workers())
    return [str(path) for path in (*numbers, *made.values())]
