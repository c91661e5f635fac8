"""The Python examples of the documentation run as printed, and the reference leaves nothing out.

The blocks of a page are run one after the other in one namespace, in a folder of its own. A block
after the comment `<!-- not run -->` is left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
import pytest

import jaxbio as jb

PAGES = Path(__file__).parents[1] / "docs" / "pages"
BLOCK = re.compile(r"(<!-- not run -->\n)?^```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
SILENT = {"clusters.md", "performance.md"}  # pages without an example that runs


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
