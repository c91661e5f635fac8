"""A further column of the table that a log was made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxbio.data.log import Log
from jaxbio.data.numbers import as_numbers
from jaxbio.data.tables import open_table


def further_column(
    table: Any, role: str, name: str, log: Log, *, separator: str | None = None,
    decimal: str = ".", encoding: str = "utf-8",
) -> np.ndarray:  # fmt: skip
    """float64 [rows] of the log: the numbers in a column. role: of the column, for messages."""
    opened = open_table(table, separator, decimal, encoding)
    if name not in opened.names:
        raise ValueError(f"{role}: {opened.title} has no column {name!r}; it has {opened.names}")
    places, values = [], []
    for part in opened.parts([name], {}, lambda seen: None):
        found = as_numbers(part.columns[name]).values if len(part.rows) else np.empty(0)
        places.append(part.rows)
        values.append(found)
    place = np.concatenate(places)
    found = np.concatenate(values)[np.searchsorted(place, log.row)]
    missing = np.isnan(found)
    if missing.any():
        raise ValueError(
            f"column {name!r} ({role}) has no number in {int(missing.sum()):,} rows, first in "
            f"{log.unit} {log.row[int(np.argmax(missing))]}"
        )
    return found
