"""Finished parts on disk: written at once, whole or not at all, and never mistaken for others.

A store is a folder with `settings.json` (what the sweep is made of), `blocks/` (one file for each
finished block) and `unfinished/` (blocks of long horizons on their way). Several processes may
share one. Files appear by renaming, so that a reader never sees half of one.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HEADER = "header"
MANIFEST = "settings.json"
SHOWN = 6  # differences in a message


def part(store: str | os.PathLike[str] | None, name: str) -> Path | None:
    """Where one of several sweeps keeps its blocks; None where nothing is kept."""
    return None if store is None else Path(store) / name


class Store:
    """A folder for the blocks of one sweep."""

    def __init__(self, path: str | os.PathLike[str], settings: dict[str, Any]) -> None:
        """Open a store, or make it. Raises where the folder holds another sweep."""
        self.path = Path(path)
        self.settings = json.loads(json.dumps(settings))
        text = json.dumps(self.settings, sort_keys=True)
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"store must be a folder, but {self.path} is a file")
        self.path.mkdir(parents=True, exist_ok=True)
        manifest = self.path / MANIFEST
        if not manifest.exists():
            self._refuse_strangers()
            _write(manifest, json.dumps(self.settings, indent=1).encode())
        self._compare(manifest)
        for folder in (self.blocks, self.unfinished):
            folder.mkdir(exist_ok=True)

    @property
    def blocks(self) -> Path:
        return self.path / "blocks"

    @property
    def unfinished(self) -> Path:
        return self.path / "unfinished"

    def _refuse_strangers(self) -> None:
        known = {self.blocks.name, self.unfinished.name, MANIFEST}
        strangers = sorted(
            entry.name
            for entry in self.path.iterdir()
            if entry.name not in known and not entry.name.startswith(".")
        )
        others = bool(strangers) or any(self.blocks.glob("*.npz"))
        if others and not (self.path / MANIFEST).exists():  # made by another process, meanwhile?
            raise ValueError(
                f"store {self.path} holds other files ({', '.join(strangers[:SHOWN]) or 'blocks'}) "
                f"and no {MANIFEST}: name an empty folder or a new one"
            )

    def _compare(self, manifest: Path) -> None:
        try:
            found = json.loads(manifest.read_bytes())
        except ValueError as error:
            raise ValueError(f"{manifest} cannot be read ({error}): name another store") from error
        if json.dumps(found, sort_keys=True) == json.dumps(self.settings, sort_keys=True):
            return  # as text: NaN is not equal to itself
        changes = list(_differences(found, self.settings))
        rest = f"\n  and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
        raise ValueError(
            f"store {self.path} holds a sweep with other settings:\n  "
            + "\n  ".join(changes[:SHOWN])
            + rest
            + "\nName another store, or go back to the settings that it was made with."
        )

    def _file(self, block: int) -> Path:
        return self.blocks / f"{block:07d}.npz"

    def finished(self) -> set[int]:
        """The numbers of the blocks that are there."""
        return {int(file.stem) for file in self.blocks.glob("*.npz") if file.stem.isdecimal()}

    def has(self, block: int) -> bool:
        """Is the block there?"""
        return self._file(block).exists()

    def save(self, block: int, arrays: dict[str, np.ndarray]) -> None:
        """Keep a finished block."""
        _write(self._file(block), self._packed(block, arrays))
        (self.unfinished / self._file(block).name).unlink(missing_ok=True)

    def load(self, block: int) -> dict[str, np.ndarray]:
        """A finished block. Raises where the file is torn or belongs to something else."""
        return self._unpacked(self._file(block), block)

    def save_progress(self, block: int, arrays: dict[str, np.ndarray]) -> None:
        """Keep the state of a block on its way."""
        file = self.unfinished / self._file(block).name
        _write(file, self._packed(block, arrays))

    def load_progress(self, block: int) -> dict[str, np.ndarray] | None:
        """The state of a block on its way, if there is one."""
        file = self.unfinished / self._file(block).name
        try:
            return self._unpacked(file, block)
        except FileNotFoundError:  # never begun, or just finished by another process
            return None

    def _header(self, block: int) -> dict[str, Any]:
        return {"sweep": self.fingerprint, "block": block}

    def _packed(self, block: int, arrays: dict[str, np.ndarray]) -> bytes:
        header = json.dumps(self._header(block) | {"arrays": sorted(arrays)})
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **{HEADER: np.array(header)}, **arrays)
        return buffer.getvalue()

    def _unpacked(self, file: Path, block: int) -> dict[str, np.ndarray]:
        try:
            with np.load(file) as archive:  # its checksums find torn arrays
                arrays = {name: archive[name] for name in archive.files}
            header = json.loads(str(arrays.pop(HEADER)))
            if header.pop("arrays") != sorted(arrays):  # nor do they know of arrays left out
                raise ValueError("not all arrays are there")
        except FileNotFoundError:
            raise
        except Exception as error:  # whatever the readers of archives and arrays stumble over
            raise ValueError(f"{file} is torn ({error}): delete it and call again") from error
        if header != self._header(block):
            raise ValueError(f"{file} belongs to another sweep: delete it and call again")
        return arrays


def _write(file: Path, content: bytes) -> None:
    """Whole or not at all: to a name of this thread's own, to the disk, then renamed."""
    scratch = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with open(scratch, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(scratch, file)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """What differs, as "name: was 1, now 2"."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            inner = f"{path} / {key}" if path else str(key)
            if key not in new or key not in old:
                yield f"{inner}: only in the {'store' if key in old else 'call'}"
            elif old[key] != new[key]:
                yield from _differences(old[key], new[key], inner)
    else:
        yield f"{path}: was {_short(old)}, now {_short(new)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
