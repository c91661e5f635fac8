"""Times in the usual forms: with a date, with or without a time zone, or plain numbers."""

from __future__ import annotations

import re
import warnings
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jaxbio.data.numbers import as_numbers, as_texts, is_empty, plain

UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}  # microseconds
EARLIEST, LATEST = 6.3e14, 4.1e15  # 1990 and 2100 as microseconds since 1970
FIRST, BEYOND = -6.2135596800e16, 2.53402300800e17  # the years 1 and 10,000
DIGITS = {"%Y%m%d": 0, "%Y%m%d%H%M": 4, "%Y%m%d%H%M%S": 6}  # format -> digits after the day
NEARLY = 0.95
TRIED = 1000  # texts that decide whether a column has numbers
ZONED = re.compile(
    r"[T ]\d{1,2}(?::?\d{2}){0,2}(?:[.,]\d+)?\s*(?:Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)$", re.IGNORECASE
)
NAMED_UTC = re.compile(r"\s*(?:UTC|GMT)$", re.IGNORECASE)
DATE, ZONE, NUMBER = "a date without a time zone", "a date with a time zone", "a number"
GUESSES = (  # formats that are named in messages
    "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%d/%m/%Y", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M",
    "%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %I:%M %p", "%m/%d/%Y", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M",
    "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S",
    "%d-%b-%Y %H:%M:%S", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y %H:%M", "%d %b %Y", "%b-%y", "%b %Y",
    "%d/%b/%Y:%H:%M:%S %z",
)  # fmt: skip


class Stamps(NamedTuple):
    """values [rows]: datetime64[us], in UTC where there is a zone, or float64; NaT or NaN where
    there is none. kinds: what is found -> its first place. unreadable: bool [rows]: something is
    there that is none of these. lost: bool [rows]: it is in an hour that clocks skip or have twice.
    """

    values: np.ndarray
    kinds: dict[str, int]
    unreadable: np.ndarray
    lost: np.ndarray


def as_stamps(column: Any, form: str | None, zone: str | None) -> Stamps:
    """form: as for `strptime`, where times are texts of another form than ISO 8601. zone: of dates
    without one.
    """
    series = plain(column)
    nowhere = np.zeros(len(series), bool)
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return _placed(series, nowhere, zone)
    if pd.api.types.is_numeric_dtype(series.dtype) and form is None:
        if pd.api.types.is_bool_dtype(series.dtype):
            return Stamps(np.full(len(series), np.nan), {}, ~series.isna().to_numpy(bool), nowhere)
        return of_numbers(as_numbers(series))
    if pd.api.types.is_numeric_dtype(series.dtype):  # such as 20260302
        texts = series.astype("Int64").astype(object).where(series.notna(), None)
        series = texts.map(str, na_action="ignore")
    if form is None and are_numbers(series):
        return of_numbers(as_texts(series))
    fast = _all_alike(series, form)
    return _one_by_one(series, form, zone) if fast is None else _placed(
        fast, np.zeros(len(fast), bool), zone)  # fmt: skip


def of_numbers(found: Any) -> Stamps:
    there = np.flatnonzero(~np.isnan(found.values))
    kinds = {NUMBER: int(there[0])} if there.size else {}
    return Stamps(found.values, kinds, found.unreadable, np.zeros(len(found.values), bool))


def are_numbers(series: Any) -> bool:
    some = series.dropna().iloc[:TRIED]
    texts = pd.Series([one for one in some if isinstance(one, str)], dtype=object)
    numbers = sum(isinstance(one, Real | Decimal) and not isinstance(one, bool) for one in some)
    return bool((~np.isnan(as_texts(texts).values)).sum() + numbers > len(some) / 2)


def _all_alike(series: Any, form: str | None) -> Any:
    """Quickly, where all are of one kind."""
    try:
        with warnings.catch_warnings():  # of pandas 2, where they are not
            warnings.simplefilter("error")
            found = pd.to_datetime(series, format=form or "ISO8601", cache=False)
    except (ValueError, TypeError, Warning, OverflowError):
        return None
    return found if pd.api.types.is_datetime64_any_dtype(found.dtype) else None


