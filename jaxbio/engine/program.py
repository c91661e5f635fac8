"""The straight-line program: scalar operations on runs, in the order in which they are executed.

A value is one number of every run (RUN), one number that all runs share (SHARED), or known now
(CONSTANT). Small arrays have been taken apart into values; large ones are memories, with loads,
stores and loops over them. Equal operations are written down once, and what is known is computed
while the program is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CONSTANT, SHARED, RUN = range(3)  # rates: how many different numbers a value stands for

COMPARISONS = frozenset("eq ne lt le gt ge".split())
INT32 = np.dtype(np.int32)
BOOL = np.dtype(bool)


@dataclass(eq=False)
class Memory:
    """A large array. size: its entries; per_run: of every run, else shared by all runs.

    role: "carry" (kept between rounds), "table" (numbers of the game, only read) or "scratch".
    leaf: which leaf of the carry, or of the numbers, it is.
    """

    size: int
    dtype: np.dtype
    role: str
    per_run: bool = True
    leaf: int = -1


class Value:
    """A number. op: the operation that makes it of `args`; param: what else the operation needs;
    rate: CONSTANT, SHARED or RUN.
    """

    __slots__ = ("args", "dtype", "op", "param", "rate")

    def __init__(self, op: str, args: tuple[Any, ...], dtype: Any, rate: int, param: Any = None):
        self.op, self.args, self.dtype, self.rate, self.param = op, args, dtype, rate, param

    def __repr__(self) -> str:
        return f"{self.op}:{self.dtype}" if self.op != "const" else f"{self.param!r}"


@dataclass(eq=False)
class Region:
    """Values in the order of execution; results: those of them that are used outside."""

    values: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)


@dataclass(eq=False)
class Loop:
    """A loop. params: what is carried, from `initial` on; body: its results are the next params.

    length: how often, with `counter` from 0 on; where it is None, `test` (a region with one shared
    boolean) is asked before each turn.
    """

    length: int | None
    counter: Value | None
    params: list[Value]
    initial: list[Value]
    test: Region | None
    body: Region


@dataclass(eq=False)
class Switch:
    """One of the branches, chosen by a shared index within their number."""

    index: Value
    branches: list[Region]


def _divided(a: Any, b: Any) -> Any:
    if np.issubdtype(a.dtype, np.floating):
        return a / b
    quotient = abs(int(a)) // abs(int(b))  # towards zero; a zero is refused by whoever folds
    return a.dtype.type(quotient if (a < 0) == (b < 0) else -quotient)


def _shifted(function: Any) -> Any:
    return lambda a, b: function(a, b) if 0 <= b < 8 * a.dtype.itemsize else _refuse()


def _refuse() -> Any:
    raise ArithmeticError


def _converted(x: Any, dtype: Any) -> Any:
    if np.issubdtype(x.dtype, np.floating) and np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        whole = 0 if np.isnan(x) else min(max(float(x), float(info.min)), float(info.max))
        return dtype.type(min(max(int(whole), info.min), info.max))
    return x.astype(dtype)


FOLDED: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divided,
    "neg": lambda a: a.dtype.type(0) - a if a.dtype.kind in "iu" else -a,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
    "lower": lambda a, b: a if a < b else b,
    "upper": lambda a, b: a if a > b else b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "shl": _shifted(lambda a, b: a << b),
    "lshr": _shifted(lambda a, b: (a.view(f"u{a.dtype.itemsize}") >> b).view(a.dtype)),
    "ashr": _shifted(lambda a, b: (a.view(f"i{a.dtype.itemsize}") >> b).view(a.dtype)),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "select": lambda c, a, b: a if c else b,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "most": lambda a: a,
    "any": lambda a: a,
}


class Builder:
    """Writes a program down, value by value, into the innermost region.

    per_run: is it a program of many runs? In one of a single run every number is SHARED.
    """

    def __init__(self, per_run: bool = True) -> None:
        self.per_run = per_run
        self.regions = [Region()]
        self.known: list[dict[Any, Any]] = [{}]
        self.scratch: list[Memory] = []
        self.writes = 0  # loads before and after a write are not the same

    # --- values

    def constant(self, number: Any, dtype: Any) -> Value:
        dtype = np.dtype(dtype)
        number = np.asarray(number).astype(dtype)[()]
        return self._once(("const", dtype, number.tobytes()), "const", (), dtype, CONSTANT, number)

    def param(self, dtype: Any, rate: int, param: Any = None) -> Value:
        """A value that comes from outside."""
        return Value("param", (), np.dtype(dtype), rate, param)

    def emit(self, op: str, *args: Value, dtype: Any = None) -> Value:
        """The value of an operation. dtype: of a conversion; else the operands decide."""
        simple = self._simplified(op, args, dtype)
        if simple is not None:
            return simple
        if dtype is None:
            dtype = BOOL if op in COMPARISONS or op == "any" else args[-1].dtype
        rate = max(arg.rate for arg in args)
        rate = min(rate, SHARED) if op in ("most", "any") else rate
        key = (op, np.dtype(dtype), *map(id, args))
        return self._once(key, op, args, np.dtype(dtype), rate)

    def load(self, memory: Memory, index: Value) -> Value:
        """memory[index], of every run its own where the memory or the index are per run."""
        version = -1 if memory.role == "table" else self.writes
        rate = RUN if memory.per_run else max(SHARED, index.rate)
        return self._once(
            ("load", id(memory), id(index), version), "load", (index,), memory.dtype, rate, memory
        )

    def store(self, memory: Memory, index: Value, value: Value) -> None:
        """memory[index] = value."""
        self.writes += 1
        self.regions[-1].values.append(
            Value("store", (index, value), memory.dtype, RUN if memory.per_run else SHARED, memory)
        )

    def new_memory(self, size: int, dtype: Any) -> Memory:
        """Scratch of every run; what it holds at first is not known."""
        memory = Memory(size, np.dtype(dtype), "scratch", self.per_run, len(self.scratch))
        self.scratch.append(memory)
        return memory

    # --- control

    def loop(
        self, length: int, initial: Sequence[Value], body: Callable[[Value, list[Value]], Any]
    ) -> list[Value]:
        """So many turns of body(counter, params) -> next params."""
        counter = self.param(INT32, SHARED)
        rates = [max(SHARED, value.rate) for value in initial]
        while True:
            params = [self.param(v.dtype, rate) for v, rate in zip(initial, rates, strict=True)]
            region = self.region(lambda params=params: body(counter, params))
            if not self._raised(rates, region.results):
                return self._add(Loop(length, counter, params, list(initial), None, region), params)

    def repeat(
        self,
        initial: Sequence[Value],
        test: Callable[[list[Value]], Value],
        body: Callable[[list[Value]], Any],
    ) -> list[Value]:
        """body(params) -> next params while test(params), a boolean that is shared."""
        rates = [max(SHARED, value.rate) for value in initial]
        while True:
            params = [self.param(v.dtype, rate) for v, rate in zip(initial, rates, strict=True)]
            asked = self.region(lambda params=params: [test(params)])
            region = self.region(lambda params=params: body(params))
            if not self._raised(rates, region.results):
                return self._add(Loop(None, None, params, list(initial), asked, region), params)

    def switch(self, index: Value, branches: Sequence[Callable[[], Any]]) -> list[Value]:
        """The results of one branch, chosen by a shared index within their number."""
        if index.op == "const":
            return list(branches[int(index.param)]())
        regions = [self.region(branch) for branch in branches]
        rates = [
            max(SHARED, *(value.rate for value in values))
            for values in zip(*(region.results for region in regions), strict=True)
        ]
        like = [
            Value("param", (), value.dtype, rate)
            for value, rate in zip(regions[0].results, rates, strict=True)
        ]
        return self._add(Switch(index, regions), like)

    def region(self, function: Callable[[], Any]) -> Region:
        self.regions.append(Region())
        self.known.append({})
        self.writes += 1
        self.regions[-1].results = list(function())
        self.known.pop()
        self.writes += 1
        return self.regions.pop()

    @staticmethod
    def _raised(rates: list[int], results: list[Value]) -> bool:
        """Is the rate of a result higher than that of the param that it becomes? Then the param
        gets it.
        """
        new = [max(rate, value.rate) for rate, value in zip(rates, results, strict=True)]
        changed, rates[:] = new != rates, new
        return changed

    def _add(self, control: Loop | Switch, like: Sequence[Value]) -> list[Value]:
        node = Value(type(control).__name__.lower(), (), None, RUN, control)
        self.regions[-1].values.append(node)
        results = [Value("result", (node,), v.dtype, v.rate, i) for i, v in enumerate(like)]
        self.regions[-1].values.extend(results)
        return results

    # --- what is known

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made under this key, in this region or around it; else it is made now."""
        for known in reversed(self.known):
            if key in known:
                return known[key]
        found = self.known[-1][key] = make()
        return found

    def _once(
        self, key: Any, op: str, args: Any, dtype: Any, rate: int, param: Any = None
    ) -> Value:
        for known in reversed(self.known):
            if key in known:
                return known[key]
        value = self.known[-1][key] = Value(op, args, dtype, rate, param)
        self.regions[-1].values.append(value)
        return value

    def _simplified(self, op: str, args: tuple[Value, ...], dtype: Any) -> Value | None:
        """A value that is there already, or known now; None where an operation is needed."""
        if op in ("convert", "bitcast") and args[0].dtype == dtype:
            return args[0]
        if all(arg.op == "const" for arg in args):
            return self._folded(op, [arg.param for arg in args], dtype)
        if op == "select":
            chosen, yes, no = args
            if yes is no:
                return yes
            if chosen.op == "const":
                return yes if chosen.param else no
        if op in ("and", "or") and args[0] is args[1]:
            return args[0]
        if op in ("most", "any") and args[0].rate <= SHARED:
            return args[0]
        return _identity(op, args) if len(args) == 2 else None

    def _folded(self, op: str, numbers: list[Any], dtype: Any) -> Value | None:
        try:
            with np.errstate(all="ignore"):
                if op == "convert":
                    return self.constant(_converted(numbers[0], np.dtype(dtype)), dtype)
                if op == "bitcast":
                    return self.constant(np.asarray(numbers[0]).view(dtype)[()], dtype)
                if op not in FOLDED:
                    return None
                found = FOLDED[op](*numbers)
        except (ArithmeticError, ValueError):
            return None
        return self.constant(found, BOOL if op in COMPARISONS else found.dtype)


