"""Learners, problems, laws and families of the user's own in commands and in files."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import jaxbio as jb
from jaxbio.cli import main as cli
from jaxbio.studies import specs
from jaxbio.studies.advise import command as advise_command
from jaxbio.studies.contest import command as contest_command

MINE = '''
import numpy as np

import jaxbio as jb


class Greedy(jb.UCB1):
    """UCB1 under another name."""


jb.pytree(Greedy)
bold = Greedy(0.1)


def problem(gap=0.2, delays=None):
    P = np.array([[0.5 + gap, 0.5 - gap], [0.5, 0.5]])
    delays = jb.FixedDelay(5) if delays is None else delays
    return jb.Environment(jb.StochasticMapping(P), jb.BernoulliLosses([0.2, 0.8]), delays)


def fixed():
    return problem()


ready = problem(0.3)
Law = jb.UniformDelay
law = jb.UniformDelay(2, 4)
number = 5


def family(actions, states, delays, instance=0):
    return jb.make_environment("paper-utility", actions=actions, states=states, delays=delays)


def broken(gap=0.1):
    raise KeyError("no such file")


def anything(**options):
    return jb.UCB1(**options)
'''
SMALL = ["--horizon", "1e2", "--runs", "4", "--quiet"]


@pytest.fixture(autouse=True)
def mine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    Path("mine.py").write_text(MINE)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert cli.main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def problem(gap: float, delays: Any) -> jb.Environment:
    return specs.environment("mine:problem", {"gap": gap, "delays": delays}, None)


def test_run_plays_what_is_the_user_s(capsys: pytest.CaptureFixture[str]) -> None:
    """A class with an option, an object that is ready, and a name in other letters."""
    words = ["mine:problem:gap=0.3", "mine:Greedy:exploration=0.3", "mine:bold", "UCB1"]
    found = printed(capsys, "run", *words, "--delay", "mine:Law:2,high=4", *SMALL)
    assert "mine" in sys.modules
    assert "" not in sys.path[1:]
    env = problem(0.3, jb.UniformDelay(2, 4))
    for label, learner in zip(words[1:], (jb.UCB1(0.3), jb.UCB1(0.1), jb.UCB1()), strict=True):
        result = jb.simulate(env, learner, horizon=100, runs=4, progress=False)
        assert found[label]["regret"] == pytest.approx(result.final_regret.mean()), label
    ready = specs.environment("mine:ready", {}, "laplace:9,2")
    assert (ready.delays.location, ready.mapping.P[0, 0]) == (9, 0.8)
    assert specs.delays("mine:law").longest() == 4


GRID = """
horizon = 100
runs = 4
output = "grid.nc"
[environment]
name = "mine:problem"
gap = "$gap"
delay = "mine:Law:2,$late"
[learners.mine]
name = "mine:Greedy:exploration=0.3"
[learners.also]
name = "mine:Greedy"
exploration = "$exploration"
[axes]
late = [3, 4]
gap = [0.1, 0.3]
exploration = [0.3, 1.0]
"""


def test_a_sweep_of_a_file_does(capsys: pytest.CaptureFixture[str]) -> None:
    Path("grid.toml").write_text(GRID)
    printed(capsys, "sweep", "grid.toml", "--quiet")
    with xr.open_dataset("grid.nc", engine="scipy") as data:
        env = problem(0.3, jb.UniformDelay(2, 4))
        alone = jb.simulate(env, jb.UCB1(0.3), horizon=100, runs=4, progress=False).final_regret
        cell = data.final_regret.sel(late=4, gap=0.3, exploration=0.3)
        np.testing.assert_array_equal(cell.sel(learner="mine"), alone)
        np.testing.assert_array_equal(cell.sel(learner="also"), alone)


def test_tune_begins_with_a_class_of_the_user_s(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tune", "mine:problem", "mine:Greedy", "--param", "exploration=0.5", *SMALL]
    words += ["--steps", "2", "--held-out", "4"]
    mine = printed(capsys, *words)
    usual = printed(capsys, *[word.replace("mine:Greedy", "ucb1") for word in words])
    assert mine == usual
    names = [one.name for one in Path("results/tune/store").iterdir()]
    assert len(names) == 2
    del sys.modules["mine"]
    Path("mine.py").write_text(MINE.replace("gap=0.2", "gap=0.25"))
    printed(capsys, *words)
    assert len(list(Path("results/tune/store").iterdir())) == 3, "another problem, another store"


def test_advice_and_contests_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without playing: what the functions of Python are handed."""
    met: dict[str, Any] = {}

    def in_place_of(function: Any) -> Any:
        @functools.wraps(function)  # commands read its defaults
        def noted(*args: Any, **given: Any) -> None:
            met.update(given)
            raise ValueError("enough")

        return noted

    monkeypatch.setattr(advise_command, "advise", in_place_of(jb.advise))
    words = ["advise", "--actions", "3", "--states", "2", "--family", "mine:family:instance=7"]
    assert cli.main([*words, "--learners", "mine:bold", "exp3", "--delay", "mine:Law:1,9"]) == 2
    assert list(met["learners"]) == ["mine:bold", "exp3"]
    assert met["delays"].longest() == 9
    assert met["family"].keywords == {"instance": 7}
    monkeypatch.setattr(contest_command, "contest", in_place_of(jb.contest))
    words = ["contest", "--size", "small", "--classes", "mine:ready", "Bursts"]
    assert cli.main([*words, "--entrants", "metabio", "mine:Greedy:exploration=0.5"]) == 2
    assert list(met["classes"]) == ["mine:ready", "bursts"]
    assert met["classes"]["mine:ready"]["own"].num_actions == 2
    assert len(met["classes"]["bursts"]) == 3
    assert list(met["entrants"]) == ["MetaBIO", "mine:Greedy:exploration=0.5"]
    assert met["entrants"]["mine:Greedy:exploration=0.5"].exploration == 0.5
    assert cli.main(["contest", "--classes", "stochastic", "--entrants", "UCB1", "exp3"]) == 2
    assert met["classes"] == ["stochastic"]
    assert list(met["entrants"]) == ["UCB1", "Exp3"]


