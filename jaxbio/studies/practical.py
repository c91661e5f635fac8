"""Learners as a person would run them: in the form of their theorem, and with tuned numbers.

A comparison of theorems' forms asks whose proof has the better constants. So every learner here
also has numbers that may be changed in practice (rates, radii, exploration, memory), which are
chosen by playing: in worlds that no judgement is made on.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.analysis.tune import training_seed
from jaxbio.learners.registry import make_learner
from jaxbio.storage.store import part
from jaxbio.studies.contestants import looks_at_states
from jaxbio.sweeps.sweep import sweep

RATES = (1.0, 0.3, 3.0, 10.0, 30.0)
RADII = (1.0, 0.3, 0.1, 0.03)
MEMORY = (1.0, 0.9998, 0.999, 0.995)  # rounds count for 1 / (1 - discount) rounds
BONUSES = {"exploration": (2.0, 0.5, 0.2, 0.05, 0.01, 0.002, 6.0, 20.0), "discount": MEMORY}
TRAINING_RUNS = 64


class Practical(NamedTuple):
    """name, options: of a registered learner, in the form of its theorem or, where it has none, in
    its usual one. grid: option -> values to choose from, that of this form first.

    name: or a class or a function of these options that makes a learner, for one of your own.
    """

    name: str | Callable[..., Any]
    options: Mapping[str, Any]
    grid: Mapping[str, Sequence[Any]]

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Every choice of the grid, the form of the theorem first."""
        return [dict(zip(self.grid, values, strict=True))
                for values in itertools.product(*self.grid.values())]  # fmt: skip

    def made(self, setting: Mapping[str, Any]) -> Any:
        """The learner with these numbers."""
        options = {**self.options, **setting}
        if callable(self.name):
            return self.name(**options)
        return make_learner(self.name, **options)

    def written(self, setting: Mapping[str, Any]) -> str:
        """As on the command line: name:option=value,..., without what is usual."""
        usual = self.settings[0]
        changed = {key: value for key, value in setting.items() if value != usual[key]}
        words = [f"{key}={value}" for key, value in {**self.options, **changed}.items()]
        name = getattr(self.name, "__name__", "learner") if callable(self.name) else self.name
        return f"{name}:{','.join(words)}" if words else name


PRACTICAL: dict[str, Practical] = {
    "DAda-Exp3": Practical("dada-exp3", {}, {"scale": RATES}),
    "DAda-Exp3, skipping": Practical("dada-exp3-skipping", {}, {"scale": RATES}),
    "Tsallis-INF": Practical("tsallis-inf", {}, {"scale": RATES}),
    "UCB1": Practical("ucb1", {}, BONUSES),
    "Thompson sampling": Practical("thompson", {}, {"discount": MEMORY}),
    "Successive elimination": Practical("successive-elimination", {}, {"scale": (1.0, *RADII[1:])}),
    "QPM-D UCB1": Practical("qpmd-ucb1", {}, BONUSES),
    "MetaBIO": Practical("metabio", {}, {"scale": RATES, "radius_scale": RADII}),
    "MetaBIO-mean": Practical("metabio-mean", {}, {"scale": RATES}),
    "MetaBIO-Tsallis": Practical("metabio-tsallis", {}, {"scale": RATES}),
    "MetaAdaBIO": Practical(
        "metaadabio", {"rule": "practical"}, {"scale": RATES, "radius_scale": RADII}
    ),
    "HindsightExp3": Practical("hindsight-exp3", {}, {"scale": RATES, "discount": MEMORY}),
    "Hindsight-Tsallis": Practical("hindsight-tsallis", {}, {"scale": RATES, "discount": MEMORY}),
    "NSD-UCRL2": Practical(
        "nsd-ucrl2", {}, {"radius_scale": (*RADII, 0.01, 0.003), "window": (None, 2000, 500)}
    ),
    "StateThompson": Practical("state-thompson", {}, {"discount": MEMORY}),
    "StateThompson, exact": Practical("state-thompson", {"sampler": "exact"}, {"discount": MEMORY}),
}  # fmt: skip


def looking(entrants: Mapping[str, Practical], env: Any) -> dict[str, bool]:
    """label -> does this learner look at states? Asked in its first form, on this problem."""
    return {label: looks_at_states(one.made(one.settings[0]), env)
            for label, one in entrants.items()}  # fmt: skip


def play_problems(
    problems: Sequence[Any], learners: Mapping[str, Any], axes: Mapping[str, Any], **given: Any
) -> xr.DataArray:
    """Final regret [learner, *axes, problem, run] on problems; those of one program (types, K,
    arrays of states) are played together. given: of `sweep`.
    """
    return sweep(
        lambda problem: problems[problem],
        learners,
        {**axes, "problem": list(range(len(problems)))},
        rounds=1,
        keep="finals",
        **given,
    ).final_regret


