"""The tests behind the checks of the model, against SciPy and against every permutation."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from jaxbio.data.holding import scores as scores_module
from jaxbio.data.holding import tables as tables_module
from jaxbio.data.holding.cells import accumulated, surviving
from jaxbio.data.holding.distance import largest
from jaxbio.data.holding.lateness import Medians
from jaxbio.data.holding.scores import compare_groups
from jaxbio.data.holding.tables import compare_tables, counted, freedom


def chi_square(table: np.ndarray) -> tuple[float, float, int]:
    """SciPy's statistic, p-value and degrees of freedom."""
    found: Any = stats.chi2_contingency(table, correction=False)
    return float(found.statistic), float(found.pvalue), int(found.dof)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_ranks_in_one_stratum_are_kruskal_and_wallis(rng: np.random.Generator) -> None:
    groups = rng.integers(0, 4, 300)
    ranks = stats.rankdata(rng.integers(0, 20, 300) + groups)
    found = compare_groups(ranks, groups, np.zeros(300, int), rng)
    expected = stats.kruskal(*(ranks[groups == g] for g in range(4)))
    assert found is not None
    assert not found.permuted
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_coins_in_strata_are_mantel_and_haenszel(rng: np.random.Generator) -> None:
    """Two groups: the pooled statistic against the textbook's; the smaller of both p-values is
    doubled."""
    strata, groups = rng.integers(0, 3, 900), rng.integers(0, 2, 900)
    coins = (rng.random(900) < 0.2 + 0.2 * strata + 0.08 * groups).astype(float)
    excess = variance = within = 0.0
    for s in range(3):
        own = strata == s
        table = counted(0 * groups[own], groups[own], coins[own].astype(int), (1, 2, 2))[0]
        rows, columns, whole = table.sum(1), table.sum(0), table.sum()
        excess += table[1, 1] - rows[1] * columns[1] / whole
        variance += rows.prod() * columns.prod() / whole**2 / (whole - 1)
        pearson, _, _ = chi_square(table)
        within += pearson * (whole - 1) / whole
    p = min(stats.chi2.sf(excess**2 / variance, 1), stats.chi2.sf(within, 3))
    found = compare_groups(coins, groups, strata, rng)
    assert found is not None
    assert found.p == pytest.approx(2 * p, rel=1e-9)


def test_permutations_agree_with_all_of_them(rng: np.random.Generator) -> None:
    """Eight rows in two groups of four have 70 permutations. 9,999 draws of a p-value of 0.1 are
    off by 0.003 (one standard error); 0.02 is passed once in 10^10 seeds."""
    scores, groups = np.array([0.1, 0.2, 0.9, 1.4, 0.8, 1.7, 2.2, 2.9]), np.repeat([0, 1], 4)
    gap = [abs(scores[list(one)].sum() * 2 - scores.sum()) for one in combinations(range(8), 4)]
    own = abs(scores[:4].sum() * 2 - scores.sum())
    expected = np.mean(np.array(gap) >= own - 1e-12)
    found = compare_groups(scores, groups, np.zeros(8, int), rng)
    assert found is not None
    assert found.permuted
    assert found.p == pytest.approx(expected, abs=0.02)


def test_sparse_tables_agree_with_all_of_them(rng: np.random.Generator) -> None:
    """Of a table of two by two, Fisher's. Tolerance as above."""
    table = np.array([[7, 2], [1, 6]])
    own = abs(table[0, 0] - 4.5)
    expected = sum(stats.hypergeom.pmf(one, 16, 8, 9) for one in range(10) if abs(one - 4.5) >= own)
    found = compare_tables(table[None], rng)
    assert found is not None
    assert found.permuted
    assert found.p == pytest.approx(expected, abs=0.02)


