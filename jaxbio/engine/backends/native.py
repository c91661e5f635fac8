"""CPU: plays blocks with machine code, called through ctypes, which lets other threads run."""

from __future__ import annotations

import ctypes
import math
from collections import deque
from typing import Any

import jax
import numpy as np

from jaxbio.engine.arrays import is_small
from jaxbio.engine.backends.layout import WIDTH, WORD
from jaxbio.engine.backends.llvm_game import module_of
from jaxbio.engine.backends.machine_code import HERE, Target, loaded
from jaxbio.engine.game_program import GameProgram
from jaxbio.engine.program import BOOL

IDLE = 8  # pieces of memory that are kept for the next call, of at most so many bytes:
KEPT_BYTES = 1 << 24


class Native:
    """Plays blocks of a program's game. Every back-end has these methods: `fresh`, `state_types`,
    `restored` and `play`.
    """

    name = "llvm"
    pace = 1 << 23  # rounds of all runs that a first call plays

    def __init__(self, program: GameProgram, target: Target = HERE) -> None:
        text, self.layout = module_of(program)
        self.program, self.engine = program, loaded(text, target)
        address = self.engine.get_function_address("play")
        pointers = [ctypes.c_void_p] * 7
        kinds = [*pointers, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.c_int64]
        self._play = ctypes.CFUNCTYPE(None, *kinds)(address)
        self.idle: deque[np.ndarray] = deque(maxlen=IDLE)

    def fresh(self, runs: int) -> np.ndarray:
        """Memory for what so many runs carry from one call to the next: uint8 [vectors, bytes]."""
        return aligned(self.state_types(runs).shape)

    def state_types(self, runs: int) -> jax.ShapeDtypeStruct:
        """The types of what `fresh` gives."""
        return jax.ShapeDtypeStruct((-(-runs // WIDTH), self.layout.state_bytes), np.uint8)

    @staticmethod
    def restored(array: np.ndarray) -> np.ndarray:
        """A state that was saved, where the code can use it."""
        copy = aligned(array.shape, array.dtype)
        copy[:] = array
        return copy

    def play(
        self, numbers: list[np.ndarray], keys: np.ndarray, state: Any, last: int, stops: np.ndarray
    ) -> tuple[Any, list[np.ndarray], list[np.ndarray]]:
        """Play on from round `last` (from the beginning where that is 0) through the stops.

        numbers: leaves of the game, [..., runs] where each run has its own; keys: uint32 [2, runs];
        state: of `fresh`, changed in place; None for games that this call plays from beginning to
        end; stops: int32, ascending in size, a negative one is a pause without an output.
        Returns the state, the outputs [stops, runs], and the facts [runs].
        """
        program, runs = self.program, keys.shape[-1]
        vectors = -(-runs // WIDTH)
        packed = self._packed(numbers, vectors)
        lanes = _in_vectors(keys, vectors, np.uint32)
        room = self._room()
        one_state = self.layout.state_bytes
        carried, stride = (room, 0) if state is None else (state, one_state)
        scratch = room[one_state:]
        stops = np.ascontiguousarray(stops, np.int32)
        curve = aligned((len(program.outputs), len(stops), vectors * WIDTH), np.uint32)
        facts = aligned((len(program.facts), vectors * WIDTH), np.uint32)
        arrays = (packed, lanes, carried, scratch, curve, facts, stops)
        self._play(*(x.ctypes.data for x in arrays), last, len(stops), vectors, stride)
        outputs, found = (
            [typed(one[..., :runs], dtype) for one, dtype in zip(words, dtypes, strict=True)]
            for words, dtypes in ((curve, program.outputs), (facts, program.facts))
        )
        if len(room) <= KEPT_BYTES:
            self.idle.append(room)
        return state, outputs, found

    def _room(self) -> np.ndarray:
        """Memory for what the runs of one vector carry, then for what a round makes. It holds
        anything: new pages would cost as much as the play of a short game.
        """
        try:
            return self.idle.pop()
        except IndexError:
            return aligned(self.layout.state_bytes + max(64, self.layout.scratch_bytes))

    def _packed(self, numbers: list[np.ndarray], vectors: int) -> np.ndarray:
        """The numbers of the game as the code expects them: uint32 words."""
        given, layout = self.program.numbers, self.layout
        count = vectors if self.program.per_run else 1
        packed = aligned((count, layout.number_bytes // WORD), np.uint32)
        rows = [words_of(leaf, dtype) for leaf, dtype in zip(numbers, given.dtypes, strict=True)]
        width = WIDTH if self.program.per_run else 1

        def put(first: int, words: np.ndarray) -> None:
            """words: [entries, runs], or [entries, 1] where all runs share them."""
            room = count * width - words.shape[1]
            words = np.pad(words, ((0, 0), (0, room)), mode="edge") if room else words
            words = words.reshape(len(words), count, width).transpose(1, 0, 2)
            packed[:, first : first + words.shape[1] * width] = words.reshape(count, -1)

        entries = [math.prod(shape) for shape in given.shapes]
        rows = [row.reshape(n, -1) for row, n in zip(rows, entries, strict=True)]
        place = 0
        for leaf, row in enumerate(rows):
            if is_small(given.shapes[leaf]):
                put(place * width, row)
                place += entries[leaf]
        for memory in given.memories:
            put(layout.numbers[memory] // WORD, rows[memory.leaf])
        return packed


def words_of(leaf: Any, dtype: np.dtype) -> np.ndarray:
    """The entries of an array as the words that they are in memory: uint32, the same shape."""
    array = np.ascontiguousarray(leaf, dtype)
    return array.astype(np.uint32) if dtype == BOOL else array.view(np.uint32)


def typed(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Words of memory as the entries that they stand for."""
    return words.astype(bool) if dtype == BOOL else words.view(dtype)


def _in_vectors(rows: np.ndarray, vectors: int, dtype: Any) -> np.ndarray:
    """[n, runs] -> [vectors, n, WIDTH], the last run again where there is room."""
    room = vectors * WIDTH - rows.shape[1]
    padded = np.pad(rows, ((0, 0), (0, room)), mode="edge") if room else rows
    found = aligned((vectors, len(rows), WIDTH), dtype)
    found[:] = padded.reshape(len(rows), vectors, WIDTH).transpose(1, 0, 2)
    return found


def aligned(shape: Any, dtype: Any = np.uint8) -> np.ndarray:
    """Zeros that begin at a multiple of 64 bytes."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)