def play_tuned(
    problems: Sequence[Any],
    entrants: Mapping[str, Practical],
    *,
    horizon: int,
    runs: int,
    training: int = TRAINING_RUNS,
    seed: Any = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **given: Any,
) -> xr.Dataset:
    """Tune every entrant on every problem, then play both its forms in other worlds.

    The setting of a problem is that with the least mean final regret of `training` runs, the same
    runs for all settings. What is judged are further `runs`, the same for all learners; run i is
    that of `simulate` with this seed, and none of them is one of the training.

    problems: environments, see `play_problems`. given: of `sweep`. Returns final_regret [form,
    learner, problem, run]; setting [learner, problem], the number of the choice among the entrant's
    `settings`; and training_regret [learner, problem], its mean over the runs that chose it:
    whoever compares several learners' best picks among them by this one, not by the runs that
    judge.
    """
    runs, training = checks.size("runs", runs, 1), checks.size("training", training, 1)
    how = {"horizon": horizon, "seed": seed, "store": store, "progress": progress, **given}
    means = train_all(problems, entrants, runs=training, **how)
    chosen = {label: own.argmin(axis=1) for label, own in means.items()}
    first = {label: np.zeros(len(problems), int) for label in entrants}
    forms = {"theorem": first, "tuned": chosen}
    return xr.Dataset(
        {
            "final_regret": judge(problems, entrants, forms, runs=runs, **how),
            "setting": (("learner", "problem"), np.stack(list(chosen.values()))),
            "training_regret": (
                ("learner", "problem"),
                np.stack([own.min(axis=1) for own in means.values()]),
            ),
        }
    )


def train(
    label: str, entrant: Practical, problems: Sequence[Any], training: int, seed: Any, **given: Any
) -> np.ndarray:
    """Mean final regret [problem, setting] of `training` runs: of worlds in which nothing that is
    played with this seed is judged, the same for all settings and learners. given: of `sweep`.
    """
    return _trained({label: entrant}, problems, training, seed, **given)[label]


def train_all(
    problems: Sequence[Any],
    entrants: Mapping[str, Practical],
    *,
    runs: int,
    seed: Any = 0,
    store: str | os.PathLike[str] | None = None,
    after: Callable[[], Any] = lambda: None,
    **given: Any,
) -> dict[str, np.ndarray]:
    """label -> what `train` gives; those with equally many settings are played together.

    after: called after each sweep. given: of `sweep`.
    """
    found: dict[str, np.ndarray] = {}
    for count, group in _by_settings(entrants).items():
        where = part(store, f"training-{count}")
        found |= _trained(group, problems, runs, seed, store=where, **given)
        after()
    return {label: found[label] for label in entrants}


def _trained(
    entrants: Mapping[str, Practical],
    problems: Sequence[Any],
    training: int,
    seed: Any,
    **given: Any,
) -> dict[str, np.ndarray]:
    """Of entrants with equally many settings."""
    learners = {label: lambda setting, e=one: e.made(e.settings[setting])
                for label, one in entrants.items()}  # fmt: skip
    (count,) = {len(one.settings) for one in entrants.values()}
    axes = {"setting": list(range(count))}
    worlds: Any = {"runs": training, "seed": training_seed(seed, 0)}
    means = play_problems(problems, learners, axes, **worlds, **given).mean("run")
    return {label: means.sel(learner=label).transpose("problem", "setting").values
            for label in entrants}  # fmt: skip


def judge(
    problems: Sequence[Any],
    entrants: Mapping[str, Practical],
    forms: Mapping[str, Mapping[str, np.ndarray]],
    *,
    runs: int,
    seed: Any = 0,
    store: str | os.PathLike[str] | None = None,
    after: Callable[[], Any] = lambda: None,
    **given: Any,
) -> xr.DataArray:
    """Final regret [form, learner, problem, run], in worlds that are none of training.

    forms: name -> label -> the number of the setting on each problem [problem]. Entrants without a
    choice play once for all forms. after: called after each sweep. given: of `sweep`.
    """
    played: list[xr.DataArray] = []
    for form, chosen in forms.items():
        learners = {
            label: lambda problem, e=one, own=chosen[label]: e.made(e.settings[own[problem]])
            for label, one in entrants.items()
            if not played or len(one.settings) > 1
        }
        if learners:
            where = part(store, form)
            own = play_problems(problems, learners, {}, runs=runs, seed=seed, store=where, **given)
            whole = own if not played else own.combine_first(played[0])
            played.append(whole.sel(learner=list(entrants)))
        else:
            played.append(played[0])
        after()
    finals = xr.concat(played, "form").assign_coords(form=list(forms))
    return finals.transpose("form", "learner", "problem", "run")


def _by_settings(entrants: Mapping[str, Practical]) -> dict[int, dict[str, Practical]]:
    """Entrants that one sweep can play, by how many settings they have."""
    groups: dict[int, dict[str, Practical]] = {}
    for label, one in entrants.items():
        groups.setdefault(len(one.settings), {})[label] = one
    return groups


def sweeps_of(entrants: Mapping[str, Practical]) -> int:
    """How many `train_all` plays."""
    return len(_by_settings(entrants))
