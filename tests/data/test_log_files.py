"""CSV files that are broken, or that mix ways of writing: refused, or read as they are meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from log_tables import read, table

import jaxbio as jb
from jaxbio.data import blocks

STRAY = "between lines 12 and 902 there are quotation marks or carriage returns inside of texts"


def lines_of(rows: int, **columns: Any) -> list[str]:
    made = table(rows, **({"shown": range(rows), "known": range(rows)} | columns))
    return pd.DataFrame(made).to_csv(index=False).splitlines()


def written(path: Path, lines: list[str], end: str = "\n") -> Path:
    path.write_text("".join(line + end for line in lines), newline="")
    return path


@pytest.mark.parametrize("column", [1, 2])
@pytest.mark.parametrize("texts", [('5"tv', '6"tv'), ('"tv', '6"tv'), ('"tv', 'tv"')])
@pytest.mark.parametrize("block", [300, 1 << 24])
def test_two_stray_quotation_marks_far_from_each_other(
    block: int, texts: tuple[str, str], column: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 890 lines between them are inside of quotation marks, in one field."""
    lines = lines_of(1000)
    for line, place, text in ((12, 1, texts[0]), (902, column, texts[1])):
        fields = lines[line - 1].split(",")
        fields[place] = text
        lines[line - 1] = ",".join(fields)
    monkeypatch.setattr(blocks, "BLOCK", block)
    if column == 1 and texts == ('"tv', 'tv"'):
        # As good as any text of many lines. What it says of itself is all that can be done.
        with pytest.warns(jb.LogWarning, match="hardly any row has action"):
            read(written(tmp_path / "log.csv", lines), time_unit="number")
        return
    with pytest.raises(ValueError, match=STRAY):
        read(written(tmp_path / "log.csv", lines), time_unit="number")


def test_carriage_returns_alone(tmp_path: Path) -> None:
    lines = lines_of(40)
    with pytest.raises(ValueError, match=r"the first line of log.csv cannot be read .* \\n \(Unix"):
        read(written(tmp_path / "log.csv", lines, "\r"))
    lines[20] = lines[20].replace(",a,", ",a\r,").replace(",b,", ",b\r,")
    with pytest.raises(ValueError, match=r"lines 2 and 41 there .* or carriage returns"):
        read(written(tmp_path / "log.csv", lines))


@pytest.mark.filterwarnings("ignore::jaxbio.LogWarning")
def test_a_decimal_comma_beside_what_is_no_number(tmp_path: Path) -> None:
    losses = ["0,5" if i % 20 == 0 else "0" for i in range(200)]
    losses[7], losses[40], losses[60] = "?", "+,25", "5e-1 "
    shown = [f"{i},5" for i in range(200)]
    lines = pd.DataFrame(table(200, shown=shown, cost=losses, known=shown)).to_csv(
        index=False, sep=";"
    )
    lines = lines.replace("150,5;", "soon;", 1)
    (tmp_path / "log.csv").write_text(lines)
    for options in ({}, {"key": "shown"}):
        log = read(tmp_path / "log.csv", decimal=",", time_unit="number", **options)
        assert {reason: one.first for reason, one in log.dropped.items()} == {
            "cost is no number": (9,),
            "shown is no time": (152,),
        }
        assert log.row[0] == 2
        assert log.time[0] == 0.5
        halves = np.flatnonzero(log.loss).tolist()
        assert log.loss[halves].tolist() == [0.5, 0.5, 0.25, *[0.5] * 7]
    with pytest.raises(ValueError, match="such as '0,5'"):
        read(tmp_path / "log.csv", time_unit="number")
