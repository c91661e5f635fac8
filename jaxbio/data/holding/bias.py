"""What states leave unexplained of the losses of actions, and what trusting them would cost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from jaxbio.data.holding.cells import Cells
from jaxbio.data.holding.distance import CELLS, Span, largest, number_of_samples
from jaxbio.data.holding.power import reach

RANGES = 200  # draws of the range of noise
LIFT = 0.1  # of the mean loss (or of what is missing to 1): so much is at stake at least


class Bias:
    """All in losses per round. direct [K]: mean losses of actions. prices [K]: what their states
    make of them. bias [K]: the difference, with its standard error, by the delta method. apart: how
    far the best action and the worst are from each other. stake: that without noise, or a little if
    it is less.
    worst, largest: the action with the largest bias, and its size.

    counts: int [K, S], rows. cells: losses of actions in states.
    """

    def __init__(
        self, counts: np.ndarray, cells: Cells, confidence: float, rng: np.random.Generator
    ) -> None:
        self.counts, self.cells, self.confidence, self.rng = counts, cells, confidence, rng
        rows = counts.sum(1)
        self.shares = counts / rows[:, None]
        excess = cells.mean - cells.pooled
        self.bias = (self.shares * excess).sum(1)
        self.direct = (self.shares * cells.mean).sum(1)
        self.prices = self.shares @ cells.pooled
        self.error = np.sqrt(_variance(self.shares, cells, rows, excess))
        self.worst, self.largest = largest(self.bias, self.error, confidence)
        self.best, self.trusted = int(np.argmin(self.direct)), int(np.argmin(self.prices))
        middle = float(self.direct @ rows) / rows.sum()
        self.apart = max(float(np.ptp(self.direct)), float(np.ptp(self.prices)))
        self.stake = max(self._surely_apart(), LIFT * min(middle, 1 - middle), 1e-12)
        self.detectable = float(self.error @ rows) / rows.sum() * reach(rows.size)

    def _surely_apart(self) -> float:
        """Less what noise makes of it: means of few rows are far apart by chance."""
        spread = (self.shares * self.cells.mean**2).sum(1) - self.direct**2
        variance = (self.shares * self.cells.error) ** 2
        error = np.sqrt(variance.sum(1) + np.maximum(spread, 0) / self.counts.sum(1))
        drawn = np.ptp(self.rng.standard_normal((RANGES, error.size)) * error, axis=1)
        own = np.sqrt(max(0.0, float(np.ptp(self.direct)) ** 2 - float(np.mean(drawn**2))))
        return max(own, float(np.ptp(self.prices)) - float(drawn.mean()))

    @cached_property
    def regret(self) -> Span:
        """Per round, of the action with the least price. The interval is of what the log may be
        true of: losses of cells and mappings that are drawn around the observed ones.
        """
        drawn = np.concatenate(list(self._drawn_regrets()))
        tail = (1 - self.confidence) / 2
        low, high = (float(one) for one in np.quantile(drawn, [tail, 1 - tail]))
        value = float(self.direct[self.trusted] - self.direct[self.best])
        return Span(value, min(low, value), max(high, value))

    def _drawn_regrets(self) -> Iterator[np.ndarray]:
        left = number_of_samples(self.counts.size)
        piece = max(1, CELLS // (10 * self.counts.size))
        while left > 0:
            size = (min(left, piece), *self.counts.shape)
            left -= piece
            shares = self.rng.standard_gamma(self.counts + 1 / self.counts.shape[1], size)
            shares /= shares.sum(2, keepdims=True)
            noise = self.cells.error * self.rng.standard_normal(size)
            means = np.clip(self.cells.mean + noise, 0, 1)
            direct = (shares * means).sum(2)
            prices = (shares * (self.cells.weight * means).sum(1, keepdims=True)).sum(2)
            chosen = np.take_along_axis(direct, prices.argmin(1)[:, None], 1)[:, 0]
            yield chosen - direct.min(1)

    def by_action(self, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        columns = {
            "mean_loss": self.direct,
            "by_states": self.prices,
            "difference": self.bias,
            "standard_error": self.error,
        }
        return {
            name: {about: float(values[i]) for about, values in columns.items()}
            for i, name in enumerate(names)
        }


def _variance(shares: np.ndarray, cells: Cells, rows: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """[K]: of the sum over states of shares * (means - pooled means), by the delta method.

    A mean of action k counts with 1 - weight for k itself, and with -weight for the others.
    """
    square = cells.error**2
    others = (cells.weight**2 * square).sum(0)
    of_means = (shares**2 * (square * (1 - 2 * cells.weight) + others)).sum(1)
    of_shares = (shares * excess**2).sum(1) - (shares * excess).sum(1) ** 2
    return of_means + np.maximum(of_shares, 0) / rows
