"""Learners as a person would run them: in the form of their theorem, and with tuned numbers.

A comparison of theorems' forms asks whose proof has the better constants. So every learner here
also has numbers that may be changed in practice (rates, radii, exploration, memory), which are
chosen by playing: in worlds that no judgement is made on.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.analysis.tune import training_seed
from jaxbio.learners.registry import make_learner
from jaxbio.storage.store import part
from jaxbio.sweeps.sweep import sweep

RATES = (1.0, 0.3, 3.0, 10.0, 30.0)
RADII = (1.0, 0.3, 0.1, 0.03)
MEMORY = (1.0, 0.9998, 0.999, 0.995)  # rounds count for 1 / (1 - discount) rounds
TRAINING_RUNS = 64


class Practical(NamedTuple):
    """name, options: of a registered learner, in the form of its theorem or, where it has none, in
    its usual one. grid: option -> values to choose from, that of this form first.
    """

    name: str
    options: Mapping[str, Any]
    grid: Mapping[str, Sequence[Any]]

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Every choice of the grid, the form of the theorem first."""
        return [dict(zip(self.grid, values, strict=True))
                for values in itertools.product(*self.grid.values())]  # fmt: skip

    def made(self, setting: Mapping[str, Any]) -> Any:
        """The learner with these numbers."""
        return make_learner(self.name, **{**self.options, **setting})

    def written(self, setting: Mapping[str, Any]) -> str:
        """As on the command line: name:option=value,..., without what is usual."""
        usual = self.settings[0]
        changed = {key: value for key, value in setting.items() if value != usual[key]}
        words = [f"{key}={value}" for key, value in {**self.options, **changed}.items()]
        return f"{self.name}:{','.join(words)}" if words else self.name


PRACTICAL: dict[str, Practical] = {
    "DAda-Exp3": Practical("dada-exp3", {}, {"scale": RATES}),
    "DAda-Exp3, skipping": Practical("dada-exp3-skipping", {}, {"scale": RATES}),
    "Tsallis-INF": Practical("tsallis-inf", {}, {"scale": RATES}),
    "UCB1": Practical("ucb1", {}, {"exploration": (2.0, 0.5, 0.2, 0.05, 0.01)}),
    "Thompson sampling": Practical("thompson", {}, {}),
    "Successive elimination": Practical("successive-elimination", {}, {"scale": (1.0, *RADII[1:])}),
    "QPM-D UCB1": Practical("qpmd-ucb1", {}, {"exploration": (2.0, 0.5, 0.2, 0.05, 0.01)}),
    "MetaBIO": Practical("metabio", {}, {"scale": RATES, "radius_scale": RADII}),
    "MetaBIO-mean": Practical("metabio-mean", {}, {"scale": RATES}),
    "MetaBIO-Tsallis": Practical("metabio-tsallis", {}, {"scale": RATES}),
    "MetaAdaBIO": Practical(
        "metaadabio", {"rule": "practical"}, {"scale": RATES, "radius_scale": RADII}
    ),
    "HindsightExp3": Practical("hindsight-exp3", {}, {"scale": RATES, "discount": MEMORY}),
    "Hindsight-Tsallis": Practical("hindsight-tsallis", {}, {"scale": RATES, "discount": MEMORY}),
    "NSD-UCRL2": Practical(
        "nsd-ucrl2", {}, {"radius_scale": RADII, "window": (None, 2000, 500)}
    ),
    "StateThompson": Practical("state-thompson", {}, {"discount": MEMORY}),
    "StateThompson, exact": Practical("state-thompson", {"sampler": "exact"}, {"discount": MEMORY}),
}  # fmt: skip


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


def train(
    label: str, entrant: Practical, problems: Sequence[Any], training: int, seed: Any, **given: Any
) -> np.ndarray:
    """Mean final regret [problem, setting] of `training` runs: of worlds in which nothing that is
    played with this seed is judged, the same for all settings and learners. given: of `sweep`.
    """
    learners = {label: lambda setting: entrant.made(entrant.settings[setting])}
    axes = {"setting": list(range(len(entrant.settings)))}
    worlds = {"runs": training, "seed": training_seed(seed, 0)}
    played = play_problems(problems, learners, axes, **worlds, **given)
    return played.sel(learner=label).mean("run").transpose("problem", "setting").values


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
    given |= {"horizon": horizon, "progress": progress}
    chosen: dict[str, np.ndarray] = {}
    least = []
    for label, one in entrants.items():
        found = train(label, one, problems, training, seed,
                      store=part(store, f"training-{label}"), **given)  # fmt: skip
        chosen[label] = found.argmin(axis=1)
        least.append(found.min(axis=1))
    forms: dict[str, dict[str, Any]] = {
        "theorem": {label: one.made(one.settings[0]) for label, one in entrants.items()},
        "tuned": {
            label: lambda problem, e=one, own=chosen[label]: e.made(e.settings[own[problem]])
            for label, one in entrants.items()
        },
    }
    played = [
        play_problems(
            problems, learners, {}, runs=runs, seed=seed, store=part(store, form), **given
        )
        for form, learners in forms.items()
    ]
    return xr.Dataset(
        {
            "final_regret": xr.concat(played, "form").assign_coords(form=list(forms)),
            "setting": (("learner", "problem"), np.stack(list(chosen.values()))),
            "training_regret": (("learner", "problem"), np.stack(least)),
        }
    )
