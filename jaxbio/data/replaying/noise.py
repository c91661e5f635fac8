"""How sure a replay is: runs on one log are not independent, as they share its rows.

The mean over runs on one log differs from what another log of the same size would give for two
reasons: each run has its own order of rows and its own random numbers (divided by the number of
runs), and all runs have the same rows (not divided by anything). The second part is measured on
logs that are redrawn from this one, with several runs on each: how much do their means differ?
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

FEWEST, MOST = 2.0, 1e9  # degrees of freedom


class Estimate(NamedTuple):
    """A mean and its interval."""

    mean: float
    low: float
    high: float


class Variance(NamedTuple):
    """An estimated variance, and the variance of that estimate: [...] each."""

    value: Any
    doubt: Any

    def plus(self, other: Variance) -> Variance:
        return Variance(self.value + other.value, self.doubt + other.doubt)


def of_mean(values: np.ndarray) -> Variance:
    """Of the mean of independent values [..., runs]."""
    runs = values.shape[-1]
    found = values.var(axis=-1, ddof=1) / runs
    return Variance(found, 2 * found**2 / (runs - 1))


def between_logs(redrawn: np.ndarray, logs: np.ndarray, most: np.ndarray | float = 1.0) -> Variance:
    """Of the mean over infinitely many runs on a log, from log to log.

    The component of variance in a one-way layout. redrawn: [..., runs], on redrawn logs; logs: int
    [runs], on which of them each run is. most: the largest share of the variance of a run that its
    log can account for. (For a mean of m rows of n it is m / n: Hoeffding 1948.)
    """
    _, mine, count = np.unique(logs, return_inverse=True, return_counts=True)
    runs, groups = len(logs), len(count)
    member = (mine[:, None] == np.arange(groups)).astype(float)
    means = redrawn @ member / count
    inside = ((redrawn - means[..., mine]) ** 2).sum(axis=-1) / (runs - groups)
    centre = redrawn.mean(axis=-1, keepdims=True)
    across = (count * (means - centre) ** 2).sum(axis=-1) / (groups - 1)
    each = (runs - (count**2).sum() / runs) / (groups - 1)  # runs of a log, as it were
    bound = most * redrawn.var(axis=-1, ddof=1)
    doubt = (2 * across**2 / (groups - 1) + 2 * inside**2 / (runs - groups)) / each**2
    found = np.clip((across - inside) / each, 0, bound)
    return Variance(found, np.minimum(doubt, bound**2 / 4))


def reach(variance: Variance, level: float) -> np.ndarray:
    """[...]: half of the interval of a mean: Student's, with the degrees of freedom that the doubt
    about its variance leaves (Satterthwaite 1946).
    """
    from scipy import special  # takes half a second to import

    value, doubt = (np.asarray(one, float) for one in variance)
    freedom = np.full(value.shape, MOST)
    np.divide(2 * value**2, doubt, out=freedom, where=doubt > 0)
    return special.stdtrit(np.clip(freedom, FEWEST, MOST), (1 + level) / 2) * np.sqrt(value)
