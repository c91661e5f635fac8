"""Advice for a log: the problems that are drawn, the numbers, the words, the command, the page."""

from __future__ import annotations

import dataclasses
import html
import importlib
import json
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pandas as pd
import pytest
from test_report import Tags

import jaxbio as jb
from jaxbio.analysis.statistics import of_margin
from jaxbio.data.holding.check import ModelChecks
from jaxbio.studies.advise import log_words
from jaxbio.studies.advise.from_log import digest, playable, store_name
from jaxbio.studies.advise.log_advice import Expected
from jaxbio.studies.advise.log_problems import LOGGED, RANDOM, LogProblems
from jaxbio.studies.advise.problems import CHANGING, STATIONARY, Draws
from jaxbio.studies.advise.turns import Turns, turns
from jaxbio.studies.contestants import uniform_play

main = importlib.import_module("jaxbio.cli.main").main
page = importlib.import_module("jaxbio.studies.advise.report.page")
html_of_pages = importlib.import_module("jaxbio.studies.html")

P = np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.2, 0.3, 0.5]])
THETA = np.array([0.2, 0.5, 0.8])
COLUMNS: dict[str, Any] = {"action": "arm", "state": "seen", "loss": "died", "delay": "late"}
SHOP: dict[str, Any] = {"time": "clicked", "action": "campaign", "state": "bucket",
                        "reward": "bought", "arrived": "bought_at"}  # fmt: skip
LEARNERS = {"looks": jb.make_learner("nsd-ucrl2"), "blind": jb.make_learner("ucb1")}


def trial(rows: int = 1_500, seed: int = 0, mappings: Any = (P,), late: int = 20) -> pd.DataFrame:
    """Arms at random; the mapping changes in steps; every outcome comes after some rounds."""
    generator = np.random.default_rng(seed)
    arm, part = generator.integers(3, size=rows), np.arange(rows) * len(mappings) // rows
    ends = np.cumsum(np.asarray(mappings)[part, arm], axis=1)
    seen = (generator.random(rows)[:, None] >= ends[:, :-1]).sum(axis=1)
    died = generator.random(rows) < THETA[seen]
    took = np.minimum(generator.geometric(1 / late, rows), 3 * late)  # one program for all logs
    arms = np.array(["a", "b", "c"])[arm]
    return pd.DataFrame({"arm": arms, "seen": seen, "died": died.astype(int), "late": took})


def read(table: pd.DataFrame, **changes: Any) -> jb.Log:
    return jb.read_log(table, **COLUMNS | changes)


def advised(log: jb.Log, **changes: Any) -> jb.LogAdvice:
    given: dict[str, Any] = {"learners": LEARNERS, "seconds": 600, "looks": 2, "first": 8}
    found = jb.advise(log=log, progress=False, **given | changes)
    assert isinstance(found, jb.LogAdvice)
    return found


@pytest.fixture(scope="module")
def found() -> jb.LogAdvice:
    """Of a log whose mapping changes: actions change places."""
    return advised(read(trial(mappings=(P, P[[1, 0, 2]]))), horizon=700)


# --- what the log changed


def moved(rows: int, seed: int, drift: float) -> Turns:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jb.LogWarning)  # rare states
        return turns(jb.read_log(jb.example_log(rows, seed, drift=drift), **SHOP))


def test_a_change_is_found_in_its_true_size() -> None:
    """The shop's mapping moves in a straight line; compared are the means of its first and of its
    last week. Of 30,000 rows the share has a standard error of about 0.006 (measured).
    """
    shop = jb.Shop(drift=1.0)
    early, late = (shop.mapping_at(share) for share in (1 / 8, 7 / 8))
    truth = float(np.abs(late - early).sum(axis=1) @ shop.probability / 2)
    shares = [moved(30_000, seed, 1.0).share for seed in range(5)]
    assert np.mean(shares) == pytest.approx(truth, abs=5 * 0.006 / np.sqrt(5))
    assert all((moved(30_000, seed, 1.0).p or 1) < 1e-6 for seed in range(2))


