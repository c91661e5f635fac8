"""jaxbio violations: when learners that look at states do worse than those that do not."""

from __future__ import annotations

from functools import partial
from typing import Any

import xarray as xr

from jaxbio.studies import parsing
from jaxbio.studies.outputs import named, parts, write
from jaxbio.studies.violations.problems import KINDS
from jaxbio.studies.violations.study import (
    AGAINST,
    DIFFERENCE,
    RATIO,
    REACHES,
    REGRET,
    STRENGTHS,
    violations,
)

OPTIONS = ("kinds", "strengths", "against", "delay", "horizon", "runs", "seed")
WIDE = 27  # letters of the label of a learner


def add(commands: Any) -> None:
    about = "when learners that look at states do worse than those that do not"
    example = "jaxbio violations --kinds turning bypassed --runs 200 --delay 50"
    made = parsing.add_study(commands, "violations", about, study, example, violations)
    parsing.option(made, "--kinds", violations, "what is violated", choices=list(KINDS))
    parsing.option(made, "--strengths", violations, "of the violations", type=float)
    parsing.option(made, "--against", violations, "counterparts", choices=AGAINST)
    parsing.fixed(made, violations)


def study(options: Any) -> tuple[dict[str, Any], str]:
    """Play, write data and the figure; what is found, and as text."""
    given = {name: getattr(options, name) for name in OPTIONS}
    name = _name(given)
    data = violations(**given, store=parts(options, name), progress=not options.quiet)
    from jaxbio.studies.violations.figure import risk  # matplotlib takes a while to import

    found = {
        "files": write(options.folder, name, {name: data}, "risk", partial(risk, data)),
        "guessing": data.attrs["guessing"],
        "pairs": {kind: pairs(data.sel(kind=kind)) for kind in map(str, data.kind.values)},
        "regret": {kind: regrets(data.sel(kind=kind)) for kind in map(str, data.kind.values)},
    }
    return found, as_text(found)


def _name(given: dict[str, Any]) -> str:
    """Of the files of these very options; usual kinds, strengths and counterparts go unsaid."""
    usual = {"kinds": list(KINDS), "strengths": list(STRENGTHS), "against": AGAINST[0]}
    return named(*(None if usual.get(option) == value else value
                   for option, value in given.items()))  # fmt: skip


def pairs(data: xr.Dataset) -> dict[str, dict[str, Any]]:
    """For each learner with states: its counterpart, its tipping point, and differences and ratios
    with their intervals. data: of one kind.
    """
    return {
        label: {
            "counterpart": str(own.counterpart.values),
            **dict(zip(REACHES, own.tipping.values.tolist(), strict=True)),
            "differences": _by_strength(own, DIFFERENCE),
            "ratios": _by_strength(own, RATIO),
        }
        for label in map(str, data.pair.values)
        for own in [data.sel(pair=label)]
    }


def _by_strength(data: xr.Dataset, names: tuple[str, str, str]) -> dict[str, list[float]]:
    """Strength -> a number with low and high. data: of one learner."""
    return {
        str(strength): [float(data[name].sel(strength=strength)) for name in names]
        for strength in data.strength.values.tolist()
    }


def regrets(data: xr.Dataset) -> dict[str, dict[str, list[float]]]:
    """Learner -> strength -> mean regret, low and high, its 95 % interval. data: of one kind."""
    return {
        str(label): _by_strength(data.sel(learner=label), REGRET) for label in data.learner.values
    }


def as_text(found: dict[str, Any]) -> str:
    """A table for each kind, and where the files are."""
    lines = [
        f"regret more than without states, in % of what guessing costs ({found['guessing']:,.0f})"
    ]
    for kind, rows in found["pairs"].items():
        lines += ["", f"{kind}: {KINDS[kind].title} ({KINDS[kind].strength})", _head(rows)]
        lines += [_row(label, row) for label, row in rows.items()]
    return "\n".join([*lines, "", *found["files"]])


def _head(rows: dict[str, Any]) -> str:
    first, *_, last = next(iter(rows.values()))["differences"]
    columns = (f"at v = {first}", f"at v = {last}", "at most, where")
    cells = "".join(f"{column:>17}" for column in columns)
    return f"  {'':<{WIDE}}{'against':<33}{cells}{'worse from':>12}   surely: better to, worse from"


def _row(label: str, row: dict[str, Any]) -> str:
    first, *_, last = row["differences"].values()
    most = max(row["differences"], key=lambda strength: row["differences"][strength][0])
    cells = (_percent(first), _percent(last), f"{100 * row['differences'][most][0]:+.1f}, {most}")
    better, line, worse = (_shown(row[reach]) for reach in REACHES)
    return (
        f"  {label:<{WIDE}}{row['counterpart']:<33}{''.join(f'{cell:>17}' for cell in cells)}"
        f"{line:>12}   {better}, {worse}"
    )


def _percent(found: list[float]) -> str:
    mean, _, high = found
    return f"{100 * mean:+.1f} ±{100 * (high - mean):>5.1f}"


def _shown(strength: float) -> str:
    return f"{strength:.2f}" if strength == strength else "never"
