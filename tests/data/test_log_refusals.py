"""Bad tables are refused with column, row and remedy; what only looks wrong is said."""

from __future__ import annotations

import builtins
import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from log_tables import NAMES, changed, read, table

import jaxbio as jb

SHOWN = table()["shown"]


EARLY = changed("known", {i: f"2026-02-01T00:{i:02}:00" for i in range(20)})

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no such column": (
        lambda: read(table(), action="Amr"),
        r"action: the table has no column 'Amr'; did you mean 'arm'\? it has \['shown', 'arm',",
    ),
    "no column that is like it": (
        lambda: read(table(), state="zzz"),
        r"state: the table has no column 'zzz'; it has \['shown'",
    ),
    "a column twice": (
        lambda: read(pd.concat([pd.DataFrame(table())] * 2, axis=1)),
        "time: the table has 2 columns that are called 'shown': rename all but one",
    ),
    "one column for two things": (
        lambda: read(table(), state="arm"),
        "state must be another column than action, but both are 'arm'",
    ),
    "empty": (
        lambda: read({name: [] for name in table()}),
        "the table is empty: it has names of columns and no row",
    ),
    "columns of different lengths": (
        lambda: read(table() | {"cost": [1.0]}),
        "columns of table must have the same length, but 'cost' has 1 rows and 'shown' 40",
    ),
    "a loss outside": (
        lambda: read(changed("cost", {2: 12.5, 8: -1.0})),
        r"column 'cost' must lie in \[0, 1\], but row 2 has 12.5 \(its values go from -1 to "
        r"12.5\): give bounds that hold for all, such as low=-1 and high=12.5, or correct the row",
    ),
    "a reward outside": (
        lambda: read(changed("cost", {4: 12.5}), loss=None, reward="cost", low=1, high=10),
        r"column 'cost' must lie in \[1, 10\], but row 2 has 0 .* from 0 to 12.5\).*low=0 and "
        r"high=12.5", ),
    "a loss and a reward": (
        lambda: read(table(), reward="cost"),
        "loss or reward must name the column of the outcome, but both is given",
    ),
    "neither": (lambda: read(table(), loss=None), "but neither is given"),
    "outcomes before actions": (
        lambda: read(EARLY),
        r"column 'known' is before column 'shown' in 20 of 30 outcomes, first in row 0 "
        r"\(2026-02-01T00:00:00.000000 before 2026-03-01T10:00:00.000000\): are the columns "
        r"exchanged, in different time zones, or days and months exchanged\?",
    ),
    "columns exchanged": (
        lambda: read(table(known=SHOWN, shown=table(known=SHOWN)["known"]) | {"shown": [
            f"2026-03-02T10:{i:02}:00" for i in range(40)]}),
        "in 40 of 40 outcomes, first in row 0",
    ),
    "one action": (
        lambda: read(table(arm=["a"] * 40)),
        r"column 'arm' \(action\) has a single value, 'a', in all 40 rows that can be used: there "
        r"is nothing to choose",
    ),
    "no arrival at all": (
        lambda: read(table(known=[None] * 40)),
        r"column 'known' \(arrived\) is empty in all 40 rows that can be used, so no outcome has "
        r"come", ),
    "no loss at all": (
        lambda: read(table(cost=[None] * 40), arrived=None),
        r"no outcome has come in the 40 rows that can be used \(column 'cost'\)",
    ),
    "no arrival before the end": (
        lambda: read(table(shown=range(40), known=[100] * 40), end=50),
        r"no outcome has come in the 40 rows that can be used \(column 'known'\).*give a later end",
    ),
    "too many labels": (
        lambda: read(table(2000, shown=range(2000), known=range(2000), seen=np.arange(2000) / 7)),
        r"column 'seen' has more than 1,000 different values \(2,000 so far\): give bins=5, or "
        r"edges", ),
    "too many actions": (
        lambda: read(table(2000, shown=range(2000), known=range(2000), arm=range(2000))),
        r"column 'arm' has more than 1,000 different values .* is it an id\?",
    ),
    "labels that are lists": (
        lambda: read(table(arm=[["a"]] * 40)),
        "column 'arm' must have a text or a number in every row",
    ),
    "mixed zones": (
        lambda: read(changed("shown", {7: "2026-03-01T10:07:00Z"})),
        r"column 'shown' must have times of one kind, but row 7 has a date with a time zone "
        r"\('2026-03-01T10:07:00Z'\) and row 0 a date without a time zone "
        r"\('2026-03-01T10:00:00'\): say what zone those without one are in, such as timezone=",
    ),
    "a zone in one column": (
        lambda: read(table(known=[f"{one}+01:00" for one in SHOWN])),
        "columns 'shown' and 'known' must have times of one kind, but 'shown' has dates without a "
        "time zone and 'known' dates with a time zone: say what zone",
    ),
    "numbers in one column": (
        lambda: read(table(known=[1_800_000_000.0] * 40)),
        r"'known' dates with a time zone \(counted from 1970, so in UTC\): say what zone",
    ),
    "rounds in one column": (
        lambda: read(table(known=range(40))),
        "but 'shown' has dates without a time zone and 'known' numbers: give both in one form",
    ),
    "days or months first": (
        lambda: read(table(shown=[f"{i % 9 + 1:02}/02/2026 10:00" for i in range(40)])),
        r"40 of 40 rows of the table cannot be used: 40: shown is no time, such as "
        r"'01/02/2026 10:00' \(rows 0, 1, 2, 3, 4, ...\); times like '01/02/2026 10:00' take "
        r"time_format='%d/%m/%Y %H:%M' or '%m/%d/%Y %H:%M'",
    ),
    "too much that cannot be used": (
        lambda: read(changed("arm", dict.fromkeys(range(6, 12)))),
        "6 of 40 rows of the table cannot be used, more than the share of 0.1 that most_dropped "
        r"allows: 6: no arm \(rows 6, 7, 8, 9, 10, ...\)",
    ),
    "nothing that can be used": (
        lambda: read(table(arm=[None] * 40), most_dropped=1),
        "40 of 40 rows of the table cannot be used: 40: no arm",
    ),
    "everything after the end": (
        lambda: read(table(), end="2020-01-01"),
        "40 of 40 rows of the table cannot be used: 40: shown is after the end that was given",
    ),
    "no such file": (lambda: read("nowhere/log.csv"), "table: there is no file 'nowhere/log.csv'"),
    "bins of few values": (
        lambda: read(table(seen=[1] * 40), bins=3),
        r"column 'seen' \(state\) has too few different values for bins=3",
    ),
    "one bin": (lambda: read(table(), bins=1), "bins must be in"),
    "edges that fall": (lambda: read(table(), bins=[2, 1]), r"bins must be increasing edges"),
    "bounds that fall": (lambda: read(table(), low=2), "high must be greater than 2, but got 1.0"),
    "no zone": (
        lambda: read(table(), timezone="Berlin"),
        "timezone must be a name such as 'Europe/Berlin' or 'UTC', but got 'Berlin'",
    ),
    "no unit": (lambda: read(table(), time_unit="days"), "time_unit must be one of None, 's'"),
    "no end": (lambda: read(table(), end="soon"), "end must be a time in the form .* 'soon'"),
    "an end of another kind": (
        lambda: read(table(), end=3),
        r"end must be a date without a time zone as the table's times are, but got 3 \(a number\)",
    ),
    "a share above 1": (lambda: read(table(), most_dropped=2), r"most_dropped must be in \[0, 1\]"),
    "no encoding": (lambda: read(table(), encoding="utf8x"), "encoding must be one .* 'utf8x'"),
    "no bytes of ASCII": (lambda: read(table(), encoding="utf-16"), "encoding must be one"),
    "no separator": (lambda: read(table(), separator=", "), "separator must be one letter"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
def test_refused_with_column_row_and_remedy(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises((ValueError, TypeError), match=words):
        call()


@pytest.mark.parametrize("wrong", [None, 3, [1, 2], b"log.csv", jb.UCB1(), np.zeros((3, 2))])
def test_what_is_no_table(wrong: Any) -> None:
    with pytest.raises(TypeError, match="table must be the path of a CSV or Parquet file"):
        read(wrong)


def text(**columns: Any) -> str:
    return pd.DataFrame(table(**columns)).to_csv(index=False)


FILES: dict[str, tuple[str, bytes, str]] = {
    "line": (
        "log.csv",
        text(cost=[0.5] * 30 + [7.0] + [0.5] * 9).encode(),
        "column 'cost' must lie in .* but line 32 has 7",
    ),
    "utf-16": ("log.csv", text().encode("utf-16"), "save it as CSV in UTF-8"),
    "latin-1": (
        "log.csv",
        text(arm=["grün", "blau"] * 20).encode("latin-1"),
        r"log.csv is not encoded in utf-8 \(it has the byte b'\\xfc'\).*encoding='latin-1'",
    ),
    "latin-1 in the header": (
        "log.csv",
        text().replace("seen", "gesehen für").encode("latin-1"),
        "not encoded in utf-8",
    ),
    "excel": ("log.xlsx", b"PK", r"table must be a CSV file .* but got 'log.xlsx'"),
    "not packed": ("log.csv.gz", text().encode(), r"log.csv.gz cannot be unpacked"),
    "cut": ("log.csv.gz", gzip.compress(text().encode())[:-30], "log.csv.gz cannot be unpacked"),
    "no zip": ("log.csv.zip", text().encode(), "log.csv.zip cannot be unpacked"),
    "never closed": (
        "log.csv",
        text().replace(",a,", ',"a,', 1).encode(),
        "a quotation mark .* is never closed",
    ),
    "quotes inside": (
        "log.csv",
        text().replace(",a,", ',5" pipe,').encode(),
        "quotation marks or carriage returns inside of texts that are not themselves in quotation",
    ),
    "no rows": ("log.csv", b"shown,arm,seen,cost,known\n", "log.csv is empty"),
    "nothing": ("log.csv", b"", "time: log.csv has no column 'shown'"),
    "too many fields everywhere": (
        "log.csv",
        re.sub("(?m)(?<=0)$", ",", text()).encode(),
        r"rows of log.csv cannot be used.*another number of fields than the header has",
    ),
    "no parquet": ("log.parquet", b"PAR1", "log.parquet cannot be read as Parquet"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files(name: str, tmp_path: Path) -> None:
    file, data, words = FILES[name]
    if file.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / file).write_bytes(data)
    with pytest.raises(ValueError, match=words):
        read(tmp_path / file)


def test_latin_1_can_be_said(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(text(arm=["grün", "blau"] * 20).encode("latin-1"))
    log = read(tmp_path / "log.csv", encoding="latin-1")
    assert log.actions == ("blau", "grün")


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.parquet").write_bytes(b"PAR1")
    found = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "pyarrow":
            raise ImportError(name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ValueError, match=r'takes PyArrow to read: pip install "jaxbio\[parquet\]"'):
        read(tmp_path / "log.parquet")


# --- what looks wrong

TWICE = {name: values * 2 for name, values in table().items()}
NEVER = changed("known", dict.fromkeys(range(1, 40, 2), "2099-12-31"))
DOUBTED: dict[str, tuple[Callable[[], jb.Log], str]] = {
    "a state without outcomes": (
        lambda: read(table(seen=["x" if i % 2 else "y" for i in range(40)])),
        r"no outcome has ever come for state 'x' \(20 rows\): nothing is known of its losses",
    ),
    "an action without outcomes": (
        lambda: read(table(arm=["x" if i % 2 else "y" for i in range(40)])),
        r"no outcome has ever come for action 'x' \(20 rows\)",
    ),
    "a rare label": (
        lambda: read(
            table(1000, shown=range(1000), known=range(1000), arm=["c", *list("ab" * 499), "a"])
        ),
        r"hardly any row has action 'c' \(row 0\): correct the label if it is a mistake",
    ),
    "labels that differ in case": (
        lambda: read(changed("seen", dict.fromkeys(range(10), "Low"))),
        "states differ in case or spaces only: 'Low', 'low'; they are kept apart",
    ),
    "one state": (
        lambda: read(table(seen=["x"] * 40)),
        r"column 'seen' \(state\) has a single value, 'x': it tells nothing",
    ),
    "one loss": (
        lambda: read(table(cost=[0.25] * 40), arrived=None),
        "every loss is 0.25: no action is better than another",
    ),
    "losses without arrival": (
        lambda: read(changed("cost", dict.fromkeys(range(1, 40, 2), 0) | {5: 1.0})),
        r"1 row without known with another cost than the other rows without it \(row 5\): they "
        r"count as not come",
    ),
    "a date for never": (
        lambda: read(NEVER),
        "20 rows have the same known, 2099-12-31T00:00:00.000000, the latest of all: if it stands "
        "for outcomes that have not come, leave it empty, or give end= before it",
    ),
    "rows twice": (
        lambda: read(TWICE),
        r"40 rows equal to another one in every column that is read, where about \d+ would be by "
        r"chance \(rows 40, 41, 42, 43, 44, ...\): .* give key=",
    ),
    "ties": (
        lambda: read(table(shown=[i // 2 for i in range(40)], known=[50] * 40)),
        "100% of decisions have the same shown as another: delays in rounds take them in the order",
    ),
}


@pytest.mark.parametrize("name", DOUBTED)
def test_what_looks_wrong_is_said_and_kept(name: str) -> None:
    call, words = DOUBTED[name]
    with pytest.warns(jb.LogWarning) as said:
        log = call()
    texts = [str(one.message) for one in said]
    assert any(re.search(words, one) for one in texts), texts
    assert list(log.warnings) == texts  # nothing is dropped
    assert all(one in log.summary() for one in texts)
    assert {one.filename for one in said} <= {__file__, table.__code__.co_filename}


def test_the_loss_of_what_has_not_come_is_kept() -> None:
    absent = dict.fromkeys(range(1, 40, 2), 1.0)
    assert read(changed("cost", absent)).absent == 1.0
    assert read(changed("cost", absent), loss=None, reward="cost").absent == 0.0
    assert np.isnan(read(changed("cost", dict.fromkeys(absent))).absent)
    assert np.isnan(read(table(), arrived=None).absent)
    with pytest.warns(jb.LogWarning, match="2 rows without known with another cost"):
        assert read(changed("cost", absent | {5: 0.0, 7: 0.25})).absent == 1.0


def test_a_good_log_has_nothing_to_say(recwarn: pytest.WarningsRecorder) -> None:
    log = read(table())
    assert not recwarn.list
    assert log.warnings == ()
    assert log.dropped == {}
    assert "warnings   none" in log.summary()


def test_a_key_counts_each_event_once() -> None:
    made = TWICE | {"id": [*range(40), *range(38), None, None]}
    with pytest.warns(jb.LogWarning, match="38: id is that of an earlier row"):
        log = read(made, key="id", most_dropped=0.5)
    assert sorted(log.row) == [*range(40), 78, 79]


def test_rounded_times_are_no_suspicion(recwarn: pytest.WarningsRecorder) -> None:
    """In a large log of rounded times rows are equal by chance: 1,000 of them or so here."""
    generator = np.random.default_rng(1)
    rows = 20_000
    shown = np.sort(generator.integers(0, rows * 3, rows))
    made = {
        "shown": shown,
        "arm": generator.choice(["a", "b", "c"], rows),
        "seen": generator.choice(["x", "y"], rows),
        "cost": [0.0] * rows,
        "known": np.where(generator.random(rows) < 0.1, shown + 60, np.nan),
    }
    assert pd.DataFrame(made).duplicated().sum() > 300
    read(made, time_unit="number")
    assert not recwarn.list


def test_later_decisions_than_the_end_are_dropped_as_asked() -> None:
    with pytest.warns(jb.LogWarning, match="30: shown is after the end that was given"):
        log = read(table(), end=SHOWN[9])
    assert len(log) == 10
    assert log.end == np.datetime64(SHOWN[9])
    # The outcome of row 8 comes half a minute after the end: it has not come.
    assert np.flatnonzero(log.come).tolist() == [0, 2, 4, 6]
    assert log.names == NAMES
