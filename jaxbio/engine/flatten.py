"""Flattening: the jaxpr of a one-run function becomes a straight-line program.

Only public parts of JAX are used. A primitive that is not known here, or one with a parameter that
is not, means that the function cannot be flattened (`CannotFlatten`, which names it); whoever asked
then plays with `jax.vmap`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax
from jax.extend import core as jex
from jax.extend.core import primitives

from jaxbio.engine import elementwise, indexing
from jaxbio.engine.arrays import Array, Arrays, Large, cost, is_small, moved, reads, small
from jaxbio.engine.marks import most_of_block_p
from jaxbio.engine.program import RUN, SHARED, Builder, Memory, Value

UNROLLED = 256  # equations of a scan, over all its turns, that are written out one after the other
CALLS = frozenset("jit pjit custom_jvp_call custom_vjp_call closed_call core_call remat".split())
SCAN = frozenset(
    "jaxpr length reverse unroll linear _split_transpose num_consts num_carry ft_in ft_out".split()
)
WHILE = frozenset("cond_jaxpr body_jaxpr cond_nconsts body_nconsts".split())

# A primitive of somebody else's may have the name of one of JAX's, and another meaning.
OF_JAX = frozenset(
    value
    for module in (lax, primitives)
    for name, value in vars(module).items()
    if name.endswith("_p") and isinstance(value, jex.Primitive)
)


class CannotFlatten(Exception):  # noqa: N818
    """A function has something that a program cannot express; the message names it."""


class Flattener:
    """Evaluates jaxprs on arrays of a program.

    frames: the variables in use, of the jaxprs that are being evaluated; pinned: arrays that must
    stay as they are, whoever uses them last.
    """

    def __init__(self, builder: Builder) -> None:
        self.b, self.arrays = builder, Arrays(builder)
        self.frames: list[dict[Any, Array]] = []
        self.pinned: list[Array] = []
        self.tables: list[tuple[Memory, np.ndarray]] = []  # large constants of the code

    def evaluate(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Array]) -> list[Array]:
        """The results of a jaxpr. consts, args: arrays."""
        last_use = _last_uses(jaxpr)
        frame: dict[Any, Array] = dict(zip(jaxpr.constvars, consts, strict=True))
        frame.update(zip(jaxpr.invars, args, strict=True))
        self.frames.append(frame)
        for number, eqn in enumerate(jaxpr.eqns):
            operands = [self._read(frame, atom) for atom in eqn.invars]
            for atom in eqn.invars:
                if not isinstance(atom, jex.Literal) and last_use.get(atom) == number:
                    frame.pop(atom, None)
            uses = [last_use.uses.get(var, 0) for var in eqn.outvars]
            frame.update(zip(eqn.outvars, self._equation(eqn, operands, uses), strict=True))
        results = [self._read(frame, atom) for atom in jaxpr.outvars]
        self.frames.pop()
        return results

    def _read(self, frame: dict[Any, Array], atom: Any) -> Array:
        if isinstance(atom, jex.Literal):
            return self.constant(np.asarray(atom.val, atom.aval.dtype))
        return frame[atom]

    def constant(self, value: Any) -> Array:
        """An array that is known now."""
        array = np.asarray(value)
        if not elementwise.is_understood(array.dtype):
            raise CannotFlatten(f"numbers of type {array.dtype}")
        if is_small(array.shape):
            return self.arrays.known(array)
        memory = Memory(array.size, array.dtype, "table", False, -1 - len(self.tables))
        self.tables.append((memory, array))
        return self.arrays.of_memory(memory, array.shape)

    # --- equations

    def _equation(self, eqn: Any, operands: list[Array], uses: list[int]) -> list[Array]:
        name = eqn.primitive.name if eqn.primitive in OF_JAX else ""
        for out in eqn.outvars:
            if not _is_number(out.aval):
                raise CannotFlatten(f"{eqn.primitive.name} with numbers of type {out.aval}")
        try:
            if eqn.primitive is most_of_block_p:
                return [small((), [self.b.emit("most", self.arrays.at_known(operands[0], ()))])]
            if name in elementwise.NAMES:
                return [self._elementwise(eqn, name, operands, uses[0])]
            if name in indexing.RULES:
                rule, params = indexing.RULES[name]
                _check(eqn, params.split())
                if name in indexing.CHANGING:
                    operands[0] = self.owned(operands[0], eqn.invars[0].aval.dtype, operands[1:])
                return rule(self.arrays, eqn, *operands)
            if name == "optimization_barrier":
                return operands
            if name == "scan":
                return self._scan(eqn, operands)
            if name == "while":
                return self._while(eqn, operands)
            if name == "cond":
                return self._cond(eqn, operands)
            inner = _called(eqn) if name in CALLS else None
            if inner is not None:
                consts = [self.constant(const) for const in inner.consts]
                return self.evaluate(inner.jaxpr, consts, operands)
        except (KeyError, AttributeError, TypeError) as error:
            raise CannotFlatten(f"{eqn.primitive.name} ({error})") from error
        raise CannotFlatten(eqn.primitive.name)

    def _elementwise(self, eqn: Any, name: str, operands: list[Array], uses: int) -> Array:
        _check(eqn, elementwise.PARAMETERS.get(name, "").split())
        out = eqn.outvars[0].aval

        def at(index: Any, entry: Callable[..., Value], zero: Any) -> Value:
            args = [entry(x, _own_index(index, x.shape, zero)) for x in operands]
            return elementwise.apply(self.b, name, eqn.params, out.dtype, args)

        if is_small(out.shape):
            items = [at(i, self.arrays.at_known, 0) for i in np.ndindex(*out.shape)]
            return small(out.shape, items)
        total = 1 + sum(cost(x) for x in operands) + 8 * (name in elementwise.EXPENSIVE)
        lazy = Large(
            out.shape,
            np.dtype(out.dtype),
            lambda i: at(i, self.arrays.at, self.arrays.number(0)),
            frozenset().union(*(reads(x) for x in operands)),
            total,
            moved=frozenset().union(
                *(moved(x) if x.shape == out.shape else reads(x) for x in operands)
            ),
        )
        return lazy if uses <= 1 else self.arrays.cheap(lazy)

    # --- memory

    def owned(self, array: Array, dtype: Any, others: Sequence[Array]) -> Array:
        """The array, such that changing it changes nothing else: a copy unless it is a memory that
        nobody else looks at. others: arrays in use that no frame knows.
        """
        if not isinstance(array, Large):
            return array
        memory = array.memory
        if memory is None or memory.role == "table" or self._is_seen(memory, others):
            return self.arrays.write(array, self.b.new_memory(array.size, dtype))
        return array

    def _is_seen(self, memory: Memory, others: Sequence[Array] = ()) -> bool:
        in_frames = [array for frame in self.frames for array in frame.values()]
        return any(memory in reads(array) for array in (*in_frames, *self.pinned, *others))

    def settle(self, arrays: Sequence[Array], homes: Sequence[Memory | None]) -> None:
        """Write large arrays into their homes, all as they are before any of these is written."""
        written = {home for home in homes if home is not None}
        waiting = []
        for array, home in zip(arrays, homes, strict=True):
            if home is None or (isinstance(array, Large) and array.memory is home):
                continue
            if reads(array) & (written - {home}) or home in moved(array):
                array = self.arrays.write(array, self.b.new_memory(home.size, home.dtype))
            waiting.append((array, home))
        for array, home in waiting:
            self.arrays.write(array, home)

    # --- control

    def _scan(self, eqn: Any, operands: list[Array]) -> list[Array]:
        _check(eqn, SCAN)
        closed, length, backwards = (eqn.params[n] for n in ("jaxpr", "length", "reverse"))
        jaxpr = closed.jaxpr
        given = [self.constant(const) for const in closed.consts]
        consts, carries = _split_of_scan(eqn, jaxpr)
        fixed, start, rows = (
            operands[:consts], operands[consts : consts + carries], operands[consts + carries :],
        )  # fmt: skip
        made = jaxpr.outvars[carries:]

        def turn(place: Value, carry: list[Array]) -> list[Array]:
            rows_now = [
                self.arrays.view(row, row.shape[1:], var.aval.dtype, lambda i: (place, *i))
                for row, var in zip(rows, jaxpr.invars[consts + carries :], strict=True)
            ]
            return self.evaluate(jaxpr, given, [*fixed, *carry, *rows_now])

        self.pinned.extend([*fixed, *rows])
        order = range(length)[::-1] if backwards else range(length)
        if length * len(jaxpr.eqns) <= UNROLLED and all(is_small(v.aval.shape) for v in made):
            carry, kept = list(start), []
            for i in order:
                outs = turn(self.arrays.number(i), carry)
                carry, kept = outs[:carries], [*kept, outs[carries:]]
            kept = kept[::-1] if backwards else kept
            found = [
                self._stacked([one[i] for one in kept], eqn.outvars[carries + i].aval)
                for i in range(len(made))
            ]
        else:
            rows[:] = [  # in a loop, values cannot be looked up by its counter
                row if isinstance(row, Large) else self.arrays.in_memory(row, var.aval.dtype)
                for row, var in zip(rows, eqn.invars[consts + carries :], strict=True)
            ]
            outs = [self.b.new_memory(max(1, math.prod(v.aval.shape)), v.aval.dtype)
                    for v in eqn.outvars[carries:]]  # fmt: skip

            def body(counter: Value, carry: list[Array]) -> list[Array]:
                last = self.arrays.number(length - 1)
                place = self.b.emit("sub", last, counter) if backwards else counter
                results = turn(place, carry)
                for array, memory, var in zip(results[carries:], outs, made, strict=True):
                    self._store_row(array, memory, place, var.aval.shape)
                return results[:carries]

            carry = self._looped(length, start, jaxpr.invars[consts : consts + carries], body)
            found = [
                self.arrays.view(
                    self.arrays.of_memory(m, v.aval.shape), v.aval.shape, v.aval.dtype, lambda i: i
                ) if is_small(v.aval.shape) else self.arrays.of_memory(m, v.aval.shape)
                for m, v in zip(outs, eqn.outvars[carries:], strict=True)
            ]  # fmt: skip
        del self.pinned[len(self.pinned) - len(fixed) - len(rows) :]
        return [*carry, *found]

    def _stacked(self, parts: list[Array], aval: Any) -> Array:
        whole = np.stack([self.arrays.apart(part) for part in parts])
        if is_small(aval.shape):
            return whole
        return self.arrays.in_memory(whole, aval.dtype)

    def _store_row(self, array: Array, memory: Memory, place: Value, shape: Any) -> None:
        def put(index: Any) -> None:
            whole = (place, *index)
            spot = self.arrays.place(whole, (1, *shape))
            self.b.store(memory, spot, self.arrays.at(array, index))

        if isinstance(array, Large):
            self.arrays.each(shape, put)
        else:
            for known in np.ndindex(*shape):
                put(tuple(self.arrays.number(i) for i in known))

    def _looped(
        self,
        length: int | None,
        start: Sequence[Array],
        variables: Sequence[Any],
        body: Callable[..., list[Array]],
        test: Callable[[list[Array]], Value] | None = None,
    ) -> list[Array]:
        """A loop that carries arrays: small ones as values, large ones in memories of their own."""
        homes: list[Memory | None] = []
        for i, (array, var) in enumerate(zip(start, variables, strict=True)):
            home = self.owned(array, var.aval.dtype, [*start[:i], *start[i + 1 :]])
            homes.append(home.memory if isinstance(home, Large) else None)
        initial = [
            value for array in start if isinstance(array, np.ndarray) for value in array.reshape(-1)
        ]

        def whole(params: list[Value]) -> list[Array]:
            left = iter(params)
            return [
                small(var.aval.shape, [next(left) for _ in range(math.prod(var.aval.shape))])
                if home is None
                else self.arrays.of_memory(home, var.aval.shape)
                for var, home in zip(variables, homes, strict=True)
            ]

        def values(arrays: list[Array]) -> list[Value]:
            self.settle(arrays, homes)
            return [
                value
                for array, home in zip(arrays, homes, strict=True)
                if home is None
                for value in self.arrays.apart(array).reshape(-1)
            ]

        if test is None:
            assert length is not None
            last = self.b.loop(length, initial, lambda i, p: values(body(i, whole(p))))
        else:
            last = self.b.repeat(
                initial, lambda p: test(whole(p)), lambda p: values(body(None, whole(p)))
            )
        return whole(last)

    def _while(self, eqn: Any, operands: list[Array]) -> list[Array]:
        _check(eqn, WHILE)
        test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
        of_test, of_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        fixed = operands[:of_test], operands[of_test : of_test + of_body]
        start, variables = operands[of_test + of_body :], body.jaxpr.invars[of_body:]
        self.pinned.extend([*fixed[0], *fixed[1]])

        def asked(carry: list[Array]) -> Value:
            consts = [self.constant(const) for const in test.consts]
            self.pinned.extend(carry)
            found = self.evaluate(test.jaxpr, consts, [*fixed[0], *carry])
            del self.pinned[len(self.pinned) - len(carry) :]
            return self.arrays.at_known(found[0], ())

        def turn(_: Any, carry: list[Array]) -> list[Array]:
            goes_on = asked(carry)
            consts = [self.constant(const) for const in body.consts]
            keep = carry if goes_on.rate == RUN else []
            self.pinned.extend(keep)  # runs that are done keep what they have
            new = self.evaluate(body.jaxpr, consts, [*fixed[1], *carry])
            del self.pinned[len(self.pinned) - len(keep) :]
            if not keep:
                return new
            return [self._chosen(goes_on, one, old) for one, old in zip(new, carry, strict=True)]

        found = self._looped(
            None, start, variables, turn, lambda carry: self.b.emit("any", asked(carry))
        )
        del self.pinned[len(self.pinned) - of_test - of_body :]
        return found

    def _chosen(self, condition: Value, new: Array, old: Array) -> Array:
        """One of two arrays, for each run."""
        if not isinstance(new, Large) and not isinstance(old, Large):
            pairs = zip(new.reshape(-1), old.reshape(-1), strict=True)
            return small(new.shape, [self.b.emit("select", condition, a, b) for a, b in pairs])

        def at(index: Any) -> Value:
            one, two = self.arrays.at(new, index), self.arrays.at(old, index)
            return self.b.emit("select", condition, one, two)

        dtype = indexing.x_dtype(new)
        seen, total = reads(new) | reads(old), cost(new) + cost(old)
        return Large(new.shape, dtype, at, seen, total, moved=moved(new) | moved(old))

    def _cond(self, eqn: Any, operands: list[Array]) -> list[Array]:
        _check(eqn, ["branches"])
        branches = eqn.params["branches"]
        index = elementwise.convert(self.b, self.arrays.at_known(operands[0], ()), np.int32)
        index = self.arrays.clamped(index, len(branches) - 1)

        def play(branch: Any) -> list[Array]:
            consts = [self.constant(const) for const in branch.consts]
            return self.evaluate(branch.jaxpr, consts, operands[1:])

        if index.op == "const":
            return play(branches[int(index.param)])
        if index.rate <= SHARED:
            return self._switch(eqn, index, [lambda br=branch: play(br) for branch in branches])
        self.pinned.extend(operands[1:])
        results = [play(branch) for branch in branches]
        del self.pinned[len(self.pinned) - len(operands[1:]) :]
        found = results[-1]
        for i in reversed(range(len(branches) - 1)):
            hit = self.b.emit("eq", index, self.arrays.number(i))
            found = [self._chosen(hit, a, b) for a, b in zip(results[i], found, strict=True)]
        return found

    def _switch(
        self, eqn: Any, index: Value, branches: list[Callable[[], list[Array]]]
    ) -> list[Array]:
        """Only the branch that is chosen is played. Large results get the same memory in all."""
        homes: list[Memory | None] = []

        def values(branch: Callable[[], list[Array]]) -> list[Value]:
            arrays = branch()
            if not homes:
                for array, var in zip(arrays, eqn.outvars, strict=True):
                    if is_small(var.aval.shape) and not isinstance(array, Large):
                        homes.append(None)
                        continue
                    own = array.memory if isinstance(array, Large) else None
                    usable = own is not None and own.role != "table" and own not in homes
                    usable = usable and not self._is_seen(own)  # type: ignore[arg-type]
                    size = math.prod(var.aval.shape)
                    homes.append(own if usable else self.b.new_memory(size, var.aval.dtype))
            self.settle(arrays, homes)
            return [
                value
                for array, home in zip(arrays, homes, strict=True)
                if home is None
                for value in self.arrays.apart(array).reshape(-1)
            ]

        left = iter(self.b.switch(index, [lambda br=branch: values(br) for branch in branches]))
        return [
            small(var.aval.shape, [next(left) for _ in range(math.prod(var.aval.shape))])
            if home is None
            else self.arrays.of_memory(home, var.aval.shape)
            for var, home in zip(eqn.outvars, homes, strict=True)
        ]


class _LastUses(dict[Any, int]):
    """Variable -> number of the last equation that uses it; uses: how often it is used at all."""

    def __init__(self) -> None:
        super().__init__()
        self.uses: dict[Any, int] = {}


def _last_uses(jaxpr: Any) -> _LastUses:
    found = _LastUses()
    for number, eqn in enumerate(jaxpr.eqns):
        for atom in eqn.invars:
            if not isinstance(atom, jex.Literal):
                found[atom] = number
                found.uses[atom] = found.uses.get(atom, 0) + 1
    for atom in jaxpr.outvars:
        if not isinstance(atom, jex.Literal):
            found[atom] = len(jaxpr.eqns)
            found.uses[atom] = found.uses.get(atom, 0) + 2
    return found


def _split_of_scan(eqn: Any, jaxpr: Any) -> tuple[int, int]:
    """How many operands are constants, and how many are carried. Told by shapes: names of the
    parameters differ between versions of JAX.
    """
    params = eqn.params
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    carries = 0
    for inner, outer in zip(jaxpr.outvars, eqn.outvars, strict=True):
        if inner.aval.shape != outer.aval.shape:
            break
        carries += 1
    scanned = 0
    for inner, outer in zip(reversed(jaxpr.invars), reversed(eqn.invars), strict=True):
        if inner.aval.shape == outer.aval.shape:
            break
        scanned += 1
    return len(jaxpr.invars) - carries - scanned, carries


def _called(eqn: Any) -> Any:
    """The closed jaxpr that an equation calls just once on its operands; None if it does not."""
    found = list(jex.jaxprs_in_params(eqn.params))
    if len(found) != 1:
        return None
    closed = next(value for value in eqn.params.values() if getattr(value, "jaxpr", value) in found)
    closed = closed if hasattr(closed, "jaxpr") else jex.ClosedJaxpr(closed, ())
    return closed if len(closed.jaxpr.invars) == len(eqn.invars) else None


def _own_index(index: Any, shape: Sequence[int], zero: Any) -> Any:
    """The index of an operand: axes of length 1 are the same everywhere."""
    return tuple(zero if n == 1 else i for i, n in zip(index, shape, strict=True)) if shape else ()


def _check(eqn: Any, known: Any) -> None:
    odd = set(eqn.params) - set(known)
    if odd:
        raise CannotFlatten(f"{eqn.primitive.name} with the parameter {sorted(odd)[0]}")


def _is_number(aval: Any) -> bool:
    return (
        hasattr(aval, "dtype")
        and isinstance(aval.dtype, np.dtype)
        and (elementwise.is_understood(aval.dtype))
    )
