"""Rows that are in a table twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
from pandas.util import hash_pandas_object

from jaxbio.data.dropped import SHOWN, Counter, named, rows_of
from jaxbio.data.log import Log

SURELY, SLACK = 5.0, 1.5  # standard deviations above what chance explains, and how much more


def repeated_keys(
    keys: np.ndarray, keep: np.ndarray, rows: np.ndarray, column: str, counter: Counter
) -> np.ndarray:
    """bool [rows]: what is kept if of several rows with one key the first is. keys: 0 is none."""
    again = pd.Series(np.where(keep, keys, 0)).duplicated().to_numpy() & keep & (keys != 0)
    counter.add(f"{column} is that of an earlier row", rows[again])
    return keep & ~again


def suspicion(log: Log) -> list[str]:
    """A sentence if more rows are equal in all columns than would be so by chance.

    By chance: rows of the same instant that have the rest in common, as often as any two rows have.
    """
    same = log.time[1:] == log.time[:-1]
    if not same.any():
        return []
    among = np.flatnonzero(np.concatenate([[False], same]) | np.concatenate([same, [False]]))
    rest = _hash(log, among)
    group = np.cumsum(np.concatenate([[True], ~same]))[among]
    frame = pd.DataFrame({"group": group, "rest": rest})
    again = frame.duplicated().to_numpy()
    found = int(again.sum())
    sizes = np.bincount(group - group.min())
    pairs = float((sizes * (sizes - 1.0) / 2).sum())
    _, counts = np.unique(rest, return_counts=True)
    alike = float(((counts / counts.sum()) ** 2).sum())
    expected = pairs * alike
    if found <= SLACK * expected + SURELY * np.sqrt(expected):
        return []
    first = tuple(np.sort(log.row[among[again]])[:SHOWN].tolist())
    return [
        f"{rows_of(found)} equal to another one in every column that is read, where about "
        f"{expected:,.0f} would be by chance ({named(log.unit, first, found)}): if events are in "
        "the table twice, give key= a column that names them, and only the first of each counts"
    ]


def _hash(log: Log, rows: np.ndarray) -> np.ndarray:
    """uint64 [rows] of everything but the time."""
    frame = pd.DataFrame(
        {
            "action": log.action[rows],
            "state": log.state[rows],
            "loss": log.loss[rows],
            "delay": (log.arrived - log.time)[rows],  # an arrival would be of its instant alone
        }
    )
    found = hash_pandas_object(frame, index=False)  # pyright: ignore[reportCallIssue]
    return found.to_numpy()
