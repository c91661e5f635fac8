"""What is played: the functions of one run that a back-end turns into play.

GAME is a learner in an environment; WORLD is the environment alone, with what every action would
have lost, which realised regret is measured against.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbio import rng
from jaxbio.core import Array
from jaxbio.engine.round import begin, summary, take_tally
from jaxbio.engine.tracing import played
from jaxbio.environment.environment import Environment
from jaxbio.ops import Sum, sum_add, sum_zero


class Rules(NamedTuple):
    """Functions of a tree of numbers (a game, or an environment), all of one run.

    begin(tree) -> carry; step(tree, key, t, carry) -> carry; take(carry) -> (carry, output), at a
    stop; summary(tree, carry) -> facts by name. idle: of a carry, the arrays that may hold anything
    at first.
    """

    begin: Callable[[Any], Any]
    step: Callable[[Any, Array, Array, Any], Any]
    take: Callable[[Any], tuple[Any, Any]]
    summary: Callable[[Any, Any], dict[str, Any]]
    idle: Callable[[Any], list[Any]]


def _idle(carry: Any) -> list[Any]:
    """Old plays count for nothing as long as no slot says that it has any."""
    slots = carry.ring
    return [*slots.words, *(slots.lists.words if slots.lists else ())]


GAME = Rules(begin, played, take_tally, summary, _idle)


def comparators(env: Environment, key: Array, t: Array, totals: Sum) -> Sum:
    """Add round t's realised loss of every action, l_t(s_t(a)), to totals [K]."""
    u = rng.round_uniforms(key, t)[1]
    rows = []
    for action in range(env.num_actions):
        state = env.state(key, t, jnp.int32(action))
        rows.append(env.losses.loss(key, t, state, u))
    return sum_add(totals, jnp.stack(rows))


def take_totals(totals: Sum) -> tuple[Sum, Array]:
    """The actions' realised losses since the last recorded round; they begin again at 0."""
    return jax.tree.map(jnp.zeros_like, totals), totals.total


WORLD = Rules(
    lambda env: sum_zero(env.num_actions),
    comparators,
    take_totals,
    lambda env, totals: {},
    lambda totals: [],
)
