"""The report of one or more experiments in a folder."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import xarray as xr

from jaxbio.figures.saving import save_all
from jaxbio.storage import atomic, netcdf
from jaxbio.storage.provenance import versions
from jaxbio.studies.paper.experiment import Experiment, Options
from jaxbio.studies.paper.figures.gallery import drawings
from jaxbio.studies.paper.report import page, text
from jaxbio.studies.paper.report.choices import Sensitivity
from jaxbio.studies.paper.report.section import Picture, Section, labelled, load, save
from jaxbio.studies.paper.verdicts import Verdict


def write(
    folder: str | Path,
    experiment: Experiment,
    data: xr.Dataset,
    options: Options,
    verdicts: Sequence[Verdict],
    commands: str | Sequence[str] | Mapping[str, str],
    sensitivity: Sensitivity | None = None,
    *,
    workers: int = 1,
    progress: bool = False,
) -> list[Path]:
    """Add an experiment to the report in a folder, in place of what it said about it before.

    Args:
      folder: made if need be; figures/, data/, report.md and report.html go there. The report
        covers every experiment that was written into the folder.
      experiment, data, options: what was played, its result and with which options.
      verdicts: of `judge`.
      commands: that reproduce the experiment: one, several, or what each makes -> command.
      sensitivity: verdicts under other choices, if they were played.
      workers, progress: processes that draw, and a bar that counts figures; see `save_all`.
    Returns:
      The files written.
    """
    folder = Path(folder)
    name = f"experiment-{experiment.number}"
    numbers = netcdf.save(data, folder / "data" / f"{name}.nc")
    pictures, made = [], [numbers]
    drawn = drawings(experiment, data, options)
    saved = save_all(drawn, folder / "figures", name, workers, progress)
    for drawing, variants in zip(drawn, saved, strict=True):
        made += variants.values()
        within = {kind: path.relative_to(folder).as_posix() for kind, path in variants.items()}
        pictures.append(Picture(drawing.name, drawing.caption, within))
    section = Section(
        experiment.number,
        experiment.title,
        experiment.about,
        pictures,
        list(verdicts),
        _settings(experiment, options),
        _versions(),
        labelled(commands),
        numbers.relative_to(folder).as_posix(),
        sensitivity,
    )
    made.append(save(section, folder / "data" / f"{name}.json"))
    return made + _rebuild(folder)


def read(folder: Path) -> list[Section]:
    """What a folder has of every experiment; raises where a file there is not ours."""
    found = [load(path) for path in sorted((folder / "data").glob("experiment-*.json"))]
    return sorted(found, key=lambda section: section.number)


def check(folder: Path, number: int) -> None:
    """Raise where what a folder has of other experiments than this cannot be in one report."""
    others = [section for section in read(folder) if section.number != number]
    if others:
        _pages(others, folder)


def _rebuild(folder: Path) -> list[Path]:
    """report.md and report.html from every experiment in the folder."""
    written = _pages(read(folder), folder)
    for name, content in written.items():
        atomic.write(folder / name, content.encode())
    return [folder / name for name in written]


def _pages(sections: list[Section], folder: Path) -> dict[str, str]:
    """Name of a file -> what it says."""
    return {"report.md": text.markdown(sections), "report.html": page.html(sections, folder)}


def _settings(experiment: Experiment, options: Options) -> dict[str, Any]:
    axes = {name: ", ".join(map(str, values)) for name, values in experiment.axes.items()}
    learners = "; ".join(experiment.learners(options))
    return dataclasses.asdict(options) | axes | {"learners": learners}


def _versions() -> dict[str, str]:
    others = {name: version(name) for name in ("scipy", "xarray", "matplotlib")}
    return versions() | others | {"python": platform.python_version()}
