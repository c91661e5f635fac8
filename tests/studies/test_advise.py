"""Advice: winners, ties, who counts as robust, time, and what is refused."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr

import jaxbio as jb
from jaxbio import rng
from jaxbio.analysis.compare import compare
from jaxbio.figures.style import Look
from jaxbio.studies import specs
from jaxbio.studies.advise import tournament
from jaxbio.studies.advise.figures.table import advice as draw_advice
from jaxbio.studies.advise.study import advise
from jaxbio.studies.advise.tournament import Outcome
from jaxbio.studies.contestants import (
    UNIFORM,
    asked_as,
    contestants,
    everybody,
    is_robust,
    looks_at_states,
)
from jaxbio.studies.families import FAMILIES, drawn, in_turns
from jaxbio.sweeps.workers import OutOfTime

commands_advise = importlib.import_module("jaxbio.studies.advise.command")
text_advise = importlib.import_module("jaxbio.studies.advise.text")
lab_advise = importlib.import_module("jaxbio.studies.advise.study")
playing_advise = importlib.import_module("jaxbio.studies.advise.playing")
hall_advise = importlib.import_module("jaxbio.studies.advise.hall")


def problem(**changes: Any) -> dict[str, Any]:
    given = {"actions": 2, "states": 2, "horizon": 400, "delays": jb.FixedDelay(5)}
    return given | {"progress": False} | changes


def test_advice_names_the_winner_and_stops_early() -> None:
    learners = {"UCB1": jb.UCB1(), "idle": jb.UCB1(exploration=1e6)}
    found = advise(**problem(learners=learners, seconds=600))
    assert found.overall.winner == found.recommended == "UCB1"
    assert found.runs == 32
    assert found.robust is None
    assert found.overall.paired
    assert found.changing is not None
    assert found.stationary.worth is None  # neither looks at states
    assert found.stationary.uniform == pytest.approx(0.5 * 400 * 0.32, rel=0.02)
    picture = draw_advice(found.stationary, "a title", Look())
    assert [label.get_text() for label in picture.axes[0].get_yticklabels()] == ["idle", "UCB1"]


def test_equals_are_too_close_to_call() -> None:
    """Different worlds for the same learner are not possible here, so it plays twice the same."""
    learners = {"one": jb.DAdaExp3(), "other": jb.DAdaExp3()}
    found = advise(**problem(learners=learners, seconds=600, looks=3, first=8))
    assert found.overall.winner is None
    assert found.robust in learners
    assert not found.decided
    assert found.runs == 8 * 4
    assert found.overall.level == pytest.approx(0.05 / (3 * 3 * 2))


def test_states_are_worth_what_a_comparison_of_one_s_own_says() -> None:
    """Two learners of which one looks at states, on the problem of the family."""
    learners = {"with": jb.make_learner("state-thompson"), "without": jb.make_learner("thompson")}
    given = problem(actions=4, states=3, horizon=500, delays=jb.FixedDelay(20), looks=4)
    found = advise(**given | {"learners": learners, "seconds": 600})
    worth = found.stationary.worth
    assert worth is not None
    env = jb.make_environment("paper-utility", actions=4, states=3, delays=jb.FixedDelay(20))
    means = {
        name: jb.simulate(env, one, horizon=500, runs=2_000, rounds=1, seed=5,
                          progress=False).final_regret.mean()
        for name, one in learners.items()
    }  # fmt: skip
    wider = 2 * (worth.high - worth.low)  # four standard errors of the smaller sample
    assert worth.ratio == pytest.approx(means["with"] / means["without"], abs=wider)
    assert worth.low < worth.ratio < worth.high < 1
    said = commands_advise.as_text(found, "utility").splitlines()
    assert said[0] == "If the mapping never changes: run with."
    best, uniform = found.overall.rows[0], found.stationary.uniform
    assert said[1].startswith(f"  Its regret is {best.mean:,.1f} (")
    assert said[1].endswith(f"; playing at random has {uniform:,.1f}.")
    assert said[2].startswith(f"  States save {1 - worth.ratio:.0%} of the regret")
    assert said[3] == f"If the mapping changes: run {found.recommended_if_changing}."


def test_the_answer_comes_with_its_settings_and_with_who_is_as_good() -> None:
    """Made-up games: two whose means are the same, and one that is no better than guessing."""
    games = np.array([1.0, 2.0, 3.0, 4.0])
    label = "NSD-UCRL2, radius x 0.3"
    finals = {label: games, "other": games[::-1], "idle": 100 + games}
    outcome = Outcome(compare(finals, level=0.05), (), None, 105.0)
    said = text_advise.answer("On this problem", outcome).splitlines()
    assert said[0] == f"On this problem: run {label} (nsd-ucrl2:radius_scale=0.3)."
    assert said[2:] == ["  Too close to call: other may be as good."]
    assert text_advise.no_better(outcome, 105.0) == ["idle"]


def test_what_few_games_do_not_show_and_what_cannot_be_learnt_is_said() -> None:
    games = np.array([1.0, 2.0, 3.0, 4.0])
    finals = {"bold": games, "usual": games + 0.5, "other": games + 9}
    outcome = Outcome(compare(finals, level=0.05), (), None, 3.1, frozenset({"bold"}), True)
    said = text_advise.answer("On this problem", outcome).splitlines()
    assert said[0] == "On this problem: run usual."
    few = "but 4 games are too few to tell how often that form fails"
    assert said[2] == f"  bold has 2.5, {few}: more --seconds would."
    assert said[3].startswith("  That is hardly better than playing at random")
    none = Outcome(compare({"a": 0 * games, "b": 0 * games}, level=0.05), (), None, 0.0)
    assert (
        text_advise.answer("On this problem", none)
        .splitlines()[2]
        .startswith("  On average no action is better than another")
    )


def test_everybody_looks_at_states_or_does_not() -> None:
    env = jb.make_environment("paper-utility", actions=4, states=3)
    without = {name for name, one in everybody().items() if not looks_at_states(one, env)}
    assert without == {
        "Thompson sampling", "DAda-Exp3, rate x 3", "UCB1", "UCB1, exploration 0.2", "DAda-Exp3",
        "Tsallis-INF", "QPM-D UCB1",
    }  # fmt: skip
    assert {type(one) for one in contestants().values()} <= {type(x) for x in everybody().values()}


class LooksInPassing(jb.UCB1):
    """Computes something of the states, which decides nothing."""

    def learn(self, state: Any, t: Any, play: Any, arrivals: Any) -> Any:
        _ = play.state + 1
        return super().learn(state, t, play, arrivals)


def test_who_looks_at_states_is_a_matter_of_what_follows_from_them() -> None:
    env = jb.make_environment("paper-utility", actions=4, states=3)
    assert not looks_at_states(jb.pytree(LooksInPassing)(), env)
    assert looks_at_states(jb.KnownLosses(jb.UCB1(), theta=[0.1, 0.2, 0.3]), env)
    for around in (jb.QPMD, jb.BOLD):
        assert not looks_at_states(around(jb.UCB1()), env)
        assert looks_at_states(around(jb.make_learner("nsd-ucrl2")), env)


def test_everybody_can_be_asked_for_by_name() -> None:
    for label, learner in everybody().items():
        spec = asked_as(label)
        assert spec is not None
        again = specs.learner(spec)[1]
        assert jax.tree.leaves(again) == jax.tree.leaves(learner), label
        assert jax.tree.structure(again) == jax.tree.structure(learner), label
    assert asked_as("mine") is None


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
        "metabio-tsallis",
        "metaadabio",
        "metaadabio-tsallis",
        "bold-exp3",
    ]
    assert not is_robust(jb.MetaBIO(jb.UCB1()))
    assert not is_robust(jb.MetaBIO(jb.DAdaExp3(), threshold="delay", delay=0))
    assert not is_robust(jb.Exp3(rate=1e-9))


def test_labels_do_not_decide_who_is_robust() -> None:
    """The best of all has no guarantee, and the label of one that has."""
    learners = {
        "mine": jb.make_learner("metabio-skipping"),
        "base": jb.DAdaExp3(),
        "metabio": jb.UCB1(),
    }
    found = advise(**problem(learners=learners, looks=1, first=8))
    assert found.recommended == "metabio"
    assert found.robust in ("base", "mine")


def made_up(
    names: Sequence[str], axes: Any, runs: int, value: float = 1.0
) -> tuple[xr.Dataset, tuple[int, ...]]:
    shape = (len(names), len(axes["place"]), runs)
    values = ("learner", "place", "run"), np.full(shape, value)
    return xr.Dataset({"final_regret": values}, {"learner": list(names)}), shape


def played_keys(monkeypatch: pytest.MonkeyPatch, seed: int) -> np.ndarray:
    """[runs, 2]: the key of every run that advice with this seed is made of."""
    keys = []

    def sweep(build: Any, learners: Any, axes: Any, **options: Any) -> xr.Dataset:
        keys.append(rng.run_keys(options["seed"], np.arange(options["runs"])).T)
        return made_up([*learners], axes, options["runs"])[0]

    monkeypatch.setattr(hall_advise, "sweep", sweep)
    monkeypatch.setattr(hall_advise, "TOGETHER", 3)  # all in one wave
    learners = {"one": jb.UCB1(), "other": jb.UCB1()}
    found = advise(**problem(seed=seed, learners=learners, looks=3, first=8))
    assert found.runs == sum(map(len, keys)) == 8 * 4
    return np.concatenate(keys)


def test_no_run_is_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in two looks, and not with another seed."""
    both = np.concatenate([played_keys(monkeypatch, seed) for seed in (0, 1)])
    assert len(np.unique(both, axis=0)) == len(both)


