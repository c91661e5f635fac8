"""Times of decisions and outcomes on one clock, and which outcomes have come by the end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxbio.data.clocks import (
    Said,
    arrivals,
    decided,
    given_end,
    later,
    nothing,
    readable,
    waited,
)  # fmt: skip
from jaxbio.data.collecting import Collected
from jaxbio.data.dropped import SHOWN, Counter, named, rows_of
from jaxbio.data.roles import Roles
from jaxbio.data.times import ZONE

ALIKE = 5  # rows with the latest of all arrivals: a word for "never"
FEW = 0.01  # of outcomes that come long after all others


class Settled(NamedTuple):
    """time, arrived [rows]; watched [rows]: until when rows without an outcome were followed, if
    the table says it. come, keep: bool [rows]. end: of the log; after: rows that are after
    it. absent: the usual loss of rows without an arrival, or NaN. zone: "UTC", or None.
    """

    time: np.ndarray
    arrived: np.ndarray
    watched: np.ndarray | None
    come: np.ndarray
    keep: np.ndarray
    end: Any
    after: int
    absent: float
    zone: str | None
    doubts: list[str]


def settle(
    found: Collected, roles: Roles, counter: Counter, said: Said, *, row_unit: str, most: float
) -> Settled:
    """Rows are dropped whose outcome is before their decision, or whose decision is after the end.

    row_unit: what rows are counted in. most: the largest share of outcomes that may be before their
    decisions.
    """
    time, kind = decided(found, roles, said)
    keep = np.ones(len(time), bool)
    if roles.time is not None:
        keep = readable(time, found.time, found.rows, roles.time, counter, keep)
    come, arrived, watched = ~np.isnan(found.loss), None, None
    if roles.told is None:
        arrived = waited(time, said)
    else:
        arrived, keep = arrivals(found, roles, counter, said, time, kind, keep)
        come = ~np.isnan(arrived)
        keep = _without_early(time, arrived, come, keep, found, roles, counter, row_unit, most)
        come, watched, keep = _followed(found, roles, counter, said, time, arrived, come, keep)
    arrived = np.where(come, arrived, nothing(time))
    after = 0
    if said.end is None:
        last = _last(time, arrived, watched, keep)
    else:
        last = given_end(kind, roles, said)
        late = keep & (time > last)
        counter.add(f"{roles.time} is after the end that was given", found.rows[late])
        keep &= ~late
        after = int(late.sum())
        come &= arrived <= last
        arrived = np.where(come, arrived, nothing(time))
    doubts = [] if said.end is not None else _never(time[keep], arrived[keep & come], roles)
    overdue = _overdue(time, keep & ~come, last, roles, said)
    if overdue.any():
        watched = np.where(overdue, time, last)  # nothing is known of when it came, if it did
        doubts.append(_lost(found.rows[overdue], roles, row_unit))
    elif watched is not None:
        watched = np.fmin(watched, last)  # nothing is there where the outcome came after the end
    absent, more = _without_arrival(found, roles, row_unit)
    return Settled(
        time, arrived, watched, come, keep, last, after, absent, "UTC" if kind == ZONE else None,
        doubts + more,
    )  # fmt: skip


def _last(time: np.ndarray, *until: Any) -> Any:
    """The last time of decisions, outcomes and rows that were followed. until: [rows] or None, and
    which rows are kept.
    """
    *times, keep = until
    known = [time[keep]]
    for one in times:
        if one is not None:
            known.append(one[keep & ~np.isnan(one)])
    return max((one.max() for one in known if one.size), default=time[0])


def _without_early(
    time: np.ndarray, arrived: np.ndarray, come: np.ndarray, keep: np.ndarray, found: Collected,
    roles: Roles, counter: Counter, row_unit: str, most: float,
) -> np.ndarray:  # fmt: skip
    early = keep & come & (arrived < time)
    if early.any():
        _refuse_early(early, come, time, arrived, found, roles, row_unit, most)
        said = (
            f"{roles.delay} is below 0"
            if roles.delay
            else f"{roles.arrived} is before {roles.time}"
        )
        counter.add(said, found.rows[early])
    return keep & ~early


def _followed(
    found: Collected, roles: Roles, counter: Counter, said: Said, time: np.ndarray,
    arrived: np.ndarray, come: np.ndarray, keep: np.ndarray,
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:  # fmt: skip
    """Which outcomes have come, until when the other rows were followed (not at all where nothing
    says it), and which rows are kept.
    """
    if found.event is not None:
        told, come = come, come & found.event
        until = np.where(told, arrived, time)
    elif roles.followed is not None and found.followed is not None:
        until, keep = later(
            time, roles.followed, found.followed, found.followed_kind, found, counter, said, keep
        )
        until = np.where(np.isnan(until), time, until)
        early = keep & ~come & (until < time)
        counter.add(f"{roles.followed} is below 0", found.rows[early])
        keep = keep & ~early
    else:
        return come, None, keep
    return come, np.where(come, nothing(time), until), keep


def _refuse_early(
    early: np.ndarray, come: np.ndarray, time: np.ndarray, arrived: np.ndarray, found: Collected,
    roles: Roles, row_unit: str, most: float,
) -> None:  # fmt: skip
    if early.sum() <= most * come.sum():
        return
    first = int(np.argmax(early))
    told = found.arrived if roles.delay else arrived
    alike = early.sum() > 1 and bool((told[early] == told[first]).all())
    stands = "if it stands for outcomes that have not come, leave it empty"
    same = ", and it is the same in all of these" * alike
    where = f"{early.sum():,} of {come.sum():,} outcomes, first in {row_unit} {found.rows[first]}"
    if roles.delay:
        raise ValueError(
            f"column {roles.delay!r} is below 0 in {where} ({told[first]}){same}: {stands}"
        )
    exchanged = "are the columns exchanged, in different time zones, or days and months exchanged?"
    raise ValueError(
        f"column {roles.arrived!r} is before column {roles.time!r} in {where} ({arrived[first]} "
        f"before {time[first]}){same}: {stands if alike else exchanged}"
    )


def _without_arrival(found: Collected, roles: Roles, row_unit: str) -> tuple[float, list[str]]:
    """The usual loss of rows without an arrival. If there are others, somebody has seen them."""
    if roles.told is None:
        return np.nan, []
    without = np.isnan(found.arrived) if found.event is None else ~found.event
    without &= ~np.isnan(found.loss)
    losses = found.loss[without]
    if not losses.size:
        return np.nan, []
    if (losses == losses[0]).all():
        return float(losses[0]), []
    values, counts = np.unique(losses, return_counts=True)
    usual = float(values[np.argmax(counts)])
    odd = found.rows[without][losses != usual]
    count, first = len(odd), tuple(odd[:SHOWN].tolist())
    column = roles.event or roles.told
    return usual, [
        f"{rows_of(count)} without {column} with another {roles.outcome} than the other "
        f"rows without it ({named(row_unit, first, count)}): they count as not come; if their "
        f"outcomes are known, fill in {column}"
    ]


def _never(time: np.ndarray, seen: np.ndarray, roles: Roles) -> list[str]:
    """Is the latest arrival one and the same in many rows, after all decisions? Or are a few far
    after all others? time: of decisions. seen: of outcomes.
    """
    if roles.time is None or roles.told is None or not seen.size or seen.max() <= time.max():
        return []
    alike = int((seen == seen.max()).sum())
    if alike < ALIKE or roles.delay:  # the same delay may well be frequent
        span = time.max() - time.min()
        far = seen > time.max() + span
        count = int(far.sum())
        if not 0 < count <= max(1, FEW * len(seen)) or not span:
            return []
        return [
            f"{rows_of(count)} with {roles.told} later after the last decision than the log is "
            f"long, up to {seen.max()}, where the log now ends: correct them, leave them empty if "
            "the outcomes have not come, or give end="
        ]
    return [
        f"{rows_of(alike)} have the same {roles.arrived}, {seen.max()}, the latest of all: if it "
        "stands for outcomes that have not come, leave it empty, or give end= before it"
    ]


def _overdue(time: np.ndarray, late: np.ndarray, last: Any, roles: Roles, said: Said) -> np.ndarray:
    """bool [rows]: is an outcome missing that would have come, with the one delay of all rows?"""
    if roles.told is not None or said.wait is None:
        return np.zeros(len(time), bool)
    due = waited(time, said)
    return late & (due > time) & (due <= last)


def _lost(rows: np.ndarray, roles: Roles, row_unit: str) -> str:
    count = len(rows)
    return (
        f"{rows_of(count)} without {roles.outcome}, although the delay has passed by the end "
        f"({named(row_unit, tuple(rows[:SHOWN].tolist()), count)}): they count as lost, and what "
        "the log says supposes that they are like the others; if they are known, fill them in"
    )
