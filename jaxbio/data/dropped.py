"""Rows that cannot be used, counted by reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jaxbio.checks import shown

SHOWN = 5  # rows that are named


@dataclass(frozen=True)
class Dropped:
    """count: rows. first: the first of them, counted as the log counts its rows (`Log.unit`).
    example: what is in the first one, where a value is the reason; else empty.
    """

    count: int
    first: tuple[int, ...]
    example: str = ""


class Counter:
    """Reasons in the order in which they are met."""

    def __init__(self) -> None:
        self.found: dict[str, Dropped] = {}

    def add(self, reason: str, rows: np.ndarray, example: object = None) -> None:
        """rows: numbers of rows that have no other reason. example: the value of the first."""
        if rows.size:
            text = "" if example is None else shown(example)
            before = self.found.get(reason, Dropped(0, (), text))
            first = (*before.first, *rows[:SHOWN].tolist())[:SHOWN]
            self.found[reason] = Dropped(before.count + int(rows.size), first, before.example)

    @property
    def total(self) -> int:
        return sum(one.count for one in self.found.values())


def listed(dropped: Mapping[str, Dropped], unit: str) -> list[str]:
    """A line for each reason, the most frequent first."""
    return [
        f"{one.count:,}: {reason}{f', such as {one.example}' if one.example else ''} "
        f"({named(unit, one.first, one.count)})"
        for reason, one in sorted(dropped.items(), key=lambda item: -item[1].count)
    ]


def rows_of(count: int) -> str:
    """1 row, 2 rows, ..."""
    return f"{count:,} {'row' if count == 1 else 'rows'}"


def named(unit: str, first: tuple[int, ...], count: int) -> str:
    """lines 3, 7, ..."""
    rows = unit if count == 1 else f"{unit}s"
    more = ", ..." if count > len(first) else ""
    return f"{rows} {', '.join(map(str, first))}{more}"
