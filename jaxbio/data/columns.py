"""One column of a part at a time: what it has, and which rows it leaves that can be used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jaxbio.checks import shown
from jaxbio.data.dropped import Counter
from jaxbio.data.durations import DURATION
from jaxbio.data.labels import label
from jaxbio.data.numbers import Numbers, as_numbers, plain
from jaxbio.data.roles import Roles
from jaxbio.data.tables import Part
from jaxbio.data.times import NUMBER, Stamps

SLACK = 1e-9  # a loss may be outside of [0, 1] by rounding


class How(NamedTuple):
    """How values are read. binned: columns of states that are numbers. missing: the label of rows
    without a state. form, zone: of times. bounds: of losses. values: what labels of outcomes
    count as, NaN: they are not known.
    """

    binned: Collection[str]
    missing: str | None
    form: str | None
    zone: str | None
    bounds: tuple[float, float]
    values: Mapping[str, float]


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
    """A column of times, or of durations, which must be of one kind.

    parse: what reads a part of it. odd: what is said of values that it cannot read. lost: of those
    that are in an hour that clocks skip.
    """

    def __init__(
        self, column: str, parse: Callable[[Any], Stamps], unit: str, odd: str, lost: str = ""
    ) -> None:
        self.column, self.parse, self.unit, self.odd, self.lost = column, parse, unit, odd, lost
        self.parts: list[np.ndarray] = []
        self.seen: dict[str, tuple[int, Any]] = {}
        self.last: np.ndarray = np.empty(0)

    def read(self, part: Part, left: Left) -> np.ndarray:
        """bool [rows]: nothing is there. What cannot be read is dropped."""
        values = part.columns[self.column]
        found = self.parse(values)
        for kind, place in found.kinds.items():
            self.seen.setdefault(kind, (int(part.rows[place]), at(values, place)))
        if len(self.seen) > 1:
            raise ValueError(self._mixed())
        self.last = found.values
        left.drop(f"{self.column} {self.odd}", found.unreadable, self.column)
        left.drop(f"{self.column} {self.lost}", found.lost, self.column)
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
        plain = np.float64("nan") if self.kind in (NUMBER, None) else np.datetime64("NaT", "us")
        empty = np.timedelta64("NaT", "us") if self.kind == DURATION else plain
        kind = np.asarray(empty).dtype.kind
        return joined([
            one if one.dtype.kind == kind else np.full(len(one), empty) for one in self.parts
        ])  # fmt: skip


class Losses:
    """The column of losses or rewards, scaled to losses in [0, 1]."""

    def __init__(self, roles: Roles, how: How, unit: str) -> None:
        self.roles, self.column, self.unit = roles, roles.outcome, unit
        self.bounds, self.values = how.bounds, how.values
        self.outside: tuple[int, float] | None = None
        self.least, self.most = np.inf, -np.inf

    def read(self, part: Part, left: Left, come: np.ndarray | None) -> np.ndarray:
        """float64 [rows]. come: bool [rows], None if every loss that is there has come."""
        found = known_numbers(part.columns[self.column], self.values)
        no = f"{self.column} is no number"
        if come is None:
            left.drop(no, found.unreadable, self.column)
        else:
            left.drop(no, found.unreadable & come, self.column)
            reason = f"{self.roles.event or self.roles.told} without {self.column}"
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
                f"high={max(high, self.most):g}, or correct the row (what stands for outcomes that "
                "are not known can be given as unknown=)"
            )


def known_numbers(column: Any, values: Mapping[str, float]) -> Numbers:
    """The numbers of a column. values: of labels that count as other numbers, or as none."""
    found = as_numbers(column)
    if not values:
        return found
    codes, kinds = pd.factorize(plain(column).astype(object))
    named = [values.get(label(one)) for one in kinds]
    said = np.array([one is not None for one in named] + [False])[codes]
    counts = np.array([np.nan if one is None else one for one in named] + [np.nan])[codes]
    return Numbers(np.where(said, counts, found.values), found.unreadable & ~said)


def at(values: Any, place: int) -> Any:
    """What is in a place of a column of any kind."""
    found = values.iloc[place] if isinstance(values, pd.Series) else values[place]
    plain = isinstance(found, str | float | int)
    return found.item() if isinstance(found, np.generic) else found if plain else str(found)


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """One array; the parts are let go."""
    whole = np.concatenate(parts) if parts else np.empty(0)
    parts.clear()
    return whole
