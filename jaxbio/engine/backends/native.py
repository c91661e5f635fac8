"""CPU: the functions of a game as machine code: compiled once, kept on disk, called by ctypes."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import jax
import numpy as np
from llvmlite import ir

from jaxbio.engine.arrays import is_small
from jaxbio.engine.backends.llvm import (
    I32,
    I64,
    POINTER,
    VOID,
    WIDTH,
    WORD,
    Emitter,
    Layout,
    stored_type,
)
from jaxbio.engine.backends.machine_code import HERE, Target, loaded
from jaxbio.engine.game_program import GameProgram
from jaxbio.engine.program import BOOL, RUN, Region, Switch, Value, inner_regions, live_values

ALIGNED = "alignstack(64)"


def module_of(program: GameProgram) -> tuple[str, Layout]:
    """LLVM's text of a program: a function for each part, and `play`, which calls them."""
    module, layout = ir.Module("jaxbio"), Layout(program)
    tables = {memory: _table(module, i, data) for i, (memory, data) in enumerate(program.tables)}
    carried = program.carry.scalars

    def part(name: str, extra: list[Any]) -> tuple[ir.Function, Emitter]:
        kind = ir.FunctionType(VOID, [POINTER, POINTER, POINTER, POINTER, *extra])
        function = ir.Function(module, kind, name)
        function.linkage = "internal"
        _aligned_stack(function)
        for arg in function.args:
            if isinstance(arg.type, ir.PointerType):
                arg.add_attribute("noalias")
        emitter = Emitter(module, function, layout, tables)
        emitter.live = live_values(program.parts[name])
        return function, emitter

    def keep(emitter: Emitter, values: Any) -> None:
        """Write the scalars of the carry."""
        for place, (value, (_, _, dtype)) in enumerate(zip(values, carried, strict=True)):
            where = emitter.address(emitter.state, place * WORD * WIDTH)
            emitter.write(where, emitter.vector(value), dtype)

    def put_out(emitter: Emitter, values: Any, dtypes: Any, base: Any) -> None:
        for place, (value, dtype) in enumerate(zip(values, dtypes, strict=True)):
            where = emitter.address(base, place * WORD * WIDTH)
            emitter.write(where, emitter.vector(value), dtype)

    functions = {}
    functions["begin"], emitter = part("begin", [])
    emitter.region(program.parts["begin"])
    keep(emitter, program.parts["begin"].results)
    emitter.b.ret_void()

    functions["take"], emitter = part("take", [POINTER])
    emitter.region(program.parts["take"])
    results = program.parts["take"].results
    put_out(emitter, results[len(carried) :], program.outputs, emitter.function.args[4])
    keep(emitter, results[: len(carried)])
    emitter.b.ret_void()

    functions["summary"], emitter = part("summary", [POINTER])
    emitter.region(program.parts["summary"])
    results = program.parts["summary"].results
    put_out(emitter, results, program.facts, emitter.function.args[4])
    emitter.b.ret_void()

    functions["round"], emitter = part("round", [I32, I32])
    _rounds(program, emitter)
    _play(module, program, layout, functions)
    return str(module).replace(ALIGNED, f'{ALIGNED} "stackrealign"'), layout


def _aligned_stack(function: ir.Function) -> None:
    """Let the stack begin at a multiple of 64 bytes: else vectors that are kept there for a while
    lie across two lines of the cache.
    """
    function.attributes.add("nounwind")  # alone, the other one is not written
    function.attributes.alignstack = 64


def _table(module: ir.Module, number: int, data: np.ndarray) -> ir.GlobalVariable:
    """A large constant of the code."""
    words = data.reshape(-1)
    words = words.astype(np.int32) if data.dtype == bool else words
    kind = ir.ArrayType(stored_type(data.dtype), words.size)
    table: Any = ir.GlobalVariable(module, kind, f"table{number}")
    table.linkage, table.global_constant = "internal", True
    plain = words.astype(float) if data.dtype.kind == "f" else words.view(np.uint32)
    table.initializer = ir.Constant(kind, plain.tolist())
    return table


