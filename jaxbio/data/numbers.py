"""Columns of numbers, in whatever form they come."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jaxbio.data.tables import EMPTY

WORDS = dict.fromkeys(("true", "t", "yes", "y"), 1.0) | dict.fromkeys(
    ("false", "f", "no", "n"), 0.0
)


class Numbers(NamedTuple):
    """values: float64 [rows], NaN where there is none. unreadable: bool [rows]: something is there
    that is no finite number.
    """

    values: np.ndarray
    unreadable: np.ndarray


def as_numbers(column: Any) -> Numbers:
    series = plain(column)
    if pd.api.types.is_numeric_dtype(series.dtype):  # truth values included
        values = series.to_numpy(np.float64, na_value=np.nan)
        return _finite(values, np.zeros(len(values), bool))
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return Numbers(np.full(len(series), np.nan), series.notna().to_numpy())
    return as_texts(series)


def plain(column: Any) -> Any:
    """A column as a Series; categories as what they are categories of."""
    series = pd.Series(column)
    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.astype(series.cat.categories.dtype)
    return series


def as_texts(series: Any) -> Numbers:
    """Of texts, some of which may be no numbers."""
    texts = series.astype(object)
    empty = is_empty(texts)
    read: Any = pd.to_numeric(texts.where(~empty), errors="coerce")
    values = np.array(read, dtype=np.float64)
    odd = np.flatnonzero(np.isnan(values) & ~empty)
    if odd.size:
        codes, kinds = pd.factorize(texts.iloc[odd].map(str))
        words = np.array([WORDS.get(one.strip().lower(), np.nan) for one in kinds])
        values[odd] = words[codes]
    return _finite(values, np.isnan(values) & ~empty)


def is_empty(texts: Any) -> np.ndarray:
    """bool [rows]: nothing is there, or a word for nothing."""
    return (texts.isna() | texts.isin(EMPTY)).to_numpy(bool)


def _finite(values: np.ndarray, unreadable: np.ndarray) -> Numbers:
    endless = np.isinf(values)
    return Numbers(np.where(endless, np.nan, values), unreadable | endless)
