"""The program of a function of one run that is called by itself, not in a loop over rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from jaxbio.engine.flatten import Flattener
from jaxbio.engine.game_program import GameProgram, homes_of, leaves_of, types_of_entries
from jaxbio.engine.program import SHARED, Builder, Value

CALL = "call"


def single_program(
    function: Callable[..., Any], given: Sequence[Any], kept: Sequence[Any]
) -> GameProgram:
    """The program of function(given, kept) -> (kept, outputs), flat lists of arrays, as the part
    `CALL`: its results are the scalars of what is kept, then the outputs.

    given, kept: their types. As there is one run, all its numbers are SHARED: where a game computes
    with vectors of runs, this computes with scalars, the same operations in the same order.
    """
    given, kept = list(given), list(kept)
    closed = jax.make_jaxpr(function)(given, kept)
    builder = Builder(per_run=False)
    flat = Flattener(builder)
    numbers = leaves_of(flat, given, "number", "table", lambda _: SHARED, False)
    carry = leaves_of(flat, kept, "carry", "carry", lambda _: SHARED, False)
    homes = homes_of(carry, len(kept))

    def call() -> list[Value]:
        flat.pinned.extend(numbers.arrays)
        results = flat.evaluate(closed, [*numbers.arrays, *carry.arrays])
        own, others = results[: len(kept)], results[len(kept) :]
        flat.settle(own, homes)
        small = [array for array, home in zip(own, homes, strict=True) if home is None]
        return [v for array in (*small, *others) for v in flat.arrays.apart(array).reshape(-1)]

    parts = {CALL: builder.region(call)}
    outputs = types_of_entries(closed.out_avals[len(kept) :])
    return GameProgram(numbers, carry, parts, outputs, [], flat.tables, builder.scratch, False)
