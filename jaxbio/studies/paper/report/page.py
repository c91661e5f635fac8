"""report.html: one file, no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from jaxbio.analysis.intervals import NO, UNDECIDED, YES
from jaxbio.studies.html import SHOWN, chip, document, figure, table
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


def html(sections: Sequence[Section], folder: Path) -> str:
    """The page; figures are read from the folder and put inside it."""
    body = "\n".join([_opening(sections), *(_section(section, folder) for section in sections)])
    return document(TITLE, body)


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
    return chip(verdict.outcome, MARKS.get(verdict.outcome, ""), verdict.outcome)


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
    pictures = {name: reading.picture(folder, picture.files[name]) for name in SHOWN}
    stem = Path(picture.files["light"]).stem
    return figure(stem.removesuffix("-light"), picture.caption, pictures)
