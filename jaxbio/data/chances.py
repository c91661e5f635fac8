"""With which probability the action of each row of a log was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxbio import checks
from jaxbio.data.log import Log

ROUNDING = 1e-6  # of probabilities that sum to 1


def chances(probability: Any, log: Log) -> np.ndarray | None:
    """[rows], or None where it is not known.

    probability: None, a mapping from labels of actions to numbers, [K], or [rows] of the log.
    """
    if probability is None:
        return None
    if isinstance(probability, Mapping):
        missing = [label for label in log.actions if label not in probability]
        if missing:
            raise ValueError(
                f"probability must have a number for every action, but {missing[0]!r} is missing"
            )
        probability = [probability[label] for label in log.actions]
    found = checks.unit_interval("probability", probability, 1, "[K] or [rows]")
    if found.min() <= 0:
        raise ValueError(
            "probability must be above 0, as every row's action was chosen, but entry "
            f"{int(np.argmin(found))} is 0"
        )
    if len(found) == len(log):
        return found
    if len(found) != log.num_actions:
        raise ValueError(
            f"probability must have one number per action ({log.num_actions}) or per row of the "
            f"log ({len(log):,}; of a column of the table those in log.row), but it has "
            f"{len(found):,}"
        )
    if abs(found.sum() - 1) > ROUNDING:
        raise ValueError(f"probability must sum to 1 over actions, but it sums to {found.sum():g}")
    return found[log.action]
