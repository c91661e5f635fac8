"""CPU: what numbers look like in memory: types, and where those of a program lie."""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from jaxbio.engine.backends.pairs import Pairs
from jaxbio.engine.game_program import GameProgram
from jaxbio.engine.program import BOOL

WIDTH = 32  # runs of a vector: two registers of the longest kind, so that one hides the other
WORD = 4  # bytes of every number in memory; flags take as much
I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
F32, BYTE, VOID = ir.FloatType(), ir.IntType(8), ir.VoidType()
POINTER = ir.PointerType()


def scalar_type(dtype: np.dtype) -> ir.Type:
    return I1 if dtype == BOOL else F32 if dtype.kind == "f" else I32


def vector_type(dtype: np.dtype) -> ir.VectorType:
    return ir.VectorType(scalar_type(dtype), WIDTH)


def stored_type(dtype: np.dtype) -> ir.Type:
    return F32 if dtype.kind == "f" else I32


class Layout:
    """Where the numbers of a program lie: byte offsets, with the runs of a vector side by side.

    width: runs of a vector.
    """

    def __init__(self, program: GameProgram, width: int = WIDTH) -> None:
        row = self.state_row = WORD * width
        self.pairs = Pairs(program)
        self.number_row = row if program.per_run else WORD
        self.numbers, end = {}, len(program.numbers.scalars) * self.number_row
        for memory in program.numbers.memories:
            end = -(-end // 64) * 64
            self.numbers[memory], end = end, end + memory.size * self.number_row
        self.number_bytes = -(-end // 64) * 64
        self.state, end = {}, len(program.carry.scalars) * row
        for memory in program.carry.memories:
            self.state[memory], end = end, end + memory.size * row
        self.state_bytes = end
        self.scratch, end = {}, 0
        for memory in program.scratch:
            self.scratch[memory], end = end, end + memory.size * row
        self.scratch_bytes = end
