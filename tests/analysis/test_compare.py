"""Comparisons: right on made-up data, sharp where runs are paired, silent among equals."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import jaxbio as jb
from jaxbio.analysis import statistics
from jaxbio.analysis.comparison import Comparison, Row

RUNS = 40
Z = 4.5  # a correct estimate is farther off than this with probability 7e-6


def worlds(seed: int, runs: int = RUNS) -> np.ndarray:
    """Regret that all learners have in common, far larger than what they differ by."""
    return np.random.default_rng(seed).normal(100, 30, runs)


def learners(seed: int, **means: float) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([seed, 1])
    return {name: worlds(seed) + mean + rng.normal(0, 1, RUNS) for name, mean in means.items()}


def test_rows_are_ranked_and_say_what_the_runs_say() -> None:
    given = learners(0, far=9, best=0, near=3)
    found = jb.compare(given)
    assert [row.name for row in found.rows] == ["best", "near", "far"]
    assert (found.winner, found.best, found.contenders) == ("best", "best", ("best",))
    for row in found.rows:
        own, difference = given[row.name], given[row.name] - given["best"]
        assert row.mean == own.mean()
        assert row.low < row.mean < row.high
        assert row.behind == pytest.approx(difference.mean())
        spans = {(row.low, row.high): (own, 0.95)}
        if row.name != "best":  # three pairs share 5 %
            spans[row.behind_low, row.behind_high] = (difference, 1 - 0.05 / 3)
        for span, (values, confidence) in spans.items():
            student: Any = scipy.stats.ttest_1samp(values, 0)
            assert span == pytest.approx(tuple(student.confidence_interval(confidence)))
    assert found.rows[0].p is None
    lower = np.stack(list(given.values())).argmin(axis=0)
    assert found["near"].runs_won == pytest.approx((lower == 2).mean())


def test_p_values_by_hand() -> None:
    """Three learners: a one-sided p-value counts twice, as there are two rivals that could give it,
    and Holm's method is over the three. The rival that says most need not be the best one.
    """
    noise = np.random.default_rng(0).normal(0, 1, RUNS)
    given = {"loud": worlds(0) + 9 * noise, "quiet": worlds(0), "last": worlds(0) + 0.2}
    given["loud"] -= given["loud"].mean() - given["quiet"].mean() + 0.5
    given["last"] += 0.1 * np.roll(noise, 1)
    found = jb.compare(given)
    assert [row.name for row in found.rows] == ["loud", "quiet", "last"]

    def worse(name: str, rival: str) -> float:
        tested: Any = scipy.stats.ttest_rel(given[name], given[rival], alternative="greater")
        return float(tested.pvalue)

    assert worse("last", "quiet") < 1e-9 < 0.1 < worse("last", "loud")
    assert found["last"].p == pytest.approx(3 * 2 * worse("last", "quiet"), rel=1e-9)
    assert found["quiet"].p == pytest.approx(min(1.0, 2 * 2 * worse("quiet", "loud")), rel=1e-9)
    assert found.contenders == ("loud", "quiet")


def test_holm_by_hand() -> None:
    """One-sample p-values of 0.01, 0.04 and 0.03, times 3, 1 and 2, never falling."""
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_pairing_sees_what_independent_runs_cannot() -> None:
    """The learners differ by 1, worlds by 30."""
    given = learners(0, best=0, near=1)
    assert jb.compare(given).winner == "best"
    apart = jb.compare(given, paired=False)
    assert apart.winner is None
    assert apart["near"].p == pytest.approx(
        scipy.stats.ttest_ind(given["near"], given["best"], equal_var=False).pvalue  # type: ignore
    )
    assert apart["near"].behind_high - apart["near"].behind_low > 10


def test_independent_runs_may_differ_in_number() -> None:
    given = {"good": worlds(0), "bad": worlds(1, 3 * RUNS) + 60}
    found = jb.compare(given, paired=False)
    assert (found.winner, found.runs) == ("good", RUNS)
    error = 30 * np.sqrt(1 / RUNS + 1 / (3 * RUNS))
    low, high = found["bad"].behind_low, found["bad"].behind_high
    assert low < found["bad"].behind < high
    assert 0.5 < (high - low) / (2 * 1.96 * error) < 1.5
    near = given | {"bad": 2 * given["bad"] - given["bad"].mean() - 70}  # twice the spread
    welch: Any = scipy.stats.ttest_ind(near["bad"], near["good"], equal_var=False)
    (p,) = (row.p for row in jb.compare(near, paired=False).rows if row.p is not None)
    assert p == pytest.approx(welch.pvalue)
    with pytest.raises(ValueError, match="equally many runs"):
        jb.compare(given)


@pytest.mark.parametrize("paired", [True, False])
def test_probability_of_being_best_has_a_closed_form(paired: bool) -> None:
    """Means of resampled runs are normal: Phi(difference / standard error), 0.92 and 0.66 here.

    9,999 resamples: 4.5 standard errors are 0.018. The skew of normal samples of 400 adds 0.002.
    """
    rng = np.random.default_rng(3)
    common = rng.normal(0, 1, 400)
    one, other = common + rng.normal(0, 0.3, 400), common + rng.normal(0, 0.3, 400)
    other += 0.03 - (other - one).mean()
    spread = (one - other).std() if paired else np.hypot(one.std(), other.std())
    expected = scipy.stats.norm.cdf((other.mean() - one.mean()) / (spread / np.sqrt(400)))
    found = jb.compare({"other": other, "one": one}, paired=paired)
    assert found["one"].probability_best == pytest.approx(expected, abs=0.02)
    assert expected == pytest.approx(0.92 if paired else 0.66, abs=0.03)
    assert sum(row.probability_best for row in found.rows) == pytest.approx(1)


def test_probability_of_being_best_by_enumeration() -> None:
    """All 27 resamples of three runs, ties shared out; within 4.5 standard errors."""
    values = np.array([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0], [0.0, 1.0, 5.0]])  # [runs, learners]
    every = [values[list(draw)].mean(axis=0) for draw in itertools.product(range(3), repeat=3)]
    expected = statistics.share_of_least(np.array(every))
    found = jb.compare(dict(zip("abc", values.T, strict=True)), resamples=20_000)
    for name, share in zip("abc", expected, strict=True):
        error = np.sqrt(share * (1 - share) / 20_000)
        assert abs(found[name].probability_best - share) < Z * error, name
    assert len(set(np.round(expected, 3))) == 3


def test_equal_learners_are_too_close_to_call() -> None:
    own = worlds(0)
    found = jb.compare({"a": own, "b": own.copy(), "c": own + 5})
    assert found.winner is None
    assert found.contenders == ("a", "b")
    assert [row.probability_best for row in found.rows] == [0.5, 0.5, 0.0]
    assert [row.runs_won for row in found.rows] == [0.5, 0.5, 0.0]
    assert (found["c"].behind_low, found["c"].behind_high) == pytest.approx((5, 5))
    assert "too close to call between a, b" in str(found)
    assert jb.compare({"a": own[:1], "b": own[:1] + 9}).winner is None  # one run says nothing


def test_few_runs_that_agree_prove_little() -> None:
    """Margins that are all the same have no variance; their signs are what is left."""
    own = worlds(0)
    for runs, p in ((2, 0.5), (5, 2.0**-4), (12, 2.0**-11)):
        assert statistics.of_margin(np.full(runs, 3.0)).two_sided() == p
        assert statistics.of_margin(np.full(runs, -3.0)).below() == 1 - p / 2
        found = jb.compare({"a": own[:runs], "b": own[:runs] + 9})
        assert found.winner == ("a" if p < 0.05 else None)
    assert statistics.of_margin(np.zeros(12)).two_sided() == 1
    for one, other, p in ((0, 1, 1 / 3), (1, 0, 1 / 3), (1, 1, 1)):
        found = statistics.of_difference(np.full(2, float(one)), np.full(2, float(other)))
        assert found.two_sided() == pytest.approx(p)
    many = statistics.of_difference(np.zeros(6), np.ones(6))
    assert many.two_sided() == pytest.approx(2 / 924)


@pytest.mark.parametrize("paired", [True, False])
def test_winners_among_equals_are_rare(paired: bool) -> None:
    """At most 5 % of comparisons of two equals, and a third far behind, have a winner.

    400 comparisons: more than 40 would be a surprise of probability 2e-5.
    """
    assert scipy.stats.binom.sf(40, 400, 0.05) < 2e-5
    rng = np.random.default_rng(4)
    named = 0
    for _ in range(400):
        given = {str(i): rng.normal(9 * (i == 0), size=12) for i in range(3)}
        named += jb.compare(given, paired=paired, resamples=1).winner is not None
    assert named <= 40


REGRETS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed": lambda rng, shape: rng.exponential(size=shape),
}


@pytest.mark.parametrize("law", REGRETS)
@pytest.mark.parametrize("count", [3, 10])
def test_equals_stay_contenders(count: int, law: str) -> None:
    """With probability 0.95 all learners that have the least mean are contenders, however many.

    Runs are paired and have much in common. 20 runs, 400 comparisons: more than 38 in which one of
    the equals drops out have a probability of 1e-4. With ten equals it would be 53 if only the
    number of learners were corrected for, and not that the runs choose the best.
    """
    assert scipy.stats.binom.sf(38, 400, 0.05) < 1.2e-4
    rng, dropped = np.random.default_rng([9, count]), 0
    for _ in range(400):
        values = rng.exponential(3, 20) + REGRETS[law](rng, (count, 20))
        found = jb.compare({str(i): own for i, own in enumerate(values)}, resamples=1)
        dropped += len(found.contenders) < count
    assert dropped <= 38


def test_equals_stay_contenders_of_a_whole_grid() -> None:
    """The same at three points together, six of seven learners equal at each: 400 grids. Without a
    correction for the choice of the best it would be 50.
    """
    rng, dropped = np.random.default_rng(10), 0
    names = {"learner": list("abcdefg"), "delay": [1, 2, 3]}
    for _ in range(400):
        regret = rng.normal(size=(7, 3, 12))
        regret[6] += 9
        data = xr.Dataset({"final_regret": (("learner", "delay", "run"), regret)}, names)
        found = jb.compare_points(data, resamples=1)
        dropped += any(len(one.contenders) < 6 for one in found)
    assert dropped <= 38


@pytest.mark.parametrize(("count", "gap", "least"), [(3, 5, 0.9), (10, 8, 0.9), (10, 5, 0.6)])
def test_a_learner_that_is_ahead_wins(count: int, gap: float, least: float) -> None:
    """By so many standard errors of a difference, 20 runs: it is named in 99, 100 and 78 % of
    comparisons. 100 of them: each bound is missed with a probability below 1e-4.
    """
    rng, named = np.random.default_rng([11, count]), 0
    behind = gap * np.sqrt(2 / 20) * (np.arange(count) > 0)
    for _ in range(100):
        values = rng.exponential(3, 20) + rng.normal(behind[:, None], size=(count, 20))
        found = jb.compare({str(i): own for i, own in enumerate(values)}, resamples=1)
        named += found.winner == "0"
    assert named >= 100 * least


@pytest.mark.parametrize("runs", [2, 8, 20])
def test_intervals_cover_as_often_as_they_say(runs: int) -> None:
    """1,000 intervals of 95 % of normal means cover: fewer than 922 hits have a probability below
    1e-4. (A bootstrap of 8 runs has 865.)
    """
    assert scipy.stats.binom.cdf(921, 1_000, 0.95) < 1e-4
    rng, hits = np.random.default_rng([12, runs]), 0
    for _ in range(500):
        given = {"a": rng.normal(3, 2, runs), "b": rng.normal(3, 1, runs)}
        rows = jb.compare(given, resamples=1).rows
        hits += sum(row.low <= 3 <= row.high for row in rows)
    assert hits >= 922


@pytest.mark.parametrize("paired", [True, False])
def test_intervals_of_what_is_behind_cover_together(paired: bool) -> None:
    """Four equals: all three intervals hold the true difference, 0, in 95 % of comparisons,
    although the runs choose the best. 500 comparisons: fewer than 455 have a probability of 1e-4.
    """
    assert scipy.stats.binom.cdf(454, 500, 0.95) < 1.2e-4
    rng, hits = np.random.default_rng(5), 0
    for _ in range(500):
        values = rng.normal(0, 2, 10) * paired + rng.normal(size=(4, 10))
        rows = jb.compare(dict(zip("abcd", values, strict=True)), paired=paired, resamples=1).rows
        hits += all(row.behind_low <= 0 <= row.behind_high for row in rows)
    assert hits >= 455


def test_intervals_are_those_of_student_and_welch() -> None:
    rng = np.random.default_rng(8)
    for runs in (2, 5, 3_000):
        one, other = rng.exponential(size=runs), rng.normal(size=2 * runs)
        student: Any = scipy.stats.ttest_1samp(one, 0.5)
        welch: Any = scipy.stats.ttest_ind(one, other, equal_var=False)
        alone, apart = statistics.of_margin(one), statistics.of_difference(one, other)
        for ours, theirs in ((alone, student), (apart, welch)):
            expected = tuple(theirs.confidence_interval(0.95))
            assert ours.interval() == pytest.approx(expected, rel=1e-9)
        assert statistics.of_margin(one - 0.5).two_sided() == pytest.approx(student.pvalue)
        assert apart.two_sided() == pytest.approx(welch.pvalue)


def test_one_run_has_no_interval() -> None:
    found = jb.compare({"a": [1.0], "b": [5.0]})
    assert np.isnan([found["b"].low, found["b"].high, found["b"].behind_low]).all()
    assert str(found).splitlines()[2].split()[1:5] == ["5.0", "unknown", "4.0", "unknown"]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["rows"][1]["low"] is None


def test_a_winner_is_named_up_to_the_level() -> None:
    row = Row("a", *[0.0] * 6, p=None, probability_best=1.0, runs_won=1.0)
    for p, winner in ((0.03, "a"), (0.05, "a"), (0.06, None)):
        other = dataclasses.replace(row, name="b", p=p)
        assert Comparison((row, other), 9, True, 0.05).winner == winner


def test_the_mean_decides_the_order_not_the_median() -> None:
    given = {"often": np.array([0.0] * 39 + [400.0]), "always": np.full(40, 5.0)}
    found = jb.compare(given)
    assert [(row.name, row.behind) for row in found.rows] == [("always", 0), ("often", 5)]


@pytest.mark.parametrize("paired", [True, False])
def test_resampled_means_are_means(paired: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every resample, in pieces of 3: a sample that does not vary keeps its mean."""
    monkeypatch.setattr(statistics, "CHUNK", 21)
    samples = [np.full(7, 3.0), np.arange(7.0)]
    found = statistics.resampled_means(samples, paired, 50, 0)
    assert found.shape == (50, 2)
    np.testing.assert_allclose(found[:, 0], 3)
    assert len(np.unique(found[:, 1])) > 10


