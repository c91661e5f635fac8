"""CPU: how a program's numbers are read from memory and written there, as LLVM's instructions."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir

from jaxbio.engine.backends.layout import (
    BYTE,
    I1,
    I32,
    I64,
    POINTER,
    VOID,
    WIDTH,
    WORD,
    Layout,
    stored_type,
    vector_type,
)  # fmt: skip
from jaxbio.engine.backends.pairs import half
from jaxbio.engine.program import BOOL, RUN, Memory, Value

FAR = 1 << 20  # bytes of a memory, for the runs of a vector, that the cache of a core cannot hold
ROWS_AHEAD = 8  # what is read in one round after the other is fetched so many rows before
LINE = 64  # bytes
AT_ONCE = 8  # runs whose entries in memory are looked up together


class Accesses:
    """Loads and stores of a part of a program; `llvm.Emitter` has its other values.

    b: writes instructions; found: what has been written, by value; is_rare: is this a branch that
    is hardly ever taken?
    """

    b: ir.IRBuilder
    module: ir.Module
    layout: Layout
    tables: Any
    numbers: Any
    state: Any
    scratch: Any
    found: ChainMap[Any, Any]
    is_rare: bool

    def get(self, value: Value) -> Any:
        """A value, as it was written."""
        raise NotImplementedError

    def vector(self, value: Value) -> Any:
        """The value for every run of the vector."""
        raise NotImplementedError

    def address(self, base: Any, offset: Any) -> Any:
        offset = ir.Constant(I64, offset) if isinstance(offset, int) else offset
        return self.b.gep(base, [offset], source_etype=BYTE)

    def read(self, address: Any, dtype: np.dtype, vector: bool) -> Any:
        kind = stored_type(dtype)
        kind = ir.VectorType(kind, WIDTH) if vector else kind
        loaded = self.b.load(address, align=64 if vector else WORD, typ=kind)
        return (
            self.b.trunc(loaded, vector_type(BOOL) if vector else I1) if dtype == BOOL else loaded
        )

    def write(self, address: Any, value: Any, dtype: np.dtype) -> None:
        if dtype == BOOL:
            wide = ir.VectorType(I32, WIDTH) if isinstance(value.type, ir.VectorType) else I32
            value = self.b.zext(value, wide)
        vector = isinstance(value.type, ir.VectorType)
        self.b.store(value, address, align=64 if vector else WORD)

    def base_of(self, memory: Memory) -> Any:
        if memory in self.tables:
            return self.tables[memory]
        if memory.role == "table":
            return self.address(self.numbers, self.layout.numbers[memory])
        if memory.role == "carry":
            return self.address(self.state, self.layout.state[memory])
        return self.address(self.scratch, self.layout.scratch[memory])

    def load(self, value: Value) -> Any:
        memory, (index,) = value.param, value.args
        base, row = self.base_of(memory), WORD * (WIDTH if memory.per_run else 1)
        if index.rate < RUN and memory in self.layout.pairs.memories:
            return self.one_of_pairs(memory, index)
        if index.rate < RUN:
            place = self.b.mul(self.b.sext(self.get(index), I64), ir.Constant(I64, row))
            place = self.address(base, place)
            self.fetch_ahead(memory, place, row)
            return self.read(place, memory.dtype, memory.per_run)
        if self.is_rare:
            return self.gathered(base, index, memory)
        kind = stored_type(memory.dtype)
        found = ir.Constant(ir.VectorType(kind, WIDTH), ir.Undefined)
        for run, place in self.places(index, memory):
            number = self.b.load(self.address(base, place), typ=kind)
            found = self.b.insert_element(found, number, ir.Constant(I32, run))
        return self.b.trunc(found, vector_type(BOOL)) if memory.dtype == BOOL else found

    def gathered(self, base: Any, index: Value, memory: Memory) -> Any:
        """The entries of all runs, looked up by a function: slower, and far less to compile."""
        offsets, beyond = self.offsets(index, memory)
        found = self.aside()
        self.b.call(_gather(self.module), [self.address(base, beyond), offsets, found])
        return self.read(found, memory.dtype, True)

    def fetch_ahead(self, memory: Memory, place: Any, row: int) -> None:
        """Let the processor fetch what a round to come will read, of a memory that is kept."""
        near = memory.size * WORD * WIDTH <= FAR or not memory.per_run
        if memory.role != "carry" or near:
            return
        how = [ir.Constant(I32, n) for n in (0, 3, 1)]  # to read it; into all caches; data
        name, kinds = "llvm.prefetch.p0", [POINTER, I32, I32, I32]
        known = self.module.globals.get(name)
        fetch = known or ir.Function(self.module, ir.FunctionType(VOID, kinds), name)
        for line in range(ROWS_AHEAD * row, (ROWS_AHEAD + 1) * row, LINE):
            self.b.call(fetch, [self.address(place, line), *how])

    def pair(self, memory: Memory, index: Value) -> Any:
        """The address of a pair of every run, which lie side by side."""
        first = self.b.sub(self.b.sext(self.get(index), I64), ir.Constant(I64, half(index)))
        place = self.b.mul(first, ir.Constant(I64, WORD * WIDTH))
        return self.address(self.base_of(memory), place)

    def one_of_pairs(self, memory: Memory, index: Value) -> Any:
        """One entry of a pair, of every run."""
        place, which = self.pair(memory, index), half(index)
        if which == 0:
            self.fetch_ahead(memory, place, 2 * WORD * WIDTH)
        kind = ir.VectorType(stored_type(memory.dtype), 2 * WIDTH)
        both, mine = self.b.load(place, align=64, typ=kind), range(which, 2 * WIDTH, 2)
        chosen = ir.Constant(ir.VectorType(I32, WIDTH), list(mine))
        found = self.b.shuffle_vector(both, ir.Constant(kind, ir.Undefined), chosen)
        return self.b.trunc(found, vector_type(BOOL)) if memory.dtype == BOOL else found

    def store_pair(self, first: Value, second: Value) -> None:
        """Both entries of a pair, of every run, at once."""
        memory, index = first.param, first.args[0]
        places = [place for run in range(WIDTH) for place in (run, run + WIDTH)]
        chosen = ir.Constant(ir.VectorType(I32, 2 * WIDTH), places)
        words, others = (self.as_stored(one.args[1], memory) for one in (first, second))
        both = self.b.shuffle_vector(words, others, chosen)
        base, apart = self.base_of(memory), self.aside(2)
        self.b.store(both, apart, align=64)
        self.barrier()
        for run, place in self.places(index, memory):
            one = self.b.load(self.address(apart, 2 * run * WORD), align=8, typ=I64)
            self.b.store(one, self.address(base, place), align=8)

    def as_stored(self, value: Value, memory: Memory) -> Any:
        vector = self.vector(value)
        return self.b.zext(vector, ir.VectorType(I32, WIDTH)) if memory.dtype == BOOL else vector

    def store(self, value: Value) -> None:
        memory, (index, new) = value.param, value.args
        if memory in self.layout.pairs.memories:
            if id(value) in self.layout.pairs.first:  # else it waits for the other half
                self.store_pair(self.layout.pairs.first[id(value)], value)
            return
        base, row = self.base_of(memory), WORD * (WIDTH if memory.per_run else 1)
        number = self.vector(new) if memory.per_run else self.get(new)
        if index.rate < RUN:
            place = self.b.mul(self.b.sext(self.get(index), I64), ir.Constant(I64, row))
            self.write(self.address(base, place), number, memory.dtype)
            return
        kind, apart = stored_type(memory.dtype), self.put_aside(number, memory.dtype)
        for run, place in self.places(index, memory):
            one = self.b.load(self.address(apart, run * WORD), typ=kind)
            self.b.store(one, self.address(base, place), align=WORD)

    def places(self, index: Value, memory: Memory) -> Iterator[tuple[int, Any]]:
        """Every run, and the byte offset of its entry."""
        offsets, beyond = self.offsets(index, memory)
        for run in range(WIDTH):
            if run % AT_ONCE == 0:
                self.barrier()  # else more offsets are read ahead than there are registers
            one = self.b.load(self.address(offsets, run * WORD), typ=I32)
            yield run, self.b.add(self.b.zext(one, I64), ir.Constant(I64, beyond))

    def offsets(self, index: Value, memory: Memory) -> tuple[Any, int]:
        """Where the byte offsets of all runs stand, and what is to be added to each."""
        row, beyond = WORD * (WIDTH if memory.per_run else 1), 0
        apart = WORD if memory.per_run else 0
        if memory in self.layout.pairs.memories:
            beyond, apart = half(index) * (WORD - row), 2 * WORD
        if index.op == "add" and index.args[1].op == "const" and id(index.args[0]) in self.found:
            # Neighbours share their offsets.
            index, beyond = index.args[0], beyond + int(index.args[1].param) * row
        key = ("places", id(index), row, apart)
        if key not in self.found:
            factor = ir.Constant(ir.VectorType(I32, WIDTH), row.bit_length() - 1)
            own = [apart * run for run in range(WIDTH)]
            offsets = self.b.shl(self.vector(index), factor)
            offsets = self.b.add(offsets, ir.Constant(ir.VectorType(I32, WIDTH), own))
            self.found[key] = self.put_aside(offsets, np.dtype(np.int32))
        return self.found[key], beyond

    def aside(self, vectors: int = 1) -> Any:
        """A place in memory for vectors, to go from all runs to each of them and back."""
        place = self.layout.scratch_bytes
        self.layout.scratch_bytes += vectors * WORD * WIDTH
        return self.address(self.scratch, place)

    def put_aside(self, vector: Any, dtype: np.dtype) -> Any:
        """Write a vector where its numbers can be read one by one: through memory, because taking
        them out of a register costs more. The barrier keeps LLVM from seeing through it.
        """
        place = self.aside()
        self.write(place, vector, dtype)
        self.barrier()
        return place

    def barrier(self) -> None:
        """LLVM moves no access to memory across it; it is no instruction."""
        nothing = ir.InlineAsm(ir.FunctionType(VOID, []), "", "~{memory}", side_effect=True)
        self.b.call(nothing, [])


def _gather(module: ir.Module) -> ir.Function:
    """gather(base, offsets, found): found[run] = the word at base + offsets[run], for all runs."""
    if "gather" in module.globals:
        return module.globals["gather"]
    function = ir.Function(module, ir.FunctionType(VOID, [POINTER] * 3), "gather")
    function.linkage = "internal"
    function.attributes.add("noinline")
    base, offsets, found = function.args
    entry, turn, end = (function.append_basic_block(name) for name in ("entry", "turn", "end"))
    b = ir.IRBuilder(entry)
    b.branch(turn)
    b.position_at_end(turn)
    place = b.phi(I64)
    offset = b.zext(b.load(b.gep(offsets, [place], source_etype=BYTE), typ=I32), I64)
    word = b.load(b.gep(base, [offset], source_etype=BYTE), typ=I32)
    b.store(word, b.gep(found, [place], source_etype=BYTE), align=WORD)
    following = b.add(place, ir.Constant(I64, WORD))
    place.add_incoming(ir.Constant(I64, 0), entry)
    place.add_incoming(following, turn)
    b.cbranch(b.icmp_unsigned("<", following, ir.Constant(I64, WORD * WIDTH)), turn, end)
    b.position_at_end(end)
    b.ret_void()
    return function
