"""NSD-UCRL2 (Vernade, Gyorgy and Mann 2020): optimism over the mapping and the losses."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play
from jaxbio.ops import Means, argmin_fair, cell, means_add, means_value, means_zero
from jaxbio.trees import float_dtype, pytree, set_field, static


class Window(NamedTuple):
    """plays: int32 [W], action * slots + state of the last W rounds; leaving: int32 [], of them the
    one that leaves next (-1 while none does).
    """

    plays: Array
    leaving: Array


class NSDState(NamedTuple):
    """visits: int32 [K, S], plays within the window; seen: arrived losses per state, [S].

    log_state, log_action: the logarithms in the radii. num_states: S without padding.
    """

    visits: Array
    seen: Means
    window: Window | None
    log_state: Array
    log_action: Array
    num_states: Array


def optimistic_value(share: Array, reward: Array, radius: Array) -> Array:
    """[K]: the largest <q, reward> over distributions q within `radius` of share in L1.

    share: [K, S]; reward: [S]; radius: [K]. Half the radius moves to the best state, taken from the
    worst states upward (UCRL2's inner maximisation). Written as the best reward minus what the
    other states cost, so that actions that are equally good tie exactly.
    """
    best = jnp.max(reward)
    missing = 1.0 - jnp.sum(share * _best(reward), axis=1)
    added = jnp.minimum(radius / 2.0, missing)
    removed = jnp.clip(added[:, None] - _mass_before(share, reward), 0.0, share)
    value = best - jnp.sum((share - removed) * (best - reward), axis=1)
    return jnp.where(radius / 2.0 >= missing, best, value)


def _best(reward: Array) -> Array:
    """[S]: 1 at the last of the best states in ascending order, else 0."""
    positions = lax.iota(jnp.int32, reward.shape[0])
    last = jnp.max(jnp.where(reward == jnp.max(reward), positions, -1))
    return (positions == last).astype(reward.dtype)


def _mass_before(share: Array, reward: Array) -> Array:
    """[K, S]: the share of the states that come earlier in ascending order of reward.

    By comparing all pairs: no sort in the loop, and padding adds exact zeros.
    """
    positions = lax.iota(jnp.int32, reward.shape[0])
    earlier = (reward[:, None] < reward) | (
        (reward[:, None] == reward) & (positions[:, None] < positions)
    )  # [other, state]
    return jnp.sum(jnp.where(earlier, share[:, :, None], 0), axis=1)


@pytree
class NSDUCRL2:
    """Optimism in the face of uncertainty over the mapping and the losses of the states.

    States are counted over the last `window` rounds without delay, losses of states over the whole
    history as they arrive. Radii from Hoeffding and Weissman with a union bound (our reading;
    failure delta / 2 each): sqrt(ln(4 S T / delta) / (2 n)) for a state,
    sqrt(2 ln((2^S - 2) 2 K T / delta) / N) for an action. Ties are broken at random.

    delta: confidence; window: rounds, or None for all; radius_scale: multiplies both radii.
    """

    delta: Any = 0.1
    window: int | None = static(default=None)
    radius_scale: Any = 1.0
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        set_field(self, "delta", checks.probability_of_error("delta", self.delta))
        if self.window is not None:
            set_field(self, "window", checks.integer("window", self.window, 1, 2**30))
        value = checks.parameter("radius_scale", self.radius_scale, 0)
        set_field(self, "radius_scale", value)

    def init(self, known: Known) -> NSDState:
        K, slots, dtype = known.num_actions, known.state_slots, float_dtype()
        S, rounds = known.num_states.astype(dtype), known.horizon.astype(dtype)
        subsets = S * math.log(2.0) + jnp.log1p(-jnp.exp2(1.0 - jnp.maximum(S, 2.0)))
        window = None
        if self.window is not None:
            window = Window(jnp.zeros(self.window, jnp.int32), jnp.int32(-1))
        return NSDState(
            visits=jnp.zeros((K, slots), jnp.int32),
            seen=means_zero(slots),
            window=window,
            log_state=jnp.log(4.0 * S * rounds / self.delta),
            log_action=subsets + jnp.log(2.0 * K * rounds / self.delta),
            num_states=known.num_states,
        )

    def act(self, state: NSDState, t: Array, u: Array) -> tuple[Array, None]:
        dtype = u.dtype
        count = state.seen.count
        arrived = jnp.maximum(count, 1).astype(dtype)
        bonus = self.radius_scale * jnp.sqrt(state.log_state / (2.0 * arrived))
        reward = jnp.minimum(1.0, 1.0 - means_value(state.seen) + bonus)
        real = lax.iota(jnp.int32, count.shape[0]) < state.num_states
        reward = jnp.where(real, jnp.where(count == 0, 1.0, reward), -1.0)
        plays = jnp.sum(state.visits, axis=1, dtype=jnp.int32)
        played = jnp.maximum(plays, 1).astype(dtype)
        share = state.visits.astype(dtype) / played[:, None]
        radius = self.radius_scale * jnp.sqrt(2.0 * state.log_action / played)
        value = optimistic_value(share, reward, radius)
        value = jnp.where(plays == 0, jnp.max(reward), value)
        return argmin_fair(-value, u), None

    def learn(
        self, state: NSDState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[NSDState, None]:
        K, slots = state.visits.shape
        joined = cell(play.action, play.state, K, slots)
        visits, window = state.visits + joined.astype(jnp.int32), state.window
        if window is not None:
            gone = window.leaving
            left = cell(gone // slots, gone % slots, K, slots) & (gone >= 0)
            visits = visits - left.astype(jnp.int32)
            window = _slide(window, t, play.action * slots + play.state)
        seen = means_add(state.seen, arrivals.play.state, arrivals.play.loss, arrivals.due)
        return state._replace(visits=visits, seen=seen, window=window), None


def _slide(window: Window, t: Array, code: Array) -> Window:
    """Write round t, then look up the round that leaves at the end of round t + 1."""
    size = window.plays.shape[0]
    plays = lax.dynamic_update_index_in_dim(window.plays, code, t % size, 0)
    plays = lax.optimization_barrier(plays)
    oldest = lax.dynamic_index_in_dim(plays, (t + 1) % size, keepdims=False)
    return Window(plays, jnp.where(t + 1 > size, oldest, -1))
