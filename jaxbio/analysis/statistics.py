"""Intervals, tests and corrections for means over runs; SciPy does the work.

SciPy is imported where it is used: that takes half a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LEVEL = 0.05  # the probability that nothing but noise decides anything
CONFIDENCE = 0.95  # of intervals
RESAMPLES = 9999
ROUNDING = 1e-12  # of float64 differences, relative
CHUNK = 1 << 22  # numbers in memory at once while resampling


def _agree(values: np.ndarray) -> bool:
    """Are all the same, up to rounding?"""
    return bool(np.ptp(values) <= ROUNDING * np.abs(values).max())


class Estimate(NamedTuple):
    """A mean over runs, or a difference of two, and how far Student's law puts it from the truth.

    error: its standard error; freedom: the degrees of freedom of that; both are NaN for one run.
    unvaried: the two-sided p-value where no run differs from another, so that there is no t-test.
    """

    mean: float
    error: float
    freedom: float
    unvaried: float | None = None

    def below(self) -> float:
        """The one-sided p-value of a true mean of at most 0."""
        if math.isnan(self.error):
            return 1.0
        if self.unvaried is not None:
            return self.unvaried / 2 if self.mean > 0 else 1 - self.unvaried / 2
        from scipy import special

        with np.errstate(all="ignore"):  # an error may be so small that the ratio is infinite
            ratio = float(np.divide(-self.mean, self.error)) if self.mean else 0.0
        return float(special.stdtr(self.freedom, ratio))

    def two_sided(self) -> float:
        """The p-value of a true mean of 0."""
        return min(1.0, 2 * self._replace(mean=abs(self.mean)).below())

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Student's interval. NaN for one run, a point where no run differs from another."""
        from scipy import special

        reach = float(special.stdtrit(self.freedom, (1 + confidence) / 2)) * self.error
        return self.mean - reach, self.mean + reach


def of_margin(margin: np.ndarray) -> Estimate:
    """The mean of margin [runs], from 2 runs on by Student's law. Where all runs agree, what is
    left is how often random signs of the margins agree as well.
    """
    mean, runs = float(margin.mean()), len(margin)
    if runs < 2:
        return Estimate(mean, math.nan, math.nan)
    if _agree(margin):
        return Estimate(mean, 0.0, runs - 1.0, 2.0 ** (1 - runs) if margin[0] else 1.0)
    unit = float(np.abs(margin).max())  # squares of very large or small numbers are none
    error = float((margin / unit).std(ddof=1)) / math.sqrt(runs)
    return Estimate(mean, unit * error, runs - 1.0)


def of_difference(one: np.ndarray, other: np.ndarray) -> Estimate:
    """The mean of `one` minus that of `other`, independent samples: Welch's approximation. Where
    none of them varies, what is left is how often runs that are dealt out at random fall apart as
    well.
    """
    mean, sizes = float(one.mean() - other.mean()), (len(one), len(other))
    if min(sizes) < 2:
        return Estimate(mean, math.nan, math.nan)
    if _agree(one) and _agree(other):
        deals = math.comb(sum(sizes), len(one))
        p = 1.0 if one[0] == other[0] else min(1.0, 2.0 / deals)
        return Estimate(mean, 0.0, sum(sizes) - 2.0, p)
    unit = max(float(np.ptp(sample)) for sample in (one, other))
    parts = [float((sample / unit).var(ddof=1)) / len(sample) for sample in (one, other)]
    squares = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    return Estimate(mean, unit * math.sqrt(sum(parts)), sum(parts) ** 2 / squares)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction, in the order given."""
    order = np.argsort(p_values)
    adjusted, largest = np.empty(len(order)), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted.tolist()


def student_reach(values: np.ndarray, level: float = CONFIDENCE) -> np.ndarray:
    """Half of Student's interval of the mean of values [..., runs]: [...]."""
    from scipy import stats

    return stats.t.ppf((1 + level) / 2, values.shape[-1] - 1) * stats.sem(values, axis=-1)


def resampled_means(
    samples: Sequence[np.ndarray], paired: bool, resamples: int, seed: int
) -> np.ndarray:
    """[resamples, samples]: means over runs drawn with replacement.

    paired: one draw of runs serves all samples; else each has its own.
    """
    rng = np.random.default_rng(seed)
    if paired:
        return _means(np.stack(samples, axis=1), resamples, rng)
    return np.concatenate([_means(sample[:, None], resamples, rng) for sample in samples], axis=1)


def _means(values: np.ndarray, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """[resamples, columns] of values [runs, columns], in pieces that fit into memory."""
    runs = len(values)
    piece = max(1, CHUNK // runs)
    sums = []
    for first in range(0, resamples, piece):
        count = min(piece, resamples - first)
        drawn = rng.integers(runs, size=(count, runs)) + runs * np.arange(count)[:, None]
        times = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(count, runs).astype(float)
        # Column by column: equal columns then get equal bits, and a tie stays one.
        sums.append(np.stack([times @ column for column in np.ascontiguousarray(values.T)], axis=1))
    return np.concatenate(sums) / runs


def share_of_least(rows: np.ndarray) -> np.ndarray:
    """[columns]: how often each column of [rows, columns] is the least; ties are shared out."""
    least = rows == rows.min(axis=1, keepdims=True)
    return (least / least.sum(axis=1, keepdims=True)).mean(axis=0)


def ratio_of_means(
    values: np.ndarray, base: np.ndarray, level: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean of values over that of base, and its interval: [...] each; NaN where one is not above 0.

    Student's interval for the logarithm of the ratio (delta method); runs belong together. values,
    base: [..., runs].
    """
    means = [np.where(one.mean(-1) > 0, one.mean(-1), np.nan) for one in (values, base)]
    relative = values / means[0][..., None] - base / means[1][..., None]
    factor = np.exp(student_reach(relative, level))
    ratio = means[0] / means[1]
    return ratio, ratio / factor, ratio * factor
