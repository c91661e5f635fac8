"""CPU: a function of one run as LLVM's text: scalars, where a game has vectors of runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from jaxbio.engine.backends.layout import POINTER, VOID, WORD, Layout
from jaxbio.engine.backends.llvm import Emitter
from jaxbio.engine.backends.llvm_game import table_of
from jaxbio.engine.game_program import GameProgram
from jaxbio.engine.program import Value, live_values
from jaxbio.engine.single import CALL


def single_module(program: GameProgram) -> tuple[str, Layout]:
    """LLVM's text of call(numbers, state, outputs, scratch), and where its numbers lie."""
    module, layout = ir.Module("jaxbio"), Layout(program, width=1)
    tables = {memory: table_of(module, i, data) for i, (memory, data) in enumerate(program.tables)}
    function = ir.Function(module, ir.FunctionType(VOID, [POINTER] * 4), CALL)
    for arg in function.args:
        arg.add_attribute("noalias")
    emitter, region = Emitter(module, function, layout, tables), program.parts[CALL]
    numbers, state, outputs, scratch = function.args
    emitter.numbers, emitter.state, emitter.scratch = numbers, state, scratch
    emitter.live = live_values(region)
    emitter.region(region)
    kept = [dtype for _, _, dtype in program.carry.scalars]
    scalars, others = region.results[: len(kept)], region.results[len(kept) :]
    changed = [value for i, value in enumerate(scalars) if not _stays(value, i)]
    found = {id(value): emitter.get(value) for value in (*changed, *others)}
    _write(emitter, state, scalars, kept, found)
    _write(emitter, outputs, others, program.outputs, found)
    emitter.b.ret_void()
    return str(module), layout


def _stays(value: Value, place: int) -> bool:
    """Is it what is kept at this place already?"""
    return value.op == "param" and value.param == ("carry", place)


def _write(
    emitter: Emitter, base: Any, values: list[Value], dtypes: list[np.dtype], found: Any
) -> None:
    """Write those of the values that are found, each at its place."""
    for place, (value, dtype) in enumerate(zip(values, dtypes, strict=True)):
        if id(value) in found:
            emitter.write(emitter.address(base, place * WORD), found[id(value)], dtype)
