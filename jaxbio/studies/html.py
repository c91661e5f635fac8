"""Pages of one file: no script, nothing from elsewhere, light and dark, wide and narrow."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

NARROW = "(max-width: 640px)"
DARK = "(prefers-color-scheme: dark)"
SOURCES = {"dark-narrow": f"{NARROW} and {DARK}", "light-narrow": NARROW, "dark": DARK}
SHOWN = ("light", *SOURCES)  # variants of a picture


def document(title: str, body: str) -> str:
    """A whole page. body: HTML."""
    style = files("jaxbio.studies").joinpath("page.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose rows become blocks on a narrow screen; cells are HTML."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "\n".join(
        "<tr>"
        + "".join(
            f'<td data-name="{escape(name)}">{cell}</td>'
            for name, cell in zip(header, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def chip(kind: str, mark: str, word: str) -> str:
    """A word in a colour. kind: yes, no or undecided."""
    return f'<span class="outcome {escape(kind)}">{mark} {escape(word)}</span>'


def figure(name: str, caption: str, pictures: Mapping[str, bytes]) -> str:
    """A picture that fits the screen and the colours of its reader. pictures: variant -> PNG."""
    embedded = {variant: _embedded(pictures[variant]) for variant in SHOWN}
    sources = "".join(
        f'<source media="{media}" srcset="{embedded[variant][0]}"{embedded[variant][1]}>'
        for variant, media in SOURCES.items()
    )
    address, size = embedded[SHOWN[0]]
    caption = escape(caption)
    image = f'<img src="{address}"{size} alt="{caption}">'
    return (
        f'<figure id="{escape(name)}"><picture>{sources}{image}'
        f"</picture><figcaption>{caption}</figcaption></figure>"
    )


def _embedded(png: bytes) -> tuple[str, str]:
    """A PNG as an address, and its width and height, so that the page does not jump."""
    width, height = struct.unpack(">II", png[16:24])
    address = "data:image/png;base64," + base64.b64encode(png).decode("ascii")
    return address, f' width="{width}" height="{height}"'
