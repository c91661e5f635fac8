"""Distances between distributions, less what noise makes of them; and which of several is large."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

DRAWS, CELLS = 1000, 4_000_000  # of an interval; numbers that are drawn for it


class Span(NamedTuple):
    """A number with its interval."""

    value: float
    low: float
    high: float


def number_of_samples(size: int) -> int:
    """How often as many numbers are drawn."""
    return int(np.clip(CELLS // max(1, size), 100, DRAWS))


def without_noise(observed: float, still: np.ndarray, again: np.ndarray, confidence: float) -> Span:
    """A distance of samples as one of distributions.

    still: [draws], the distance of samples if there is none. again: [draws], of samples that are
    drawn from the observed ones. The square of an observed distance is on average larger than that
    of the distributions by about the mean square of `still`, which is taken off; and twice from
    those of `again`, as noise was added twice.
    """
    noise = float(np.mean(still**2))
    value = np.sqrt(max(0.0, observed**2 - noise))
    spread = np.sqrt(np.maximum(again**2 - 2 * noise, 0.0))
    tail = (1 - confidence) / 2
    low, high = np.quantile(spread, [tail, 1 - tail])
    return Span(float(value), float(min(low, value)), float(max(high, value)))


def largest(values: np.ndarray, errors: np.ndarray, confidence: float) -> tuple[int, Span]:
    """Which of several differences [n] is the most surely large, and how large, whatever its sign.
    Intervals of all n hold together.
    """
    known = errors > 0
    reach = stats.norm.isf((1 - confidence) / (2 * max(1, int(known.sum()))))
    least = np.where(known, np.abs(values) - reach * errors, -np.inf)
    i = int(np.argmax(least))
    if least[i] <= 0:
        i = int(np.argmax(np.where(known, np.abs(values) / np.where(known, errors, 1), -1.0)))
    size, wide = abs(float(values[i])), float(reach * errors[i])
    return i, Span(size, max(0.0, size - wide), size + wide)
