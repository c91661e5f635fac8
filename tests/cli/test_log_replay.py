"""jaxbio log replay: the numbers of Python's, in words, as JSON and as a figure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import jaxbio as jb
from jaxbio.cli import main as cli
from jaxbio.figures.replays import replay_curves
from jaxbio.figures.style import DARK, Look

WORDS = ["--time", "clicked", "--action", "campaign", "--state", "bucket", "--reward", "bought"]
WORDS += ["--arrived", "bought_at", "--window", "40"]
SMALL = ["--runs", "4", "--resamples", "32", "--quiet"]


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return jb.example_log(rows=1500, seed=2)


@pytest.fixture(scope="module")
def file(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "shop.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def log(file: Path) -> jb.Log:
    return jb.read_log(
        file, time="clicked", action="campaign", state="bucket", reward="bought",
        arrived="bought_at", progress=False,
    )  # fmt: skip


def test_the_command_replays_what_python_replays(
    file: Path, log: jb.Log, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    figure = tmp_path / "deep" / "replay.png"
    learners = ["--learner", "ucb1", "--learner", "ucb1:exploration=0.5"]
    words = ["log", "replay", str(file), *learners, *WORDS, *SMALL]
    assert cli.main([*words, "--traffic", "0.5", "--figure", str(figure), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = {
        name: jb.replay(
            log, jb.UCB1(**given), window=40, traffic=0.5, runs=4, resamples=32, progress=False
        )
        for name, given in (("ucb1", {}), ("ucb1:exploration=0.5", {"exploration": 0.5}))
    }
    for name, one in wanted.items():
        assert found["learners"][name] == json.loads(json.dumps(one.to_dict()))
    one, other = wanted.values()
    assert found["versus"]["ucb1"]["ucb1:exploration=0.5"] == one.versus(other)._asdict()
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert cli.main(words) == 0
    text = capsys.readouterr().out
    for part in ("minus the least", "always voucher", "rounds", "ucb1:exploration=0.5"):
        assert part in text


def test_probabilities_are_a_column(
    file: Path, table: pd.DataFrame, log: jb.Log, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """That of the file is the same in all rows of an action, so that no row is left out; one that
    varies leaves rows out."""
    words = ["log", "replay", str(file), "--learner", "ucb1", *WORDS, *SMALL, "--json"]
    assert cli.main([*words, "--probability", "probability"]) == 0
    assert json.loads(capsys.readouterr().out)["learners"]["ucb1"]["usable"] == 1460
    varying = np.where(np.arange(1500) % 2, 1.0, 0.5) * table.probability
    other = tmp_path / "other.csv"
    table.assign(chance=varying).to_csv(other, index=False)
    words[2] = str(other)
    assert cli.main([*words, "--probability", "chance"]) == 0
    usable = json.loads(capsys.readouterr().out)["learners"]["ucb1"]["usable"]
    with pytest.warns(jb.LogWarning, match="than its probability says"):
        wanted = jb.replay(
            log, jb.UCB1(), window=40, probability=varying[log.row - 2].to_numpy(), runs=4,
            resamples=32, progress=False,
        )  # fmt: skip
    assert usable == wanted.used.usable < 1000
    assert cli.main([*words, "--probability", "chances"]) == 2
    assert "has no column 'chances'" in capsys.readouterr().err


def test_wrong_use_is_one_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["log", "replay", str(file), *WORDS, *SMALL]
    for more, message in (
        (["--learner", "ucb1", "--learner", "ucb1"], "each --learner must be named once"),
        (["--learner", "ucb9"], "ucb9"),
        (["--horizon", "1000000"], "horizon must be at most"),
    ):
        assert cli.main([*words, *more]) == 2
        said = capsys.readouterr().err.strip()
        assert message in said
        assert len(said.splitlines()) == 1


def test_the_figure_has_a_line_for_each_learner_and_two_to_compare_with(log: jb.Log) -> None:
    found = {
        name: jb.replay(log, jb.make_learner(name), window=40, runs=4, resamples=32, progress=False)
        for name in ("ucb1", "thompson")
    }
    for look in (None, Look(DARK, narrow=True)):
        figure = replay_curves(found, "shop", look)
        (axes,) = figure.axes
        texts = {text.get_text() for text in axes.texts}
        least = min(found["ucb1"].fixed.items(), key=lambda item: item[1].mean)[0]
        for name, value in (
            ("ucb1", found["ucb1"].final.mean), ("thompson", found["thompson"].final.mean),
            ("the log", found["ucb1"].logged.mean),
            (f"always {least}", found["ucb1"].fixed[least].mean),
        ):  # fmt: skip
            assert f"{name}  {value:.4f}" in texts
        drawn = axes.lines[0]
        np.testing.assert_allclose(np.asarray(drawn.get_ydata()), found["ucb1"].mean)
        low, high = axes.get_ylim()
        assert low < found["ucb1"].fixed[least].mean < high
        plt.close(figure)
