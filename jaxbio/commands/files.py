"""What a study leaves in its folder: its numbers as netCDF, and its figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from jaxbio import netcdf
from jaxbio.workers import number_of_workers


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