def test_a_small_change_keeps_its_size_too() -> None:
    """Of squared differences, on average: 60 logs in which chance makes as much as the change. The
    mean has a standard error of 12 %.
    """
    shop = jb.Shop(drift=1.0)
    change = shop.mapping_at(7 / 8) - shop.mapping_at(1 / 8)
    squares = [(moved(3_000, seed, 1.0).change ** 2).sum(axis=1) for seed in range(60)]
    truth = float((change**2).sum(axis=1) @ shop.probability)
    assert np.mean(squares @ shop.probability) == pytest.approx(truth, rel=0.24)


def test_chance_is_taken_off() -> None:
    """Of ten logs without a change about half show none at all, the others a fifth of what the
    plain difference of two parts would say (on average a half of it, squared, in the long run).
    """
    found = [moved(4_000, seed, 0.0) for seed in range(10)]
    assert 2 <= sum(not one.any for one in found) <= 8  # false alarm: 0.02
    assert np.mean([one.share for one in found]) < 0.02
    assert not np.any([one.change for one in found if not one.any])


def test_an_early_and_a_late_mapping_stay_distributions() -> None:
    change = np.array([[0.5, -0.5, 0.0], [-0.1, 0.1, 0.0], [0.0, 0.0, 0.0]])
    both = Turns(change, 0.2, 0.1, 4).applied(P)
    np.testing.assert_allclose(both.sum(axis=2), 1)
    assert both.min() >= 0
    np.testing.assert_allclose(both[:, 2], [P[2], P[2]])
    np.testing.assert_allclose(both[1, 1] - both[0, 1], change[1])
    np.testing.assert_allclose(both[1, 0], [0.95 / 1.05, 0.0, 0.1 / 1.05])


# --- problems


def problems(log: jb.Log, horizon: int = 700) -> LogProblems:
    return LogProblems(jb.fit(log), turns(log), horizon, seed=3)


def test_every_game_has_a_problem_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own world, in all looks; the same ones for all learners and kinds."""
    played: list[Any] = []
    hall = importlib.import_module("jaxbio.studies.advise.hall")
    sweep = hall.sweep

    def watched(environment: Any, learners: Any, axes: Any, **options: Any) -> Any:
        pairs = [(environment(kind="stationary", world=w).losses.theta.tobytes(), w)
                 for w in axes["world"]]  # fmt: skip
        played.append((tuple(learners), options["seed"], pairs, options["runs"]))
        return sweep(environment, learners, axes, **options)

    monkeypatch.setattr(hall, "sweep", watched)
    found = advised(read(trial(400, mappings=(P, P[[1, 0, 2]]))), horizon=50, looks=3)
    assert found.runs == 8 + 8 + 16
    thetas = [theta for _, _, pairs, _ in played for theta, _ in pairs]
    assert len(set(thetas)) == found.runs
    assert all(runs == 1 for *_, runs in played)
    numbers = Draws.numbers([8, 8, 16])
    assert len(set(numbers)) == 32


def test_draws_are_of_the_posterior() -> None:
    """Their mean is the fit's and they spread as its intervals say, to 5 standard errors."""
    log = read(trial(600))
    fit, drawn = jb.fit(log), problems(log)
    tables = np.array([drawn.draw(i)[STATIONARY].losses.theta for i in range(200)])
    spread = tables.std(axis=0)
    np.testing.assert_allclose(tables.mean(axis=0), fit.losses.mean, atol=5 * spread.max() / 14)
    wide = (fit.losses.high - fit.losses.low) / 4  # four standard errors wide
    np.testing.assert_allclose(spread, wide, rtol=0.4)


def test_long_delays_are_put_into_small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("jaxbio.studies.advise.log_problems")
    log = read(trial(3_000, late=400))
    fine = problems(log).draw(1)[STATIONARY].delays
    monkeypatch.setattr(module, "LARGE", 300)
    rough = problems(log).draw(1)[STATIONARY].delays
    assert fine.values is None
    assert len(rough.values) < 0.5 * fine.longest()
    means = [law.masses()[:-1] @ delays for law, delays in
             ((fine, np.arange(fine.longest() + 1)), (rough, rough.values))]  # fmt: skip
    assert means[0] == pytest.approx(means[1], rel=1e-3)


