"""What settings share is made once, and plays as if it were not shared."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any, ClassVar

import pytest
import xarray as xr
from sweeping import utility

import jaxbio as jb
from jaxbio.engine.code.fingerprint import parts
from jaxbio.sweeps.description import as_text, describe, whole
from jaxbio.sweeps.grid import group, make_grid


def metabio(delta: float) -> Any:
    return jb.make_learner("metabio", delta=delta)


def watched(monkeypatch: pytest.MonkeyPatch, *names: str) -> Counter[str]:
    """How often functions, "jaxbio.sweeps.<module>.<name>", are called from now on."""
    calls: Counter[str] = Counter()

    def watch(place: str, name: str) -> None:
        real = getattr(sys.modules[f"jaxbio.{place}"], name)

        def counting(*args: Any, **named: Any) -> Any:
            calls[name] += 1
            return real(*args, **named)

        monkeypatch.setattr(sys.modules[f"jaxbio.{place}"], name, counting)

    for one in names:
        place, _, name = one.rpartition(".")
        watch(place, name)
    return calls


def test_what_settings_share_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """12 settings of 3 delays and 4 learners: one problem, whose mapping and losses are shared."""
    made = "sweeps.sharing.make_game", "sweeps.sharing.sizes_for", "sweeps.sharing.pad_learner"
    said = "sweeps.description.parts", "sweeps.description.flat_parts"
    checked = "sweeps.grid.table_bytes", "checks.learner"
    calls = watched(monkeypatch, *made, *said, *checked)
    axes = {"delay": [2, 5, 9], "delta": [0.1, 0.2, 0.3, 0.4]}
    grid = make_grid(utility, {"metabio": metabio}, axes, 50)
    assert len({id(setting.env.mapping) for setting in grid.settings}) == 1
    group(grid.settings)
    describe(grid.settings)
    assert len(grid.settings) == 12
    assert calls == {
        "make_game": 1,
        "sizes_for": 3,
        "pad_learner": 4,
        "parts": 4,  # of the learners
        "flat_parts": 3 + 3,  # of the delays; of the mapping, the losses and the number of states
        "table_bytes": 2 + 3 + 4,
        "learner": 4 + 4 + 4,  # and the base of each, and what a name makes
    }


@jb.pytree
class Checked(jb.StochasticMapping):
    """Counts how often it is asked."""

    asked: ClassVar[Counter[str]] = Counter()

    def check(self, horizon: int) -> None:
        self.asked["check"] += 1
        super().check(horizon)

    def padded(self, slots: int) -> Any:
        self.asked["padded"] += 1
        return super().padded(slots)

    def totals(self, values: Any, horizon: Any) -> Any:
        self.asked["totals"] += 1
        return super().totals(values, horizon)

    def costs(self, theta: Any) -> Any:
        self.asked["costs"] += 1
        return super().costs(theta)


def test_a_part_of_the_users_is_asked_once_for_each_horizon() -> None:
    Checked.asked.clear()
    few, many = Checked([[1, 0], [0.5, 0.5]]), Checked([[1, 0, 0], [0.5, 0.2, 0.3]])
    losses = {2: jb.BernoulliLosses([0.1, 0.9]), 3: jb.BernoulliLosses([0.1, 0.9, 0.5])}

    def environment(delay: int, states: int) -> jb.Environment:
        return jb.Environment(few if states == 2 else many, losses[states], jb.FixedDelay(delay))

    axes = {"delay": [1, 2, 3, 4], "states": [2, 3], "horizon": [50, 60]}
    grid = make_grid(environment, {"x": jb.UCB1()}, axes, None)
    group(grid.settings)
    assert len(grid.settings) == 16
    # Two mappings and two horizons; only the one with fewer states is padded.
    assert Checked.asked == {"check": 4, "padded": 2, "totals": 4, "costs": 4}


LAWS: dict[str, Any] = {"fixed": jb.FixedDelay, "random": lambda delay: jb.UniformDelay(0, delay)}
NAMED = {states: jb.make_environment("paper-utility", states=states) for states in (2, 3, 5)}


def apart(delay: Any, states: int) -> jb.Environment:
    """Nothing is shared."""
    mapping, losses = NAMED[states].mapping, NAMED[states].losses
    return jb.Environment(jb.StochasticMapping(mapping.P), jb.BernoulliLosses(losses.theta), delay)


def named(delay: Any, states: int) -> jb.Environment:
    return jb.make_environment("paper-utility", delays=delay, states=states)


def by_hand(delay: Any, states: int) -> jb.Environment:
    return jb.Environment(NAMED[states].mapping, NAMED[states].losses, delay)


def inherited(delay: Any, states: int) -> jb.Environment:
    env = apart(delay, states)
    return Inherited(env.mapping, env.losses, env.delays)


@pytest.mark.parametrize("keep", ["finals", "curves"])
@pytest.mark.parametrize("law", LAWS)
def test_shared_parts_play_as_separate_ones(law: str, keep: str) -> None:
    results = [
        jb.sweep(
            lambda delay, states, build=build: build(LAWS[law](delay), states),
            {"metabio": jb.MetaBIO(jb.DAdaExp3()), "ucb": jb.UCB1()},
            {"delay": [0, 3, 7], "states": [2, 3, 5]},
            horizon=120,
            runs=2,
            rounds=4,
            keep=keep,
            progress=False,
        )
        for build in (apart, named, by_hand, inherited)
    ]
    for other in results[1:]:
        xr.testing.assert_identical(other.drop_attrs(), results[0].drop_attrs())
    assert len({one.attrs["settings"] for one in results[:3]}) == 1


@jb.pytree
class Inherited(jb.Environment):
    """Of a class of the user's: nothing is known of what it does with its parts."""


