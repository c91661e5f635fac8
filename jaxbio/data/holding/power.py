"""What a test would have seen."""

from __future__ import annotations

from functools import cache

from scipy import optimize, stats

LEVEL, POWER = 0.01, 0.8  # of one test among several; how often an effect is to be seen


@cache
def noncentrality(freedom: int) -> float:
    """Of a chi-square statistic that is significant in four of five cases."""
    least = stats.chi2.isf(LEVEL, freedom)
    found = optimize.root_scalar(
        lambda shift: stats.ncx2.sf(least, freedom, shift) - POWER, bracket=(0, 10 * least + 50)
    )
    return float(found.root)


def reach(comparisons: int) -> float:
    """In standard errors: of a difference that is seen in four of five cases, among so many."""
    return float(stats.norm.isf(LEVEL / (2 * comparisons)) + stats.norm.isf(1 - POWER))
