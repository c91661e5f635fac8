"""jaxbio phase: where intermediate observations help, over the number of states and the delay."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from jaxbio.studies import parsing, specs
from jaxbio.studies.families import FAMILY
from jaxbio.studies.outputs import write
from jaxbio.studies.phase.study import helpful_delays, phase_diagram
from jaxbio.studies.phase.tuned import worth_diagram
from jaxbio.studies.phase.tuned_text import found_in
from jaxbio.studies.practical import TRAINING_RUNS

PLACE = ("actions", "horizon", "states")


def add(commands: Any) -> None:
    about = "where intermediate observations help, over states and delays"
    example = "jaxbio phase --tuned"
    made = parsing.add_study(commands, "phase", about, study, example, phase_diagram)
    about = (
        "the best learner with states against the best without, both tuned in every cell "
        "(else MetaBIO and MetaAdaBIO in the form of their theorems, each against its base)"
    )
    made.add_argument("--tuned", action="store_true", help=about)
    about = "with --tuned: of each setting, in other worlds than those that judge"
    parsing.option(made, "--training", worth_diagram, about, type=parsing.whole)
    made.add_argument("--grid", choices=list(GRIDS), default="small", help="of S and d")
    parsing.family(made, phase_diagram)
    parsing.option(made, "--actions", phase_diagram, "K", type=parsing.whole)
    parsing.option(made, "--horizon", phase_diagram, "rounds T", "horizons", type=parsing.whole)


def geometric(low: int, high: int, count: int) -> list[int]:
    """About that many integers from low to high, evenly spaced on a logarithmic scale."""
    return np.unique(np.geomspace(low, high, count).round().astype(int)).tolist()


FEW_STATES = [2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24]
GRIDS = {  # name: states, delays
    "small": ([2, 3, 4, 6, 8, 11, 16, 23], [2, 4, 8, 16, 32, 64, 128, 256]),
    "medium": (FEW_STATES, geometric(2, 1024, 12)),
    "full": (list(range(2, 33, 2)), list(range(8, 129, 8))),
    "wide": ([*FEW_STATES, 32, 64, 128, 256], geometric(1, 4096, 16)),
}


def study(options: Any) -> tuple[dict[str, Any], str]:
    """Play the grid, write data and figures; what is found, and as text."""
    name = _name(options)
    given = {
        "actions": options.actions,
        "horizons": options.horizon,
        "runs": options.runs,
        "seed": options.seed,
        "family": specs.family(options.family),
        "store": options.folder / "store" / name,
        "progress": not options.quiet,
    }
    if options.tuned:
        data = worth_diagram(*GRIDS[options.grid], training=options.training, **given)
        return found_in(data, options.folder, name)
    if options.training != TRAINING_RUNS:
        raise ValueError(f"--training is for --tuned, but got {options.training} without it")
    data = phase_diagram(*GRIDS[options.grid], **given)
    found = {"files": _written(data, options.folder, name), "ranges": ranges(data)}
    return found, as_text(found)


def _written(data: xr.Dataset, folder: Path, name: str) -> list[str]:
    """Numbers and figures; with several sizes a figure for each wrapper, else they are too tall."""
    from jaxbio.studies.phase.figures.theorem import phase  # matplotlib takes a while to import

    if data.sizes["actions"] * data.sizes["horizon"] == 1:
        return write(folder, name, {name: data}, "phase", partial(phase, data))
    files = []
    for number, wrapper in enumerate(data.wrapper.values.tolist()):
        numbers = {name: data} if number == 0 else {}
        own = partial(phase, data.sel(wrapper=[wrapper]))
        files += write(folder, name, numbers, f"phase-{wrapper}", own)
    return files


def _name(options: Any) -> str:
    """Of the files of these very options."""
    several = ("-".join(map(str, values)) for values in (options.actions, options.horizon))
    family = [one for one in [specs.family_name(options.family)] if one != FAMILY]
    tuned = [f"tuned-{options.training}"] * options.tuned
    return "-".join([*tuned, *family, options.grid, *several, str(options.runs), str(options.seed)])


def ranges(data: xr.Dataset) -> list[dict[str, Any]]:
    """For every wrapper, K, T and S: the delays at which states help, surely do or perhaps do."""
    rows = []
    for wrapper in map(str, data.wrapper.values):
        ends = helpful_delays(data, wrapper).transpose("reach", ..., "end")
        for place in itertools.product(*(data[name].values.tolist() for name in PLACE)):
            point = dict(zip(PLACE, place, strict=True))
            found = {str(one.reach.values): _or_none(one.sel(point).values) for one in ends}
            found["helps"] = found.pop("line")
            rows.append({"wrapper": wrapper, **point, **found})
    return rows


def _or_none(ends: np.ndarray) -> list[float] | None:
    return None if np.isnan(ends).any() else [round(float(end), 2) for end in ends]


def as_text(found: dict[str, Any]) -> str:
    """The ranges as a table, and where the files are. They are as wide as the grid, at most."""
    head = "".join(
        [
            f"{'wrapper':<12}{'K':>4}{'T':>9}{'S':>5}   {'helps at delays':<20}",
            f"{'surely (95 %)':<20}perhaps",
        ]
    )
    rows = [
        f"{row['wrapper']:<12}{row['actions']:>4}{row['horizon']:>9,}{row['states']:>5}   "
        f"{_shown(row['helps']):<20}{_shown(row['surely']):<20}{_shown(row['perhaps'])}"
        for row in found["ranges"]
    ]
    return "\n".join([head, *rows, *found["files"]])


def _shown(ends: list[float] | None) -> str:
    return "none of the grid" if ends is None else f"{ends[0]:,.0f} to {ends[1]:,.0f}"