def test_a_run_counts_on_all_problems_of_the_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up games: the regret on a problem is an entry of its first mapping, times the number of
    its mappings where these differ.
    """

    def sweep(build: Any, learners: Any, axes: Any, *, runs: int, **_: Any) -> xr.Dataset:
        phases = [build(place=i).mapping.P_phases for i in axes["place"]]
        entries = [P[0, 0, 0] * (1 if (P[0] == P[1]).all() else 2) for P in phases]
        values = np.tile(np.array(entries)[:, None], (len(learners), 1, runs))
        made = ("learner", "place", "run"), values
        return xr.Dataset({"final_regret": made}, {"learner": list(learners)})

    monkeypatch.setattr(hall_advise, "sweep", sweep)
    found = advise(**problem(family="random", looks=1))
    problems = [drawn(2, 2, jb.FixedDelay(5), i) for i in range(8)]
    expected = np.mean([one.mapping.P[0, 0] for one in problems])
    assert [row.mean for row in found.overall.rows] == pytest.approx([expected] * len(everybody()))
    assert found.changing is not None
    assert found.changing.comparison.rows[0].mean == pytest.approx(2 * expected)


# --- time


def late(finals: dict[str, np.ndarray], rounds: int, played: int) -> Any:
    """A sweep whose time is over. finals: label -> regrets [runs] on both problems."""

    def sweep(build: Any, learners: Any, *_: Any, **__: Any) -> xr.Dataset:
        error = OutOfTime()
        error.finals = [(name, finals.get(name, np.ones(8))) for name in learners for _ in "12"]
        error.rounds, error.played = rounds, played
        raise error

    return sweep


def test_advice_speaks_of_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three learners are; of the third one run is missing."""
    known = {name: jb.UCB1() for name in ("far", "half", "near")}
    regrets = np.arange(8.0)
    finals = {"far": 100 + regrets, "half": np.where(regrets < 7, 0, np.nan), "near": regrets}
    monkeypatch.setattr(hall_advise, "sweep", late(finals, 1_000, 900))
    found = advise(**problem(learners=known, first=8, looks=1, seconds=600))
    assert found.unfinished == ("half",)
    assert [row.name for row in found.overall.rows] == ["near", "far"]
    assert (found.runs, found.overall.winner) == (8, "near")
    said = commands_advise.as_text(found, "utility")
    assert "Not finished in time, so not compared: half." in said
    assert commands_advise.as_dict(found)["unfinished"] == ["half"]


