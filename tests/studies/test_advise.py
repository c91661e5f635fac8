"""Advice: winners, ties, who counts as robust, time, and what is refused."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import jaxbio as jb
from jaxbio import rng
from jaxbio.figures.style import Look
from jaxbio.studies import specs
from jaxbio.studies.advise.figure import advice as draw_advice
from jaxbio.studies.advise.study import LEVEL, LOOKS, _advice, advise
from jaxbio.studies.contestants import contestants, is_robust
from jaxbio.studies.families import FAMILIES, drawn
from jaxbio.sweeps.workers import OutOfTime

commands_advise = importlib.import_module("jaxbio.studies.advise.command")
lab_advise = importlib.import_module("jaxbio.studies.advise.study")


def problem(**changes: Any) -> dict[str, Any]:
    given = {"actions": 2, "states": 2, "horizon": 400, "delays": jb.FixedDelay(5)}
    return given | {"progress": False} | changes


def test_advice_names_the_winner_and_stops_early() -> None:
    learners = {"UCB1": jb.UCB1(), "idle": jb.UCB1(exploration=1e6)}
    found = advise(**problem(learners=learners, seconds=600))
    assert found.overall.winner == "UCB1"
    assert found.runs == 32
    assert found.robust is None
    assert found.overall.paired
    picture = draw_advice(found.overall, "a title", Look())
    assert [label.get_text() for label in picture.axes[0].get_yticklabels()] == ["idle", "UCB1"]


def test_equals_are_too_close_to_call() -> None:
    """Different worlds for the same learner are not possible here, so it plays twice the same."""
    learners = {"one": jb.DAdaExp3(), "other": jb.DAdaExp3()}
    found = advise(**problem(learners=learners, seconds=600, looks=3, first=8))
    assert found.overall.winner is None
    assert found.robust is not None
    assert not found.decided
    assert found.runs == 8 * 4
    assert found.overall.level == pytest.approx(0.05 / 3)


def test_noisy_near_equals_are_too_close_to_call() -> None:
    """Regrets differ from run to run, by more than they do on average."""
    learners = {"a": jb.UCB1(exploration=2.0), "b": jb.UCB1(exploration=2.02)}
    found = advise(**problem(learners=learners, seconds=600, looks=3))
    assert found.runs == 128
    assert found.overall.winner is None
    assert found.overall.contenders in (("a", "b"), ("b", "a"))
    assert found.overall.rows[1].behind_high > 0 > found.overall.rows[1].behind_low
    assert "too close to call between" in found.overall.verdict


def looks_at_equals(generator: np.random.Generator) -> Iterator[bool]:
    """Look by look: is a winner named? Two learners of the same mean, the most that can be named
    among equals: with more of them the best has to be told from all. Runs are paired.
    """
    known = {"one": jb.UCB1(), "other": jb.UCB1()}
    finals = {name: np.empty(0) for name in known}
    for look in range(LOOKS):
        shared = generator.normal(0, 1, 32 * 2 ** max(look - 1, 0))
        for name in known:
            own = shared + generator.normal(0, 1, shared.size)
            finals[name] = np.concatenate([finals[name], 100 + own])
        found = _advice(finals, known, LEVEL / LOOKS, 0.0, resamples=50)
        yield found.overall.winner is not None


@pytest.mark.slow
def test_looking_often_does_not_make_a_winner_of_chance() -> None:
    """Among 400 comparisons of equals at most 5 % may name a winner at any look: 20 at the level,
    and more than 35 have a probability of 6e-4. (It is 13; with the full level at each look it
    would be 78.)
    """
    generator = np.random.default_rng(1)
    named = sum(any(looks_at_equals(generator)) for _ in range(400))
    assert named <= 35


def test_who_is_robust_is_a_matter_of_type() -> None:
    assert {name for name, one in contestants().items() if is_robust(one)} == {
        "DAda-Exp3",
        "MetaBIO",
        "MetaAdaBIO",
    }
    names = [name for name in jb.learner_names() if is_robust(jb.make_learner(name))]
    assert names == [
        "dada-exp3",
        "dada-exp3-skipping",
        "tsallis-inf",
        "exp3",
        "metabio",
        "metabio-skipping",
        "metabio-mean",
        "metabio-tsallis",
        "metaadabio",
        "metaadabio-tsallis",
        "bold-exp3",
    ]
    assert not is_robust(jb.MetaBIO(jb.UCB1()))


def test_labels_do_not_decide_who_is_robust() -> None:
    learners = {
        "mine": jb.make_learner("metabio-skipping"),
        "base": jb.DAdaExp3(),
        "metabio": jb.UCB1(),
    }
    found = advise(**problem(learners=learners, looks=1, first=8))
    assert found.robust is not None
    assert sorted(row.name for row in found.robust.rows) == ["base", "mine"]
    assert found.robust.level == found.overall.level == pytest.approx(0.05 / 2)


def test_advice_is_decided_when_both_questions_are() -> None:
    """One far ahead of two that are the same: overall it wins, among the robust there is a tie."""
    known = {"ahead": jb.UCB1(), "one": jb.DAdaExp3(), "other": jb.DAdaExp3()}
    shared = np.random.default_rng(0).normal(100, 1, 32)
    finals = {"ahead": shared - 50, "one": shared, "other": shared}
    found = _advice(finals, known, LEVEL, 0.0, resamples=50)
    assert found.overall.winner == "ahead"
    assert found.robust is not None
    assert found.robust.winner is None
    assert not found.decided


def played_keys(monkeypatch: pytest.MonkeyPatch, seed: int) -> np.ndarray:
    """[runs, 2]: the key of every run that advice with this seed is made of."""
    clock, keys = Clock(1.0, 0.0), []

    def sweep(*args: Any, **options: Any) -> xr.Dataset:
        keys.append(rng.run_keys(options["seed"], np.arange(options["runs"])).T)
        return clock.sweep(*args, **options)

    monkeypatch.setattr(lab_advise, "sweep", sweep)
    monkeypatch.setattr(lab_advise, "time", clock)
    learners = {"one": jb.UCB1(), "other": jb.UCB1()}
    found = advise(**problem(seed=seed, learners=learners, looks=3, first=8))
    assert found.runs == sum(map(len, keys)) == 8 * 4
    return np.concatenate(keys)


def test_no_run_is_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in two looks, and not with another seed."""
    both = np.concatenate([played_keys(monkeypatch, seed) for seed in (0, 1)])
    assert len(np.unique(both, axis=0)) == len(both)


