"""What the report says about one experiment, as it is kept in a file between calls."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbio.analysis.intervals import NO, OUTCOMES, UNDECIDED
from jaxbio.storage import atomic
from jaxbio.studies.paper.report import reading
from jaxbio.studies.paper.report.choices import Sensitivity
from jaxbio.studies.paper.verdicts import Verdict

VARIANTS = ("light", "dark", "light-narrow", "dark-narrow", "light-pdf", "dark-pdf")


@dataclass(frozen=True)
class Picture:
    """name: of the figure; files: variant -> path within the folder of the report."""

    name: str
    caption: str
    files: dict[str, str]


@dataclass(frozen=True)
class Section:
    """One experiment of a report: plain values, so that it is one JSON file."""

    number: int
    title: str
    about: str
    pictures: list[Picture]
    verdicts: list[Verdict]
    settings: dict[str, Any]
    versions: dict[str, str]
    commands: dict[str, str]
    data: str
    sensitivity: Sensitivity | None = None


def save(section: Section, path: Path) -> Path:
    atomic.write(path, (json.dumps(dataclasses.asdict(section), indent=1) + "\n").encode())
    return path


_verdict = reading.made(
    Verdict,
    statement=reading.text,
    outcome=reading.one_of(*OUTCOMES),
    detail=reading.text,
    **dict.fromkeys(("mean", "low", "high", "p"), reading.maybe_number),
)
_section = reading.made(
    Section,
    number=reading.positive,
    title=reading.text,
    about=reading.text,
    pictures=reading.list_of(
        reading.made(
            Picture,
            name=reading.text,
            caption=reading.text,
            files=reading.table_of(reading.figure, *VARIANTS[:4]),
        )
    ),
    verdicts=reading.list_of(_verdict),
    settings=reading.table_of(reading.scalar, "runs"),
    versions=reading.table_of(reading.text),
    commands=reading.table_of(reading.line),
    data=reading.numbers,
    sensitivity=reading.maybe(
        reading.made(
            Sensitivity,
            choices=reading.list_of(reading.text),
            verdicts=reading.list_of(reading.list_of(_verdict)),
        )
    ),
)


def load(path: Path) -> Section:
    """Raises where the file is not what `save` writes."""
    section: Section = _section(str(path), reading.json_of(path))
    if path.stem != f"experiment-{section.number}" or not section.pictures:
        raise ValueError(f"{path} must be of an experiment {section.number} with pictures")
    other = section.sensitivity
    if other and {len(row) for row in other.verdicts} != {len(section.verdicts)}:
        raise ValueError(f"{path}.sensitivity must have as many verdicts as there are claims")
    if other and len(other.choices) != len(other.verdicts):
        raise ValueError(f"{path}.sensitivity must have verdicts for every choice")
    return section


def labelled(commands: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """What a command makes -> the command."""
    if isinstance(commands, Mapping):
        return dict(commands)
    listed = [commands] if isinstance(commands, str) else list(commands)
    first = "the whole experiment"
    return {first if i == 0 else f"part {i + 1}": command for i, command in enumerate(listed)}


def contradictions(section: Section) -> list[str]:
    """What the runs say against the paper, and what they cannot say, in sentences."""
    runs = section.settings["runs"]
    said = [
        f'Contradicts the paper: "{verdict.statement}" does not hold ({verdict.detail}).'
        for verdict in section.verdicts
        if verdict.outcome == NO
    ]
    said += [
        f'Not decided by {runs} runs: "{verdict.statement}" ({verdict.detail}).'
        for verdict in section.verdicts
        if verdict.outcome == UNDECIDED
    ]
    return said or ["Nothing here contradicts the paper: every claim holds in these runs."]


def tally(verdicts: Sequence[Verdict]) -> str:
    """Such as "4 yes, 1 undecided"."""
    outcomes = [verdict.outcome for verdict in verdicts]
    return ", ".join(f"{outcomes.count(word)} {word}" for word in OUTCOMES if word in outcomes)


def in_short(verdict: Verdict) -> str:
    """The mean margin alone, where there is one."""
    return "" if verdict.mean is None else f"{verdict.mean:+,.0f}"


def margin(verdict: Verdict) -> str:
    """The mean margin with its interval, or the facts."""
    if None in (verdict.mean, verdict.low, verdict.high, verdict.p):
        return verdict.detail
    return f"{verdict.mean:,.1f} [{verdict.low:,.1f}, {verdict.high:,.1f}], p {verdict.p:.2g}"