def _identity(op: str, args: tuple[Value, ...]) -> Value | None:
    """x + 0, x * 1 and the like, where they are exact whatever x is."""
    for x, other in (args, args[::-1]):
        if other.op != "const":
            continue
        number, second = other.param, other is args[1]
        kind = other.dtype.kind
        if kind == "b":
            if (op, bool(number)) in (("and", True), ("or", False), ("xor", False)):
                return x
            if (op, bool(number)) in (("and", False), ("or", True)):
                return other
        elif kind in "iu":
            if number == 0 and (op in ("add", "or", "xor") or (second and op in SHIFTS)):
                return x
            if number == 0 and op in ("mul", "and"):
                return other
            if number == 1 and (op == "mul" or (second and op == "div")):
                return x
        elif number == 1 and (op == "mul" or (second and op == "div")):
            return x
        elif number != number and op in ("max", "min"):
            return other
    return None


SHIFTS = ("sub", "shl", "lshr", "ashr")  # by nothing


def live_values(region: Region) -> set[int]:
    """The ids of values that a region needs for its results and its effects."""
    needed: set[int] = set()

    def need(value: Value) -> None:
        stack = [value]
        while stack:
            one = stack.pop()
            if id(one) not in needed:
                needed.add(id(one))
                stack.extend(one.args)

    def walk(region: Region) -> None:
        for value in region.results:
            need(value)
        for value in reversed(region.values):
            if value.op == "store":
                need(value)
            elif value.op in ("loop", "switch") and (id(value) in needed or _writes(value)):
                needed.add(id(value))
                control = value.param
                for one in getattr(control, "initial", []):
                    need(one)
                if isinstance(control, Switch):
                    need(control.index)
                for inner in inner_regions(control):
                    walk(inner)

    walk(region)
    return needed


def inner_regions(control: Loop | Switch) -> list[Region]:
    if isinstance(control, Switch):
        return control.branches
    return [region for region in (control.test, control.body) if region is not None]


def _writes(value: Value) -> bool:
    """Does a loop or switch change memory?"""
    return any(
        one.op == "store" or (one.op in ("loop", "switch") and _writes(one))
        for region in inner_regions(value.param)
        for one in region.values
    )
