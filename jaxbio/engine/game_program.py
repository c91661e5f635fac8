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
from jaxbio.engine.program import RUN, SHARED, Builder, Memory, Region


@dataclass(eq=False)
class Leaves:
    """A list of arrays, as a program has them: of small ones every entry, of large ones a memory.

    scalars: (leaf, entry, type); memories: each with its leaf.
    """

    shapes: list[tuple[int, ...]]
    dtypes: list[np.dtype]
    scalars: list[tuple[int, int, np.dtype]] = field(default_factory=list)
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
) -> GameProgram:
    """Flatten the four functions of one run. All take and return flat lists of arrays.

    begin(numbers) -> carry; one_round(numbers, key, t, carry) -> carry;
    take(carry) -> (carry, outputs); summary(numbers, carry) -> facts.
    numbers, carry: their types. not_begun: leaves of the carry that may hold anything at first.
    """
    rate = RUN if per_run else SHARED
    builder = Builder()
    flat = Flattener(builder)
    given = _leaves(flat, numbers, "number", "table", rate, per_run)
    kept = _leaves(flat, carry, "carry", "carry", RUN, True)
    key = [builder.param(np.uint32, RUN, ("key", i)) for i in range(2)]
    t = builder.param(np.int32, SHARED, ("round", 0))
    key_type, t_type = jax.ShapeDtypeStruct((2,), np.uint32), jax.ShapeDtypeStruct((), np.int32)
    parts: dict[str, Region] = {}
    homes = _homes(kept, len(carry))

    def part(name: str, function: Any, types: Any, arrays: list[Array], carried: bool) -> list[Any]:
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*types)

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
        return jax.tree.leaves(shape)

    part("begin", begin, (list(numbers),), given.arrays, True)
    all_arrays = [*given.arrays, small((2,), key), small((), [t]), *kept.arrays]
    part("round", one_round, (list(numbers), key_type, t_type, list(carry)), all_arrays, True)
    outputs = part("take", take, (list(carry),), kept.arrays, True)[len(carry) :]
    facts = part(
        "summary", summary, (list(numbers), list(carry)), [*given.arrays, *kept.arrays], False
    )
    return GameProgram(
        given,
        kept,
        parts,
        _types(outputs),
        _types(facts),
        flat.tables,
        builder.scratch,
        per_run,
    )


def _types(leaves: Sequence[Any]) -> list[np.dtype]:
    return [np.dtype(leaf.dtype) for leaf in leaves for _ in range(math.prod(leaf.shape))]


def _leaves(
    flat: Flattener, types: Sequence[Any], kind: str, role: str, rate: int, per_run: bool
) -> Leaves:
    found = Leaves([tuple(leaf.shape) for leaf in types], [np.dtype(leaf.dtype) for leaf in types])
    for number, (shape, dtype) in enumerate(zip(found.shapes, found.dtypes, strict=True)):
        if not is_understood(dtype):
            raise CannotFlatten(f"numbers of type {dtype}")
        if is_small(shape):
            values = []
            for entry in range(math.prod(shape)):
                values.append(flat.b.param(dtype, rate, (kind, len(found.scalars))))
                found.scalars.append((number, entry, dtype))
            found.arrays.append(small(shape, values))
        else:
            memory = Memory(math.prod(shape), dtype, role, per_run, number)
            found.memories.append(memory)
            found.arrays.append(flat.arrays.of_memory(memory, shape))
    return found


def _homes(leaves: Leaves, count: int) -> list[Memory | None]:
    homes: list[Memory | None] = [None] * count
    for memory in leaves.memories:
        homes[memory.leaf] = memory
    return homes