def test_the_seed_decides_the_resamples() -> None:
    given = learners(0, a=0, b=0.1)
    assert jb.compare(given, seed=1) == jb.compare(given, seed=1)
    assert jb.compare(given, seed=1) != jb.compare(given, seed=2)


# --- sweeps


def grid(paired: bool = True) -> xr.Dataset:
    """Two learners at four points; the first is better by 3 at delay 10, equal at delay 20."""
    rng = np.random.default_rng(7)
    noise = rng.normal(0, 1, (2, 2, 2, RUNS))
    regret = worlds(7) + noise
    regret[1, 0] += 3
    dims = ("learner", "delay", "states", "run")
    names = {"learner": ["good", "bad"], "delay": [10, 20], "states": [4, 8]}
    return xr.Dataset({"final_regret": (dims, regret)}, names, {"paired": str(paired)})


def test_a_sweep_is_compared_at_a_point() -> None:
    data = grid()
    found = jb.compare(data, at={"delay": 10, "states": 8})
    cell = data.final_regret.sel(delay=10, states=8)
    alone = jb.compare({name: cell.sel(learner=name).values for name in ("good", "bad")})
    assert found.rows == alone.rows
    assert found.point == {"delay": 10, "states": 8}
    assert str(found).startswith("delay 10, states 8\n")
    only = data.isel(states=[0])
    assert jb.compare(only, at={"delay": 10}).point == {"delay": 10, "states": 4}