def _rounds(program: GameProgram, emitter: Emitter) -> None:
    """Rounds first to last, with the scalars of the carry in registers.

    What a round draws depends on its number and the run's key alone. It is computed a round ahead,
    in between the operations of the round before: a processor that waits for one does the other.
    """
    b, function = emitter.b, emitter.function
    carried, rates = program.carry.scalars, program.carry.rates
    first, last = function.args[4:]
    row, region = WORD * WIDTH, program.parts["round"]
    start = [
        emitter.read(emitter.address(emitter.state, place * row), dtype, rate == RUN)
        for place, ((_, _, dtype), rate) in enumerate(zip(carried, rates, strict=True))
    ]
    params = _params(program)
    for value in params["number"] + params["key"]:
        emitter.get(value)
    drawn, handed = _ahead(region, emitter.live)
    ahead = [value for value in region.values if id(value) in drawn]

    def draw(t: Any, values: Any) -> list[Any]:
        outer, emitter.found = emitter.found, emitter.found.new_child()
        for value in params["round"]:
            emitter.found[id(value)] = t
        emitter.values(values)
        found = [emitter.get(value) for value in handed]
        emitter.found = outer
        return found

    drawn_first = draw(first, ahead)
    entry = b.block
    head, body, after = (function.append_basic_block(n) for n in ("rounds", "round", "end"))
    b.branch(head)
    b.position_at_end(head)
    t = b.phi(I32)
    t.add_incoming(first, entry)
    phis = [b.phi(value.type) for value in (*start, *drawn_first)]
    for phi, value in zip(phis, (*start, *drawn_first), strict=True):
        phi.add_incoming(value, entry)
    b.cbranch(b.icmp_signed("<=", t, last), body, after)
    b.position_at_end(body)
    emitter.found = emitter.found.new_child()
    for value in params["round"]:
        emitter.found[id(value)] = t
    for value in params["carry"]:
        emitter.found[id(value)] = phis[value.param[1]]
    for value, phi in zip(handed, phis[len(start) :], strict=True):
        emitter.found[id(value)] = phi
    own = [value for value in region.values if id(value) not in drawn]
    following = b.add(t, ir.Constant(I32, 1))
    outer = emitter.found
    next_found = emitter.found.parents.new_child()
    for value in params["round"]:
        next_found[id(value)] = following
    done = 0
    total = max(1, len(own))
    for number, value in enumerate(own, 1):
        emitter.values([value])
        upto = number * len(ahead) // total
        if upto > done:
            emitter.found = next_found
            emitter.values(ahead[done:upto])
            emitter.found = outer
            done = upto
    pairs = zip(region.results, rates, strict=True)
    results = [emitter.at_rate(value, rate) for value, rate in pairs]
    emitter.found = next_found
    emitter.values(ahead[done:])  # all of it, where nothing else is done
    results += [emitter.get(value) for value in handed]
    t.add_incoming(following, b.block)
    for phi, value in zip(phis, results, strict=True):
        phi.add_incoming(value, b.block)
    b.branch(head)
    b.position_at_end(after)
    for place, (phi, (_, _, dtype)) in enumerate(zip(phis, carried, strict=False)):
        phi = phi if rates[place] == RUN else emitter.spread(phi)
        emitter.write(emitter.address(emitter.state, place * row), phi, dtype)
    b.ret_void()


def _ahead(region: Region, live: set[int]) -> tuple[set[int], list[Value]]:
    """The values of every run that depend on nothing but the round, the key and the numbers of the
    game, and those of them that others look at.
    """
    drawn: set[int] = set()

    def known(value: Value) -> bool:
        if value.op == "param":
            return value.param is not None and value.param[0] != "carry"
        return value.op == "const" or id(value) in drawn

    for value in region.values:
        pure = value.op not in ("load", "store", "loop", "switch", "result", "const", "most", "any")
        if id(value) in live and pure and all(known(arg) for arg in value.args):
            drawn.add(id(value))
    handed: dict[int, Value] = {}

    def look(region: Region) -> None:
        for value in region.values:
            if id(value) in drawn or id(value) not in live:
                continue
            control = value.param if value.op in ("loop", "switch") else None
            more = [*getattr(control, "initial", [])]
            more += [control.index] if isinstance(control, Switch) else []
            for arg in (*value.args, *more):
                if id(arg) in drawn:
                    handed[id(arg)] = arg
            if control is not None:
                for inner in inner_regions(control):
                    look(inner)
        for value in region.results:
            if id(value) in drawn:
                handed[id(value)] = value

    look(region)
    return drawn, list(handed.values())


def _params(program: GameProgram) -> dict[str, list[Any]]:
    """The values from outside that the round looks at, by kind."""
    found: dict[str, dict[int, Any]] = {kind: {} for kind in ("number", "key", "round", "carry")}

    live = live_values(program.parts["round"])

    def walk(region: Any) -> None:
        for value in (*region.values, *region.results):
            if id(value) in live:
                for one in (value, *value.args):
                    if one.op == "param" and one.param is not None:
                        found[one.param[0]][id(one)] = one
                if value.op in ("loop", "switch"):
                    for one in getattr(value.param, "initial", []):
                        if one.op == "param" and one.param is not None:
                            found[one.param[0]][id(one)] = one
                    for inner in inner_regions(value.param):
                        walk(inner)

    walk(program.parts["round"])
    return {kind: list(values.values()) for kind, values in found.items()}


