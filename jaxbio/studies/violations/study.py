"""When not to trust states: every learner that looks at them against its counterpart that does not.

A violation of what it counts on grows from none to full strength. Both play in the same worlds and
have the same numbers. The counterpart is a bandit that one would run without states, or the same
learner, blind: shown its own action in place of the state, so that states are all that differs. The
difference in regret is told as a share of what guessing costs while nothing is violated: a ratio
has no meaning where regret may be negative, as it may be where losses or mappings change.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.analysis.intervals import of_mean
from jaxbio.analysis.statistics import ratio_of_means
from jaxbio.environment.environment import MAX_HORIZON, Environment
from jaxbio.learners.registry import make_learner
from jaxbio.storage.store import part
from jaxbio.studies.contestants import uniform_play
from jaxbio.studies.violations.problems import KINDS, guessing
from jaxbio.studies.violations.views import Blind, Coarse
from jaxbio.sweeps.sweep import sweep

STRENGTHS = tuple(round(0.1 * i, 1) for i in range(11))
MEMORY = 0.999  # the discount of those that forget: rounds count for about a thousand rounds
DELTA = 0.1
REGRET = ("regret_mean", "mean_low", "mean_high")
DIFFERENCE = ("difference", "difference_low", "difference_high")
RATIO = ("ratio", "ratio_low", "ratio_high")
REACHES = ("surely_better", "line", "surely_worse")

# label -> name and options of a learner. One base for all that have DAda-Exp3 or are made like it:
# MetaBIO's has half of its delta, MetaAdaBIO's a third.
EVERYBODY: dict[str, tuple[str, dict[str, Any]]] = {
    "MetaBIO": ("metabio", {"delta": DELTA}),
    "MetaBIO-mean": ("metabio-mean", {"delta": DELTA}),
    "Surrogate index": ("metabio-mean", {"delta": DELTA, "threshold": "delay", "delay": 0}),
    "MetaAdaBIO": ("metaadabio", {"delta": 1.5 * DELTA, "rule": "practical"}),
    "HindsightExp3": ("hindsight-exp3", {"delta": DELTA / 2}),
    "HindsightExp3, forgetting": ("hindsight-exp3", {"delta": DELTA / 2, "discount": MEMORY}),
    "Hindsight-Tsallis": ("hindsight-tsallis", {}),
    "StateThompson": ("state-thompson", {}),
    "StateThompson, forgetting": ("state-thompson", {"discount": MEMORY}),
    "NSD-UCRL2": ("nsd-ucrl2", {}),
    "DAda-Exp3": ("dada-exp3", {"delta": DELTA / 2}),
    "Tsallis-INF": ("tsallis-inf", {}),
    "Thompson sampling": ("thompson", {}),
    "UCB1": ("ucb1", {}),
}
COUNTERPARTS = {  # who looks at states -> who does not
    "MetaBIO": "DAda-Exp3",
    "MetaBIO-mean": "DAda-Exp3",
    "Surrogate index": "DAda-Exp3",
    "MetaAdaBIO": "DAda-Exp3",
    "HindsightExp3": "DAda-Exp3",
    "HindsightExp3, forgetting": "DAda-Exp3",
    "Hindsight-Tsallis": "Tsallis-INF",
    "StateThompson": "Thompson sampling",
    "StateThompson, forgetting": "Thompson sampling",
    "NSD-UCRL2": "UCB1",
}
AGAINST = ("bandits", "blind")


def everybody() -> dict[str, Any]:
    """Learners that look at states, and bandits that do not."""
    return {label: make_learner(name, **options) for label, (name, options) in EVERYBODY.items()}


def blind() -> tuple[dict[str, Any], dict[str, str]]:
    """Learners that look at states and the same ones blind; who is whose counterpart."""
    known, labels = everybody(), {label: f"{label}, blind" for label in COUNTERPARTS}
    twins = {twin: Blind(known[label]) for label, twin in labels.items()}
    return {label: known[label] for label in labels} | twins, labels


def violations(
    kinds: Sequence[str] = tuple(KINDS),
    strengths: Sequence[float] = STRENGTHS,
    *,
    against: str = AGAINST[0],
    delay: int = 100,
    horizon: int = 10_000,
    runs: int = 64,
    seed: int = 0,
    learners: Mapping[str, Any] | None = None,
    counterparts: Mapping[str, str] | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Regret with states and without, while what learners count on is violated more and more.

    Args:
      kinds: what is violated: "bypassed" (the action decides the loss, past the state),
        "mislabelled" (the state that is shown is wrong at random), "turning" (what states cost is
        reversed after 40 % of the rounds), "flipping" (that happens again and again, ever faster),
        "clustered" (losses of a state are alike for as long as the delay), "drifting" (the mapping
        changes ever faster).
      strengths: of the violations, from 0 on, at most 1.
      against: "bandits" that have no use for states, such as Thompson sampling for StateThompson,
        or "blind": the same learners, shown their actions in place of states.
      delay, horizon: d and T.
      runs: at each strength, the same for all learners.
      seed: the root seed.
      learners, counterparts: label -> learner, and the label of one that looks at states -> that of
        one of them that does not; in place of those that `against` chooses. Uniform play is always
        there.
      store: a folder for finished parts; the same call goes on where it was interrupted.
      progress: show bars.
    Returns:
      A Dataset with final_regret [kind, learner, strength, run], its mean and interval regret_mean,
      mean_low and mean_high; for each label of counterparts, the dimension `pair`, difference,
      difference_low and difference_high [kind, pair, strength], regret more than that of the
      counterpart in the same runs as a share of `guessing`; ratio, ratio_low and ratio_high, the
      same as a ratio (NaN where a mean is not above 0); and tipping [kind, pair, reach], see
      `tipping_point`. Intervals are of 95 %.
    """
    asked = _kinds(kinds)
    axis = _strengths(strengths)
    horizon = checks.size("horizon", horizon, 2, MAX_HORIZON)
    delay = checks.size("delay", delay, 0, horizon - 1)
    runs = checks.size("runs", runs, 2)  # one has no interval
    checks.choice("against", against, AGAINST)
    usual = (everybody(), COUNTERPARTS) if against == AGAINST[0] else blind()
    known = usual[0] if learners is None else _labelled(learners)
    pairs = _counterparts(usual[1] if counterparts is None else counterparts, known)
    for kind in asked:
        _try(kind, delay, horizon, axis[-1])
    play = partial(
        sweep,
        axes={"strength": axis},
        horizon=horizon,
        runs=runs,
        seed=seed,
        rounds=1,
        keep="finals",
        progress=progress,
    )
    played = [
        play(
            partial(_problem, kind, delay, horizon),
            _shown(known | uniform_play(), KINDS[kind].each),
            store=part(store, kind),
        ).final_regret
        for kind in asked
    ]
    finals = xr.concat(played, "kind").assign_coords(kind=asked)
    about = {"horizon": horizon, "delay": delay, "runs": runs, "seed": str(seed)}
    return compared(finals, pairs, guessing(horizon)).assign_attrs(
        title="jaxbio violations", against=against, **about
    )


