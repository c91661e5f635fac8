"""CPU: calls the machine code of a function of one run, a few hundred nanoseconds a call."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from jaxbio.engine.arrays import is_small
from jaxbio.engine.backends.layout import WORD
from jaxbio.engine.backends.llvm_single import single_module
from jaxbio.engine.backends.machine_code import HERE, Target, loaded
from jaxbio.engine.backends.native import aligned, typed, words_of
from jaxbio.engine.game_program import GameProgram, Leaves
from jaxbio.engine.single import CALL

LINE = 64  # bytes


class Code:
    """The machine code of a program, for any number of callers."""

    def __init__(self, program: GameProgram, target: Target = HERE) -> None:
        text, self.layout = single_module(program)
        self.program, self.engine = program, loaded(text, target)
        address = self.engine.get_function_address(CALL)
        # Of Python's own kind, which keeps other threads waiting: letting them run takes longer.
        self.call = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 4)(address)

    def fresh(self) -> np.ndarray:
        """Memory for what is kept between calls: words."""
        return aligned(max(1, self.layout.state_bytes // WORD), np.uint32)

    def kept(self, state: np.ndarray) -> list[np.ndarray]:
        """What is kept, as arrays of their own."""
        return [
            typed(state[first : first + size].copy(), dtype).reshape(shape)
            for first, size, shape, dtype in self._places()
        ]

    def keep(self, state: np.ndarray, arrays: list[np.ndarray]) -> None:
        """Put arrays there instead."""
        for (first, size, _, dtype), array in zip(self._places(), arrays, strict=True):
            state[first : first + size] = words_of(array, dtype).reshape(-1)

    def _places(self) -> list[tuple[int, int, tuple[int, ...], np.dtype]]:
        memories = {memory.leaf: self.layout.state[memory] for memory in self.program.carry.memories}
        return _places(self.program.carry, memories)

    def numbers(self) -> list[tuple[int, int, tuple[int, ...], np.dtype]]:
        """(first word, entries, shape, type) of each array that the function is given."""
        memories = {
            memory.leaf: self.layout.numbers[memory] for memory in self.program.numbers.memories
        }
        return _places(self.program.numbers, memories)


class Function:
    """A function that one caller calls, one call at a time.

    ints, floats: the words that it is given, and then its outputs, as numbers of 32 bits: assigning
    to a place is faster than anything NumPy has; raw: their bytes; outputs: the first word of the
    outputs.
    """

    def __init__(self, code: Code, state: np.ndarray) -> None:
        self.code = code
        given, out = code.layout.number_bytes, WORD * len(code.program.outputs)
        out = -(-out // LINE) * LINE
        self.outputs = given // WORD
        self._room = aligned(given + out + max(LINE, code.layout.scratch_bytes))
        start = self._room.ctypes.data
        self._state = state  # which must outlive the calls
        self._args = (start, state.ctypes.data, start + given, start + given + out)
        self._call = code.call
        self.raw = memoryview(self._room)
        self.ints, self.floats = self.raw.cast("i"), self.raw.cast("f")

    def give(self, leaf: int, array: Any) -> None:
        """Write down one of the arrays that it is given."""
        first, size, _, dtype = self.code.numbers()[leaf]
        self._room.view(np.uint32)[first : first + size] = words_of(array, dtype).reshape(-1)

    def place(self, leaf: int) -> int:
        """The first word of one of the arrays that it is given."""
        return self.code.numbers()[leaf][0]

    def __call__(self) -> None:
        self._call(*self._args)


def _places(
    leaves: Leaves, memories: dict[int, int]
) -> list[tuple[int, int, tuple[int, ...], np.dtype]]:
    """memories: byte offsets of the large ones; scalars lie one after the other before these."""
    found, scalars = [], 0
    for leaf, (shape, dtype) in enumerate(zip(leaves.shapes, leaves.dtypes, strict=True)):
        size = math.prod(shape)
        first = scalars if is_small(shape) else memories[leaf] // WORD
        found.append((first, size, shape, dtype))
        scalars += size if is_small(shape) else 0
    return found
