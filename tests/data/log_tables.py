"""A small table of events, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jaxbio as jb

NAMES: dict[str, Any] = {
    "time": "shown", "action": "arm", "state": "seen", "loss": "cost", "arrived": "known"
}  # fmt: skip


def table(rows: int = 40, **columns: Any) -> dict[str, list[Any]]:
    """A good one: a decision a minute, every second outcome comes after 90 seconds.

    columns: instead of its own; None leaves one out.
    """
    good: dict[str, Any] = {
        "shown": [f"2026-03-01T10:{i:02}:00" for i in range(rows)],
        "arm": ["ab"[i % 2] for i in range(rows)],
        "seen": ["low" if i % 3 else "high" for i in range(rows)],
        "cost": [float(i % 4 == 0) for i in range(rows)],
        "known": [None if i % 2 else f"2026-03-01T10:{i + 1:02}:30" for i in range(rows)],
    }
    good["arm"][:4] = list("aabb")
    return {name: values for name, values in (good | columns).items() if values is not None}


def changed(column: str, places: Mapping[int, Any], rows: int = 40) -> dict[str, list[Any]]:
    """A good table with other values in some places of a column."""
    made = table(rows)
    made[column] = [places.get(i, value) for i, value in enumerate(made[column])]
    return made


def read(source: Any, **options: Any) -> jb.Log:
    asked: dict[str, Any] = NAMES | {"progress": False} | options
    return jb.read_log(source, **asked)