@pytest.mark.parametrize("kind", [STATIONARY, CHANGING])
def test_yardsticks_are_what_playing_gives(kind: str) -> None:
    """Playing at random, in 400 games of one problem, to 5 standard errors."""
    drawn = problems(read(trial(mappings=(P, P[[1, 0, 2]]))))
    env = drawn.draw(7)[kind]
    known = drawn.yardsticks(kind, [7])
    played = jb.simulate(env, *uniform_play().values(), horizon=700, runs=400, rounds=1,
                         progress=False).final_regret  # fmt: skip
    error = played.std() / 20
    assert played.mean() == pytest.approx(known[RANDOM][0], abs=5 * error)
    costs = drawn.costs[7][kind]
    assert known["always a"][0] == pytest.approx(costs[0] - costs.min())
    shares = drawn.fit.log.counts.sum(axis=1) / 1_500
    assert known[LOGGED][0] == pytest.approx(shares @ costs - costs.min())


def test_the_changing_problem_takes_turns_after_half_of_the_log() -> None:
    drawn = problems(read(trial(mappings=(P, P[[1, 0, 2]]))), horizon=2_000)
    both = drawn.draw(1)
    assert list(both[CHANGING].mapping.starts[:3]) == [1, 751, 1951]
    tables = both[CHANGING].mapping.P_phases
    np.testing.assert_allclose(tables, [P, P[[1, 0, 2]]], atol=0.15)
    middle = both[STATIONARY].mapping.P_phases
    np.testing.assert_allclose(middle[0], middle[1])
    np.testing.assert_allclose(middle[0], tables.mean(axis=0), atol=1e-9)


# --- the answer


def test_the_numbers_are_those_of_the_games(found: jb.LogAdvice) -> None:
    assert set(found.outcomes) == {STATIONARY, CHANGING}
    assert found.horizon == 700
    assert (found.asked, found.shortened) == (True, False)
    name = found.recommended
    games = found.finals[name][STATIONARY]
    assert found.runs == len(games) == 16
    own = of_margin(games)
    assert found.regret(name) == pytest.approx((own.mean, *own.interval()))
    saved = of_margin(found.yardsticks[STATIONARY][RANDOM] - games)
    assert found.saved() == pytest.approx((saved.mean, *saved.interval()))
    assert found.stationary.uniform == pytest.approx(found.yardsticks[STATIONARY][RANDOM].mean())
    row = found.overall[name]
    assert (row.low, row.high) == pytest.approx(found.regret(name)[1:])
    ends = found.curves[name][CHANGING][:, -1]
    np.testing.assert_allclose(ends, found.finals[name][CHANGING], rtol=1e-5)
    assert found.rounds[-1] == 700
    with pytest.raises(ValueError, match="name must be one of"):
        found.regret("nobody")


def test_the_answer_is_in_the_units_of_the_log(found: jb.LogAdvice) -> None:
    first, second = log_words.answer(found)
    regret = found.regret(found.recommended)
    assert f"to have {log_words.spread(regret)} of 'died' too many in 700 rounds" in first
    assert f"less of 'died' than {RANDOM}" in second
    whole = found.log.bounds
    assert whole == (0.0, 1.0)
    log = dataclasses.replace(found.log, bounds=(0.0, 50.0), names={**found.log.names,
                              "reward": "spent"})  # fmt: skip
    richer = dataclasses.replace(found, log=log)
    first, second = log_words.answer(richer)
    scaled = type(regret)(*(50 * value for value in regret))
    assert f"to miss {log_words.spread(scaled)} of 'spent' in 700 rounds" in first
    assert "more of 'spent' than" in second


