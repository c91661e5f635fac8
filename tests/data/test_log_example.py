"""The made-up shop: what is drawn is what is said, and what is written is what is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import jaxbio as jb
from jaxbio.cli import main as cli
from jaxbio.data import example

NAMES: dict[str, Any] = {
    "time": "clicked", "action": "campaign", "state": "bucket", "reward": "bought",
    "arrived": "bought_at",
}  # fmt: skip
WORDS = ["--time", "clicked", "--action", "campaign", "--state", "bucket"]
WORDS += ["--reward", "bought", "--arrived", "bought_at"]
SURELY = 1e-6  # p-values below this fail: of some thirty here, one in 30,000 seeds would


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return jb.example_log(rows=200_000, seed=1, days=60)


def fits(counts: np.ndarray, probabilities: np.ndarray) -> bool:
    return stats.chisquare(counts, counts.sum() * probabilities).pvalue > SURELY


def test_actions_states_and_purchases_are_drawn_as_said(frame: pd.DataFrame) -> None:
    shop = jb.Shop()
    action, state = frame.campaign.cat.codes.to_numpy(), frame.bucket.cat.codes.to_numpy()
    counts = np.zeros((5, 4))
    np.add.at(counts, (action, state), 1)
    assert fits(counts.sum(1), shop.probability)
    assert all(fits(counts[k], shop.mapping[k]) for k in range(5))
    assert (frame.probability.to_numpy() == shop.probability[action]).all()
    early = (frame.clicked < frame.clicked.iloc[0] + pd.Timedelta("30D")).to_numpy()
    for s in range(4):  # a month before the end nearly all purchases have come
        hours = (frame.bought_at - frame.clicked)[early & (state == s)].dropna()
        hours = hours / pd.Timedelta("1h")
        bought = frame.bought[early & (state == s)]
        assert stats.binomtest(int(bought.sum()), len(bought), shop.buying[s]).pvalue > SURELY
        law = stats.lognorm(shop.spread, scale=shop.hours[s])
        assert stats.kstest(hours, law.cdf).pvalue > SURELY


def test_nights_are_quiet(frame: pd.DataFrame) -> None:
    hours = np.bincount(frame.clicked.dt.hour, minlength=24) / len(frame)
    turn = 2 * np.pi / 24
    begins = np.arange(24)
    swing = (np.sin(turn * (begins + 1 - 15)) - np.sin(turn * (begins - 15))) / turn
    assert fits(hours * len(frame), (1 + 0.9 * swing) / 24)
    assert hours[3] < 0.15 * hours.mean()


def test_what_would_come_after_the_end_is_not_there(frame: pd.DataFrame) -> None:
    end = example.BEGINNING + np.timedelta64(60, "D")
    assert frame.clicked.is_monotonic_increasing
    assert frame.clicked.iloc[0] >= example.BEGINNING
    assert frame.bought_at.max() <= end
    assert (frame.bought_at.notna() == (frame.bought == 1)).all()
    # All buckets: a lognormal waiting time, cut where the log ends.
    shop, left = jb.Shop(), ((end - frame.clicked) / pd.Timedelta("1h")).to_numpy()
    state = frame.bucket.cat.codes.to_numpy()
    chance = shop.buying[state] * stats.lognorm.cdf(left / shop.hours[state], shop.spread)
    off = frame.bought.sum() - chance.sum()
    assert abs(off) < 5 * np.sqrt((chance * (1 - chance)).sum())


def test_drift_and_effect() -> None:
    moved = jb.example_log(rows=100_000, seed=2, drift=0.8)
    shop = jb.Shop(drift=0.8)
    np.testing.assert_allclose(
        shop.mapping_at(1.0)[0], 0.2 * shop.mapping[0] + 0.8 * shop.mapping[1]
    )
    share = (moved.clicked - example.BEGINNING) / pd.Timedelta("28D")
    for window, middle in ((share < 0.1, 0.05), (share > 0.9, 0.95)):
        for k, name in enumerate(shop.campaigns):
            part = moved.bucket[window & (moved.campaign == name)]
            counts = np.bincount(part.cat.codes, minlength=4)
            assert fits(counts, shop.mapping_at(middle)[k])
    tilted = jb.example_log(rows=200_000, seed=3, effect=1.0, days=365)
    for k, name in enumerate(shop.campaigns):
        part = tilted[(tilted.campaign == name) & (tilted.bucket == "cart")]
        wanted = jb.Shop(effect=1.0).purchase[k, 1]
        assert wanted == pytest.approx(0.4 * [0, 0.5, 1, 1.5, 2][k])
        assert stats.binomtest(int(part.bought.sum()), len(part), wanted).pvalue > SURELY


def test_a_seed_is_a_log_and_parts_make_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    one, again, other = (jb.example_log(500, seed) for seed in (4, 4, 5))
    pd.testing.assert_frame_equal(one, again)
    assert not one.equals(other)
    monkeypatch.setattr(example, "PART", 200)
    assert [len(part) for part in example.example_parts(500, 4)] == [200, 200, 100]
    assert len(jb.example_log(500, 4)) == 500


@pytest.mark.parametrize(
    ("options", "words"),
    [({"rows": 0}, "rows must be at least 1"), ({"drift": 2}, "drift must be in"),
     ({"effect": -1}, "effect must be in"), ({"days": 0}, "days must be in"),
     ({"seed": -1}, "seed must be at least 0")],
)  # fmt: skip
def test_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        jb.example_log(**options)


def test_what_is_written_is_read(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    frame = jb.example_log(rows=5_000, seed=6)
    frame.to_csv(tmp_path / "log.csv", index=False)
    for table in (frame, tmp_path / "log.csv"):
        log = jb.read_log(table, **NAMES, progress=False)
        assert log.actions == jb.Shop().campaigns
        assert log.states == jb.Shop().buckets
        assert (log.action == frame.campaign.cat.codes).all()
        assert (log.state == frame.bucket.cat.codes).all()
        assert (log.time == frame.clicked.to_numpy()).all()
        np.testing.assert_array_equal(log.arrived, frame.bought_at.to_numpy("M8[us]"))
        assert (log.come == (frame.bought == 1)).all()
        assert set(log.loss[log.come]) == {0.0}
        assert log.absent == 1.0
        assert (len(log), log.dropped, log.warnings) == (5_000, {}, ())
    assert not recwarn.list


# --- the commands


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "deep" / "shop.csv.gz"
    made = ["log", "example", str(file), "--rows", "3000", "--seed", "7", "--drift", "0.5"]
    assert cli.main([*made, "--quiet", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["truth"]["mapping_at_last"] == jb.Shop(drift=0.5).mapping_at(1).tolist()
    written = pd.read_csv(file, parse_dates=["clicked", "bought_at"])
    expected = jb.example_log(3000, 7, drift=0.5)
    assert (written.clicked == expected.clicked).all()
    assert (written.bucket == expected.bucket.astype(str)).all()

    check = said["check"].split()[1:]
    assert cli.main([*check, "--quiet", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    log = jb.read_log(file, **NAMES, progress=False)
    assert found == json.loads(json.dumps(log.to_dict()))
    assert found["rows"] == 3000
    assert found["counts"] == log.counts.tolist()
    assert cli.main([*check, "--quiet"]) == 0
    assert capsys.readouterr().out == f"{log.summary()}\n"


def test_the_numbers_of_the_summary() -> None:
    frame = jb.example_log(4_000, 8)
    log = jb.read_log(frame, **NAMES, progress=False)
    found, bought = log.to_dict(), frame[frame.bought == 1]
    assert found["share_of_outcomes"] == pytest.approx(frame.bought.mean())
    carts = frame[frame.bucket == "cart"]
    assert found["states"]["cart"] == pytest.approx(
        {"rows": len(carts), "share": len(carts) / 4_000, "outcomes": int(carts.bought.sum()),
         "share_of_outcomes": carts.bought.mean(), "mean_loss": 0.0}
    )  # fmt: skip
    seconds = (bought.bought_at - bought.clicked).dt.total_seconds()
    assert found["delays"]["0.9"] == pytest.approx(seconds.quantile(0.9))
    text = log.summary()
    assert (
        f"in hours  {seconds.quantile(0.1) / 3600:8.3g}".split()
        == next(line for line in text.splitlines() if line.startswith("in hours")).split()[:3]
    )
    assert len(repr(log).splitlines()) == 3


def test_all_options_of_the_command_reach_the_reader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["at;what;seen;cost;known;id"]
    for i in range(100):
        seen = "" if i == 50 else f"{i % 10},5"
        lines.append(f"{i % 28 + 1:02}.03.2026 12:00;{'aü'[i % 2]};{seen};{i % 7};;{i}")
    lines[2:6] = [line.replace(";;", ";30.03.2026 12:00;") for line in lines[2:6]]
    lines.append(lines[-1])
    file = tmp_path / "log.csv"
    file.write_text("\n".join(lines), encoding="latin-1")
    words = ["log", "check", str(file), "--time", "at", "--action", "what", "--state", "seen"]
    words += ["--loss", "cost", "--arrived", "known", "--low", "0", "--high", "8", "--key", "id"]
    words += ["--time-format", "%d.%m.%Y %H:%M", "--timezone", "Europe/Berlin", "--separator", ";"]
    words += ["--decimal", ",", "--encoding", "latin-1", "--bins", "2,5", "--quiet", "--json"]
    assert cli.main([*words, "--end", "31.03.2026 00:00"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["actions"]) == ["a", "ü"]
    assert list(found["states"]) == ["below 2", "2 to 5", "from 5"]
    assert found["zone"] == "UTC"
    assert found["end"] == "2026-03-30 22:00:00"
    assert found["dropped"] == {
        "no seen": {"count": 1, "first_lines": [52]},
        "id is that of an earlier row": {"count": 1, "first_lines": [102]},
    }
    assert found["mean_loss"] == pytest.approx(np.mean([1, 2, 3, 4]) / 8)
    assert cli.main([*words, "--most-dropped", "0.001"]) == 2
    assert "no seen (line 52)" in capsys.readouterr().err
    assert cli.main([*words, "--time-unit", "number"]) == 2
    assert "--time-unit is of numbers, but column 'at' has dates" in capsys.readouterr().err
    labelled = [word for word in words if word not in ("--bins", "2,5")]
    assert cli.main([*labelled, "--missing-state", "none"]) == 0
    assert "none" in json.loads(capsys.readouterr().out)["states"]


def test_wrong_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.csv"
    jb.example_log(100).to_csv(file, index=False)
    for words, said in (
        ([str(file), *WORDS[:3], "campain", *WORDS[4:]], "did you mean 'campaign'?"),
        ([str(file), *WORDS, "--bins", "few"], "edges with commas between them"),
        ([str(tmp_path / "none.csv"), *WORDS], "there is no file"),
    ):
        with pytest.raises(SystemExit) if "--bins" in words else _nothing():
            assert cli.main(["log", "check", *words]) == 2
        error = capsys.readouterr().err.strip()
        assert said in error
        assert len(error.splitlines()) == 1
    assert cli.main(["log", "example", str(tmp_path / "shop.xlsx")]) == 2
    assert "must end in .csv" in capsys.readouterr().err


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()
