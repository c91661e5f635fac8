"""What arrives in a log: outcomes of all rounds, or nothing but one event."""

from __future__ import annotations

import numpy as np

from jaxbio.data.log import Log

KINDS = OUTCOMES, CONVERSIONS = "outcomes", "conversions"


def kind_of(log: Log) -> str:
    """Conversions, if some outcomes have not come, all that have are the same, and the table gives
    others another loss, or none.
    """
    losses = log.loss[log.come]
    if log.at_once or log.come.all() or losses.min() != losses.max():
        return OUTCOMES
    known = not np.isnan(log.absent)
    same = log.absent == losses[0] if known else losses[0] not in (0.0, 1.0)
    return OUTCOMES if same else CONVERSIONS


def two_losses(log: Log) -> tuple[float, float]:
    """Of a row with the event, and of one without it, in a log of conversions."""
    event = float(log.loss[np.argmax(log.come)])
    return event, 1 - event if np.isnan(log.absent) else float(log.absent)
