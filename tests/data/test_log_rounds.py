"""Delays in rounds: by hand, and against a double loop over all pairs of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_tables import read, table

import jaxbio as jb


def log_of(time: Sequence[float], arrived: Sequence[float | None], **options: object) -> jb.Log:
    """A log of plain numbers."""
    rows = len(time)
    columns = {
        "shown": time,
        "known": arrived,
        "arm": ["ab"[i % 2] for i in range(rows)],
        "seen": ["x"] * rows,
        "cost": [0.0] * rows,
    }
    return read(columns, time_unit="number", **options)


def double_loop(time: Sequence[float], arrived: Sequence[float | None]) -> list[int]:
    """By the convention: round j has seen the outcome of round i unless it is made at its arrival
    or before. Rows are in the order of their times, those of one time as they stand."""
    order = sorted(range(len(time)), key=lambda i: time[i])
    delays = []
    for place, i in enumerate(order):
        later = order[place + 1 :]
        come = arrived[i]
        delays.append(sum(1 for j in later if come is None or time[j] <= come))
    return delays


@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
def test_by_hand() -> None:
    # Written by rounds, as jaxbio does: the loss of round t with delay d comes at t + d.
    log = log_of([1, 2, 3, 4, 5], [1, 4, None, 4, 9])
    assert log.delays_in_rounds().tolist() == [0, 2, 2, 0, 0]
    assert log.come.tolist() == [True, True, False, True, True]
    # Between decisions: a loss that comes at 2.5 is known before the third.
    log = log_of([1, 2, 3, 4], [2.5, 2.5, 3.999, 4.001])
    assert log.delays_in_rounds().tolist() == [1, 0, 0, 0]
    # Ties: rows 1, 2 and 3 are at one instant. The outcome of row 1 comes at that very instant,
    # after all decisions of it.
    log = log_of([1, 2, 2, 2, 3], [2, 2, 2, None, 3])
    assert log.delays_in_rounds().tolist() == [3, 2, 1, 1, 0]


@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
def test_a_night_is_a_few_rounds_and_a_burst_many() -> None:
    burst = [f"2026-03-01T22:00:{i:02}" for i in range(30)]
    night = ["2026-03-02T03:00:00", "2026-03-02T08:00:00"]
    known: list[str | None] = [None] * 32
    known[0] = "2026-03-01T22:00:29.500000"  # half a minute, the whole burst
    known[29] = "2026-03-02T07:59:59"  # ten hours, one decision
    log = read(table(32, shown=burst + night, known=known))
    assert log.delays_in_rounds()[[0, 29, 30]].tolist() == [29, 1, 1]
    assert log.delays()[[0, 29]].tolist() == [29.5, 9 * 3600 + 59 * 60 + 30]


def test_what_has_not_come_has_waited_until_the_end() -> None:
    log = read(table(10))
    late = ~log.come
    assert log.delays_in_rounds()[late].tolist() == [8, 6, 4, 2, 0]
    # The last arrival is at 10:09:30: half a minute after the last decision.
    assert log.delays()[late].tolist() == [60.0 * minutes + 30 for minutes in (8, 6, 4, 2, 0)]


times = st.integers(0, 12).map(float)


@given(st.lists(st.tuples(times, st.none() | st.integers(0, 20)), min_size=2, max_size=25))
@settings(max_examples=150, deadline=None)
@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
def test_is_what_a_double_loop_counts(rows: list[tuple[float, int | None]]) -> None:
    time = [one for one, _ in rows]
    arrived: list[float | None] = [None if wait is None else one + wait / 2 for one, wait in rows]
    arrived[0] = time[0] + 1.5  # some outcome has come
    log = log_of(time, arrived)
    assert log.delays_in_rounds().tolist() == double_loop(time, arrived)


@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
def test_a_log_of_simulated_rounds_has_their_delays() -> None:
    """What is written with jaxbio's own delays is read with them."""
    generator = np.random.default_rng(3)
    delays = generator.integers(0, 30, 500)
    rounds = np.arange(1, 501)
    arrived = [None if t + d > 500 else int(t + d) for t, d in zip(rounds, delays, strict=True)]
    log = log_of(rounds.tolist(), arrived)
    assert (log.delays_in_rounds() == np.minimum(delays, 500 - rounds)).all()
    assert (delays[~log.come] > log.delays_in_rounds()[~log.come]).all()


def test_an_outcome_after_the_last_decision_is_waited_for() -> None:
    """Rounds end with the log: how many would have followed is not known."""
    rows = 1_000
    time = list(range(rows))
    words = "100% of outcomes came after the last decision: their delays in rounds are longer than"
    with pytest.warns(jb.LogWarning, match=words):
        log = log_of(time, [one + 10_000 for one in time])
    assert log.come.all()
    assert not log.seen_in_rounds.any()
    assert log.to_dict()["delays_in_rounds"]["0.5"] is None
    assert "1,000 that came after the last decision" in log.summary()
    with pytest.warns(jb.LogWarning, match="60% of outcomes came after"):
        log = log_of(time, [one + 600 for one in time])
    waited = log.delays_in_rounds()
    assert set(waited[log.seen_in_rounds]) == {600}
    assert log.seen_in_rounds.sum() == 400  # the last arrives at the instant of the last decision
    fit = jb.fit_delays(waited[log.seen_in_rounds], waited[~log.seen_in_rounds])
    assert fit.rounds.tolist() == [600]
    assert fit.survival_at([599, 600]).tolist() == [1, 0]
    assert log.to_dict()["delays_in_rounds"]["0.99"] == 600
    assert log.num_states == 1


def test_a_few_outcomes_after_the_last_decision_are_no_doubt() -> None:
    log = log_of(list(range(1_000)), [one + 40 for one in range(1_000)])
    assert (~log.seen_in_rounds).sum() == 40
    assert not any("after the last decision" in one for one in log.warnings)


@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
def test_what_is_seen_at_once_is_seen_in_its_own_round() -> None:
    """Also where others are made at the same instant."""
    costs = [0.5, None, 1.0, 0.0, 0.0, None]
    made = table(6, shown=[1, 1, 1, 2, 2, 2], cost=costs)
    log = read(made, arrived=None)
    assert log.delays_in_rounds().tolist() == [0, 4, 0, 0, 0, 0]
    assert log.seen_in_rounds.tolist() == log.come.tolist() == [one is not None for one in costs]
