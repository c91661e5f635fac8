"""Times of a table, and one that is given, on one clock."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxbio.checks import shown
from jaxbio.data.collecting import Collected
from jaxbio.data.dropped import Counter
from jaxbio.data.durations import DURATION, as_spans
from jaxbio.data.roles import Roles
from jaxbio.data.times import DATE, NUMBER, ZONE, as_dates, as_stamps, digits_of_dates, unit_of


class Said(NamedTuple):
    """What is said of times, as for `read_log`. wait: the one delay of all rows, or None."""

    end: Any
    unit: str | None
    zone: str | None
    form: str | None
    rate: float | None
    wait: float | np.timedelta64 | None
    delay_unit: str | None


def nothing(time: np.ndarray) -> Any:
    return np.datetime64("NaT", "us") if time.dtype.kind == "M" else np.nan


def decided(found: Collected, roles: Roles, said: Said) -> tuple[np.ndarray, str | None]:
    """Times of decisions [rows], and what they are: rounds from 1 if the table has none."""
    if roles.time is None:
        return found.time + 1, NUMBER
    time, kind = _dated(found.time, found.time_kind, said.unit, roles.time)
    _refuse_unused(kind, found.time_kind, said.unit, said.zone, roles.time)
    return time, kind


def arrivals(
    found: Collected, roles: Roles, counter: Counter, said: Said, time: np.ndarray,
    kind: str | None, keep: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """When outcomes came [rows], of a column that tells it, and which rows are kept."""
    column = str(roles.told)
    if found.arrived_kind is None:
        raise ValueError(
            f"column {column!r} ({'arrived' if roles.delay is None else 'delay'}) is empty in all "
            f"{len(time):,} rows that can be used, so no outcome has come: give the column with "
            "the time of the outcome, or leave it out if losses are seen at once"
        )
    if roles.delay is not None:
        return later(time, column, found.arrived, found.arrived_kind, found, counter, said, keep)
    arrived, other = _dated(found.arrived, found.arrived_kind, said.unit, column)
    _refuse_two_clocks(roles, found, kind, other)
    return arrived, readable(arrived, found.arrived, found.rows, column, counter, keep)


def later(
    time: np.ndarray, column: str, durations: np.ndarray, kind: str | None, found: Collected,
    counter: Counter, said: Said, keep: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """So long after decisions [rows], and which rows are kept. kind: of durations."""
    spans = on_clock(f"column {column!r}", durations, kind, time.dtype.kind == "M", said)
    keep = readable(spans, durations, found.rows, column, counter, keep, "is too long a time")
    return time + spans, keep


def waited(time: np.ndarray, said: Said) -> np.ndarray:
    """time [rows], later by the one delay of all rows."""
    if said.wait is None:
        return time
    kind = DURATION if isinstance(said.wait, np.timedelta64) else NUMBER
    span = on_clock("delay", np.asarray(said.wait), kind, time.dtype.kind == "M", said)
    if np.isnan(span):
        raise ValueError(f"delay must be a shorter time, but got {said.wait}")
    return time + span


def on_clock(name: str, values: np.ndarray, kind: str | None, dated: bool, said: Said) -> Any:
    """Durations as what is added to times: timedelta64[us] to dates, numbers to numbers.

    name: of what they are, for messages. kind: NUMBER, DURATION, or None where nothing is there.
    """
    unit = said.delay_unit
    if not dated:
        if unit is not None or kind == DURATION:
            what = "has durations" if kind == DURATION else f"has delay_unit={unit!r}"
            raise ValueError(
                f"{name} {what}, which takes times that are dates, but here they are plain "
                "numbers or rounds: give numbers in their unit (without time= a number of "
                "decisions; or numbers of days, say, together with rate=, the decisions of a day)"
            )
        return values if said.rate is None else values * said.rate
    if kind == DURATION:
        if unit is not None:
            raise ValueError(
                f"delay_unit is of numbers, but {name} has durations: leave delay_unit out"
            )
        return values
    if kind == NUMBER and unit is None:
        raise ValueError(
            f"{name} has numbers, but times are dates: say what they count with delay_unit='d' "
            "(or 'h', 'min', 's', 'ms'), or give durations, such as '7d'"
        )
    return as_spans(values, unit or "d")


def _dated(
    values: np.ndarray, kind: str | None, unit: str | None, column: str
) -> tuple[np.ndarray, str | None]:
    """Numbers that count from 1970 as dates, which are in UTC; everything else as it is."""
    if kind != NUMBER or unit == "number":
        return values, kind
    since = unit or unit_of(values)
    if since is not None:
        return as_dates(values, since), ZONE
    form = digits_of_dates(values)
    if form is not None:
        raise ValueError(
            f"column {column!r} has numbers that look like dates, such as "
            f"{values[~np.isnan(values)][0]:.0f}: give time_format={form!r}, or time_unit='number' "
            "if they are plain numbers"
        )
    return values, kind


def _refuse_unused(
    kind: str | None, read: str | None, unit: str | None, zone: str | None, column: str
) -> None:
    """kind: of times; read: before numbers became dates."""
    if zone is not None and kind == NUMBER:
        raise ValueError(
            f"timezone is of dates, but column {column!r} has plain numbers: leave it out, or say "
            "what they count with time_unit="
        )
    if unit is not None and read in (DATE, ZONE):
        raise ValueError(
            f"time_unit is of numbers, but column {column!r} has dates: leave time_unit out"
        )


def readable(
    times: np.ndarray, read: np.ndarray, rows: np.ndarray, column: str, counter: Counter,
    keep: np.ndarray, odd: str = "is no time",
) -> np.ndarray:  # fmt: skip
    """bool [rows]: what is kept without numbers that are too large for a date. read: before they
    became dates.
    """
    lost = keep & np.isnan(times) & ~np.isnan(read)
    if lost.any():
        first = int(np.argmax(lost))
        counter.add(f"{column} {odd}", rows[lost], float(read[first]))
    return keep & ~lost


def _refuse_two_clocks(roles: Roles, found: Collected, kind: str | None, other: str | None) -> None:
    if kind == other:
        return
    if {kind, other} == {DATE, ZONE}:
        remedy = "say what zone dates without one are in, such as timezone='Europe/Berlin' or 'UTC'"
    else:
        remedy = (
            "give both in one form (numbers between 1990 and 2100 as seconds, milliseconds, ... "
            "since 1970 are dates; time_unit= says what they are)"
        )
    words = {ZONE: "dates with a time zone", DATE: "dates without a time zone", NUMBER: "numbers"}
    epoch = " (counted from 1970, so in UTC)"
    said = [
        words[str(one)] + epoch * (before == NUMBER and one == ZONE)
        for one, before in ((kind, found.time_kind), (other, found.arrived_kind))
    ]
    raise ValueError(
        f"columns {roles.time!r} and {roles.arrived!r} must have times of one kind, but "
        f"{roles.time!r} has {said[0]} and {roles.arrived!r} {said[1]}: {remedy}"
    )


def given_end(kind: str | None, roles: Roles, said: Said) -> Any:
    end = said.end
    if roles.time is None:
        raise ValueError(
            f"end ({shown(end)}) is a time, but there are no times of decisions: leave it out (all "
            "outcomes that are given have come), or give time="
        )
    try:
        found = as_stamps([end], said.form if isinstance(end, str) else None, said.zone)
        values, own = _dated(found.values, next(iter(found.kinds), None), said.unit, "end")
    except Exception as error:  # of pandas, and of a class of the user's
        raise TypeError(f"end must be a time, but got {shown(end)}") from error
    if own is None or np.isnan(values[0]):
        raise ValueError(f"end must be a time in the form of the table's, but got {shown(end)}")
    if own != kind:
        raise ValueError(
            f"end must be {kind} as the table's times are, but got {shown(end)} ({own})"
        )
    return values[0]
