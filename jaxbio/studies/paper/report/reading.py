"""What a report keeps in files is read as if a stranger had written them: types, then names.

Whatever is not as it should be raises a ValueError that names the file and the entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from jaxbio.checks import shown

PNG = b"\x89PNG\r\n\x1a\n"
FIGURE = re.compile(r"figures/[\w+=-][\w.+=-]*\.(png|pdf)")
NUMBERS = re.compile(r"data/[\w+=-][\w.+=-]*\.nc")
Check = Callable[[str, Any], Any]


def refused(where: str, expected: str, value: Any) -> ValueError:
    return ValueError(f"{where} must be {expected}, but it is {shown(value)}")


def json_of(file: Path) -> Any:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        json.dumps(found, ensure_ascii=False).encode()  # halves of letters are no text
        return found
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not JSON: {error}") from error


def of_type(expected: str, *types: type) -> Check:
    def check(where: str, value: Any) -> Any:
        if type(value) not in types:  # a bool is no number here
            raise refused(where, expected, value)
        return value

    return check


text = of_type("a text", str)


def maybe_number(where: str, value: Any) -> float | None:
    number = of_type("a number or null", int, float, type(None))(where, value)
    if isinstance(number, int) and abs(number) > 2**63:
        raise refused(where, "a number that a float can hold", value)
    return number


scalar = of_type("a text, a number, true, false or null", str, int, float, bool, type(None))


def line(where: str, value: Any) -> str:
    if len(text(where, value).splitlines()) > 1:
        raise refused(where, "one line", value)
    return value


def positive(where: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise refused(where, "an integer of at least 1", value)
    return value


def one_of(*words: str) -> Check:
    def check(where: str, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise refused(where, f"one of {', '.join(words)}", value)
        return value

    return check


def like(pattern: re.Pattern[str], expected: str) -> Check:
    def check(where: str, value: Any) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise refused(where, expected, value)
        return value

    return check


figure = like(FIGURE, "the name of a PNG or PDF file in figures/")
numbers = like(NUMBERS, "the name of a netCDF file in data/")


def list_of(entry: Check) -> Check:
    def check(where: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise refused(where, "a list", value)
        return [entry(f"{where}[{i}]", one) for i, one in enumerate(value)]

    return check


def table_of(entry: Check, *needed: str) -> Check:
    """name -> what is checked as `entry`; with these names among them."""

    def check(where: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or not set(needed) <= value.keys():
            expected = f"a table with {', '.join(needed)}" if needed else "a table"
            raise refused(where, expected, value)
        return {name: entry(f"{where}.{name}", one) for name, one in value.items()}

    return check


def maybe(entry: Check) -> Check:
    return lambda where, value: None if value is None else entry(where, value)


def made(kind: Any, **entries: Check) -> Check:
    """A dataclass whose fields are checked as `entries` say."""
    optional = {field.name for field in fields(kind) if field.default is not MISSING}

    def check(where: str, value: Any) -> Any:
        if not isinstance(value, dict) or not entries.keys() - optional <= value.keys():
            raise refused(where, f"a table with {', '.join(entries)}", value)
        for name in value:
            if name not in entries:
                raise refused(where, f"a table with {', '.join(entries)}", f"also {name}")
        return kind(**{name: entries[name](f"{where}.{name}", one) for name, one in value.items()})

    return check


def picture(folder: Path, name: str) -> bytes:
    """The bytes of a PNG of the report; nothing else is put into a page."""
    path = folder / figure(f"a figure in {folder}", name)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{path} must be a file in the folder of the report, but it is a link")
    if not path.is_file():
        raise ValueError(f"{path} must be a PNG of the report, but there is no such file")
    content = path.read_bytes()
    if not content.startswith(PNG) or len(content) < 24:
        raise ValueError(f"{path} must be a PNG, but it is none")
    return content