def _problem(kind: str, delay: int, horizon: int, strength: float) -> Environment:
    return KINDS[kind].build(strength, delay, horizon)


def _try(kind: str, delay: int, horizon: int, strength: float) -> None:
    """Raise where the strongest problem of a kind is none, before anything is played."""
    try:
        _problem(kind, delay, horizon, strength).check(horizon)
    except ValueError as error:
        error.add_note(
            f"{kind} at strength {strength:g} with delay {delay}: give a longer delay, a shorter "
            "horizon or smaller strengths"
        )
        raise


def _shown(learners: Mapping[str, Any], each: int) -> dict[str, Any]:
    """Learners that see the state alone, where something else is hidden in it."""
    if each == 1:
        return dict(learners)
    return {label: Coarse(learner, each) for label, learner in learners.items()}


# --- the front door


def _kinds(given: Any) -> list[str]:
    found = [checks.choice("kinds", one, tuple(KINDS))
             for one in checks.several("kinds", given, "names")]  # fmt: skip
    if not found or len(set(found)) < len(found):
        raise ValueError(f"kinds must be one or more different names, but got {given!r}")
    return found


def _strengths(given: Any) -> list[float]:
    found = [checks.number("strengths", one, 0, 1)
             for one in checks.several("strengths", given, "numbers")]  # fmt: skip
    if len(found) < 2 or found[0] != 0 or sorted(set(found)) != found:
        raise ValueError(
            "strengths must be two or more increasing numbers, the first one 0 where nothing is "
            f"violated, but got {checks.shown(given)}"
        )
    return found


