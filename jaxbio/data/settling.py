"""Times of decisions and outcomes on one clock, and which outcomes have come by the end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxbio.checks import shown
from jaxbio.data.collecting import Collected, Roles
from jaxbio.data.dropped import SHOWN, Counter, named, rows_of
from jaxbio.data.times import DATE, NUMBER, ZONE, as_dates, as_stamps, digits_of_dates, unit_of

ALIKE = 5  # rows with the latest of all arrivals: a word for "never"
FEW = 0.01  # of outcomes that come long after all others


class Settled(NamedTuple):
    """time, arrived [rows]; come, keep: bool [rows]. end: of the log; after: rows that are after
    it. absent: the usual loss of rows without an
    arrival, or NaN. zone: "UTC", or None.
    """

    time: np.ndarray
    arrived: np.ndarray
    come: np.ndarray
    keep: np.ndarray
    end: Any
    after: int
    absent: float
    zone: str | None
    doubts: list[str]


def settle(
    found: Collected, roles: Roles, counter: Counter, *, row_unit: str, end: Any,
    unit: str | None, zone: str | None, form: str | None, most: float,
) -> Settled:  # fmt: skip
    """Rows are dropped whose outcome is before their decision, or whose decision is after the end.

    row_unit: what rows are counted in. unit, zone, form: of times, as for `read_log`. most: the
    largest share of outcomes that may be before their decisions.
    """
    time, kind = _dated(found.time, found.time_kind, unit, roles.time)
    _refuse_unused(kind, found.time_kind, unit, zone, roles.time)
    keep = _readable(time, found.time, found.rows, roles.time, counter, np.ones(len(time), bool))
    if roles.arrived is None:
        come = ~np.isnan(found.loss)
        arrived = np.where(come, time, _nothing(time))
    else:
        if found.arrived_kind is None:
            raise ValueError(
                f"column {roles.arrived!r} (arrived) is empty in all {len(time):,} rows that can "
                "be used, so no outcome has come: give the column with the time of the outcome, or "
                "leave arrived out if losses are seen at once"
            )
        arrived, other = _dated(found.arrived, found.arrived_kind, unit, roles.arrived)
        _refuse_two_clocks(roles, found, kind, other)
        keep = _readable(arrived, found.arrived, found.rows, roles.arrived, counter, keep)
        come = ~np.isnan(arrived)
    early = keep & come & (arrived < time)
    if early.any():
        _refuse_early(early, come, time, arrived, found.rows, roles, row_unit, most)
        counter.add(f"{roles.arrived} is before {roles.time}", found.rows[early])
        keep &= ~early
    after = 0
    if end is None:
        known = np.concatenate([time[keep], arrived[come & keep]])
        last = known.max() if known.size else time[0]
    else:
        last = _given_end(end, kind, unit, zone, form)
        late = keep & (time > last)
        counter.add(f"{roles.time} is after the end that was given", found.rows[late])
        keep &= ~late
        after = int(late.sum())
        come &= arrived <= last
        arrived = np.where(come, arrived, _nothing(time))
    doubts = [] if end is not None else _never(time[keep], arrived[keep & come], roles)
    absent, more = _without_arrival(found, roles, row_unit)
    doubts += more
    return Settled(
        time, arrived, come, keep, last, after, absent, "UTC" if kind == ZONE else None, doubts
    )


def _nothing(time: np.ndarray) -> Any:
    return np.datetime64("NaT", "us") if time.dtype.kind == "M" else np.nan


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


def _readable(
    times: np.ndarray, read: np.ndarray, rows: np.ndarray, column: str, counter: Counter,
    keep: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """bool [rows]: what is kept without numbers that are too large for a date. read: before they
    became dates.
    """
    lost = keep & np.isnan(times) & ~np.isnan(read)
    if lost.any():
        first = int(np.argmax(lost))
        counter.add(f"{column} is no time", rows[lost], float(read[first]))
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


def _refuse_early(
    early: np.ndarray, come: np.ndarray, time: np.ndarray, arrived: np.ndarray, rows: np.ndarray,
    roles: Roles, row_unit: str, most: float,
) -> None:  # fmt: skip
    if early.sum() > most * come.sum():
        first = int(np.argmax(early))
        alike = early.sum() > 1 and bool((arrived[early] == arrived[first]).all())
        advice = (
            "if it stands for outcomes that have not come, leave it empty"
            if alike
            else "are the columns exchanged, in different time zones, or days and months exchanged?"
        )
        raise ValueError(
            f"column {roles.arrived!r} is before column {roles.time!r} in {early.sum():,} of "
            f"{come.sum():,} outcomes, first in {row_unit} {rows[first]} ({arrived[first]} before "
            f"{time[first]}){', and it is the same in all of these' * alike}: {advice}"
        )


def _given_end(
    end: Any, kind: str | None, unit: str | None, zone: str | None, form: str | None
) -> Any:
    try:
        found = as_stamps([end], form if isinstance(end, str) else None, zone)
        values, own = _dated(found.values, next(iter(found.kinds), None), unit, "end")
    except Exception as error:  # of pandas, and of a class of the user's
        raise TypeError(f"end must be a time, but got {shown(end)}") from error
    if own is None or np.isnan(values[0]):
        raise ValueError(f"end must be a time in the form of the table's, but got {shown(end)}")
    if own != kind:
        raise ValueError(
            f"end must be {kind} as the table's times are, but got {shown(end)} ({own})"
        )
    return values[0]


def _without_arrival(found: Collected, roles: Roles, row_unit: str) -> tuple[float, list[str]]:
    """The usual loss of rows without an arrival. If there are others, somebody has seen them."""
    if roles.arrived is None:
        return np.nan, []
    without = np.isnan(found.arrived) & ~np.isnan(found.loss)
    losses = found.loss[without]
    if not losses.size:
        return np.nan, []
    if (losses == losses[0]).all():
        return float(losses[0]), []
    values, counts = np.unique(losses, return_counts=True)
    usual = float(values[np.argmax(counts)])
    odd = found.rows[without][losses != usual]
    count, first = len(odd), tuple(odd[:SHOWN].tolist())
    return usual, [
        f"{rows_of(count)} without {roles.arrived} with another {roles.outcome} than the other "
        f"rows without it ({named(row_unit, first, count)}): they count as not come; if their "
        f"outcomes are known, fill in {roles.arrived}"
    ]


def _never(time: np.ndarray, seen: np.ndarray, roles: Roles) -> list[str]:
    """Is the latest arrival one and the same in many rows, after all decisions? Or are a few far
    after all others? time: of decisions. seen: of outcomes.
    """
    if roles.arrived is None or not seen.size or seen.max() <= time.max():
        return []
    alike = int((seen == seen.max()).sum())
    if alike < ALIKE:
        span = time.max() - time.min()
        far = seen > time.max() + span
        count = int(far.sum())
        if not 0 < count <= max(1, FEW * len(seen)) or not span:
            return []
        return [
            f"{rows_of(count)} with {roles.arrived} later after the last decision than the log is "
            f"long, up to {seen.max()}, where the log now ends: correct them, leave them empty if "
            "the outcomes have not come, or give end="
        ]
    return [
        f"{rows_of(alike)} have the same {roles.arrived}, {seen.max()}, the latest of all: if it "
        "stands for outcomes that have not come, leave it empty, or give end= before it"
    ]
