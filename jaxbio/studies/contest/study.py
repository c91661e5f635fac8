"""A fair contest: every learner tuned on training worlds, all judged in the same other worlds.

Every entrant plays in three forms: that of its theorem; tuned on each problem; and with one fixed
setting for all problems, as someone would have to choose it who knows nothing about theirs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.checks import memory
from jaxbio.display.bars import tqdm
from jaxbio.environment.environment import MAX_HORIZON, Environment, check_environment
from jaxbio.storage.store import part
from jaxbio.studies.contest.entrants import SIZES, checked_entrants, guessing, settings_of
from jaxbio.studies.contest.problems import CLASSES, SHORTEST
from jaxbio.studies.contest.scores import (
    Yardstick,
    behind,
    by_class,
    fixed_settings,
    ratios,
    robustness,
    scores,
    worth,
    yardstick,
)
from jaxbio.studies.contestants import UNIFORM
from jaxbio.studies.outputs import named
from jaxbio.studies.practical import Practical, judge, looking, sweeps_of, train_all

TABLES = 20  # numbers of a round, at most, in the tables of a class
FORMS = THEOREM, TUNED, FIXED = "theorem", "tuned", "fixed"


def contest(
    classes: Any = None,
    entrants: Any = None,
    *,
    size: str = "full",
    horizon: int | None = None,
    runs: int | None = None,
    training: int | None = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    client: Any = None,
    progress: bool = True,
) -> xr.Dataset:
    """Tune every learner, and judge all of them in the same worlds, class of problems by class.

    Args:
      classes: names of `CLASSES`, or label -> (label -> Environment) for problems of your own.
      entrants: names of `ENTRANTS`, or label -> `Practical` or learner for learners of your own.
      size: "full", or "small", which takes two minutes: what is played where nothing else is given.
      horizon: T. runs: of each learner on each problem, to judge it. training: to tune it, of each
        setting, in other worlds.
      seed: the root seed.
      store: a folder for finished parts; the same call goes on where it was interrupted.
      client: a `distributed.Client`: its cluster plays.
      progress: say what will be played, and show a bar.
    Returns:
      A Dataset with final_regret [form, learner, problem, run], setting [form, learner, problem] in
      words, and per class of problems: behind, behind_low and behind_high [form, learner, class],
      how much more regret than the best learner, as a share of what guessing costs; may_be_best,
      False where another learner is surely better; ratio, ratio_low and ratio_high, regret relative
      to the best as a geometric mean (NaN where a mean is not above 0). Over all classes: worst,
      worst_low, worst_high, worst_class and may_be_robust [form, learner]. What states are worth:
      with_states, without, saved, saved_low, saved_high and saved_ratio [form, class] (only where
      some entrants look at states and others do not). Intervals are of 95 %, levels 5 %.
    """
    usual = SIZES[checks.choice("size", size, tuple(SIZES))]
    horizon = checks.size("horizon", usual.horizon if horizon is None else horizon, 2, MAX_HORIZON)
    runs = checks.size("runs", usual.runs if runs is None else runs, 2)  # one has no interval
    training = checks.size("training", usual.training if training is None else training, 1)
    checks.boolean("progress", progress)
    problems = _problems(usual.classes if classes is None else classes, horizon)
    known = checked_entrants(usual.entrants if entrants is None else entrants)
    if progress:
        sizes = _announced(problems, known, horizon, runs, training)
        tqdm.write(sizes, file=sys.stderr)
    how = {"horizon": horizon, "seed": seed, "client": client, "store": store}
    trained, finals, fixed = _play(problems, known, runs, training, progress, how)
    about = {"horizon": horizon, "runs": runs, "training": training, "seed": str(seed)}
    return _dataset(problems, known, trained, finals, fixed).assign_attrs(
        title="jaxbio contest", **about
    )


class Problem(NamedTuple):
    """One of a class. name: within its class."""

    cls: str
    name: str
    env: Environment


def _play(
    problems: Sequence[Problem],
    known: Mapping[str, Practical],
    runs: int,
    training: int,
    progress: bool,
    how: dict[str, Any],
) -> tuple[dict[str, np.ndarray], xr.DataArray, dict[str, int]]:
    """Mean regret in the training [problem, setting] of all that play, guessing included; final
    regret of those that are judged; and the fixed setting of each.
    """
    everybody = {**known, **guessing()}
    classes = [one.cls for one in problems]
    names = list(dict.fromkeys(classes))
    steps = len(names) * (sweeps_of(everybody) + len(FORMS))
    groups = {name: [one.env for one in problems if one.cls == name] for name in names}
    with tqdm(total=steps, unit="sweep", disable=None if progress else True) as shown:

        def given(name: str, runs: int) -> dict[str, Any]:
            shown.set_description(name)
            own = {**how, "store": part(how["store"], named(name))}
            return {**own, "runs": runs, "progress": False, "after": shown.update}

        parts = [
            train_all(envs, everybody, **given(name, training)) for name, envs in groups.items()
        ]
        trained = {label: np.concatenate([one[label] for one in parts]) for label in everybody}
        contestants = {label: trained[label] for label in known}
        fixed = fixed_settings(contestants, _measured(contestants, trained), classes)
        played = []
        for own, (name, envs) in zip(parts, groups.items(), strict=True):
            forms = _chosen({label: own[label] for label in known}, fixed)
            played.append(judge(envs, known, forms, **given(name, runs)))
    whole: Any = xr.concat(played, "problem")
    return trained, whole, fixed


def _measured(
    contestants: Mapping[str, np.ndarray], trained: Mapping[str, np.ndarray]
) -> Yardstick:
    return yardstick(contestants, trained[UNIFORM][:, 0])


def _dataset(
    problems: Sequence[Problem],
    known: Mapping[str, Practical],
    trained: Mapping[str, np.ndarray],
    finals: xr.DataArray,
    fixed: Mapping[str, int],
) -> xr.Dataset:
    """What `contest` returns. finals: [form, learner, problem, run]."""
    classes = [one.cls for one in problems]
    contestants = {label: trained[label] for label in known}
    measure = _measured(contestants, trained)
    chosen = _chosen(contestants, fixed)  # form -> label -> [problem]
    finals = finals.assign_coords(
        problem=[f"{one.cls}: {one.name}" for one in problems],
    )
    scored = scores(finals, measure, classes, TUNED)
    ratio = ratios(finals, measure, classes, TUNED)
    looks = looking(known, problems[0].env)
    words = [[[one.written(one.settings[int(number)]) for number in chosen[form][label]]
              for label, one in known.items()] for form in FORMS]  # fmt: skip
    data = {
        "final_regret": finals,
        "setting": (("form", "learner", "problem"), words),
        "best": ("problem", np.array(list(known))[measure.best]),
        "scale": ("problem", measure.scale),
        "looks_at_states": ("learner", [looks[label] for label in known]),
        **behind(scored),
        **ratio,
        **robustness(scored),
    }
    own = worth(scored, ratio["ratio"], _in_training(contestants, measure, chosen, classes), looks)
    whole = xr.Dataset(data).assign_coords(of=("problem", classes))
    return whole if own is None else whole.merge(own)


def _chosen(
    training: Mapping[str, np.ndarray], fixed: Mapping[str, int]
) -> dict[str, dict[str, np.ndarray]]:
    """The number of the setting on each problem: form -> label -> [problem]."""
    return {
        THEOREM: {label: np.zeros(len(own), int) for label, own in training.items()},
        TUNED: {label: own.argmin(axis=1) for label, own in training.items()},
        FIXED: {label: np.full(len(own), fixed[label]) for label, own in training.items()},
    }


def _in_training(
    training: Mapping[str, np.ndarray],
    measure: Yardstick,
    chosen: Mapping[str, Mapping[str, np.ndarray]],
    classes: Sequence[str],
) -> xr.DataArray:
    """How far behind in the training [form, learner, class]."""
    names = list(dict.fromkeys(classes))
    regret = np.array(
        [[own[np.arange(len(own)), chosen[form][label]] for label, own in training.items()]
         for form in FORMS]
    )  # fmt: skip
    values = by_class((regret - measure.regret) / measure.scale, classes, names)
    coords = {"form": list(FORMS), "learner": list(training), "class": names}
    return xr.DataArray(values, coords, ("form", "learner", "class"))


# --- the front door


def _problems(given: Any, horizon: int) -> list[Problem]:
    if not isinstance(given, Mapping):
        given = classes_by_name(given, horizon)
    found = [_problem(cls, name, env, horizon) for cls, own in given.items()
             for name, env in _of_class(cls, own).items()]  # fmt: skip
    if not found:
        raise ValueError("classes must have at least one, but it is empty")
    return found


def classes_by_name(given: Any, horizon: int) -> dict[str, Any]:
    """label -> problems, of classes of `CLASSES`."""
    names = [checks.choice("classes", one, tuple(CLASSES))
             for one in checks.several("classes", given, "names")]  # fmt: skip
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"classes must be one or more different names, but got {checks.shown(given)}"
        )
    if horizon < SHORTEST:
        raise ValueError(
            f"horizon must be at least {SHORTEST:,} for these classes, but got {horizon}"
        )
    words = f"tables of {horizon:,} rounds"
    memory.refuse_table(words, TABLES * len(names) * horizon, "a shorter horizon")
    return {name: CLASSES[name].build(horizon) for name in names}


def _of_class(cls: Any, given: Any) -> dict[Any, Any]:
    what = f"classes[{checks.text('a label of classes', cls)!r}]"
    found = checks.mapping(what, given, "labels to environments")
    if not found:
        raise ValueError(f"{what} must have at least one problem, but it is empty")
    return found


def _problem(cls: str, name: Any, env: Any, horizon: int) -> Problem:
    label = checks.text(f"a label of classes[{cls!r}]", name)
    try:
        check_environment(env)
        env.check(horizon)
    except (TypeError, ValueError) as error:
        error.add_note(f"classes[{cls!r}][{label!r}]")
        raise
    return Problem(cls, label, env)


def _announced(
    problems: Sequence[Problem],
    known: Mapping[str, Practical],
    horizon: int,
    runs: int,
    training: int,
) -> str:
    """What will be played, in a sentence."""
    plain = sum(len(one.settings) == 1 for one in known.values())
    judged = runs * (len(FORMS) * len(known) - (len(FORMS) - 1) * plain)
    games = len(problems) * (judged + training * (settings_of(known) + 1))
    classes = len({one.cls for one in problems})
    return (
        f"contest: {len(known)} learners with {settings_of(known)} settings on {len(problems)} "
        f"problems of {classes} classes: {games:,} games of {horizon:,} rounds, "
        f"{games * horizon:.2g} in all"
    )
