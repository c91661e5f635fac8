"""The command line: what it prints, what it saves, how it ends."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from PIL import Image

import jaxbio as jb
from jaxbio.cli import bench, run, sweep_file, sweep_summary, tuning
from jaxbio.cli import main as cli
from jaxbio.studies import specs
from jaxbio.studies.advise import command as advise
from jaxbio.studies.beyond import command as beyond
from jaxbio.studies.beyond.study import play_beyond
from jaxbio.studies.contest import command as contest
from jaxbio.studies.guarantees import command as guarantees
from jaxbio.studies.paper import command as reproduce
from jaxbio.studies.paper.experiment import Options
from jaxbio.studies.phase import command as phase
from jaxbio.studies.rates import command as rates
from jaxbio.studies.regimes import command as regimes
from jaxbio.studies.regimes.study import play_regimes
from jaxbio.studies.violations import command as violations

SMALL = ["--horizon", "200", "--runs", "8", "--quiet"]


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert cli.main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of an error, with exit code 2."""
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith("jaxbio: ")
    assert len(said.splitlines()) == 1
    return said


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "list")
    assert tuple(found["learners"]) == jb.learner_names()
    assert tuple(found["environments"]) == jb.environment_names()
    assert list(found["experiments"]) == ["1", "2", "3", "4", "5"]
    assert all(line for entries in found.values() for line in entries.values())
    cli.main(["list"])
    text = capsys.readouterr().out
    assert all(name in text for entries in found.values() for name in entries)


@pytest.mark.parametrize("script", bench.SCRIPTS)
def test_every_benchmark_on_offer_is_there(script: str) -> None:
    assert (Path(__file__).parents[2] / "benchmarks" / f"{script}.py").is_file()


