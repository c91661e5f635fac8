"""Two kinds of logs: every decision has an outcome some time, or only events are seen."""

from __future__ import annotations

import numpy as np

from jaxbio.data.log import Log
from jaxbio.data.survival import curve

KINDS = OUTCOMES, CONVERSIONS = "outcomes", "conversions"
NEVER = 0.1  # of rows have no outcome however long they are waited for


def kind_of(log: Log) -> str:
    """Conversions, if there are rows without an outcome, and the table gives them a loss that no
    outcome has. If outcomes have several losses, a tenth of all rows or more must never get one, by
    the Kaplan-Meier estimate. If outcomes have one loss, 0 or 1, the table need not give another.
    """
    losses = log.loss[log.come]
    low, high = losses.min(), losses.max()
    if log.come.all():
        return OUTCOMES
    if np.isnan(log.absent):
        return CONVERSIONS if low == high and low in (0.0, 1.0) else OUTCOMES
    if low <= log.absent <= high:
        return OUTCOMES
    if low == high:
        return CONVERSIONS
    taken = log.delays()
    left = curve(taken[log.come], taken[~log.come]).survival[-1]
    return CONVERSIONS if left >= NEVER else OUTCOMES


def absent_loss(log: Log) -> float:
    """Of rows in which nothing happens, in a log of conversions."""
    if log.come.all():
        raise ValueError(
            "kind 'conversions' is for a log in which some rows have no outcome, but in this one "
            "all outcomes have come: use kind='outcomes'"
        )
    losses = log.loss[log.come]
    low, high = losses.min(), losses.max()
    if not np.isnan(log.absent):
        if low <= log.absent <= high:
            raise ValueError(
                "kind 'conversions' needs conversions that are all better, or all worse, than "
                f"nothing, but a row without one has the loss {log.absent:g}, and conversions have "
                f"losses from {low:g} to {high:g}: use kind='outcomes'"
            )
        return log.absent
    if low != high or low not in (0.0, 1.0):
        raise ValueError(
            "kind 'conversions' needs the loss of a row without a conversion, but the table gives "
            f"none: fill in column {log.names.get('loss', log.names.get('reward'))!r} of rows "
            "that have no arrival"
        )
    return 1.0 - float(low)
