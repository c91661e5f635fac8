"""Files that are there whole or not at all, also after a power cut."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SCRATCH = ".part"  # how names of files end that are being written
OURS = re.compile(rf"\.[0-9a-f]{{32}}\{SCRATCH}$")
OLD = 24 * 3600.0  # seconds after which nobody writes a scratch file any more


def write(file: Path, content: bytes) -> None:
    """To a name of its own, to the disk, then renamed."""
    _publish(file, content, os.replace)


def create(file: Path, content: bytes) -> bool:
    """As `write`, but only where there is no such file yet; says whether there was none."""
    try:
        _publish(file, content, _link)
    except FileExistsError:
        return False
    return True


def make_folder(folder: Path) -> None:
    """With those above it, all on the disk."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        _sync(path.parent)


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """An error of the system says which file it is about: a full disk does not by itself."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(file)
        raise


def read(file: Path) -> bytes:
    """All of it."""
    with naming(file):
        return file.read_bytes()


def remove_leftovers(folder: Path) -> None:
    """What kills have left of writes long ago."""
    for scratch in folder.glob(f".*{SCRATCH}"):
        with suppress(OSError):  # removed by another process, or not ours to remove
            if OURS.search(scratch.name) and time.time() - scratch.stat().st_mtime > OLD:
                scratch.unlink()


@contextmanager
def aside(file: Path, name_it: Callable[[Path, Path], None] | None = None) -> Iterator[Path]:
    """Where to write a file that gets its name when it is whole, or never."""
    scratch = file.with_name(f".{file.name}.{uuid.uuid4().hex}{SCRATCH}")
    with naming(file):
        try:
            yield scratch
            with open(scratch, "rb") as stream:
                os.fsync(stream.fileno())
            (name_it or os.replace)(scratch, file)
        finally:
            scratch.unlink(missing_ok=True)
        _sync(file.parent)


def _publish(file: Path, content: bytes, name_it: Callable[[Path, Path], None]) -> None:
    with aside(file, name_it) as scratch, open(scratch, "xb") as stream:
        stream.write(content)


def _link(scratch: Path, file: Path) -> None:
    """Give it the name unless it is taken; file systems without links get no such promise."""
    try:
        os.link(scratch, file)
    except FileExistsError:
        raise
    except OSError:
        if file.exists():
            raise FileExistsError(file) from None
        os.replace(scratch, file)


def _sync(folder: Path) -> None:
    """Names are part of the folder, which has to reach the disk too."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # a system on which folders cannot be opened
        return
    try:
        os.fsync(handle)
    except OSError:  # a file system that cannot
        pass
    finally:
        os.close(handle)
