"""Which learner is best, and how sure are we? Final regrets, ranked and tested."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.analysis.comparison import Comparison, Row
from jaxbio.analysis.statistics import (
    CONFIDENCE,
    LEVEL,
    RESAMPLES,
    Estimate,
    holm,
    of_difference,
    of_margin,
    resampled_means,
    share_of_least,
)
from jaxbio.sweeps.result import Result


def compare(
    results: Any,
    *,
    at: Mapping[str, Any] | None = None,
    paired: bool | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Rank learners by mean final regret, and say how sure the ranking is.

    Args:
      results: name -> Result, name -> final regrets [runs], or the Dataset of a sweep.
      at: axis -> value, the point of the sweep's grid. Axes of one value need not be named.
      paired: run i of every learner was played in the same world (the same seed), so differences
        are taken run by run. By default as the sweep was; True for a mapping.
      level: the probability, at most, that a learner with the least true mean (any of them, where
        several tie) is not among the contenders; so also that the winner is a wrong one.
      resamples, seed: of the bootstrap behind `probability_best`.
    Returns:
      A Comparison; print it for a table.
    """
    at = {} if at is None else checks.mapping("at", at, "axes to values")
    found = _points(results, at, paired)
    if not found:
        raise ValueError("results must have a point to compare learners at, but the sweep has none")
    if len(found) > 1:
        axes = ", ".join(name for name in found[0].point if name not in at)
        raise ValueError(
            f"the sweep has {len(found)} points ({axes}): choose one with at=..., "
            "or compare all with compare_points"
        )
    return _compared(found, level, resamples, seed)[0]


def compare_points(
    data: xr.Dataset,
    *,
    at: Mapping[str, Any] | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Comparison]:
    """A comparison at every point of a sweep's grid (or of what `at` leaves of it).

    p-values are adjusted for all of them together, so that `level` is the probability, at most,
    that at any point a learner with the least true mean is not among the contenders.
    """
    if not isinstance(data, xr.Dataset):
        raise TypeError(f"data must be the Dataset of a sweep, but got {type(data).__name__}")
    at = {} if at is None else checks.mapping("at", at, "axes to values")
    return _compared(_points(data, at, None), level, resamples, seed)


class _Point(NamedTuple):
    """What is compared: name -> final regrets [runs] at a point of a grid."""

    point: dict[str, Any]
    samples: dict[str, np.ndarray]
    paired: bool


def _points(results: Any, at: dict[str, Any], paired: bool | None) -> list[_Point]:
    if paired is not None:
        checks.boolean("paired", paired)
    if isinstance(results, xr.Dataset):
        together = _pairing(results, paired)
        return [
            _Point(point, _checked(samples, together), together)
            for point, samples in _of_grid(results, at)
        ]
    if not isinstance(results, Mapping):
        raise TypeError(
            "results must map names to Results or arrays [runs], or be the Dataset of a sweep, "
            f"but got {type(results).__name__}"
        )
    if at:
        raise ValueError(f"at={at!r} chooses a point of a sweep, but results are a mapping")
    together = True if paired is None else paired
    finals = {
        name: result.final_regret if isinstance(result, Result) else result
        for name, result in results.items()
    }
    return [_Point({}, _checked(finals, together), together)]


def _pairing(data: xr.Dataset, paired: bool | None) -> bool:
    own = str(data.attrs.get("paired", True)) == "True"
    if paired and not own:
        raise ValueError("paired=True, but the sweep was played with paired=False")
    return own if paired is None else paired


def _of_grid(
    data: xr.Dataset, at: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], dict[str, np.ndarray]]]:
    if "final_regret" not in data or "learner" not in data.final_regret.dims:
        raise ValueError("the data must be the Dataset of a sweep, but it has no final_regret")
    final = data.final_regret.transpose("learner", ..., "run")
    axes = [str(dim) for dim in final.dims[1:-1]]
    for name, value in at.items():
        known = final[checks.choice("an axis in at", name, axes)].values.tolist()
        checks.choice(f"at[{name!r}]", value, known)
    chosen = {name: [at[name]] if name in at else final[name].values.tolist() for name in axes}
    for values in itertools.product(*chosen.values()):
        point = dict(zip(axes, values, strict=True))
        cell = final.sel(point)
        yield point, dict(zip(cell.learner.values.tolist(), cell.values, strict=True))


