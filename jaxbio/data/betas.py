"""Beta posteriors of numbers in [0, 1], and tables of numbers with intervals.

Every prior here weighs as much as one row of the log. For the mean and for draws that row looks
like all rows of the log. An interval does not rely on that: it holds the intervals of every prior
of one row, from one that says 0 to one that says 1. Of a share, k of n rows, this is the interval
of Clopper and Pearson, which covers with at least its level whatever the truth is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special


class Table(NamedTuple):
    """Numbers and the ends of their intervals, all of one shape: [S], or [K, S]."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Betas(NamedTuple):
    """Beta distributions [...] by their means and by the sums of their two parameters; an infinite
    sum is a constant.
    """

    mean: np.ndarray
    total: np.ndarray

    @classmethod
    def of_counts(cls, ones: Any, zeros: Any) -> Betas:
        """Beta(ones, zeros)."""
        total = np.asarray(ones + zeros, float)
        return cls(ones / total, total)

    @classmethod
    def of_moments(cls, mean: np.ndarray, variance: np.ndarray) -> Betas:
        mean = np.clip(mean, 0, 1)  # of sums that are rounded
        most = mean * (1 - mean)
        fixed = (variance <= 0) | (most <= 0)
        total = most / np.where(fixed, 1.0, variance) - 1
        return cls(mean, np.where(fixed, np.inf, np.maximum(total, 0.0)))

    def times(self, other: Betas) -> Betas:
        """Of products of independent variables: with their means and variances."""
        mean = self.mean * other.mean
        square = self._square() * other._square()
        return Betas.of_moments(mean, np.maximum(square - mean**2, 0.0))

    def _square(self) -> np.ndarray:
        return self.mean * (self.mean + (1 - self.mean) / (self.total + 1))

    def quantile(self, level: float) -> np.ndarray:
        fixed = self._fixed
        total = np.where(fixed, 2.0, self.total)
        ones = np.where(fixed, 1.0, self.mean * total)
        return np.where(fixed, self.mean, special.betaincinv(ones, total - ones, level))

    def draw(self, generator: np.random.Generator) -> np.ndarray:
        fixed = self._fixed
        total = np.where(fixed, 2.0, self.total)
        mean = np.where(fixed, 0.5, self.mean)
        return np.where(fixed, self.mean, generator.beta(mean * total, (1 - mean) * total))

    @property
    def _fixed(self) -> np.ndarray:
        return np.isinf(self.total) | (self.mean <= 0) | (self.mean >= 1)


class Posterior(NamedTuple):
    """middle: with a prior row like all rows. lower, upper: with one that says 0, and 1."""

    middle: Betas
    lower: Betas
    upper: Betas

    @classmethod
    def of_counts(cls, ones: np.ndarray, zeros: np.ndarray, guess: Any) -> Posterior:
        """Of shares, from the rows for and against. guess: what the prior row says, on average."""
        return cls(
            Betas.of_counts(ones + guess, zeros + 1 - guess),
            Betas.of_counts(ones, zeros + 1),
            Betas.of_counts(ones + 1, zeros),
        )

    @classmethod
    def of_values(cls, moments: np.ndarray, guess: tuple[float, float]) -> Posterior:
        """Of means of values in [0, 1]. moments [..., 3]: of how many, their mean and mean square.

        It has the moments of the Bayesian bootstrap in which the prior row is one value more. For
        values 0 and 1 it is exact. guess: mean and mean square of all values of the log.
        """
        return cls(*(_bootstrap(moments, more) for more in (guess, (0.0, 0.0), (1.0, 1.0))))

    def times(self, other: Posterior) -> Posterior:
        return Posterior(*(one.times(more) for one, more in zip(self, other, strict=True)))

    def table(self, level: float) -> Table:
        tail = (1 - level) / 2
        return Table(self.middle.mean, self.lower.quantile(tail), self.upper.quantile(1 - tail))


def _bootstrap(moments: np.ndarray, more: tuple[float, float]) -> Betas:
    count, mean, square = np.moveaxis(moments, -1, 0)
    centre = (count * mean + more[0]) / (count + 1)
    spread = (count * square + more[1]) / (count + 1) - centre**2
    return Betas.of_moments(centre, spread / (count + 2))