def test_too_little_time_says_how_much_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    none = {name: np.full(8, np.nan) for name in ("one", "other", "third", UNIFORM)}
    known = {name: jb.UCB1() for name in ("one", "other", "third")}
    clock = SimpleNamespace(now=0.0)
    play = late(none, 1_000, 200)

    def sweep(*args: Any, **options: Any) -> xr.Dataset:
        clock.now += 30.0  # of which 20 are compiling
        return play(*args, **options)

    monkeypatch.setattr(hall_advise, "sweep", sweep)
    for module in (lab_advise, playing_advise, hall_advise):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    said = (
        "seconds=10 are too few for advice: fewer than two learners finished; at this speed two "
        "take about 25 seconds of play, and all of them about 50"
    )
    with pytest.raises(ValueError, match=said):  # 200 of the rounds of four in 10 seconds
        advise(**problem(learners=known, first=8, seconds=10))


def test_no_wave_begins_when_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five learners and the yardstick, two at a time: the first wave takes all the time."""
    clock, waves = SimpleNamespace(now=0.0), []

    def sweep(build: Any, learners: Any, axes: Any, *, runs: int, **_: Any) -> xr.Dataset:
        clock.now += 20.0
        waves.append([*learners])
        return made_up([*learners], axes, runs)[0]

    monkeypatch.setattr(hall_advise, "sweep", sweep)
    for module in (lab_advise, playing_advise, hall_advise, tournament):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    known = {name: jb.UCB1() for name in "abcde"}
    found = advise(**problem(learners=known, seconds=19))
    assert waves == [["a", "b"]]
    assert found.unfinished == ("c", "d", "e")


def test_long_games_wait_for_the_others_and_are_played_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of four learners takes 40 of 90 seconds, when a third of what is left is 30."""
    clock, limits, waves = SimpleNamespace(now=0.0), [], []

    @contextmanager
    def limit(seconds: float, *, compiling: bool) -> Iterator[None]:
        limits.append(seconds)
        yield

    def sweep(build: Any, learners: Any, axes: Any, *, runs: int, **options: Any) -> xr.Dataset:
        waves.append([*learners])
        needed = 40.0 if "slow" in learners else 1.0
        clock.now += min(needed, limits[-1])
        if needed > limits[-1]:
            late({"slow": np.full(runs, np.nan)}, 10, 5)(build, learners)
        return made_up([*learners], axes, runs)[0]

    for module in (hall_advise, tournament):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(hall_advise, "time_limit", limit)
    monkeypatch.setattr(hall_advise, "sweep", sweep)
    known = {name: jb.UCB1() for name in ("slow", "a", "b", "c")}
    found = advise(**problem(learners=known, seconds=90, first=8, looks=1))
    assert waves == [["slow", "a"], ["b", "c"], [UNIFORM], ["slow"]]
    assert [round(seconds) for seconds in limits] == [30, 20, 59, 58]
    assert found.unfinished == ()


