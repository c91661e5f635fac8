"""The columns of a table as arrays, part by part; what cannot be used is left out, counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jaxbio.checks import shown
from jaxbio.data.dropped import Counter
from jaxbio.data.keys import hashed
from jaxbio.data.labels import Labels
from jaxbio.data.numbers import as_numbers
from jaxbio.data.tables import LABEL, TEXT, Part, Table
from jaxbio.data.times import NUMBER, as_stamps

FIELDS = "another number of fields than the header has"
SLACK = 1e-9  # a loss may be outside of [0, 1] by rounding


class Roles(NamedTuple):
    """The names of columns. Of loss and reward there is one."""

    time: str
    action: str
    state: str
    loss: str | None
    reward: str | None
    arrived: str | None
    key: str | None

    def given(self) -> Iterator[tuple[str, str]]:
        return ((role, name) for role, name in self._asdict().items() if name is not None)

    @property
    def outcome(self) -> str:
        return str(self.reward if self.loss is None else self.loss)


class Collected(NamedTuple):
    """Of rows that have a time, an action and a state, and a loss if there is an arrival: arrays
    [rows]. state: codes, or float64 if it is a number. loss: scaled; also of outcomes that have not
    come, if the table has one. time, arrived: as `as_stamps` finds them, with what they are (None:
    nothing is there). keys: a hash of each key, 0 where there is none. read: rows of the table.
    """

    action: np.ndarray
    state: np.ndarray
    loss: np.ndarray
    time: np.ndarray
    arrived: np.ndarray
    rows: np.ndarray
    keys: np.ndarray | None
    time_kind: str | None
    arrived_kind: str | None
    actions: Labels
    states: Labels
    read: int


def collect(
    table: Table,
    roles: Roles,
    counter: Counter,
    tell: Callable[[int], Any],
    *,
    numeric_states: bool,
    missing_state: str | None,
    form: str | None,
    zone: str | None,
    bounds: tuple[float, float],
) -> Collected:
    texts = {} if roles.key is None else {roles.key: TEXT}
    texts |= {roles.action: LABEL} | ({} if numeric_states else {roles.state: LABEL})
    wanted = list(dict.fromkeys(name for _, name in roles.given()))
    actions = Labels(roles.action, "is it an id? Give the column of what was chosen")
    few = "give bins=5, or edges of your own, if it is a number"
    states = Labels(roles.state, few, missing_state)
    times = Times(roles.time, form, zone, table.unit)
    arrivals = None if roles.arrived is None else Times(roles.arrived, form, zone, table.unit)
    losses = Losses(roles, bounds, table.unit)
    kept: dict[str, list[np.ndarray]] = {name: [] for name in ("action", "state", "loss", "rows")}
    hashes: list[np.ndarray] = []
    read = 0
    for part in table.parts(wanted, texts, tell):
        counter.add(FIELDS, part.wrong)
        read += len(part.rows) + len(part.wrong)
        if not len(part.rows):
            continue
        left = Left(part, counter)
        left.drop(f"no {roles.time}", times.read(part, left))
        action = actions.encode(part.columns[roles.action])
        left.drop(f"no {roles.action}", action < 0)
        state = _states(part, roles.state, states, left, numeric_states)
        come = None
        if arrivals is not None:
            come = ~arrivals.read(part, left)
        loss = losses.read(part, left, come)
        keep = left.keep
        for name, values in (
            ("action", action), ("state", state), ("loss", loss), ("rows", part.rows)
        ):  # fmt: skip
            kept[name].append(values[keep])
        times.keep(keep)
        if arrivals is not None:
            arrivals.keep(keep)
        if roles.key is not None:
            hashes.append(hashed(part.columns[roles.key], roles.key, table.unit, part.rows)[keep])
    losses.refuse()
    time = times.whole()
    return Collected(
        **{name: _joined(values) for name, values in kept.items()},
        time=time,
        arrived=np.empty(0) if arrivals is None else arrivals.whole(),
        keys=None if roles.key is None else _joined(hashes),
        time_kind=times.kind,
        arrived_kind=None if arrivals is None else arrivals.kind,
        actions=actions,
        states=states,
        read=read,
    )


class Left:
    """The rows of a part that can still be used."""

    def __init__(self, part: Part, counter: Counter) -> None:
        self.part, self.counter = part, counter
        self.keep = np.ones(len(part.rows), bool)

    def drop(self, reason: str, mask: np.ndarray, column: str | None = None) -> None:
        """column: the one with the value that is the reason."""
        hit = np.flatnonzero(mask & self.keep)
        if hit.size:
            example = None if column is None else at(self.part.columns[column], hit[0])
            self.counter.add(reason, self.part.rows[hit], example)
            self.keep[hit] = False


class Times:
    """A column of times, which must be of one kind."""

    def __init__(self, column: str, form: str | None, zone: str | None, unit: str) -> None:
        self.column, self.form, self.zone, self.unit = column, form, zone, unit
        self.parts: list[np.ndarray] = []
        self.seen: dict[str, tuple[int, Any]] = {}
        self.last: np.ndarray = np.empty(0)

    def read(self, part: Part, left: Left) -> np.ndarray:
        """bool [rows]: nothing is there. What is no time is dropped."""
        values = part.columns[self.column]
        found = as_stamps(values, self.form, self.zone)
        for kind, place in found.kinds.items():
            self.seen.setdefault(kind, (int(part.rows[place]), at(values, place)))
        if len(self.seen) > 1:
            raise ValueError(self._mixed())
        self.last = found.values
        left.drop(f"{self.column} is no time", found.unreadable, self.column)
        clocks = f"{self.column} is in an hour that clocks of {self.zone} skip or have twice"
        left.drop(clocks, found.lost, self.column)
        return np.isnan(found.values) & ~found.unreadable & ~found.lost

    def keep(self, rows: np.ndarray) -> None:
        self.parts.append(self.last[rows])

    def _mixed(self) -> str:
        (one, (row, value)), (other, (other_row, other_value)) = list(self.seen.items())[:2]
        remedy = (
            "write all of them in one form"
            if NUMBER in self.seen
            else "say what zone those without one are in, such as timezone='Europe/Berlin' or 'UTC'"
        )
        return (
            f"column {self.column!r} must have times of one kind, but {self.unit} {row} has {one} "
            f"({shown(value)}) and {self.unit} {other_row} {other} ({shown(other_value)}): {remedy}"
        )

    @property
    def kind(self) -> str | None:
        return next(iter(self.seen), None)

    def whole(self) -> np.ndarray:
        """[rows]; a part in which nothing is there has no kind of its own."""
        empty = np.float64("nan") if self.kind in (NUMBER, None) else np.datetime64("NaT", "us")
        kind = np.asarray(empty).dtype.kind
        return _joined([
            one if one.dtype.kind == kind else np.full(len(one), empty) for one in self.parts
        ])  # fmt: skip


class Losses:
    """The column of losses or rewards, scaled to losses in [0, 1]."""

    def __init__(self, roles: Roles, bounds: tuple[float, float], unit: str) -> None:
        self.roles, self.column, self.bounds, self.unit = roles, roles.outcome, bounds, unit
        self.outside: tuple[int, float] | None = None
        self.least, self.most = np.inf, -np.inf

    def read(self, part: Part, left: Left, come: np.ndarray | None) -> np.ndarray:
        """float64 [rows]. come: bool [rows], None if every loss that is there has come."""
        found = as_numbers(part.columns[self.column])
        no = f"{self.column} is no number"
        if come is None:
            left.drop(no, found.unreadable, self.column)
        else:
            left.drop(no, found.unreadable & come, self.column)
            reason = f"{self.roles.arrived} without {self.column}"
            left.drop(reason, np.isnan(found.values) & ~found.unreadable & come)
        low, high = self.bounds
        rest = found.values - low if self.roles.reward is None else high - found.values
        loss = rest / (high - low)
        outside = (loss < -SLACK) | (loss > 1 + SLACK)
        known = left.keep if come is None else left.keep & come
        self._look(found.values, outside & known, known, left)
        # What has not come has no loss yet: another value may stand for that.
        return np.where(outside, np.nan, np.clip(loss, 0.0, 1.0))

    def _look(self, values: np.ndarray, outside: np.ndarray, known: np.ndarray, left: Left) -> None:
        there = values[known & ~np.isnan(values)]
        if there.size:
            self.least, self.most = min(self.least, there.min()), max(self.most, there.max())
        if self.outside is None and outside.any():
            place = int(np.argmax(outside))
            self.outside = int(left.part.rows[place]), float(values[place])

    def refuse(self) -> None:
        """Raise where a value is outside: rows must not be left out because of their outcome."""
        if self.outside is not None:
            (low, high), (row, value) = self.bounds, self.outside
            raise ValueError(
                f"column {self.column!r} must lie in [{low:g}, {high:g}], but {self.unit} {row} "
                f"has {value:g} (its values go from {self.least:g} to {self.most:g}): give bounds "
                f"that hold for all, such as low={min(low, self.least):g} and "
                f"high={max(high, self.most):g}, or correct the row"
            )


def _states(part: Part, column: str, labels: Labels, left: Left, numeric: bool) -> np.ndarray:
    if not numeric:
        state = labels.encode(part.columns[column])
        left.drop(f"no {column}", state < 0)
        return state
    found = as_numbers(part.columns[column])
    left.drop(f"{column} is no number", found.unreadable, column)
    left.drop(f"no {column}", np.isnan(found.values))
    return found.values


def at(values: Any, place: int) -> Any:
    """What is in a place of a column of any kind."""
    found = values.iloc[place] if isinstance(values, pd.Series) else values[place]
    plain = isinstance(found, str | float | int)
    return found.item() if isinstance(found, np.generic) else found if plain else str(found)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """One array; the parts are let go."""
    whole = np.concatenate(parts) if parts else np.empty(0)
    parts.clear()
    return whole
