"""Actions to states: stochastic, alternating stochastic, or any table an adversary wrote down."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import checks
from jaxbio.core import Array
from jaxbio.environment.padding import pad_states
from jaxbio.ops import count, select
from jaxbio.trees import (
    derived,
    host,
    is_concrete,
    library_of,
    pytree,
    set_field,
    static,
    with_fields,
)

NEVER = np.iinfo(np.int32).max
SMALL = 256  # entries of a table that are compared faster than searched


@pytree
class StochasticMapping:
    """S_t is drawn from P(. | A_t), independently in every round.

    P: [K, S], rows sum to 1. cumulative: [K, S], their cumulative sums.
    """

    P: Any
    cumulative: Any = derived()

    def __post_init__(self) -> None:
        P = checks.distributions("P", self.P, 2, "[K, S]", "mapping")
        set_field(self, "P", P)
        set_field(self, "cumulative", cumulative_rows(P))

    @property
    def num_actions(self) -> int:
        return self.P.shape[0]

    @property
    def num_states(self) -> int:
        return self.P.shape[1]

    def check(self, horizon: int) -> None:
        """A stationary mapping serves any horizon."""

    def reached(self) -> int:
        """One more than the last state that can be shown."""
        return reached_by(self.P)

    def padded(self, slots: int) -> StochasticMapping:
        """The same mapping with `slots` states; the added ones are never reached."""
        P = pad_states(self.P, slots)
        if type(self) is StochasticMapping and P.dtype == np.float64:  # as fine as it was checked
            return with_fields(self, P=P, cumulative=cumulative_rows(P))
        return dataclasses.replace(self, P=P)

    def state(self, t: Array, action: Array, u: Array, num_states: Array) -> Array:
        """s_t(action) from its uniform u."""
        return invert(self.cumulative, action, u, num_states)

    def average(self, t: Array, action: Array, values: Array) -> Array:
        """sum_s values[s] P(s | action): what the action costs on average, given values [S]."""
        return select(jnp.sum(self.P * values, axis=1), action)

    def costs(self, theta: Any) -> Any:
        """[1, K]: what each action costs on average under mean losses theta [S]."""
        return average_costs(self.P, theta)[None]

    def in_force(self, rows: Array, t: Array) -> Array:
        """rows[0] of [1, ...]: there is one environment."""
        return rows[0]

    def totals(self, values: Array, horizon: Array) -> Array:
        """[K]: each action's average cost summed over the horizon, in units of it where stationary.

        values: [S], the same in every round, or [T, S].
        """
        xp = library_of(self.P, values, horizon)
        weights = values if values.ndim == 1 else xp.sum(until(values, horizon), axis=0)
        return xp.sum(xp.asarray(self.P) * weights, axis=1)


@pytree
class AlternatingMapping:
    """Stochastic mappings that take turns in phases of growing length.

    P_phases: [E, K, S], one mapping per environment; phase i plays environment (start + i) mod E.
    growth: each phase is `growth` times as long as the one before. reading="ceil" (default):
    lengths n, ceil(growth n), ... from `first` on (growth 1.6 if not given). reading="log":
    phase i begins at ceil(growth**i) (growth 1.1**5 if not given), Zimmert's phases.
    starts: int32 [phases], the first round of each phase, padded with "never".
    """

    P_phases: Any
    growth: Any = None
    first: Any = 1
    start: int = static(default=0)
    reading: str = static(default="ceil")
    cumulative: Any = derived()
    starts: Any = derived()

    def __post_init__(self) -> None:
        P = checks.distributions("P_phases", self.P_phases, 3, "[E, K, S]", "mapping")
        reading = checks.choice("reading", self.reading, ("ceil", "log"))
        default = 1.6 if reading == "ceil" else 1.1**5
        growth = default if self.growth is None else checks.number("growth", self.growth, 1)
        if reading == "log" and growth <= 1:
            raise ValueError(f"growth must be greater than 1 for reading='log', but got {growth!r}")
        first = checks.integer("first", self.first, 1, 2**30)
        if not (is_concrete(growth) and is_concrete(first)):
            raise TypeError("growth and first must have values, but got tracers")
        if reading == "log" and first != 1:
            raise ValueError(f"first has no meaning with reading='log', but got {first}")
        set_field(self, "start", checks.integer("start", self.start, 0, P.shape[0] - 1))
        set_field(self, "P_phases", P)
        set_field(self, "growth", growth)
        set_field(self, "first", first)
        set_field(self, "cumulative", cumulative_rows(P))
        set_field(self, "starts", phase_starts(growth, first, reading))

    @property
    def num_actions(self) -> int:
        return self.P_phases.shape[1]

    @property
    def num_states(self) -> int:
        return self.P_phases.shape[2]

    def check(self, horizon: int) -> None:
        if is_concrete(self.starts) and self.starts[-1] != NEVER and self.starts[-1] <= horizon:
            raise ValueError(
                f"growth={self.growth:g} and first={self.first} make more than {len(self.starts)} "
                f"phases within the horizon {horizon}: raise growth or first"
            )

    def reached(self) -> int:
        """One more than the last state that can be shown."""
        return reached_by(self.P_phases)

    def padded(self, slots: int) -> AlternatingMapping:
        """The same mappings with `slots` states; the added ones are never reached."""
        return dataclasses.replace(self, P_phases=pad_states(self.P_phases, slots))

    def environment(self, t: Array) -> Array:
        """Which of the E mappings is in force in round t."""
        phase = count(self.starts <= t) - 1
        return (phase + self.start) % self.P_phases.shape[0]

    def state(self, t: Array, action: Array, u: Array, num_states: Array) -> Array:
        """s_t(action) from its uniform u."""
        return invert(self.in_force(self.cumulative, t), action, u, num_states)

    def average(self, t: Array, action: Array, values: Array) -> Array:
        """sum_s values[s] P_t(s | action)."""
        return select(jnp.sum(self.in_force(self.P_phases, t) * values, axis=1), action)

    def costs(self, theta: Any) -> Any:
        """[E, K]: what each action costs on average in each environment."""
        return average_costs(self.P_phases, theta)

    def in_force(self, rows: Array, t: Array) -> Array:
        """The row of [E, ...] that holds in round t."""
        return lax.dynamic_index_in_dim(rows, self.environment(t), keepdims=False)

    def totals(self, values: Array, horizon: Array) -> Array:
        """[K]: each action's average cost summed over the horizon."""
        xp = library_of(self.P_phases, self.starts, values, horizon)
        E, starts = self.P_phases.shape[0], xp.asarray(self.starts)
        if values.ndim == 1:
            ends = xp.concatenate([starts[1:], xp.asarray([NEVER], starts.dtype)])
            lengths = xp.clip(xp.minimum(ends, horizon + 1) - starts, 0, None)
            member = (xp.arange(len(starts)) + self.start) % E == xp.arange(E)[:, None]
            weights = xp.sum(xp.where(member, lengths, 0), axis=1)[:, None] * values  # [E, S]
        else:
            t = xp.arange(values.shape[0]) + 1
            phase = xp.sum(starts[:, None] <= t, axis=0) - 1
            active = (phase + self.start) % E == xp.arange(E)[:, None]  # [E, T]
            weights = xp.sum(xp.where(active[:, :, None], until(values, horizon), 0), axis=1)
        return xp.sum(xp.asarray(self.P_phases) * weights[:, None, :], axis=(0, 2))