REFUSED = {
    "mine:problem nothing": "learner name must be one of",
    "mine:problem nowhere:Greedy": "learner 'nowhere:Greedy' cannot be imported: No module named",
    "mine:problem mine:Gredy": "learner 'mine:Gredy': module 'mine' has no 'Gredy': did you mean "
    "'Greedy'?",
    "mine:problem mine:number": "learner 'mine:number' must be a learner (with init, act and "
    "learn), or a class or a function that makes one, but it is 5",
    "mine:problem mine:Law": "learner 'mine:Law': UniformDelay.__init__() missing 2 required",
    "mine:problem mine:fixed": "learner 'mine:fixed': what 'fixed' makes must be a learner with "
    "init, act and learn, but Environment",
    "mine:problem mine:bold:exploration=2": "learner 'mine:bold:exploration=2': 'bold' is made "
    "already, so it has no options",
    "mine:problem mine:Greedy:explorer=2": "'Greedy' has no option 'explorer'; it has "
    "exploration, discount: did you mean 'exploration'?",
    "mine:problem mine:Greedy:exploration=-1": "exploration must be at least 0",
    "mine:Greedy ucb1": "environment 'mine:Greedy': what 'Greedy' makes must be an Environment",
    "mine:number ucb1": "environment 'mine:number' must be an Environment, or a function",
    "mine:fixed ucb1 --delay 3": "'fixed' has no option 'delays'; it has none",
    "mine:problem:gap=1 ucb1 --set gap 2": "option 'gap' is set twice, to 1 and 2",
    "mine:ready ucb1 --set gap 2": "'ready' is made already, so it has no options",
    "mine:broken ucb1": "KeyError: 'no such file' (unexpected: --debug shows where) (raised by "
    "mine:broken)",
    "mine:problem ucb1 --delay mine:number": "delay 'mine:number' must be a law of delays",
    "mine:problem ucb1 --delay mine:Law:1": "delay 'mine:Law:1': UniformDelay.__init__() missing",
    "mine:problem ucb1 --delay mine:problem": "what 'problem' makes must be such as FixedDelay(50)",
    "mine:problem ucb1 --delay laplse:5,2": "but got 'laplse': did you mean 'laplace'?",
    "mine:problem ucb1 --delay soon": "delay 'soon' must be a number, or a law with its numbers",
    "mine:problem ucb1 --delay empirical:no.csv": "no.csv cannot be read: No such file",
    "mine:problem ucb1 --delay empirical:bad.csv": "bad.csv must have one delay a line, a whole "
    "number of rounds, but line 3 is 'soon'",
    "mine:problem ucb1 --delay empirical:empty.csv": "empty.csv must have delays, one a line",
    "mine:problem uc1": "but got 'uc1': did you mean 'ucb1'?",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_wrong_is_said_in_a_line(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.csv").write_text("delay\n5\nsoon\n")
    Path("empty.csv").write_text("delay\n")
    assert cli.main(["run", *words.split(), *SMALL]) in (1, 2)
    said = capsys.readouterr().err
    assert REFUSED[words] in said
    assert said.count("\n") == 1


def test_options_that_a_function_takes_whatever_they_are() -> None:
    assert specs.learner("mine:anything:exploration=0.7")[1].exploration == 0.7


def test_delays_of_a_file() -> None:
    Path("seen.csv").write_text("late\n5\n7.0\n\n5\n1e1\n")
    law = specs.delays("empirical:seen.csv")
    np.testing.assert_array_equal(law.masses(), [0, 0, 0, 0, 0, 0.5, 0, 0.25, 0, 0, 0.25, 0])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("rnu", "invalid choice: 'rnu'"),
        ("rnu", ": did you mean 'run'?"),
        ("run paper-stochastc ucb1", ": did you mean 'paper-stochastic'?"),
        ("contest --classes burst", ": did you mean 'bursts'?"),
        ("run paper-stochastic ucb1 --runs 1.5", "must be a whole number, such as 10000 or 1e4"),
        ("run paper-stochastic ucb1 --runs 1e999", "must be a whole number, such as 10000 or 1e4"),
    ],
)
def test_words_of_the_parser(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(words.split())
    assert end.value.code == 2
    assert said in capsys.readouterr().err


def test_whole_numbers_in_any_form() -> None:
    words = ["run", "Paper-Stochastic", "ucb1", "--horizon", "1e4", "--runs", "2_000"]
    found = cli.parser().parse_args(words)
    assert (found.horizon, found.runs) == (10_000, 2_000)
    assert type(found.horizon) is int