def test_what_is_said_of_a_gain() -> None:
    """More or less, and both where that is open."""

    def said(games: list[float], reward: bool) -> str:
        names = {"reward" if reward else "loss": "x"}
        log = dataclasses.replace(EMPTY, names=names)
        made = Made(log, np.array(games))
        return log_words.gain(made, RANDOM)  # type: ignore[arg-type]

    assert said([10.0, 12.0], True) == "between 1.7 less and 23.7 more of 'x'"
    assert said([10.0, 10.1], True) == "10.1 (9.4 to 10.7) more of 'x'"
    assert said([10.0, 10.1], False) == "10.1 (9.4 to 10.7) less of 'x'"
    assert said([-10.0, -10.1], True) == "10.1 (9.4 to 10.7) less of 'x'"


EMPTY = read(trial(60))


class Made:
    """Only what `gain` asks for."""

    span = 1.0

    def __init__(self, log: jb.Log, games: np.ndarray) -> None:
        self.log, self.games = log, games

    def saved(self, against: str, kind: str) -> Any:
        mean = of_margin(self.games)
        return Expected(mean.mean, *mean.interval())


def test_the_text_begins_with_the_checks_that_fail(found: jb.LogAdvice) -> None:
    one = next(iter(found.checks))
    wrong = dataclasses.replace(one, holds=False, allowed=False, question="Is it so?",
                                sentence="It is.", remedy="leave it")  # fmt: skip
    right = dataclasses.replace(one, holds=True)

    def summary(*several: Any) -> str:
        whole = dataclasses.replace(found.checks, checks=several)
        assert isinstance(whole, ModelChecks)
        return dataclasses.replace(found, checks=whole).summary()

    said = summary(right, wrong).splitlines()
    assert said[0] == "READ THIS FIRST: the model does not hold in this log."
    assert said[1] == "- Is it so? Yes. It is. What to do: leave it."
    assert "READ THIS" not in summary(right, dataclasses.replace(wrong, allowed=True))


def test_a_log_that_knows_the_best_action_says_so(found: jb.LogAdvice) -> None:
    said = " ".join(log_words.more(found))
    assert "the log already says which action is best" in said
    assert found.best_looking == "a"
    unsure = dataclasses.replace(found, yardsticks={
        kind: {name: values + 500 for name, values in own.items()}
        for kind, own in found.yardsticks.items()})  # fmt: skip
    assert "already says" not in " ".join(log_words.more(unsure))


def test_what_changed_is_said(found: jb.LogAdvice) -> None:
    assert "of the rounds came to show another state" in log_words.changes(found)
    still = dataclasses.replace(found, turns=Turns(np.zeros((3, 3)), 0.0, 0.4, 2))
    assert "did not change over the log by more than chance explains (p = 0.4" in (
        log_words.changes(still)
    )


def test_a_log_without_a_change_is_played_once() -> None:
    seed = next(seed for seed in range(9) if not turns(read(trial(300, seed))).any)
    found = advised(read(trial(300, seed)), looks=1)
    assert found.changing is None
    assert set(found.yardsticks) == {STATIONARY}
    assert found.horizon == 300
    assert "as many as the log has decisions" in log_words.length(found)
    assert found.recommended_if_changing is None
    costs = 300 * (found.fit.mapping.mean @ found.fit.losses.mean)  # of one draw, by and large
    known = found.yardsticks[STATIONARY][RANDOM].mean()
    assert known == pytest.approx(costs.mean() - costs.min(), rel=0.3)


def test_horizons_that_cannot_be_played_are_shortened_and_said(found: jb.LogAdvice) -> None:
    log = read(trial(30_000))
    assert playable(log, 45) == 30_000
    assert playable(log, 4) == 20_000
    assert playable(log, 0.01) == 1_000
    short = dataclasses.replace(found, asked=False)
    assert short.shortened
    assert "Games have 700 rounds, not the 1,500 of the log" in log_words.length(short)