def _one_by_one(series: Any, form: str | None, zone: str | None) -> Stamps:
    """Dates with a zone and dates without one, and what is neither."""
    texts = series.astype(object).reset_index(drop=True)
    empty = is_empty(texts)
    strings = texts.where(empty, texts.map(lambda one: str(one).strip())).where(~empty, "")
    if form is None:
        zoned = np.fromiter((ZONED.search(one) is not None for one in strings), bool, len(strings))
        strings = strings.where(~zoned, strings.str.replace(NAMED_UTC, "Z", regex=True))
    else:
        zoned = np.full(len(strings), "%z" in form or "%Z" in form)
    values = np.full(len(strings), np.datetime64("NaT", "us"))
    lost = np.zeros(len(strings), bool)
    for mask, utc in ((zoned & ~empty, True), (~zoned & ~empty, False)):
        if mask.any():
            read = pd.to_datetime(
                strings[mask], format=form or "ISO8601", errors="coerce", utc=utc, cache=False
            )
            placed, more = _in_zone(read, None if utc else zone)
            values[mask] = placed
            lost[mask] = more
    unreadable = np.isnat(values) & ~empty & ~lost
    there = ~np.isnat(values)
    kinds = {}
    for kind, mask in ((ZONE, there & (zoned | (zone is not None))),
                       (DATE, there & ~zoned & (zone is None))):  # fmt: skip
        if mask.any():
            kinds[kind] = int(np.argmax(mask))
    return Stamps(values, kinds, unreadable, lost)


def _placed(series: Any, unreadable: np.ndarray, zone: str | None) -> Stamps:
    """Of dates that all have a zone, or all have none."""
    there = np.flatnonzero(series.notna().to_numpy())
    values, lost = _in_zone(series, zone)
    aware = series.dt.tz is not None or zone is not None
    kinds = {ZONE if aware else DATE: int(there[0])} if there.size else {}
    return Stamps(values, kinds, unreadable, lost)


def _in_zone(series: Any, zone: str | None) -> tuple[np.ndarray, np.ndarray]:
    """datetime64[us] [rows], and which of them are in an hour that clocks skip or have twice."""
    before = series.notna().to_numpy()
    if series.dt.tz is None and zone is not None:
        series = series.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
    if series.dt.tz is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    values = series.to_numpy("datetime64[us]")
    return values, before & np.isnat(values)


def unit_of(values: np.ndarray) -> str | None:
    """Of numbers [rows]: since 1970 in one of UNITS if that makes them dates from 1990 to 2100.
    Only those above 0 count: 0 and -1 may stand for what has not come.
    """
    above = values[values > 0]
    if not above.size:
        return None
    middle = float(np.median(above))
    return next((one for one, size in UNITS.items() if EARLIEST <= middle * size <= LATEST), None)


def as_dates(values: np.ndarray, unit: str) -> np.ndarray:
    """datetime64[us] [rows] of numbers since 1970; NaT if they are not in the years 1 to 9999."""
    found = np.full(len(values), np.datetime64("NaT", "us"))
    size = UNITS[unit]
    there = (values >= FIRST / size) & (values < BEYOND / size)
    found[there] = np.rint(values[there] * size).astype(np.int64).astype("datetime64[us]")
    return found


def digits_of_dates(values: np.ndarray) -> str | None:
    """Of numbers [rows]: the format in which nearly all of them are dates from 1990 to 2099."""
    there = values[~np.isnan(values)]
    for form, rest in DIGITS.items():
        day = np.floor(there / 10.0**rest)
        year, month = np.floor(day / 10_000), np.floor(day / 100) % 100
        dates = (year >= 1990) & (year < 2100) & (month >= 1) & (month <= 12)
        dates &= (day % 100 >= 1) & (day % 100 <= 31) & (there == np.rint(there))
        if dates.mean() > NEARLY:
            return form
    return None


def guessed_formats(text: str) -> list[str]:
    """Formats that read this text, for a message."""
    return [
        form for form in GUESSES if pd.notna(pd.to_datetime(text, format=form, errors="coerce"))
    ]