def test_dense_tables_are_pearsons(rng: np.random.Generator) -> None:
    """Added up over strata; an empty group and an empty kind do not count."""
    tables = rng.poisson(30, (3, 4, 5))
    tables[1, 2] = 0
    tables[2, :, 3] = 0
    parts = [tables[0], np.delete(tables[1], 2, 0), np.delete(tables[2], 3, 1)]
    each = [chi_square(part) for part in parts]
    degrees = sum(one[2] for one in each)
    p = stats.chi2.sf(sum(one[0] for one in each), degrees)
    found = compare_tables(tables, rng)
    assert found is not None
    assert found.p == pytest.approx(float(p), rel=1e-9)
    assert freedom(tables) == degrees == 12 + 8 + 9


def test_nothing_to_compare(rng: np.random.Generator) -> None:
    one = np.zeros(50, int)
    assert compare_groups(np.ones(50), rng.integers(0, 2, 50), one, rng) is None
    assert compare_groups(rng.random(50), one, one, rng) is None
    assert compare_tables(np.array([[[3, 0], [5, 0]]]), rng) is None


def test_what_is_too_much_to_permute_is_left_out(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rare cells are dropped from scores, and rare kinds put together in tables."""
    strata = np.repeat([0, 1], [400, 12])
    groups, scores = np.tile([0, 1], 206), rng.random(412)
    for module in (scores_module, tables_module):
        monkeypatch.setattr(module, "drawable", lambda cells: False)
    found = compare_groups(scores, groups, strata, rng)
    assert found == compare_groups(scores[:400], groups[:400], strata[:400], rng)
    table = np.array([[40, 50, 2, 4], [60, 40, 5, 3]])
    joint = np.column_stack([table[:, :2], table[:, 2:].sum(1)])
    _, p, _ = chi_square(joint)
    sparse = compare_tables(table[None], rng)
    assert sparse is not None
    assert sparse.p == pytest.approx(float(p), rel=1e-9)


def test_hazards_and_survival_of_strata(rng: np.random.Generator) -> None:
    """Kaplan and Meier against SciPy, with ties; and expected events add up to those that came."""
    strata, waited = rng.integers(0, 3, 400), np.ceil(rng.exponential(5, 400))
    event = rng.random(400) < 0.6
    hazard = accumulated(waited, event, strata)
    survival = surviving(waited, event, strata)
    for s in range(3):
        own = strata == s
        data = stats.CensoredData(uncensored=waited[own & event], right=waited[own & ~event])
        expected = stats.ecdf(data).sf.evaluate(waited[own])
        np.testing.assert_allclose(survival[own], expected, atol=1e-12)
        assert hazard[own].sum() == pytest.approx(event[own].sum())


def test_medians_and_their_intervals() -> None:
    """Order statistics: of 1, ..., 99, at 95 % together for two groups (97.5 % each)."""
    waited = np.concatenate([np.arange(1.0, 100), 4 * np.arange(1.0, 100), [1.0]])
    groups = np.repeat([0, 1, 2], [99, 99, 1])
    found = Medians(waited, groups, 3, 0.95)
    assert found.groups.tolist() == [0, 1]  # a single delay has no median to speak of
    assert found.middle.tolist() == [50, 200]
    inside = stats.binom(99, 0.5).cdf(found.high[0] - 1) - stats.binom(99, 0.5).cdf(
        found.low[0] - 1
    )
    assert 0.975 <= inside < 0.99
    assert found.ratio.value == 4
    assert found.ratio.low == found.low[1] / found.high[0]


def test_the_largest_is_the_one_that_is_surely_large() -> None:
    """A large difference that may be noise does not hide a smaller one that is not."""
    i, size = largest(np.array([0.5, -0.2, 0.0]), np.array([1.0, 0.01, 0.0]), 0.95)
    reach = stats.norm.isf(0.025 / 2)
    assert (i, size.value) == (1, 0.2)
    assert size.low == pytest.approx(0.2 - 0.01 * reach)
    assert largest(np.array([0.5, -0.2]), np.array([1.0, 1.0]), 0.95)[0] == 0
