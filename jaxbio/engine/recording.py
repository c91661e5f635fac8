"""Rounds in between, and what is taken out at the rounds that are recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxbio.core import Array


def at_points(
    one_round: Callable[[Array, Any], Any],
    take: Callable[[Any], tuple[Any, Any]],
    state: Any,
    last: Array,
    rounds: Array,
) -> tuple[Any, Any]:
    """Play on from round `last`; at each of `rounds` [points] take out what is to be recorded.

    one_round: (t, state) -> state; take: state -> (state, output). A negative round is a pause: its
    output means nothing, and nothing is taken out of the state. Returns the state and the outputs
    [points, ...].
    """
    ends = jnp.abs(rounds)
    before = jnp.concatenate([last[None], ends[:-1]])

    def point(state: Any, place: tuple[Array, Array, Array]) -> tuple[Any, Any]:
        start, end, stop = place
        state = lax.fori_loop(start + 1, end + 1, one_round, state)
        rest, output = take(state)
        return _changed_where(stop > 0, rest, state), output

    return lax.scan(point, state, (before, ends, rounds))


def _changed_where(condition: Array, new: Any, old: Any) -> Any:
    """`new` or `old`. What is the same in both is left alone: a choice would copy it."""
    return jax.tree.map(lambda a, b: a if a is b else jnp.where(condition, a, b), new, old)
