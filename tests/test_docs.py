"""The Python examples of the documentation run as printed, and the reference leaves nothing out.

The blocks of a page are run one after the other in one namespace, in a folder of its own. A block
after the comment `<!-- not run -->` is left out.
"""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
import pytest

import jaxbio as jb
from jaxbio.cli import main as cli
from jaxbio.cli import sweep_file

PAGES = Path(__file__).parents[1] / "docs" / "pages"
BLOCK = re.compile(r"(<!-- not run -->\n)?^```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
SILENT = {"clusters.md", "commands.md", "performance.md"}  # pages without an example that runs


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
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
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
    for page in (*sorted(PAGES.glob("*.md")), PAGES.parents[1] / "README.md")
    for command in printed_commands(page)
    if not command.startswith("--print-completion")
]


def test_there_are_printed_commands() -> None:
    names = {command.split()[0] for command in COMMANDS}
    assert names >= {"list", "run", "reproduce", "sweep", "theory", "bench"}


@pytest.mark.parametrize("command", COMMANDS)
def test_printed_commands_are_understood(command: str) -> None:
    """Parsed, not played; test_cli.py has what the options do."""
    cli.parser().parse_args(shlex.split(command, comments=True))


def test_the_printed_grid_is_understood(tmp_path: Path) -> None:
    (grid,) = re.findall(
        r"^```toml\n(.*?)^```$", (PAGES / "commands.md").read_text(), flags=re.DOTALL | re.MULTILINE
    )
    (tmp_path / "grid.toml").write_text(grid)
    assert sweep_file.read(tmp_path / "grid.toml")["axes"]


def test_every_figure_has_its_command_on_a_page() -> None:
    script = runpy.run_path(str(PAGES.parents[1] / "scripts" / "update_figures.py"))
    assert {path.name for path in (PAGES / "assets").glob("*.png")} == set(script["FIGURES"])
    pages = (*PAGES.glob("*.md"), PAGES.parents[1] / "README.md")
    text = "\n".join(page.read_text() for page in pages)
    for name, shown in script["FIGURES"].items():
        assert f"assets/{name}" in text, f"{name} is on no page"
        ends = re.compile(rf"{re.escape(shown.command)}[`\n ]")
        assert ends.search(text), f"no page has {shown.command!r}"
        cli.parser().parse_args(shlex.split(shown.command)[1:])
