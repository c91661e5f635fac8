"""report.html: one file, no script, nothing from elsewhere."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from jaxbio.analysis.intervals import NO, UNDECIDED, YES
from jaxbio.studies.paper.report import reading
from jaxbio.studies.paper.report.choices import Sensitivity
from jaxbio.studies.paper.report.section import (
    Picture,
    Section,
    contradictions,
    in_short,
    margin,
    tally,
)
from jaxbio.studies.paper.report.text import PAPER, PROCEDURE, QUESTION, SENSITIVITY, TITLE
from jaxbio.studies.paper.verdicts import Verdict

MARKS = {YES: "✓", NO: "✗", UNDECIDED: "?"}
NARROW = "(max-width: 640px)"
DARK = "(prefers-color-scheme: dark)"
SOURCES = {"dark-narrow": f"{NARROW} and {DARK}", "light-narrow": NARROW, "dark": DARK}
SHOWN = ("light", *SOURCES)


def html(sections: Sequence[Section], folder: Path) -> str:
    """The page; figures are read from the folder and put inside it."""
    style = files("jaxbio.studies.paper.report").joinpath("report.css").read_text(encoding="utf-8")
    body = "\n".join([_opening(sections), *(_section(section, folder) for section in sections)])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(TITLE)}</title>
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


def _opening(sections: Sequence[Section]) -> str:
    rows = [
        [
            f'<a href="#experiment-{section.number}">{section.number}. {escape(section.title)}</a>',
            escape(section.about),
            escape(tally(section.verdicts)),
        ]
        for section in sections
    ]
    return "\n".join([
        f"<h1>{escape(TITLE)}</h1>",
        f'<p class="question">{escape(QUESTION)}</p>',
        f'<p class="small">Paper: {escape(PAPER)}</p>',
        "<h2>Summary</h2>",
        table(["experiment", "what the paper says", "verdicts"], rows),
        f"<details><summary>How claims are tested</summary><p>{escape(PROCEDURE)}</p></details>",
    ])  # fmt: skip


def _section(section: Section, folder: Path) -> str:
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in contradictions(section))
    verdicts = [
        [escape(verdict.statement), outcome(verdict), escape(margin(verdict))]
        for verdict in section.verdicts
    ]
    settings = [[escape(name), escape(str(value))] for name, value in section.settings.items()]
    versions = ", ".join(f"{name} {number}" for name, number in section.versions.items())
    first, *others = [_picture(picture, folder) for picture in section.pictures]
    parts = [
        f'<section id="experiment-{section.number}">',
        f"<h2>Experiment {section.number}: {escape(section.title)}</h2>",
        f'<p class="question">{escape(section.about)}.</p>',
        first,
        "<h3>Verdicts</h3>",
        table(["claim", "outcome", "margin [95 % interval]"], verdicts),
        f'<ul class="said">{said}</ul>',
        *others,
    ]
    if section.sensitivity:
        parts += ["<h3>Sensitivity</h3>", _sensitivity(section.sensitivity)]
    parts += [
        "<h3>Settings</h3>",
        table(["setting", "value"], settings),
        f'<p class="small">Versions: {escape(versions)}. '
        f"Data: <code>{escape(section.data)}</code></p>",
        "<h3>Commands</h3>",
        *(
            f"<p>{escape(label)}</p><pre>{escape(line)}</pre>"
            for label, line in section.commands.items()
        ),
        "</section>",
    ]
    return "\n".join(parts)


def outcome(verdict: Verdict) -> str:
    """A word in a colour."""
    word = verdict.outcome
    return f'<span class="outcome {escape(word)}">{MARKS.get(word, "")} {escape(word)}</span>'


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


def _sensitivity(found: Sensitivity) -> str:
    rows = [
        [
            escape(claim.statement),
            *(f"{outcome(column[i])} {escape(in_short(column[i]))}" for column in found.verdicts),
        ]
        for i, claim in enumerate(found.verdicts[0])
    ]
    return f"<p>{escape(SENSITIVITY)}</p>\n{table(['claim', *found.choices], rows)}"


def _picture(picture: Picture, folder: Path) -> str:
    embedded = {name: _embedded(reading.picture(folder, picture.files[name])) for name in SHOWN}
    sources = "".join(
        f'<source media="{media}" srcset="{embedded[variant][0]}"{embedded[variant][1]}>'
        for variant, media in SOURCES.items()
    )
    address, size = embedded["light"]
    caption, stem = escape(picture.caption), Path(picture.files["light"]).stem
    image = f'<img src="{address}"{size} alt="{caption}">'
    return (
        f'<figure id="{escape(stem.removesuffix("-light"))}"><picture>{sources}{image}'
        f"</picture><figcaption>{caption}</figcaption></figure>"
    )


def _embedded(png: bytes) -> tuple[str, str]:
    """A PNG as an address, and its width and height, so that the page does not jump."""
    width, height = struct.unpack(">II", png[16:24])
    address = "data:image/png;base64," + base64.b64encode(png).decode("ascii")
    return address, f' width="{width}" height="{height}"'
