"""Reading a log: every form of a table gives the same, and what is left out is counted."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from log_tables import NAMES, changed, read, table

import jaxbio as jb
from jaxbio.data import blocks, reading, tables

QUIETLY = pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")


def awkward() -> dict[str, list[Any]]:
    """Out of order, without a label or a loss, with times that cannot be or cannot be read."""
    made = table(60)
    made["cost"] = [round(0.1 + 0.013 * i, 4) for i in range(60)]
    made["shown"][5], made["shown"][6] = made["shown"][6], made["shown"][5]
    made["shown"][10] = "yesterday"
    made["arm"][11] = None
    made["seen"][12] = None
    made["known"][14] = "2026-02-28T00:00:00"
    made["cost"][16] = None
    made["known"][18] = "soon"
    made["shown"][20] = None
    return made


AWKWARD = {
    "shown is no time": [10],
    "no arm": [11],
    "no seen": [12],
    "known is before shown": [14],
    "known without cost": [16],
    "known is no time": [18],
    "no shown": [20],
}


def as_csv(made: dict[str, list[Any]], **options: Any) -> bytes:
    return pd.DataFrame(made).to_csv(index=False, **options).encode()


def zipped(data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("log.csv", data)
    return packed.getvalue()


FILES: dict[str, Callable[[dict[str, list[Any]]], bytes]] = {
    "plain.csv": as_csv,
    "windows.csv": lambda made: as_csv(made, lineterminator="\r\n"),
    "mark.csv": lambda made: b"\xef\xbb\xbf" + as_csv(made),
    "quoted.csv": lambda made: as_csv(made, quoting=1),
    "semicolon.csv": lambda made: as_csv(made, sep=";"),
    "tab.tsv": lambda made: as_csv(made, sep="\t"),
    "one.csv.gz": lambda made: gzip.compress(as_csv(made)),
    "one.csv.bz2": lambda made: bz2.compress(as_csv(made)),
    "one.csv.xz": lambda made: lzma.compress(as_csv(made)),
    "one.csv.zip": lambda made: zipped(as_csv(made)),
    "unended.csv": lambda made: as_csv(made).rstrip(b"\n"),
    "blank.csv": lambda made: as_csv(made) + b"\n\r\n",
}


def same(one: jb.Log, other: jb.Log, shift: int = 0) -> None:
    """shift: what rows of the second are counted higher."""
    for name in ("action", "state", "loss", "time", "arrived"):
        first, second = getattr(one, name), getattr(other, name)
        np.testing.assert_array_equal(first, second)
        assert first.dtype == second.dtype
    np.testing.assert_array_equal(one.row + shift, other.row)
    for name in ("actions", "states", "end", "absent", "zone", "read", "names"):
        assert getattr(one, name) == getattr(other, name)
    counted = {
        reason: (found.count, tuple(row + shift for row in found.first), found.example)
        for reason, found in one.dropped.items()
    }
    assert counted == {
        reason: (found.count, found.first, found.example) for reason, found in other.dropped.items()
    }


@pytest.fixture(scope="module")
def expected() -> jb.Log:
    with pytest.warns(jb.LogWarning, match="rows that cannot be used"):
        return read(awkward(), most_dropped=0.2)


def test_what_is_left_out_is_counted(expected: jb.Log) -> None:
    assert {reason: list(one.first) for reason, one in expected.dropped.items()} == AWKWARD
    assert len(expected) == 60 - 7
    assert expected.read == 60
    left = [i for rows in AWKWARD.values() for i in rows]
    order = [i for i in range(60) if i not in left]
    order[5], order[6] = order[6], order[5]  # by time
    assert expected.row.tolist() == order
    assert expected.dropped["shown is no time"].example == "'yesterday'"


def test_the_columns_are_those_of_the_table(expected: jb.Log) -> None:
    made = awkward()
    for i in (0, 5, 25, len(expected) - 1):
        row = expected.row[i]
        assert expected.actions[expected.action[i]] == made["arm"][row]
        assert expected.states[expected.state[i]] == made["seen"][row]
        assert expected.time[i] == np.datetime64(made["shown"][row])
        come = made["known"][row] is not None
        assert expected.come[i] == come
        assert (expected.loss[i] == made["cost"][row]) if come else np.isnan(expected.loss[i])
        assert np.isnat(expected.arrived[i]) != come
    assert expected.counts.sum() == len(expected)
    assert expected.outcomes.sum() == expected.come.sum()
    assert sorted(expected.delays()[expected.come])[-2:] == [90, 150]  # row 6 was shown earlier
    assert not expected.come.all()


@QUIETLY
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("block", [50, 1 << 24])
def test_every_file_gives_the_same(
    name: str, block: int, expected: jb.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", block)  # less than a line, and the whole file
    path = tmp_path / name
    path.write_bytes(FILES[name](awkward()))
    same(expected, read(path, most_dropped=0.2), shift=2)
    same(expected, read(str(path), most_dropped=0.2), shift=2)


@QUIETLY
@pytest.mark.parametrize("part", [7, 500_000])
def test_every_table_gives_the_same(
    part: int, expected: jb.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    monkeypatch.setattr(tables, "PART", part)
    frame = pd.DataFrame(awkward())
    odd = frame.set_index(np.linspace(0.0, 1.0, 60))  # an index that is not to be looked at
    frame.to_parquet(tmp_path / "log.parquet")
    arrow = pyarrow.Table.from_pandas(frame)
    categories = frame.astype({"arm": "category", "seen": "category"})
    arrays = {name: np.array(values, object) for name, values in awkward().items()}
    for one in (
        frame,
        odd,
        categories,
        arrays,
        arrow,
        polars.DataFrame(awkward()),
        tmp_path / "log.parquet",
    ):
        same(expected, read(one, most_dropped=0.2))


def test_rows_of_one_reason_are_counted_over_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PART", 7)
    with pytest.warns(jb.LogWarning, match=r"6: no arm \(rows 3, 8, 9, 20, 30, ...\)"):
        log = read(changed("arm", dict.fromkeys((3, 8, 9, 20, 30, 31))), most_dropped=0.2)
    assert log.dropped["no arm"] == jb.Dropped(6, (3, 8, 9, 20, 30))


@QUIETLY
def test_dates_of_every_library_are_the_same(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    made = table()
    shown, known = (
        pd.to_datetime(pd.Series(made["shown"])),
        pd.to_datetime(pd.Series(made["known"])),
    )
    frame = pd.DataFrame(made).assign(shown=shown, known=known)
    berlin = frame.assign(
        shown=shown.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"),
        known=known.dt.tz_localize("UTC"),
    )
    naive, aware = read(made), read(made, timezone="UTC")
    frame.to_parquet(tmp_path / "naive.parquet")
    berlin.to_parquet(tmp_path / "aware.parquet")
    for one in (frame, tmp_path / "naive.parquet", polars.from_pandas(frame)):
        same(naive, read(one))
    for one in (berlin, tmp_path / "aware.parquet", polars.from_pandas(berlin)):
        same(aware, read(one))
    assert (naive.zone, aware.zone) == (None, "UTC")


def test_other_types_of_columns_are_the_same() -> None:
    """Those of pandas that know missing values, and those of PyArrow inside of pandas."""
    pytest.importorskip("pyarrow")
    made: dict[str, list[Any]] = table(cost=[i % 2 for i in range(40)])
    made["cost"][5] = made["arm"][6] = made["seen"][7] = None
    frame = pd.DataFrame(made)
    dates = frame.assign(shown=pd.to_datetime(frame.shown), known=pd.to_datetime(frame.known))
    arrow = {
        "arm": "string[pyarrow]", "seen": "string[pyarrow]", "cost": "int8[pyarrow]",
        "shown": "timestamp[ms][pyarrow]", "known": "timestamp[ms][pyarrow]",
    }  # fmt: skip
    with pytest.warns(jb.LogWarning, match="1: no arm"):
        expected = read(made)
    for one in (dates.convert_dtypes(), dates.astype(arrow), dates.astype({"cost": "Int64"})):
        with pytest.warns(jb.LogWarning, match="1: no arm"):
            same(expected, read(one))


# --- times

NAIVE = "%Y-%m-%dT%H:%M:%S"
MOMENTS = [
    datetime.datetime(2026, 3, 27, 0, 30) + datetime.timedelta(hours=7 * i) for i in range(40)
]
AFTER = [None if i % 2 else one + datetime.timedelta(minutes=90) for i, one in enumerate(MOMENTS)]
UTC = datetime.UTC


def epoch(size: float) -> Callable[[datetime.datetime], Any]:
    return lambda one: round(one.replace(tzinfo=UTC).timestamp() * size)


def iso_in(zone: str) -> Callable[[datetime.datetime], str]:
    from zoneinfo import ZoneInfo

    return lambda one: one.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).isoformat()


FORMS: dict[str, tuple[Callable[[datetime.datetime], Any], str | None, dict[str, Any]]] = {
    "ISO": (lambda one: one.strftime(NAIVE), None, {}),
    "ISO with a blank": (lambda one: one.strftime("%Y-%m-%d %H:%M"), None, {}),
    "ISO among blanks": (lambda one: f"  {one.strftime(NAIVE)} ", None, {}),
    "ISO with fractions": (lambda one: one.strftime(NAIVE) + ".000", None, {}),
    "ISO in UTC": (lambda one: one.strftime(NAIVE) + "Z", "UTC", {}),
    "named UTC": (lambda one: one.strftime("%Y-%m-%d %H:%M:%S UTC"), "UTC", {}),
    # Clocks change on March 29: the column has two offsets.
    "ISO with an offset": (iso_in("Europe/Berlin"), "UTC", {}),
    "ISO with another": (iso_in("America/New_York"), "UTC", {}),
    "seconds": (epoch(1), "UTC", {}),
    "milliseconds": (epoch(1e3), "UTC", {}),
    "microseconds": (epoch(1e6), "UTC", {}),
    "nanoseconds": (lambda one: int(epoch(1)(one)) * 10**9, "UTC", {}),
    "seconds that are said": (epoch(1), "UTC", {"time_unit": "s"}),
    "days first": (lambda one: one.strftime("%d.%m.%Y %H:%M"), None,
                   {"time_format": "%d.%m.%Y %H:%M"}),
    "months first": (lambda one: one.strftime("%m/%d/%y %I:%M %p"), None,
                     {"time_format": "%m/%d/%y %I:%M %p"}),
    "format with a zone": (lambda one: one.strftime("%d/%b/%Y:%H:%M:%S +0000"), "UTC",
                           {"time_format": "%d/%b/%Y:%H:%M:%S %z"}),
    "digits": (lambda one: int(one.strftime("%Y%m%d%H%M")), None, {"time_format": "%Y%m%d%H%M"}),
    "datetime": (lambda one: one, None, {}),
    "datetime in UTC": (lambda one: one.replace(tzinfo=UTC), "UTC", {}),
    "NumPy": (np.datetime64, None, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_time_is_the_same_moment(name: str, tmp_path: Path) -> None:
    write, zone, options = FORMS[name]
    columns = {
        "shown": [write(one) for one in MOMENTS],
        "known": [None if one is None else write(one) for one in AFTER],
    }
    frame = pd.DataFrame(table(**{**columns, "known": pd.Series(columns["known"], dtype=object)}))
    frame.to_csv(tmp_path / "log.csv", index=False)
    for one in (table(**columns), tmp_path / "log.csv"):
        log = read(one, **options)
        assert log.time.tolist() == MOMENTS
        assert log.arrived[log.come].tolist() == [one for one in AFTER if one is not None]
        assert log.zone == zone
        assert log.dropped == {}
        assert (log.delays()[log.come] == 5400).all()


def test_times_in_a_zone_that_is_said_are_moments() -> None:
    local = ["2026-03-29T01:30:00", "2026-03-29T03:30:00", *table()["shown"][2:]]
    known = ["2026-03-29T04:00:00", *[None] * 39]
    log = read(table(shown=local, known=known, cost=[0.0] * 40), timezone="Europe/Berlin")
    first = log.row.tolist().index(0)
    assert log.zone == "UTC"
    assert log.time[first] == np.datetime64("2026-03-29T00:30:00")
    assert log.delays()[first] == 90 * 60  # and not two and a half hours
    assert log.time[first + 1] - log.time[first] == np.timedelta64(3600, "s")


@QUIETLY
def test_an_hour_that_clocks_skip_is_counted() -> None:
    log = read(changed("shown", {7: "2026-03-29T02:30:00"}), timezone="Europe/Berlin")
    (reason,) = log.dropped
    assert reason == "shown is in an hour that clocks of Europe/Berlin skip or have twice"
    assert log.dropped[reason].first == (7,)


def test_plain_numbers_stay_numbers() -> None:
    rounds = list(range(1, 41))
    log = read(table(shown=rounds, known=[None if i % 2 else i + 2.5 for i in range(40)]))
    assert log.time.tolist() == rounds
    assert not log.dated
    assert log.delays()[0] == 1.5
    assert log.end == 40.5
    large = [one + 1_700_000_000 for one in rounds]
    assert read(table(shown=large, known=large), time_unit="number").time.tolist() == large
    assert read(table(shown=large, known=large)).dated


# --- losses and states


def losses(values: list[Any], column: str = "cost", **options: Any) -> list[float]:
    """Of a log whose outcomes have all come."""
    made = table(len(values), cost=values, known=table(len(values))["shown"])
    return read(made, **options).loss.tolist()


@QUIETLY
def test_losses_in_every_form() -> None:
    asked = {"loss": None, "reward": "cost"}
    assert losses([0, 1, 0.25, 1]) == [0, 1, 0.25, 1]
    assert losses([0, 1, 0.25, 1], **asked) == [1, 0, 0.75, 0]
    assert losses([10, 20, 15, 30], low=10, high=30) == [0, 0.5, 0.25, 1]
    assert losses([10, 20, 15, 30], low=10, high=30, **asked) == [1, 0.5, 0.75, 0]
    assert losses([True, False, True, True]) == [1, 0, 1, 1]
    assert losses(["yes", "No", "TRUE", "false"]) == [1, 0, 1, 0]
    assert losses(["0", "1", " 0.5", "1e-1"]) == [0, 1, 0.5, 0.1]
    assert losses([1 + 1e-12, -1e-12, 0.5, 0.5]) == [1, 0, 0.5, 0.5]


def test_losses_of_what_has_not_come_may_stand_for_that() -> None:
    """They neither need bounds nor are they the loss of what has not come."""
    minus = dict.fromkeys(range(1, 40, 2), -1.0)
    log = read(changed("cost", minus))
    assert set(log.loss[log.come]) == {0.0, 1.0}
    assert np.isnan(log.absent)
    with pytest.raises(ValueError, match=r"row 4 has 3 \(its values go from 0 to 3\).*low=0 and"):
        read(changed("cost", minus | {4: 3.0}))
    assert read(changed("cost", dict.fromkeys(range(1, 40, 2), 1.0) | {1: -1.0})).absent == 1.0


def test_edges_may_leave_a_state_without_rows(recwarn: pytest.WarningsRecorder) -> None:
    log = read(table(seen=[5, 30] * 20, known=table()["shown"]), bins=[10, 20])
    assert not recwarn.list
    empty = log.to_dict()["states"]["10 to 20"]
    assert empty["rows"] == 0
    assert empty["share_of_outcomes"] is None
    assert any(line.split()[:2] == ["10", "to"] for line in log.summary().splitlines())


def test_a_decimal_comma(tmp_path: Path) -> None:
    lines = ["shown;arm;seen;cost;known"]
    lines += [f"{i};{'ab'[i % 2]};{'xy'[i // 2 % 2]};0,{i % 4}5;{i}" for i in range(40)]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    log = read(tmp_path / "log.csv", decimal=",")
    assert log.loss[:4].tolist() == [0.05, 0.15, 0.25, 0.35]


def test_what_is_seen_at_once_needs_no_arrival() -> None:
    log = read(changed("cost", {3: None, 8: float("nan")}), arrived=None)
    assert np.flatnonzero(~log.come).tolist() == [3, 8]
    assert (log.arrived[log.come] == log.time[log.come]).all()
    assert set(log.delays_in_rounds()[log.come]) == {0}
    assert log.delays_in_rounds()[3] == 36


def test_labels_of_numbers_are_in_their_order_and_whole() -> None:
    arms = [float([10, 9, 2][i % 3]) for i in range(40)]
    log = read(table(arm=arms))
    assert log.actions == ("2", "9", "10")
    assert log.action[:3].tolist() == [2, 1, 0]
    same(log, read(table(arm=[["10", "9", " 2 "][i % 3] for i in range(40)])))


def test_states_from_a_number() -> None:
    values = np.random.default_rng(0).gamma(2.0, 3.0, 400)
    log = read(table(400, shown=list(range(400)), known=list(range(400)), seen=values), bins=4)
    assert log.edges is not None
    np.testing.assert_allclose(log.edges, np.quantile(values, [0.25, 0.5, 0.75]))
    assert log.counts.sum(0).tolist() == [100] * 4
    assert (log.state == np.searchsorted(log.edges, values, "right")).all()
    assert log.states[0] == f"below {log.edges[0]:.6g}"
    given = read(table(seen=[5, 10, 10.5, 20] * 10), bins=[10, 20])
    assert given.states == ("below 10", "10 to 20", "from 20")
    assert given.state[:4].tolist() == [0, 1, 1, 2]
    ties = read(table(seen=[0] * 30 + [1] * 5 + [2] * 5), bins=4)
    assert ties.num_states == 2
    assert set(ties.state) == {0, 1}


@QUIETLY
def test_rows_without_a_state_may_have_a_label() -> None:
    made = changed("seen", {4: None, 9: ""})
    assert read(made).dropped["no seen"].count == 2
    log = read(made, missing_state="nothing")
    assert log.dropped == {}
    assert [log.states[i] for i in log.state[[4, 9]]] == ["nothing"] * 2


# --- files


@QUIETLY
def test_lines_are_those_of_an_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With line breaks and separators inside of texts, blank lines, and records that are broken."""
    lines = ["shown,note,arm,seen,cost,known"]
    wrong = {}
    for i in range(300):
        note = ["plain", '"a, b"', '"two\nlines"', '"say ""hi"", then\n\ngo"', ""][i % 5]
        row = f"{i},{note},{'ab'[i % 2]},{'xyz'[i % 3]},0.5,{i}"
        if i in (40, 41, 199):
            row = row.replace(",0.5", ",0.5,oops") if i != 41 else f"{i},cut"
            wrong[i] = sum(one.count("\n") + 1 for one in lines) + 1
        if i == 77:
            row = row.replace(",x,", ",,").replace(",y,", ",,").replace(",z,", ",,")
            empty = sum(one.count("\n") + 1 for one in lines) + 1
        lines.append(row)
        if i % 50 == 0:
            lines.append("")
    (tmp_path / "log.csv").write_text("\n".join(lines))
    for block in (64, 1000, 1 << 24):
        monkeypatch.setattr(blocks, "BLOCK", block)
        log = read(tmp_path / "log.csv", time_unit="number")
        assert log.read == 300
        found = {reason: one.first for reason, one in log.dropped.items()}
        assert found == {
            "another number of fields than the header has": tuple(wrong.values()),
            "no seen": (empty,),
        }
        text = (tmp_path / "log.csv").read_text().split("\n")
        for place in (0, 100, 250):
            assert text[log.row[place] - 1].startswith(f"{int(log.time[place])},")