@pytree
class TableMapping:
    """s_t(a) as an oblivious adversary wrote it down. states: int32 [T, K], entries 0 .. S-1."""

    states: Any
    num_states: int = static(default=0)

    def __post_init__(self) -> None:
        states = checks.integers("states", self.states, 2, "[T, K]")
        if states.shape[1] < 2:
            raise ValueError(
                f"states must have at least 2 actions (K >= 2), but its shape is {states.shape}"
            )
        largest = int(np.max(states)) + 1 if isinstance(states, np.ndarray) else self.num_states
        set_field(self, "states", states)
        declared = checks.integer("num_states", self.num_states, 0)
        if 0 < declared < largest:
            raise ValueError(f"states must be below num_states={declared}, but got {largest - 1}")
        set_field(self, "num_states", declared or max(largest, 2))

    @property
    def num_actions(self) -> int:
        return self.states.shape[1]

    def check(self, horizon: int) -> None:
        checks.long_enough("states", self.states.shape[0], horizon)

    def reached(self) -> int:
        """One more than the last state in the table."""
        return int(np.max(self.states)) + 1 if is_concrete(self.states) else 0

    def padded(self, slots: int) -> TableMapping:
        """The same table, declared with `slots` states."""
        return dataclasses.replace(self, num_states=slots)

    def state(self, t: Array, action: Array, u: Array, num_states: Array) -> Array:
        """s_t(action)."""
        return self._state(t, action)

    def _state(self, t: Array, action: Array) -> Array:
        return select(lax.dynamic_index_in_dim(self.states, t - 1, keepdims=False), action)

    def average(self, t: Array, action: Array, values: Array) -> Array:
        """values[s_t(action)]: the mapping is not random, so nothing is averaged."""
        return select(values, self._state(t, action))

    def costs(self, theta: Any) -> None:
        """None: the cost of an action changes from round to round."""

    def totals(self, values: Array, horizon: Array) -> Array:
        """[K]: each action's cost summed over the horizon."""
        xp = library_of(self.states, values, horizon)
        states, values = xp.asarray(self.states), xp.asarray(values)
        if values.ndim == 1:
            costs = values[states]
        else:
            rows = min(values.shape[0], states.shape[0])
            costs = xp.take_along_axis(values[:rows], states[:rows], axis=1)
        return xp.sum(until(costs, horizon), axis=0)


