"""Do actions show other states at the end of a log than at its beginning?"""

from __future__ import annotations

import numpy as np

from jaxbio.data.holding.finding import Effect, Finding
from jaxbio.data.holding.periods import Parts
from jaxbio.data.holding.power import noncentrality
from jaxbio.data.holding.tables import compare_tables, counted
from jaxbio.data.holding.words import percent
from jaxbio.data.log import Log

NAME = "mapping"
QUESTION = "Do actions show other states at the end of the log than at its beginning?"
SMALL, LARGE = 0.02, 0.2  # of the rounds
DRAWS, CELLS = 1000, 4_000_000  # of the interval; numbers that are drawn for it
REMEDY = (
    "states are seen at once, so that a mapping that changes is no reason to do without them; prefer "
    "a learner that forgets (StateThompson or HindsightExp3 with discount=0.999), and fit to recent "
    "rows only"
)


def mapping_drift(log: Log, parts: Parts, confidence: float, rng: np.random.Generator) -> Finding:
    """Chi-square of state by part within actions; the effect is from the first part to the last."""
    shape = (log.num_actions, parts.count, log.num_states)
    tables = counted(log.action, parts.of, log.state, shape)
    tested = compare_tables(tables, rng)
    ends = tables[:, [0, parts.last]]
    both = ends.sum(2).min(1) > 0
    if tested is None or not both.any():
        return Finding(NAME, QUESTION, "Every action shows a single state only.", holds=True)
    moved = Moved(ends[both], tables.sum((1, 2))[both], confidence, rng)
    names = [log.actions[i] for i in np.flatnonzero(both)]
    found = (
        f"{percent(moved.value)} of the rounds ({percent(moved.low)} to {percent(moved.high)}) "
        f"show another state in the last of {parts.count} parts of the log than in the first"
        f"{moved.most(names)}."
    )
    detectable = moved.detectable(tested.freedom, log.counts[both])
    effect = Effect(moved.value, moved.low, moved.high, "share of rounds with another state",
                    SMALL, LARGE, detectable)  # fmt: skip
    return Finding(
        NAME, QUESTION, found, REMEDY, parts.rhythm,
        f"A change of {percent(detectable)} would have been seen in four of five such logs.",
        effect, tested.p,
        details={"parts": parts.count, "statistic": tested.statistic, "freedom": tested.freedom,
                 "permuted": tested.permuted, "by_action": moved.by_action(names)},
    )  # fmt: skip


class Moved:
    """The total-variation distance between two parts, less what noise makes of it.

    ends: int [K, 2, S], counts of the two parts. weights [K]: rows of the actions. The distance of
    two samples is not 0 if they are of one distribution; its square is on average larger than that
    of the distributions by about the square that there would be without a change, which is taken
    off. The interval is from samples of the samples, where it is taken off twice.
    """

    def __init__(
        self, ends: np.ndarray, weights: np.ndarray, confidence: float, rng: np.random.Generator
    ) -> None:
        self.shares = weights / weights.sum()
        rows = ends.sum(2)
        own = ends / rows[:, :, None]
        pooled = (ends.sum(1) / rows.sum(1)[:, None])[:, None].repeat(2, 1)
        draws = int(np.clip(CELLS // ends.size, 100, DRAWS))
        still = self._distances(rows, pooled, draws, rng)
        again = self._distances(rows, own, draws, rng)
        self.noise = np.mean(still**2, 0)
        self.each = _without(half_l1(own), self.noise)
        noise = np.mean((still @ self.shares) ** 2)
        self.value = float(_without(half_l1(own) @ self.shares, noise))
        spread = _without(again @ self.shares, 2 * noise)
        tail = (1 - confidence) / 2
        self.low, self.high = (float(one) for one in np.quantile(spread, [tail, 1 - tail]))
        self.rows = rows

    def _distances(
        self, rows: np.ndarray, chances: np.ndarray, draws: int, rng: np.random.Generator
    ) -> np.ndarray:
        """[draws, K]: between two samples of so many rows [K, 2] of distributions [K, 2, S]."""
        drawn = rng.multinomial(rows, chances, (draws, *rows.shape))
        return half_l1(drawn / rows[:, :, None])

    def most(self, names: list[str]) -> str:
        if len(names) < 2 or self.each.max() == 0:
            return ""
        i = int(np.argmax(self.each))
        return f", most of all {names[i]!r} ({percent(self.each[i])})"

    def by_action(self, names: list[str]) -> dict[str, float]:
        return {name: float(one) for name, one in zip(names, self.each, strict=True)}

    def detectable(self, freedom: int, counts: np.ndarray) -> float:
        """The distance between first and last part that a change in a straight line has if four of
        five such logs show it. counts: int [K, S].
        """
        shares = counts / counts.sum(1, keepdims=True)
        width = (np.sqrt(shares).sum(1) ** 2 / np.maximum((shares > 0).sum(1), 1)) @ self.shares
        # The mean square of a straight line from -1/2 to 1/2 is 1/12.
        return float(min(1.0, 0.5 * np.sqrt(width * 12 * noncentrality(freedom) / counts.sum())))


def half_l1(shares: np.ndarray) -> np.ndarray:
    """[...]: the distance between the two distributions in [..., 2, S]."""
    return np.abs(shares[..., 0, :] - shares[..., 1, :]).sum(-1) / 2


def _without(distance: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(distance**2 - noise, 0.0))
