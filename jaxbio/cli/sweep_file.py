"""jaxbio sweep: a grid in a TOML file.

horizon = 10_000
runs = 200
store = "results/utility"         # resumable
output = "results/utility.nc"     # the labelled result

[environment]
name = "paper-utility"
states = "$states"                # the value of an axis
delay = "$delay"                  # also "laplace:$delay,25"

[learners."DAda-Exp3"]
name = "dada-exp3"

[learners.MetaBIO]
name = "metabio"
delta = "$delta"

[axes]
delay = [10, 50, 100]
states = [4, 8, 12]
delta = [0.01, 0.1]
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import shtab
import xarray as xr

from jaxbio import checks
from jaxbio.cli import sweep_summary
from jaxbio.storage import netcdf
from jaxbio.studies import parsing, specs
from jaxbio.studies.outputs import try_file
from jaxbio.sweeps import cluster
from jaxbio.sweeps.sweep import sweep

AXIS = re.compile(r"\$(\w+)")
FORWARDED = ("horizon", "runs", "seed", "rounds", "keep", "quantiles", "paired", "store")
TABLES = ("environment", "learners", "axes")


def add(commands: Any) -> None:
    def command(options: Any) -> tuple[Any, str]:
        config = read(options.config)
        place = output(config, options.config)
        address = options.scheduler
        with cluster.connected(address) if address else nullcontext() as client:
            data = play(config, progress=not options.quiet, client=client)
        netcdf.save(data, place)
        drawn = _draw(data, options.figure or sweep_summary.beside(place))
        files = [str(place), *([str(drawn)] if drawn else [])]
        found = {
            "output": str(place),
            "figure": str(drawn) if drawn else None,
            "sizes": {str(k): v for k, v in data.sizes.items()},
            "points": sweep_summary.rows(data),
        }
        return found, f"{sweep_summary.table(data)}\n{', '.join(files)}"

    made = parsing.add_command(
        commands, "sweep", "play the grid of a TOML file", command, "jaxbio sweep grid.toml"
    )
    made.description = __doc__
    config = made.add_argument("config", type=parsing.path, metavar="CONFIG.toml")
    config.complete = shtab.FILE  # type: ignore[attr-defined]
    parsing.figure(made)
    parsing.scheduler(made)


def _draw(data: xr.Dataset, place: Path) -> Path | None:
    """Where the figure is; None where there is none to draw."""
    from jaxbio.figures.saving import save_as  # matplotlib takes a while to import

    figure = sweep_summary.figure(data)
    if figure is None:
        return None
    save_as(figure, place)
    return place


def read(path: Path) -> dict[str, Any]:
    """The file, checked for names that mean nothing."""
    try:
        config = tomllib.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"config {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # other letters, other words, brackets too deep
        raise ValueError(f"{path} is not TOML: {error}") from error
    for name in config:
        if name not in (*FORWARDED, *TABLES, "output"):
            known = ", ".join((*FORWARDED, "output", *TABLES))
            raise ValueError(f"{path} has {name!r}, but only {known} mean something")
    for name in ("environment", "learners"):
        if name not in config:
            raise ValueError(f"{path} must have a table [{name}]")
    _check_tables(path, config)
    return config


def output(config: dict[str, Any], path: Path) -> Path:
    """Where the result of a file goes: as it says, or beside it. Raises where that cannot be."""
    given = config.get("output", str(path.with_suffix(".nc")))
    if not isinstance(given, str) or "\0" in given:
        raise ValueError(f"output must be the name of a file, but got {given!r}")
    try_file("output", Path(given))
    return Path(given)


def _check_tables(path: Path, config: dict[str, Any]) -> None:
    tables = {name: config[name] for name in TABLES if name in config}
    if isinstance(tables["learners"], dict):
        tables |= {f"learners.{label}": table for label, table in tables["learners"].items()}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"{path}: [{name}] must be a table, but it is {checks.shown(table)}")
        if name not in ("learners", "axes") and "name" not in table:
            has = ", ".join(table) or "nothing"
            raise ValueError(f"{path}: [{name}] must have a name, but has only {has}")


def play(config: dict[str, Any], progress: bool, client: Any = None) -> xr.Dataset:
    """The sweep that a file describes. client: of the cluster that plays, if it is one."""
    return sweep(
        _on_axes(_environment, config["environment"]),
        {label: _on_axes(_learner, given) for label, given in config["learners"].items()},
        config.get("axes", {}),
        progress=progress,
        client=client,
        **{name: config[name] for name in FORWARDED if name in config},
    )


def _environment(name: str, delay: Any = None, **given: Any) -> Any:
    text = checks.text("the name of [environment]", name)
    return specs.environment(text, given, None if delay is None else str(delay))


def _learner(name: str, **given: Any) -> Any:
    return specs.learner(checks.text("the name of a learner", name), given)[1]


def _on_axes(build: Callable[..., Any], given: dict[str, Any]) -> Callable[..., Any]:
    """A function of the axes that the values of a table name."""
    names = sorted({axis for text in given.values() for axis in AXIS.findall(str(text))})

    def built(**axes: Any) -> Any:
        return build(**{name: _filled(text, axes) for name, text in given.items()})

    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    built.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return built


def _filled(text: Any, axes: dict[str, Any]) -> Any:
    """A value with axes put in: "$delta" becomes a number, "laplace:$delay,25" a text."""
    if not isinstance(text, str):
        return text
    whole = AXIS.fullmatch(text)
    if whole:
        return axes[whole[1]]
    return AXIS.sub(lambda found: str(axes[found[1]]), text)
