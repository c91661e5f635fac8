"""The code of this package that decides what is played, down to the last bit.

A change to it makes a result another one. Everything else in the package (theory, sweeps, stores,
statistics, figures, the command line) may change under a store.
"""

from __future__ import annotations

import ast
import hashlib
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

PACKAGE = "jaxbio"
# Modules and folders, closed under imports but for `display`: how things look decides nothing.
DECIDE = ("checks", "core", "engine", "environment", "learners", "ops", "rng", "trees")
_ROOT = Path(__file__).parents[2]
_PARSER = threading.Lock()  # Python 3.11's fails where two threads use it at once


@lru_cache(maxsize=1024)
def decides(module: str) -> bool:
    """Is jaxbio.<module>... covered by `sources`?"""
    return any(f"{module}.".startswith(f"{PACKAGE}.{name}.") for name in DECIDE)


@lru_cache(maxsize=8)
def sources(*more: str) -> str:
    """A digest of the code that plays: a version under development changes.

    more: further modules that decide, for results that are made of more than games. Comments,
    docstrings, layout and where a file lies do not count: a module that is imported goes by what is
    in it, not by its name.
    """
    found = {_module(file): _Code((_ROOT / file).read_bytes()) for file in files(*more)}
    bodies = {name: code.body for name, code in found.items()}
    return _sha(sorted({(code.body, *code.uses(bodies)) for code in found.values()}))


def files(*more: str) -> list[Path]:
    """The files of the modules that decide, below the package's folder."""
    places = [_ROOT.joinpath(*name.split(".")) for name in {*DECIDE, *more}]
    found = [place.with_suffix(".py") for place in places]
    found += [file for place in places for file in place.rglob("*.py")]
    return sorted(file.relative_to(_ROOT) for file in found if file.exists())


def _module(file: Path) -> str:
    return ".".join([PACKAGE, *file.with_suffix("").parts]).removesuffix(".__init__")


def _sha(thing: Any) -> str:
    return hashlib.sha256(repr(thing).encode()).hexdigest()[:16]


class _Code(ast.NodeTransformer):
    """A file as a tree, without comments, layout, docstrings, and imports from this package.

    body: a digest of it; imports: (module, name, name here) of each of those imports.
    """

    def __init__(self, source: bytes) -> None:
        self.imports: list[tuple[str, str, str]] = []
        with _PARSER:
            tree = ast.parse(source)
        self.body = _sha(ast.dump(self.visit(tree)))

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """A string that stands alone is a docstring, or a comment in its place."""
        value = getattr(node.value, "value", None)
        return None if isinstance(value, str) else self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        module = node.module or ""
        if module.partition(".")[0] != PACKAGE:
            return node
        self.imports += [(module, one.name, one.asname or one.name) for one in node.names]
        return None

    def uses(self, bodies: dict[str, str]) -> list[tuple[str, str]]:
        """What is imported, by what is in the file where it lies, and its name here."""
        return sorted(
            (bodies.get(f"{module}.{name}") or f"{name} of {bodies.get(module)}", here)
            for module, name, here in self.imports
        )
