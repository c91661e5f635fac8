"""Tournaments on made-up games: who leaves, how often wrongly, and what time allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from jaxbio.studies.advise import tournament
from jaxbio.studies.advise.tournament import Finals, Tournament

Made = Callable[[np.random.Generator, int], dict[str, np.ndarray]]


def held(
    made: Made,
    groups: tuple[list[str], list[str]],
    looks: int = 6,
    level: float = 0.05,
    seed: int = 0,
    yardstick: str | None = None,
    kinds: tuple[str, ...] = ("one",),
    **more: Any,
) -> Tournament:
    """A tournament with regrets [runs] from a function of a generator and the number of runs."""
    generator = np.random.default_rng(seed)

    def play(names: Sequence[str], look: int, runs: int, seconds: float) -> Finals:
        found = {kind: made(generator, runs) for kind in kinds}
        return {name: {kind: found[kind][name] for kind in kinds} for name in names}

    games = [32 * 2 ** max(look - 1, 0) for look in range(looks)]
    one = Tournament(groups, yardstick, games, level, kinds, resamples=20, **more)
    order = [*groups[0], *groups[1], *([yardstick] if yardstick else [])]
    one.hold(play, order, 1e9)
    return one


def around(means: dict[str, float]) -> Made:
    """Noise that runs share, and noise of their own."""

    def made(generator: np.random.Generator, runs: int) -> dict[str, np.ndarray]:
        shared = generator.normal(0, 1, runs)
        return {name: mean + shared + generator.normal(0, 1, runs) for name, mean in means.items()}

    return made


def test_the_beaten_leave_and_the_best_of_both_groups_stay() -> None:
    """The second with states is far better than the worst without: each is judged by its group. It
    stays while games are few: there is nobody else, should the best one fail after all.
    """
    means = {"s": 10.0, "s, worse": 20.0, "n": 10.01, "n, nearly": 10.02, "n, worse": 80.0}
    one = held(around(means), (["s", "s, worse"], ["n", "n, nearly", "n, worse"]))
    assert one.left == {"s, worse": 256, "n, worse": 32}
    assert one.names == ["s", "n", "n, nearly"]
    assert one.runs == 1024
    found = one.outcomes["one"]
    assert found.comparison.winner is None
    assert [(left.name, left.runs) for left in found.left] == [("n, worse", 32), ("s, worse", 256)]
    assert found.left[1].low < 20 < found.left[1].high


def test_while_games_are_few_another_kind_of_learner_stays() -> None:
    """Two forms of "a" are far ahead, and might fail after all: then "b" is the best."""
    means = {"a1": 10.0, "a2": 10.5, "b": 30.0, "c": 60.0}
    one = held(around(means), ([*means], []), form_of=lambda name: name[0])
    assert one.left["c"] == 32
    assert one.left["b"] == 256
    assert "a1" in one.names


def test_an_unusual_form_is_named_where_it_is_surely_better_or_far_ahead() -> None:
    groups, unusual = (["form", "usual"], ["n"]), frozenset({"form"})

    def named(looks: int, usual: float) -> tuple[str | None, str]:
        means = {"form": 10.0, "usual": usual, "n": 50.0}
        one = held(around(means), groups, looks=looks, unusual=unusual)
        return one.outcomes["one"].comparison.winner, one.outcomes["one"].named

    for looks, name in ((1, "usual"), (3, "usual"), (4, "form")):  # of 32, 128 and 256 games
        assert named(looks, 14.0) == ("form", name)
    assert named(1, 25.0) == ("form", "form")
    assert named(4, 10.05) == (None, "usual")  # too close to call


def test_a_tournament_ends_when_all_is_known() -> None:
    """Who is best, and what states are worth, to within 5 % of the regret."""
    one = held(around({"s": 10.0, "n": 50.0}), (["s"], ["n"]))
    found = one.outcomes["one"]
    assert (one.runs, found.comparison.winner, found.decided) == (256, "s", True)
    assert found.worth is not None
    assert found.worth.low < 10 / 50 < found.worth.high


def test_what_wins_on_one_kind_of_problem_stays() -> None:
    kinds = ("one", "other")
    turn = [0]

    def made(generator: np.random.Generator, runs: int) -> dict[str, np.ndarray]:
        turn[0] += 1
        a, b = (10.0, 90.0) if turn[0] % 2 else (90.0, 10.0)
        return around({"a": a, "b": b, "c": 100.0})(generator, runs)

    one = held(made, (["a", "b", "c"], []), looks=2, kinds=kinds)
    assert one.left == {"c": 32}
    assert [one.outcomes[kind].comparison.winner for kind in kinds] == ["a", "b"]
    assert one.outcomes["one"].worth is None


def test_the_yardstick_plays_once() -> None:
    means = {"a": 10.0, "b": 10.0, "idle": 300.0}
    one = held(around(means), (["a"], ["b"]), looks=3, yardstick="idle")
    assert len(one.finals["idle"]["one"]) == 32
    assert one.runs == 128
    assert one.outcomes["one"].uniform == pytest.approx(300, abs=1)
    assert {row.name for row in one.outcomes["one"].comparison.rows} == {"a", "b"}


def test_worth_is_measured_on_games_that_did_not_choose() -> None:
    """Ten equals in each group: the one that looks best on the games it was chosen by has, on the
    same games, a mean that is too low by about 1.5 standard errors.
    """
    groups = [f"s{i}" for i in range(10)], [f"n{i}" for i in range(10)]
    means = dict.fromkeys([*groups[0], *groups[1]], 10.0)
    one = held(around(means), groups, looks=2)
    found = one.outcomes["one"].worth
    assert found is not None
    assert found.fresh
    assert found.runs == 32
    first = {name: own["one"][:32] for name, own in one.finals.items()}
    later = {name: own["one"][32:] for name, own in one.finals.items()}
    chosen = [min(group, key=lambda name: first[name].mean()) for group in groups]
    assert [found.with_states, found.without] == chosen
    assert found.ratio == later[chosen[0]].mean() / later[chosen[1]].mean()


def test_no_worth_where_regrets_are_not_positive() -> None:
    one = held(around({"a": 0.0, "b": -5.0}), (["a"], ["b"]), looks=1)
    assert one.outcomes["one"].worth is None


@pytest.mark.slow
def test_looking_often_does_not_make_a_winner_of_chance() -> None:
    """Two equals, one in each group: among 400 tournaments at most 5 % may name a winner: 20 at the
    level, and more than 35 have a probability of 6e-4.
    """
    groups = (["a"], ["b"])
    named = sum(
        held(around({"a": 100.0, "b": 100.0}), groups, level=0.05, seed=seed)
        .outcomes["one"].comparison.winner is not None
        for seed in range(400)
    )  # fmt: skip
    assert named <= 35


@pytest.mark.slow
def test_one_of_the_best_rarely_leaves() -> None:
    """Five equals and one that is far behind: among 300 tournaments at most 5 % may lose one of the
    equals: 15 at the level, and more than 28 have a probability of 6e-4.
    """
    equals = ["a", "b", "c", "d", "e"]
    means = dict.fromkeys(equals, 100.0) | {"far": 110.0}
    lost = 0
    for seed in range(300):
        one = held(around(means), ([*equals, "far"], []), looks=3, seed=seed)
        assert "far" in one.left
        lost += len(one.left) > 1
    assert lost <= 28


# --- time


class Clock:
    """Games take what they are told to, and all learners are equal."""

    def __init__(self, first: float, per_game: float) -> None:
        self.now, self.first, self.per_game, self.games = 0.0, first, per_game, []

    def monotonic(self) -> float:
        return self.now

    def play(self, names: Sequence[str], look: int, runs: int, seconds: float) -> Finals:
        needed = runs * self.per_game + self.first * (not self.games)
        self.games.append(runs)
        self.now += needed if look == 0 else min(needed, seconds)
        done = look == 0 or needed <= seconds
        return {name: {"one": np.ones(runs)} for name in names} if done else {}


@pytest.mark.parametrize(
    ("first", "per_game", "seconds", "games"),
    [
        (5.0, 0.01, 9.0, [32, 32, 64, 128]),  # compiling takes long: look 4 would end at 10.12
        (0.0, 1.0, 45.0, [32, 32]),  # a second one may be quick: it has 13 seconds, and is given up
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
    monkeypatch.setattr(tournament, "time", clock)
    every = [32 * 2 ** max(look - 1, 0) for look in range(6)]
    one = Tournament((["a"], ["b"]), None, every, 0.05, ("one",))
    one.hold(clock.play, ["a", "b"], seconds)
    assert clock.games == games
    given_up = games == [32, 32] and seconds == 45
    assert one.runs == (32 if given_up else sum(games))
    assert clock.now <= max(seconds, first + 32 * per_game)


def half_played(at: int) -> tuple[Tournament, list[int]]:
    """A tournament of three, of which "c" is not finished in look `at`."""
    asked = []

    def play(names: Sequence[str], look: int, runs: int, seconds: float) -> Finals:
        asked.append(runs)
        done = [name for name in names if look < at or name != "c"]
        return {name: {"one": np.ones(runs)} for name in done}

    one = Tournament((["a", "b", "c"], []), None, [8, 8, 16], 0.05, ("one",))
    one.hold(play, ["a", "b", "c"], 1e9)
    return one, asked


def test_who_is_not_finished_in_the_first_look_plays_no_further() -> None:
    one, asked = half_played(0)
    assert one.unfinished == ("c",)
    assert asked == [8, 8, 16]
    assert one.runs == 32
    assert {row.name for row in one.outcomes["one"].comparison.rows} == {"a", "b"}


def test_a_later_look_that_time_cut_short_does_not_count() -> None:
    one, asked = half_played(2)
    assert asked == [8, 8, 16]
    assert one.unfinished == ()
    assert one.runs == 16


def test_ratios_of_means_cover_the_truth() -> None:
    """Two dependent means, 3 and 2, of 40 runs: among 2,000 intervals of 95 % between 93.0 % and
    96.7 % cover 1.5 (four standard errors, and the delta method's own error of half a percent).
    """
    from jaxbio.analysis.statistics import ratio_of_means

    generator = np.random.default_rng(5)
    shared = generator.normal(0, 0.5, (2_000, 40))
    values = 3 + shared + generator.normal(0, 0.5, shared.shape)
    base = 2 + shared + generator.normal(0, 0.5, shared.shape)
    ratio, low, high = ratio_of_means(values, base)
    assert ratio.mean() == pytest.approx(1.5, abs=0.01)
    covered: Any = (low < 1.5) & (high > 1.5)
    assert 0.93 <= covered.mean() <= 0.967
    assert np.isnan(ratio_of_means(values[0], -base[0])).all()
