"""How many bytes a block of runs takes, read off the types of its game: nothing is compiled."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend import core as jex

from jaxbio import checks
from jaxbio.engine.code.traces import code_of, traced
from jaxbio.engine.round import Game, summary
from jaxbio.engine.tracing import traced_step
from jaxbio.engine.widths import in_memory, stepped
from jaxbio.trees import float_dtype

CURVE_BYTES = 48  # of a run and stop: two increments as they come and together, two sums


class Types(NamedTuple):
    """Of one run. carry: bytes of its ring and of what its learner remembers; scratch: of the
    largest array that a round makes besides; facts: the names of what is reported; arrays: of those
    that are no scalars.
    """

    carry: int
    scratch: int
    facts: tuple[str, ...]
    arrays: tuple[str, ...]


def types_of(game: Game) -> Types:
    leaves, structure = jax.tree.flatten(game)
    types = tuple((np.shape(leaf), np.result_type(leaf)) for leaf in leaves)
    return _of_type(structure, types, str(float_dtype()), code_of(structure))


@lru_cache(maxsize=64)
def _of_type(structure: Any, types: Any, precision: str, code: Any) -> Types:
    """Traced once for all games of a structure and its code (in each precision)."""
    game = structure.unflatten([jax.ShapeDtypeStruct(*one) for one in types])
    carry, closed = traced_step(game)
    with traced(structure):
        facts = jax.eval_shape(summary, game, carry)
    in_place = {_size(leaf) for leaf in jax.tree.leaves((carry, game))}
    return Types(
        sum(_bytes(leaf) for leaf in jax.tree.leaves(carry)),
        _largest(closed.jaxpr, in_place),
        tuple(name for name in facts if name not in checks.FLAGS),
        tuple(name for name, fact in facts.items() if getattr(fact, "shape", ())),
    )


def _largest(jaxpr: Any, in_place: set[Any]) -> int:
    """Bytes of the largest array that a jaxpr makes, unless it has the size and type of one that is
    carried on: those are changed in place, or seen in another shape.
    """
    made = [var.aval for eqn in jaxpr.eqns for var in eqn.outvars if hasattr(var.aval, "shape")]
    own = [_bytes(aval) for aval in made if _size(aval) not in in_place]
    inner = [
        _largest(getattr(part, "jaxpr", part), in_place)
        for eqn in jaxpr.eqns
        for part in jex.jaxprs_in_params(eqn.params)
    ]
    return max([0, *own, *inner])


def _size(leaf: Any) -> tuple[int, Any]:
    return math.prod(leaf.shape), leaf.dtype


def _bytes(leaf: Any) -> int:
    return math.prod(leaf.shape) * leaf.dtype.itemsize


def table_bytes(tree: Any) -> int:
    """Bytes of all arrays that a game, or a part of one, is made of."""
    return sum([getattr(leaf, "nbytes", 8) for leaf in jax.tree.leaves(tree)])


def carried(game: Game, width: int, horizon: int, backend: str | None) -> int:
    """Bytes of what the runs of a block carry from round to round."""
    return types_of(game).carry * in_memory(width, horizon, backend)


def passing(
    game: Game, width: int, stacked: bool, stops: int, horizon: int, backend: str | None
) -> int:
    """Bytes that a block takes besides: its tables, here and as the program reads them, what its
    rounds make on the way, and its curves.
    """
    found, room = types_of(game), stepped(width)
    tables = table_bytes(game) * (room if stacked else 1)
    made = found.scratch * in_memory(width, horizon, backend)
    return 2 * tables + made + CURVE_BYTES * stops * room
