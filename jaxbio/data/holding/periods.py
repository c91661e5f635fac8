"""A log in parts of its time, such that a daily or weekly rhythm is the same in each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxbio.data.log import Log

PARTS = 4
LEAST = 10  # rows of an action and a state in a part, on average
DAY, WEEK = 86_400.0, 604_800.0  # seconds
UNTIMED = "The table has no times: its order counts as the order of decisions."
NEARLY = 0.05  # of a day or a week that may be missing at the end


class Parts(NamedTuple):
    """of: int [rows], the part of each row, below `count`. rhythm: a sentence on what a rhythm of
    the day or the week does to comparisons of parts.
    """

    of: np.ndarray
    count: int
    rhythm: str

    @property
    def last(self) -> int:
        return self.count - 1


def in_parts(log: Log) -> Parts:
    """Whole weeks or whole days where the log has at least four; else parts with as many rows."""
    rows = len(log)
    count = int(np.clip(rows // (LEAST * log.num_actions * log.num_states), 2, PARTS))
    if log.dated:
        since = (log.time - log.time[0]) / np.timedelta64(1, "s")
        for length, name in ((WEEK, "week"), (DAY, "day")):
            units = int(since[-1] / length + NEARLY)
            if units >= PARTS:
                edges = np.round(np.arange(1, count) * units / count) * length
                of = np.searchsorted(edges, since, "right")
                if np.bincount(of, minlength=count).min() > 0:
                    return Parts(of, count, f"Parts are whole {name}s: no rhythm of the {name} "
                                 "is taken for a change.")  # fmt: skip
    of = np.arange(rows) * count // rows
    short = (
        "The log has fewer than four days, so that a rhythm of the day would look like a change."
    )
    return Parts(of, count, short if log.dated else "" if log.timed else UNTIMED)
