"""Is there room? What grows with the numbers of the user is counted before it is allocated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxbio import checks

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


def free_memory(root: Path = Path("/")) -> float:
    """Bytes that this process may still take: of the machine, and of its control groups."""
    return min([float("inf"), *_of_the_machine(root), *_of_the_groups(root)])


def _of_the_machine(root: Path) -> Iterator[float]:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable"):
            yield 1024.0 * int(line.split()[1])


def _of_the_groups(root: Path) -> Iterator[float]:
    """Of version 2 and version 1; a limit of any group above ours counts too."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            names = ("memory.max", "memory.current", "inactive_file")
            mounts = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            mounts = [root / "sys/fs/cgroup/memory"]
        else:
            continue
        own = Path(path.lstrip("/"))
        for mount in mounts:
            for group in (own, *own.parents):
                yield from _left(mount / group, *names)


def _left(group: Path, limit: str, used: str, reclaimable: str) -> Iterator[float]:
    """The limit less what is used; pages of files that nobody uses can be had back."""
    texts = [(_lines(group / name) or [""])[0] for name in (limit, used)]
    if all(text.isdecimal() for text in texts):
        most, taken = (float(text) for text in texts)
        back = [line.split()[1] for line in _lines(group / "memory.stat") if
                line.split()[:1] == [reclaimable]]  # fmt: skip
        yield max(0.0, most - taken + sum(float(count) for count in back))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
