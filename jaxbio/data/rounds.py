"""Delays in rounds: how many decisions were made before an outcome was known."""

from __future__ import annotations

import numpy as np

PART = 1 << 20  # rows at a time


def rounds_waited(time: np.ndarray, arrived: np.ndarray) -> np.ndarray:
    """int64 [rows]. time [rows]: of decisions, in order; row i is round i + 1. arrived [rows]: of
    outcomes, NaT or NaN where none has come.

    The delay of row i is the number of later rows whose decision was made at arrived[i] or before:
    at one and the same instant decisions come first and outcomes after them. So the outcome is
    known at the end of round i + 1 + delay, after its decision and before the next. For an outcome
    that has not come, or came after the last decision, it is the number of all later rows. The last
    round ends with the last decision's instant, so the outcome was not known at the end of that
    round either: its delay is longer, or it never comes.
    """
    rows = len(time)
    decided = time.view(np.int64) if time.dtype.kind == "M" else time
    waited = np.arange(rows - 1, -1, -1)
    for first in range(0, rows, PART):
        own = arrived[first : first + PART]
        come = np.flatnonzero(~np.isnan(own))
        known = own[come].view(np.int64) if own.dtype.kind == "M" else own[come]
        waited[first + come] = np.searchsorted(decided, known, "right") - (first + come + 1)
    return waited
