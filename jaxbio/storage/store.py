"""Finished parts on disk: written at once, whole or not at all, and never mistaken for others.

A store is a folder with `settings.json` (what the sweep is made of), `blocks/` (one file for each
finished block) and `unfinished/` (blocks of long horizons on their way). Files appear by renaming,
so that a reader never sees half of one.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxbio.checks import shown
from jaxbio.engine.code.fingerprint import refuse_unknown
from jaxbio.storage import atomic

HEADER = "header"
MANIFEST = "settings.json"
SHOWN = 6  # differences in a message
CODE_CHANGED = (
    "\nThe code of jaxbio itself has changed since the store was made (sources), as it does where "
    "it is\ninstalled from a folder in which someone works. What it would play now may differ."
)


def part(store: str | os.PathLike[str] | None, name: str) -> Path | None:
    """Where one of several sweeps keeps its blocks; None where nothing is kept."""
    found = checked_path(store)
    return None if found is None else found / name


def checked_path(store: Any) -> Path | None:
    """The folder of a store; None where nothing is kept."""
    if store is None:
        return None
    if not isinstance(store, str | os.PathLike) or not str(store):
        raise TypeError(f"store must be the path of a folder, but got {shown(store)}")
    try:
        path = Path(store)
        first = next(filter(_is_there, (path, *path.parents)), None)
        is_folder = first is None or first.is_dir()
    except (OSError, TypeError, ValueError) as error:  # too long, not text, a zero byte
        reason = getattr(error, "strerror", None) or error
        raise ValueError(
            f"store must be the path of a folder, but got {shown(store)}: {reason}"
        ) from None
    if first is not None and not is_folder:
        kind = "a file" if first.exists() else "a link to nothing"
        raise ValueError(f"store must be a folder, but {first} is {kind}")
    return path


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


class Store:
    """A folder for the blocks of one sweep."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: dict[str, Any],
        contents: Sequence[str] | None = None,
    ) -> None:
        """Open a store, or make it. Raises where the folder holds another sweep.

        contents: for each block, a digest of what it holds.
        """
        found = checked_path(path)
        assert found is not None
        refuse_unknown(settings)
        self.path = found
        self.settings = json.loads(json.dumps(settings))
        self.contents = contents
        text = json.dumps(self.settings, sort_keys=True)
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()
        atomic.make_folder(self.path)
        manifest = self.path / MANIFEST
        if not manifest.exists():
            self._refuse_strangers()
            atomic.create(manifest, json.dumps(self.settings, indent=1).encode())
        self._compare(manifest)
        for folder in (self.blocks, self.unfinished):
            atomic.make_folder(folder)
        for folder in (self.path, self.blocks, self.unfinished):
            atomic.remove_leftovers(folder)

    @property
    def blocks(self) -> Path:
        return self.path / "blocks"

    @property
    def unfinished(self) -> Path:
        return self.path / "unfinished"

    def _refuse_strangers(self) -> None:
        """Raise where the folder is not empty, unless what is there are blocks of this sweep."""
        known = {self.blocks.name, self.unfinished.name, MANIFEST}
        strangers = sorted(
            entry.name
            for entry in self.path.iterdir()
            if entry.name not in known and not entry.name.startswith(".")
        )
        if strangers and not (self.path / MANIFEST).exists():  # by another process, meanwhile?
            raise ValueError(
                f"store {self.path} holds other files ({', '.join(strangers[:SHOWN])}) "
                f"and no {MANIFEST}: name an empty folder or a new one"
            )
        wrong = self.wrong_blocks()
        if wrong and not (self.path / MANIFEST).exists():
            raise ValueError(
                f"store {self.path} has lost its {MANIFEST}, and its blocks are not of this call:"
                f"\n  {_listed(wrong)}\n"
                "Make the call that they were made with, or name another store."
            )

    def _compare(self, manifest: Path) -> None:
        content = atomic.read(manifest)
        try:
            found = json.loads(content)
            if not isinstance(found, dict):
                raise ValueError(f"it holds {_short(found)}")
            changes = list(_differences(found, self.settings))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{manifest} cannot be read ({error}): name another store") from error
        if not changes:
            return
        raise ValueError(
            f"store {self.path} holds a sweep with other settings:\n  "
            + _listed(changes)
            + (CODE_CHANGED if any(change.startswith("sources:") for change in changes) else "")
            + "\nName another store, or go back to the settings that it was made with."
        )

    def _file(self, block: int) -> Path:
        return self.blocks / f"{block:07d}.npz"

    def finished(self) -> set[int]:
        """The numbers of the blocks that are there."""
        return self._numbers(self.blocks)

    def _numbers(self, folder: Path) -> set[int]:
        files = [file for file in folder.glob("*.npz") if file.stem.isdecimal()]
        return {int(file.stem) for file in files if file.name == self._file(int(file.stem)).name}

    def wrong_blocks(self) -> list[str]:
        """What is wrong with blocks that are there, finished or on their way.

        All of each is read, and its checksums are compared: what is damaged shows before others are
        played for days. Takes half a second for a gigabyte, or for a thousand blocks.
        """
        many = float("inf") if self.contents is None else len(self.contents)
        there = {*self.finished(), *self._numbers(self.unfinished)}
        wrong = []
        for block in sorted(number for number in there if number < many):
            own, begun = self._file(block), self.progress_file(block)
            try:
                self._unpacked(own if own.exists() else begun, block, [HEADER])
            except FileNotFoundError:  # finished or removed by another process, meanwhile
                continue
            except ValueError as error:
                wrong.append(str(error))
        return wrong

    def check_blocks(self) -> None:
        """Raise where a block that is there is damaged, or belongs to something else."""
        wrong = self.wrong_blocks()
        if wrong:
            raise ValueError(_listed(wrong))

    def has(self, block: int) -> bool:
        """Is the block there?"""
        return self._file(block).exists()

    def save(self, block: int, arrays: dict[str, np.ndarray]) -> None:
        """Keep a finished block."""
        atomic.write(self._file(block), self._packed(block, arrays))
        self.progress_file(block).unlink(missing_ok=True)

    def load(self, block: int) -> dict[str, np.ndarray]:
        """A finished block. Raises where the file is torn or belongs to something else."""
        return self._unpacked(self._file(block), block)

    def progress_file(self, block: int) -> Path:
        """Where the state of a block on its way is."""
        return self.unfinished / self._file(block).name

    def save_progress(self, block: int, arrays: dict[str, np.ndarray]) -> None:
        """Keep the state of a block on its way."""
        atomic.write(self.progress_file(block), self._packed(block, arrays))

    def load_progress(self, block: int) -> dict[str, np.ndarray] | None:
        """The state of a block on its way, if there is one."""
        try:
            return self._unpacked(self.progress_file(block), block)
        except FileNotFoundError:  # never begun, or just finished by another process
            return None

    def _header(self, block: int) -> dict[str, Any]:
        known = self.contents is not None and block < len(self.contents)
        holds = {"holds": self.contents[block]} if self.contents and known else {}
        return {"sweep": self.fingerprint, "block": block, **holds}

    def _packed(self, block: int, arrays: dict[str, np.ndarray]) -> bytes:
        header = json.dumps(self._header(block) | {"arrays": sorted(arrays)})
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **{HEADER: np.array(header)}, **arrays)
        return buffer.getvalue()

    def _unpacked(
        self, file: Path, block: int, only: list[str] | None = None
    ) -> dict[str, np.ndarray]:
        # Read before it is parsed: a disk that fails is another error than a file that is torn.
        return self._check_header(file, _parsed(file, atomic.read(file), only), block)

    def _check_header(
        self, file: Path, arrays: dict[str, np.ndarray], block: int
    ) -> dict[str, np.ndarray]:
        """The arrays without the header, if it is the one of this block."""
        header = json.loads(str(arrays.pop(HEADER)))
        del header["arrays"]
        if header != self._header(block):
            raise ValueError(f"{file} belongs to another sweep: delete it and call again")
        return arrays