def test_conversions_tell_the_window_and_one_that_is_too_long(found: jb.LogAdvice) -> None:
    """The games are of another log, the words of a shop's."""
    log = jb.read_log(jb.example_log(2_000, 1), **SHOP)
    found = dataclasses.replace(found, log=log, fit=jb.fit(log, window=250))
    said = " ".join(log_words.limits(found))
    assert "What has not come after 250 rounds (about 3.5 days) counts as not coming" in said
    assert "as long as a whole game" not in said
    longer = dataclasses.replace(found, horizon=250)
    assert "as long as a whole game" in " ".join(log_words.limits(longer))
    assert found.to_dict()["kind"] == "conversions"
    assert "to miss" in found.summary()


def test_advice_for_a_log_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = read(trial(300, mappings=(P, P[[1, 0, 2]])))
    first = advised(log, store=tmp_path)
    monkeypatch.setattr(importlib.import_module("jaxbio.sweeps.execute"), "play_block", None)
    assert advised(log, store=tmp_path).overall == first.overall


def test_stores_are_named_after_the_content_of_a_log() -> None:
    table = trial(300)
    again = store_name(read(table), 1)
    assert store_name(read(table), 1) == again
    assert store_name(read(table), 2) != again
    other = table.assign(died=1 - table.died)
    assert digest(read(other)) != digest(read(table))
    assert digest(read(table, high=2.0)) != digest(read(table))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actions": 3}, "log brings its own actions: leave it out, but got actions=3"),
        ({"delays": jb.FixedDelay(3)}, "log brings its own delays"),
        ({"family": "utility"}, "log brings its own family"),
        ({"log": "shop.csv"}, "log must be a Log, which read_log makes, but got 'shop.csv'"),
        ({"kind": "odd"}, "kind must be one of 'outcomes', 'conversions'"),
        ({"seed": 1.5}, "seed must be an integer"),
        ({"horizon": 0}, "horizon must be at least 1|horizon must be"),
    ],
)
def test_bad_questions_about_a_log_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        jb.advise(**{"log": EMPTY, "progress": False} | change)  # type: ignore[arg-type]


def test_a_question_is_about_a_size_or_a_log() -> None:
    with pytest.raises(TypeError, match="horizon and delays, or a log, but states is missing"):
        jb.advise(actions=3)
    with pytest.raises(ValueError, match="only a log has a window"):
        jb.advise(actions=3, states=3, horizon=9, delays=jb.FixedDelay(1), window=3)


# --- the command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    trial(300, mappings=(P, P[[1, 0, 2]])).to_csv("trial.csv", index=False)
    return tmp_path


COMMAND = "jaxbio.studies.advise.log_command"
ASKED = ["advise", "--log", "trial.csv", "--action", "arm", "--state", "seen", "--loss", "died",
         "--delay", "late"]  # fmt: skip