def test_a_run_counts_on_all_problems_of_the_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up games: the regret on a problem is its first entry."""

    def sweep(build: Any, learners: Any, axes: Any, *, runs: int, **_: Any) -> xr.Dataset:
        entries = [float(build(instance=i).mapping.P[0, 0]) for i in axes["instance"]]
        values = np.tile(np.array(entries)[:, None], (len(learners), 1, runs))
        made = ("learner", "instance", "run"), values
        return xr.Dataset({"final_regret": made}, {"learner": list(learners)})

    monkeypatch.setattr(lab_advise, "sweep", sweep)
    found = advise(**problem(family="random", looks=1))
    problems = [drawn(2, 2, jb.FixedDelay(5), i) for i in range(8)]
    expected = np.mean([one.mapping.P[0, 0] for one in problems])
    assert [row.mean for row in found.overall.rows] == pytest.approx([expected] * 5)


# --- time


class Clock:
    """Games take what they are told to, and every sweep is made up: all learners are equal."""

    def __init__(self, first: float, per_game: float) -> None:
        self.now, self.first, self.per_game, self.games = 0.0, first, per_game, []

    def monotonic(self) -> float:
        return self.now

    def sweep(self, build: Any, learners: Any, axes: Any, *, runs: int, **_: Any) -> xr.Dataset:
        self.now += runs * self.per_game + self.first * (not self.games)
        self.games.append(runs)
        shape = (len(learners), len(axes["instance"]), runs)
        made = ("learner", "instance", "run"), np.ones(shape)
        return xr.Dataset({"final_regret": made}, {"learner": list(learners)})


@pytest.mark.parametrize(
    ("first", "per_game", "seconds", "games"),
    [
        (5.0, 0.01, 9.0, [32, 32, 64, 128]),  # compiling takes long: look 4 would end at 10.12
        (0.0, 1.0, 45.0, [32]),  # a second one might take as long, and end at 64
        (0.0, 1.0, 100.0, [32, 32]),
        (20.0, 0.1, 45.0, [32, 32, 64]),
        (1.0, 0.0, 45.0, [32, 32, 64, 128, 256, 512]),
        (1.0, 0.0, 0.5, [32]),
    ],
)
def test_no_look_begins_that_time_does_not_allow(
    monkeypatch: pytest.MonkeyPatch,
    first: float,
    per_game: float,
    seconds: float,
    games: list[int],
) -> None:
    clock = Clock(first, per_game)
    monkeypatch.setattr(lab_advise, "sweep", clock.sweep)
    monkeypatch.setattr(lab_advise, "time", clock)
    found = advise(**problem(seconds=seconds))
    assert clock.games == games
    assert found.runs == sum(games)
    assert clock.now <= max(seconds * 4 / 3, first + 32 * per_game)


def no_time(finals: list[tuple[str, np.ndarray]], played: int) -> Any:
    """A sweep whose time is over, with so much finished."""

    def sweep(*_: Any, **__: Any) -> xr.Dataset:
        late = OutOfTime()
        late.finals, late.rounds, late.played = finals, 1_000, played
        raise late

    return sweep


def test_advice_speaks_of_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three learners are; of the third one run is missing."""
    known = {name: jb.UCB1() for name in ("far", "half", "near")}
    regrets = np.arange(8.0)
    finals = [("far", 100 + regrets), ("half", np.where(regrets < 7, 0, np.nan)), ("near", regrets)]
    monkeypatch.setattr(lab_advise, "sweep", no_time(finals, 900))
    found = advise(**problem(learners=known, first=8, seconds=600))
    assert found.unfinished == ("half",)
    assert [row.name for row in found.overall.rows] == ["near", "far"]
    assert (found.runs, found.overall.winner) == (8, "near")
    said = commands_advise.as_text(found, "utility")
    assert "Not finished in time, so not compared: half." in said
    assert commands_advise.as_dict(found)["unfinished"] == ["half"]