def test_run_plays_what_simulate_plays(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figure = tmp_path / "deep" / "figure.png"
    words = ["run", "paper-utility", "metabio:delta=0.05", "--set", "states", "5"]
    found = printed(capsys, *words, "--delay", "9", *SMALL, "--figure", str(figure))
    env = jb.make_environment("paper-utility", states=5, delays=jb.FixedDelay(9))
    learner = jb.make_learner("metabio", delta=0.05)
    result = jb.simulate(env, learner, horizon=200, runs=8, progress=False)
    row = found["metabio:delta=0.05"]
    assert row["regret"] == result.final_regret.mean()
    assert row["waiting_rounds"] == result.info["waiting_rounds"].mean()
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert f"{row['regret']:.1f}" in run.table(found)


def test_run_compares_several_learners(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "paper-utility", "ucb1", "ucb1:exploration=1", "--delay", "9", *SMALL]
    assert cli.main(words) == 0
    text = capsys.readouterr().out
    env = jb.make_environment("paper-utility", delays=jb.FixedDelay(9))
    results = {
        label: jb.simulate(env, learner, horizon=200, runs=8, progress=False)
        for label, learner in map(specs.learner, words[2:4])
    }
    assert text.endswith(f"\n\n{jb.compare(results)}\n")
    assert printed(capsys, *words)["comparison"] == jb.compare(results).to_dict()


def test_tune_searches_and_compares(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figure = tmp_path / "deep" / "tuning.png"
    words = ["tune", "paper-utility", "ucb1", "--param", "exploration=2", "--delay", "9", *SMALL]
    words += ["--steps", "2", "--held-out", "16", "--store", str(tmp_path / "store")]
    found = printed(capsys, *words, "--figure", str(figure))
    env = jb.make_environment("paper-utility", delays=jb.FixedDelay(9))
    tuned = jb.tune(
        env, jb.UCB1, {"exploration": 2}, horizon=200, runs=8, steps=2, held_out=16, progress=False
    )
    assert found == json.loads(json.dumps(tuned.to_dict()))
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert cli.main(words) == 0
    assert capsys.readouterr().out == f"{tuned}\n"
    twice = ["tune", "paper-utility", "ucb1:exploration=1", "--param", "exploration=2"]
    assert "both fixed" in failed(capsys, *twice)
    assert "greater than 0" in failed(capsys, *words[:3], "--param", "exploration=-1")
    assert "'speed'" in failed(capsys, *words[:3], "--param", "speed=1")


CONFIG = """
horizon = 200
runs = 8
store = "{store}"
output = "{output}"
[environment]
name = "paper-utility"
states = "$states"
delay = "fixed:$delay"
[learners.Both]
name = "metabio"
delta = "$delta"
[axes]
delay = [3, 9]
states = [4, 5]
delta = [0.05, 0.2]
"""


def test_sweep_of_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    output = tmp_path / "out" / "grid.nc"
    config = tmp_path / "grid.toml"
    config.write_text(CONFIG.format(store=tmp_path / "store", output=output))
    found = printed(capsys, "sweep", str(config), "--quiet")
    assert found["sizes"]["delay"] == 2
    assert len(found["points"]) == 8
    assert Image.open(found["figure"]).size[0] > 600
    with xr.open_dataset(output, engine="scipy") as data:
        env = jb.make_environment("paper-utility", states=5, delays=jb.FixedDelay(9))
        learner = jb.make_learner("metabio", delta=0.05)
        alone = jb.simulate(env, learner, horizon=200, runs=8, progress=False)
        cell = data.final_regret.sel(learner="Both", delay=9, states=5, delta=0.05)
        assert cell.values.tolist() == alone.final_regret.tolist()
    point = {"delay": 9, "states": 5, "delta": 0.05}
    (row,) = [row for row in found["points"] if row["point"] == point]
    assert row["mean final regret"] == {"Both": pytest.approx(alone.final_regret.mean())}
    assert (tmp_path / "store" / "settings.json").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("horizon = ", "is not TOML"),
        ("horison = 3", "'horison'"),
        ("horizon = 3", "table [environment]"),
        ("[environment]\nname='paper-utility'\n[learners.a]\nnom='exp3'", "must have a name"),
        ("learners = 1\n[environment]\nname='x'", "[learners] must be a table, but it is 1"),
        (
            "environment = 'x'\n[learners.a]\nname='b'",
            "[environment] must be a table, but",
        ),
        (
            "axes = 1\n[environment]\nname='x'\n[learners.a]\nname='b'",
            "[axes] must be a table",
        ),
        ("[environment]\nname='x'\n[learners]\na = 1", "[learners.a] must be a table, but it is 1"),
    ],
)
def test_a_file_that_says_nothing(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "grid.toml"
    config.write_text(text)
    assert message in failed(capsys, "sweep", str(config))


def test_errors_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "'dada'" in failed(capsys, "run", "paper-stochastic", "dada", *SMALL)
    assert "'speed'" in failed(capsys, "run", "paper-stochastic", "ucb1:speed=2", *SMALL)
    assert "normal" in failed(capsys, "run", "paper-stochastic", "ucb1", "--delay", "normal:3")
    assert "cannot be read" in failed(capsys, "sweep", str(tmp_path / "none.toml"))
    assert "num_actions" in failed(capsys, "theory", "--actions", "1", "--states", "3")
    with pytest.raises(ValueError, match="num_actions"):
        cli.main(["theory", "--actions", "1", "--states", "3", "--debug"])
    with pytest.raises(SystemExit) as usage:
        cli.main(["run", "nowhere", "ucb1"])
    assert usage.value.code == 2


def test_an_interrupt_ends_with_130_and_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        error = KeyboardInterrupt()
        error.add_note("finished blocks are in there")
        raise error

    config = tmp_path / "grid.toml"
    config.write_text(CONFIG.format(store="s", output="o"))
    monkeypatch.setattr(sweep_file, "sweep", interrupted)
    assert cli.main(["sweep", str(config)]) == 130
    said = capsys.readouterr().err
    assert "finished blocks are in there" in said
    assert f"resume with: jaxbio sweep {config}" in said


def test_nothing_is_promised_where_nothing_was_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "play", interrupted)
    assert cli.main(["run", "paper-stochastic", "ucb1"]) == 130
    said = capsys.readouterr().err
    assert "interrupted" in said
    assert "resume" not in said


def test_json_has_no_word_for_what_is_not_finite() -> None:
    found = {"rows": [{"ratio": float("inf"), "low": float("nan"), "n": 3, "word": "a"}]}
    assert cli._plain(found) == {"rows": [{"ratio": None, "low": None, "n": 3, "word": "a"}]}


def test_a_figure_that_cannot_be_written_is_refused_before_anything_is_played(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["run", "paper-stochastic", "ucb1", "--figure", "x.foo"])
    assert "'x.foo' must end in one of .png, .pdf, .svg" in capsys.readouterr().err