def test_from_a_file_to_the_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page, "_picture", lambda drawing: drawing.caption)  # drawing takes long
    asked = partial(jb.advise, looks=1, first=8)
    monkeypatch.setattr(importlib.import_module(COMMAND), "advise", asked)
    words = [*ASKED, "--learners", "nsd-ucrl2", "ucb1", "--seconds", "300", "--horizon", "60",
             "--report", "made/page.html", "--quiet"]  # fmt: skip
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["recommended"] in ("nsd-ucrl2", "ucb1")
    assert said["report"] == "made/page.html"
    assert said["problems"]["stationary"]["yardsticks"][RANDOM]["regret"]["mean"] > 0
    text = (folder / "made" / "page.html").read_text()
    assert "jaxbio advise --log trial.csv" in text
    assert "Which learner to run: trial.csv" in text
    stores = list((folder / "results" / "advise" / "store").iterdir())
    assert len(stores) == 1
    assert main(words) == 0
    assert list((folder / "results" / "advise" / "store").iterdir()) == stores
    assert capsys.readouterr().out.rstrip().endswith("report: made/page.html")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*ASKED, "--actions", "3"], "--log brings its own actions: leave --actions out"),
        ([*ASKED, "--family", "random"], "--log brings its own family"),
        (["advise", "--log", "trial.csv", "--state", "seen"], "--log needs --action COLUMN"),
        (ASKED[:-4], "--log needs --loss COLUMN or --reward COLUMN, the outcome, but neither"),
        (["advise", "--states", "3"], "--actions must be given, or --log FILE"),
        (["advise", "--actions", "3", "--states", "3", "--time", "x"], "--time is of a log"),
        ([*ASKED, "--report", "page.txt"], "'page.txt' must end in .html"),
        ([*ASKED, "--report", "trial.csv/x.html"], "--report cannot be written"),
        ([*ASKED[:4], "cat", *ASKED[5:]], "cat"),
    ],
)
def test_what_is_wrong_with_a_question_is_said_in_a_line(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main([*words, "--quiet"])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1


# --- the page


LONG = "a-campaign-with-a-very-long-name-without-any-space-as-made-by-a-machine-{}"


@pytest.fixture(scope="module")
def pages(found: jb.LogAdvice, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of a small log, and of one with many labels that are long."""
    place = tmp_path_factory.mktemp("page")
    table = trial(1_200)
    generator = np.random.default_rng(0)
    many = table.assign(
        arm=[LONG.format(i) for i in generator.integers(30, size=1_200)],
        seen=[f"<b>{i}</b> of the states" for i in generator.integers(25, size=1_200)],
    )
    other = advised(read(many), looks=1, horizon=60, first=2)
    command = "jaxbio advise --log " + "x" * 300
    small = jb.write_report(found, place / "small.html", command=command, title=LONG)
    with pytest.MonkeyPatch.context() as patched:  # drawn for a phone only, which takes less time
        patched.setattr(page, "VARIANTS", [one for one in page.VARIANTS if one.look.narrow])
        patched.setattr(html_of_pages, "SHOWN", ("light-narrow", "dark-narrow"))
        patched.setattr(html_of_pages, "SOURCES", {"dark-narrow": html_of_pages.DARK})
        many = jb.write_report(other, place / "many.html", command=command, title=LONG)
    return {"small": small, "many": many}


def test_the_page_stands_alone_and_has_all(pages: dict[str, Path], found: jb.LogAdvice) -> None:
    text = pages["small"].read_text(encoding="utf-8")
    tags = Tags(text)
    for _, attributes in tags.found:
        for name in ("src", "href", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:"))
    assert not tags.named("script")
    assert not tags.named("b")
    assert {one["id"] for one in tags.named("figure")} == {
        "mapping", "losses", "delays", "regret", "worth",
    }  # fmt: skip
    plain = html.unescape(text)
    for sentence in (*log_words.answer(found), *log_words.limits(found), log_words.changes(found)):
        assert sentence in plain
    for one in found.checks:
        assert one.question in plain
    answers = [span["class"] for span in tags.named("span")]
    assert len(answers) == len(found.checks)
    assert plain.index("<h1>") < plain.index(log_words.answer(found)[0]) < plain.index("<h2>")
    assert len(text) < 3_000_000


def test_words_of_the_log_are_words_on_the_page(pages: dict[str, Path]) -> None:
    tags = Tags(pages["many"].read_text(encoding="utf-8"))
    assert not tags.named("b")


in_browser = pytest.mark.skipif(browser.CHROMIUM is None, reason="Chromium is not installed")


@in_browser
@pytest.mark.parametrize(("name", "width"), [("small", 390), ("small", 1280), ("many", 390)])
def test_the_page_fits_its_reader(
    pages: dict[str, Path], name: str, width: int, tmp_path: Path
) -> None:
    seen = browser.look_at(pages[name], width, tmp_path)
    assert seen.console == []
    assert seen.needed <= width, "the page must be scrolled sideways"
    assert len(seen.images) >= 4
    for image in seen.images:
        assert image["shown"]
        assert image["natural"] > 0
        assert image["height"] > 60
        assert 0 <= image["left"] < image["right"] <= width


def test_a_page_is_of_advice_for_a_log(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="advice must be what jb"):
        jb.write_report("x", tmp_path / "x.html")  # type: ignore[arg-type]
