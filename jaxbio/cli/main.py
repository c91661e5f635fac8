"""The command line: `jaxbio`, also `python -m jaxbio`.

Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted, 141 nobody reads what it prints.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import shtab

from jaxbio import __version__
from jaxbio.checks import names
from jaxbio.cli import beginning, starting
from jaxbio.studies import outputs

COMMANDS = (  # in the order of the help: modules, each of which adds its command
    "cli.listing",
    "cli.run",
    "studies.paper.command",
    "cli.sweep_file",
    "cli.tuning",
    "cli.bounds",
    "cli.log",
    "studies.advise.command",
    "studies.contest.command",
    "studies.phase.command",
    "studies.regimes.command",
    "studies.beyond.command",
    "studies.violations.command",
    "studies.guarantees.command",
    "studies.rates.command",
    "cli.bench",
    "cli.doctor",
)
USAGE, INTERRUPTED, UNREAD = 2, 130, 141
EXPECTED = (ValueError, TypeError, MemoryError, OSError, RuntimeError)
LONGEST = 500  # letters of what the parser says
CHOSEN = re.compile(r"invalid choice: '(?P<given>.*?)' \(choose from (?P<known>.*)\)", re.DOTALL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = argparse.Namespace(debug="--debug" in given)
    try:
        starting.over()
        known = parser()
        for one in given:
            if one.startswith("--") and one.endswith("=--"):  # which argparse takes for a list
                known.error(f"argument {one[:-3]}: '--' is no value")
        if not given:
            print(beginning.TEXT)
            return 0
        options = known.parse_args(given)
        options.again = shlex.join(["jaxbio", *given])
        _keep_programs()
        outputs.try_places(options)
        made = options.command(options)
        if made is not None:
            found, text = made
            _show(found, text, options)
        sys.stdout.flush()
    except BrokenPipeError:  # as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to flush
        return UNREAD
    except KeyboardInterrupt as interrupt:
        notes = getattr(interrupt, "__notes__", []) or _kept(options)
        again = [f"resume with: {shlex.join(['jaxbio', *given])}"] if notes else []
        print("\n" + "; ".join(["interrupted", *notes, *again]), file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if options.debug:
            raise
        print(f"jaxbio: {_said(error)}", file=sys.stderr)
        return USAGE if isinstance(error, ValueError | TypeError) else 1
    return 0


def _said(error: Exception) -> str:
    """An error in one line."""
    notes = "; ".join(getattr(error, "__notes__", []))
    text = str(error) or ("out of memory" if isinstance(error, MemoryError) else "")
    if not isinstance(error, EXPECTED):  # a defect, of ours or of a function of the user's
        text = f"{type(error).__name__}: {text} (unexpected: --debug shows where)"
    return _line(f"{text} ({notes})" if notes else text)


def _line(text: str) -> str:
    return " ".join(text.split())


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and not how everything is used."""

    def error(self, message: str) -> NoReturn:
        shown = message if len(message) <= LONGEST else f"{message[:LONGEST]}..."
        chosen = CHOSEN.search(message)
        if chosen is not None:
            known = [name.strip("'") for name in chosen["known"].split(", ")]
            shown += names.suggestion(chosen["given"], known)
        self.exit(USAGE, f"{self.prog}: {_line(shown)} (see {self.prog} --help)\n")


def _kept(options: Any) -> list[str]:
    """What remains of a command that is interrupted between the parts of its study."""
    folder = getattr(options, "folder", None)
    return [] if folder is None else [f"finished parts are in {folder}"]


def _keep_programs() -> None:
    """Keep compiled programs between calls, unless the user has decided otherwise."""
    import jax

    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(base / "jaxbio"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def parser() -> argparse.ArgumentParser:
    whole = _Parser(
        prog="jaxbio",
        description="Delayed bandits with intermediate observations, many games side by side.",
        epilog="examples:\n"
        "  jaxbio list\n"
        "  jaxbio reproduce 1\n"
        "  jaxbio run paper-stochastic dada-exp3 metabio --delay laplace:50,25\n"
        "  jaxbio theory --actions 8 --states 12 --horizon 100000 --delay 50\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"jaxbio {__version__}")
    shtab.add_argument_to(whole, "--print-completion", help="print a shell's completion script")
    commands = whole.add_subparsers(required=True, metavar="command")
    for name in COMMANDS:
        import_module(f"jaxbio.{name}").add(commands)
    return whole


def _show(found: Any, text: str, options: Any) -> None:
    print(json.dumps(_plain(found), indent=2, allow_nan=False) if options.json else text)


def _plain(found: Any) -> Any:
    """The same with None for numbers that JSON has no words for."""
    if isinstance(found, dict):
        return {name: _plain(value) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return [_plain(value) for value in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found
