"""Events that are in a table twice are known by their keys, and no two others are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from log_tables import read, table

from jaxbio.data import blocks, tables

LONG = 1_700_000_000_000_000_000  # a float of this size has steps of 256


def repeats(source: Any, **options: Any) -> list[int]:
    """Rows or lines that count as repeats."""
    log = read(source, key="id", most_dropped=0.5, **options)
    every = log.dropped.get("id is that of an earlier row")
    return [] if every is None else list(every.first)


def as_file(path: Path, keys: list[Any]) -> Path:
    pd.DataFrame(table() | {"id": pd.Series(keys, dtype=object)}).to_csv(path, index=False)
    return path


KEYS: dict[str, tuple[list[Any], list[int]]] = {
    "long ids and one empty": ([None, *[str(LONG + i) for i in range(38)], str(LONG)], [39]),
    "zeros in front and exponents": (
        ["007", "7", "1e3", "10e2", *[str(i + 50) for i in range(35)], "007"], [39],
    ),
    "numbers, with none further down": (
        ["1", *[str(i + 50) for i in range(37)], "", "1"], [39],
    ),
    "one that became a float": (["1.0", "2.0", *[str(i + 3) for i in range(37)], "2"], [39]),
    "words for nothing": ([*[str(i) for i in range(37)], "NA", "NA", "-"], []),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("part", [7, 500_000])
def test_keys_are_texts(
    part: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else is in their block, in a file and in a table of texts."""
    keys, found = KEYS[name]
    monkeypatch.setattr(tables, "PART", part)
    monkeypatch.setattr(blocks, "BLOCK", part * 50)
    assert repeats(as_file(tmp_path / "log.csv", keys)) == [row + 2 for row in found]
    assert repeats(table() | {"id": keys}) == found


@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
def test_keys_of_numbers(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    keys = pd.Series([*range(38), None, 3], dtype="Int64")
    frame = pd.DataFrame(table()).assign(id=keys)
    assert repeats(frame) == repeats(frame.astype({"id": float})) == [39]
    assert repeats(frame.astype({"id": object})) == [39]
    long = frame.assign(id=keys + LONG)
    long.to_parquet(tmp_path / "log.parquet")
    for one in (long, tmp_path / "log.parquet"):
        assert repeats(one) == [39]
    with pytest.raises(ValueError, match=r"column 'id' \(key\) must .* row 0 has the float 1.7e"):
        repeats(frame.assign(id=(keys + LONG).astype(float)))


@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
def test_the_time_may_be_the_key(tmp_path: Path) -> None:
    shown = [0.5 + i for i in range(39)] + [3.5]
    made = table(shown=shown, known=shown)
    pd.DataFrame(made).to_csv(tmp_path / "log.csv", index=False)
    for one in (made, tmp_path / "log.csv"):
        log = read(one, key="shown", time_unit="number")
        assert log.time.tolist() == shown[:39]
