"""CPU: memories of pairs, such as the ring's, whose plays have two words each.

Where a program looks at a memory only as entries 2 x and 2 x + 1, and writes both together at a
place of every run's own, they lie side by side: one access to memory, and one line of the cache,
instead of two.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from jaxbio.engine.game_program import GameProgram
from jaxbio.engine.program import RUN, Memory, Region, Value, inner_regions, live_values


class Pairs:
    """memories: of pairs; first: of two stores that fill a pair, by the id of the second one."""

    def __init__(self, program: GameProgram) -> None:
        self.first: dict[int, Value] = {}
        filled: set[Memory] = set()
        others: set[Memory] = set()
        for part in program.parts.values():
            for accesses in _accesses(part, live_values(part)):
                together = _filled(accesses)
                halves = {*together, *(id(first) for first in together.values())}
                self.first |= together
                for value in accesses:
                    if not _even(value.args[0]):
                        others.add(value.param)
                    elif value.op == "store":
                        (filled if id(value) in halves else others).add(value.param)
        self.memories = {memory for memory in filled - others if memory.role == "carry"}


def half(index: Value) -> int:
    """Of an index 2 x or 2 x + 1: which of the two is it?"""
    return int(index.op == "add")


def _even(index: Value) -> Value | None:
    """The value 2 x of an index 2 x or 2 x + 1; None for any other."""
    if index.op == "add" and index.args[1].op == "const" and int(index.args[1].param) == 1:
        index = index.args[0]
    doubled = index.op == "mul" and index.args[1].op == "const" and int(index.args[1].param) == 2
    return index if doubled else None


def _accesses(region: Region, live: set[int]) -> Iterator[list[Value]]:
    """Loads and stores, as far as nothing else that could look at memory lies in between."""
    found: list[Value] = []
    for value in region.values:
        if id(value) not in live:
            continue
        if value.op in ("load", "store"):
            found.append(value)
        elif value.op in ("loop", "switch"):
            yield found
            found = []
            for inner in inner_regions(value.param):
                yield from _accesses(inner, live)
    yield found


def _filled(accesses: list[Value]) -> dict[int, Value]:
    """Pairs of stores, one right after the other: by the id of the second one, the first one."""
    return {id(second): first for first, second in pairwise(accesses) if _fill(first, second)}


def _fill(first: Value, second: Value) -> bool:
    """Do they store both entries of a pair, every run its own?"""
    if (first.op, second.op) != ("store", "store") or first.param is not second.param:
        return False
    if first.args[0].rate < RUN:
        return False
    place, other = first.args[0], second.args[0]
    return _even(place) is place and other is not place and _even(other) is place
