"""What is said of a table besides its columns: options that are read, and refused together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from jaxbio import checks
from jaxbio.data import durations
from jaxbio.data.blocks import SEPARATORS
from jaxbio.data.clocks import Said
from jaxbio.data.durations import one_duration
from jaxbio.data.labels import MOST, label
from jaxbio.data.roles import Roles, meant
from jaxbio.data.tables import Table
from jaxbio.data.times import UNITS


def delay_of(delay: Any, table: Table) -> tuple[str | None, float | np.timedelta64 | None]:
    """The column of delays, or the one delay of all rows."""
    if delay is None:
        return None, None
    if isinstance(delay, str) and delay in table.names:
        return delay, None
    wait = one_duration(delay)
    if wait is None:
        raise ValueError(
            f"delay: {table.title} has no column {delay!r}; {meant(table, str(delay))}it has "
            f"{checks.shown(table.names)}; for one delay of all rows give a number, or a duration "
            "such as '7d' or '12h'"
        )
    return None, wait


def refuse_unused(roles: Roles, said: Said) -> None:
    """Of options that have no meaning without others."""
    delayed = roles.delay is not None or said.wait is not None
    if said.wait is not None and roles.arrived is not None:
        raise ValueError("arrived or delay says when outcomes came, but both are given")
    if said.delay_unit is not None and not (delayed or roles.followed):
        raise ValueError("delay_unit is of delay or followed, but neither is given: leave it out")
    if said.rate is not None and (roles.time is not None or not delayed):
        why = "time is given" if roles.time is not None else "there is no delay"
        raise ValueError(f"rate is of a delay without times of decisions, but {why}: leave it out")
    if roles.time is None:
        for name, value in (("end", said.end), ("timezone", said.zone), ("time_unit", said.unit),
                            ("time_format", said.form)):  # fmt: skip
            if value is not None:
                raise ValueError(
                    f"{name} ({checks.shown(value)}) is of times, but no column has them: give "
                    "time=, or leave it out (rows are then rounds, and all outcomes that are given "
                    "have come)"
                )


def counts(values: Any, unknown: Any) -> dict[str, float]:
    """What labels of outcomes count as; NaN: they are not known."""
    given = {} if values is None else checks.mapping("values", values, "labels to numbers")
    found = {label(one): float(checks.number("values", count)) for one, count in given.items()}
    if unknown is not None:
        single = isinstance(unknown, str) or checks.is_single(unknown)
        for one in [unknown] if single else checks.several("unknown", unknown, "labels"):
            if not isinstance(one, str):
                checks.number("unknown", one)
            if label(one) in found:
                raise ValueError(f"unknown and values both have {checks.shown(one)}: leave one out")
            found[label(one)] = float("nan")
    return found


def check_options(
    low: Any, high: Any, time_unit: Any, decimal: Any, delay_unit: Any, rate: Any
) -> None:
    least = checks.number("low", low)
    checks.number("high", high, least, open_low=True)
    checks.choice("decimal", decimal, (".", ","))
    checks.choice("time_unit", time_unit, (None, *UNITS, "number"))
    checks.choice("delay_unit", delay_unit, (None, *durations.UNITS))
    if rate is not None:
        checks.number("rate", rate, 0, open_low=True)


def check_texts(
    missing_state: Any, timezone: Any, time_format: Any, separator: Any, encoding: Any
) -> None:
    for name, value in (("missing_state", missing_state), ("timezone", timezone),
                        ("time_format", time_format), ("separator", separator)):  # fmt: skip
        if value is not None and not checks.text(name, value).strip(" "):
            raise ValueError(f"{name} must not be empty, but got {value!r}")
    if separator is not None and (len(separator) != 1 or not separator.isascii()):
        raise ValueError(f"separator must be one letter of ASCII, but got {separator!r}")
    try:
        fine = SEPARATORS.encode(checks.text("encoding", encoding)) == SEPARATORS.encode()
    except (LookupError, ValueError):
        fine = False
    if not fine:
        raise ValueError(
            "encoding must be one that has the bytes of ASCII, such as 'utf-8' or 'latin-1', but "
            f"got {checks.shown(encoding)}"
        )
    if timezone is not None:
        try:
            ZoneInfo(timezone)
        except (ValueError, OSError, KeyError) as error:  # ZoneInfoNotFoundError is a KeyError
            raise ValueError(
                f"timezone must be a name such as 'Europe/Berlin' or 'UTC', but got {timezone!r}"
            ) from error


def bins_of(bins: Any, roles: Roles, missing_state: str | None) -> dict[str, Any]:
    """Column of states -> into how many parts, or at which edges it is cut."""
    if bins is None:
        return {}
    if not isinstance(bins, Mapping):
        if len(roles.state) > 1:
            last = list(roles.state)[-1]
            raise ValueError(
                f"bins must say which of the columns {list(roles.state)} have numbers to be cut, "
                f"such as {{{last!r}: 5}} (on the command line {last}=5), but got "
                f"{checks.shown(bins)}"
            )
        bins = dict.fromkeys(roles.state, bins)
    found = checks.mapping("bins", bins, "columns to numbers of parts or to edges")
    for name in found:
        if name not in roles.state:
            raise ValueError(
                f"bins must name columns of state ({list(roles.state)}), but got "
                f"{checks.shown(name)}"
            )
    if missing_state is not None and len(found) == len(roles.state):
        raise ValueError(
            "missing_state is a label, but bins makes states of a number: leave one of them out "
            "(rows without a number are dropped and counted)"
        )
    return {name: _cut(one) for name, one in found.items()}


def _cut(bins: Any) -> int | np.ndarray:
    if checks.is_single(bins):
        return checks.integer("bins", bins, 2, MOST)
    edges = checks.array("bins", bins, 1, "[edges]")
    if np.any(edges[1:] <= edges[:-1]):
        raise ValueError(f"bins must be increasing edges, but got {checks.shown(bins)}")
    return edges
