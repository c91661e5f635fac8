"""How long outcomes took, and how long others have been waited for: in time, and in rounds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxbio.data.log import SECOND, Log


class Waits(NamedTuple):
    """came [n]: delays of outcomes; age [n]: how long ago their decisions were made, at the end of
    the log. waiting [m]: how long others have been waited for.
    """

    came: np.ndarray
    waiting: np.ndarray
    age: np.ndarray


def by_state(log: Log) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of every state its rows whose outcome has come, and the others."""
    cell = 2 * log.state.astype(np.uint16) + log.come
    order = np.argsort(cell, kind="stable")  # of 16 bits: in the time of counting
    ends = np.cumsum(np.bincount(cell, minlength=2 * log.num_states))[:-1]
    parts = np.split(order, ends)
    return list(zip(parts[1::2], parts[::2], strict=True))


def ages(log: Log) -> np.ndarray:
    """float64 [rows]: how long before the end of the log each decision was made, as `Log.delays`
    counts. If the log says how long rows without an outcome were followed: as long as that, and the
    others as long as any, as it does not say how long they would have been.
    """
    if log.watched is not None:
        waited = log.delays()
        return np.where(log.come, waited.max(), waited)
    age = log.end - log.time
    return age / SECOND if log.dated else age


def in_rounds(log: Log, width: int) -> tuple[np.ndarray, np.ndarray]:
    """int64 [rows], bool [rows]: after how many rounds the outcome came, and whether it did, or for
    how many rounds it has been waited for.

    Rounds end with the last decision. Outcomes that came later, and rows that have been waited for
    until a later end, count as if decisions had gone on at the log's mean pace. If all decisions
    were at the same instant there is none, and such rows wait. A table without times has its delays
    in rounds already.

    width: decisions that make a round. The log is taken for one of which each `width`-th decision
    is kept: a delay of d decisions is one of d // width rounds. -1: nothing is known of this row.
    """
    waited, known = log.delays_in_rounds(), log.seen_in_rounds
    late, span = np.flatnonzero(~known), _number(log.time[-1] - log.time[0])
    if log.timed and late.size and span > 0:
        beyond = np.maximum(_number(log.until[late] - log.time[-1]), 0)
        more = beyond * (len(log) - 1) / span
        waited[late] += more.astype(np.int64)
        known = log.come
    return np.where(known, waited // width, (waited + 1) // width - 1), known


def _number(duration: Any) -> Any:
    return duration / np.timedelta64(1, "us") if duration.dtype.kind == "m" else duration
