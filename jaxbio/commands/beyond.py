"""jaxbio beyond: mappings that change, an unknown horizon, unknown states."""

from __future__ import annotations

from functools import partial
from typing import Any

import xarray as xr

from jaxbio.commands.files import write
from jaxbio.lab.beyond import play_beyond


def study(options: Any) -> tuple[dict[str, Any], str]:
    """Play both parts, write data and figures; what is found, and as text."""
    values = options.horizon, options.delay, options.runs, options.seed
    changes, unknowns = play_beyond(
        horizon=options.horizon,
        delay=options.delay,
        runs=options.runs,
        seed=options.seed,
        store=options.folder / "store" / "-".join(map(str, values)),
        progress=not options.quiet,
    )
    from jaxbio.figures.beyond import beyond  # matplotlib takes a while to import

    data = {"changes": changes, "unknowns": unknowns}
    draw = partial(beyond, changes, unknowns)
    found = {
        "files": write(options.folder, "beyond", data, "regret", draw),
        "dynamic regret by changes": means(changes.dynamic_regret, "changes"),
        "regret by allowed states / states": means(unknowns.final_regret, "spare"),
    }
    return found, as_text(found)


def means(values: xr.DataArray, axis: str) -> dict[str, dict[str, float]]:
    """learner -> value of the axis -> mean over runs."""
    mean = values.mean("run")
    return {
        str(name): {
            str(value): round(float(mean.sel({"learner": name, axis: value})), 1)
            for value in mean[axis].values
        }
        for name in mean.learner.values
    }


def as_text(found: dict[str, Any]) -> str:
    """Two tables, and where the files are."""
    lines = []
    for title, rows in found.items():
        if title == "files":
            continue
        values = next(iter(rows.values()))
        lines.append(f"{title:<36}" + "".join(f"{value:>9}" for value in values))
        lines += [
            f"  {name:<34}" + "".join(f"{mean:>9.1f}" for mean in row.values())
            for name, row in rows.items()
        ]
    return "\n".join([*lines, *found["files"]])