def cumulative_rows(P: Any) -> Any:
    """Cumulative sums along the states, ending at 1; in float64 where the values are known."""
    sums = np.cumsum(P, axis=-1) if isinstance(P, np.ndarray) else jnp.cumsum(P, axis=-1)
    return sums / sums[..., -1:]


def average_costs(P: Any, theta: Any) -> Any:
    """sum_s theta[s] P[..., s]; in float64 on the host where there are values, so that no program
    rounds it in its own way.
    """
    if is_concrete(P) and is_concrete(theta):
        return np.sum(host(P) * host(theta), axis=-1)
    return jnp.sum(jnp.asarray(P) * jnp.asarray(theta), axis=-1)


def reached_by(P: Any) -> int:
    """One more than the last state with positive probability; 0 where P has no values yet."""
    return int(np.max(np.nonzero(P)[-1])) + 1 if is_concrete(P) else 0


def invert(cumulative: Array, action: Array, u: Array, num_states: Array) -> Array:
    """The state whose piece of [0, 1) in row `action` of [K, S] contains u; padded states are never
    chosen. Small tables are compared as a whole, in large ones the piece is searched for (the
    last one ends at 1, so a search that is over stays where it is).
    """
    if math.prod(cumulative.shape) <= SMALL:
        cumulative = cumulative[:, :-1]  # the last piece is where no other is
        real = lax.iota(jnp.int32, cumulative.shape[1]) < num_states - 1
        return count(real & (u >= select(cumulative, action)))
    entries, row = cumulative.reshape(-1), action * cumulative.shape[1]
    low, high = jnp.zeros_like(action), jnp.broadcast_to(num_states - 1, action.shape)
    for _ in range((cumulative.shape[1] - 1).bit_length()):
        middle = (low + high) // 2
        beyond = u >= lax.dynamic_index_in_dim(entries, row + middle, keepdims=False)
        low, high = jnp.where(beyond, middle + 1, low), jnp.where(beyond, high, middle)
    return low


def until(rows: Array, horizon: Array) -> Array:
    """rows [T, ...] with the rounds after the horizon set to 0."""
    xp = library_of(rows, horizon)
    inside = xp.arange(rows.shape[0], dtype=jnp.int32) < horizon
    return xp.where(inside.reshape(-1, *(1,) * (rows.ndim - 1)), rows, 0)


def phase_starts(growth: float, first: int, reading: str, most: int = 4096) -> np.ndarray:
    """int32 [power of 2]: the first round of each phase below 2**31, padded with "never"."""
    starts: list[int] = []
    ratio = Fraction(growth).limit_denominator(10**6)
    if reading == "ceil":
        start, length = 1, first
        while start < NEVER and len(starts) < most:
            starts.append(start)
            start, length = start + length, math.ceil(ratio * length)
    else:
        power = Fraction(1)
        while math.ceil(power) < NEVER and len(starts) < most:
            starts.append(math.ceil(power))
            power *= ratio
    padded = 64
    while padded < len(starts) + (len(starts) < most):
        padded *= 2
    return np.array(starts + [NEVER] * (padded - len(starts)), np.int32)
