"""How much the mapping of a log changed, and a problem that goes on like that."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jaxbio.data.holding.mapping import half_l1
from jaxbio.data.holding.periods import in_parts
from jaxbio.data.holding.tables import compare_tables, counted
from jaxbio.data.log import Log


class Turns(NamedTuple):
    """shifts: [2, K, S], what the early and the late part of the log add to the mapping of the
    whole, less what chance makes of it; share: of the rounds that show another state late than
    early, after that; p: of a difference as large as that of the log if nothing changes (None:
    there is nothing to compare); parts: of the log, of which the first and the last are compared.
    """

    shifts: np.ndarray
    share: float
    p: float | None
    parts: int

    @property
    def any(self) -> bool:
        """Is more left than what chance explains?"""
        return self.share > 0

    def applied(self, P: np.ndarray) -> np.ndarray:
        """[2, K, S]: an early and a late mapping around P [K, S]."""
        moved = np.maximum(P + self.shifts, 0.0)
        return moved / moved.sum(axis=-1, keepdims=True)


def turns(log: Log) -> Turns:
    """The first and the last part of a log, in whole weeks or days where it has several.

    With Pearson's statistic Q of the two parts and its f degrees of freedom, f / Q of the squared
    differences is what equal mappings would show. So all differences are shrunk to the share
    sqrt(1 - f / Q) of their size, to none where Q is f or less: then they are as large together as
    the change is that is no chance.
    """
    parts = in_parts(log)
    shape = (log.num_actions, parts.count, log.num_states)
    ends = counted(log.action, parts.of, log.state, shape)[:, [0, parts.last]]  # [K, 2, S]
    found = compare_tables(ends, np.random.default_rng(0))
    rows = ends.sum(axis=2, keepdims=True)
    both = (rows > 0).all(axis=1)  # [K, 1]
    own = ends / np.maximum(rows, 1)
    kept = 0.0
    if found is not None and found.statistic > found.freedom:
        kept = math.sqrt(1 - found.freedom / found.statistic)
    change = kept * np.where(both, own[:, 1] - own[:, 0], 0.0)
    weights = log.counts.sum(axis=1) / len(log)
    share = half_l1(np.stack([np.zeros_like(change), change], axis=-2)) @ weights
    shifts = np.stack([-change / 2, change / 2])
    return Turns(shifts, float(share), None if found is None else found.p, parts.count)
