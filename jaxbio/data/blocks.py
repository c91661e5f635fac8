"""A CSV file in blocks of whole records, with the line that each record begins in.

pandas reads the blocks. It says nothing of a record that has more fields than the header, and it
fills up one that has fewer, so records are counted and checked here before it gets them.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

BLOCK = 1 << 24  # bytes that are read at a time
LONGEST = 1 << 28  # bytes of a record
SEPARATORS = ",;\t|"
QUOTE, NEWLINE = ord('"'), ord("\n")
TEXTS = (".csv", ".tsv", ".txt")
OPENERS: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zip": lambda raw: _only_member(raw),
}


class Block(NamedTuple):
    """data: whole records. lines: int64 [records], where each begins; the header is in line 1.
    wrong: lines of records that were taken out, as they have another number of fields than the
    header. seen: bytes of the file that are read so far.
    """

    data: bytes
    lines: np.ndarray
    wrong: np.ndarray
    seen: int


class CsvFile:
    """A CSV file that may be compressed. names: of its columns, from its first line.

    separator: None finds it in the first line. encoding: one that has the bytes of ASCII.
    """

    def __init__(self, path: Path, separator: str | None, encoding: str) -> None:
        self.path, self.encoding = path, encoding
        with path.open("rb") as raw, _unpacked(path, raw) as file:
            try:
                first = file.readline(LONGEST)
            except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile) as error:
                raise ValueError(f"{path.name} cannot be unpacked: {error}") from error
        self.head = len(first)
        text = self._text(first.removeprefix(b"\xef\xbb\xbf"))
        self.separator = separator or max(SEPARATORS, key=text.count)
        try:
            row = next(csv.reader([text.rstrip("\r\n")], delimiter=self.separator), [])
        except csv.Error as error:
            raise ValueError(
                f"the first line of {path.name} cannot be read as names of columns ({error}): "
                r"lines must end in \n (Unix) or \r\n (Windows), not in a carriage return alone"
            ) from error
        self.names = [name.strip() for name in row]

    def _text(self, line: bytes) -> str:
        if line.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in line:
            raise ValueError(
                f"{self.path.name} is no text of one byte per letter of ASCII: save it as CSV in "
                "UTF-8 (if it is a Parquet file, its name must end in .parquet)"
            )
        try:
            return line.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise ValueError(wrong_encoding(self.path.name, self.encoding, error)) from error

    def blocks(self) -> Iterator[Block]:
        with self.path.open("rb") as raw, _unpacked(self.path, raw) as file:
            file.read(self.head)
            line, kept = 2, b""
            while True:
                try:
                    more = file.read(BLOCK)
                except (OSError, EOFError, lzma.LZMAError) as error:
                    raise ValueError(f"{self.path.name} cannot be unpacked: {error}") from error
                data = kept + more
                if more:
                    cut = _end_of_records(data)
                    if cut == 0 and len(data) > LONGEST:
                        raise ValueError(self._never_closed(line))
                else:
                    cut = len(data)
                    if data.count(b'"') % 2:
                        raise ValueError(self._never_closed(line))
                whole, kept = data[:cut], data[cut:]
                if whole:
                    yield self._checked(whole, line, raw.tell())
                    line += whole.count(b"\n")
                if not more:
                    return

    def _never_closed(self, line: int) -> str:
        return (
            f"{self.path.name}: a quotation mark in line {line} or after it is never closed; write "
            'a quotation mark inside of a text twice (""), and the text in quotation marks'
        )

    def _checked(self, data: bytes, line: int, seen: int) -> Block:
        """The records of whole lines; blank lines are left out."""
        if not data.endswith(b"\n"):
            data += b"\n"
        mark, fields = ord(self.separator), len(self.names)
        if b'"' not in data and not _has_blank(data) and _is_regular(data, mark, fields):
            lines = np.arange(line, line + data.count(b"\n"))
            return Block(data, lines, np.empty(0, np.int64), seen)
        return self._sorted_out(data, line, mark, fields, seen)

    def _sorted_out(self, data: bytes, line: int, mark: int, fields: int, seen: int) -> Block:
        """What is inside of quotation marks neither ends a field nor a record."""
        letters = np.frombuffer(data, np.uint8)
        quotes = letters == QUOTE
        inside = np.logical_xor.accumulate(quotes) if quotes.any() else quotes
        ends = np.flatnonzero((letters == NEWLINE) & ~inside)
        starts = np.concatenate([[0], ends[:-1] + 1])
        newlines = np.flatnonzero(letters == NEWLINE)
        lines = line + np.searchsorted(newlines, starts)
        last = line + np.searchsorted(newlines, ends)
        marks = np.flatnonzero((letters == mark) & ~inside)
        has = np.searchsorted(marks, ends) - np.searchsorted(marks, starts) + 1
        blank = (ends == starts) | ((ends == starts + 1) & (letters[starts] == ord("\r")))
        fine = (has == fields) & ~blank
        if (last > lines).any():
            doubtful = ~fine
            doubtful[np.searchsorted(ends, _strays(letters, quotes, inside, mark))] = True
            doubtful &= last > lines
            if doubtful.any():
                first = int(np.argmax(doubtful))
                raise ValueError(stray_marks(self.path.name, lines[first], last[first]))
        if not fine.all():
            keep = np.repeat(fine, ends + 1 - starts)
            data = letters[: len(keep)][keep].tobytes()
        return Block(data, lines[fine], lines[~fine & ~blank], seen)


def stray_marks(name: str, first: int, last: int) -> str:
    return (
        f"{name}: between lines {first} and {last} there are quotation marks or carriage returns "
        "inside of texts that are not themselves in quotation marks, so that records cannot be "
        'told apart: write a quotation mark twice (""), and the text in quotation marks'
    )


def wrong_encoding(name: str, encoding: str, error: UnicodeDecodeError) -> str:
    found = error.object[error.start : error.start + 1]
    return (
        f"{name} is not encoded in {encoding} (it has the byte {found!r}): give its encoding, such "
        "as encoding='latin-1'"
    )


def suffixes(path: Path) -> tuple[str, str]:
    """("csv", "gz"): the kind of a file and how it is compressed, as its name says."""
    last = path.suffix.lower()
    if last in OPENERS:
        return Path(path.stem).suffix.lower(), last
    return last, ""


def _unpacked(path: Path, raw: IO[bytes]) -> IO[bytes]:
    how = suffixes(path)[1]
    try:
        return OPENERS[how](raw) if how else raw
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path.name} cannot be unpacked: {error}") from error


def _only_member(raw: IO[bytes]) -> IO[bytes]:
    archive = zipfile.ZipFile(raw)
    names = [name for name in archive.namelist() if not name.endswith("/")]
    if len(names) != 1:
        raise ValueError(f"a zip archive must have one file in it, but this one has {len(names)}")
    return archive.open(names[0])


def _end_of_records(data: bytes) -> int:
    """Bytes up to the end of the last line that does not end inside of quotation marks."""
    end = data.rfind(b"\n") + 1
    if b'"' not in data:
        return end
    marks = np.flatnonzero(np.frombuffer(data, np.uint8) == QUOTE)
    while end and np.searchsorted(marks, end) % 2:
        end = data.rfind(b"\n", 0, end - 1) + 1
    return end


def _has_blank(data: bytes) -> bool:
    return data.startswith((b"\n", b"\r\n")) or b"\n\n" in data or b"\n\r\n" in data


def _is_regular(data: bytes, separator: int, fields: int) -> bool:
    """Has every line so many fields?"""
    letters = np.frombuffer(data, np.uint8)
    marks = letters[(letters == separator) | (letters == NEWLINE)]
    if len(marks) % fields:
        return False
    ends = (marks == NEWLINE).reshape(-1, fields)
    return bool(ends[:, -1].all() and not ends[:, :-1].any())


def _strays(
    letters: np.ndarray, quotes: np.ndarray, inside: np.ndarray, separator: int
) -> np.ndarray:
    """Places of quotation marks that neither begin a field nor end one, nor are written twice."""
    places = np.flatnonzero(quotes)
    beside = letters[np.where(inside[places], places - 1, places + 1)]  # the last is a newline
    fine = np.zeros(256, bool)
    fine[[separator, NEWLINE, QUOTE, ord("\r"), ord(" ")]] = True
    return places[~fine[beside]]


def as_file(data: bytes) -> Any:
    return io.BytesIO(data)
