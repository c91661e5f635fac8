"""The code of this package that decides what is played, down to the last bit.

A change to it makes a result another one. Everything else in the package (theory, statistics,
figures, the command line, what keeps and labels results) may change under a store.
"""

from __future__ import annotations

import ast
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

PACKAGE = "jaxbio"
# Modules and folders. Closed under imports, but for those that keep, name and compare results.
DECIDE = (
    "checks", "core", "engine", "environment", "learners", "ops", "rng", "sweeps.cluster",
    "sweeps.execute", "sweeps.grid", "sweeps.landing", "sweeps.moments", "sweeps.plan",
    "sweeps.result", "sweeps.sending", "sweeps.sweep", "sweeps.workers", "trees",
)  # fmt: skip
_ROOT = Path(__file__).parents[2]


@lru_cache(maxsize=1024)
def decides(module: str) -> bool:
    """Is jaxbio.<module>... covered by `sources`?"""
    return any(f"{module}.".startswith(f"{PACKAGE}.{name}.") for name in DECIDE)


@lru_cache(maxsize=8)
def sources(*more: str) -> str:
    """A digest of the code that plays: a version under development changes.

    more: further modules that decide, for results that are made of more than games. Comments,
    docstrings and layout do not count.
    """
    code = hashlib.sha256()
    for file in files(*more):
        code.update(file.as_posix().encode() + b"\0")
        code.update(_without_words((_ROOT / file).read_bytes()).encode())
    return code.hexdigest()[:16]


def files(*more: str) -> list[Path]:
    """The files of the modules that decide, below the package's folder."""
    places = [_ROOT.joinpath(*name.split(".")) for name in {*DECIDE, *more}]
    found = [place.with_suffix(".py") for place in places]
    found += [file for place in places for file in place.rglob("*.py")]
    return sorted(file.relative_to(_ROOT) for file in found if file.exists())


def _without_words(source: bytes) -> str:
    """Python as a tree: without comments, layout and docstrings."""
    tree = ast.parse(source)
    tree.body = _statements(tree.body)
    return ast.dump(tree)


def _statements(body: list[Any]) -> list[Any]:
    """Without texts that stand alone, at any depth."""
    kept = [node for node in body if not _is_text(node)]
    for node in kept:
        for inner in ("body", "orelse", "finalbody", "handlers", "cases"):
            if hasattr(node, inner):
                setattr(node, inner, _statements(getattr(node, inner)))
    return kept


def _is_text(node: object) -> bool:
    """A string that stands alone: a docstring, or a comment in its place."""
    constant = node.value if isinstance(node, ast.Expr) else None
    return isinstance(constant, ast.Constant) and isinstance(constant.value, str)