def test_points_share_one_correction() -> None:
    data = grid()
    found = jb.compare_points(data)
    assert [c.point for c in found] == [{"delay": d, "states": s} for d in (10, 20) for s in (4, 8)]
    assert [c.winner for c in found] == ["good", "good", None, None]
    alone = [jb.compare(data, at=c.point).rows[1].p for c in found]
    halves = [1.0] * 4 + [p / 2 for p in alone if p is not None]  # the first of a point is at 1
    assert [c.rows[1].p for c in found] == pytest.approx(statistics.holm(halves)[4:])
    few = jb.compare_points(data, at={"delay": 10})
    assert len(few) == 2
    assert few[0].rows[1].p < found[0].rows[1].p  # type: ignore[operator]


def test_a_sweep_knows_whether_it_is_paired() -> None:
    at = {"delay": 10, "states": 4}
    assert jb.compare(grid(), at=at).paired
    assert not jb.compare(grid(), at=at, paired=False).paired
    assert not jb.compare(grid(paired=False), at=at).paired
    with pytest.raises(ValueError, match="paired=False"):
        jb.compare(grid(paired=False), at=at, paired=True)


# --- what is printed, and what is refused


def test_the_table_has_a_line_for_each_learner() -> None:
    found = jb.compare(learners(0, best=0, near=3))
    head, first, second, last = str(found).splitlines()
    assert len(head) == len(first) == len(second)
    assert first.startswith("best")
    assert f"{found['near'].behind:,.1f}" in second
    assert last == "best has the least mean regret (40 paired runs, level 0.05)"
    assert json.loads(json.dumps(found.to_dict()))["rows"][1]["p"] == found["near"].p


