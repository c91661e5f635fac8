"""Logs without times, delays in place of arrivals, rows that were followed for a while only."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from log_tables import read, table

import jaxbio as jb
from jaxbio.data.waits import ages, in_rounds

QUIETLY = pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
UNTIMED: dict[str, Any] = {"time": None, "arrived": None}
DELAYED: dict[str, Any] = {"arrived": None, "delay": "took"}
TOOK = [None if i % 3 == 2 else float(i % 7) for i in range(40)]
DATES = [datetime.datetime(2026, 3, 1) + datetime.timedelta(hours=5 * i) for i in range(40)]


def same(one: jb.Log, other: jb.Log) -> None:
    for name in ("action", "state", "loss", "time", "arrived", "row", "until"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    assert one.end == other.end
    np.testing.assert_array_equal(one.delays_in_rounds(), other.delays_in_rounds())


# --- rows are rounds


def test_rows_without_times_are_rounds_in_the_order_of_the_table() -> None:
    log = read(table(), **UNTIMED)
    assert not log.timed
    assert not log.dated
    assert log.at_once
    assert log.time.tolist() == list(range(1, 41))
    assert log.row.tolist() == list(range(40))
    assert log.come.all()
    assert set(log.delays_in_rounds()) == {0}
    assert log.end == 40
    assert "time" not in log.names
    assert "40 rounds, in the order of the table" in log.summary()
    assert "every outcome was seen at once" in log.summary()


@QUIETLY
def test_rows_that_cannot_be_used_are_no_rounds() -> None:
    made = table(took=TOOK, id=[*range(38), 3, 4])
    made["arm"][5] = made["seen"][6] = None
    log = read(made, **UNTIMED | DELAYED, key="id", most_dropped=0.2)
    assert len(log) == 36
    assert log.time.tolist() == list(range(1, 37))
    assert log.row.tolist() == [i for i in range(38) if i not in (5, 6)]
    took = [np.nan if one is None else one for one in (TOOK[row] for row in log.row)]
    np.testing.assert_array_equal(log.arrived - log.time, took)


@QUIETLY
def test_delays_without_times_are_rounds_also_beyond_the_last() -> None:
    log = read(table(took=TOOK), **UNTIMED | DELAYED)
    come = [one is not None for one in TOOK]
    assert log.come.tolist() == come
    assert log.seen_in_rounds.tolist() == come
    assert log.delays_in_rounds()[log.come].tolist() == [one for one in TOOK if one is not None]
    last = max(i + 1 + one for i, one in enumerate(TOOK) if one is not None)
    assert log.end == last == 44  # four rounds after the last row
    assert log.delays_in_rounds()[2] == last - 3
    assert np.isnan(log.loss[2])


def test_one_delay_of_all_rows() -> None:
    made = table(cost=[None if i == 4 else 0.5 * (i % 3) for i in range(40)])
    with pytest.warns(jb.LogWarning, match="1 row without cost, although the delay has passed"):
        log = read(made, **UNTIMED, delay=30)
    assert log.come.tolist() == [i != 4 for i in range(40)]
    assert set(log.delays_in_rounds()[log.come]) == {30}
    assert log.end == 70  # all that are given have come
    assert log.delays_in_rounds()[4] == 0  # lost: nothing is known of when it came
    assert not log.at_once
    for other in ("30", 30.0, np.int64(30)):
        with pytest.warns(jb.LogWarning):
            same(log, read(made, **UNTIMED, delay=other))
    with pytest.warns(jb.LogWarning):
        same(log, read(made, **UNTIMED, delay=2.5, rate=12))


def test_a_delay_of_nothing_is_at_once() -> None:
    same(read(table(), **UNTIMED), read(table(), **UNTIMED, delay=0))


# --- delays from dates

HOURS = datetime.timedelta(hours=36)
AND_A_HALF = ["36h", "1.5d", "1 days 12:00:00", 36, "36", HOURS, np.timedelta64(HOURS)]


@QUIETLY
@pytest.mark.parametrize("form", ["numbers", "texts", "durations", "hours", "polars"])
def test_delays_are_arrivals(form: str) -> None:
    """A table with delays is the same log as the one that says when outcomes came."""
    spans = [None if one is None else datetime.timedelta(days=one) for one in TOOK]
    known = [None if one is None else at + one for at, one in zip(DATES, spans, strict=True)]
    expected = read(table(shown=DATES, known=known))
    hours = [None if one is None else 24 * one for one in TOOK]
    made: Any = table(
        shown=DATES, took=hours if form == "hours" else TOOK if form == "numbers" else spans
    )
    options: dict[str, Any] = {"numbers": {"delay_unit": "d"}, "hours": {"delay_unit": "h"}}
    if form == "texts":
        made["took"] = [None if one is None else str(pd.Timedelta(one)) for one in spans]
    if form == "polars":
        made = pytest.importorskip("polars").DataFrame(made)
    log = read(made, **DELAYED, **options.get(form, {}))
    same(expected, log)
    assert log.names["delay"] == "took"


@QUIETLY
@pytest.mark.parametrize("delay", AND_A_HALF)
def test_one_delay_from_dates_and_an_end(delay: Any) -> None:
    unit = {"delay_unit": "h"} if isinstance(delay, int) or delay == "36" else {}
    known = [one + HOURS for one in DATES]
    end = DATES[30]
    made = table(shown=DATES, known=known)
    log = read(made, arrived=None, delay=delay, end=end, **unit)
    same(read(made, end=end), log)
    assert log.come.tolist() == [one + HOURS <= end for one in DATES[:31]]  # not later than the end
    whole = read(made, arrived=None, delay=delay, **unit)
    assert whole.come.all()
    assert whole.end == np.datetime64(DATES[-1] + HOURS)


@QUIETLY
def test_delays_of_plain_numbers_are_in_their_unit() -> None:
    shown = [2.0 * i for i in range(40)]
    known = [None if one is None else at + one for at, one in zip(shown, TOOK, strict=True)]
    expected = read(table(shown=shown, known=known))
    same(expected, read(table(shown=shown, took=TOOK), **DELAYED))


def test_a_column_is_meant_where_there_is_one() -> None:
    log = read(table() | {"7": [float(i % 5) for i in range(40)]}, **UNTIMED, delay="7")
    assert log.delays_in_rounds().tolist() == [i % 5 for i in range(40)]


# --- events and follow-up


@QUIETLY
@pytest.mark.parametrize("time", [None, "shown"])
def test_time_to_event_or_censoring(time: str | None) -> None:
    """As in tables of survival analysis: T and E."""
    took = [float(i % 7 + 1) for i in range(40)]
    event = [i % 3 == 0 for i in range(40)]
    options: dict[str, Any] = {"time": time, "arrived": None, "delay": "T", "event": "E"}
    options |= {"loss": "E", "delay_unit": None if time is None else "h"}
    log = read(table(T=took, E=event), **options)
    assert log.come.tolist() == event
    assert set(log.loss[log.come]) == {1.0}
    assert log.absent == 0.0
    scale = 1 if time is None else 3600
    np.testing.assert_array_equal(log.delays() / scale, took)
    if time is None:
        np.testing.assert_array_equal(log.delays_in_rounds(), took)
    else:  # 60 rounds in an hour
        later = np.arange(39, -1, -1)
        np.testing.assert_array_equal(
            log.delays_in_rounds(), np.minimum(later, 60 * np.array(took))
        )
    same(log, read(table(T=took, E=["yes" if one else "N" for one in event]), **options))
    frame = pd.DataFrame({"T": took, "E": event})
    split = table(
        took=frame["T"].where(frame["E"]), seen_for=frame["T"], cost=[float(one) for one in event]
    )
    options |= {"delay": "took", "event": None, "followed": "seen_for", "loss": "cost"}
    same(log, read(split, **options))


@QUIETLY
def test_a_fit_waits_as_long_as_rows_were_followed() -> None:
    """The end of the log is another: the last row was followed for 90 rounds, the first for 3."""
    took = [3.0, *[float(i % 7 + 1) for i in range(1, 39)], 90.0]
    event = [i % 3 == 1 for i in range(40)]
    options: dict[str, Any] = UNTIMED | {"delay": "T", "event": "E", "loss": "E"}
    made = table(T=took, E=event, minute=[float(i) for i in range(40)])
    fit = jb.fit(read(made, **options))
    came, waiting = (
        [int(t) for t, e in zip(took, event, strict=True) if e is kind] for kind in (True, False)
    )
    by_hand = jb.fit_delays(came, waiting)
    np.testing.assert_array_equal(fit.delays[0].rounds, by_hand.rounds)
    np.testing.assert_allclose(fit.delays[0].survival, by_hand.survival)
    assert ages(read(made, **options)).tolist() == [
        90.0 if e else t for t, e in zip(took, event, strict=True)
    ]
    timed = jb.fit(read(made, **options | {"time": "minute"}))
    np.testing.assert_allclose(timed.delays[0].survival, by_hand.survival)


@QUIETLY
def test_events_with_arrivals_and_an_end() -> None:
    made = table(
        E=[i % 4 == 0 for i in range(40)],
        known=[one + datetime.timedelta(days=2) for one in DATES],
        shown=DATES,
    )
    log = read(made, event="E", end=DATES[20])
    assert log.come.tolist() == [i % 4 == 0 and made["known"][i] <= DATES[20] for i in range(21)]
    np.testing.assert_array_equal(
        log.until, [np.datetime64(min(one, DATES[20]), "us") for one in made["known"][:21]]
    )


@QUIETLY
def test_a_row_whose_follow_up_is_not_known_was_not_followed() -> None:
    took, event = [4.0] * 40, [i % 3 == 0 for i in range(40)]
    took[1] = took[3] = np.nan
    log = read(table(T=took, E=event), **UNTIMED | {"delay": "T"}, event="E", most_dropped=1)
    assert log.dropped == {"E without T": jb.Dropped(1, (3,))}
    assert log.delays()[1] == 0
    assert not log.come[1]
    made = table(took=[5.0] * 20 + [None] * 20, seen_for=[np.nan, 3.0] * 20)
    log = read(made, **UNTIMED | DELAYED, followed="seen_for")
    assert log.delays()[20:].tolist() == [0.0, 3.0] * 10


@QUIETLY
def test_bad_delays_are_counted() -> None:
    took: list[Any] = [3.0] * 40
    took[2], took[7], took[9] = -1.0, "soon", 1e300
    made = table(
        shown=DATES,
        took=took,
        E=["maybe" if i == 11 else None if i == 12 else 1 for i in range(40)],
    )
    log = read(made, **DELAYED, delay_unit="d", event="E", most_dropped=0.2)
    assert {reason: one.first for reason, one in log.dropped.items()} == {
        "took is neither a number nor a duration": (7,),
        "E is neither true nor false": (11,),
        "no E": (12,),
        "took is too long a time": (9,),
        "took is below 0": (2,),
    }
    made = table(took=[None if i % 2 else 1.0 for i in range(40)], long=[-1.0] * 2 + [1.0] * 38)
    log = read(made, **UNTIMED | DELAYED, followed="long")
    assert log.dropped["long is below 0"].first == (1,)  # row 0 has an outcome


# --- several columns, labels of outcomes


@QUIETLY
def test_several_columns_are_one_action() -> None:
    aspirin, heparin = (
        [list("YN")[i % 2] for i in range(40)],
        [[10, 9, 2][i % 3] for i in range(40)],
    )
    made = table(RXASP=aspirin, RXHEP=heparin)
    made["RXHEP"][7] = None
    log = read(made, action=["RXASP", "RXHEP"])
    assert log.actions == ("N, 2", "N, 9", "N, 10", "Y, 2", "Y, 9", "Y, 10")
    assert [log.actions[one] for one in log.action] == [
        f"{aspirin[row]}, {heparin[row]}" for row in log.row
    ]
    assert log.dropped == {"no RXHEP": jb.Dropped(1, (7,))}
    assert log.names["action"] == "RXASP, RXHEP"
    states = read(made, state=["seen", "RXHEP"], missing_state="none")
    assert len(states) == 40
    assert states.states == ("high, 10", "low, 2", "low, 9", "low, none")


@QUIETLY
def test_numbers_among_several_columns_of_states() -> None:
    """And what was shown may be a part of the state."""
    age = [float(i % 10) for i in range(40)]
    age[3] = np.nan
    made = table(age=age)
    log = read(made, state=["arm", "age", "seen"], bins={"age": [5.0]})
    assert log.dropped == {"no age": jb.Dropped(1, (3,))}
    assert log.edges is None
    rows = [i for i in range(40) if i != 3]
    texts = [
        f"{made['arm'][i]}, {'from' if age[i] >= 5 else 'below'} 5, {made['seen'][i]}" for i in rows
    ]
    assert [log.states[one] for one in log.state] == texts
    quantiles = read(made, state=["seen", "age"], bins={"age": 2})
    assert {one.partition(", ")[2] for one in quantiles.states} == {"below 5", "from 5"}
    alone = read(made, state="age", bins={"age": 2})
    same(alone, read(made, state="age", bins=2))
    assert alone.edges is not None
    labelled = read(made | {"seen": [None, *made["seen"][1:]]}, state=["age", "seen"],
                    bins={"age": 2}, missing_state="none")  # fmt: skip
    assert labelled.states[labelled.state[0]] == "below 5, none"


def test_codes_of_several_columns_do_not_depend_on_the_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from jaxbio.data import tables

    generator = np.random.default_rng(0)
    made = table(400, one=generator.integers(0, 12, 400), two=generator.choice(list("abc"), 400),
                 three=generator.choice(list("abc"), 400),
                 shown=range(400), known=range(400))  # fmt: skip
    whole = read(made, action=["one", "two"], state=["three", "seen"])
    monkeypatch.setattr(tables, "PART", 7)
    parts = read(made, action=["one", "two"], state=["three", "seen"])
    same(whole, parts)
    assert (whole.actions, whole.states) == (parts.actions, parts.states)


@QUIETLY
def test_truth_values_are_states_and_losses() -> None:
    made = table(40, seen=[i % 3 == 0 for i in range(40)], cost=[i % 2 == 0 for i in range(40)])
    log = read(made, **UNTIMED)
    assert log.states == ("False", "True")
    assert log.loss.tolist() == [1.0, 0.0] * 20
    words = {True: "TRUE", False: "FALSE"}
    text = read(made | {"cost": [words[one] for one in made["cost"]]}, **UNTIMED)
    np.testing.assert_array_equal(text.loss, log.loss)
    letters = read(made | {"cost": ["Y" if one else "n" for one in made["cost"]]}, **UNTIMED)
    np.testing.assert_array_equal(letters.loss, log.loss)


@QUIETLY
def test_labels_of_outcomes_count_as_what_is_said() -> None:
    codes: list[Any] = [["dead", "well", "U", 3][i % 4] for i in range(40)]
    log = read(table(cost=codes), **UNTIMED, values={"dead": 1, "well": 0, 3: 0.25}, unknown="U")
    np.testing.assert_array_equal(log.loss, [1, 0, np.nan, 0.25] * 10)
    numbers = read(table(cost=[[1, 4, 9, 2.0][i % 4] for i in range(40)]), **UNTIMED,
                   loss=None, reward="cost", low=1, high=4, unknown=[8, 9])  # fmt: skip
    np.testing.assert_allclose(numbers.loss, [1, 0, np.nan, 2 / 3] * 10)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no such delay": (
        lambda: read(table(took=TOOK), arrived=None, delay="tok"),
        r"delay: the table has no column 'tok'; did you mean 'took'\? .* or a duration",
    ),
    "a delay and an arrival": (lambda: read(table(), delay=3), "but both are given"),
    "a delay below 0": (lambda: read(table(), **UNTIMED, delay=-3), "delay must be at least 0"),
    "days without dates": (
        lambda: read(table(), **UNTIMED, delay="7d"),
        "delay has durations, which takes times that are dates.*with rate=, the decisions of a day",
    ),
    "a number without a unit": (
        lambda: read(table(took=TOOK), **DELAYED),
        "column 'took' has numbers, but times are dates: say what they count with delay_unit='d'",
    ),
    "a unit of nothing": (lambda: read(table(), delay_unit="d"), "delay_unit is of delay or foll"),
    "a unit of durations": (
        lambda: read(table(), arrived=None, delay="7d", delay_unit="d"), "leave delay_unit out"
    ),
    "a delay of 0 days that is too long": (
        lambda: read(table(), arrived=None, delay=1e15, delay_unit="d"), "must be a shorter time"
    ),
    "delays for never": (
        lambda: read(table(took=[-1 if i % 2 else 5 for i in range(40)]), **UNTIMED | DELAYED),
        r"column 'took' is below 0 in 20 of 40 outcomes, first in row 1 \(-1.0\), and it is the "
        "same in all of these: if it stands for outcomes that have not come, leave it empty",
    ),
    "no delay at all": (
        lambda: read(table(took=[None] * 40), **UNTIMED | DELAYED),
        r"column 'took' \(delay\) is empty in all 40 rows",
    ),
    "an arrival without times": (lambda: read(table(), time=None), "give time=, or delay= in pla"),
    "an end without times": (
        lambda: read(table(), **UNTIMED, end=20), r"end \(20\) is of times, but no column has them"
    ),
    "a zone without times": (lambda: read(table(), **UNTIMED, timezone="UTC"), "timezone .* is of"),
    "a rate with times": (
        lambda: read(table(), arrived=None, delay="7d", rate=3), "rate .* but time is given"
    ),
    "a rate of nothing": (lambda: read(table(), **UNTIMED, rate=3), "but there is no delay"),
    "an event without a time": (
        lambda: read(table(E=[1] * 40), **UNTIMED, event="E"), "event .* give delay= or arrived="
    ),
    "followed without a time": (
        lambda: read(table(T=[1] * 40), **UNTIMED, followed="T"), "followed .* neither of these"
    ),
    "no event": (
        lambda: read(table(T=[1] * 40, E=[0] * 40), **UNTIMED, delay="T", event="E"),
        r"no outcome has come in the 40 rows that can be used \(column 'E'\)",
    ),
    "bins of several columns": (
        lambda: read(table(), state=["seen", "known"], **UNTIMED, bins=3),
        r"bins must say which of .*, such as {'known': 5} \(on the command line known=5\), but",
    ),
    "bins of another column": (
        lambda: read(table(), bins={"arm": 3}), r"bins must name columns of state .* got 'arm'"
    ),
    "labels of what is missing among numbers": (
        lambda: read(table(), bins={"seen": 3}, missing_state="none"), "missing_state is a label"
    ),
    "the action as the state": (
        lambda: read(table(), state=["arm"]), "state must be another column than action"
    ),
    "the same column twice": (
        lambda: read(table(), action=["arm", "arm"]), "action must be another column than action"
    ),
    "no columns": (lambda: read(table(), action=[]), r"action must name a column, but got \[\]"),
    "too many combinations": (
        lambda: read(
            table(2000, shown=range(2000), known=range(2000),
                  one=np.arange(2000) % 50, two=np.arange(2000) // 50), action=["one", "two"]),
        "columns 'one' and 'two' together have 2,000 different combinations, more th",
    ),
    "labels of outcomes": (
        lambda: read(table(cost=["dead", "well"] * 20), **UNTIMED),
        "cost is no number, such as 'dead' .* with values=, or .* not known with unknown='dead'",
    ),
    "a label twice": (
        lambda: read(table(), values={"a": 1}, unknown="a"), "unknown and values both have 'a'"
    ),
    "a code for not known": (
        lambda: read(table(cost=[9] * 40), **UNTIMED), "not known can be given as unknown="
    ),
}  # fmt: skip


@QUIETLY
@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_remedy(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        call()


def test_equal_rows_by_chance_with_one_delay_are_no_suspicion(
    recwarn: pytest.WarningsRecorder,
) -> None:
    """Delays of all rows are the same, so the instant of the outcome is no coincidence."""
    generator = np.random.default_rng(3)
    day = [f"2026-01-{one:02}" for one in np.sort(generator.integers(1, 29, 500))]
    made = table(500, shown=day, arm=generator.choice(list("ab"), 500), cost=[0.5] * 500,
                 seen=generator.choice(list("xy"), 500))  # fmt: skip
    read(made, arrived=None, delay="60d")
    assert not any("equal to another one" in str(one.message) for one in recwarn.list)


@QUIETLY
def test_rows_are_waited_for_as_many_rounds_as_they_were_followed() -> None:
    """Not longer where an outcome of another row comes after the last round, or is followed for
    longer; with times not for less than nothing where the row was followed until an early day."""
    untimed = read(table(took=TOOK, known=None), **UNTIMED, delay="took")
    waited, come = in_rounds(untimed, 1)
    np.testing.assert_array_equal(waited, untimed.delays_in_rounds())
    np.testing.assert_array_equal(come, untimed.come)
    followed = [None if one is not None else 2.0 for one in TOOK]
    times: dict[str, Any] = {"shown": range(40), "took": TOOK, "until": followed, "known": None}
    untold: dict[str, Any] = times | {"shown": None}
    for made in (untold, times):
        time = None if made["shown"] is None else "shown"
        log = read(table(40, **made), time=time, arrived=None, delay="took", followed="until")
        waited, come = in_rounds(log, 1)
        assert (waited[~come] == 2).all()


@QUIETLY
def test_outcomes_after_the_last_decision_come_at_the_pace_of_the_log() -> None:
    log = read(table(shown=range(40), took=[7.0] * 40, known=None), arrived=None, delay="took")
    waited, come = in_rounds(log, 1)
    assert come.all()
    assert (waited == 7).all()
