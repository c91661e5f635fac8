"""jaxbio violations: when learners that look at states do worse than those that do not."""

from __future__ import annotations

from functools import partial
from typing import Any

import xarray as xr

from jaxbio.studies import parsing
from jaxbio.studies.outputs import named, parts, write
from jaxbio.studies.violations.problems import KINDS
from jaxbio.studies.violations.study import DIFFERENCE, REACHES, REGRET, violations

OPTIONS = ("kinds", "strengths", "delay", "horizon", "runs", "seed")
WIDE = 28  # letters of the label of a learner


def add(commands: Any) -> None:
    about = "when learners that look at states do worse than those that do not"
    example = "jaxbio violations --kinds turning bypassed --runs 200 --delay 50"
    made = parsing.add_study(commands, "violations", about, study, example, violations)
    parsing.option(made, "--kinds", violations, "what is violated", choices=list(KINDS))
    parsing.option(made, "--strengths", violations, "of the violations", type=float)
    parsing.fixed(made, violations)


def study(options: Any) -> tuple[dict[str, Any], str]:
    """Play, write data and the figure; what is found, and as text."""
    given = {name: getattr(options, name) for name in OPTIONS}
    name = named(*given.values())
    data = violations(**given, store=parts(options, name), progress=not options.quiet)
    from jaxbio.studies.violations.figure import risk  # matplotlib takes a while to import

    found = {
        "files": write(options.folder, name, {name: data}, "risk", partial(risk, data)),
        "guessing": data.attrs["guessing"],
        "pairs": {kind: pairs(data.sel(kind=kind)) for kind in map(str, data.kind.values)},
        "regret": {kind: regrets(data.sel(kind=kind)) for kind in map(str, data.kind.values)},
    }
    return found, as_text(found)


def pairs(data: xr.Dataset) -> dict[str, dict[str, Any]]:
    """For each learner with states: its counterpart, its tipping point, and all differences.

    data: of one kind.
    """
    found = {}
    for label in map(str, data.pair.values):
        own = data.sel(pair=label)
        tips = own.tipping.values.tolist()
        rows = zip(*(own[name].values.tolist() for name in DIFFERENCE), strict=True)
        strengths = map(str, data.strength.values.tolist())
        found[label] = {
            "counterpart": str(own.counterpart.values),
            **dict(zip(REACHES, tips, strict=True)),
            "differences": {v: list(row) for v, row in zip(strengths, rows, strict=True)},
        }
    return found


def regrets(data: xr.Dataset) -> dict[str, dict[str, list[float]]]:
    """Learner -> strength -> mean regret, low and high, its 95 % interval. data: of one kind."""
    return {
        str(label): {
            str(strength): [float(data[name].sel(learner=label, strength=strength))
                            for name in REGRET]
            for strength in data.strength.values.tolist()
        }
        for label in data.learner.values
    }  # fmt: skip


def as_text(found: dict[str, Any]) -> str:
    """A table for each kind, and where the files are."""
    lines = [
        f"regret more than without states, in % of what guessing costs ({found['guessing']:,.0f})"
    ]
    for kind, rows in found["pairs"].items():
        first, *_, last = next(iter(rows.values()))["differences"]
        ends = [first, last]
        head = "".join(f"{f'at v = {end}':>18}" for end in ends)
        lines += ["", f"{kind}: {KINDS[kind].title}", f"  {'':<{WIDE}}{'against':<20}{head}"
                  f"{'worse from':>13}   surely better to, worse from"]  # fmt: skip
        for label, row in rows.items():
            cells = "".join(f"{_percent(row['differences'][end]):>18}" for end in ends)
            line = f"  {label:<{WIDE}}{row['counterpart']:<20}{cells}{_shown(row['line']):>13}   "
            lines.append(line + ", ".join(_shown(row[end]) for end in (REACHES[0], REACHES[2])))
    return "\n".join([*lines, "", *found["files"]])


def _percent(found: list[float]) -> str:
    mean, _, high = found
    return f"{100 * mean:+.1f} ±{100 * (high - mean):>5.1f}"


def _shown(strength: float) -> str:
    return f"{strength:.2f}" if strength == strength else "never"