@pytest.mark.parametrize("block", [64, 1 << 24])
def test_regular_lines_need_the_right_number_of_fields_each(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A field too many in one line and one too few in the next make the right number together."""
    lines = as_csv(table()).decode().splitlines()
    lines[5] += ",more"
    lines[6] = lines[6].rsplit(",", 1)[0]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    monkeypatch.setattr(blocks, "BLOCK", block)
    with pytest.warns(jb.LogWarning, match=r"2: another number of fields .* \(lines 6, 7\)"):
        assert len(read(tmp_path / "log.csv")) == 38


def test_the_bar_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []

    class Bar:
        n = 0

        def __init__(self, **options: Any) -> None:
            self.total, self.disable = options["total"], options["disable"]
            told.append(self)

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: Any) -> None: ...

        def update(self, more: int) -> None:
            assert more >= 0
            self.n += more

    monkeypatch.setattr(reading, "tqdm", Bar)
    monkeypatch.setattr(blocks, "BLOCK", 100)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(as_csv(table())))
    read(tmp_path / "log.csv.gz", progress=True)
    read(table(), progress=True)
    assert [(bar.n == bar.total, bar.disable) for bar in told] == [(True, None)] * 2
    assert told[0].total == (tmp_path / "log.csv.gz").stat().st_size


def test_arguments_are_keywords_with_names() -> None:
    log = jb.read_log(table(), **NAMES, progress=False)
    assert log.names == NAMES
    assert log.unit == "row"
