"""A table, whatever holds it, as parts of some hundred thousand rows: columns by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.errors import ParserError

from jaxbio import checks
from jaxbio.data import blocks

PART = 500_000  # rows of a part
LABEL, TEXT = "category", "object"  # how pandas holds texts with few values, and with many
EMPTY = ("", "NA", "N/A", "NaN", "nan", "NaT", "null", "NULL", "None", "none", "-")
COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")  # a number
NO_PARQUET = (
    'is a Parquet file, which takes PyArrow to read: pip install "jaxbio[parquet]" (or save it as '
    "CSV)"
)


class Part(NamedTuple):
    """columns: name -> what has one value per row. rows: int64, where each is in the table.
    wrong: rows that have no values, as they have another number of fields than the header.
    """

    columns: dict[str, Any]
    rows: np.ndarray
    wrong: np.ndarray


class Table(NamedTuple):
    """names: of the columns. unit: what a row is counted in: "line" of a file, from 1, the header
    included, or "row" of a table, from 0. parts: (columns wanted, those of them whose texts are
    kept as they are and how pandas holds them, what is told how far it is) -> parts. total: what is
    told in the end.
    """

    title: str
    names: list[str]
    unit: str
    total: int
    counts: str
    parts: Callable[[list[str], Mapping[str, str], Callable[[int], Any]], Iterator[Part]]


def open_table(table: Any, separator: str | None, decimal: str, encoding: str) -> Table:
    """table: a path, a DataFrame (pandas, polars), a table of PyArrow or a mapping of columns."""
    if isinstance(table, str | Path):
        path = checks.path("table", table)
        if not path.is_file():
            raise ValueError(f"table: there is no file {str(path)!r}")
        kind, packed = blocks.suffixes(path)
        if kind in (".parquet", ".pq") and not packed:
            return _of_parquet(path)
        if kind in blocks.TEXTS or not kind:
            return _of_csv(path, separator, decimal, encoding)
        raise ValueError(
            f"table must be a CSV file (.csv, .tsv or .txt, or one of these compressed as "
            f"{', '.join(blocks.OPENERS)}) or a Parquet file (.parquet), but got {path.name!r}"
        )
    if isinstance(table, pd.DataFrame):
        return _of_columns([str(name) for name in table.columns], len(table), _of_pandas(table))
    home = type(table).__module__.partition(".")[0]
    if home == "polars" and checks.has(table, "get_column"):
        return _of_columns(list(table.columns), len(table), lambda name: _of_polars(table, name))
    if home == "pyarrow" and checks.has(table, "column_names"):
        whole = table.num_rows
        return _of_columns(table.column_names, whole, lambda name: table.column(name).to_pandas())
    if isinstance(table, Mapping):
        return _of_mapping(table)
    raise TypeError(
        "table must be the path of a CSV or Parquet file, a DataFrame of pandas or polars, a table "
        f"of PyArrow, or a mapping of columns, but got {checks.shown(table)}"
    )


def _of_pandas(frame: pd.DataFrame) -> Callable[[str], Any]:
    places = {str(name): i for i, name in enumerate(frame.columns)}
    return lambda name: frame.iloc[:, places[name]]


def _of_polars(table: Any, name: str) -> Any:
    column = table.get_column(name)
    zone = getattr(column.dtype, "time_zone", None)
    if zone is not None:  # polars keeps UTC
        return pd.Series(column.to_numpy()).dt.tz_localize("UTC")
    plain = column.dtype.is_numeric() or column.dtype.is_temporal()
    return column.to_numpy() if plain else np.array(column.to_list(), dtype=object)


def _of_mapping(table: Mapping[Any, Any]) -> Table:
    columns = {}
    for name, values in checks.mapping("table", table, "names to columns").items():
        column = values if checks.has(values, "dtype") else checks.several(
            f"column {name!r} of table", values, "values")  # fmt: skip
        if isinstance(column, list):
            series = pd.Series(column, dtype=None if column else object)
        else:
            series = column if isinstance(column, pd.Series) else pd.Series(np.asarray(column))
        columns[str(name)] = series
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        short, long = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        raise ValueError(
            f"columns of table must have the same length, but {short!r} has {lengths[short]} rows "
            f"and {long!r} {lengths[long]}"
        )
    rows = max(lengths.values(), default=0)
    return _of_columns(list(columns), rows, columns.__getitem__)


def _of_columns(names: list[str], rows: int, column: Callable[[str], Any]) -> Table:
    def parts(
        wanted: list[str], texts: Mapping[str, str], tell: Callable[[int], Any]
    ) -> Iterator[Part]:
        whole = {name: column(name) for name in wanted}
        for first in range(0, rows, PART):
            last = min(first + PART, rows)
            cut = {
                name: values.iloc[first:last]
                if isinstance(values, pd.Series)
                else values[first:last]
                for name, values in whole.items()
            }
            yield Part(cut, np.arange(first, last), np.empty(0, np.int64))
            tell(last)

    return Table("the table", names, "row", rows, "row", parts)


def _of_parquet(path: Path) -> Table:
    try:
        from pyarrow import ArrowException, parquet  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ValueError(f"{path.name} {NO_PARQUET}") from error
    try:
        file = parquet.ParquetFile(path)
    except (ArrowException, OSError) as error:
        raise ValueError(f"{path.name} cannot be read as Parquet: {error}") from error

    def parts(
        wanted: list[str], texts: Mapping[str, str], tell: Callable[[int], Any]
    ) -> Iterator[Part]:
        first = 0
        for batch in file.iter_batches(PART, columns=wanted):
            columns = {
                name: batch.column(name).to_pandas(integer_object_nulls=name in texts)
                for name in wanted
            }
            yield Part(columns, np.arange(first, first + batch.num_rows), np.empty(0, np.int64))
            first += batch.num_rows
            tell(first)

    names = list(file.schema_arrow.names)
    return Table(path.name, names, "row", file.metadata.num_rows, "row", parts)


def _of_csv(path: Path, separator: str | None, decimal: str, encoding: str) -> Table:
    file = blocks.CsvFile(path, separator, encoding)

    def parts(
        wanted: list[str], texts: Mapping[str, str], tell: Callable[[int], Any]
    ) -> Iterator[Part]:
        for block in file.blocks():
            yield Part(_columns(file, block, wanted, texts, decimal), block.lines, block.wrong)
            tell(block.seen)

    return Table(path.name, file.names, "line", path.stat().st_size, "B", parts)


def _columns(
    file: blocks.CsvFile, block: blocks.Block, wanted: list[str], texts: Mapping[str, str],
    decimal: str,
) -> dict[str, Any]:  # fmt: skip
    """Texts as they are; of the others pandas finds out what they are, in each block anew."""
    if not len(block.lines):
        return {name: np.empty(0, object) for name in wanted}
    places = {name: file.names.index(name) for name in wanted}
    order = sorted(places.values())
    try:
        frame = pd.read_csv(
            blocks.as_file(block.data),
            sep=file.separator,
            decimal=decimal,
            encoding=file.encoding,
            header=None,
            names=list(range(len(file.names))),
            usecols=order,
            index_col=False,
            dtype={places[name]: kind for name, kind in texts.items()},
            keep_default_na=False,
            na_values={
                places[name]: [""] if texts.get(name) == LABEL else list(EMPTY) for name in wanted
            },
            skip_blank_lines=False,
            skipinitialspace=True,
            low_memory=False,
            engine="c",
        )
    except UnicodeDecodeError as error:
        raise ValueError(blocks.wrong_encoding(file.path.name, file.encoding, error)) from error
    except ParserError as error:
        raise ValueError(f"{file.path.name} cannot be read as CSV: {error}") from error
    if len(frame) != len(block.lines):
        raise ValueError(blocks.stray_marks(file.path.name, block.lines[0], block.lines[-1]))
    columns = {name: frame[place] for name, place in places.items()}
    if decimal == ",":  # pandas leaves them as they are where something else is among them
        for name, column in columns.items():
            if texts.get(name) != LABEL and not pd.api.types.is_numeric_dtype(column.dtype):
                columns[name] = column.map(_with_point, na_action="ignore")
    return columns


def _with_point(value: Any) -> Any:
    found = isinstance(value, str) and "," in value and COMMA.fullmatch(value)
    return value.replace(",", ".") if found else value
