"""The step of a game as JAX's own list of operations, traced once for all who look at it.

Tracing is Python's work and takes as long as compiling: what plays a game, and what says how much
memory that takes, share one trace.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend import core as jex

from jaxbio.engine.code.traces import code_of, settings, traced
from jaxbio.engine.round import Carry, Game, begin, step
from jaxbio.trees import float_dtype


class Traced(NamedTuple):
    """carry: the types of what is carried from round to round; closed: the closed jaxpr of a round,
    from the leaves of (game, key, t, carry) to those of the carry.
    """

    carry: Any
    closed: Any


def traced_step(game: Game) -> Traced:
    """game: of arrays of one run, or of their types; they may be traced."""
    leaves, structure = jax.tree.flatten(game)
    types = tuple((np.shape(leaf), np.dtype(leaf.dtype)) for leaf in leaves)
    code = code_of(structure), *settings().values()
    return _traced(structure, types, str(float_dtype()), code)


@lru_cache(maxsize=32)
def _traced(structure: Any, types: Any, precision: str, code: Any) -> Traced:
    game = structure.unflatten([jax.ShapeDtypeStruct(*one) for one in types])
    key, t = jax.ShapeDtypeStruct((2,), np.uint32), jax.ShapeDtypeStruct((), np.int32)

    def one_round(*args: Any) -> Carry:
        return step(*args)[0]

    with traced(structure):
        carry = jax.eval_shape(begin, game)
        return Traced(carry, jax.make_jaxpr(one_round)(game, key, t, carry))


def played(game: Game, key: Any, t: Any, carry: Carry) -> Carry:
    """`step`, by its trace: the carry after round t."""
    leaves, structure = jax.tree.flatten(carry)
    one_round = jex.jaxpr_as_fun(traced_step(game).closed)
    return structure.unflatten(one_round(*jax.tree.leaves(game), key, t, *leaves))
