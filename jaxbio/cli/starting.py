"""Ctrl-C while the command is still importing: quiet, and with the exit code that it has later.

Importing JAX takes a second or two, in which the command cannot catch anything yet: so the package
imports this module before all others.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import Any

INTERRUPTED = 130


def is_the_command() -> bool:
    """Is this process `jaxbio` or `python -m jaxbio`, and not one that imports the package?"""
    if multiprocessing.parent_process() is not None:
        return False
    words = sys.orig_argv
    module = words[words.index("-m") + 1 :][:1] if "-m" in words else []
    as_module = sys.argv[:1] == ["-m"] and module == ["jaxbio"]  # what runs, not what it imports
    return as_module or Path(sys.argv[0] if sys.argv else "").stem == "jaxbio"


def _leave(*_: Any) -> None:
    os._exit(INTERRUPTED)  # nothing has been begun that could be cleaned up


def begun() -> None:
    """From here on Ctrl-C ends the command at once, unless its caller has decided otherwise."""
    try:
        if is_the_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _leave)
    except ValueError:  # not in the main thread
        pass


def over() -> None:
    """The command has begun: from here on Ctrl-C is an exception that it catches."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


begun()
