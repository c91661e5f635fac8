"""The checks of the model: what they find in logs whose problem is known, and how they say it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from problem_logs import RATES, THETA, bias, made

import jaxbio as jb
from jaxbio.cli import main as cli
from jaxbio.data.holding.check import Check
from jaxbio.data.holding.distance import Span
from jaxbio.data.holding.finding import Effect, Finding, judge

SHOP: dict[str, Any] = {
    "time": "clicked", "action": "campaign", "state": "bucket", "reward": "bought",
    "arrived": "bought_at",
}  # fmt: skip
BEYOND, MAPPING, LOSSES = "action beyond state", "mapping over time", "losses over time"
BY_STATE, BY_LOSS, ASSIGNED = "delays by state", "delays by loss", "random assignment"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(9)


def failing(log: jb.Log, **options: Any) -> list[str]:
    return [one.name for one in jb.check_model(log, **options) if one.holds is False]


# --- what is found. Effects are so large that a test misses them once in 10^6 logs or less, but
# intervals of 95 % hold together with what is known to be so for the seeds here.


def test_a_loss_that_depends_on_the_action(rng: np.random.Generator) -> None:
    log = made(rng, 4_000, late=False, effect=0.25)
    found = jb.check_model(log)
    one = found[BEYOND]
    truth = bias(0.25)
    assert [check.name for check in found.failing] == [BEYOND]
    assert found.worst == one
    assert one.p is not None
    assert one.p <= 1e-4
    assert one.low is not None
    assert one.low <= np.abs(truth).max() <= one.high  # type: ignore[operator]
    for i, own in enumerate(one.details["by_action"].values()):
        assert own["difference"] == pytest.approx(truth[i], abs=4.5 * own["standard_error"])
    assert "costs" in one.sentence
    assert "state" in one.remedy


def test_what_trusting_states_costs(rng: np.random.Generator) -> None:
    """Three actions that show the same states, and cost 0.3, 0.5 and 0.7 in all of them: by states
    they are alike. The standard error of each mean is 0.006."""
    rows = 15_000
    action = rng.integers(0, 3, rows)
    columns = {"action": action, "state": rng.integers(0, 2, rows),
               "loss": (rng.random(rows) < 0.3 + 0.2 * action).astype(float)}  # fmt: skip
    log = jb.read_log(columns, action="action", state="state", loss="loss", progress=False)
    one = jb.check_model(log)[BEYOND]
    assert one.effect == pytest.approx(0.2, abs=0.03)
    assert one.details["best"] == "0"
    regret = one.details["regret_of_trusting_states"]
    trusted = int(one.details["best_by_states"])
    assert regret["value"] == pytest.approx(0.2 * trusted, abs=0.04)
    assert regret["high"] == pytest.approx(0.4, abs=0.04)  # as any of the three may look best
    assert "do without states" in one.remedy


def test_conversions_that_depend_on_the_action(rng: np.random.Generator) -> None:
    """Rows were waited for differently long; the truth is of all that ever convert."""
    log = made(rng, 12_000, "conversions", effect=0.4)
    found = jb.check_model(log)
    assert found.kind == "conversions"
    assert [check.name for check in found.failing] == [BEYOND]
    with pytest.raises(ValueError, match="name must be one of"):
        found[BY_LOSS]
    truth = -bias(0.4, RATES)  # a conversion is a loss of 0
    for i, own in enumerate(found[BEYOND].details["by_action"].values()):
        assert own["difference"] == pytest.approx(truth[i], abs=4.5 * own["standard_error"])


def test_conversions_that_are_worth_differently_much(rng: np.random.Generator) -> None:
    """All actions sell as often, but action 1 at twice the price. 4.5 standard errors."""
    rows = 12_000
    time, action = np.sort(rng.random(rows)) * 100, rng.integers(0, 2, rows)
    arrived = time + rng.exponential(15, rows)
    bought = (rng.random(rows) < 0.2) & (arrived <= 100)
    price = rng.uniform(0.2, 0.4, rows) * (1 + action)
    columns = {"time": time, "action": action, "state": rng.integers(0, 2, rows),
               "spent": bought * price, "arrived": np.where(bought, arrived, np.nan)}  # fmt: skip
    log = jb.read_log(columns, time="time", action="action", state="state", reward="spent",
                      arrived="arrived", time_unit="number", progress=False)  # fmt: skip
    found = jb.check_model(log)
    one = found[BEYOND]
    assert found.kind == "conversions"
    assert one.holds is False
    gap = one.details["by_action"]["0"]["mean_loss"] - one.details["by_action"]["1"]["mean_loss"]
    assert gap == pytest.approx(0.2 * 0.3, abs=0.018)
    assert found[BY_LOSS].holds is True


def test_an_action_that_is_new_is_no_worse_for_that(rng: np.random.Generator) -> None:
    """Action 2 is shown in the last tenth only: few of its rows have converted by the end, so that
    shares of those that have would fail surely. The check takes time into account."""
    rows = 12_000
    action = rng.integers(0, 2, rows)
    action[-rows // 10 :] = 2
    log = made(rng, rows, "conversions", action=action)
    shares = [log.come[log.action == k].mean() for k in range(3)]
    assert shares[2] < 0.5 * min(shares[:2])
    found = jb.check_model(log)
    assert found[BEYOND].holds is not False
    assert "Shares of actions changed" in found[BEYOND].sentence
    assert found[ASSIGNED].holds is False


def test_a_mapping_that_drifts(rng: np.random.Generator) -> None:
    found = jb.check_model(made(rng, 6_000, late=False, drift=0.8))
    one = found[MAPPING]
    assert [check.name for check in found.failing] == [MAPPING]
    # Distances of rows 0.3, 0.3 and 0.1 from the next, of which 0.8 * 3 / 4 is between parts.
    assert one.low is not None
    assert one.low <= 0.6 * np.mean([0.2, 0.4, 0.2]) <= one.high  # type: ignore[operator]


def test_losses_that_drift(rng: np.random.Generator) -> None:
    found = jb.check_model(made(rng, 6_000, late=False, turn=0.2))
    one = found[LOSSES]
    assert [check.name for check in found.failing] == [LOSSES]
    assert one.low is not None
    assert one.low <= 0.15 <= one.high  # type: ignore[operator]
    assert failing(made(rng, 12_000, "conversions", turn=0.2)) == [LOSSES]


def test_young_rows_are_no_drift(rng: np.random.Generator) -> None:
    """Large losses come five times as late: of the last rows, the small ones have come."""
    log = made(rng, 6_000, slow_losses=1.6)
    last = log.time > 75
    assert log.loss[last & log.come].mean() < log.loss[~last & log.come].mean() - 0.04
    found = jb.check_model(log)
    assert found[LOSSES].holds is not False
    assert found[BY_LOSS].holds is False
    assert "loss 1 are longer" in found[BY_LOSS].sentence


def test_losses_that_drift_do_not_come_later(rng: np.random.Generator) -> None:
    """Of young rows, which have large losses, only outcomes are seen that were fast."""
    log = made(rng, 12_000, turn=0.5)
    large = log.loss[log.come] == 1
    delays = log.delays()[log.come]
    assert np.median(delays[large]) < 0.9 * np.median(delays[~large])
    found = jb.check_model(log)
    assert found[LOSSES].holds is False
    assert found[BY_LOSS].holds is True


def test_delays_that_depend_on_the_state(rng: np.random.Generator) -> None:
    for kind, rows in (("outcomes", 3_000), ("conversions", 12_000)):
        found = jb.check_model(made(rng, rows, kind, slow=0.8))
        assert [one.name for one in found.allowed] == [BY_STATE]
        assert not found.failing
        assert found.holds is not False
        assert "that of state 's0'" in found[BY_STATE].sentence
        assert found[BY_STATE].answer == "YES, and it is allowed for"


def test_the_shop_without_a_violation() -> None:
    log = jb.read_log(jb.example_log(30_000, 5), **SHOP, progress=False)
    found = jb.check_model(log)
    assert not found.failing
    assert not found.unknown
    assert found.holds is True
    assert [one.name for one in found.allowed] == [BY_STATE]  # medians of 4 and of 40 hours
    assert "whole weeks" in found[MAPPING].sentence


def test_a_rhythm_of_the_day_is_no_drift(rng: np.random.Generator) -> None:
    """Nights show state 1. Five days of it are no change; a day and a half looks like one, and the
    sentence says that it may be none."""

    def log(days: float) -> jb.Log:
        hours = np.sort(rng.random(4_000)) * 24 * days
        night = np.abs(hours % 24 - 12) > 6
        columns = {
            "time": np.datetime64("2026-03-02") + (hours * 3_600).astype("timedelta64[s]"),
            "action": rng.integers(0, 2, 4_000),
            "state": (rng.random(4_000) < 0.2 + 0.6 * night).astype(int),
            "loss": rng.random(4_000),
        }
        return jb.read_log(columns, time="time", action="action", state="state", loss="loss",
                           progress=False)  # fmt: skip

    assert jb.check_model(log(5))[MAPPING].holds is True
    short = jb.check_model(log(1.5))[MAPPING]
    assert short.holds is False
    assert "a rhythm of the day would look like a change" in short.sentence


def test_a_difference_that_is_too_small_to_matter() -> None:
    """A million rows: half a percent of the gap is surely there, and does not matter."""
    rng, rows = np.random.default_rng(3), 1_000_000
    action, state = rng.integers(0, 2, (2, rows))
    state |= action & (rng.random(rows) < 0.8)
    mean = 0.2 + 0.6 * state + 0.006 * action
    columns = {"action": action, "state": state, "loss": (rng.random(rows) < mean).astype(float)}
    log = jb.read_log(columns, action="action", state="state", loss="loss", progress=False)
    one = jb.check_model(log)[BEYOND]
    assert one.adjusted_p is not None
    assert one.adjusted_p < 1e-4
    assert one.holds is True
    assert "too little to matter" in one.sentence


def test_a_small_log_cannot_tell(rng: np.random.Generator) -> None:
    found = jb.check_model(made(rng, 60, spread="sales"))
    assert {one.name for one in found.unknown} >= {MAPPING, BY_STATE}
    assert found.holds is None
    assert "too small to tell" in found[MAPPING].sentence
    assert "The log cannot tell" in found.verdict


# --- assignment


def test_assignments(rng: np.random.Generator) -> None:
    rows = 3_000
    dealt = np.concatenate([rng.permutation(3) for _ in range(rows // 3)])
    found = jb.check_model(made(rng, rows, late=False, action=dealt))[ASSIGNED]
    assert found.holds is True
    assert "blocks or in rotation" in found.sentence
    stuck = np.repeat(rng.integers(0, 3, rows // 5), 5)
    assert ASSIGNED in failing(made(rng, rows, late=False, action=stuck))
    moving = (rng.random(rows) < np.linspace(0.2, 0.8, rows)).astype(int)
    found = jb.check_model(made(rng, rows, late=False, action=moving))[ASSIGNED]
    assert found.holds is False
    assert "had not changed during the log" in found.sentence
    assert "replay" in found.remedy


def test_an_action_that_follows_the_state_before(rng: np.random.Generator) -> None:
    state = rng.integers(0, 2, 4_000)
    action = np.where(
        rng.random(4_000) < 0.7, np.append(0, state[:-1]), 1 - np.append(0, state[:-1])
    )
    columns = {"action": action, "state": state, "loss": rng.random(4_000)}
    log = jb.read_log(columns, action="action", state="state", loss="loss", progress=False)
    one = jb.check_model(log)[ASSIGNED]
    assert one.holds is False
    assert "on the state before" in one.sentence
    assert one.low is not None
    assert one.low <= 0.2 <= one.high  # type: ignore[operator]


def test_probabilities(rng: np.random.Generator) -> None:
    """In all the forms that they are given in, right and wrong."""
    shares = np.array([0.5, 0.3, 0.2])
    log = made(rng, 4_000, late=False, action=rng.choice(3, 4_000, p=shares))
    for right in (shares, dict(zip(log.actions, shares, strict=True)), shares[log.action]):
        assert jb.check_model(log, right)[ASSIGNED].holds is True
    wrong = jb.check_model(log, [1 / 3] * 3)[ASSIGNED]
    assert wrong.holds is False
    assert wrong.effect == pytest.approx(1 / 6, abs=0.03)
    assert wrong.details["p_values"]["probability"] < 1e-12


def test_probabilities_that_differ_between_rows(rng: np.random.Generator) -> None:
    """Chosen by a rule that looks at the hour, with known probabilities: nothing is wrong with it,
    but with probabilities that are off by a fifth."""
    rows = 4_000
    chance = np.where(np.arange(rows) % 100 < 50, 0.8, 0.3)
    action = (rng.random(rows) < chance).astype(int)
    log = made(rng, rows, late=False, action=action)
    own = np.where(action == 1, chance, 1 - chance)
    right = jb.check_model(log, own)[ASSIGNED]
    assert right.holds is True
    assert "nothing else was tested" in right.sentence
    assert jb.check_model(log)[ASSIGNED].holds is False
    off = np.where(action == 1, 0.8 * chance, 1 - 0.8 * chance)
    assert jb.check_model(log, off)[ASSIGNED].holds is False


def test_a_table_that_is_sorted_by_action(rng: np.random.Generator) -> None:
    columns = {"action": np.repeat([0, 1, 2], 300), "state": rng.integers(0, 2, 900),
               "loss": rng.random(900)}  # fmt: skip
    log = jb.read_log(columns, action="action", state="state", loss="loss", progress=False)
    found = jb.check_model(log)
    assert found[ASSIGNED].holds is False
    assert found[MAPPING].holds is None
    assert "no times" in found[LOSSES].sentence or found[LOSSES].holds is None


# --- verdicts and words


def finding(p: float | None, high: float, detectable: float = 0.05) -> Finding:
    effect = Effect(Span(high / 2, 0, high), "unit", 0.1, 0.2, detectable)
    return Finding("name", "question?", "found.", "remedy", effect=effect, p=p)


def test_verdicts() -> None:
    """Significant and large, significant and small, not significant, too small a log; Holm."""
    given = [finding(0.001, 0.5), finding(0.001, 0.05), finding(0.5, 0.5), finding(0.5, 0.5, 0.3)]
    found = judge(given, 0.05)
    assert [one.holds for one in found] == [False, True, True, None]
    assert [one.answer for one in found] == ["YES", "no", "no", "cannot be told"]
    assert [one.adjusted_p for one in found] == [0.004, 0.004, 1, 1]
    assert [one.remedy for one in found] == ["remedy", "", "", ""]
    assert found[0].severity == pytest.approx(2.5)
    told = judge([finding(None, 0.5), finding(0.03, 0.5), finding(0.03, 0.5)], 0.05)
    assert [one.holds for one in told] == [None, True, True]


def test_what_is_said_and_what_is_handed_on(rng: np.random.Generator) -> None:
    found = jb.check_model(made(rng, 4_000, effect=0.3, drift=0.8))
    assert [one.name for one in found] == [BEYOND, LOSSES, ASSIGNED, BY_LOSS, MAPPING, BY_STATE]
    assert len(found) == 6
    assert all(isinstance(one, Check) for one in found)
    text = found.summary()
    assert str(found) == text
    assert max(map(len, text.splitlines())) <= 96
    for one in found:
        assert " ".join(one.sentence.split()[:8]) in " ".join(text.split())
        assert one.question in repr(found)
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert said["failing"] == [BEYOND, MAPPING]
    assert said["checks"][0]["details"]["best"] == found[BEYOND].details["best"]
    assert said["checks"][0]["effect"] == found[BEYOND].effect


def test_a_seed_decides(rng: np.random.Generator) -> None:
    log = made(rng, 300, "conversions")
    one, again, other = (jb.check_model(log, seed=seed).to_dict() for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_the_level_decides(rng: np.random.Generator) -> None:
    log = made(rng, 4_000, late=False, effect=0.08)
    p = jb.check_model(log)[BEYOND].adjusted_p
    assert p is not None
    assert 1e-12 < p < 0.9
    assert jb.check_model(log, level=p * 1.01)[BEYOND].holds is False
    assert jb.check_model(log, level=p * 0.99)[BEYOND].holds is not False


def test_bad_arguments(rng: np.random.Generator) -> None:
    log = made(rng, 100)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"level": 1.5}, "level must be in"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"kind": "sales"}, "kind must be one of"),
        ({"probability": [0.5, 0.5]}, "one number per action"),
        ({"probability": [0.5, 0.6, 0.7]}, "must sum to 1"),
        ({"probability": {"a0": 0.5}}, "'a1' is missing"),
        ({"probability": [0.0, 0.5, 0.5]}, "must be above 0"),
    ]
    for given, words in cases:
        with pytest.raises(ValueError, match=words):
            jb.check_model(log, **given)
    with pytest.raises(TypeError, match="log must be a Log"):
        jb.check_model(pd.DataFrame())  # type: ignore[arg-type]


# --- the command


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    table = jb.example_log(3_000, 1, effect=0.9)
    file = tmp_path / "shop.csv"
    table.to_csv(file, index=False)
    words = [word for role, name in SHOP.items() for word in (f"--{role}", name)]
    given = ["log", "model", str(file), *words, "--quiet", "--seed", "3", "--level", "0.01"]
    assert cli.main([*given, "--probability", "probability", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    log = jb.read_log(file, **SHOP, progress=False)
    probability = table.probability.to_numpy()
    expected = jb.check_model(log, probability, 0.01, 3)
    assert said == json.loads(json.dumps(expected.to_dict()))
    assert cli.main(given) == 0
    assert capsys.readouterr().out == f"{jb.check_model(log, None, 0.01, 3).summary()}\n"
    assert cli.main([*given, "--probability", "chance"]) == 2
    assert "has no column 'chance'" in capsys.readouterr().err
    assert cli.main([*given, "--probability", "bought_at"]) == 2
    assert "has no number in" in capsys.readouterr().err


def test_rows_that_are_dropped_leave_probabilities_in_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    table = jb.example_log(4_000, 2)[["campaign", "bucket", "bought", "probability"]].astype(object)
    table.loc[::20, "bucket"] = None
    table = table.sample(frac=1, random_state=0)
    lines = table.to_csv(index=False).splitlines()
    lines[10:10] = ["", "one field"]
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    words = "--action campaign --state bucket --reward bought --probability probability"
    given = ["log", "model", str(tmp_path / "shop.csv"), *words.split(), "--quiet", "--json"]
    assert cli.main(given) == 0
    said = {one["name"]: one for one in json.loads(capsys.readouterr().out)["checks"]}
    assert said[ASSIGNED]["holds"] is True
    assert said[ASSIGNED]["details"]["probabilities_given"] is True


def test_theta_is_what_the_logs_have(rng: np.random.Generator) -> None:
    """Of the helper: mean losses of states within 4.5 standard errors."""
    log = made(rng, 4_000, late=False)
    for s in range(4):
        assert abs(log.loss[log.state == s].mean() - THETA[s]) < 4.5 * 0.5 / np.sqrt(600)
