"""What a study leaves in its folder: finished parts, its numbers as netCDF, and its figures.

Names are made of the options, so that no study overwrites another or meets its finished parts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from jaxbio import netcdf
from jaxbio.workers import number_of_workers

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
    delay = [] if options.delay is None else [f"delay={options.delay}"]
    return [options.environment, *changes, *delay]


def parts(options: Any, name: str) -> Path:
    """Where finished parts are kept: as asked, or in the folder of the study."""
    asked = getattr(options, "store", None)
    return options.folder / "store" / name if asked is None else asked


def write(
    folder: Path, prefix: str, data: Mapping[str, xr.Dataset], figure: str, draw: Callable[..., Any]
) -> list[str]:
    """Returns the files.

    data: name of a file -> what goes into it. figure: what follows the prefix in its names; draw:
    look -> figure.
    """
    from jaxbio.figures import Drawing, save_all  # matplotlib takes a while to import

    numbers = [netcdf.save(one, folder / f"{name}.nc") for name, one in data.items()]
    (made,) = save_all([Drawing(figure, "", draw)], folder, prefix, number_of_workers())
    return [str(path) for path in (*numbers, *made.values())]
