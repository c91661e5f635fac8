"""jaxbio guarantees: the theorems' bounds against many runs."""

from __future__ import annotations

from functools import partial
from typing import Any

import xarray as xr

from jaxbio.studies import parsing, specs
from jaxbio.studies.guarantees.study import PROBLEM, check_guarantees
from jaxbio.studies.outputs import named, parts, problem, write

SHOWN = ("bound", "regret_quantile", "ratio", "exceeded", "share_high", "dominant", "verdict")


def add(commands: Any) -> None:
    about = "test the theorems' bounds against many runs"
    example = "jaxbio guarantees --runs 100000 --deltas 0.1 0.01 0.001"
    made = parsing.add_study(commands, "guarantees", about, study, example, check_guarantees)
    parsing.environment(made, PROBLEM, "; random ones are drawn once")
    parsing.option(
        made, "--horizons", check_guarantees, "of the games", type=parsing.whole, metavar="T"
    )
    parsing.option(made, "--deltas", check_guarantees, "of the theorems", type=float)
    parsing.store(made)


def study(arguments: Any) -> tuple[dict[str, Any], str]:
    """Play, write data and figures; what is found, and as text."""
    sizes = arguments.horizons, arguments.deltas, arguments.runs, arguments.seed
    name = named(problem(arguments), *sizes)
    given = specs.settings(arguments.set or [])
    data = check_guarantees(
        specs.environment(arguments.environment, given, arguments.delay),
        horizons=arguments.horizons,
        deltas=arguments.deltas,
        runs=arguments.runs,
        seed=arguments.seed,
        store=parts(arguments, name),
        progress=not arguments.quiet,
    )
    from jaxbio.studies.guarantees.figure import (  # matplotlib takes a while to import
        bounds_and_runs,
    )

    draw = partial(bounds_and_runs, data)
    found = rows(data) | {"files": write(arguments.folder, name, {name: data}, "bounds", draw)}
    return found, as_text(found)


def rows(data: xr.Dataset) -> dict[str, list[dict[str, Any]]]:
    """The tables of guarantees, lemmas and expectations, a dict for each row."""
    lemmas = {"lemma_verdict": "verdict"}
    names = ["failures", "tightness", "lemma_verdict"]
    means = ["expected_bound", "regret_mean", "mean_low", "mean_high", "expected_verdict"]
    found = {
        "guarantees": _records(data[[*SHOWN, "share_low", "quantile_low", "quantile_high"]]),
        "lemmas": _records(data[names].rename(lemmas)),
    }
    if "expectation" in data.dims:
        renamed = {"expected_bound": "bound", "expected_verdict": "verdict"}
        found["expectations"] = _records(data[means].rename(renamed))
    return found


def _records(data: xr.Dataset) -> list[dict[str, Any]]:
    """A dict for each row; None for what is not a number, as JSON has it."""
    found = data.to_dataframe().reset_index().to_dict("records")
    return [{str(name): None if value != value else value for name, value in row.items()}
            for row in found]  # fmt: skip


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def as_text(found: dict[str, Any]) -> str:
    head = (
        f"{'guarantee':<20}{'T':>9}{'delta':>8}{'bound':>10}{'quantile':>10}{'ratio':>8}"
        f"{'above':>7}  {'share at most':<14}{'largest term':<18}holds"
    )
    lines = [head]
    for row in found["guarantees"]:
        lines.append(
            f"{row['guarantee']:<20}{row['horizon']:>9,}{row['delta']:>8g}{row['bound']:>10,.0f}"
            f"{row['regret_quantile']:>10,.1f}{row['ratio']:>8.1f}{row['exceeded']:>7,}  "
            f"{row['share_high']:<14.2g}{row['dominant'].replace('_', ' '):<18}{row['verdict']}"
        )
    lines += ["", f"{'lemma':<36}{'T':>9}{'delta':>8}{'failures':>10}{'tightness':>11}  holds"]
    for row in found["lemmas"]:
        lines.append(
            f"{row['lemma']:<36}{row['horizon']:>9,}{row['delta']:>8g}{row['failures']:>10,}"
            f"{_share(row['tightness']):>11}  {row['verdict']}"
        )
    if "expectations" in found:
        lines += [
            "",
            f"{'in expectation':<26}{'T':>9}{'bound':>10}{'mean':>10}{'ratio':>8}  holds",
        ]
    for row in found.get("expectations", []):
        lines.append(
            f"{row['expectation']:<26}{row['horizon']:>9,}{row['bound']:>10,.0f}"
            f"{row['regret_mean']:>10,.1f}{row['bound'] / row['regret_mean']:>8.1f}  "
            f"{row['verdict']}"
        )
    return "\n".join([*lines, "", *found["files"]])
