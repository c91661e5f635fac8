"""From regret to tables: how far behind the best, in % of what guessing costs, and how sure.

A ratio of regrets has no meaning where regret may be negative, as it may be where mappings or
losses change. So a learner is measured by the regret that it has more than the best one, as a share
of what guessing costs. The best one, and what guessing costs, are those of the training, so that
the runs that judge choose nothing and set no scale: intervals of means over runs are exact but for
Student's law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from jaxbio.analysis.compare import compare_points
from jaxbio.analysis.intervals import of_mean
from jaxbio.analysis.statistics import CONFIDENCE, LEVEL, holm, student_reach

LEAST = 1.0  # of a scale: a round's loss, where guessing costs nothing


class Yardstick(NamedTuple):
    """Of each problem, by the training. best: the number of the learner with the least regret, at
    its best setting; regret: that of it; scale: what 100 % is. [problems] each.

    The scale is what guessing costs beyond the best action of the whole horizon, or, where regret
    is negative, beyond the best learner.
    """

    best: np.ndarray
    regret: np.ndarray
    scale: np.ndarray


def yardstick(training: Mapping[str, np.ndarray], guessing: np.ndarray) -> Yardstick:
    """training: label -> mean regret [problem, setting]; guessing: that of it [problem]."""
    least = np.stack([own.min(axis=1) for own in training.values()])  # [learner, problem]
    regret = least.min(axis=0)
    scale = np.maximum(guessing - np.minimum(regret, 0), LEAST)
    return Yardstick(least.argmin(axis=0), regret, scale)


def by_class(values: np.ndarray, classes: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """Means over the problems of each class. values: [..., problem]; returns [..., class]."""
    of = np.asarray(classes)
    return np.stack([values[..., of == name].mean(axis=-1) for name in names], axis=-1)


def fixed_settings(
    training: Mapping[str, np.ndarray], measure: Yardstick, classes: Sequence[str]
) -> dict[str, int]:
    """label -> the setting that, kept for all problems, is least behind in its worst class."""
    names = list(dict.fromkeys(classes))
    behind = {label: (own - measure.regret[:, None]) / measure.scale[:, None]
              for label, own in training.items()}  # fmt: skip
    worst = {label: by_class(own.T, classes, names).max(axis=-1) for label, own in behind.items()}
    return {label: int(own.argmin()) for label, own in worst.items()}


def scores(
    finals: xr.DataArray, measure: Yardstick, classes: Sequence[str], reference: str
) -> xr.DataArray:
    """[form, learner, class, run]: how far behind the best learner of each problem, in its form
    called `reference`, in the same run; means over the problems of a class.

    finals: [form, learner, problem, run].
    """
    names = list(dict.fromkeys(classes))
    finals = finals.transpose("form", "learner", "run", "problem")
    best = _of_the_best(finals, measure, reference)
    values = by_class((finals.values - best) / measure.scale, classes, names)
    coords = {"form": finals.form, "learner": finals.learner, "class": names}
    dims = ("form", "learner", "run", "class")
    return xr.DataArray(values, coords, dims).transpose("form", "learner", "class", "run")


def _of_the_best(finals: xr.DataArray, measure: Yardstick, reference: str) -> np.ndarray:
    """[run, problem]: final regret of the best learner of each problem. finals: [form, learner,
    run, problem].
    """
    places = np.arange(finals.sizes["problem"])
    return finals.sel(form=reference).values[measure.best, :, places].T


def behind(scored: xr.DataArray) -> dict[str, xr.DataArray]:
    """behind, behind_low, behind_high [form, learner, class], Student's intervals of 95 %; best,
    whether it may be the best of its form in this class, `compare_points` over all classes.
    """
    cells = scored.isel(run=0, drop=True)
    names = ("behind", "behind_low", "behind_high")
    found = {name: cells.copy(data=one)
             for name, one in zip(names, of_mean(scored.values), strict=True)}  # fmt: skip
    best = cells.copy(data=np.zeros(cells.shape, bool))
    for form in scored.form.values:
        data = scored.sel(form=form, drop=True).to_dataset(name="final_regret")
        for one in compare_points(data, resamples=1):
            place = {"form": form, "learner": list(one.contenders), "class": one.point["class"]}
            best.loc[place] = True
    return found | {"may_be_best": best}


def ratios(
    finals: xr.DataArray, measure: Yardstick, classes: Sequence[str], reference: str
) -> dict[str, xr.DataArray]:
    """ratio, ratio_low, ratio_high [form, learner, class]: the geometric mean over a class's
    problems of regret relative to the same best learners'. NaN where a mean regret is not above 0.
    """
    names = list(dict.fromkeys(classes))
    finals = finals.transpose("form", "learner", "run", "problem")
    best = _of_the_best(finals, measure, reference)
    means = [np.where(one.mean(axis=-2) > 0, one.mean(axis=-2), np.nan)
             for one in (finals.values, best)]  # fmt: skip
    relative = finals.values / means[0][..., None, :] - best / means[1]
    reach = student_reach(np.moveaxis(by_class(relative, classes, names), -2, -1))
    logs = by_class(np.log(means[0] / means[1]), classes, names)
    coords = {"form": finals.form, "learner": finals.learner, "class": names}
    values = {"ratio": logs, "ratio_low": logs - reach, "ratio_high": logs + reach}
    return {name: xr.DataArray(np.exp(one), coords, ("form", "learner", "class"))
            for name, one in values.items()}  # fmt: skip


def robustness(scored: xr.DataArray) -> dict[str, xr.DataArray]:
    """worst, worst_low, worst_high, worst_class, may_be_robust [form, learner].

    worst: how far behind in the class in which that is most. Its interval goes from the largest
    lower to the largest upper end of intervals of all classes that hold together, with 95 %.
    """
    values = scored.transpose("form", "learner", "class", "run").values
    mean = values.mean(axis=-1)
    reach = student_reach(values, 1 - (1 - CONFIDENCE) / values.shape[-2])
    names = scored["class"].values[mean.argmax(axis=-1)]
    found = {
        "worst": mean.max(axis=-1),
        "worst_low": (mean - reach).max(axis=-1),
        "worst_high": (mean + reach).max(axis=-1),
        "worst_class": names,
        "may_be_robust": np.stack([most_robust(one) for one in values]),
    }
    coords = {"form": scored.form, "learner": scored.learner}
    return {name: xr.DataArray(one, coords, ("form", "learner")) for name, one in found.items()}


def most_robust(values: np.ndarray, level: float = LEVEL) -> np.ndarray:
    """Which learners may have the least true worst mean? bool [learner]; all that do have it are
    among them with a probability of at least 1 - level.

    A learner has a larger worst mean than a rival if in some class it is worse than the rival is in
    any. So its p-value against a rival is the least over its classes (Bonferroni) of the largest
    over the rival's; then as in `compare`: the least over its rivals (Bonferroni), and Holm over
    learners. values: [learner, class, run].
    """
    learners, classes, runs = values.shape
    flat = values.reshape(learners * classes, runs)
    p = larger(flat).reshape(learners, classes, learners, classes)
    against = np.minimum(1, classes * p.max(axis=3).min(axis=1))  # [learner, rival]
    np.fill_diagonal(against, 1)
    own = np.minimum(1, (learners - 1) * against.min(axis=1))
    return np.array(holm(own.tolist())) > level


def larger(values: np.ndarray) -> np.ndarray:
    """[rows, rows]: one-sided p-values of Student's paired test that the mean of the first is not
    larger than that of the second. values: [rows, runs].
    """
    from scipy import special  # takes half a second to import

    runs = values.shape[1]
    mean, cov = values.mean(axis=1), np.atleast_2d(np.cov(values))
    own = np.diag(cov)
    spread = np.maximum(own[:, None] + own[None] - 2 * cov, 0)
    # What rounding leaves of a difference that never varies.
    spread[spread <= 1e-12 * (own[:, None] + own[None])] = 0
    margin = mean[:, None] - mean[None]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(margin == 0, 0, margin / np.sqrt(spread / runs))
    return special.stdtr(runs - 1, -t)


def worth(
    scored: xr.DataArray,
    ratio: xr.DataArray,
    training: xr.DataArray,
    with_states: Mapping[str, bool],
) -> xr.Dataset | None:
    """What states save: the best learner that looks at them against the best that does not, both
    chosen by the training. None where all do or none does.

    scored: [form, learner, class, run]; ratio: [form, learner, class]; training: how far behind in
    the training [form, learner, class]. Returns with_states, without, saved, saved_low and
    saved_high [form, class], in shares of what guessing costs; and saved_ratio, the ratio of their
    geometric means.
    """
    groups = [[label for label in map(str, scored.learner.values) if with_states[label] == looks]
              for looks in (True, False)]  # fmt: skip
    if not all(groups):
        return None
    rows = [
        _best_of(groups, scored.sel(place), ratio.sel(place), training.sel(place))
        for place in _places(scored)
    ]
    names = ("with_states", "without", "saved", "saved_low", "saved_high", "saved_ratio")
    shape = (scored.sizes["form"], scored.sizes["class"])
    coords = {"form": scored.form, "class": scored["class"]}
    columns = zip(*rows, strict=True)
    return xr.Dataset(
        {name: (("form", "class"), np.reshape(own, shape))
         for name, own in zip(names, columns, strict=True)},
        coords,
    )  # fmt: skip


def _places(scored: xr.DataArray) -> list[dict[str, str]]:
    return [{"form": form, "class": name}
            for form in scored.form.values for name in scored["class"].values]  # fmt: skip


def _best_of(
    groups: list[list[str]], scored: xr.DataArray, ratio: xr.DataArray, training: xr.DataArray
) -> tuple[str, str, float, float, float, float]:
    """All of one form and class."""
    both = [min(group, key=lambda label: float(training.sel(learner=label))) for group in groups]
    with_states, without = (scored.sel(learner=label).values for label in both)
    mean, low, high = of_mean(without - with_states)
    one, other = (float(ratio.sel(learner=label)) for label in both)
    return both[0], both[1], float(mean), float(low), float(high), one / other
