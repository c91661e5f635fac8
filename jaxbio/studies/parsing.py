"""Arguments that several commands have: declared here, once."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import shtab

from jaxbio import checks
from jaxbio.checks import names
from jaxbio.environment.instances import environment_names
from jaxbio.environment.laws import DELAYS
from jaxbio.studies.families import FAMILIES, GETS, SIGNATURE
from jaxbio.studies.paper.experiment import Options

LEARNER = "a name, name:option=value, or module:name of your own, module:name:option=value"
PICTURES = (".png", ".pdf", ".svg")
Command = Callable[[Any], Any]  # options -> what is found, and as text; None where nothing is


class Names(list[str]):
    """Choices in any case, and everything that may be module:name or name:options."""

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and (":" in text or names.in_any_case(text, self) in [*self])


def whole(text: str) -> int:
    """An integer, also as 10_000 or 1e4."""
    try:
        return int(text)
    except ValueError:
        with suppress(ValueError, OverflowError):  # neither a number nor a finite one
            if int(float(text)) == float(text):
                return int(float(text))
    raise argparse.ArgumentTypeError(
        f"must be a whole number, such as 10000 or 1e4, but got {checks.shown(text)}"
    )


def add_command(
    commands: Any, name: str, about: str, command: Command, example: str
) -> argparse.ArgumentParser:
    """A command (options -> what is found, and as text), with the options that all have."""
    made = commands.add_parser(
        name,
        help=about,
        description=about,
        epilog=f"example:\n  {example}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.set_defaults(command=command)
    made.add_argument("--json", action="store_true", help="print JSON")
    made.add_argument("--quiet", action="store_true", help="no progress")
    made.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return made


def add_study(
    commands: Any,
    name: str,
    about: str,
    study: Command,
    example: str,
    function: Callable[..., Any],
) -> argparse.ArgumentParser:
    """A command that plays a study (options -> what is found, and as text) into a folder.

    function: of Python that does the same, whose defaults it has.
    """
    made = add_command(commands, name, about, study, example)
    option(made, "--runs", function, "at each point", type=whole)
    option(made, "--seed", function, "root seed", type=whole)
    folder(made, name)
    return made


def option(
    made: argparse._ActionsContainer,
    flag: str,
    function: Callable[..., Any],
    about: str,
    name: str = "",
    **how: Any,
) -> None:
    """An option with the default of the Python function that it is handed to: declared there, once.

    name: of the function's argument, where it is not that of the flag.
    """
    known = inspect.signature(function).parameters[name or flag[2:].replace("-", "_")].default
    several = isinstance(known, tuple)
    shown = " ".join(map(str, known)) if several else known
    given = {"nargs": "+", "default": list(known)} if several else {"default": known}
    made.add_argument(flag, help=f"{about} ({shown})", **given, **how)


def horizon(made: argparse.ArgumentParser) -> None:
    """Python functions of a problem ask for T; on the command line it is that of the paper."""
    option(made, "--horizon", Options, "rounds T", type=whole)


def numbers(made: argparse.ArgumentParser, function: Callable[..., Any]) -> None:
    horizon(made)
    option(made, "--runs", function, "independent runs", type=whole)
    option(made, "--seed", function, "root seed", type=whole)


def problem(made: argparse.ArgumentParser) -> None:
    made.add_argument("--actions", type=whole, required=True, help="K")
    made.add_argument("--states", type=whole, required=True, help="S")
    horizon(made)
    made.add_argument("--delay", default="50", help=f"{_laws()} (50)")


def environment(made: argparse.ArgumentParser, usual: str | None = None, more: str = "") -> None:
    """A problem by name, its options and its delay. usual: the name where none need be given."""
    known: dict[str, Any] = {"choices": Names(environment_names())}
    if usual is None:
        about = "a name, or module:name of your own"
        made.add_argument("environment", metavar="ENVIRONMENT", help=about, **known)
    else:
        made.add_argument(
            "--environment", metavar="NAME", default=usual, help=f"({usual})", **known
        )
    made.add_argument("--set", nargs=2, action="append", metavar=("OPTION", "VALUE"))
    made.add_argument("--delay", help=f"{_laws()}{more}")


def _laws() -> str:
    known = ", ".join(DELAYS)
    return f"50, or laplace:50,25 and the like ({known}), empirical:FILE, or module:name"


def fixed(made: argparse.ArgumentParser, function: Callable[..., Any]) -> None:
    option(made, "--horizon", function, "rounds T", type=whole)
    option(made, "--delay", function, "d", type=whole)


def family(made: argparse.ArgumentParser, function: Callable[..., Any]) -> None:
    own = f"module:function of {SIGNATURE}, {GETS}, that makes an Environment"
    option(made, "--family", function, f"{', '.join(FAMILIES)}, or {own}")


def folder(made: argparse.ArgumentParser, name: str) -> None:
    place = Path("results") / name
    made.add_argument("--folder", type=path, default=place, help=f"of what is made ({place})")


def store(made: argparse.ArgumentParser) -> None:
    about = "of finished parts: the same command goes on (of a study: in its folder)"
    made.add_argument("--store", type=path, help=about)


def figure(made: argparse.ArgumentParser) -> None:
    drawn = made.add_argument("--figure", type=_picture, help="where to save a figure")
    drawn.complete = shtab.FILE  # type: ignore[attr-defined]


def scheduler(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask cluster that plays: tcp://127.0.0.1:8786"
    )


def path(text: str) -> Path:
    try:
        return checks.path("the name", text)
    except TypeError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _picture(text: str) -> Path:
    file = path(text)
    if file.suffix not in PICTURES:
        raise argparse.ArgumentTypeError(f"{text!r} must end in one of {', '.join(PICTURES)}")
    return file