def _checked(samples: Mapping[Any, Any], paired: bool) -> dict[str, np.ndarray]:
    if len(samples) < 2:
        raise ValueError(f"results must have at least 2 learners, but got {list(samples)}")
    checked = {
        str(name): checks.array(f"results[{name!r}]", values, 1, "[runs]")
        for name, values in samples.items()
    }
    if len(checked) < len(samples):
        raise ValueError(
            f"results must have names that differ as text, but got {checks.shown(list(samples))}"
        )
    lengths = {name: len(values) for name, values in checked.items()}
    if paired and len(set(lengths.values())) > 1:
        raise ValueError(
            f"paired results must have equally many runs, but they have {lengths}: "
            "play the same runs, or pass paired=False"
        )
    return checked


class _Tested(NamedTuple):
    """A point on the way: samples in the order of their means; behind: how far each is behind the
    first; p_values: of having the least true mean, each for itself, adjusted for its rivals.
    """

    point: _Point
    samples: dict[str, np.ndarray]
    behind: list[Estimate]
    p_values: list[float]


def _compared(points: list[_Point], level: Any, resamples: Any, seed: Any) -> list[Comparison]:
    level = checks.probability_of_error("level", level)
    resamples = checks.size("resamples", resamples, 1)
    seed = checks.size("seed", seed, 0, 2**64 - 1)
    tested = [_tested(point) for point in points]
    adjusted = iter(holm([p for one in tested for p in one.p_values]))
    return [
        Comparison(
            _rows(one, [next(adjusted) for _ in one.p_values], resamples, seed),
            min(len(values) for values in one.samples.values()),
            one.point.paired,
            level,
            one.point.point,
        )
        for one in tested
    ]


def _tested(point: _Point) -> _Tested:
    """The hypothesis of a learner is that it has the least true mean. Each of its rivals may show
    that it has not, by a one-sided test: Bonferroni's correction over the rivals makes one p-value
    of these, Holm's (by the caller) is over the hypotheses of the learners. So the probability that
    any true one is rejected is bounded, however many are true, whatever the dependence between
    tests, and although it is the runs that say which rival looks best.
    """
    samples = dict(sorted(point.samples.items(), key=lambda item: item[1].mean()))
    values, rivals = list(samples.values()), len(samples) - 1
    behind, p_values = [], [1.0]  # that with the least mean has no rival that looks better
    for i, own in enumerate(values[1:], 1):
        found = [_difference(own, rival, point.paired) for rival in values[:i]]
        behind.append(found[0])
        p_values.append(min(1.0, rivals * min(one.below() for one in found)))
    return _Tested(point, samples, behind, p_values)


def _difference(own: np.ndarray, rival: np.ndarray, paired: bool) -> Estimate:
    return of_margin(own - rival) if paired else of_difference(own, rival)


def _rows(tested: _Tested, adjusted: Sequence[float], resamples: int, seed: int) -> tuple[Row, ...]:
    """Intervals of what learners are behind are of 95 % for the differences of all pairs together:
    the runs choose the pairs that are shown.
    """
    paired, values = tested.point.paired, list(tested.samples.values())
    probabilities = share_of_least(resampled_means(values, paired, resamples, seed))
    singles = np.stack(values, axis=1) if paired else _drawn(values, resamples, seed)
    won = share_of_least(singles)
    together = 1 - (1 - CONFIDENCE) / math.comb(len(values), 2)
    rows = []
    for i, (name, own) in enumerate(tested.samples.items()):
        behind = None if i == 0 else tested.behind[i - 1]
        rows.append(
            Row(
                name,
                float(own.mean()),
                *of_margin(own).interval(),
                0.0 if behind is None else behind.mean,
                *((0.0, 0.0) if behind is None else behind.interval(together)),
                None if behind is None else adjusted[i],
                float(probabilities[i]),
                float(won[i]),
            )
        )
    return tuple(rows)


def _drawn(values: list[np.ndarray], count: int, seed: int) -> np.ndarray:
    """[count, learners]: a run of each, drawn at random where runs do not belong together."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.choice(own, count) for own in values], axis=1)
