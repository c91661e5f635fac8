"""Flattening: the jaxpr of a one-run function becomes a straight-line program.

A jaxpr is JAX's own list of the operations of a function. One that cannot be flattened raises
`CannotFlatten`, and the game is played with `jax.vmap` instead (`backends.choice`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.extend import core as jex

from jaxbio.engine import control, elementwise, indexing, reductions, shapes, sorting
from jaxbio.engine.arrays import Array, Arrays, Large, cost, is_small, moved, reads, small
from jaxbio.engine.jaxprs import (
    CALLS,
    OF_JAX,
    CannotFlatten,
    Uses,
    called,
    check,
    check_types,
    expanded,
)
from jaxbio.engine.jaxprs import variables as variables_of
from jaxbio.engine.marks import most_of_block_p
from jaxbio.engine.program import Builder, Memory, Value

RULES = {**shapes.RULES, **indexing.RULES, **reductions.RULES, **sorting.RULES}
CONTROL = {"scan": control.scan, "while": control.repeat, "cond": control.choose}


class Flattener:
    """Evaluates jaxprs on arrays of a program.

    frames: for each jaxpr that is being evaluated, one inside the other, its variables that are
    still needed; pinned: arrays that must not be changed in place, although no later operation uses
    them; tables: large constants of the code.
    """

    def __init__(self, builder: Builder) -> None:
        self.b, self.arrays = builder, Arrays(builder)
        self.frames: list[dict[Any, Array]] = []
        self.pinned: list[Array] = []
        self.tables: list[tuple[Memory, np.ndarray]] = []

    def evaluate(self, closed: Any, args: Sequence[Array]) -> list[Array]:
        """The results of a closed jaxpr."""
        jaxpr = closed.jaxpr
        uses, frame = Uses(jaxpr), {}
        consts = [self.constant(const) for const in closed.consts]
        self.frames.append(frame)

        def keep(variables: Sequence[Any], arrays: Sequence[Array]) -> None:
            """Remember only what is used later: all other arrays may be changed in place."""
            for variable, array in zip(variables, arrays, strict=True):
                count = uses.count.get(variable, 0)
                if count:
                    frame[variable] = array if count == 1 else self.arrays.cheap(array)

        keep([*jaxpr.constvars, *jaxpr.invars], [*consts, *args])
        for number, eqn in enumerate(jaxpr.eqns):
            check_types(eqn)
            operands = [self._read(frame, atom) for atom in eqn.invars]
            for variable in variables_of(eqn.invars):
                if uses.last[variable] == number:
                    del frame[variable]
            keep(eqn.outvars, self._equation(eqn, operands))
        results = [self._read(frame, atom) for atom in jaxpr.outvars]
        self.frames.pop()
        return results

    def _read(self, frame: dict[Any, Array], atom: Any) -> Array:
        if isinstance(atom, jex.Literal):
            return self.constant(np.asarray(atom.val, getattr(atom.aval, "dtype", None)))
        return frame[atom]

    def constant(self, value: Any) -> Array:
        """An array that is known now."""
        dtype = getattr(value, "dtype", None)
        if not (isinstance(dtype, np.dtype) and elementwise.is_understood(dtype)):
            raise CannotFlatten(f"a constant of type {dtype or type(value).__name__}")
        array = np.asarray(value)
        if is_small(array.shape):
            return self.arrays.known(array)
        memory = Memory(array.size, array.dtype, "table", False, -1 - len(self.tables))
        self.tables.append((memory, array))
        return self.arrays.of_memory(memory, array.shape)

    # --- equations

    def _equation(self, eqn: Any, operands: list[Array]) -> list[Array]:
        try:
            return self._known(eqn, operands)
        except CannotFlatten:
            raise
        except Exception as error:  # another version of JAX, with another idea of this primitive
            said = f"{type(error).__name__}: {error}"
            raise CannotFlatten(f"{eqn.primitive.name} ({said})") from error

    def _known(self, eqn: Any, operands: list[Array]) -> list[Array]:
        name = eqn.primitive.name if eqn.primitive in OF_JAX else ""
        if eqn.primitive is most_of_block_p:
            return [small((), [self.b.emit("most", self.arrays.at_known(operands[0], ()))])]
        if name in elementwise.NAMES:
            return [self._elementwise(eqn, name, operands)]
        if name in RULES:
            rule, params = RULES[name]
            check(eqn, params.split())
            if name in indexing.CHANGING:
                operands[0] = self.owned(operands[0], operands[1:])
            return rule(self.arrays, eqn, *operands)
        if name in CONTROL:
            return CONTROL[name](self, eqn, operands)
        if name in CALLS:
            return self.evaluate(called(eqn), operands)
        if name == "optimization_barrier":
            return operands
        if eqn.primitive.name == "call_hi_primitive":
            return self.evaluate(expanded(eqn), operands)
        raise CannotFlatten(eqn.primitive.name)

    def _elementwise(self, eqn: Any, name: str, operands: list[Array]) -> Array:
        check(eqn, elementwise.PARAMETERS.get(name, "").split())
        out = eqn.outvars[0].aval
        if not is_small(out.shape):
            operands = [self.arrays.for_loops(x) for x in operands]

        def at(index: Any, entry: Callable[..., Value], zero: Any) -> Value:
            args = [entry(x, _own_index(index, x.shape, zero)) for x in operands]
            return elementwise.apply(self.b, name, eqn.params, out.dtype, args)

        if is_small(out.shape):
            return small(
                out.shape, [at(i, self.arrays.at_known, 0) for i in np.ndindex(*out.shape)]
            )
        return Large(
            out.shape,
            np.dtype(out.dtype),
            lambda i: at(i, self.arrays.at, self.arrays.number(0)),
            frozenset().union(*(reads(x) for x in operands)),
            1 + sum(cost(x) for x in operands) + 8 * (name in elementwise.EXPENSIVE),
            moved=frozenset().union(
                *(moved(x) if x.shape == out.shape else reads(x) for x in operands)
            ),
        )

    # --- memory

    def owned(self, array: Array, others: Sequence[Array]) -> Array:
        """The array, such that changing it changes nothing else: a copy unless it is a memory that
        nobody else looks at. others: arrays in use that no frame knows.
        """
        if not isinstance(array, Large):
            return array
        memory = array.memory
        if memory is None or memory.role == "table" or self.is_seen(memory, others):
            return self.arrays.write(array, self.b.new_memory(array.size, array.dtype))
        return array

    def is_seen(self, memory: Memory, others: Sequence[Array] = ()) -> bool:
        in_frames = [array for frame in self.frames for array in frame.values()]
        return any(memory in reads(array) for array in (*in_frames, *self.pinned, *others))

    def settle(self, arrays: Sequence[Array], homes: Sequence[Memory | None]) -> None:
        """Write large arrays into the memories that are their homes, as if all at one moment."""
        written = {
            home
            for array, home in zip(arrays, homes, strict=True)
            if home is not None and not (isinstance(array, Large) and array.memory is home)
        }
        waiting = []
        for array, home in zip(arrays, homes, strict=True):
            if home not in written:
                continue
            assert home is not None
            if reads(array) & (written - {home}) or home in moved(array):
                array = self.arrays.write(array, self.b.new_memory(home.size, home.dtype))
            waiting.append((array, home))
        for array, home in waiting:
            self.arrays.write(array, home)


def _own_index(index: Any, shape: Sequence[int], zero: Any) -> Any:
    """The index of an operand: axes of length 1 are the same everywhere, and numbers have none."""
    return tuple(zero if n == 1 else i for i, n in zip(index, shape, strict=True)) if shape else ()
