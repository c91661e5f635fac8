"""How long outcomes took: a column of numbers or of durations, or one duration for all rows."""

from __future__ import annotations

import datetime
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd

from jaxbio import checks
from jaxbio.checks import shown
from jaxbio.data.numbers import as_numbers, as_texts, is_empty, plain
from jaxbio.data.times import Stamps, are_numbers, of_numbers

UNITS = {"d": 86_400e6, "h": 3_600e6, "min": 60e6, "s": 1e6, "ms": 1e3}  # microseconds
DURATION = "a duration"
LONGEST = 1e17  # microseconds: 3,000 years
SHORT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(d|h|min|s|ms)\s*")
SPAN = np.timedelta64(1, "us")


def as_durations(column: Any) -> Stamps:
    """values: timedelta64[us] or float64 [rows]; texts such as "3 days 04:00:00" are read."""
    series = plain(column)
    nowhere = np.zeros(len(series), bool)
    if pd.api.types.is_timedelta64_dtype(series.dtype):
        return _spans(series, nowhere)
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return Stamps(np.full(len(series), np.nan), {}, series.notna().to_numpy(), nowhere)
    if pd.api.types.is_numeric_dtype(series.dtype):
        return of_numbers(as_numbers(series))
    if are_numbers(series):
        return of_numbers(as_texts(series))
    texts = series.astype(object)
    empty = is_empty(texts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of units that pandas will spell in another way
        found = pd.to_timedelta(texts.where(~empty, None), errors="coerce")
    bare = ~np.isnan(as_texts(texts).values)  # 5 of nothing
    return _spans(found.mask(bare), (found.isna().to_numpy() | bare) & ~empty)


def _spans(series: Any, unreadable: np.ndarray) -> Stamps:
    values = series.to_numpy("timedelta64[us]")
    there = np.flatnonzero(~np.isnat(values))
    kinds = {DURATION: int(there[0])} if there.size else {}
    return Stamps(values, kinds, unreadable, np.zeros(len(values), bool))


def one_duration(value: Any) -> float | np.timedelta64 | None:
    """What is said for all rows, such as 90, "90" or "7d"; None if it is none of these."""
    if isinstance(value, str):
        value = _read(value)
        if value is None:
            return None
    if isinstance(value, datetime.timedelta | np.timedelta64):  # those of pandas too
        span: Any = pd.Timedelta(value)
        found = np.timedelta64("NaT") if span is pd.NaT else span.to_timedelta64()
        if np.isnat(found) or found < 0 * SPAN:
            raise ValueError(f"delay must be at least 0, but got {shown(value)}")
        return found.astype("timedelta64[us]")
    return float(checks.number("delay", value, 0))


def _read(text: str) -> Any:
    """A number, a duration, or None."""
    short = SHORT.fullmatch(text)
    if short:
        return as_spans(np.array(float(short[1])), short[2])[()]
    try:
        return float(text)
    except ValueError:
        try:
            return pd.Timedelta(text)
        except ValueError:
            return None


def as_spans(values: np.ndarray, unit: str) -> np.ndarray:
    """timedelta64[us] of numbers that count in a unit; NaT where they are beyond all dates."""
    fine = np.abs(values) < LONGEST / UNITS[unit]
    scaled = np.where(fine, values, 0.0) * UNITS[unit]
    whole = np.rint(scaled).astype(np.int64).astype("timedelta64[us]")
    return np.where(fine, whole, np.timedelta64("NaT", "us"))
