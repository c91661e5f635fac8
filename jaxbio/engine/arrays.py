"""Arrays of one run inside a program: small ones as values, large ones as memory and loops.

A small array is a NumPy array of values (dtype object). A large one says how to find the value at
an index; unless it is a memory, it is computed where it is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbio.engine.program import INT32, Builder, Memory, Value

LARGE = 64  # entries: arrays with more are not taken apart
CHEAP = 2  # operations of an entry that may be computed more than once
Index = tuple[Value, ...]


@dataclass(eq=False)
class Large:
    """A large array: not its entries, but how to find them.

    at: the value at an index; cost: how many operations finding one takes; reads: the memories that
    are looked at for it. memory: the memory whose entries are those of this array, if there is one.
    moved: those memories of which an entry is looked at in another place than its own.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    at: Callable[[Index], Value]
    reads: frozenset[Memory] = frozenset()
    cost: int = 0
    memory: Memory | None = None
    moved: frozenset[Memory] = frozenset()

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)


Array = np.ndarray | Large


def is_small(shape: Sequence[int]) -> bool:
    return math.prod(shape) <= LARGE


def small(shape: Sequence[int], items: Sequence[Any]) -> np.ndarray:
    """An array of values."""
    array = np.empty(math.prod(shape), object)
    array[:] = list(items)
    return array.reshape(tuple(shape))


def reads(array: Array) -> frozenset[Memory]:
    return array.reads if isinstance(array, Large) else frozenset()


def moved(array: Array) -> frozenset[Memory]:
    return array.moved if isinstance(array, Large) else frozenset()


def dtype_of(array: Array) -> np.dtype:
    if isinstance(array, Large):
        return array.dtype
    return array.reshape(-1)[0].dtype if array.size else INT32  # of nothing, any


def cost(array: Array) -> int:
    return array.cost if isinstance(array, Large) else 0


