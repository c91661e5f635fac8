"""Data as netCDF through SciPy (the classic format)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from jaxbio.storage import atomic


def save(data: xr.Dataset, path: Path) -> Path:
    """Write what the classic format can hold; the numbers stay exact below 2^53.

    The file is there when it is whole: one of that name stays as it was until then.
    """
    atomic.make_folder(path.parent)
    atomic.remove_leftovers(path.parent)
    with atomic.aside(path) as scratch:
        holdable(data).to_netcdf(scratch, engine="scipy")
    return path


def holdable(data: xr.Dataset) -> xr.Dataset:
    """Integers of at most 32 bits, no booleans, objects as text, attributes text or numbers."""
    variables = {
        name: (variable.dims, _values(variable.values), _attributes(variable.attrs))
        for name, variable in data.variables.items()
    }
    coordinates = {name: variables.pop(name) for name in data.coords}
    return xr.Dataset(variables, coordinates, _attributes(data.attrs))


def _values(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "O":
        return values.astype(str)
    if values.dtype.kind == "b":
        return values.astype(np.int8)
    if values.dtype.kind in "iu" and values.dtype.itemsize >= 4:
        limits = np.iinfo(np.int32)
        fits = values.size == 0 or (values.min() >= limits.min and values.max() <= limits.max)
        return values.astype(np.int32 if fits else np.float64)
    return values


def _attributes(attributes: dict[Any, Any]) -> dict[Any, Any]:
    plain = str | int | float | np.number | np.ndarray
    return {
        name: value if isinstance(value, plain) and not isinstance(value, bool) else str(value)
        for name, value in attributes.items()
    }
