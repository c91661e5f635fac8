"""How much the mapping of a log changed, and a problem that goes on like that."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from jaxbio.data.holding.periods import in_parts
from jaxbio.data.log import Log


class Turns(NamedTuple):
    """change: [K, S], by how much the late part of the log differs from the early one, less what
    chance makes of it. share: of the rounds that show another state late than early, after that.
    p: of a difference as large as that of the log if nothing changes (None: there is nothing to
    compare). parts: of the log, of which the first and the last are compared.
    """

    change: np.ndarray
    share: float
    p: float | None
    parts: int

    @property
    def any(self) -> bool:
        """Is more left than what chance explains?"""
        return self.share > 0

    def applied(self, P: np.ndarray) -> np.ndarray:
        """[2, K, S]: an early and a late mapping around P [K, S]."""
        moved = np.maximum(np.stack([P - self.change / 2, P + self.change / 2]), 0.0)
        return moved / moved.sum(axis=-1, keepdims=True)


def turns(log: Log) -> Turns:
    """Of the first and the last part of a log, in whole weeks or days where it has several.

    With Pearson's statistic Q of the two parts, summed over actions, and its f degrees of freedom,
    f / Q of the squared differences is what equal mappings would show. So all differences are
    shrunk to the share sqrt(1 - f / Q) of their size, to none where Q is f or less: together they
    are then as large as the change is that is no chance.
    """
    parts = in_parts(log)
    place = (log.action * np.int64(parts.count) + parts.of) * log.num_states + log.state
    shape = log.num_actions, parts.count, log.num_states
    ends = np.bincount(place, minlength=math.prod(shape)).reshape(shape)[:, [0, parts.count - 1]]
    statistic, freedom = _pearson(ends)
    rows = ends.sum(axis=2, keepdims=True)
    own = ends / np.maximum(rows, 1)
    kept = math.sqrt(1 - freedom / statistic) if statistic > freedom else 0.0
    both = (rows > 0).all(axis=1)  # [K, 1]
    change = kept * np.where(both, own[:, 1] - own[:, 0], 0.0)
    share = float(np.abs(change).sum(axis=1) @ log.counts.sum(axis=1)) / (2 * len(log))
    p = float(stats.chi2.sf(statistic, freedom)) if freedom else None
    return Turns(change, share, p, parts.count)


def _pearson(tables: np.ndarray) -> tuple[float, int]:
    """Statistic and degrees of freedom of counts [K, 2, S], without what is empty."""
    statistic, freedom = 0.0, 0
    for table in tables:
        seen = table[:, table.sum(axis=0) > 0]
        if seen.shape[1] > 1 and seen.sum(axis=1).min() > 0:
            found: Any = stats.chi2_contingency(seen, correction=False)
            statistic, freedom = statistic + float(found.statistic), freedom + int(found.dof)
    return statistic, freedom
