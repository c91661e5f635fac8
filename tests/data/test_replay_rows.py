"""Which rows of a log are replayed, what they cost and when that is known; and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from replay_logs import read, table

import jaxbio as jb
from jaxbio.data.replaying.rows import Rows, usable_rows, waited, window_of
from jaxbio.environment.delays import NEVER

SMALL: dict[str, Any] = {"runs": 2, "resamples": 32, "progress": False}


def conversions(rows: int = 400, seed: int = 0, absent: Any = 1.0) -> jb.Log:
    """One row in three converts, after up to 29 rounds; the last ones after the log's end."""
    generator = np.random.default_rng(seed)
    at = np.arange(1.0, rows + 1)
    known = np.where(generator.random(rows) < 1 / 3, at + generator.integers(30, size=rows), np.nan)
    known[known > rows] = np.nan
    cost = np.where(np.isnan(known), absent, 0.0)
    return read(table(rows, seed, 0, cost=cost, known=known))


def rows_of(log: jb.Log, kind: str, window: int) -> Rows:
    return usable_rows(log, kind, waited(log), window)


def test_conversions_are_known_when_they_come_and_others_when_the_window_ends() -> None:
    log = conversions()
    rows = rows_of(log, "conversions", 20)
    assert rows.place.tolist() == list(range(380))
    delays = log.delays_in_rounds()[:380]
    converts = log.come[:380] & (delays <= 20)
    assert 60 < converts.sum() < log.come[:380].sum()
    np.testing.assert_array_equal(rows.loss, np.where(converts, 0.0, 1.0))
    np.testing.assert_array_equal(rows.delay, np.where(converts, delays, 20))
    assert not rows.unknown.any()


def test_rows_are_left_out_for_their_age_and_counted() -> None:
    found = jb.replay(conversions(), jb.UCB1(), window=20, **SMALL)
    assert (found.kind, found.window) == ("conversions", 20)
    assert (found.used.rows, found.used.usable) == (400, 380)
    assert found.used.left_out == {
        "made less than 20 rounds before the end of the log (window)": 20
    }
    assert "20 rows: made less than 20 rounds before" in found.summary()
    assert "what has not come within 20 rounds counts as none" in found.summary()
    assert found.used.logged == pytest.approx(rows_of(conversions(), "conversions", 20).loss.mean())


def test_the_usual_window_catches_nearly_all_that_come() -> None:
    """Of delays of 0 to 29, all alike, 95 % are at most 28."""
    log = conversions(20_000)
    assert window_of(log, "conversions", waited(log), None) in (27, 28)
    assert window_of(log, "conversions", waited(log), None) == jb.fit(log).window
    assert window_of(log, "conversions", waited(log), 7) == 7


def test_outcomes_that_stay_away_count_as_others_of_their_kind() -> None:
    log = read(table(600, 3, 10, graded=True))
    rows = rows_of(log, "outcomes", 0)
    assert len(rows.place) == 600
    assert rows.unknown.sum() == (~log.come).sum() > 3
    assert (rows.delay[rows.unknown] == NEVER).all()
    for i in np.flatnonzero(rows.unknown):
        alike = log.come & (log.action == log.action[i]) & (log.state == log.state[i])
        assert rows.loss[i] == pytest.approx(log.loss[alike].mean())
    usual = window_of(log, "outcomes", waited(log), None)
    assert 35 < usual < 65  # 99 % of geometric delays with a mean of 10 are at most 48
    young = np.arange(600) >= 600 - usual
    assert jb.replay(log, jb.UCB1(), **SMALL).used.usable == (~young).sum()


def test_all_rows_serve_where_all_outcomes_have_come() -> None:
    log = read(table(300, 1, 5, known=np.arange(1.0, 301) + 7, cost=np.tile([0.0, 1, 1], 100)))
    rows = rows_of(log, "outcomes", window_of(log, "outcomes", waited(log), None))
    assert len(rows.place) == 300
    # The last 7 came after the last decision: as if decisions had gone on.
    assert (rows.delay == 7).all()
    found = jb.replay(log, jb.UCB1(), **SMALL)
    assert found.used.late == (7, 7)
    assert found.used.unknown == 0


