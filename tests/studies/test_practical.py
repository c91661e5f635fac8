"""Learners as a person would run them: tuned on some worlds, judged in others."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxbio as jb
from jaxbio.analysis.tune import training_seed
from jaxbio.studies.practical import PRACTICAL, Practical, judge, play_tuned, train, train_all
from jaxbio.trees import pytree

SIZES: dict[str, Any] = {"horizon": 60, "progress": False}


@pytree
class Stubborn:
    """Plays one action for ever."""

    action: Any

    ignores_empty_lanes = True

    def init(self, known: Any) -> Any:
        return jnp.int32(0)

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return jnp.asarray(self.action, jnp.int32), None

    def learn(self, state: Any, t: Any, play: Any, arrivals: Any) -> Any:
        return state, None


def costing(*costs: float) -> jb.Environment:
    """Every action shows a state of its own, which always costs the same."""
    mapping = jb.StochasticMapping(np.eye(len(costs)))
    return jb.Environment(mapping, jb.ConstantLosses(costs), jb.FixedDelay(3))


def even() -> jb.Environment:
    """Three actions that hardly differ: which setting is best is a matter of luck."""
    P = [[0.5, 0.5], [0.52, 0.48], [0.48, 0.52]]
    losses = jb.BernoulliLosses([0.3, 0.7])
    return jb.Environment(jb.StochasticMapping(P), losses, jb.FixedDelay(3))


STUBBORN = Practical(Stubborn, {}, {"action": (2, 0, 1)})
ALL = [costing(0.1, 0.4, 0.9), costing(0.5, 0.2, 0.3), costing(1.0, 0.5, 0.25)]


def test_the_best_setting_of_each_problem_is_found() -> None:
    found = play_tuned(ALL, {"stubborn": STUBBORN}, runs=2, training=2, **SIZES)
    assert found.setting.values.tolist() == [[1, 2, 0]]
    np.testing.assert_allclose(found.training_regret, 0, atol=1e-5)
    tuned, theorem = (found.final_regret.sel(form=form, learner="stubborn")
                      for form in ("tuned", "theorem"))  # fmt: skip
    np.testing.assert_allclose(tuned, 0, atol=1e-5)
    np.testing.assert_allclose(theorem, 60 * np.array([[0.8] * 2, [0.1] * 2, [0] * 2]), rtol=1e-4)


@pytest.fixture(scope="module")
def by_luck() -> xr.Dataset:
    """Problems on which settings are equally good: only the worlds decide."""
    entrants = {"UCB1": PRACTICAL["UCB1"], "no choice": Practical("thompson", {}, {})}
    return play_tuned([even()], entrants, runs=4, training=4, seed=5, **SIZES)


def test_settings_are_chosen_on_the_worlds_of_training_alone(by_luck: xr.Dataset) -> None:
    """By `simulate` with the seed of the training; with the other one the choice would differ."""
    one = PRACTICAL["UCB1"]
    means = {
        name: [
            jb.simulate(even(), one.made(own), runs=4, seed=seed, rounds=1, **SIZES).final_regret
            for own in one.settings
        ]
        for name, seed in (("training", training_seed(5, 0)), ("judged", 5))
    }
    trained, judged = (np.mean(means[name], axis=1) for name in ("training", "judged"))
    assert by_luck.setting.sel(learner="UCB1").item() == trained.argmin()
    assert by_luck.training_regret.sel(learner="UCB1").item() == pytest.approx(trained.min())
    assert trained.argmin() != judged.argmin(), "no test: both worlds choose alike"
    own = by_luck.final_regret.sel(learner="UCB1").squeeze()
    np.testing.assert_array_equal(own.sel(form="theorem"), means["judged"][0])
    np.testing.assert_array_equal(own.sel(form="tuned"), means["judged"][trained.argmin()])


def test_without_a_choice_all_forms_are_one(by_luck: xr.Dataset) -> None:
    both = by_luck.final_regret.sel(learner="no choice")
    np.testing.assert_array_equal(both.sel(form="theorem"), both.sel(form="tuned"))
    assert by_luck.final_regret.dims == ("form", "learner", "problem", "run")
    assert not by_luck.final_regret.isnull().any()


def test_a_form_is_a_setting_for_each_problem() -> None:
    means = train_all(ALL, {"stubborn": STUBBORN}, runs=1, **SIZES)["stubborn"]
    np.testing.assert_array_equal(means, train("stubborn", STUBBORN, ALL, 1, 0, **SIZES))
    assert means.shape == (3, 3)
    forms = {"worst": {"stubborn": means.argmax(axis=1)}, "best": {"stubborn": [1, 2, 0]}}
    calls: list[int] = []
    found = judge(ALL, {"stubborn": STUBBORN}, forms, runs=1, after=lambda: calls.append(1),
                  **SIZES)  # fmt: skip
    assert found.sel(form="worst", run=0, learner="stubborn").values == pytest.approx([48, 18, 45])
    assert found.sel(form="best").values == pytest.approx(0, abs=1e-5)
    assert len(calls) == 2


def test_what_is_finished_is_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play() -> xr.Dataset:
        two = {"stubborn": STUBBORN, "other": Practical(Stubborn, {"action": 1}, {})}
        return play_tuned(ALL, two, runs=2, training=2, store=tmp_path, **SIZES)

    first = play()
    monkeypatch.setattr(importlib.import_module("jaxbio.sweeps.execute"), "play_block", None)
    xr.testing.assert_identical(first, play())


def test_settings_in_words() -> None:
    one = PRACTICAL["MetaAdaBIO"]
    assert one.settings[0] == {"scale": 1.0, "radius_scale": 1.0}
    assert one.written(one.settings[0]) == "metaadabio:rule=practical"
    changed = {"scale": 3.0, "radius_scale": 1.0}
    assert one.written(changed) == "metaadabio:rule=practical,scale=3.0"
    assert PRACTICAL["Thompson sampling"].written({}) == "thompson"
    assert STUBBORN.written({"action": 1}) == "Stubborn:action=1"


@pytest.mark.parametrize("label", PRACTICAL)
def test_the_first_setting_is_that_of_the_registry(label: str) -> None:
    """That of the theorem is what `make_learner` gives; all can be made, and no two are alike."""
    one = PRACTICAL[label]
    made = [str(one.made(own)) for own in one.settings]
    assert made[0] == str(jb.make_learner(str(one.name), **one.options))
    assert len(set(made)) == len(made)
