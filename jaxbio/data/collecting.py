"""The columns of a table as arrays, part by part; what cannot be used is left out, counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxbio.data.columns import How, Left, Losses, Times, joined
from jaxbio.data.dropped import Counter
from jaxbio.data.durations import as_durations
from jaxbio.data.keys import hashed
from jaxbio.data.labels import Labels
from jaxbio.data.numbers import as_numbers
from jaxbio.data.roles import Roles
from jaxbio.data.tables import LABEL, TEXT, Part, Table
from jaxbio.data.times import NUMBER, Stamps, as_stamps

NO_DURATION = "is neither a number nor a duration"
FEW_STATES = "give bins=5, or edges of your own, if it is a number"
FIELDS = "another number of fields than the header has"


class Column(NamedTuple):
    """values [rows]: codes of labels, or float64 where labels is None."""

    name: str
    values: np.ndarray
    labels: Labels | None


class Collected(NamedTuple):
    """Of rows that have a time, an action and a state, and a loss if it is said when the outcome
    came: arrays [rows]. actions, states: of each of their columns. loss: scaled; also of outcomes
    that have not come, if the table has one.

    time, arrived: as `as_stamps` finds them, with what they are (None: nothing is there). If the
    table has delays, they are in the place of arrivals, as `as_durations` finds them. time: the
    place in the table, from 0, if it has no times. event: bool, did the outcome come then, or was
    the row only followed up to then? followed: durations. keys: a hash of each key, 0 where there
    is none. read: rows of the table.
    """

    actions: tuple[Column, ...]
    states: tuple[Column, ...]
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
    read: int


def collect(
    table: Table, roles: Roles, counter: Counter, tell: Callable[[int], Any], how: How
) -> Collected:
    columns = Columns(roles, table.unit, how)
    texts = {} if roles.key is None else {roles.key: TEXT}
    labels = [name for name in roles.state if name not in how.binned]
    texts |= dict.fromkeys((*roles.action, *labels), LABEL)
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
        chosen, few = "is it an id? Give the column of what was chosen", FEW_STATES
        self.actions = {name: Labels(name, chosen) for name in roles.action}
        self.states = {
            name: None if name in how.binned else Labels(name, few, how.missing)
            for name in roles.state
        }
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
        found = {"rows": part.rows}
        for role, columns in (("action", self.actions), ("state", self.states)):
            for name, labels in columns.items():
                found[f"{role} {name}"] = _values(part, name, labels, left)
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

    def whole(self, read: int) -> Collected:
        self.losses.refuse()
        one = {name: joined(values) for name, values in self.kept.items()}
        return Collected(
            actions=self._columns("action", self.actions, one),
            states=self._columns("state", self.states, one),
            loss=one.get("loss", np.empty(0)),
            time=one.get("time", np.empty(0)) if self.times is None else self.times.whole(),
            arrived=np.empty(0) if self.arrivals is None else self.arrivals.whole(),
            event=one.get("event"),
            followed=None if self.follows is None else self.follows.whole(),
            rows=one.get("rows", np.empty(0)),
            keys=one.get("keys"),
            time_kind=NUMBER if self.times is None else self.times.kind,
            arrived_kind=None if self.arrivals is None else self.arrivals.kind,
            followed_kind=None if self.follows is None else self.follows.kind,
            read=read,
        )

    def _columns(
        self, role: str, columns: Mapping[str, Labels | None], found: Mapping[str, np.ndarray]
    ) -> tuple[Column, ...]:
        return tuple(
            Column(name, found.get(f"{role} {name}", np.empty(0, np.int32)), labels)
            for name, labels in columns.items()
        )


def _values(part: Part, name: str, labels: Labels | None, left: Left) -> np.ndarray:
    """[rows]: codes, or numbers where there are no labels."""
    if labels is not None:
        codes = labels.encode(part.columns[name])
        left.drop(f"no {name}", codes < 0)
        return codes
    found = as_numbers(part.columns[name])
    left.drop(f"{name} is no number", found.unreadable, name)
    left.drop(f"no {name}", np.isnan(found.values))
    return found.values


def _event(part: Part, roles: Roles, left: Left) -> np.ndarray | None:
    """bool [rows]: did the outcome come?"""
    if roles.event is None:
        return None
    found = as_numbers(part.columns[roles.event])
    odd = found.unreadable | ~(np.isnan(found.values) | np.isin(found.values, (0.0, 1.0)))
    left.drop(f"{roles.event} is neither true nor false", odd, roles.event)
    left.drop(f"no {roles.event}", np.isnan(found.values))
    return found.values == 1