def test_rows_that_were_followed_for_a_while_count_with_what_is_to_be_expected() -> None:
    """In a trial of events every row may be followed for another time. Among 4,000 rows that
    convert with 0.4 within 20 rounds, evenly spread, and are followed for up to 40, the mean loss
    is 0.6 within 0.04: 5 deviations."""
    generator, rows = np.random.default_rng(2), 4000
    takes = np.where(generator.random(rows) < 0.4, generator.integers(20, size=rows), 10**6)
    followed = generator.integers(40, size=rows)
    event = takes <= followed
    made = table(rows, 2, 0, cost=np.where(event, 0.0, 1.0)) | {
        "lasts": np.minimum(takes, followed).astype(float), "event": event,
    }  # fmt: skip
    log = read(made, time=None, arrived=None, time_unit=None, delay="lasts", event="event")
    found = rows_of(log, "conversions", 20)
    assert len(found.place) == rows
    assert found.unknown.sum() == ((followed < 20) & ~event).sum()
    assert found.loss.mean() == pytest.approx(0.6, abs=0.04)
    naive = np.where(event, 0.0, 1.0).mean()
    assert naive > 0.66  # were they taken for rows in which nothing came


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"order": "time"}, r"order must be one of 'random', 'log', but got 'time'"),
        ({"kind": "events"}, r"kind must be one of 'outcomes', 'conversions', but got 'events'"),
        ({"window": 400}, r"window must be in \[0, 399\], but got 400"),
        ({"window": 1.5}, r"window must be an integer, but got 1.5"),
        ({"horizon": 10_000}, r"horizon must be at most \d+, the rows of the rarest action"),
        ({"traffic": 0}, r"traffic must be in \(0, 1\], but got 0"),
        ({"runs": 1}, r"runs must be at least 2, but got 1"),
        ({"resamples": 4}, r"resamples must be at least 32, but got 4"),
        ({"level": 1}, r"level must be in \(0, 1\), but got 1"),
        ({"probability": [0.5, 0.5]}, r"one number per action \(3\) or per row"),
        ({"window": 399}, r"action 'arm \d' has no row that can be replayed"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        jb.replay(conversions(), jb.UCB1(), **SMALL | given)


def test_other_refusals() -> None:
    log = conversions()
    with pytest.raises(TypeError, match="log must be a Log, as read_log makes one, but got 3"):
        jb.replay(3, jb.UCB1())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="learner must be a learner, but got the class UCB1"):
        jb.replay(log, jb.UCB1)
    with pytest.raises(ValueError, match=r"theta must have shape \(3,\), one mean loss per state"):
        jb.replay(log, jb.KnownLosses(jb.UCB1(), [0.5, 0.5]), **SMALL)
    assert jb.replay(log, jb.KnownLosses(jb.UCB1(), [0.9, 0.5, 0.2]), **SMALL).accepted > 50
    with pytest.raises(TypeError, match="other must be a Replay"):
        jb.replay(log, jb.UCB1(), **SMALL).versus(0.5)  # type: ignore[arg-type]


def test_what_looks_wrong_is_said() -> None:
    with pytest.warns(jb.LogWarning, match="of losses reach the learner within the"):
        found = jb.replay(conversions(), jb.UCB1(), window=200, **SMALL)
    assert len(found.warnings) == 1
    alike = read(table(400, 0, 10, cost=np.full(400, 0.25)))
    with pytest.warns(jb.LogWarning, match="every loss that is known is 0.25, and"):
        jb.replay(alike, jb.UCB1(), kind="outcomes", window=0, **SMALL)


def test_a_replay_is_told_in_words_and_numbers() -> None:
    found = jb.replay(conversions(), jb.UCB1(), window=20, **SMALL)
    told = found.to_dict()
    assert told["accepted"] == found.accepted == found.rounds[-1]
    assert told["mean_loss"] == {
        "mean": found.mean[-1], "low": found.low[-1], "high": found.high[-1]
    }  # fmt: skip
    assert told["left_out"] == dict(found.used.left_out)
    assert told["delays"] == {"0.5": 20, "0.9": 20}
    assert list(told["actions"]) == ["arm 0", "arm 1", "arm 2"]
    for label, one in told["actions"].items():
        assert one["mean_loss"]["mean"] == found.fixed[label].mean
        gap = found.final.mean - found.fixed[label].mean
        assert one["versus"]["mean"] == pytest.approx(gap)
    assert sum(one["played"] for one in told["actions"].values()) == pytest.approx(1)
    assert told["versus_logged"]["mean"] == pytest.approx(found.final.mean - found.logged.mean)
    assert f"{found.accepted:,} accepted rounds" in repr(found)
    for part in ("UCB1", "always arm 1", "the log", f"{found.final.mean:.4f}"):
        assert part in found.summary()
