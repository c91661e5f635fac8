"""The rows of a log as an environment: a round lays out one row of every action.

What this environment calls states are the rows themselves, so that whatever is known of a row (its
loss, its delay, the state that it shows) is looked up. Rows are numbered action by action.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import checks, rng
from jaxbio.core import Array
from jaxbio.environment.delays import NEVER, VaryingDelay
from jaxbio.environment.empirical import surely
from jaxbio.environment.environment import Environment
from jaxbio.environment.losses import ConstantLosses
from jaxbio.ops import select
from jaxbio.trees import host, library_of, pytree, set_field, static


@pytree
class RowMapping:
    """Actions to their rows. In round t of a run the t-th row of the chosen action is played.

    size: int32 [K], rows of each action; first: int32 [K], the first of them; num_states: all rows.
    shuffled: are the rows of an action in a random order, another one in every run, or as they are?

    reach: 0 for these rows. Otherwise runs are played on logs that are redrawn: in the place of
    each row stands one that is at most so far from it (any of the action's, with a reach of all),
    drawn with replacement. logs: how many such logs there are; runs are spread over them at random.
    words: uint32 [2], which logs they are.
    """

    first: Any
    size: Any
    reach: Any = 0
    logs: Any = 1
    words: Any = (0, 0)
    num_states: int = static(default=0)
    shuffled: bool = static(default=True)

    def __post_init__(self) -> None:
        set_field(self, "words", np.asarray(self.words, np.uint32))

    @property
    def num_actions(self) -> int:
        return self.first.shape[0]

    def check(self, horizon: int) -> None:
        checks.long_enough("the rarest action", int(np.min(host(self.size))), horizon)

    def reached(self) -> int:
        """One more than the last row."""
        return self.num_states

    def padded(self, slots: int) -> RowMapping:
        """The same rows, declared with more that no action has."""
        return dataclasses.replace(self, num_states=slots)

    def row(self, key: Array, t: Array, action: Array) -> Array:
        """The row of an action in round t of the run with this key."""
        first, size = select(self.first, action), select(self.size, action)
        place = rng.shuffled(key, action, t - 1, size) if self.shuffled else t - 1
        low = jnp.maximum(place - self.reach, 0)
        room = jnp.minimum(place + self.reach, size - 1) - low + 1
        log = jnp.stack(rng.threefry(self.words, self.log_of(key), jnp.uint32(0)))
        word = rng.block(log, place, rng.ORDER, action)[0]
        return first + low + rng.below(word, room.astype(jnp.uint32))

    def log_of(self, key: Array) -> Array:
        """uint32: which of the logs the run with this key is played on. key: uint32 [2, ...]."""
        logs = jnp.asarray(self.logs, jnp.uint32)
        return rng.below(rng.own_word(key[0], jnp.uint32(0)), logs).astype(jnp.uint32)

    def state(self, t: Array, action: Array, u: Array, num_states: Array) -> Array:
        """One of the action's rows, all with the same probability: what is left without a key."""
        size = select(self.size, action)
        return select(self.first, action) + jnp.floor(u * size.astype(u.dtype)).astype(jnp.int32)

    def average(self, t: Array, action: Array, values: Array) -> Array:
        """The mean of values [rows] over the rows of an action."""
        return select(self.costs(values)[0], action)

    def costs(self, theta: Any) -> Any:
        """[1, K]: the mean of theta [rows] over each action's rows."""
        xp = library_of(theta, self.first)
        sums = xp.add.reduceat(xp.asarray(theta), xp.asarray(self.first))
        return (sums / xp.asarray(self.size).astype(sums.dtype))[None]

    def in_force(self, rows: Array, t: Array) -> Array:
        """rows[0] of [1, ...]: there is one environment."""
        return rows[0]

    def totals(self, values: Array, horizon: Array) -> Array:
        """[K]: the mean loss of each action's rows."""
        return self.costs(values)[0]


@pytree
class RowLosses(ConstantLosses):
    """The loss of every row. theta: [rows]. binary: is every loss 0 or 1?"""

    theta: Any
    binary: bool = static(default=False)


@pytree
class RowDelay(VaryingDelay):
    """The delay of every row: int32 [rows]; NEVER where its loss stays away.

    size: int32 [K], as in the mapping.
    """

    delays: Any
    size: Any

    looks = True
    binary = True

    def reveal(self, key: Array, t: Array, state: Array, loss: Array) -> tuple[Array, Array]:
        """The loss as it is, and the delay of its row."""
        return loss, lax.dynamic_index_in_dim(self.delays, state, keepdims=False)

    def longest(self) -> int:
        """Of the delays after which a loss comes."""
        delays = host(self.delays)
        return int(np.max(delays[delays < NEVER], initial=0))

    def together(self, horizon: int) -> int:
        """Of older rounds, as good as surely: of each delay, as often as the action has it that has
        it most often.
        """
        most = np.zeros(self.longest() + 1)
        size = host(self.size)
        for rows in np.split(host(self.delays)[: size.sum()], np.cumsum(size)[:-1]):
            shares = np.bincount(rows[rows < NEVER], minlength=len(most)) / len(rows)
            most = np.maximum(most, shares)
        return surely(float(most[1:].sum()))


@pytree
class RowEnvironment(Environment):
    """Rows that are laid out in the order of a run, which its key decides."""

    def state(self, key: Array, t: Array, action: Array) -> Array:
        """The row of an action."""
        return self.mapping.row(key, t, action)
