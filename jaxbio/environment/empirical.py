"""Delays from a distribution that was observed: one for all states, or one per state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy import special

from jaxbio import checks, rng
from jaxbio.checks import memory
from jaxbio.core import Array
from jaxbio.environment.alias import LONGEST, WORD, TabledDelay, alias_table
from jaxbio.environment.delays import LANES
from jaxbio.trees import derived, host, is_concrete, pytree, set_field

FINE = 256  # delays up to so many rounds are kept apart by `coarser`
RARE = 1e-14  # the probability with which a round may need more lanes than it gets


@pytree
class EmpiricalDelay(TabledDelay):
    """Delays with the given probabilities.

    probabilities: of the delays 0, 1, ..., d_max: [d_max + 1], or [S, d_max + 1] where every state
    has a distribution of its own. never: how probable it is that the loss never comes, one number
    or [S]; with it each distribution sums to 1. values: the delays that have these probabilities,
    int [n], increasing, in place of 0, 1, ..., d_max. `from_delays` and `from_survival` make the
    law of a sample or of a survival curve.

    Delays are drawn independently; probabilities are rounded to multiples of 2**-32. cells: uint32
    [n] or [S, n], the table; last: int32, the number of the longest delay that comes.
    """

    probabilities: InitVar[Any]
    never: Any = 0.0
    values: Any = None
    cells: Any = derived()
    last: Any = derived()

    binary = True

    def __post_init__(self, probabilities: Any) -> None:
        rows, never = _checked(probabilities, self.never)
        cells, last = alias_table(rows, never)
        if self.values is not None:
            set_field(self, "values", _delays(self.values, rows.shape[1])[: last + 1])
        per_state = _axes(probabilities) == 2
        set_field(self, "never", never if per_state else float(never[0]))
        set_field(self, "cells", cells if per_state else cells[0])
        set_field(self, "last", last)

    @classmethod
    def from_delays(
        cls, delays: Any, states: Any = None, num_states: int | None = None
    ) -> EmpiricalDelay:
        """The law of observed delays, all of which came.

        delays: int [n]; with states: int [n], the state of each, every state has its own law.
        num_states: S, where the last states were not seen (which raises, as do gaps).
        """
        delays = checks.integers("delays", delays, 1, "[n]", high=LONGEST)
        if not isinstance(delays, np.ndarray):
            raise TypeError("delays must have values, but got a tracer")
        if states is None:
            return cls(np.bincount(delays) / len(delays))
        states = checks.integers("states", states, 1, "[n]", high=rng.INDICES - 1)
        if states.shape != delays.shape:
            raise ValueError(f"states must have shape {delays.shape}, but has {states.shape}")
        wanted = int(states.max()) + 1
        size = wanted if num_states is None else checks.size("num_states", num_states, wanted)
        length = int(delays.max()) + 1
        memory.refuse_table(f"delays of {size} states up to {length - 1:,}", size * length, "bins")
        counts = np.bincount(states.astype(np.int64) * length + delays, minlength=size * length)
        counts = counts.reshape(size, length)
        seen = counts.sum(axis=1)
        if not seen.all():
            raise ValueError(
                f"states must hold every state, but there is no delay of state "
                f"{int(np.argmin(seen))}: give probabilities, with a row for it"
            )
        return cls(counts / seen[:, None])

    @classmethod
    def from_survival(cls, survival: Any) -> EmpiricalDelay:
        """The law of a survival curve.

        survival: [d_max + 1] or [S, d_max + 1], the probability of a delay longer than 0, 1, ...,
        d_max. The last value is the share that never comes.
        """
        curve = _of_numbers("survival", survival)
        steps = -np.diff(curve, axis=-1, prepend=1.0)
        if steps.min() < 0:
            where = tuple(int(i) for i in np.argwhere(steps < 0)[0])
            raise ValueError(f"survival must not rise, but it rises at entry {where}")
        return cls(steps, never=curve[..., -1])

    @property
    def looks(self) -> bool:
        """Only where every state has a law of its own."""
        return self.cells.ndim == 2

    @property
    def num_states(self) -> int | None:
        """S, or None where the law is the same for all states."""
        return self.cells.shape[0] if self.looks else None

    def reveal(self, key: Array, t: Array, state: Array, loss: Array) -> tuple[Array, Array]:
        """The loss as it is, and the delay of its state."""
        return loss, self.drawn(rng.delay_word(key, t), (state,))

    def of_number(self, drawn: Array) -> Array:
        if self.values is None:
            return drawn
        place = (jnp.minimum(drawn, self.values.shape[0] - 1),)
        return lax.dynamic_slice(self.values, place, (1,)).reshape(())

    def longest(self) -> int:
        """Of the delays after which a loss comes."""
        return int(np.max(host(self.last if self.values is None else self.values)))

    def coarser(self, steps: int = 64, edges: Sequence[int] = ()) -> EmpiricalDelay:
        """Nearly the same law in a small table, which is read many times faster where delays are
        very long.

        Delays longer than 256 rounds are put together with others that differ from them by one part
        in `steps` at most, as their mean over all states. edges: delays that never are put together
        with longer ones, as the window of a `WindowedDelay` is.
        """
        steps = checks.size("steps", steps, 1, LONGEST)
        masses, last = np.atleast_2d(self.masses()), self.longest()
        delays = np.arange(last + 1) if self.values is None else np.asarray(self.values)
        ends = [*range(min(last, FINE) + 1), *edges, last]
        end = FINE
        while end < last:
            end += max(1, end // steps)
            ends.append(end)
        number = np.searchsorted(np.unique(ends), delays)
        place = np.unique(number, return_inverse=True)[1]
        rows = np.stack([np.bincount(place, row) for row in masses[:, :-1]])
        weight = masses[:, :-1].sum(axis=0) + 2.0 ** -(WORD + 8)  # some, where nothing comes
        means = np.bincount(place, weight * delays) / np.bincount(place, weight)
        never = masses[:, -1] if self.looks else float(masses[0, -1])
        return EmpiricalDelay(rows if self.looks else rows[0], never, np.rint(means).astype(int))

    def together(self, horizon: int) -> int:
        """Of older rounds, as good as surely: in every round a loss of each delay d can arrive,
        with the probability of d in the state for which it is largest, whatever was played before.
        """
        most_of = np.atleast_2d(self.masses())[:, :-1].max(axis=0)
        at_once = 0 if self.values is None else int(np.asarray(self.values)[0])
        mean = float(most_of.sum() - (most_of[0] if at_once == 0 else 0.0))
        return surely(mean)


def surely(mean: float) -> int:
    """More independent losses than that do not arrive together, where `mean` do on average."""
    most = LANES
    while special.pdtrc(most, mean) > RARE:
        most += 1
    return most


def _of_numbers(name: str, value: Any) -> np.ndarray:
    """An array [d_max + 1] or [S, d_max + 1] of numbers in [0, 1] with values."""
    axes = 2 if _axes(value) > 1 else 1
    words = {1: "[d_max + 1]", 2: "[S, d_max + 1]"}
    found = checks.unit_interval(name, value, axes, words[axes])
    if not isinstance(found, np.ndarray):
        raise TypeError(f"{name} must have values, but got a tracer: make the law outside of jit")
    if found.shape[-1] > LONGEST + 1:
        raise ValueError(
            f"{name} must have at most {LONGEST + 1:,} delays, but its shape is {found.shape}"
        )
    memory.refuse_table(f"{name} of shape {found.shape}", 4 * found.size, "wider rounds")
    return found


def _axes(value: Any) -> int:
    """Of whatever NumPy makes an array of."""
    try:
        return np.ndim(value)
    except Exception:  # of rows of different lengths, or of a class of the user's
        return 1


def _checked(probabilities: Any, never: Any) -> tuple[np.ndarray, np.ndarray]:
    """[rows, d_max + 1] and [rows]."""
    given = _of_numbers("probabilities", probabilities)
    if not is_concrete(never):
        raise TypeError("never must have a value, but got a tracer: make the law outside of jit")
    rows = np.atleast_2d(given)
    if checks.is_single(never):
        share = np.full(len(rows), checks.number("never", never, 0, 1))
    else:
        share = checks.unit_interval("never", never, 1, "[S]")
    if share.shape != (len(rows),) or (given.ndim == 1 and not checks.is_single(never)):
        raise ValueError(
            f"never must be a number, or one per row of probabilities {given.shape}, but its "
            f"shape is {np.shape(never)}"
        )
    sums = rows.sum(axis=1) + share
    wrong = np.flatnonzero(np.abs(sums - 1) > 1e-6)
    if wrong.size:
        where = f" in row {wrong[0]}" if given.ndim == 2 else ""
        raise ValueError(
            f"probabilities and never must sum to 1, but they sum to {sums[wrong[0]]:.6g}{where}"
        )
    return rows, share


def _delays(values: Any, count: int) -> np.ndarray:
    """int32 [count], increasing."""
    found = checks.increasing("values", values, 0)
    if len(found) != count:
        raise ValueError(f"values must be {count}, one per probability, but got {len(found)}")
    if found[-1] > LONGEST:
        raise ValueError(f"values must be at most {LONGEST:,} rounds, but got {found[-1]:,}")
    return np.array(found, np.int32)
