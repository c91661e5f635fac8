"""Intervals of shares, quantiles and means, and what one says about a claim. All are of 95 %."""

from __future__ import annotations

import numpy as np

from jaxbio.analysis.statistics import CONFIDENCE, student_reach

YES, NO, UNDECIDED = OUTCOMES = "yes", "no", "undecided"  # of any claim: does it hold?


def of_share(count: int, runs: int) -> tuple[float, float]:
    """The Clopper-Pearson interval of a share, from `count` of `runs`."""
    from scipy import stats  # takes half a second to import

    found = stats.binomtest(count, runs).proportion_ci(CONFIDENCE, "exact")
    return float(found.low), float(found.high)


def of_quantile(values: np.ndarray, p: float) -> tuple[float, float, float]:
    """The least of values [runs] that a share p of them does not exceed, and the ends of its
    interval, order statistics; NaN where runs are too few for an end.
    """
    from scipy import stats

    value = float(np.quantile(values, p, method="inverted_cdf"))
    interval = stats.quantile_test(values, p=p).confidence_interval(CONFIDENCE)
    return value, float(interval.low), float(interval.high)


def of_mean(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean of values [..., runs] over runs, and both ends of Student's interval: [...] each."""
    mean, reach = values.mean(axis=-1), student_reach(values)
    return mean, mean - reach, mean + reach


def judged(low: float, high: float, allowed: float) -> str:
    """What the interval of a number says about "at most `allowed`". A share that is 0 in all runs
    passes for 0.
    """
    if low > allowed:
        return NO
    return YES if high <= allowed or low == allowed == 0 else UNDECIDED