def test_the_text_of_settings_is_that_of_json() -> None:
    """Whatever is said in pieces, and of whatever has code of the user's."""

    def environment(delay: int, kind: str) -> jb.Environment:
        env = utility(delay)
        made = {"plain": env, "own": Inherited(env.mapping, env.losses, env.delays)}
        return made[kind]

    axes = {"delay": [2, 5], "kind": ["plain", "own"], "horizon": [40, 50]}
    learners = {"x\u00e9": jb.UCB1(), "own": Uses(number=0.25)}
    described = describe(make_grid(environment, learners, axes, None).settings)
    assert as_text(described) == json.dumps(whole(described))
    for label, learner in learners.items():
        found = whole(described)[label]["delay=2, horizon=40, kind=own"]
        env = environment(2, "own")
        assert found == {"horizon": 40} | parts("environment", env) | parts("learner", learner)


@jb.pytree
class Uses(jb.UCB1):
    """A learner of the user's."""

    number: Any = 0.5


def test_equal_laws_of_delays_become_one_law() -> None:
    """Those that a law of numbers cannot be told from, and no others."""

    def law(kind: str, number: int) -> jb.Environment:
        scale = {"zero": 0.0, "below": -0.0, "one": 1.0 + number - number}[kind]
        return jb.make_environment("paper-utility", delays=jb.LaplaceDelay(20, scale))

    axes = {"kind": ["zero", "below", "one"], "number": [1, 2, 3]}
    grid = make_grid(law, {"metabio": metabio(0.1)}, axes, 50)
    laws = {id(one.env.delays): one.env.delays for one in grid.settings}
    assert sorted(str(law.scale) for law in laws.values()) == ["-0.0", "0.0", "1.0"]
    for one in grid.settings:
        wanted = law(**one.values)
        assert str(one.env.delays) == str(wanted.delays)
        assert one.env.mapping is wanted.mapping  # what else is shared stays so


def test_arrays_of_shared_parts_cannot_be_changed() -> None:
    for name in ("paper-utility", "paper-stochastic", "paper-adversarial"):
        one, two = jb.make_environment(name), jb.make_environment(name, delays=jb.FixedDelay(3))
        assert one.mapping is two.mapping
        with pytest.raises(ValueError, match="read-only"):
            one.losses.theta[0] = 0.5
