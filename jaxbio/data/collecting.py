"""The columns of a table as arrays, part by part; what cannot be used is left out, counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbio.data.columns import How, Left, Losses, Times, joined
from jaxbio.data.dropped import Counter
from jaxbio.data.durations import as_durations
from jaxbio.data.keys import hashed
from jaxbio.data.labels import JointLabels
from jaxbio.data.numbers import as_numbers
from jaxbio.data.roles import Roles
from jaxbio.data.tables import LABEL, TEXT, Part, Table
from jaxbio.data.times import NUMBER, Stamps, as_stamps

NO_DURATION = "is neither a number nor a duration"
FIELDS = "another number of fields than the header has"


class Collected(NamedTuple):
    """Of rows that have a time, an action and a state, and a loss if it is said when the outcome
    came: arrays [rows]. state: codes, or float64 if it is a number. loss: scaled; also of outcomes
    that have not come, if the table has one.

    time, arrived: as `as_stamps` finds them, with what they are (None: nothing is there). If the
    table has delays, they are in the place of arrivals, as `as_durations` finds them. time: the
    place in the table, from 0, if it has no times. event: bool, did the outcome come then, or was
    the row only followed up to then? followed: durations. keys: a hash of each key, 0 where there
    is none. read: rows of the table.
    """

    action: np.ndarray
    state: np.ndarray
    loss: np.ndarray
    time: np.ndarray
    arrived: np.ndarray
    event: np.ndarray | None
    followed: np.ndarray | None
    rows: np.ndarray
    keys: np.ndarray | None
    time_kind: str | None
    arrived_kind: str | None
    followed_kind: str | None
    actions: JointLabels
    states: JointLabels
    read: int


def collect(
    table: Table, roles: Roles, counter: Counter, tell: Callable[[int], Any], how: How
) -> Collected:
    columns = Columns(roles, table.unit, how)
    texts = {} if roles.key is None else {roles.key: TEXT}
    labels = roles.action + (() if how.numeric_states else roles.state)
    texts |= dict.fromkeys(labels, LABEL)
    wanted = list(dict.fromkeys(name for _, name in roles.given()))
    read = used = 0
    for part in table.parts(wanted, texts, tell):
        counter.add(FIELDS, part.wrong)
        read += len(part.rows) + len(part.wrong)
        if len(part.rows):
            columns.read(part, Left(part, counter), used)
            used += len(part.rows)
    return columns.whole(read)


class Columns:
    """What is kept of every column, part by part."""

    def __init__(self, roles: Roles, unit: str, how: How) -> None:
        self.roles, self.unit, self.how = roles, unit, how
        self.actions = JointLabels(roles.action, "is it an id? Give the column of what was chosen")
        few = "give bins=5, or edges of your own, if it is a number"
        self.states = JointLabels(roles.state, few, how.missing)
        self.times = self._times(roles.time)
        if roles.delay is None:
            self.arrivals = self._times(roles.arrived)
        else:
            self.arrivals = Times(roles.delay, as_durations, unit, NO_DURATION)
        self.follows = None
        if roles.followed is not None:
            self.follows = Times(roles.followed, as_durations, unit, NO_DURATION)
        self.losses = Losses(roles, how, unit)
        self.kept: dict[str, list[np.ndarray]] = {}

    def _times(self, name: str | None) -> Times | None:
        def parse(column: Any) -> Stamps:
            return as_stamps(column, self.how.form, self.how.zone)

        clocks = f"is in an hour that clocks of {self.how.zone} skip or have twice"
        return None if name is None else Times(name, parse, self.unit, "is no time", clocks)

    def read(self, part: Part, left: Left, before: int) -> None:
        """before: rows of the parts before it."""
        if self.times is not None:
            left.drop(f"no {self.roles.time}", self.times.read(part, left))
        found = {
            "action": _labels(part, self.roles.action, self.actions, left),
            "state": self._states(part, left),
            "rows": part.rows,
        }
        event = _event(part, self.roles, left)
        come = None
        if self.arrivals is not None:
            come = ~self.arrivals.read(part, left)
            if event is not None:
                found["event"] = event
                left.drop(f"{self.roles.event} without {self.roles.told}", event & ~come)
                come &= event
        if self.follows is not None:
            self.follows.read(part, left)
        found["loss"] = self.losses.read(part, left, come)
        if self.roles.key is not None:
            found["keys"] = hashed(
                part.columns[self.roles.key], self.roles.key, self.unit, part.rows
            )
        if self.times is None:
            found["time"] = np.arange(before, before + len(part.rows), dtype=np.float64)
        for name, values in found.items():
            self.kept.setdefault(name, []).append(values[left.keep])
        for times in (self.times, self.arrivals, self.follows):
            if times is not None:
                times.keep(left.keep)

    def _states(self, part: Part, left: Left) -> np.ndarray:
        if not self.how.numeric_states:
            return _labels(part, self.roles.state, self.states, left)
        (column,) = self.roles.state
        found = as_numbers(part.columns[column])
        left.drop(f"{column} is no number", found.unreadable, column)
        left.drop(f"no {column}", np.isnan(found.values))
        return found.values

    def whole(self, read: int) -> Collected:
        self.losses.refuse()
        for name in ("action", "state", "loss", "rows", "time"):
            self.kept.setdefault(name, [])
        one = {name: joined(values) for name, values in self.kept.items()}
        if self.times is not None:
            one["time"] = self.times.whole()
        return Collected(
            **{"event": None, "keys": None, **one},
            arrived=np.empty(0) if self.arrivals is None else self.arrivals.whole(),
            followed=None if self.follows is None else self.follows.whole(),
            time_kind=NUMBER if self.times is None else self.times.kind,
            arrived_kind=None if self.arrivals is None else self.arrivals.kind,
            followed_kind=None if self.follows is None else self.follows.kind,
            actions=self.actions,
            states=self.states,
            read=read,
        )


def _labels(part: Part, names: Sequence[str], labels: JointLabels, left: Left) -> np.ndarray:
    found = []
    for name, one in zip(names, labels.parts, strict=True):
        codes = one.encode(part.columns[name])
        left.drop(f"no {name}", codes < 0)
        found.append(codes)
    return labels.encode(found)


def _event(part: Part, roles: Roles, left: Left) -> np.ndarray | None:
    """bool [rows]: did the outcome come?"""
    if roles.event is None:
        return None
    found = as_numbers(part.columns[roles.event])
    odd = found.unreadable | ~(np.isnan(found.values) | np.isin(found.values, (0.0, 1.0)))
    left.drop(f"{roles.event} is neither true nor false", odd, roles.event)
    left.drop(f"no {roles.event}", np.isnan(found.values))
    return found.values == 1