def _play(module: Any, program: GameProgram, layout: Layout, parts: dict[str, Any]) -> None:
    """play(numbers, keys, state, scratch, curve, facts, stops, last, count, vectors,
    state_stride): for each of so many vectors, from round `last` on, all stops.

    A negative stop is a pause: nothing is taken out there. What begins at round 0 is begun.
    """
    kind = ir.FunctionType(VOID, [POINTER] * 7 + [I32, I32, I32, I64])
    function = ir.Function(module, kind, "play")
    _aligned_stack(function)
    numbers, keys, state, scratch, curve, facts, stops, last, count, vectors, stride = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    row = WORD * WIDTH
    strides = {
        "numbers": layout.number_bytes if program.per_run else 0,
        "keys": 2 * row,
        "facts": len(program.facts) * row,
    }

    def moved(base: Any, by: Any) -> Any:
        return b.gep(base, [by], source_etype=ir.IntType(8))

    def counted(limit: Any, name: str, body: Any) -> None:
        before = b.block
        head, inside, after = (function.append_basic_block(f"{name}{n}") for n in range(3))
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(I32)
        i.add_incoming(ir.Constant(I32, 0), before)
        b.cbranch(b.icmp_signed("<", i, limit), inside, after)
        b.position_at_end(inside)
        body(i)
        i.add_incoming(b.add(i, ir.Constant(I32, 1)), b.block)
        b.branch(head)
        b.position_at_end(after)

    def one_vector(v: Any) -> None:
        wide = b.sext(v, I64)
        own = [
            moved(numbers, b.mul(wide, ir.Constant(I64, strides["numbers"]))),
            moved(keys, b.mul(wide, ir.Constant(I64, strides["keys"]))),
            moved(state, b.mul(wide, stride)),
            scratch,
        ]
        with b.if_then(b.icmp_signed("==", last, ir.Constant(I32, 0))):
            b.call(parts["begin"], own)
        outputs = len(program.outputs) * row
        mine = b.mul(b.mul(wide, b.sext(count, I64)), ir.Constant(I64, outputs))
        curves = moved(curve, mine)

        def one_stop(i: Any) -> None:
            spot = b.mul(b.sext(i, I64), ir.Constant(I64, WORD))
            stop = b.load(moved(stops, spot), typ=I32)
            earlier = b.sub(spot, ir.Constant(I64, WORD))
            is_first = b.icmp_signed("==", i, ir.Constant(I32, 0))
            before = b.load(moved(stops, b.select(is_first, spot, earlier)), typ=I32)
            begun = b.select(is_first, last, _size(b, before))
            first = b.add(begun, ir.Constant(I32, 1))
            b.call(parts["round"], [*own, first, _size(b, stop)])
            with b.if_then(b.icmp_signed(">", stop, ir.Constant(I32, 0))):
                there = b.mul(b.sext(i, I64), ir.Constant(I64, outputs))
                b.call(parts["take"], [*own, moved(curves, there)])

        counted(count, "stops", one_stop)
        fact = moved(facts, b.mul(wide, ir.Constant(I64, strides["facts"])))
        b.call(parts["summary"], [*own, fact])

    counted(vectors, "vectors", one_vector)
    b.ret_void()


def _size(b: Any, number: Any) -> Any:
    negative = b.icmp_signed("<", number, ir.Constant(I32, 0))
    return b.select(negative, b.neg(number), number)


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
        stride = self.layout.state_bytes
        if state is None:
            state, stride = aligned(stride), 0
        scratch = aligned(max(64, self.layout.scratch_bytes))
        stops = np.ascontiguousarray(stops, np.int32)
        curve = aligned((vectors, len(stops), len(program.outputs), WIDTH), np.uint32)
        facts = aligned((vectors, len(program.facts), WIDTH), np.uint32)
        pointers = [x.ctypes.data for x in (packed, lanes, state, scratch, curve, facts, stops)]
        self._play(*pointers, last, len(stops), vectors, stride)
        outputs = [
            _typed(curve[:, :, i].transpose(1, 0, 2).reshape(len(stops), -1)[:, :runs], dtype)
            for i, dtype in enumerate(program.outputs)
        ]
        found = [
            _typed(facts[:, i].reshape(-1)[:runs], dtype) for i, dtype in enumerate(program.facts)
        ]
        return (state if stride else None), outputs, found

    def _packed(self, numbers: list[np.ndarray], vectors: int) -> np.ndarray:
        """The numbers of the game as the code expects them: uint32 words."""
        given, layout = self.program.numbers, self.layout
        count = vectors if self.program.per_run else 1
        packed = aligned((count, layout.number_bytes // WORD), np.uint32)
        rows = [_words(leaf, dtype) for leaf, dtype in zip(numbers, given.dtypes, strict=True)]
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


def _words(leaf: Any, dtype: np.dtype) -> np.ndarray:
    array = np.ascontiguousarray(leaf, dtype)
    return array.astype(np.uint32) if dtype == BOOL else array.view(np.uint32)


def _typed(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return words.astype(bool) if dtype == BOOL else np.ascontiguousarray(words).view(dtype)


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
