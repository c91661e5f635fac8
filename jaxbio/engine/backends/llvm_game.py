"""CPU: the functions of a game as LLVM's text: its four parts, and the loops that call them."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from jaxbio.engine.backends.layout import I32, I64, POINTER, VOID, WIDTH, WORD, Layout, stored_type
from jaxbio.engine.backends.llvm import Emitter
from jaxbio.engine.game_program import GameProgram
from jaxbio.engine.program import RUN, Region, Switch, Value, inner_regions, live_values

ALIGNED = "alignstack(64)"
ROW = ir.Constant(I64, WORD * WIDTH)  # bytes of a number of every run of a vector


def module_of(program: GameProgram) -> tuple[str, Layout]:
    """LLVM's text of a program: a function for each part, and `play`, which calls them."""
    module, layout = ir.Module("jaxbio"), Layout(program)
    tables = {memory: table_of(module, i, data) for i, (memory, data) in enumerate(program.tables)}
    kinds = _kinds(program)

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

    def whole(name: str, kept: int, dtypes: Any = None) -> ir.Function:
        """A part whose first results are the scalars of the carry. dtypes: of the others, if there
        may be any; the function is told where they go, and how many bytes they are apart.
        """
        function, emitter = part(name, [] if dtypes is None else [POINTER, I64])
        emitter.region(program.parts[name])
        results = [emitter.vector(value) for value in program.parts[name].results]
        _write(emitter, emitter.state, ROW, results[:kept], kinds[:kept])
        if dtypes is not None:
            base, apart = function.args[4:]
            _write(emitter, base, apart, results[kept:], dtypes)
        emitter.b.ret_void()
        return function

    functions = {
        "begin": whole("begin", len(kinds)),
        "take": whole("take", len(kinds), program.outputs),
        "summary": whole("summary", 0, program.facts),
    }
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


def table_of(module: ir.Module, number: int, data: np.ndarray) -> ir.GlobalVariable:
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
    rates = program.carry.rates
    first, last = function.args[4:]
    row, region = WORD * WIDTH, program.parts["round"]
    start = [
        emitter.read(emitter.address(emitter.state, place * row), dtype, rate == RUN)
        for place, (dtype, rate) in enumerate(zip(_kinds(program), rates, strict=True))
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
    pairs = zip(phis, rates, strict=False)
    last_ones = [phi if rate == RUN else emitter.spread(phi) for phi, rate in pairs]
    _write(emitter, emitter.state, ROW, last_ones, _kinds(program))
    b.ret_void()


def _kinds(program: GameProgram) -> list[np.dtype]:
    """The types of the scalars of the carry."""
    return [dtype for _, _, dtype in program.carry.scalars]


def _write(emitter: Emitter, base: Any, apart: Any, values: list[Any], dtypes: Any) -> None:
    """Write vectors, so many bytes from one to the next."""
    for place, (value, dtype) in enumerate(zip(values, dtypes, strict=True)):
        offset = emitter.b.mul(apart, ir.Constant(I64, place))
        emitter.write(emitter.address(base, offset), value, dtype)


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
    numbers_of_vector = layout.number_bytes if program.per_run else 0
    rows = b.mul(b.sext(vectors, I64), ir.Constant(I64, row))  # bytes of one number of all runs
    stops_apart = b.mul(b.sext(count, I64), rows)

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
        mine = b.mul(wide, ir.Constant(I64, row))
        own = [
            moved(numbers, b.mul(wide, ir.Constant(I64, numbers_of_vector))),
            moved(keys, b.mul(wide, ir.Constant(I64, 2 * row))),
            moved(state, b.mul(wide, stride)),
            scratch,
        ]
        with b.if_then(b.icmp_signed("==", last, ir.Constant(I32, 0))):
            b.call(parts["begin"], own)
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
                there = moved(curves, b.mul(b.sext(i, I64), rows))
                b.call(parts["take"], [*own, there, stops_apart])

        counted(count, "stops", one_stop)
        b.call(parts["summary"], [*own, moved(facts, mine), rows])

    counted(vectors, "vectors", one_vector)
    b.ret_void()


def _size(b: Any, number: Any) -> Any:
    negative = b.icmp_signed("<", number, ir.Constant(I32, 0))
    return b.select(negative, b.neg(number), number)
