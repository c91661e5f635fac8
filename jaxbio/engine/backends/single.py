"""CPU: calls the machine code of a function of one run, a few hundred nanoseconds a call."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbio.engine.arrays import is_small
from jaxbio.engine.backends.layout import WORD
from jaxbio.engine.backends.llvm_single import single_module
from jaxbio.engine.backends.machine_code import HERE, Target, loaded
from jaxbio.engine.backends.native import aligned, typed, words_of
from jaxbio.engine.game_program import GameProgram, Leaves
from jaxbio.engine.program import Memory
from jaxbio.engine.single import CALL

LINE = 64  # bytes


class Place(NamedTuple):
    """Where an array lies: the first of its words, and how many of them it has."""

    first: int
    size: int
    shape: tuple[int, ...]
    dtype: np.dtype

    def put(self, words: np.ndarray, array: Any) -> None:
        words[self.first : self.first + self.size] = words_of(array, self.dtype).reshape(-1)

    def get(self, words: np.ndarray) -> np.ndarray:
        """A copy."""
        mine = words[self.first : self.first + self.size].copy()
        return typed(mine, self.dtype).reshape(self.shape)


class Code:
    """The machine code of a program, for any number of callers. given, kept: where the arrays lie
    that a function is given, and those that are kept between its calls.
    """

    def __init__(self, program: GameProgram, target: Target = HERE) -> None:
        text, layout = single_module(program)
        self.program, self.layout, self._engine = program, layout, loaded(text, target)
        self.given = _places(program.numbers, layout.numbers)
        self.kept = _places(program.carry, layout.state)
        address = self._engine.get_function_address(CALL)
        # Of Python's own kind, which keeps other threads waiting: letting them run takes longer.
        self.call = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 4)(address)

    def fresh(self) -> np.ndarray:
        """Memory for what is kept between calls: words."""
        return aligned(max(1, self.layout.state_bytes // WORD), np.uint32)

    def keep(self, state: np.ndarray, arrays: Sequence[Any]) -> None:
        """Write down what is kept."""
        for place, array in zip(self.kept, arrays, strict=True):
            place.put(state, array)


class Function:
    """A function that one caller calls, one call at a time.

    ints, floats: the words that it is given, and then its outputs, as numbers of 32 bits: assigning
    to a place is faster than anything NumPy has; raw: their bytes; outputs: the first word of the
    outputs.
    """

    def __init__(self, code: Code, state: np.ndarray) -> None:
        given, out = code.layout.number_bytes, WORD * len(code.program.outputs)
        out = -(-out // LINE) * LINE
        room = aligned(given + out + max(LINE, code.layout.scratch_bytes))
        start = room.ctypes.data
        self.given, self.outputs = code.given, given // WORD
        self._args = (start, state.ctypes.data, start + given, start + given + out)
        self._call, self._words, self._owners = code.call, room.view(np.uint32), (code, state)
        self.raw: Any = memoryview(room)  # type: ignore[arg-type]
        self.ints, self.floats = self.raw.cast("i"), self.raw.cast("f")

    def give(self, leaf: int, array: Any) -> None:
        """Write down one of the arrays that it is given."""
        self.given[leaf].put(self._words, array)

    def __call__(self) -> None:
        self._call(*self._args)


def _places(leaves: Leaves, memories: dict[Memory, int]) -> list[Place]:
    """memories: byte offsets of the large ones; scalars lie one after the other before these."""
    large = {memory.leaf: memories[memory] // WORD for memory in leaves.memories}
    found, scalars = [], 0
    for leaf, (shape, dtype) in enumerate(zip(leaves.shapes, leaves.dtypes, strict=True)):
        size = math.prod(shape)
        found.append(Place(large.get(leaf, scalars), size, shape, dtype))
        scalars += size if is_small(shape) else 0
    return found