@pytest.fixture
def nothing_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever plays raises: a command that is refused never gets there."""
    known = cli.parser()  # with the defaults of what plays
    monkeypatch.setattr(cli, "parser", lambda: known)

    def played(*_: object, **__: object) -> None:
        raise AssertionError("played")

    for module in (run, sweep_file, reproduce, tuning, advise, contest, phase, regimes, beyond,
                   violations, rates):  # fmt: skip
        for name in ("simulate", "sweep", "EXPERIMENTS", "tune", "advise", "contest",
                     "phase_diagram", "play_regimes", "play_beyond", "violations",
                     "measure_rates"):  # fmt: skip
            monkeypatch.setattr(module, name, played, raising=False)
    monkeypatch.setattr(guarantees, "check_guarantees", played)


WITH_FIGURE = {
    "run": ["run", "paper-stochastic", "ucb1"],
    "tune": ["tune", "paper-utility", "ucb1", "--param", "exploration=2"],
    "advise": ["advise", "--actions", "3", "--states", "3"],
}
STUDIES = {
    name: [name]
    for name in ("contest", "phase", "regimes", "beyond", "violations", "guarantees", "rates")
}


@pytest.mark.parametrize("command", WITH_FIGURE)
def test_the_place_of_a_figure_is_tried_first(
    command: str,
    nothing_played: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").write_text("")
    words = [*WITH_FIGURE[command], "--figure"]
    assert "--figure must be a file, but folder.png is a folder" in failed(
        capsys, *words, "folder.png"
    )
    assert "--figure cannot be written: file is not a folder" in failed(
        capsys, *words, "file/a.png"
    )
    assert "File name too long" in failed(capsys, *words, f"{'x' * 300}.png")
    with pytest.raises(AssertionError, match="played"):
        cli.main([*words, "new/folder/a.png", "--debug"])
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder.png"]


@pytest.mark.parametrize("command", [*STUDIES, "reproduce", "tune"])
def test_the_folder_of_a_study_is_tried_first(
    command: str, nothing_played: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    words = {**WITH_FIGURE, "reproduce": ["reproduce", "1"]}.get(command, [command])
    for folder in (tmp_path / "file", tmp_path / "file" / "inside"):
        said = failed(capsys, *words, "--folder", str(folder))
        assert f"--folder cannot be written: {tmp_path / 'file'} is not a folder" in said
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ('"."', "output must be a file, but . is a folder"),
        ('""', "output must be a file, but . is a folder"),
        ('"grid.toml/a.nc"', "output cannot be written: grid.toml is not a folder"),
        ("3", "output must be the name of a file, but got 3"),
    ],
)
def test_the_output_of_a_sweep_is_tried_first(
    output: str,
    message: str,
    nothing_played: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    config = CONFIG.replace('"{output}"', output).replace('store = "{store}"', "")
    Path("grid.toml").write_text(config)
    assert message in failed(capsys, "sweep", "grid.toml")
    Path("grid.toml").write_text(CONFIG.format(store="s", output="new/a.nc"))
    with pytest.raises(AssertionError, match="played"):
        cli.main(["sweep", "grid.toml", "--debug"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["grid.toml"]


def test_a_law_with_the_wrong_numbers_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = failed(capsys, "run", "paper-stochastic", "ucb1", "--delay", "laplace:3")
    assert "delay 'laplace:3' must have 2 numbers, laplace:location,scale, but has 1" in said


def test_theory_recommends_the_smaller_bound(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["theory", "--actions", "4", "--horizon", "100000", "--states"]
    few = printed(capsys, *words, "2", "--delay", "5000")
    many = printed(capsys, *words, "500", "--delay", "5")
    assert few["recommended"] == "MetaBIO"
    assert many["recommended"] == "DAda-Exp3"
    bound = jb.theory.metabio_bound(
        horizon=100_000, num_actions=4, num_states=2, delays=5000, delta=0.1
    )
    assert few["bounds"]["MetaBIO"]["total"] == pytest.approx(bound.total)


@pytest.mark.parametrize("delay", [30, 39, 43, 48, 60])
def test_theory_compares_bounds_on_the_same_regret(
    capsys: pytest.CaptureFixture[str], delay: int
) -> None:
    """With d from 39 to 48 DAda-Exp3's bound on realised regret lies below MetaBIO's on R_T, and
    its bound on R_T above.
    """
    game: Any = {"horizon": 100_000, "num_actions": 8, "delays": delay, "delta": 0.1}
    without = jb.theory.dada_bound(**game, regret="pseudo").total
    with_states = jb.theory.metabio_bound(**game, num_states=2).total
    words = ["--actions", "8", "--states", "2", "--horizon", "100000", "--delay", str(delay)]
    found = printed(capsys, "theory", *words)
    assert found["recommended"] == ("DAda-Exp3" if without < with_states else "MetaBIO")
    assert found["bounds"]["DAda-Exp3"]["total"] == pytest.approx(without)
    assert found["regret"].startswith("R_T, in mean losses")
    cli.main(["theory", *words])
    said = capsys.readouterr().out
    assert "bounds on R_T, in mean losses" in said
    recommended, *about = said.splitlines()[-3:]
    assert "on R_T is" in recommended
    assert about[0].startswith("`jaxbio advise` may name another learner: a bound holds for")


SAME = {  # command: the Python function that it plays, options with another name there
    "run paper-stochastic ucb1": (jb.simulate, {}),
    "reproduce 1": (Options, {}),
    "tune paper-stochastic ucb1 --param exploration=2": (jb.tune, {}),
    "advise --actions 2 --states 2": (jb.advise, {}),
    "phase": (jb.phase_diagram, {"horizon": "horizons"}),
    "regimes": (play_regimes, {}),
    "beyond": (play_beyond, {}),
    "contest": (jb.contest, {}),
    "violations": (jb.violations, {}),
    "guarantees": (jb.check_guarantees, {}),
    "rates": (jb.measure_rates, {}),
}


@pytest.mark.parametrize("command", SAME)
def test_commands_have_the_defaults_of_their_functions(command: str) -> None:
    function, other_names = SAME[command]
    found = vars(cli.parser().parse_args(command.split()))
    known = inspect.signature(function).parameters
    compared = 0
    for name, value in found.items():
        parameter = known.get(other_names.get(name, name))
        default = getattr(parameter, "default", inspect.Parameter.empty)
        if default is inspect.Parameter.empty or default is None:
            continue  # asked for in Python, or made of other options
        compared += 1
        assert value == (list(default) if isinstance(default, tuple) else default), name
    assert compared >= 2


def test_delays_in_words() -> None:
    assert specs.delays("7").longest() == 7
    laplace = specs.delays("laplace:50,2.5")
    assert (laplace.location, laplace.scale) == (50, 2.5)
    assert specs.delays("uniform:1,6").longest() == 6
    assert specs.delays("geometric:3").mean == 3
    with pytest.raises(ValueError, match="laplace:1"):
        specs.delays("laplace:1")


def test_completion_script(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--print-completion", "bash"])
    assert end.value.code == 0
    assert "paper-stochastic" in capsys.readouterr().out


def test_the_module_runs_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jaxbio", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"jaxbio {jb.__version__}"


def test_the_commands_of_a_report_are_understood() -> None:
    given = Options(horizon=500, runs=30, tuning="printed")
    commands = list(reproduce.commands_of(2, given).values())
    parsed = [cli.parser().parse_args(command.split()[1:]) for command in commands]
    assert [reproduce.options_of(options).runs for options in parsed] == [30, 30, 1000]
    assert {reproduce.options_of(options).tuning for options in parsed} == {"printed"}
    assert [options.sensitivity for options in parsed] == [False, True, False]
    assert reproduce.options_of(parsed[0]) == given


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    """As with `| head`: nothing is complained about."""
    process = subprocess.Popen(
        [sys.executable, "-m", "jaxbio", "list"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == cli.UNREAD


def test_without_a_command_it_says_where_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    said = capsys.readouterr().out
    commands = re.findall(r"^  \S.*(jaxbio [a-z].*)$", said, flags=re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        words = shlex.split(command)[1:]
        if words[-1] != "--help":
            cli.parser().parse_args(words)


def test_the_table_of_a_sweep_marks_the_least() -> None:
    data = jb.sweep(
        lambda delay: jb.make_environment("paper-utility", delays=jb.FixedDelay(delay)),
        {"UCB1": jb.UCB1(), "Thompson": jb.ThompsonSampling()},
        {"delay": list(range(1, 31))},
        horizon=100,
        runs=4,
        keep="finals",
        progress=False,
    )
    lines = sweep_summary.table(data).splitlines()
    assert lines[1].split() == ["delay", "UCB1", "Thompson"]
    assert lines[-1] == "and 6 more points: they are in the file"
    mean = data.final_regret.mean("run")
    for line in lines[2:-1]:
        delay, *cells = line.split()
        means = mean.sel(delay=int(delay)).values
        assert [cell.endswith("*") for cell in cells] == (means == means.min()).tolist()