def test_who_has_short_games_begins_where_games_are_very_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders = []

    def sweep(build: Any, learners: Any, axes: Any, *, runs: int, **_: Any) -> xr.Dataset:
        orders[-1].extend(learners)
        return made_up([*learners], axes, runs)[0]

    monkeypatch.setattr(hall_advise, "sweep", sweep)
    for horizon in (400, 10**8):
        orders.append([])
        advise(**problem(horizon=horizon, looks=1))
    assert orders[0][:2] == ["Thompson sampling", "StateThompson"]
    assert orders[1][:4] == ["UCB1", "UCB1, exploration 0.2", "Thompson sampling", "StateThompson"]
    assert orders[0].index(UNIFORM) == 9
    assert set(orders[0]) - set(orders[1]) == {"StateThompson, exact"}


def test_seconds_bind_the_games() -> None:
    """Long games: without a limit they would take an hour."""
    learners = {"one": jb.UCB1(), "other": jb.UCB1()}
    with pytest.raises(ValueError, match=r"seconds=0\.2 are too few for advice"):
        advise(**problem(horizon=10**9, seconds=0.2, learners=learners))


def test_advice_goes_on_where_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = problem(seconds=600, looks=2, first=8, store=tmp_path)
    given["learners"] = {"one": jb.DAdaExp3(), "other": jb.DAdaExp3()}
    first = advise(**given)
    monkeypatch.setattr(importlib.import_module("jaxbio.sweeps.execute"), "play_block", None)
    assert advise(**given).overall == first.overall
    parts = sorted(place.name[:7] for place in tmp_path.iterdir())
    assert parts == ["look-0-", "look-0-", "look-1-"]  # of the two, of playing at random, of both


def test_the_problems_that_advice_is_checked_on_can_be_played() -> None:
    place = Path(__file__).parents[2] / "scripts" / "check_advice.py"
    spec = importlib.util.spec_from_file_location("check_advice", place)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert len(script.PROBLEMS) == 30
    assert len({one.name for one in script.PROBLEMS}) >= 8
    for one in script.PROBLEMS:
        for table in one.tables:
            script.environment(table, one.delays).check(one.horizon)


# --- families and what is refused


def test_random_problems_differ_and_come_back() -> None:
    build, instances, _ = FAMILIES["random"]
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


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_family_in_turns_is_the_same_problem_and_one_that_changes(name: str) -> None:
    """The same games while nothing changes, and the best action as far ahead."""
    family, delays = FAMILIES[name], jb.FixedDelay(3)
    found = in_turns(family, 3, 4, delays, 0)
    assert found is not None
    same, changing = found
    plain = family.build(3, 4, delays, 0)
    learner = jb.UCB1()
    given: dict[str, Any] = {"horizon": 300, "runs": 3, "progress": False}
    regrets = [jb.simulate(env, learner, **given).regret for env in (plain, same)]
    np.testing.assert_allclose(regrets[0], regrets[1], atol=1e-3)
    P = np.asarray(changing.mapping.P_phases)
    assert not np.allclose(P[0], P[1])
    np.testing.assert_array_equal(P[int(name == "utility")], plain.mapping.P)
    if name == "utility":
        costs = P @ np.asarray(changing.losses.theta)  # [2, K]
        ahead = costs - costs[:, :1]
        np.testing.assert_allclose(ahead, [[0, 0.32, 0.32]] * 2, atol=1e-6)


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
        (
            {"learners": {UNIFORM: jb.UCB1(), "y": jb.UCB1()}},
            "a learner cannot be called 'uniform play'",
        ),
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
