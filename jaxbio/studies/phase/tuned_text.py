"""jaxbio phase --tuned: what was found, as numbers and as text."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from jaxbio.studies.outputs import write
from jaxbio.studies.phase.tuned import AS_MADE, MAPPINGS
from jaxbio.studies.phase.worth import (
    DIFFERENCE,
    FORMS,
    GROUPS,
    HELPS,
    HURTS,
    RATIO,
    REGRET,
    UNDECIDED,
    Worth,
    overall,
    sides,
)

ON = {
    MAPPINGS[0]: "On a mapping that does not change",
    MAPPINGS[1]: "On a mapping that changes",
    AS_MADE[0]: "On the mapping of this family",
}
WHO = {
    "tuned": ("the best learner with states", "the best without"),
    "theorem": ("MetaBIO in the form of its theorem", "its base without states"),
}
PLACE = ("mapping", "actions", "horizon")
SIDES = {"helps": HELPS, "undecided": UNDECIDED, "hurts": HURTS}
HEAD = (
    f"{'S':>5}   {'surely helps at d =':<27}{'undecided at d =':<27}{'surely hurts at d =':<27}"
    f"{'at best':<24}best with states : best without, in how many cells"
)


def found_in(data: xr.Dataset, folder: Path, name: str) -> tuple[dict[str, Any], str]:
    """Write numbers and the figure; what is found, and as text. data: of `worth_diagram`."""
    from jaxbio.studies.phase.figures.tuned import (
        worth_panels,  # matplotlib takes a while to import
    )

    files = write(folder, name, {name: data}, "worth", partial(worth_panels, data))
    found = {
        "files": files,
        "summary": summary(data),
        "ranges": helpful_ranges(data),
        "cells": all_cells(data),
    }
    return found, as_text(found)


def summary(data: xr.Dataset) -> list[dict[str, Any]]:
    """All cells of a form, a mapping, a K and a T in a few numbers, and as a sentence."""
    rows = []
    for form in FORMS:
        for place in _places(data, PLACE):
            found = overall(data.sel(place | {"form": form}))
            sentence = in_a_sentence(form, place["mapping"], found)
            rows.append({"form": form, **place, **found._asdict(), "sentence": sentence})
    return rows


def in_a_sentence(form: str, mapping: str, found: Worth) -> str:
    """What states are worth, and in how many cells."""
    with_states, without = WHO[form]
    size = (
        f"has {_percent(found.ratio, found.low, found.high)} of the regret of {without}, the "
        f"geometric mean over {found.rated} cells (from {100 * found.least:.0f} % to "
        f"{100 * found.most:.0f} %)"
        if found.rated
        else f"has no ratio to {without}: no cell has two mean regrets above 0"
    )
    return (
        f"{ON[mapping]}, {with_states} {size}; states surely help in {found.helps} of "
        f"{found.cells} cells and surely hurt in {found.hurts}."
    )


def helpful_ranges(data: xr.Dataset) -> list[dict[str, Any]]:
    """Of the tuned form, for every mapping, K, T and S: the delays of the grid at which states
    surely help, surely hurt, or neither is sure; where they help most; and who is best in how many
    cells.
    """
    tuned, rows = data.sel(form="tuned"), []
    for place in _places(data, (*PLACE, "states")):
        own = tuned.sel(place)
        found = sides(own).values
        best = int(np.argmin(own.ratio.fillna(np.inf).values))
        rows.append(
            {
                **place,
                **{name: own.delay.values[found == side].tolist() for name, side in SIDES.items()},
                "best_delay": int(own.delay[best]),
                **{f"best_{name}": _number(own[name][best]) for name in RATIO},
                "chosen": {
                    group: dict(Counter(own.chosen.sel(group=group).values.tolist()).most_common())
                    for group in GROUPS
                },
            }
        )
    return rows


def all_cells(data: xr.Dataset) -> list[dict[str, Any]]:
    """Every cell of both forms: who played, with which regret, and how they compare."""
    rows = []
    for place in _places(data, ("form", *PLACE, "states", "delay")):
        own = data.sel(place)
        spot = {name: value for name, value in place.items() if name != "form"}
        row = place | {name: _number(own[name]) for name in (*RATIO, *DIFFERENCE)}
        for group in GROUPS:
            one = own.sel(group=group)
            row[group.replace(" ", "_")] = {
                "learner": str(one.chosen.values),
                "setting": str(one.setting.values),
                **{name: _number(one[name]) for name in REGRET},
            }
        row["uniform"] = float(data.uniform_regret.sel(spot).mean())
        rows.append(row)
    return rows


def _places(data: xr.Dataset, names: tuple[str, ...]) -> list[dict[str, Any]]:
    values = itertools.product(*(data[name].values.tolist() for name in names))
    return [dict(zip(names, one, strict=True)) for one in values]


def _number(one: xr.DataArray) -> float | None:
    """None where there is none: JSON has no NaN."""
    return None if np.isnan(one.values) else float(one)


def as_text(found: dict[str, Any]) -> str:
    """The sentences, a table for each mapping, K and T, and where the files are."""
    lines = [row["sentence"] for row in found["summary"]]
    grid = sorted({cell["delay"] for cell in found["cells"]})
    for place, rows in itertools.groupby(found["ranges"], lambda row: [row[n] for n in PLACE]):
        mapping, actions, horizon = place
        lines += ["", f"{ON[mapping]}, K = {actions}, T = {horizon:,}:", HEAD]
        lines += [_row(row, grid) for row in rows]
    return "\n".join([*lines, "", *found["files"]])


def _percent(ratio: float, low: float, high: float) -> str:
    return f"{100 * ratio:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def _row(row: dict[str, Any], grid: list[int]) -> str:
    reaches = "".join(f"{_stretches(row[name], grid):<27}" for name in SIDES)
    ratio, low, high = (row[f"best_{name}"] for name in RATIO)
    best = "no ratio" if ratio is None else _percent(ratio, low, high)
    who = " : ".join(
        ", ".join(f"{label} {count}" for label, count in row["chosen"][group].items())
        for group in GROUPS
    )
    return f"{row['states']:>5}   {reaches}{best + ' at ' + str(row['best_delay']):<24}{who}"


def _stretches(delays: list[int], grid: list[int]) -> str:
    """Those that follow each other in the grid as one."""
    places = [grid.index(delay) for delay in delays]
    groups = [
        [grid[i] for _, i in group]
        for _, group in itertools.groupby(enumerate(places), lambda pair: pair[1] - pair[0])
    ]
    words = [f"{g[0]:,} to {g[-1]:,}" if len(g) > 1 else f"{g[0]:,}" for g in groups]
    return ", ".join(words) or "-"
