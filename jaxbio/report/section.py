"""What the report says about one experiment, as it is kept in a file between calls."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbio.experiments.verdicts import Verdict
from jaxbio.report.choices import Sensitivity

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
    path.write_text(json.dumps(dataclasses.asdict(section), indent=1) + "\n", encoding="utf-8")
    return path


def load(path: Path) -> Section:
    kept = json.loads(path.read_text(encoding="utf-8"))
    kept["pictures"] = [Picture(**one) for one in kept["pictures"]]
    kept["verdicts"] = [Verdict(**one) for one in kept["verdicts"]]
    if kept["sensitivity"]:
        rows = [[Verdict(**one) for one in row] for row in kept["sensitivity"]["verdicts"]]
        kept["sensitivity"] = Sensitivity(kept["sensitivity"]["choices"], rows)
    return Section(**kept)


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
        if verdict.outcome == "no"
    ]
    said += [
        f'Not decided by {runs} runs: "{verdict.statement}" ({verdict.detail}).'
        for verdict in section.verdicts
        if verdict.outcome == "undecided"
    ]
    return said or ["Nothing here contradicts the paper: every claim holds in these runs."]


def tally(verdicts: Sequence[Verdict]) -> str:
    """Such as "4 yes, 1 undecided"."""
    outcomes = [verdict.outcome for verdict in verdicts]
    return ", ".join(
        f"{outcomes.count(word)} {word}" for word in ("yes", "no", "undecided") if word in outcomes
    )


def in_short(verdict: Verdict) -> str:
    """The mean margin alone, where there is one."""
    return "" if verdict.mean is None else f"{verdict.mean:+,.0f}"


def margin(verdict: Verdict) -> str:
    """The mean margin with its interval, or the facts."""
    if verdict.low is None:
        return verdict.detail
    return f"{verdict.mean:,.1f} [{verdict.low:,.1f}, {verdict.high:,.1f}], p {verdict.p:.2g}"
