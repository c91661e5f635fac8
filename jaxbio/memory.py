"""Is there room? What grows with the numbers of the user is counted before it is allocated."""

from __future__ import annotations

import math
from typing import Any

from jaxbio import checks
from jaxbio.surroundings import free_memory

UNASKED = 1 << 26  # bytes that are taken without a look at what is free
CHECKED = 5  # copies of a table that are in memory while it is made and checked


class TooLargeError(MemoryError, ValueError):
    """More is asked for than there is room for."""


def checked(memory: Any) -> float | None:
    """Bytes; infinity for no limit, None for what is free."""
    if memory is None or (isinstance(memory, float) and memory == math.inf):
        return memory
    return checks.number("memory", memory, 0, open_low=True)


def limit_of(memory: float | None) -> float:
    """Bytes that may be taken. memory: as `checked` gives it."""
    return free_memory() if memory is None else memory


def refuse(what: str, needed: float, limit: float, remedy: str) -> None:
    """Raise where that many bytes are more than there are."""
    if needed > limit:
        raise TooLargeError(f"{what}: more than the {size(limit)} there are; use {remedy}")


def refuse_table(what: str, entries: int, remedy: str) -> None:
    """Raise where a table of so many numbers, 8 bytes each, cannot be made and checked here."""
    needed = 8 * CHECKED * entries
    if needed > UNASKED:
        refuse(f"{what} takes {size(needed)} while it is made", needed, free_memory(), remedy)


def size(count: float) -> str:
    """A number of bytes in words."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
