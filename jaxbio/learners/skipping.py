"""Skipping: rounds that are outstanding for too long stop counting.

In round t every outstanding round s with t - s > sqrt(D / ln K) loses its flag from round t + 1 on.
The threshold never falls and t - s grows by one a round, so the rounds past it are always the
first `cut` ones and at most one round passes it per round: one look per round, no loop over the
outstanding.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbio.core import Array, Known, round_number
from jaxbio.ops import Wide, count, wide_add, wide_value, wide_zero, wrapping

MANY_LANES = 16


class Skipping(NamedTuple):
    """active: int32 [], outstanding rounds that count; total (D-hat): their sum over past rounds.

    cut: int32 [], rounds 1..cut are too old. pending: bool [places + 1], which of the recent
    rounds are outstanding, more of them than the ring has slots; the last entry takes the writes
    that do not count. flag: bool [], of round cut + 1, looked up after the writes of the round
    before, so that they happen in place.
    """

    active: Array
    total: Wide
    cut: Array
    pending: Array
    flag: Array


def start(known: Known) -> Skipping:
    pending = jnp.zeros(wrapping(known.ring_depth) + 1, bool)
    return Skipping(jnp.int32(0), wide_zero(), jnp.int32(0), pending, jnp.bool_(False))


def total(state: Skipping) -> Wide:
    """D-hat_t, this round's count included."""
    return wide_add(state.total, state.active)


def threshold(counted: Wide, num_actions: int) -> Array:
    """sqrt(D-hat / ln K): the age at which a round is skipped."""
    return jnp.sqrt(wide_value(counted) / math.log(num_actions))


def advance(state: Skipping, t: Array, num_actions: int) -> Skipping:
    """Round t, after its rate is set: count it, then skip the round that has become too old."""
    counted = total(state)
    candidate = state.cut + 1
    too_old = round_number(t - candidate) > threshold(counted, num_actions)
    depth = state.pending.shape[0] - 1
    outstanding = too_old & state.flag & (t - candidate < depth)
    return state._replace(
        active=state.active - outstanding.astype(jnp.int32),
        total=counted,
        cut=state.cut + too_old.astype(jnp.int32),
    )


def settle(state: Skipping, t: Array, rounds: Array, due: Array) -> Skipping:
    """End of round t: the rounds that are due leave, round t joins unless it is due itself.

    rounds: int32 [M + 1] and due: bool [M + 1], the last lane is round t.
    """
    counted = due & (rounds > state.cut)
    leaving = count(counted[:-1])
    depth = state.pending.shape[0] - 1
    pending = _left(state.pending, rounds[:-1], due[:-1])
    joined = jnp.where(due[-1], depth, t & (depth - 1))
    pending = lax.dynamic_update_index_in_dim(pending, jnp.bool_(True), joined, 0)
    pending = lax.optimization_barrier(pending)
    flag = lax.dynamic_index_in_dim(pending, (state.cut + 1) & (depth - 1), keepdims=False)
    joins = (~due[-1]).astype(jnp.int32)
    return state._replace(active=state.active + joins - leaving, pending=pending, flag=flag)


def _left(pending: Array, rounds: Array, due: Array) -> Array:
    """Without the rounds that are due, lane by lane. Many lanes are a loop: they are rare, and each
    that is written out takes as long to compile as any other.
    """
    depth = pending.shape[0] - 1

    def leave(pending: Array, lane: tuple[Array, Array]) -> tuple[Array, None]:
        number, due = lane
        slot = jnp.where(due, number & (depth - 1), depth)
        return lax.dynamic_update_index_in_dim(pending, jnp.bool_(False), slot, 0), None

    if rounds.shape[0] > MANY_LANES:
        return lax.scan(leave, pending, (rounds, due))[0]
    for lane in range(rounds.shape[0]):
        pending, _ = leave(pending, (rounds[lane], due[lane]))
    return pending
