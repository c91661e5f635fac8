"""A log of decisions as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jaxbio.data import summary
from jaxbio.data.dropped import Dropped
from jaxbio.data.rounds import rounds_waited

SECOND = np.timedelta64(1, "s")


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """Decisions in the order in which they were made; `jb.read_log` makes one of a table.

    action, state: int32 [rows], codes that count through `actions` and `states`, the labels.
    loss: float64 [rows] in [0, 1], NaN where the outcome has not come.
    time, arrived: [rows], of the decision and of the outcome: datetime64[us] (in UTC if the table's
    dates have a time zone, see `zone`), or float64 if the table has plain numbers; NaT or NaN where
    the outcome has not come. If the table has no times they are numbers of rounds, from 1 (see
    `timed`). An outcome that has not come may still come, or never will: a log does not tell, but
    with `end` (until when outcomes would have been seen) it says how long each has been waited for.
    watched: [rows], like arrived, where the table says for how long rows without an outcome were
    followed: until when; None where all of them were followed until the end. See `until`.
    absent: the loss that the table gives to outcomes that have not come, as the one of "not bought"
    is; the most frequent one if it gives several, NaN if it gives none.
    bounds: of the column of losses or rewards, in its own units.
    row: int64 [rows], where each row is in the table, as `unit` counts: the "line" of a file, the
    header being line 1, or the "row" of a table, from 0.
    edges: float64 [S - 1], where states are intervals of a number: state i is below edges[i] and
    not below edges[i - 1]; None where they are labels.
    names: what the columns of the table are called, by role. read: rows of the table. dropped:
    reason -> `Dropped`, for rows that cannot be used. warnings: sentences on what looks wrong, and
    is not.
    """

    action: np.ndarray
    state: np.ndarray
    loss: np.ndarray
    time: np.ndarray
    arrived: np.ndarray
    row: np.ndarray
    actions: tuple[str, ...]
    states: tuple[str, ...]
    end: Any
    absent: float
    edges: np.ndarray | None
    names: Mapping[str, str]
    unit: str
    zone: str | None
    read: int
    dropped: Mapping[str, Dropped]
    warnings: tuple[str, ...]
    watched: np.ndarray | None = None
    bounds: tuple[float, float] = (0.0, 1.0)

    def __len__(self) -> int:
        return len(self.action)

    @property
    def num_actions(self) -> int:
        """K."""
        return len(self.actions)

    @property
    def num_states(self) -> int:
        """S."""
        return len(self.states)

    @property
    def dated(self) -> bool:
        """Are times dates? Otherwise they are plain numbers."""
        return self.time.dtype.kind == "M"

    @cached_property
    def come(self) -> np.ndarray:
        """bool [rows]: has the outcome come?"""
        return ~np.isnan(self.loss)

    @cached_property
    def seen_in_rounds(self) -> np.ndarray:
        """bool [rows]: has the outcome come by the last decision? Then `delays_in_rounds` is its
        delay. Otherwise the true delay is longer, also where the outcome came after the last
        decision, as rounds that would have followed are not in the log. (Without times the table
        says itself after how many rounds an outcome came.)
        """
        if self.at_once or not self.timed:
            return self.come
        return self.come & (self.arrived <= self.time[-1])

    @property
    def timed(self) -> bool:
        """Does the table say when decisions were made? Otherwise its rows are rounds."""
        return "time" in self.names

    @cached_property
    def at_once(self) -> bool:
        """Is every loss that has come seen at once, as neither arrivals nor delays are given?"""
        told = "arrived" in self.names or "delay" in self.names
        return not told and bool((self.arrived == self.time)[self.come].all())

    @cached_property
    def until(self) -> np.ndarray:
        """[rows], like time: when the outcome came, or until when it has been waited for."""
        waiting = self.end if self.watched is None else self.watched
        return np.where(self.come, self.arrived, waiting)

    @cached_property
    def counts(self) -> np.ndarray:
        """int64 [K, S]: rows by action and state."""
        return self._by_cell(None)

    @cached_property
    def outcomes(self) -> np.ndarray:
        """int64 [K, S]: outcomes that have come, by action and state."""
        return self._by_cell(self.come)

    def _by_cell(self, rows: np.ndarray | None) -> np.ndarray:
        cell = self.action * np.int32(self.num_states) + self.state
        found = np.bincount(cell if rows is None else cell[rows],
                            minlength=self.num_actions * self.num_states)  # fmt: skip
        return found.reshape(self.num_actions, self.num_states)

    def delays(self) -> np.ndarray:
        """float64 [rows]: from the decision to the outcome, in seconds where times are dates and in
        the table's own unit otherwise (rounds, if it has no times). Where the outcome has not
        come: to the end of the log, or as long as the row was followed.
        """
        waited = self.until - self.time
        return waited / SECOND if self.dated else waited

    def delays_in_rounds(self) -> np.ndarray:
        """int64 [rows]: how many later decisions were made before the outcome was known.

        This is jaxbio's delay d: the loss of round t is seen at the end of round t + d. Row i of
        the log is round i + 1, and decisions of the same instant are rounds in the order of the
        table. An outcome that arrives at the very instant of a decision arrives after it, so that
        decision counts. If losses are seen at once, it is 0. Where the outcome came after the last
        decision, or has not come, it is the number of all later decisions, or of those in the time
        that the row was followed, and the true delay is longer than that, or endless:
        `seen_in_rounds` tells these rows from others.

        If the table has no times, its delays are in rounds already, also beyond the last one.
        """
        if not self.timed:
            return np.floor(self.until - self.time).astype(np.int64)
        waited = rounds_waited(self.time, self.arrived if self.watched is None else self.until)
        return np.where(self.come, 0, waited) if self.at_once else waited

    def summary(self) -> str:
        """What is in the log, in words and tables."""
        return summary.as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The numbers of the summary, for JSON."""
        return summary.as_dict(self)

    def __repr__(self) -> str:
        return summary.in_short(self)
