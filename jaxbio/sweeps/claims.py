"""Who plays which block, where several processes share a store.

A claim is a file with the number of its process. A process that lives touches a file of its own
every few seconds; claims of one that does not count for nothing. All this only saves work: a block
that two processes play all the same has the same bits.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from jaxbio.storage import atomic

BEAT = 2.0  # seconds between two signs of life
SILENCE = 30.0  # seconds after which a process counts as dead


class Claims:
    """The claims of process `index`; a context in which it shows that it lives."""

    def __init__(self, folder: Path, index: int) -> None:
        self.folder, self.index = folder, index
        self.over = threading.Event()
        self.beating = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Claims:
        atomic.make_folder(self.folder)
        self._sign(self.index).touch()
        self.beating.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.over.set()
        self.beating.join()
        self._sign(self.index).unlink(missing_ok=True)

    def take(self, block: int) -> bool:
        """Claim a block. False where it is another's that lives."""
        mine = str(self.index).encode()
        if atomic.create(self._file(block), mine):
            return True
        try:
            owner = int(atomic.read(self._file(block)))
        except FileNotFoundError:  # given back at this moment
            return self.take(block)
        except ValueError:  # left empty or torn, by a machine that failed
            owner = self.index
        if owner != self.index and self._lives(owner):
            return False
        atomic.write(self._file(block), mine)
        return True

    def give_back(self, block: int) -> None:
        """The block is saved, or given up."""
        self._file(block).unlink(missing_ok=True)

    def _lives(self, owner: int) -> bool:
        """By the clock of the file system, which is the same for both signs."""
        try:
            theirs = self._sign(owner).stat().st_mtime
            return self._sign(self.index).stat().st_mtime - theirs < SILENCE
        except OSError:  # no such sign, or a number that cannot be in the name of one
            return False

    def _beat(self) -> None:
        while not self.over.wait(BEAT):
            with suppress(OSError):  # who cannot show that he lives counts as dead, no worse
                self._sign(self.index).touch()

    def _file(self, block: int) -> Path:
        return self.folder / f"{block:07d}"

    def _sign(self, index: int) -> Path:
        return self.folder / f"process-{index}"
