"""jaxbio beyond: mappings that change, an unknown horizon, unknown states."""

from __future__ import annotations

from functools import partial
from typing import Any

import xarray as xr

from jaxbio.analysis.intervals import of_mean
from jaxbio.studies import parsing
from jaxbio.studies.beyond.study import FORGETFUL, at_best, play_beyond
from jaxbio.studies.outputs import named, parts, write

Rows = dict[str, dict[str, dict[str, float]]]  # learner -> value of an axis -> see `means`
OPTIONS = ("horizon", "delay", "changes", "memories", "runs", "seed")


def add(commands: Any) -> None:
    about = "mappings that change, an unknown horizon, unknown states"
    example = "jaxbio beyond --runs 200"
    made = parsing.add_study(commands, "beyond", about, study, example, play_beyond)
    parsing.fixed(made, play_beyond)
    parsing.option(made, "--changes", play_beyond, "of the mapping", type=parsing.whole)
    parsing.option(
        made, "--memories", play_beyond, "after which learners forget, in phases", type=float
    )


def study(options: Any) -> tuple[dict[str, Any], str]:
    """Play both parts, write data and figures; what is found, and as text."""
    given = {name: getattr(options, name) for name in OPTIONS}
    name = named(*given.values())
    changes, unknowns = play_beyond(**given, store=parts(options, name), progress=not options.quiet)
    from jaxbio.studies.beyond.figure import beyond  # matplotlib takes a while to import

    data = {f"{name}-changes": changes, f"{name}-unknowns": unknowns}
    draw = partial(beyond, changes, unknowns)
    dynamic = changes.dynamic_regret
    found = {
        "files": write(options.folder, name, data, "regret", draw),
        "uniform play": float(changes.uniform_regret),
        "dynamic regret by changes": means(at_best(dynamic), "changes"),
        **{
            f"dynamic regret by memory in phases, changes: {count}": means(
                dynamic.sel(changes=count, learner=list(FORGETFUL)), "memory"
            )
            for count in changes.changes.values.tolist()
        },
        "regret by allowed states / states": means(unknowns.final_regret, "spare"),
    }
    return found, as_text(found)


def means(values: xr.DataArray, axis: str) -> Rows:
    """learner -> value of the axis -> mean over runs, low and high, its 95 % interval."""
    ordered = values.transpose("learner", axis, "run")
    ends = dict(zip(("mean", "low", "high"), of_mean(ordered.values), strict=True))
    return {
        str(name): {
            str(value): {end: round(float(table[i, j]), 1) for end, table in ends.items()}
            for j, value in enumerate(ordered[axis].values)
        }
        for i, name in enumerate(ordered.learner.values)
    }


def as_text(found: dict[str, Any]) -> str:
    """Tables, and where the files are."""
    lines = [f"uniform play: {found['uniform play']:,.1f}"]
    for title, rows in found.items():
        if title not in ("files", "uniform play"):
            lines += ["", title, *_table(rows)]
    return "\n".join([*lines, "", *found["files"]])


def _table(rows: Rows) -> list[str]:
    """Means and half the widths of their intervals."""
    values = next(iter(rows.values()))
    return [" " * 26 + "".join(f"{value:>17}" for value in values)] + [
        f"  {name:<24}"
        + "".join(
            f"{one['mean']:>10,.1f} ±{one['high'] - one['mean']:>5.1f}" for one in row.values()
        )
        for name, row in rows.items()
    ]
