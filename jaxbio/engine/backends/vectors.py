"""The evaluator that back-ends in JAX share: a region of a program, value by value, on arrays.

A number of every run is a vector [runs], a number that all runs share is a scalar. Where memories
lie, and how they are read and written, each back-end says itself (`Memories`).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio.engine.program import (
    RUN,
    SHARED,
    Loop,
    Memory,
    Region,
    Switch,
    Value,
    inner_regions,
    live_values,
)

Array = Any  # of JAX

OPERATIONS: dict[str, Callable[..., Array]] = {
    "add": lax.add,
    "sub": lax.sub,
    "mul": lax.mul,
    "div": lax.div,
    "rem": lax.rem,
    "neg": lax.neg,
    "abs": lax.abs,
    "min": lax.min,
    "max": lax.max,
    "lower": lambda x, y: lax.select(lax.lt(x, y), x, y),
    "upper": lambda x, y: lax.select(lax.gt(x, y), x, y),
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "not": lax.bitwise_not,
    "shl": lax.shift_left,
    "lshr": lax.shift_right_logical,
    "ashr": lax.shift_right_arithmetic,
    "eq": lax.eq,
    "ne": lax.ne,
    "lt": lax.lt,
    "le": lax.le,
    "gt": lax.gt,
    "ge": lax.ge,
    "select": lax.select,
    "fma": lambda x, y, z: lax.add(lax.mul(x, y), z),
    "sqrt": lax.sqrt,
    "floor": lax.floor,
    "ceil": lax.ceil,
}


class Memories(Protocol):
    """Where the memories of a program lie.

    An array that is a value of JAX cannot be changed in place, so loops and choices carry those
    that they write: `taken` gives them away, `given` takes what became of them. Memories that are
    changed by effects have nothing to carry.
    """

    def load(self, memory: Memory, index: Array) -> Array:
        """memory[index]. index: int32 [], or [runs]."""
        ...

    def store(self, memory: Memory, index: Array, value: Array) -> None:
        """memory[index] = value. index: int32 [], or [runs]; value: [runs]."""
        ...

    def taken(self, written: Sequence[Memory]) -> list[Array]: ...

    def given(self, written: Sequence[Memory], arrays: list[Array]) -> None: ...


def while_first(turn: Callable[[Any], Any], start: Any) -> Any:
    """turn(carry) -> carry, again and again while the first entry of the carry is true."""
    return lax.while_loop(lambda carry: carry[0], turn, start)


class Evaluator:
    """Evaluates a part of a program, for so many runs.

    outside: (kind, place) -> the array of a number that comes from outside; operations: by name,
    those of OPERATIONS unless a back-end has others; merging: does the compiler turn (x + a) + b
    into x + (a + b), and products likewise? XLA does, and would undo the sums by which exp rounds,
    so it is kept from it; repeat: plays a loop of unknown length, as `while_first` does.
    """

    def __init__(
        self,
        runs: int,
        memories: Memories,
        outside: Callable[[str, int], Array],
        operations: dict[str, Callable[..., Array]] = OPERATIONS,
        merging: bool = True,
        repeat: Callable[[Callable[[Any], Any], Any], Any] = while_first,
    ) -> None:
        self.runs, self.memories, self.outside = runs, memories, outside
        self.operations, self.merging, self.repeat = operations, merging, repeat
        self.found: ChainMap[Any, Any] = ChainMap()
        self.live: set[int] = set()

    def part(self, region: Region) -> list[Array]:
        """The results of a whole part: [runs] each."""
        self.live = live_values(region)
        self.region(region)
        return [self.vector(value) for value in region.results]

    # --- values

    def get(self, value: Value) -> Array:
        """A scalar, or a vector where every run has its own number."""
        if value.op == "const":
            return jnp.asarray(value.param)
        if value.op == "result":
            return self.found[id(value.args[0])][value.param]
        if id(value) not in self.found:
            assert value.op == "param", f"{value} is used before it is there"
            self.found[id(value)] = self.outside(*value.param)
        return self.found[id(value)]

    def vector(self, value: Value) -> Array:
        """[runs], whoever shares it."""
        if value.rate == RUN:
            return self.get(value)
        if value.op == "const":
            return lax.full((self.runs,), value.param, value.dtype)
        key = ("spread", id(value))
        if key not in self.found:
            self.found[key] = lax.broadcast(self.get(value), (self.runs,))
        return self.found[key]

    def at_rate(self, value: Value, rate: int) -> Array:
        return self.vector(value) if rate == RUN else self.get(value)

    def region(self, region: Region) -> None:
        for value in region.values:
            if id(value) not in self.live or value.op in ("const", "result", "param"):
                continue
            if value.op == "store":
                index, new = value.args
                self.memories.store(value.param, self.get(index), self.vector(new))
            elif value.op == "loop":
                self.found[id(value)] = self.loop(value.param)
            elif value.op == "switch":
                self.found[id(value)] = self.switch(value.param)
            else:
                self.found[id(value)] = self.operation(value)

    def operation(self, value: Value) -> Array:
        if value.op == "load":
            return self.memories.load(value.param, self.get(value.args[0]))
        args = [self.at_rate(arg, value.rate) for arg in value.args]
        if value.op == "most":
            return lax.reduce_max(self.vector(value.args[0]), (0,))
        if value.op == "any":
            flags = lax.convert_element_type(self.vector(value.args[0]), np.int32)
            return lax.reduce_max(flags, (0,)) > 0
        if value.op == "convert":
            return lax.convert_element_type(args[0], value.dtype)
        if value.op == "bitcast":
            return lax.bitcast_convert_type(args[0], value.dtype)
        if self.merging and _begins(value) and any(map(_ends, value.args)):
            args = lax.optimization_barrier(args)
        return self.operations[value.op](*args)

    # --- control: the inner values of a loop or a branch are known in there alone

    def inside(self, params: Sequence[Value], arrays: Sequence[Array], body: Callable[[], Any]):
        outer, self.found = self.found, self.found.new_child()
        self.found.update({id(p): array for p, array in zip(params, arrays, strict=True)})
        result = body()
        self.found = outer
        return result

    def loop(self, loop: Loop) -> list[Array]:
        rates = [param.rate for param in loop.params]
        start = [self.at_rate(v, rate) for v, rate in zip(loop.initial, rates, strict=True)]
        written = stored(loop)

        def turn(counter: Array, carry: Any) -> Any:
            arrays, values = carry
            self.memories.given(written, arrays)
            counters = [] if loop.counter is None else [loop.counter]
            counter = lax.convert_element_type(counter, np.int32)

            def body() -> list[Array]:
                self.region(loop.body)
                return [self.at_rate(v, r) for v, r in zip(loop.body.results, rates, strict=True)]

            new = self.inside(
                [*counters, *loop.params], [*([counter] * len(counters)), *values], body
            )
            return self.memories.taken(written), new

        def goes_on(carry: Any) -> Array:
            arrays, values = carry
            self.memories.given(written, arrays)
            test = loop.test
            assert test is not None

            def asked() -> Array:
                self.region(test)
                return self.get(test.results[0])

            return self.inside(loop.params, values, asked)

        carry = (self.memories.taken(written), start)
        if loop.length is not None:
            end = lax.fori_loop(np.int32(0), np.int32(loop.length), turn, carry)
        else:
            # The test is asked within the turn before: a condition may have no effects, and where
            # memories are changed by effects, looking at one counts as such.
            def checked(carry: Any) -> Any:
                new = turn(jnp.int32(0), carry[1])
                return goes_on(new), new

            end = self.repeat(checked, (goes_on(carry), carry))[1]
        self.memories.given(written, end[0])
        return end[1]

    def switch(self, switch: Switch) -> list[Array]:
        written = stored(switch)
        alike = zip(*(region.results for region in switch.branches), strict=True)
        rates = [max(SHARED, *(value.rate for value in values)) for values in alike]

        def branch(region: Region) -> Callable[[list[Array]], Any]:
            def body() -> list[Array]:
                self.region(region)
                return [self.at_rate(v, r) for v, r in zip(region.results, rates, strict=True)]

            def played(arrays: list[Array]) -> Any:
                self.memories.given(written, arrays)
                results = self.inside([], [], body)
                return self.memories.taken(written), results

            return played

        arrays = self.memories.taken(written)
        branches = [branch(region) for region in switch.branches]
        arrays, results = lax.switch(self.get(switch.index), branches, arrays)
        self.memories.given(written, arrays)
        return results


def _begins(value: Value) -> bool:
    """Does it first add a constant to a float, or multiply the float by one?"""
    return _of_constant(value, value.args[:2] if value.op == "fma" else value.args)


def _ends(value: Value) -> bool:
    """Does it add a constant to a float, or multiply the float by one, last?"""
    return _of_constant(value, value.args[2:] if value.op == "fma" else value.args)


def _of_constant(value: Value, args: Sequence[Value]) -> bool:
    return (
        value.op in ("add", "sub", "mul", "fma")
        and value.dtype.kind == "f"
        and any(arg.op == "const" for arg in args)
    )


def stored(control: Loop | Switch) -> list[Memory]:
    """The memories that a loop or a switch writes, each once."""
    found: dict[Memory, None] = {}
    for region in inner_regions(control):
        found.update(dict.fromkeys(writes(region)))
    return list(found)


def writes(region: Region) -> list[Memory]:
    """The memories that a region writes, each once."""
    found: dict[Memory, None] = {}
    for value in region.values:
        if value.op == "store":
            found[value.param] = None
        elif value.op in ("loop", "switch"):
            found.update(dict.fromkeys(stored(value.param)))
    return list(found)


def outside_of(region: Region) -> list[tuple[str, int]]:
    """(kind, place) of the numbers from outside that a region looks at, each once."""
    live, found = live_values(region), {}

    def walk(region: Region) -> None:
        for value in (*region.values, *region.results):
            if id(value) not in live:
                continue
            for one in (value, *value.args, *getattr(value.param, "initial", ())):
                if one.op == "param" and one.param is not None:
                    found[one.param] = None
            if value.op in ("loop", "switch"):
                for inner in inner_regions(value.param):
                    walk(inner)

    walk(region)
    return list(found)


def padded_stops(stops: np.ndarray) -> np.ndarray:
    """Stops up to a power of two: few lengths, so that few programs are compiled.

    What is added are pauses at the last stop, before which no round is left to play.
    """
    stops = np.asarray(stops, np.int32)
    room = (1 << max(0, len(stops) - 1).bit_length()) - len(stops)
    end = -abs(stops[-1]) if len(stops) else 0
    return np.concatenate([stops, np.full(room if len(stops) else 1, end, np.int32)])
