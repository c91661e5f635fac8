"""Do frequencies differ between groups? Chi-square over strata, permuted where it is sparse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

ENOUGH = 5.0  # rows to be expected in each cell for the chi-square law to be trusted
DRAWS, FEWEST = 9_999, 499
CELLS = 10_000_000  # of all tables that are drawn
AT_ONCE = 1_000_000  # cells in memory
FULL = 5  # rows for each cell
TIE = 1e-9  # relative: rounding of a statistic


class Tested(NamedTuple):
    """p: of no difference. permuted: is it of permutations, not of the chi-square law?"""

    p: float
    permuted: bool = False


def counted(strata: np.ndarray, groups: np.ndarray, kinds: np.ndarray, shape: tuple[int, int, int]
            ) -> np.ndarray:  # fmt: skip
    """int [strata, groups, kinds]: rows of each."""
    place = (strata * np.int64(shape[1]) + groups) * shape[2] + kinds
    return np.bincount(place, minlength=shape[0] * shape[1] * shape[2]).reshape(shape)


def compare_tables(tables: np.ndarray, rng: np.random.Generator) -> Tested | None:
    """Within strata, do groups have the same shares of kinds? tables: int [strata, groups, kinds].

    The sum of Pearson's statistics of all strata: with the chi-square law where all counts that are
    to be expected are at least 5, else from tables of the same margins, drawn at random (and if
    there are too many of these, with the law, without what is rare). None where
    no stratum has two groups and two kinds.
    """
    parts = [part for part in map(_without_empty, tables) if min(part.shape) > 1]
    if not parts:
        return None
    statistic = float(sum(pearson(part) for part in parts))
    if min(_expected(part).min() for part in parts) >= ENOUGH:
        return Tested(float(stats.chi2.sf(statistic, freedom(tables))))
    if not drawable(sum(part.size for part in parts)):
        return _without_rare(parts)
    draws = number_of_draws(parts)
    drawn = np.sum([draw_tables(part, draws, rng, pearson) for part in parts], axis=0)
    reached = int(np.count_nonzero(drawn >= statistic * (1 - TIE)))
    return Tested((1 + reached) / (draws + 1), permuted=True)


def drawable(cells: int) -> bool:
    """Are there few enough cells for permutations?"""
    return cells * FEWEST <= CELLS


def _without_rare(parts: list[np.ndarray]) -> Tested | None:
    """By the law: rare kinds count as one, and strata in which too few rows are left not at all."""
    found = []
    for part in parts:
        rare = _expected(part).min(0) < ENOUGH
        joint = np.column_stack([part[:, ~rare], part[:, rare].sum(1)])
        whole = _without_empty(joint)
        if min(whole.shape) > 1 and _expected(whole).min() >= ENOUGH:
            found.append(whole)
    if not found:
        return None
    degrees = sum((part.shape[0] - 1) * (part.shape[1] - 1) for part in found)
    return Tested(float(stats.chi2.sf(float(sum(map(pearson, found))), degrees)))


def freedom(tables: np.ndarray) -> int:
    """Of the chi-square law."""
    shapes = [_without_empty(table).shape for table in tables]
    return sum((groups - 1) * (kinds - 1) for groups, kinds in shapes if groups and kinds)


def number_of_draws(tables: Sequence[np.ndarray]) -> int:
    return int(np.clip(CELLS // sum(table.size for table in tables), FEWEST, DRAWS))


def pearson(tables: np.ndarray) -> np.ndarray:
    """[...] of counts [..., groups, kinds]."""
    expected = _expected(tables)
    return ((tables - expected) ** 2 / expected).sum((-2, -1))


def _expected(tables: np.ndarray) -> np.ndarray:
    rows, columns = tables.sum(-1, keepdims=True), tables.sum(-2, keepdims=True)
    return rows * columns / rows.sum(-2, keepdims=True)


def _without_empty(table: np.ndarray) -> np.ndarray:
    return table[table.sum(1) > 0][:, table.sum(0) > 0]


def draw_tables(
    table: np.ndarray, draws: int, rng: np.random.Generator, measure: Callable[..., np.ndarray]
) -> np.ndarray:
    """What is measured of random tables [draws, groups, kinds] with the margins of this one."""
    law = stats.random_table(table.sum(1), table.sum(0))
    method = "boyett" if table.sum() < FULL * table.size else "patefield"  # the faster one
    piece = max(1, AT_ONCE // table.size)
    found = [
        measure(law.rvs(size=min(piece, draws - first), method=method, random_state=rng))
        for first in range(0, draws, piece)
    ]
    return np.concatenate(found)
