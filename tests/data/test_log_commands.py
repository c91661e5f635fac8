"""`jaxbio log check` gets through tables of the shapes that trials and A/B tests have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jaxbio as jb
from jaxbio.cli import main as cli

ROWS = 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stroke trial, a game's A/B test and an e-mail campaign, made up in the shapes of real ones:
    names of columns, forms of dates, codes of outcomes that are not known.
    """
    made = tmp_path_factory.mktemp("logs")
    generator = np.random.default_rng(17)
    day: Any = pd.to_timedelta(np.sort(generator.integers(0, 900, ROWS)), "D")
    day = day + pd.Timestamp("1991-01-15")
    dead = generator.random(ROWS) < 0.3
    pd.DataFrame(
        {
            "RDATE": day.strftime("%b-%y"),
            "day": day.strftime("%Y-%m-%d"),
            "RXASP": generator.choice(list("YN"), ROWS),
            "RXHEP": generator.choice(list("NLM"), ROWS),
            "OUT14": generator.choice(["dead", "dependent", "well"], ROWS),
            "OCCODE": np.where(np.arange(ROWS) % 100 == 7, 9, generator.integers(1, 5, ROWS)),
            "FDEAD": np.where(np.arange(ROWS) % 100 == 7, "U", np.where(dead, "Y", "N")),
            "DIED": dead.astype(int),
            "TD": np.where(dead, generator.integers(0, 180, ROWS), 182),
        }
    ).to_csv(made / "stroke.csv", index=False)
    played = generator.integers(0, 200, ROWS)
    pd.DataFrame(
        {
            "userid": generator.permutation(ROWS * 9)[:ROWS],
            "version": generator.choice(["gate_30", "gate_40"], ROWS),
            "sum_gamerounds": played,
            "retention_1": played > 60,
            "retention_7": np.where(played > 120, "TRUE", "FALSE"),
        }
    ).to_csv(made / "game.csv", index=False)
    visit = generator.integers(0, 2, ROWS)
    pd.DataFrame(
        {
            "segment": generator.choice(["Mens E-Mail", "Womens E-Mail", "No E-Mail"], ROWS),
            "visit": visit,
            "conversion": visit * generator.integers(0, 2, ROWS),
            "spend": np.round(visit * generator.random(ROWS) * 499, 2),
        }
    ).to_csv(made / "mail.csv", index=False)
    return made


GAME = "game.csv --action version --state retention_1 --reward retention_7"
MAIL = "mail.csv --action segment --state visit,conversion --reward spend"
STROKE = "stroke.csv --time RDATE --action RXASP,RXHEP --state OUT14"
GRADES = "--reward OCCODE --low 1 --high 4"
MONTH = "--time-format %b-%y"
FINE: dict[str, tuple[str, dict[str, Any]]] = {
    "a game": (f"{GAME} --delay 50 --key userid", {"reward": "retention_7", "delay": 50}),
    "a game by the day": (f"{GAME} --delay 7 --rate 40", {"reward": "retention_7", "delay": 280}),
    "a game with two states": (
        f"{GAME},sum_gamerounds --bins sum_gamerounds=50,100 --delay 50".replace(
            "--reward retention_7,", "--reward retention_7 --state retention_1,"),
        {"reward": "retention_7", "delay": 50, "state": ["retention_1", "sum_gamerounds"],
         "bins": {"sum_gamerounds": [50, 100]}}),
    "a campaign": (f"{MAIL} --high 500 --delay 30", {"reward": "spend", "high": 500, "delay": 30}),
    "a trial": (f"{STROKE} {MONTH} --loss FDEAD --unknown U --delay 180d",
                {"loss": "FDEAD", "unknown": "U", "delay": "180d", "time_format": "%b-%y"}),
    "a trial with grades": (
        f"{STROKE} {MONTH} {GRADES} --unknown 8,9 --delay 180 --delay-unit d",
        {"reward": "OCCODE", "low": 1, "high": 4, "unknown": 9, "delay": "180d",
         "time_format": "%b-%y"}),
    "a trial with codes": (
        f"{STROKE} {MONTH} --loss OCCODE --values 1=1,2=0.5,3=0,4=0 --unknown 9 --delay 180d",
        {"loss": "OCCODE", "values": {1: 1, 2: 0.5, 3: 0, 4: 0}, "unknown": 9, "delay": "180d",
         "time_format": "%b-%y"}),
    "a trial with times to death": (
        f"{STROKE.replace('RDATE', 'day')} --loss DIED --event DIED --delay TD --delay-unit d",
        {"time": "day", "loss": "DIED", "event": "DIED", "delay": "TD", "delay_unit": "d"}),
}  # fmt: skip
COLUMNS: dict[str, dict[str, Any]] = {
    "game": {"action": "version", "state": "retention_1"},
    "mail": {"action": "segment", "state": ["visit", "conversion"]},
    "stroke": {"time": "RDATE", "action": ["RXASP", "RXHEP"], "state": "OUT14"},
}


@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
@pytest.mark.parametrize("name", FINE)
def test_a_table_of_the_shape_is_read(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    words, options = FINE[name]
    assert cli.main(["log", "check", *words.split(), "--quiet", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    file = words.split()[0]
    log = jb.read_log(file, **COLUMNS[file[:-4]] | options, progress=False)
    expected = log.to_dict()
    for one in ("rows", "counts", "mean_loss", "outcomes", "delays_in_rounds", "dropped"):
        assert found[one] == json.loads(json.dumps(expected[one]))
    assert found["rows"] == ROWS


STOPPED = {
    f"{GAME} --delay 7d": "delay has durations, .* together with --rate, the decisions of a day",
    f"{GAME} --delay 30 --end 2014-01-01": "end .* but no column has them: give --time, or leave",
    GAME.replace("retention_1", "sum_rounds"): "did you mean 'sum_gamerounds'",
    f"{MAIL} --delay 30": r"column 'spend' must lie .* such as --low 0 and --high \d+",
    f"{STROKE} --loss FDEAD": "RDATE is no time, such as 'Jan-91' .* take --time-format '%b-%y'",
    f"{STROKE} {MONTH} --loss OUT14": "loss must be another column than state",
    f"{STROKE} {MONTH} {GRADES} --delay 180d": "can be given as --unknown",
    f"{STROKE.replace('OUT14', 'FDEAD')} {MONTH} --loss OUT14": "with --values, .* --unknown 'd",
    f"{STROKE} {MONTH} --loss DIED --event DIED --delay TD": "count with --delay-unit 'd'",
}


@pytest.mark.parametrize("words", STOPPED)
def test_what_stops_it_names_the_option_that_helps(
    words: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert cli.main(["log", "check", *words.split(), "--quiet"]) == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    assert re.search(STOPPED[words], error), error


def test_bins_are_of_one_column_or_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["log", "check", str(folder / "game.csv"), *GAME.split()[1:], "--bins", "3"]
    assert cli.main([*words, "--bins", "retention_1=5"]) == 2
    assert "--bins must be given once, or as COLUMN=5 for each" in capsys.readouterr().err


def test_labels_with_numbers_are_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["log", "check", str(folder / "game.csv"), "--values", "dead", "--action", "a"])
    assert "'dead' must be labels with numbers, as in dead=1,well=0" in capsys.readouterr().err
