"""Imports point one way, and some modules stand alone: read from the source, nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import jaxbio

ROOT = Path(jaxbio.__file__).parent
CODE = ("sources", "bytecode", "fingerprint", "traces")  # what counts as the same code
TOOLS = ("ops", "rng", "checks", "files", "memory")
DRIVERS = (
    "simulate", "surroundings", "moments", "grid", "schedule", "store",
    "claims", "playing", "dataset", "sweep",
)  # fmt: skip
LAYERS = (  # each may import from the layers above it, and from its own where the layer is open
    ("trees", "starting"),
    ("core",),
    CODE,
    TOOLS,
    ("environment", "learners"),
    ("engine",),
    ("record", "workers", "netcdf", "statistics", "comparison"),
    DRIVERS,
    ("compare", "tuned"),
    ("tune",),
    ("experiments",),
    ("lab",),
    ("plot",),
    ("figures",),
    ("report",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
OPEN = {CODE, TOOLS, DRIVERS}
STANDS_ALONE = "theory"


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


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


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


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
        below = layer(other) < layer(own)
        beside = layer(other) == layer(own) and LAYERS[layer(own)] in OPEN
        assert layer(other) >= 0, f"{named(path)} imports {other}, which belongs to no layer"
        assert below or beside, f"{named(path)} must not import {other}"


@pytest.mark.parametrize("names", [CODE, TOOLS, DRIVERS])
def test_no_modules_of_a_layer_import_in_a_circle(names: tuple[str, ...]) -> None:
    graph = {name: {part(other) for other in imports(ROOT / f"{name}.py")} for name in names}
    left = set(names)
    while left:
        free = {name for name in left if not graph[name] & (left - {name})}
        assert free, f"{sorted(left)} import each other"
        left -= free


def test_no_modules_of_the_engine_import_in_a_circle() -> None:
    files = {named(file)[:-3].replace("/", "."): file for file in (ROOT / "engine").rglob("*.py")}
    graph = {
        name: {
            other
            for other in files
            for found in imports(file, run=True)
            if f"{found}.".startswith(f"jaxbio.{other}.")
        }
        for name, file in files.items()
    }
    assert graph["engine.backends.choice"] > {"engine.flatten", "engine.backends.native"}
    left = set(graph)
    while left:
        free = {name for name in left if not graph[name] & (left - {name})}
        assert free, f"{sorted(left)} import each other"
        left -= free


@pytest.mark.parametrize("path", modules(), ids=named)
def test_only_public_parts_of_jax_are_used(path: Path) -> None:
    private = [name for name in imports(path) if name.startswith(("jax._src", "jaxlib"))]
    assert not private


@pytest.mark.parametrize("path", modules(), ids=named)
def test_llvm_is_behind_one_door(path: Path) -> None:
    """The rest of the package works where another back-end takes its place."""
    using = [name for name in imports(path) if name.split(".")[0] == "llvmlite"]
    assert not using or named(path) in [
        f"engine/backends/{name}.py" for name in ("llvm", "native", "machine_code")
    ]


def test_theory_stands_alone() -> None:
    roots = {name.split(".")[0] for name in imports(ROOT / "theory.py")}
    assert not roots & {"jax", "jaxlib", "chex", "optax", "jaxbio"}


@pytest.mark.parametrize("path", modules(), ids=named)
def test_only_plot_draws(path: Path) -> None:
    drawing = [name for name in imports(path) if name.split(".")[0] == "matplotlib"]
    assert not drawing or part_of(path) in ("plot", "figures")


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
