"""Intervals, tests and corrections for means over runs; SciPy does the work.

SciPy is imported where it is used: that takes half a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

LEVEL = 0.05  # the probability that nothing but noise decides anything
CONFIDENCE = 0.95  # of intervals
RESAMPLES = 9999
LARGE = 2_000  # runs from which a mean is normal enough: a bootstrap would only cost time
ROUNDING = 1e-12  # of float64 differences, relative
CHUNK = 1 << 22  # numbers in memory at once while resampling


def _agree(values: np.ndarray) -> bool:
    """Are all the same, up to rounding?"""
    return bool(np.ptp(values) <= ROUNDING * np.abs(values).max())


def two_sided(margin: np.ndarray) -> float:
    """The p-value of a mean of zero. Where all runs agree, no t-test can be made: then how often
    random signs of the margins agree as well.
    """
    if len(margin) < 2:
        return 1.0
    if _agree(margin):
        return 1.0 if margin[0] == 0 else 2.0 ** (1 - len(margin))
    from scipy import stats

    found: Any = stats.ttest_1samp(margin, 0)
    return float(found.pvalue)


def welch(one: np.ndarray, other: np.ndarray) -> float:
    """The p-value of equal means of independent samples. Where none of them varies: how often runs
    that are dealt out at random fall apart as well.
    """
    if min(len(one), len(other)) < 2:
        return 1.0
    if _agree(one) and _agree(other):
        deals = math.comb(len(one) + len(other), len(one))
        return 1.0 if one[0] == other[0] else min(1.0, 2.0 / deals)
    from scipy import stats

    found: Any = stats.ttest_ind(one, other, equal_var=False)
    return float(found.pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction, in the order given."""
    order = np.argsort(p_values)
    adjusted, largest = np.empty(len(order)), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted.tolist()


def interval(margin: np.ndarray, seed: int, resamples: int = RESAMPLES) -> tuple[float, float]:
    """A 95 % interval of the mean: BCa bootstrap, or Student's where runs are many."""
    if len(margin) < 2 or _agree(margin):
        return float(margin.mean()), float(margin.mean())
    if len(margin) > LARGE:
        from scipy import stats

        low, high = stats.ttest_1samp(margin, 0).confidence_interval(CONFIDENCE)
        return float(low), float(high)
    return _bootstrap((margin,), np.mean, seed, resamples)


def student_reach(values: np.ndarray, level: float = CONFIDENCE) -> np.ndarray:
    """Half of Student's interval of the mean of values [..., runs]: [...]."""
    from scipy import stats

    return stats.t.ppf((1 + level) / 2, values.shape[-1] - 1) * stats.sem(values, axis=-1)


def interval_of_difference(
    one: np.ndarray, other: np.ndarray, seed: int, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """A 95 % interval of the mean of `one` minus that of `other`, independent samples."""
    if min(len(one), len(other)) < 2 or (_agree(one) and _agree(other)):
        difference = float(one.mean() - other.mean())
        return difference, difference
    if max(len(one), len(other)) > LARGE:
        from scipy import stats

        found: Any = stats.ttest_ind(one, other, equal_var=False)
        low, high = found.confidence_interval(CONFIDENCE)
        return float(low), float(high)

    def statistic(a: np.ndarray, b: np.ndarray, axis: int = -1) -> np.ndarray:
        return a.mean(axis=axis) - b.mean(axis=axis)

    return _bootstrap((one, other), statistic, seed, resamples)


def _bootstrap(
    samples: tuple[np.ndarray, ...], statistic: Any, seed: int, resamples: int
) -> tuple[float, float]:
    from scipy import stats

    found = stats.bootstrap(
        samples,
        statistic,
        n_resamples=resamples,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)


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
