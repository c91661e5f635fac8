"""Where code lives: imports point one way, the root is small, and no name hides another."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import jaxbio

ROOT = Path(jaxbio.__file__).parent
MOST = 8  # modules beside the folders
LAYERS = (  # each part may import from those of the lines above it, and from itself
    ("display",),
    ("trees",),
    ("core",),
    ("ops", "rng", "checks"),
    ("environment", "learners"),
    ("engine",),
    ("storage",),
    ("sweeps", "serving"),
    ("analysis",),
    ("data",),
    ("figures",),
    ("plot", "studies"),
    ("cli",),
    ("__main__",),
)
BESIDE = {"ops", "rng", "checks"}  # may import each other
STANDS_ALONE = "theory"


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def dotted(path: Path) -> str:
    """learners/exp3.py -> learners.exp3; checks/__init__.py -> checks."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path, run: bool = False) -> Iterator[str]:
    """Every module that a file imports, at any depth, as a dotted name. run: only where the code
    is run, not where its types are checked.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if run:
        tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import in line {node.lineno}"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part(name: str) -> str:
    """jaxbio.learners.exp3 -> learners."""
    return name.split(".")[1] if "." in name else ""


def part_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def layer(name: str) -> int:
    return next((i for i, names in enumerate(LAYERS) if name in names), -1)


@pytest.mark.parametrize("path", modules(), ids=named)
def test_arrows_point_one_way(path: Path) -> None:
    own = part_of(path)
    if own == "__init__":
        return
    wanted = {part(name) for name in imports(path) if name.split(".")[0] == "jaxbio"} - {own}
    if own == STANDS_ALONE:
        assert not wanted
        return
    assert layer(own) >= 0, f"{named(path)} belongs to no layer: add {own!r} to LAYERS"
    for other in wanted - {STANDS_ALONE, "__version__"}:
        assert layer(other) >= 0, f"{named(path)} imports {other}, which belongs to no layer"
        below = layer(other) < layer(own)
        assert below or {own, other} <= BESIDE, f"{named(path)} must not import {other}"


def test_the_root_is_small() -> None:
    found = sorted(file.name for file in ROOT.glob("*.py"))
    assert len(found) <= MOST, f"{found}: a module belongs into a folder"


def test_every_folder_is_a_package_that_says_what_it_is_for() -> None:
    for folder in {path.parent for path in modules()}:
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))


def imported_modules() -> dict[str, set[str]]:
    """Module -> those of the package that it imports; the package itself is left out."""
    names = {dotted(path): path for path in modules() if path != ROOT / "__init__.py"}
    graph = {}
    for name, path in names.items():
        found = {one.removeprefix("jaxbio.") for one in imports(path, run=True)}
        # "checks.number" is of module checks, "checks.memory" is a module
        graph[name] = {one if one in names else one.rpartition(".")[0] for one in found}
        graph[name] &= names.keys() - {name}
    return graph


def test_no_modules_import_in_a_circle() -> None:
    graph = imported_modules()
    assert graph["engine.backends.choice"] > {"engine.flatten", "engine.backends.native"}
    left = set(graph)
    while left:
        free = {name for name in left if not graph[name] & (left - {name})}
        assert free, f"{sorted(left)} import each other"
        left -= free


@pytest.mark.parametrize("path", modules(), ids=named)
def test_no_module_is_hidden_by_what_has_its_name(path: Path) -> None:
    """`jaxbio.sweeps.sweep` is a module; a function `sweep` of `jaxbio.sweeps` would hide it."""
    if path.name == "__main__.py":
        return
    name = f"jaxbio.{dotted(path)}".removesuffix(".__init__")
    module = importlib.import_module(name)
    above, _, last = name.rpartition(".")
    assert not above or getattr(sys.modules[above], last) is module


@pytest.mark.parametrize("path", modules(), ids=named)
def test_only_public_parts_of_jax_are_used(path: Path) -> None:
    private = [name for name in imports(path) if name.startswith(("jax._src", "jaxlib"))]
    assert not private


@pytest.mark.parametrize("path", modules(), ids=named)
def test_llvm_is_behind_one_door(path: Path) -> None:
    """The rest of the package works where another back-end takes its place."""
    using = [name for name in imports(path) if name.split(".")[0] == "llvmlite"]
    assert not using or named(path) in [
        f"engine/backends/{name}.py"
        for name in "layout llvm llvm_game llvm_memory llvm_single machine_code".split()
    ]


def test_theory_stands_alone() -> None:
    roots = {name.split(".")[0] for name in imports(ROOT / "theory.py")}
    assert not roots & {"jax", "jaxlib", "chex", "optax", "jaxbio"}


@pytest.mark.parametrize("path", modules(), ids=named)
def test_only_figures_draw(path: Path) -> None:
    """Those that all share, and a study's own."""
    drawing = [name for name in imports(path) if name.split(".")[0] == "matplotlib"]
    own = path.relative_to(ROOT).parts[-2:]
    assert not drawing or "figures" in own or own[-1] == "figure.py"


@pytest.mark.parametrize("path", modules(), ids=named)
def test_only_the_command_line_prints(path: Path) -> None:
    if part_of(path) in ("cli", "__main__"):
        return
    calls = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("print", "breakpoint")
    ]
    assert not calls, f"{named(path)} prints in lines {calls}"


def test_the_package_init_has_no_logic() -> None:
    for node in ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8")).body:
        assert isinstance(node, ast.Import | ast.ImportFrom | ast.Expr | ast.Assign)


def test_public_names_exist_once() -> None:
    assert len(set(jaxbio.__all__)) == len(jaxbio.__all__)
    assert all(hasattr(jaxbio, name) for name in jaxbio.__all__)
