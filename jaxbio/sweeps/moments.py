"""Means and spreads over runs that are never all in memory: small summaries that can be merged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np


class Moments(NamedTuple):
    """Of `count` runs at each recorded round: float64 [points] each.

    squares: the sum of (x - mean)^2.
    """

    count: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    least: np.ndarray
    most: np.ndarray

    @property
    def variance(self) -> np.ndarray:
        """[points]: unbiased; NaN for a single run."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.count > 1, self.squares / (self.count - 1), np.nan)


def moments(values: np.ndarray) -> Moments:
    """Of values [points, runs]."""
    mean = values.mean(axis=1)
    return Moments(
        np.full(len(mean), values.shape[1], np.float64),
        mean,
        np.square(values - mean[:, None]).sum(axis=1),
        values.min(axis=1),
        values.max(axis=1),
    )


def merged(parts: Iterable[Moments]) -> Moments:
    """Of all runs of the parts, in their order (Chan, Golub and LeVeque 1983)."""
    first, *rest = parts
    total = first
    for part in rest:
        count = total.count + part.count
        shift = part.mean - total.mean
        total = Moments(
            count,
            total.mean + shift * (part.count / count),
            total.squares + part.squares + shift**2 * (total.count * part.count / count),
            np.minimum(total.least, part.least),
            np.maximum(total.most, part.most),
        )
    return total
