"""Do groups differ within strata? A test of scores by permutation, or by its chi-square law."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import stats

from jaxbio.data.holding.tables import (
    TIE,
    Tested,
    counted,
    draw_tables,
    drawable,
    number_of_draws,
)

ENOUGH = 10.0  # rows that count, in each group of each stratum, for the law to be trusted
LEVELS = 50  # different scores of a stratum, in permutations
LEAST = 1e-18  # of a variance: below it is rounding


def compare_groups(
    scores: np.ndarray, groups: np.ndarray, strata: np.ndarray, rng: np.random.Generator
) -> Tested | None:
    """Within strata, do all groups have the same scores? All [rows]; None where no stratum has two
    groups and two scores.

    Two statistics: `within`, the sum over strata of that of Kruskal and Wallis, with scores in
    place of ranks, which sees all differences; and `pooled`, that of Cochran, Mantel and Haenszel,
    which adds up over strata what each group has above its share, and sees those best that go the
    same way in all. The smaller p-value of the two counts, corrected for there being two. It is of
    permutations within strata where few rows count, so that the chi-square law is in doubt; if
    there are too many groups for that, those with few rows are left out.
    """
    rows = Strata(scores, groups, strata)
    if not rows.counting.size:
        return None
    doubtful = np.array([rows.counting.min() < ENOUGH, rows.counting_pooled.min() < ENOUGH])
    if not doubtful.any():
        return Tested(rows.smaller(rows.by_law()))
    if drawable(rows.rows.size * LEVELS):
        found = np.where(doubtful, rows.by_permutation(rng), rows.by_law())
        return Tested(rows.smaller(found), permuted=True)
    rows = rows.only(rows.counting >= ENOUGH)
    return Tested(rows.smaller(rows.by_law())) if rows.counting.size else None


class Strata:
    """Rows by stratum, and by group within; strata in which nothing can differ are left out.

    scores: float64 [rows], less the mean of their stratum. Of cells (the groups of a stratum):
    rows, stratum, group: int [cells], and begins, where their rows begin. Of strata: size, int
    [strata], and spread, [strata], the variance of scores.
    """

    def __init__(self, scores: np.ndarray, groups: np.ndarray, strata: np.ndarray) -> None:
        order = np.lexsort((groups, strata))
        scores, groups, strata = scores[order].astype(np.float64), groups[order], strata[order]
        stratum = _runs(strata)
        size = np.bincount(stratum)
        scores -= (np.bincount(stratum, scores) / size)[stratum]
        spread, fourth = (np.bincount(stratum, scores**power) / size for power in (2, 4))
        cells = np.bincount(stratum[_beginnings(strata, groups)], minlength=size.size)
        good = (cells > 1) & (spread > LEAST)
        keep = good[stratum]
        self.scores, groups, stratum = scores[keep], groups[keep], _runs(strata[keep])
        self.begins = _beginnings(stratum, groups)
        self.rows = np.diff(self.begins, append=self.scores.size)
        self.group = np.unique(groups[self.begins], return_inverse=True)[1]
        self.stratum = stratum[self.begins]
        self.size = size[good]
        self.spread = spread[good] * self.size / (self.size - 1)
        self.moments = np.stack([spread[good], fourth[good]])

    @cached_property
    def counting(self) -> np.ndarray:
        """[cells]: how many rows count. If few scores differ from all others, only these do."""
        spread, fourth = self.moments[:, self.stratum]
        return self.rows * spread**2 / fourth

    @cached_property
    def counting_pooled(self) -> np.ndarray:
        """[groups]: the same, over all strata."""
        spread, fourth = (
            np.bincount(self.group, self.rows * one[self.stratum]) for one in self.moments
        )
        return spread**2 / fourth

    @cached_property
    def freedom(self) -> tuple[int, int]:
        """Of `within` and `pooled`."""
        return self.rows.size - self.size.size, int(np.linalg.matrix_rank(self._covariance))

    @cached_property
    def _covariance(self) -> np.ndarray:
        """[groups, groups]: of the sums of their scores, over permutations within strata."""
        rows = np.zeros((self.size.size, self.group.max() + 1))
        rows[self.stratum, self.group] = self.rows
        weighted = self.spread[:, None] * rows
        return np.diag(weighted.sum(0)) - weighted.T @ (rows / self.size[:, None])

    def only(self, cells: np.ndarray) -> Strata:
        """Without the rows of some cells."""
        keep = np.repeat(cells, self.rows)
        group, stratum = np.repeat(self.group, self.rows), np.repeat(self.stratum, self.rows)
        return Strata(self.scores[keep], group[keep], stratum[keep])

    def statistics(self, sums: np.ndarray) -> np.ndarray:
        """[2, draws]: `within` and `pooled`, of sums of scores [draws, cells]."""
        within = (sums**2 / (self.rows * self.spread[self.stratum])).sum(1)
        excess = sums @ np.eye(self.group.max() + 1)[self.group]
        inverse = np.linalg.pinv(self._covariance, hermitian=True)
        return np.stack([within, ((excess @ inverse) * excess).sum(1)])

    def smaller(self, p: np.ndarray) -> float:
        """Of p-values [2], corrected; in a single stratum they are of the same statistic."""
        return float(p[0] if self.size.size == 1 else min(1.0, 2 * p.min()))

    def by_law(self) -> np.ndarray:
        """[2]: p-values."""
        sums = np.add.reduceat(self.scores, self.begins)[None]
        return stats.chi2.sf(self.statistics(sums)[:, 0], self.freedom)

    def by_permutation(self, rng: np.random.Generator) -> np.ndarray:
        """[2]: p-values. Scores are dealt out anew within strata, once they were gathered to a few
        levels.
        """
        group = np.repeat(self.group, self.rows)
        ends = np.cumsum(self.size)
        parts = [
            _leveled(self.scores[first:last], group[first:last])
            for first, last in zip(ends - self.size, ends, strict=True)
        ]
        draws = number_of_draws([table for table, _ in parts])
        found = self.statistics(np.concatenate([table @ values for table, values in parts])[None])
        sums = [
            draw_tables(table, draws, rng, lambda drawn, values=values: drawn @ values)
            for table, values in parts
        ]
        drawn = self.statistics(np.concatenate(sums, axis=1))
        return (1 + (drawn >= found * (1 - TIE)).sum(1)) / (1 + draws)


def _leveled(scores: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int [groups that there are, levels], how many scores each group has of each level; and
    [levels], the mean scores of these. Large scores have levels of their own, small ones share.
    """
    order = np.argsort(scores)
    scores, groups = scores[order], np.unique(groups[order], return_inverse=True)[1]
    reached = np.cumsum(np.abs(scores))
    level = (reached * ((LEVELS - 1) / reached[-1])).astype(int)
    same = scores[1:] == scores[:-1]
    level = _runs(np.maximum.accumulate(np.where(np.append(False, same), 0, level)))
    table = counted(np.zeros_like(groups), groups, level, (1, groups.max() + 1, level[-1] + 1))[0]
    return table, np.bincount(level, scores) / table.sum(0)


def _beginnings(strata: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Where cells begin, of sorted rows."""
    new = np.ones(strata.size, bool)
    new[1:] = (strata[1:] != strata[:-1]) | (groups[1:] != groups[:-1])
    return np.flatnonzero(new)


def _runs(strata: np.ndarray) -> np.ndarray:
    """[rows]: 0, 1, ... in place of sorted codes."""
    return np.cumsum(np.diff(strata, prepend=strata[:1]) != 0)
