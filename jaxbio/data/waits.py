"""How long outcomes took, and how long others have been waited for: in time, and in rounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxbio.data.log import Log


class Waits(NamedTuple):
    """Of one state, or of all. came [n]: delays of outcomes; waiting [m]: of the others, how long
    they have been waited for.
    """

    came: np.ndarray
    waiting: np.ndarray


def rows_by_state(log: Log, come: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of every state the rows whose outcome has come, and the others. come: bool [rows]."""
    cell = 2 * log.state.astype(np.uint16) + come
    order = np.argsort(cell, kind="stable")  # of 16 bits: as fast as counting
    ends = np.cumsum(np.bincount(cell, minlength=2 * log.num_states))[:-1]
    parts = np.split(order, ends)
    return list(zip(parts[1::2], parts[::2], strict=True))


def in_rounds(log: Log, width: int) -> tuple[np.ndarray, np.ndarray]:
    """int64 [rows], bool [rows]: after how many rounds outcomes came, and whether they came;
    otherwise, for how many rounds they have been waited for.

    Rounds end with the last decision. What came after it, or has been waited for until a later end,
    is counted as if decisions had gone on at the log's mean pace. width: decisions that make a
    round, as if all but each width-th were left out; -1 where too few followed to know anything.
    """
    waited, seen = log.delays_in_rounds(), log.seen_in_rounds
    late = np.flatnonzero(~seen)
    span = _number(log.time[-1] - log.time[0])
    if "arrived" in log.names and span > 0 and late.size:
        until = np.where(log.come[late], log.arrived[late], log.end)
        more = _number(until - log.time[-1]) * ((len(log) - 1) / span)
        waited[late] += np.floor(more).astype(np.int64)
        seen = log.come
    return np.where(seen, waited // width, (waited + 1) // width - 1), seen


def _number(duration: np.ndarray) -> np.ndarray:
    if np.asarray(duration).dtype.kind == "m":
        return duration / np.timedelta64(1, "us")
    return duration
