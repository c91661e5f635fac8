"""Times that are no dates, that stand for "never", or that need to be said more of."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from log_tables import changed, read, table

import jaxbio as jb

SECONDS = [1_774_778_400 + 60 * i for i in range(40)]
EPOCH = table(shown=SECONDS, known=[None if i % 2 else one + 90 for i, one in enumerate(SECONDS)])


def epoch(column: str, places: dict[int, Any]) -> dict[str, list[Any]]:
    values = [places.get(i, one) for i, one in enumerate(EPOCH[column])]
    return EPOCH | {column: values}


@pytest.mark.parametrize("column", ["shown", "known"])
@pytest.mark.parametrize("place", [0, 6])
@pytest.mark.parametrize("value", [1e20, -1e20, 1e14, 1e304])
def test_numbers_that_are_too_large_for_a_date_are_counted(
    value: float, place: int, column: str
) -> None:
    with pytest.warns(jb.LogWarning, match=f"1: {column} is no time, such as -?1"):
        log = read(epoch(column, {place: value}), time_unit="s")
    assert log.dropped[f"{column} is no time"].first == (place,)
    assert len(log) == 39
    assert not np.isnat(log.time).any()
    assert log.end == np.datetime64(SECONDS[38] + 90, "s")


@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
@pytest.mark.parametrize("make", [int, float, np.int64, np.float64, Decimal])
def test_numbers_in_a_column_of_objects_are_numbers(make: Callable[[Any], Any]) -> None:
    shown = pd.Series([make(i) for i in range(39)] + ["soon"], dtype=object)
    log = read(table(shown=shown, known=pd.Series([*map(make, range(39)), None], dtype=object)))
    assert log.time.tolist() == list(range(39))
    assert log.arrived[log.come].tolist() == list(range(39))
    assert log.dropped["shown is no time"].first == (39,)
    assert not log.dated


def as_digits(form: str) -> list[int]:
    return [int(f"{one:{form}}") for one in pd.date_range("2026-02-20", periods=40, freq="D")]


@pytest.mark.parametrize("form", ["%Y%m%d", "%Y%m%d%H%M", "%Y%m%d%H%M%S"])
@pytest.mark.parametrize("kind", [int, str])
def test_digits_of_dates_are_asked_about(kind: type, form: str) -> None:
    """As plain numbers, the day after 20260228 would be 73 later."""
    digits = [kind(one) for one in as_digits(form)]
    made = table(shown=digits, known=digits)
    words = f"'shown' has numbers that look like dates, such as {digits[0]}: give time_format="
    with pytest.raises(ValueError, match=f"{words}'{form}', or time_unit='number'"):
        read(made)
    dated = read(made, time_format=form)
    assert dated.time[0] == np.datetime64("2026-02-20")
    assert not read(made, time_unit="number").dated
    mixed = table(shown=range(40), known=digits)
    with pytest.raises(ValueError, match="'known' has numbers that look like dates"):
        read(mixed)


def test_plain_numbers_of_that_size_are_numbers() -> None:
    rounds = list(range(20_260_180, 20_260_220))
    assert read(table(shown=rounds, known=rounds)).time.tolist() == rounds


NEVER = dict.fromkeys(range(1, 40, 2), 0)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a zone of numbers": (
        lambda: read(table(shown=range(40), known=range(40)), timezone="UTC"),
        "timezone is of dates, but column 'shown' has plain numbers: leave it out",
    ),
    "a unit of dates": (
        lambda: read(table(), time_unit="s"),
        "time_unit is of numbers, but column 'shown' has dates: leave time_unit out",
    ),
    "a label of no number": (
        lambda: read(table(seen=range(40)), bins=4, missing_state="none"),
        "missing_state is a label, but bins makes states of a number: leave one of them out",
    ),
    "an end that is no date": (
        lambda: read(EPOCH, end=1e20, time_unit="s"),
        r"end must be a time in the form of the table's, but got 1e\+20",
    ),
    "0 for never": (
        lambda: read(epoch("known", NEVER)),
        r"column 'known' is before column 'shown' in 20 of 40 outcomes, first in row 1 "
        r"\(1970-01-01T00:00:00.000000 before .*\), and it is the same in all of these: if it "
        "stands for outcomes that have not come, leave it empty",
    ),
    "0 for never in nearly all": (
        lambda: read(epoch("known", dict.fromkeys(range(2, 40), 0))),
        "in 38 of 39 outcomes, .* leave it empty",
    ),
    "-1 for never": (
        lambda: read(table(shown=range(40), known=[-1 if i % 2 else i for i in range(40)])),
        r"in 20 of 40 outcomes, first in row 1 \(-1.0 before 1.0\), .* leave it empty",
    ),
}


@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        call()


def test_a_zone_of_numbers_since_1970_is_no_fault() -> None:
    assert read(EPOCH, timezone="Europe/Berlin").time[0] == np.datetime64(SECONDS[0], "s")


def test_an_arrival_far_after_all_others_is_said(recwarn: pytest.WarningsRecorder) -> None:
    """It moves the end of the log, and how long all others have been waited for."""
    made = changed("known", {3: "9999-12-31T00:00:00"})
    words = (
        "1 row with known later after the last decision than the log is long, up to "
        "9999-12-31T00:00:00.000000, where the log now ends: correct them, leave them empty"
    )
    with pytest.warns(jb.LogWarning, match=re.escape(words)):
        log = read(made)
    assert log.end == np.datetime64("9999-12-31")
    recwarn.clear()
    read(changed("known", {3: "2026-03-01T11:15:00"}))  # 36 minutes later, of a log of 39
    read(made, end="2026-03-01T10:40:00")
    assert not recwarn.list
