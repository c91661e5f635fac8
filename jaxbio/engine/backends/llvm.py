"""CPU: a program as machine code for vectors of runs, through LLVM (llvmlite).

Nothing is contracted and nothing reassociated, so the same program gives the same bits on every
CPU, whatever its vectors are. Numbers lie in memory with the runs of a vector side by side.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir

from jaxbio.engine.backends.layout import (
    F32,
    I32,
    WIDTH,
    WORD,
    Layout,
    scalar_type,
    vector_type,
)  # fmt: skip
from jaxbio.engine.backends.llvm_memory import Accesses
from jaxbio.engine.program import (
    BOOL,
    COMPARISONS,
    RUN,
    Loop,
    Region,
    Switch,
    Value,
)

LOOK_UPS = 8  # in memory, of every run its own: a branch with more of them is rarely taken
SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
BINARY = {  # integers, floats
    "add": ("add", "fadd"), "sub": ("sub", "fsub"), "mul": ("mul", "fmul"),
    "and": ("and_", None), "or": ("or_", None), "xor": ("xor", None),
    "shl": ("shl", None), "lshr": ("lshr", None), "ashr": ("ashr", None),
}  # fmt: skip
INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "abs": "fabs", "fma": "fma"}


class Emitter(Accesses):
    """Writes the values of a part into an LLVM function."""

    def __init__(self, module: ir.Module, function: ir.Function, layout: Layout, tables: Any):
        self.module, self.layout, self.tables = module, layout, tables
        self.b = ir.IRBuilder(function.append_basic_block("entry"))
        self.function = function
        self.numbers, self.keys, self.state, self.scratch = function.args[:4]
        self.found: ChainMap[Any, Any] = ChainMap()
        self.live: set[int] = set()
        self.constants: dict[int, Any] = {}
        self.is_rare = False  # in a branch that is hardly ever taken

    # --- values

    def get(self, value: Value) -> Any:
        if value.op == "const":
            return _constant(value)
        if value.op == "result":
            return self.found[id(value.args[0])][value.param]
        key = id(value)
        if key not in self.found:
            if value.op != "param":
                raise AssertionError(f"{value} is used before it is there")
            self.found[key] = self.outside(value)
        return self.found[key]

    def outside(self, value: Value) -> Any:
        """A number of the game, of the run's key, or of what is carried."""
        kind, place = value.param
        vector = value.rate == RUN
        if kind == "number":
            where = self.address(self.numbers, place * self.layout.number_row)
        elif kind == "key":
            where = self.address(self.keys, place * WORD * WIDTH)
        else:
            where = self.address(self.state, place * self.layout.state_row)
        return self.read(where, value.dtype, vector)

    def vector(self, value: Value) -> Any:
        """The value for every run of the vector."""
        if value.op == "const":
            if id(value) not in self.constants:
                self.constants[id(value)] = _constant(value, WIDTH)
            return self.constants[id(value)]
        if value.rate == RUN:
            return self.get(value)
        key = ("spread", id(value))
        if key not in self.found:
            self.found[key] = self.spread(self.get(value))
        return self.found[key]

    def spread(self, scalar: Any) -> Any:
        kind = ir.VectorType(scalar.type, WIDTH)
        nothing, zero = ir.Constant(kind, ir.Undefined), ir.Constant(I32, 0)
        first = self.b.insert_element(nothing, scalar, zero)
        return self.b.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(I32, WIDTH), None))

    def region(self, region: Region) -> None:
        self.values(region.values)

    def values(self, values: Iterable[Value]) -> None:
        for value in values:
            if id(value) not in self.live or value.op in ("const", "result", "param"):
                continue
            if value.op == "store":
                self.store(value)
            elif value.op == "loop":
                self.loop(value)
            elif value.op == "switch":
                self.switch(value)
            else:
                self.found[id(value)] = self.operation(value)

    def operation(self, value: Value) -> Any:
        if value.op == "load":
            return self.load(value)
        if value.op in ("most", "any"):
            return self.across(value)
        args = [self.vector(arg) if value.rate == RUN else self.get(arg) for arg in value.args]
        dtype = value.args[0].dtype if value.op in COMPARISONS else value.dtype
        return self.arithmetic(value.op, args, dtype, value)

    def arithmetic(self, op: str, args: list[Any], dtype: np.dtype, value: Value) -> Any:
        b, is_float, signed = self.b, dtype.kind == "f", dtype.kind == "i"
        if op in BINARY:
            return getattr(b, BINARY[op][is_float])(*args)
        if op in COMPARISONS:
            if is_float:
                compare = b.fcmp_unordered if op == "ne" else b.fcmp_ordered
                return compare(SIGNS[op], *args)
            return (b.icmp_signed if signed else b.icmp_unsigned)(SIGNS[op], *args)
        if op == "select":
            return b.select(*args)
        if op == "div":
            return (b.fdiv if is_float else b.sdiv if signed else b.udiv)(*args)
        if op == "rem":
            return (b.srem if signed else b.urem)(*args)
        if op == "neg":
            return b.fneg(args[0]) if is_float else b.neg(args[0])
        if op == "not":
            return b.not_(args[0])
        if op in ("lower", "upper"):
            return b.select(b.fcmp_ordered("<" if op == "lower" else ">", *args), *args)
        if op in ("max", "min"):
            return self.extreme(op, args, dtype, value)
        if op == "convert":
            return self.convert(args[0], value.args[0].dtype, dtype)
        if op == "bitcast":
            kind = scalar_type(dtype)
            kind = ir.VectorType(kind, WIDTH) if isinstance(args[0].type, ir.VectorType) else kind
            return args[0] if args[0].type == kind else b.bitcast(args[0], kind)
        return self.intrinsic(INTRINSICS[op], args)

    def extreme(self, op: str, args: list[Any], dtype: np.dtype, value: Value) -> Any:
        """NaN if either is; the form that is one instruction where one of them is known."""
        b, sign = self.b, ">" if op == "max" else "<"
        if dtype.kind != "f":
            compare = b.icmp_signed if dtype.kind == "i" else b.icmp_unsigned
            return b.select(compare(sign, *args), *args)
        x, y = args if value.args[0].op == "const" else args[::-1]
        found = b.select(b.fcmp_ordered(sign, x, y), x, y)
        if any(arg.op == "const" for arg in value.args):
            return found
        return b.select(b.fcmp_unordered("uno", x, x), x, found)

    def convert(self, x: Any, old: np.dtype, new: np.dtype) -> Any:
        b, vector = self.b, isinstance(x.type, ir.VectorType)
        kind = vector_type(new) if vector else scalar_type(new)
        if old.kind == "f":
            return (b.fptoui if new.kind == "u" else b.fptosi)(x, kind)
        if new.kind == "f":
            return (b.sitofp if old.kind == "i" else b.uitofp)(x, kind)
        return b.zext(x, kind) if old == BOOL else x

    def intrinsic(self, name: str, args: list[Any], out: Any = None) -> Any:
        out = out or args[0].type
        names = [_name(out)] if out == args[0].type else [_name(out), _name(args[0].type)]
        full = ".".join(["llvm", name, *names])
        return self.b.call(self.declared(full, out, [arg.type for arg in args]), args)

    def across(self, value: Value) -> Any:
        """The largest number of all runs, or whether any of them is true."""
        vector = self.vector(value.args[0])
        name = "or" if value.op == "any" else "smax"
        full = f"llvm.vector.reduce.{name}.{_name(vector.type)}"
        return self.b.call(self.declared(full, vector.type.element, [vector.type]), [vector])

    def declared(self, name: str, out: Any, args: list[Any]) -> Any:
        known = self.module.globals.get(name)
        return known or ir.Function(self.module, ir.FunctionType(out, args), name)

    # --- control

    def at_rate(self, value: Value, rate: int) -> Any:
        return self.vector(value) if rate == RUN else self.get(value)

    def loop(self, node: Value) -> None:
        loop: Loop = node.param
        initial = [self.at_rate(v, p.rate) for v, p in zip(loop.initial, loop.params, strict=True)]
        before = self.b.block
        head, body, after = (self.function.append_basic_block(n) for n in ("head", "body", "after"))
        self.b.branch(head)
        self.b.position_at_end(head)
        counter = self.b.phi(I32)
        counter.add_incoming(ir.Constant(I32, 0), before)
        phis = [self.b.phi(value.type) for value in initial]
        for phi, value in zip(phis, initial, strict=True):
            phi.add_incoming(value, before)
        outer, self.found = self.found, self.found.new_child()
        self.found.update({id(p): phi for p, phi in zip(loop.params, phis, strict=True)})
        if loop.counter is not None:
            self.found[id(loop.counter)] = counter
        if loop.test is None:
            goes_on = self.b.icmp_signed("<", counter, ir.Constant(I32, loop.length))
        else:
            self.region(loop.test)
            goes_on = self.get(loop.test.results[0])
        self.b.cbranch(goes_on, body, after)
        self.b.position_at_end(body)
        self.region(loop.body)
        new = [self.at_rate(v, p.rate) for v, p in zip(loop.body.results, loop.params, strict=True)]
        counter.add_incoming(self.b.add(counter, ir.Constant(I32, 1)), self.b.block)
        for phi, value in zip(phis, new, strict=True):
            phi.add_incoming(value, self.b.block)
        self.b.branch(head)
        self.b.position_at_end(after)
        self.found = outer
        self.found[id(node)] = phis

    def switch(self, node: Value) -> None:
        control: Switch = node.param
        after = self.function.append_basic_block("after")
        blocks = [self.function.append_basic_block("branch") for _ in control.branches]
        choice = self.b.switch(self.get(control.index), blocks[-1])
        rates = self.result_rates(node, control)
        arrivals = []
        for i, (block, region) in enumerate(zip(blocks, control.branches, strict=True)):
            if i < len(blocks) - 1:
                choice.add_case(ir.Constant(I32, i), block)
            self.b.position_at_end(block)
            outer, self.found = self.found, self.found.new_child()
            before, self.is_rare = self.is_rare, self.is_rare or _looks_up_much(region)
            self.region(region)
            self.is_rare = before
            values = [self.at_rate(v, r) for v, r in zip(region.results, rates, strict=True)]
            arrivals.append((self.b.block, values))
            self.b.branch(after)
            self.found = outer
        self.b.position_at_end(after)
        phis = []
        for i in range(len(rates)):
            phi = self.b.phi(arrivals[0][1][i].type)
            for block, values in arrivals:
                phi.add_incoming(values[i], block)
            phis.append(phi)
        self.found[id(node)] = phis

    @staticmethod
    def result_rates(node: Value, control: Switch) -> list[int]:
        return [
            max(1, *(value.rate for value in values))
            for values in zip(*(region.results for region in control.branches), strict=True)
        ]


def _looks_up_much(region: Region) -> bool:
    """So much that it is the branch for a round in which many losses arrive."""
    loads = [value for value in region.values if value.op == "load"]
    return sum(value.args[0].rate == RUN for value in loads) > LOOK_UPS


def _name(kind: Any) -> str:
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_name(kind.element)}"
    return "f32" if kind == F32 else f"i{kind.width}"


def _constant(value: Value, width: int | None = None) -> Any:
    number = value.param
    if value.dtype.kind == "f":
        plain: Any = float(number)
    else:
        plain = int(number) & 0xFFFFFFFF if value.dtype != BOOL else int(number)
    kind = scalar_type(value.dtype)
    return ir.Constant(kind if width is None else ir.VectorType(kind, width), plain)