def test_too_little_time_says_how_much_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the rounds in 10 seconds: 50 for all three learners, 34 for two."""
    known = {name: jb.UCB1() for name in ("one", "half", "none")}
    finals = [("one", np.ones(8)), ("half", np.full(8, np.nan)), ("none", np.full(8, np.nan))]
    monkeypatch.setattr(lab_advise, "sweep", no_time(finals, 200))
    said = (
        "seconds=10 of play are too few for advice: 200 of 1,000 rounds .* two learners, takes "
        "about 34 .* all 3 takes about 50"
    )
    with pytest.raises(ValueError, match=said):
        advise(**problem(learners=known, first=8, seconds=10))
    monkeypatch.setattr(lab_advise, "sweep", no_time(finals, 0))
    with pytest.raises(ValueError, match="takes much more seconds"):
        advise(**problem(learners=known, first=8, seconds=10))


def test_seconds_bind_the_games() -> None:
    """Long games: without a limit they would take an hour."""
    with pytest.raises(ValueError, match=r"seconds=0\.2 of play are too few for advice"):
        advise(**problem(horizon=10**9, seconds=0.2))


def test_a_look_that_time_does_not_allow_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is that of the looks before it."""
    clock = Clock(1.0, 0.0)

    def sweep(*args: Any, **options: Any) -> xr.Dataset:
        if len(clock.games) == 2:
            raise OutOfTime
        return clock.sweep(*args, **options)

    monkeypatch.setattr(lab_advise, "sweep", sweep)
    monkeypatch.setattr(lab_advise, "time", clock)
    found = advise(**problem(seconds=45))
    assert clock.games == [32, 32]
    assert found.runs == 64
    assert found.unfinished == ()


def test_advice_goes_on_where_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = problem(seconds=600, looks=2, first=8, store=tmp_path)
    given["learners"] = {"one": jb.DAdaExp3(), "other": jb.DAdaExp3()}
    first = advise(**given)
    monkeypatch.setattr(importlib.import_module("jaxbio.sweeps.execute"), "play_block", None)
    assert advise(**given).overall == first.overall


# --- families and what is refused


def test_random_problems_differ_and_come_back() -> None:
    build, instances = FAMILIES["random"]
    made = [build(3, 4, jb.FixedDelay(1), i).mapping.P for i in range(instances)]
    assert len({table.tobytes() for table in made}) == instances
    np.testing.assert_array_equal(made[1], build(3, 4, jb.FixedDelay(9), 1).mapping.P)