class Arrays:
    """What can be done with arrays, written into a builder's program."""

    def __init__(self, builder: Builder) -> None:
        self.b = builder

    def number(self, number: int) -> Value:
        return self.b.constant(number, INT32)

    def known_index(self, numbers: Sequence[int]) -> Index:
        return tuple(self.number(n) for n in numbers)

    @staticmethod
    def is_written_out(shape: Sequence[int]) -> bool:
        """Is putting so many entries together written out, entry after entry, without a loop?"""
        return math.prod(shape) <= LARGE // 4

    def known(self, array: np.ndarray) -> np.ndarray:
        """A small array of numbers that are known now."""
        items = [self.b.constant(x, array.dtype) for x in array.reshape(-1)]
        return small(array.shape, items)

    def of_memory(self, memory: Memory, shape: Sequence[int]) -> Large:
        shape = tuple(shape)

        def at(index: Index) -> Value:
            return self.b.load(memory, self.place(index, shape))

        reads = frozenset() if memory.role == "table" else frozenset([memory])
        return Large(shape, memory.dtype, at, reads, 1, memory)

    def place(self, index: Index, shape: Sequence[int]) -> Value:
        """Where an entry stands in an array laid out row by row."""
        place = self.number(0)
        for i, size in zip(index, shape, strict=True):
            place = self.b.emit("add", self.b.emit("mul", place, self.number(size)), i)
        return place

    def at(self, array: Array, index: Index) -> Value:
        """The value at an index, which must be within the array."""
        if isinstance(array, Large):
            return array.at(index)
        if all(i.op == "const" for i in index):
            return array[tuple(int(i.param) for i in index)]
        place, flat = self.place(index, array.shape), array.reshape(-1)
        found = flat[0]
        for i, value in enumerate(flat[1:], 1):
            found = self.b.emit("select", self.b.emit("eq", place, self.number(i)), value, found)
        return found

    def at_known(self, array: Array, index: Sequence[int]) -> Value:
        if isinstance(array, Large):
            return array.at(self.known_index(index))
        return array[tuple(index)]

    def view(self, array: Array, shape: Sequence[int], where: Callable[[Index], Index]) -> Array:
        """The same entries in other places. where: from an index of the new array to the old."""
        at = lambda i: self.at(array, where(i))  # noqa: E731
        seen = reads(array)
        made = Large(tuple(shape), dtype_of(array), at, seen, cost(array), moved=seen)
        return self.apart(made) if is_small(shape) else made

    def apart(self, array: Array) -> np.ndarray:
        """A large array as values."""
        if not isinstance(array, Large):
            return array
        return small(array.shape, [self.at_known(array, i) for i in np.ndindex(*array.shape)])

    def each(self, shape: Sequence[int], body: Callable[[Index], None]) -> None:
        """body(index) for all entries, in loops, one inside the other."""

        def level(index: Index) -> None:
            if len(index) == len(shape):
                body(index)
            elif shape[len(index)] == 1:
                level((*index, self.number(0)))
            elif shape[len(index)]:
                self.b.loop(shape[len(index)], [], lambda i, _: level((*index, i)) or [])

        level(())

    def entries(self, array: Array, body: Callable[[Index, Value], None]) -> None:
        """body(index, value) for all entries of an array: in loops if it is large."""
        if isinstance(array, Large):
            self.each(array.shape, lambda i: body(i, array.at(i)))
        else:
            for index, value in zip(np.ndindex(*array.shape), array.reshape(-1), strict=True):
                body(self.known_index(index), value)

    def for_loops(self, array: Array) -> Array:
        """An array that is read in loops: entries that are values would be chosen one by one.

        Nobody changes the memory that they get, so it serves all who ask for the same values.
        """
        if isinstance(array, Large) or array.size <= CHEAP:
            return array
        values = tuple(array.reshape(-1))
        memory, _ = self.b.once(
            ("values", *map(id, values)), lambda: (self.in_memory(array).memory, values)
        )
        return self.of_memory(memory, array.shape)

    def fold(
        self,
        shape: Sequence[int],
        initial: Sequence[Value],
        body: Callable[..., list[Value]],
        written_out: bool = False,
    ) -> list[Value]:
        """body(index, params) -> next params over all entries, in order."""

        def level(index: Index, params: list[Value]) -> list[Value]:
            if len(index) == len(shape):
                return body(index, params)
            size = shape[len(index)]
            if written_out or self.is_written_out(shape[len(index) :]):
                for i in range(size):
                    params = level((*index, self.number(i)), params)
                return params
            return self.b.loop(size, params, lambda i, params: level((*index, i), params))

        return level((), list(initial))

    def write(self, array: Array, memory: Memory, first: Value | None = None) -> Large:
        """Fill the memory with the array, from a place on."""

        def put(place: Value, value: Value) -> None:
            place = place if first is None else self.b.emit("add", first, place)
            self.b.store(memory, place, value)

        self.entries(array, lambda i, value: put(self.place(i, array.shape), value))
        return self.of_memory(memory, array.shape)

    def in_memory(self, array: Array) -> Large:
        """The array in a memory: its own if it is one."""
        if isinstance(array, Large) and array.memory is not None:
            return array
        return self.write(array, self.b.new_memory(math.prod(array.shape), dtype_of(array)))

    def cheap(self, array: Array) -> Array:
        """The same array, in a memory unless an entry costs next to nothing."""
        if isinstance(array, Large) and array.cost > CHEAP:
            return self.in_memory(array)
        return array

    def made(self, shape: Sequence[int], dtype: Any, at: Callable[[Index], Value]) -> Array:
        """A new array, computed at once: as values, or in a memory."""
        array = Large(tuple(shape), np.dtype(dtype), at)
        return self.apart(array) if is_small(shape) else self.in_memory(array)

    def clamped(self, index: Value, highest: int) -> Value:
        """The index within [0, highest], as int32."""
        if index.dtype.kind == "u":
            top = self.b.constant(highest, index.dtype)
            return self.b.emit("convert", self.b.emit("min", index, top), dtype=INT32)
        if within(index, highest):
            return self.b.emit("convert", index, dtype=INT32)
        low, top = (self.b.constant(x, index.dtype) for x in (0, highest))
        inside = self.b.emit("max", self.b.emit("min", index, top), low)
        return self.b.emit("convert", inside, dtype=INT32)


def within(value: Value, highest: int, depth: int = 8) -> bool:
    """Is an integer known to lie in [0, highest]?"""
    if value.op == "const":
        return 0 <= int(value.param) <= highest
    if depth == 0:
        return False
    inner = [arg for arg in value.args if isinstance(arg, Value)]
    if value.op == "and":
        return any(within(arg, highest, depth - 1) for arg in inner)
    if value.op == "select":
        return all(within(arg, highest, depth - 1) for arg in inner[1:])
    if value.op == "convert" and inner[0].dtype == np.dtype(bool):
        return highest >= 1
    if value.op == "lshr" and inner[1].op == "const" and 0 < int(inner[1].param) < 32:
        return (0xFFFFFFFF >> int(inner[1].param)) <= highest
    return False
