"""The code behind a compiled program, and when JAX has to forget what it traced of it.

A program is compiled from code, and JAX keeps what it has traced by the function, not by what the
function reads. Where a helper or a global of the user's has changed (a cell of a notebook that was
run again), the program of old is not the program of this code.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import jax

from jaxbio.engine.code.fingerprint import HOLE, Reader, digest, parts


class _Recent(OrderedDict[Any, Any]):
    """The latest entries: structures hold on to what is static in them."""

    MOST = 512

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        if len(self) > self.MOST:
            self.popitem(last=False)


_lock = threading.RLock()
_open = threading.local()  # tracings of this thread that are under way
_constant = _Recent()  # structure -> its code, where no code of the user's is part of it
_latest = _Recent()  # structure -> its code
_same = _Recent()  # (structure, its code now) -> what it was before it was traced
_read: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()  # functions and classes


# Of JAX, besides its precision: what random numbers and products are. (Stricter rules for types and
# shapes refuse code, and compute nothing else.)
SETTINGS = (
    "jax_default_prng_impl", "jax_threefry_partitionable", "jax_random_seed_offset",
    "jax_default_matmul_precision",
)  # fmt: skip


def settings() -> dict[str, str]:
    """Name -> value of what a user may set in JAX that decides what his code computes."""
    return {name: str(getattr(jax.config, name, None)) for name in SETTINGS}


def code_of(structure: Any) -> Hashable:
    """What decides the program of a tree, besides the types of its leaves: the code that its nodes
    and static fields bring along, down to the globals that it reads, as they are now.

    structure: of `jax.tree.structure`.
    """
    with _lock:
        if structure in _constant:
            return _constant[structure]
        reader, now = _described(structure)
        found = _same.get((structure, now), now)
        if reader.is_constant:
            _constant[structure] = found
        elif _latest.get(structure) != found and not _depth():
            _forget(reader, structure in _latest)
            _latest[structure] = found
        return found


@contextmanager
def traced(structure: Any) -> Iterator[None]:
    """What code changes while it is traced (a count, a table of its own) is no change of the code:
    it stays the same to `code_of`.
    """
    before = code_of(structure)
    _open.depth = _depth() + 1
    try:
        yield
    finally:
        _open.depth -= 1
    with _lock:
        if structure not in _constant:
            after = _described(structure)[1]
            if after != before:
                _same[structure, after] = before


def _depth() -> int:
    return getattr(_open, "depth", 0)


def _described(structure: Any) -> tuple[Reader, Hashable]:
    reader = Reader("tree", structure.unflatten([HOLE] * structure.num_leaves))
    return reader, (digest(reader.found), tuple(_Itself(thing) for thing in reader.opaque))


class _Itself:
    """A thing that shows nothing of itself: the same only as itself."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def _forget(reader: Reader, has_changed: bool) -> None:
    """Let JAX trace anew what may have been traced when it was other code."""
    for one in reader.code:
        now = digest(parts("", one))
        has_changed |= _read.get(one, now) != now
        _read[one] = now
    if has_changed:
        jax.clear_caches()
    for one in reader.jitted:  # called before by the user, perhaps, with other globals
        one.clear_cache()