def test_random_problems_are_uniform() -> None:
    """On the simplex of three states each entry has mean 1/3 and variance 1/18; mean losses have
    those of the uniform law. Ten thousand of each: 4.5 standard errors are below the tolerances.
    """
    P = drawn(10_000, 3, jb.FixedDelay(1), 0).mapping.P
    np.testing.assert_allclose(P.mean(axis=0), 1 / 3, atol=0.011)
    np.testing.assert_allclose(P.var(axis=0), 1 / 18, rtol=0.06)
    theta = np.asarray(drawn(2, 10_000, jb.FixedDelay(1), 0).losses.theta)
    assert theta.mean() == pytest.approx(1 / 2, abs=0.013)
    assert theta.var() == pytest.approx(1 / 12, rel=0.05)
    assert abs(np.corrcoef(theta[1:], theta[:-1])[0, 1]) < 0.045


def test_the_title_has_the_delays_that_are_played() -> None:
    """Not those of the command line, where a family of the user's has its own."""

    def family(actions: int, states: int, delays: Any) -> jb.Environment:
        env = drawn(actions, states, delays, 0)
        return jb.Environment(env.mapping, env.losses, jb.TableDelay([7, 2, 3] * 200))

    learners = {"one": jb.UCB1(), "other": jb.UCB1()}
    found = advise(**problem(learners=learners, looks=1, first=2, family=family))
    options = SimpleNamespace(actions=2, states=2, horizon=400, delay="5")
    said = "K = 2, S = 2, T = 400, delay from a table of 600 (mean 4.0, most 7)"
    assert commands_advise.title(found, options) == said
    assert commands_advise.as_dict(found)["delays"] == "from a table of 600 (mean 4.0, most 7)"


@pytest.mark.parametrize("text", ["50", "laplace:50,25", "geometric:20", "uniform:0,100"])
def test_delays_are_titled_as_they_are_asked_for(text: str) -> None:
    assert commands_advise.written(specs.delays(text)) == text


def test_a_family_of_the_users() -> None:
    """Two actions that cost 0 and 1: the idle learner pays for half of its rounds."""
    asked = []

    def family(actions: int, states: int, delays: Any) -> jb.Environment:
        asked.append((actions, states, delays))
        return jb.Environment(
            jb.StochasticMapping(np.eye(2, 3)), jb.ConstantLosses([0.0, 1.0, 1.0]), delays
        )

    learners = {"UCB1": jb.UCB1(), "idle": jb.UCB1(exploration=1e6)}
    found = advise(**problem(learners=learners, looks=1, first=8, family=family, states=3))
    assert [size[:2] for size in asked] == [(2, 3)]
    assert isinstance(asked[0][2], jb.FixedDelay)
    assert found.overall["idle"].mean == pytest.approx(200, abs=20)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learners": {"x": jb.UCB1()}}, r"learners must be two or more, but got \['x'\]"),
        ({"learners": [jb.UCB1()]}, "learners must map labels to learners, but got"),
        ({"learners": {"x": jb.UCB1, "y": jb.UCB1()}}, r"learners\['x'\] must be a learner"),
        ({"actions": "a", "family": "random"}, "actions must be an integer, but got 'a'"),
        ({"states": 0, "family": "random"}, "states must be at least 1, but got 0"),
        ({"family": "odd"}, "family must be one of 'utility', 'random', but got 'odd'"),
        (
            {"family": 3},
            r"family must be one of .* or a function \(actions, states, delays\) that gets the "
            r"numbers K and S and the law of the delays, such as FixedDelay\(50\), but got 3",
        ),
        ({"delays": 5}, "delays must be such as FixedDelay"),
        ({"seed": "x"}, "seed must be an integer, but got 'x'"),
    ],
)
def test_bad_questions_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        advise(**problem(**change))


def test_a_comparison_has_a_number_for_a_seed() -> None:
    with pytest.raises(TypeError, match="seed must be an integer, but got 'x'"):
        jb.compare({"a": [1.0, 2.0], "b": [2.0, 4.0]}, seed="x")  # type: ignore[arg-type]