def _parsed(file: Path, content: bytes, only: list[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of a block (all, or those of these names). Raises where any of it is damaged."""
    try:
        with np.load(io.BytesIO(content)) as archive:
            broken = archive.zip.testzip()  # compares checksums
            if broken is not None:
                raise ValueError(f"the checksum of {broken} is wrong")
            header = json.loads(str(archive[HEADER]))
            if sorted(archive.files) != sorted([HEADER, *header["arrays"]]):
                raise ValueError("not all arrays are there")
            return {name: archive[name] for name in only or archive.files}
    except MemoryError:
        raise
    except Exception as error:  # whatever the readers of archives and arrays stumble over
        raise ValueError(f"{file} is torn ({error}): delete it and call again") from error


def _listed(texts: list[str]) -> str:
    rest = f"\n  and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return "\n  ".join(texts[:SHOWN]) + rest


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """What differs, as "name: was 1, now 2"."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            inner = f"{path} / {key}" if path else str(key)
            if key not in new or key not in old:
                yield f"{inner}: only in the {'store' if key in old else 'call'}"
            else:
                yield from _differences(old[key], new[key], inner)
    elif json.dumps(old, sort_keys=True) != json.dumps(new, sort_keys=True):
        yield f"{path}: was {_short(old)}, now {_short(new)}"  # as text: NaN is not equal to itself


def _short(value: Any) -> str:
    return _cut(json.dumps(value))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
