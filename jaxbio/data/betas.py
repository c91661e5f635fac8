"""Beta posteriors of numbers in [0, 1], and the table of numbers with intervals made of them.

All of them have a prior that weighs as much as one row of the log. Where that row falls is guessed
for the mean (like all rows of the log), but not for an interval: that holds the intervals of all
priors of one row, whatever it says. For shares this is the interval of Clopper and Pearson, which
covers the truth with at least its level whatever the truth is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special


class Table(NamedTuple):
    """Numbers with intervals, all of one shape: [S], or [K, S]."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Betas(NamedTuple):
    """Beta distributions: Beta(mean total, (1 - mean) total). total: infinite for a constant."""

    mean: np.ndarray
    total: np.ndarray

    @classmethod
    def of_counts(cls, ones: Any, zeros: Any) -> Betas:
        """Beta(ones, zeros)."""
        total = np.asarray(ones + zeros, float)
        return cls(ones / total, total)

    @classmethod
    def of_moments(cls, mean: np.ndarray, variance: np.ndarray) -> Betas:
        fixed = (variance <= 0) | (mean <= 0) | (mean >= 1)
        total = mean * (1 - mean) / np.where(fixed, 1.0, variance) - 1
        return cls(mean, np.where(fixed, np.inf, np.maximum(total, 0.0)))

    def quantile(self, level: float) -> np.ndarray:
        fixed = np.isinf(self.total) | (self.mean <= 0) | (self.mean >= 1)
        total = np.where(fixed, 1.0, self.total)
        ones = np.where(fixed, 1.0, self.mean * total)
        found = special.betaincinv(ones, np.maximum(total - ones, 1e-300), level)
        return np.where(fixed, self.mean, found)

    def draw(self, generator: np.random.Generator) -> np.ndarray:
        fixed = np.isinf(self.total)
        total = np.where(fixed, 1.0, self.total)
        ones = generator.standard_gamma(self.mean * total)
        zeros = generator.standard_gamma((1 - self.mean) * total)
        every = ones + zeros
        drawn = np.where(every > 0, ones / np.where(every > 0, every, 1.0), self.mean)
        return np.where(fixed, self.mean, drawn)


class Posterior(NamedTuple):
    """middle: with a prior of one row as all others are. lower, upper: with one of 0 and of 1."""

    middle: Betas
    lower: Betas
    upper: Betas

    @classmethod
    def of_counts(cls, ones: np.ndarray, zeros: np.ndarray, guess: Any) -> Posterior:
        """Of shares: so many rows for and against. guess: the share of all rows."""
        return cls(
            Betas.of_counts(ones + guess, zeros + 1 - guess),
            Betas.of_counts(ones, zeros + 1),
            Betas.of_counts(ones + 1, zeros),
        )

    @classmethod
    def of_values(
        cls, count: np.ndarray, mean: np.ndarray, square: np.ndarray, guess: tuple[float, float]
    ) -> Posterior:
        """Of means of values in [0, 1], from how many there are, their mean and mean square: the
        Dirichlet process (the Bayesian bootstrap and one value more) by its moments, which is exact
        for values 0 and 1. guess: mean and mean square of all values.
        """
        return cls(*(_bootstrap(count, mean, square, more) for more in (guess, (0, 0), (1, 1))))

    def table(self, level: float) -> Table:
        tail = (1 - level) / 2
        return Table(self.middle.mean, self.lower.quantile(tail), self.upper.quantile(1 - tail))


def _bootstrap(
    count: np.ndarray, mean: np.ndarray, square: np.ndarray, more: tuple[float, float]
) -> Betas:
    centre = (count * mean + more[0]) / (count + 1)
    spread = (count * square + more[1]) / (count + 1) - centre**2
    return Betas.of_moments(centre, spread / (count + 2))
