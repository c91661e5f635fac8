"""The program of a game: its four parts, and where their numbers come from and go to.

begin: before the first round; round; take: what is recorded at a stop, and the sums that begin
again; summary: the facts of a run. They share the numbers of the game (inputs, the same for all
runs or one per run), the key of the run and what is carried on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxbio.engine.arrays import Array, is_small, small
from jaxbio.engine.elementwise import is_understood
from jaxbio.engine.flatten import Flattener
from jaxbio.engine.jaxprs import CannotFlatten
from jaxbio.engine.program import RUN, SHARED, Builder, Loop, Memory, Region, Switch, Value


@dataclass(eq=False)
class Leaves:
    """A list of arrays, as a program has them: of small ones every entry, of large ones a memory.

    scalars: (leaf, entry, type), and their rates; memories: each with its leaf.
    """

    shapes: list[tuple[int, ...]]
    dtypes: list[np.dtype]
    scalars: list[tuple[int, int, np.dtype]] = field(default_factory=list)
    rates: list[int] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)


@dataclass(eq=False)
class GameProgram:
    """numbers: leaves of the game; carry: what is kept between rounds; parts: by name, their
    results are the scalars of the carry, then what the part is there for. outputs, facts: the types
    of what `take` and `summary` give. tables: large constants of the code. per_run: has every run
    numbers of its own?
    """

    numbers: Leaves
    carry: Leaves
    parts: dict[str, Region]
    outputs: list[np.dtype]
    facts: list[np.dtype]
    tables: list[tuple[Memory, np.ndarray]]
    scratch: list[Memory]
    per_run: bool


def program_of(
    numbers: Sequence[Any],
    begin: Callable[..., Any],
    one_round: Callable[..., Any],
    take: Callable[..., Any],
    summary: Callable[..., Any],
    carry: Sequence[Any],
    per_run: bool,
    not_begun: frozenset[int] = frozenset(),
    shares: bool = False,
) -> GameProgram:
    """Flatten the four functions of one run. All take and return flat lists of arrays.

    begin(numbers) -> carry; one_round(numbers, key, t, carry) -> carry;
    take(carry) -> (carry, outputs); summary(numbers, carry) -> facts.
    numbers, carry: their types. not_begun: leaves of the carry that may hold anything at first.
    shares: may a back-end keep what is carried and the same for all runs (of a fixed delay, how
    many losses are outstanding) as one number?
    """
    key, t = jax.ShapeDtypeStruct((2,), np.uint32), jax.ShapeDtypeStruct((), np.int32)
    numbers, carry = list(numbers), list(carry)
    traced = {
        "begin": jax.make_jaxpr(begin)(numbers),
        "round": jax.make_jaxpr(one_round)(numbers, key, t, carry),
        "take": jax.make_jaxpr(take)(carry),
        "summary": jax.make_jaxpr(summary)(numbers, carry),
    }
    program = _flattened(traced, numbers, carry, per_run, not_begun, frozenset())
    if not shares or per_run:
        return program
    shared = shared_scalars(program)
    return _flattened(traced, numbers, carry, per_run, not_begun, shared) if shared else program


def _flattened(
    traced: dict[str, Any],
    numbers: list[Any],
    carry: list[Any],
    per_run: bool,
    not_begun: frozenset[int],
    shared: frozenset[int],
) -> GameProgram:
    """The program of the traced functions. shared: scalars of the carry that are."""
    builder = Builder()
    flat = Flattener(builder)
    of_numbers = lambda _: RUN if per_run else SHARED  # noqa: E731
    given = leaves_of(flat, numbers, "number", "table", of_numbers, per_run)
    of_carry = lambda place: SHARED if place in shared else RUN  # noqa: E731
    kept = leaves_of(flat, carry, "carry", "carry", of_carry, True)
    key = [builder.param(np.uint32, RUN, ("key", i)) for i in range(2)]
    t = builder.param(np.int32, SHARED, ("round", 0))
    parts: dict[str, Region] = {}
    homes = homes_of(kept, len(carry))

    def part(name: str, arrays: list[Array], carried: bool) -> list[Any]:
        closed = traced[name]

        def play() -> list[Any]:
            # Only arrays that come back changed may be changed on the way.
            pinned = [] if carried else kept.arrays
            flat.pinned.extend([*given.arrays, *pinned])
            results = flat.evaluate(closed, arrays)
            flat.pinned.clear()
            values = []
            if carried:
                own = results[: len(carry)]
                skipped = not_begun if name == "begin" else frozenset()
                wanted = [None if i in skipped else home for i, home in enumerate(homes)]
                flat.settle(own, wanted)
                values = [
                    value
                    for array, home in zip(own, homes, strict=True)
                    if home is None
                    for value in flat.arrays.apart(array).reshape(-1)
                ]
                results = results[len(carry) :]
            return values + [v for array in results for v in flat.arrays.apart(array).reshape(-1)]

        parts[name] = builder.region(play)
        return closed.out_avals

    part("begin", given.arrays, True)
    part("round", [*given.arrays, small((2,), key), small((), [t]), *kept.arrays], True)
    outputs = part("take", kept.arrays, True)[len(carry) :]
    facts = part("summary", [*given.arrays, *kept.arrays], False)
    return GameProgram(
        given,
        kept,
        parts,
        types_of_entries(outputs),
        types_of_entries(facts),
        flat.tables,
        builder.scratch,
        per_run,
    )


def types_of_entries(leaves: Sequence[Any]) -> list[np.dtype]:
    """The type of every entry of arrays, one after the other."""
    return [np.dtype(leaf.dtype) for leaf in leaves for _ in range(math.prod(leaf.shape))]


def leaves_of(
    flat: Flattener,
    types: Sequence[Any],
    kind: str,
    role: str,
    rate: Callable[[int], int],
    per_run: bool,
) -> Leaves:
    """Arrays of these types as values from outside (`kind`, place) and memories of that role.

    rate: of the scalar at a place; per_run: of the memories.
    """
    found = Leaves([tuple(leaf.shape) for leaf in types], [np.dtype(leaf.dtype) for leaf in types])
    for number, (shape, dtype) in enumerate(zip(found.shapes, found.dtypes, strict=True)):
        if not is_understood(dtype):
            raise CannotFlatten(f"numbers of type {dtype}")
        if is_small(shape):
            values = []
            for entry in range(math.prod(shape)):
                place = len(found.scalars)
                values.append(flat.b.param(dtype, rate(place), (kind, place)))
                found.scalars.append((number, entry, dtype))
                found.rates.append(rate(place))
            found.arrays.append(small(shape, values))
        else:
            memory = Memory(math.prod(shape), dtype, role, per_run, number)
            found.memories.append(memory)
            found.arrays.append(flat.arrays.of_memory(memory, shape))
    return found


def homes_of(leaves: Leaves, count: int) -> list[Memory | None]:
    """For each of so many leaves its memory, None where it is small."""
    homes: list[Memory | None] = [None] * count
    for memory in leaves.memories:
        homes[memory.leaf] = memory
    return homes


def shared_scalars(program: GameProgram) -> frozenset[int]:
    """Scalars of the carry that are the same for all runs: they begin so, and every round makes
    them of nothing but the round, the numbers of the game and each other.
    """
    count = len(program.carry.scalars)
    begun = program.parts["begin"].results
    shared = {place for place in range(count) if begun[place].rate <= SHARED}
    while True:
        found = {name: _rates(program.parts[name], shared)[:count] for name in ("round", "take")}
        left = {i for i in shared if all(rates[i] <= SHARED for rates in found.values())}
        if left == shared:
            return frozenset(shared)
        shared = left


def _rates(region: Region, shared: set[int]) -> list[int]:
    """The rates of a region's results, where these scalars of the carry are shared."""
    known: dict[int, Any] = {}

    def rate(value: Value) -> int:
        if value.op == "param" and value.param is not None and value.param[0] == "carry":
            return SHARED if value.param[1] in shared else RUN
        if value.op == "result":
            return known[id(value.args[0])][value.param]
        return known.get(id(value), value.rate)

    def walk(region: Region) -> list[int]:
        for value in region.values:
            if value.op in ("loop", "switch"):
                known[id(value)] = inside(value.param)
            elif value.op in ("most", "any", "const", "load", "store", "result"):
                continue
            elif value.args:
                known[id(value)] = max(rate(arg) for arg in value.args)
        return [rate(value) for value in region.results]

    def inside(control: Loop | Switch) -> list[int]:
        if isinstance(control, Switch):
            found = [walk(branch) for branch in control.branches]
            return [max(SHARED, *rates) for rates in zip(*found, strict=True)]
        rates = [max(SHARED, rate(value)) for value in control.initial]
        while True:
            known.update({id(p): r for p, r in zip(control.params, rates, strict=True)})
            new = [max(a, b) for a, b in zip(rates, walk(control.body), strict=True)]
            if new == rates:
                return rates
            rates = new

    return walk(region)
