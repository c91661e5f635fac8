"""jaxbio phase: where intermediate observations help, over the number of states and the delay."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from jaxbio.commands import specs
from jaxbio.commands.files import write
from jaxbio.lab.phase import helpful_delays, phase_diagram, utility_family


def geometric(low: int, high: int, count: int) -> list[int]:
    """About that many integers from low to high, evenly spaced on a logarithmic scale."""
    return np.unique(np.geomspace(low, high, count).round().astype(int)).tolist()


GRIDS = {  # name: states, delays
    "small": ([2, 3, 4, 6, 8, 11, 16, 23], [2, 4, 8, 16, 32, 64, 128, 256]),
    "full": (list(range(2, 33, 2)), list(range(8, 129, 8))),
    "wide": (geometric(2, 256, 16), geometric(1, 4096, 16)),
}


def study(options: Any) -> tuple[dict[str, Any], str]:
    """Play the grid, write data and figures; what is found, and as text."""
    states, delays = GRIDS[options.grid]
    family = utility_family if options.family == "utility" else specs.function(options.family)
    data = phase_diagram(
        states,
        delays,
        actions=options.actions,
        horizons=options.horizon,
        runs=options.runs,
        seed=options.seed,
        family=family,
        store=options.folder / "store" / _name(options),
        progress=not options.quiet,
    )
    from jaxbio.figures.phase import phase  # matplotlib takes a while to import

    name = _name(options)
    files = write(options.folder, name, {name: data}, "phase", partial(phase, data))
    found = {"files": files, "ranges": ranges(data)}
    return found, as_text(found)


def _name(options: Any) -> str:
    """Of the files of these very options."""
    several = ("-".join(map(str, values)) for values in (options.actions, options.horizon))
    family = [] if options.family == "utility" else [options.family.replace(":", "-")]
    return "-".join([*family, options.grid, *several, str(options.runs), str(options.seed)])


def ranges(data: xr.Dataset) -> list[dict[str, Any]]:
    """For every wrapper, K, T and S: the delays at which states help, or surely do."""
    rows = []
    for wrapper in map(str, data.wrapper.values):
        ends = {which: helpful_delays(data, wrapper, which) for which in ("ratio", "high")}
        places = ends["ratio"].isel(end=0).stack(place=("actions", "horizon", "states")).place
        for place in places.values:
            point = dict(zip(("actions", "horizon", "states"), map(int, place), strict=True))
            found = {name: _or_none(end.sel(point).values) for name, end in ends.items()}
            rows.append(
                {"wrapper": wrapper, **point, "helps": found["ratio"], "surely": found["high"]}
            )
    return rows


def _or_none(ends: np.ndarray) -> list[float] | None:
    return None if np.isnan(ends).any() else [round(float(end), 2) for end in ends]


def as_text(found: dict[str, Any]) -> str:
    """The ranges as a table, and where the files are."""
    head = f"{'wrapper':<12}{'K':>4}{'T':>9}{'S':>5}   {'helps at delays':<20}surely (95 %)"
    rows = [
        f"{row['wrapper']:<12}{row['actions']:>4}{row['horizon']:>9,}{row['states']:>5}   "
        f"{_shown(row['helps']):<20}{_shown(row['surely'])}"
        for row in found["ranges"]
    ]
    return "\n".join([head, *rows, *found["files"]])


def _shown(ends: list[float] | None) -> str:
    return "none of the grid" if ends is None else f"{ends[0]:,.0f} to {ends[1]:,.0f}"
