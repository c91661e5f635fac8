"""The notebooks of the documentation: played anew, and written as pages of the site.

    python docs/notebooks.py            # play all, keep what they print and draw
    python docs/notebooks.py --pages    # write docs/pages/notebooks/*.md from what they keep
    python docs/notebooks.py --check    # play all; fail where a cell fails or says something else

A cell that fails ends this with its traceback. What a notebook keeps is as small as it can be: one
form of every output, and figures as PNG, which are not compared.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from nbconvert.writers.files import FilesWriter

HERE = Path(__file__).parent
PAGES = HERE / "pages" / "notebooks"
KEPT = ("image/png", "text/html", "text/plain")  # the first one that an output has
SECONDS = 300  # of a cell, at most


def played(path: Path) -> Any:
    """The notebook with the outputs of now."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(HERE)}})
    client.execute()
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", []):
            if "data" in output:
                form = next(kind for kind in KEPT if kind in output.data)
                output.data = {form: output.data[form]}
                output.metadata = {}
    return notebook


def said(notebook: Any) -> list[str]:
    """All that the cells print and show as text."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shown = output.get("data", {})
            found += [output.text] if "text" in output else []
            found += [shown[kind] for kind in KEPT[1:] if kind in shown]
    return found


def write_page(path: Path) -> None:
    """As Markdown, with its figures beside it."""
    body, resources = MarkdownExporter().from_filename(
        str(path), {"output_files_dir": f"{path.stem}_files", "unique_key": path.stem}
    )
    writer = FilesWriter(build_directory=str(PAGES))
    writer.write(body, resources, notebook_name=path.stem)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", str(HERE.parent))
    for path in sorted((HERE / "notebooks").glob("*.ipynb")):
        if options.pages:
            write_page(path)
            continue
        notebook = played(path)
        if not options.check:
            nbformat.write(notebook, path)
        for kept, now in zip(said(nbformat.read(path, as_version=4)), said(notebook), strict=True):
            if kept != now:
                sys.exit(f"{path.name} keeps\n{kept}\nbut now a cell says\n{now}")
        print(f"{path.stem}: {len(notebook.cells)} cells")


if __name__ == "__main__":
    main()