def _labelled(given: Any) -> dict[str, Any]:
    found = checks.mapping("learners", given, "labels to learners")
    for label, learner in found.items():
        checks.learner(f"learners[{label!r}]", learner)
    if not found:
        raise ValueError("learners must have at least one learner, but it is empty")
    return found


def _counterparts(given: Any, known: Mapping[str, Any]) -> dict[str, str]:
    found = checks.mapping("counterparts", given, "labels to labels")
    for label, other in found.items():
        for one in (label, other):
            checks.choice("a label in counterparts", one, tuple(known))
    if not found:
        raise ValueError("counterparts must have at least one pair of labels, but it is empty")
    return found


# --- what was found


def compared(finals: xr.DataArray, against: Mapping[str, str], guessing: float) -> xr.Dataset:
    """Means, differences and tipping points, as `violations` returns them.

    finals: final regret [kind, learner, strength, run]. guessing: what differences are shares of.
    """
    finals = finals.transpose("kind", "learner", "strength", "run")
    with_states = finals.sel(learner=list(against)).values
    without = finals.sel(learner=list(against.values())).values
    tables = {
        REGRET: ("learner", of_mean(finals.values)),
        DIFFERENCE: ("pair", of_mean((with_states - without) / guessing)),
        RATIO: ("pair", ratio_of_means(with_states, without)),
    }
    data: dict[str, Any] = {"final_regret": finals}
    for names, (who, values) in tables.items():
        data |= {name: (("kind", who, "strength"), one)
                 for name, one in zip(names, values, strict=True)}  # fmt: skip
    strengths = finals.strength.values
    rows = zip(*(data[name][1].reshape(-1, len(strengths)) for name in DIFFERENCE), strict=True)
    tips = [tipping_point(strengths, *row) for row in rows]
    shape = (finals.sizes["kind"], len(against), len(REACHES))
    data["tipping"] = (("kind", "pair", "reach"), np.reshape(tips, shape))
    data["counterpart"] = ("pair", list(against.values()))
    coords = {"pair": list(against), "reach": list(REACHES)}
    return xr.Dataset(data, coords, {"guessing": guessing})


def tipping_point(
    strengths: np.ndarray, mean: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[float, float, float]:
    """The strength from which on a learner with states has more regret than without, and its band.

    surely_better: the last strength up to which all that were played have an interval below 0.
    line: where the mean difference first comes to be above 0, on a straight line from the strength
    before. surely_worse: the first strength whose interval lies above 0. The first and the last
    were played: the band has the noise of the runs and the distance between strengths. NaN: there
    is no such strength.

    mean, low, high: of the difference, [strengths].
    """
    better, above, worse = np.cumprod(high < 0), np.flatnonzero(mean > 0), np.flatnonzero(low > 0)
    last = float(strengths[int(better.sum()) - 1]) if better[0] else np.nan
    first = float(strengths[worse[0]]) if len(worse) else np.nan
    return last, _crossing(strengths, mean, int(above[0])) if len(above) else np.nan, first


def _crossing(x: np.ndarray, y: np.ndarray, above: int) -> float:
    """Where a line from the point before is 0. above: the first point that is above 0."""
    if above == 0:
        return float(x[0])
    before = above - 1
    return float(x[before] - y[before] / (y[above] - y[before]) * (x[above] - x[before]))
