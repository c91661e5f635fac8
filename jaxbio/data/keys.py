"""Names of events, which must be told apart however long they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.util import hash_array

from jaxbio.data.labels import label
from jaxbio.data.numbers import is_empty, plain

EXACT = 2.0**53  # whole numbers below it are all floats


def hashed(values: Any, column: str, unit: str, rows: np.ndarray) -> np.ndarray:
    """uint64 [rows]; 0 where there is no key. The same key has the same hash in every part.

    007 and 7 are two keys; 7, 7.0 and "7" are one, as whole numbers become floats where others of
    their column are missing. unit, rows: where each is in the table.
    """
    series = plain(values)
    if pd.api.types.is_float_dtype(series.dtype):
        numbers = series.to_numpy(np.float64, na_value=np.nan)
        large = np.flatnonzero(np.abs(numbers) >= EXACT)
        if large.size:
            raise ValueError(
                f"column {column!r} (key) must have texts or whole numbers, but {unit} "
                f"{rows[large[0]]} has the float {numbers[large[0]]:.17g}, and floats of this size "
                "do not tell whole numbers apart: read the column as text (dtype=str) or as Int64"
            )
    texts = series.astype(object)
    there = ~is_empty(texts)
    names = np.empty(len(texts), object)
    names[:] = [
        one.strip() if type(one) is str and "." not in one else label(one)  # as label(one), quickly
        for one in texts.where(there, "")
    ]
    found = hash_array(names, categorize=False)  # pyright: ignore[reportCallIssue]
    return np.where(there & (names != ""), np.maximum(found, np.uint64(1)), np.uint64(0))