@pytest.mark.parametrize(
    ("results", "options", "message"),
    [
        ({"a": [1.0, 2.0]}, {}, "at least 2 learners"),
        ({"a": [1.0], "b": [np.nan]}, {}, "results\\['b'\\].*NaN"),
        ({"a": [1.0], "b": [[1.0]]}, {}, "shape \\[runs\\]"),
        ({"a": [1.0], "b": [2.0]}, {"level": 0}, "level must be"),
        ({"a": [1.0], "b": [2.0]}, {"at": {"delay": 1}}, "results are a mapping"),
        ([1.0, 2.0], {}, "but got list"),
        (xr.Dataset(), {}, "no final_regret"),
        (grid(), {}, "4 points \\(delay, states\\)"),
        (grid(), {"at": {"dealy": 10}}, "'dealy'"),
        (grid(), {"at": {"delay": 11}}, "at\\['delay'\\] must be one of 10, 20, but got 11"),
    ],
)
def test_bad_input_is_named(results: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        jb.compare(results, **options)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-90, 1.0, 1e100, 1e200])
def test_any_unit_of_regret_gives_the_same_comparison(unit: float, paired: bool) -> None:
    """Squares of such numbers are 0 or infinite."""
    samples = {"a": np.array([0.0, 1.0, 0.5, 2.0]), "b": np.array([3.0, 5.0, 4.0, 7.5])}
    usual = jb.compare(samples, paired=paired)
    found = jb.compare({name: unit * row for name, row in samples.items()}, paired=paired)
    assert [row.name for row in found.rows] == ["a", "b"]
    for one, other in zip(found.rows, usual.rows, strict=True):
        ends = ("low", "high", "behind_low", "behind_high")
        expected = [unit * getattr(other, end) for end in ends]
        np.testing.assert_allclose([getattr(one, end) for end in ends], expected, rtol=1e-6)
        assert one.p == other.p or one.p == pytest.approx(other.p)


def test_names_that_are_the_same_text_are_refused() -> None:
    with pytest.raises(ValueError, match="results must have names that differ as text"):
        jb.compare({1: [1.0, 2.0], "1": [2.0, 3.0], "b": [5.0, 5.0]})  # type: ignore
