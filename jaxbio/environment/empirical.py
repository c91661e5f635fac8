"""Delays from a distribution that was observed: one for all states, or one per state.

A delay is looked up with one random word of 32 bits (Walker's alias method): the first bits of the
word choose a cell of a table, the others decide between the two delays of the cell. That costs the
same whatever the longest delay.
"""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy import special

from jaxbio import checks, rng
from jaxbio.checks import memory
from jaxbio.core import Array
from jaxbio.environment.delays import LANES, NEVER, VaryingDelay
from jaxbio.trees import derived, host, is_concrete, pytree, set_field

WORD = 32  # bits of the random word behind a delay
FEWEST = 7  # bits of a cell's number, at least: a small table would be taken apart
MOST = 24  # bits of a cell's number, at most
LONGEST = (1 << MOST) - 3  # rounds
RARE = 1e-14  # the probability with which a round may need more lanes than it gets


@pytree
class EmpiricalDelay(VaryingDelay):
    """Delays with the given probabilities.

    probabilities: of the delays 0, 1, ..., d_max: [d_max + 1], or [S, d_max + 1] where every state
    has a distribution of its own. never: how probable it is that the loss never comes, one number
    or [S]; with it each distribution sums to 1. `from_delays` and `from_survival` make the law of
    a sample or of a survival curve.

    Delays are drawn independently; probabilities are rounded to multiples of 2**-32. cells: uint32
    [n] or [S, n], the table; last: int32, the longest delay that comes.
    """

    probabilities: InitVar[Any]
    never: Any = 0.0
    cells: Any = derived()
    last: Any = derived()

    binary = True

    def __post_init__(self, probabilities: Any) -> None:
        rows, never = _checked(probabilities, self.never)
        weights = np.stack([_units(row) for row in np.column_stack([rows, never])])
        last = int(np.max(np.flatnonzero(weights[:, :-1].any(axis=0)), initial=0))
        weights = np.column_stack([weights[:, : last + 1], weights[:, -1]])
        bits = max(FEWEST, (last + 1).bit_length())
        cells = np.stack([_alias_cells(row, bits) for row in weights])
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

    def delay(self, key: Array, t: Array) -> Array:
        return self._drawn(rng.delay_word(key, t), ())

    def reveal(self, key: Array, t: Array, state: Array, loss: Array) -> tuple[Array, Array]:
        """The loss as it is, and the delay of its state."""
        return loss, self._drawn(rng.delay_word(key, t), (state,))

    def _drawn(self, word: Array, row: tuple[Array, ...]) -> Array:
        bits = self.cells.shape[-1].bit_length() - 1
        own = (word >> np.uint32(WORD - bits)).astype(jnp.int32)
        found = lax.dynamic_slice(self.cells, (*row, own), (1,) * self.cells.ndim).reshape(())
        rest = word & np.uint32((1 << WORD - bits) - 1)
        other = (found & np.uint32((1 << bits) - 1)).astype(jnp.int32)
        drawn = jnp.where(rest < found >> np.uint32(bits), own, other)
        return jnp.where(drawn > self.last, jnp.int32(NEVER), drawn)

    def longest(self) -> int:
        """Of the delays after which a loss comes."""
        return int(np.max(host(self.last)))

    def masses(self) -> np.ndarray:
        """float64 [d_max + 2] or [S, d_max + 2]: the probabilities of 0, ..., d_max and of never,
        as they are drawn.
        """
        cells = np.atleast_2d(np.asarray(self.cells)).astype(np.int64)
        bits = cells.shape[1].bit_length() - 1
        whole, own = 1 << WORD - bits, np.arange(cells.shape[1])
        other = cells & (1 << bits) - 1
        kept = np.where(other == own, whole, cells >> bits)
        weights = kept.copy()
        for row, place, left in zip(weights, other, whole - kept, strict=True):
            np.add.at(row, place, left)
        found = weights[:, : self.longest() + 2] / 2.0**WORD
        return found if self.looks else found[0]

    def together(self, horizon: int) -> int:
        """Of older rounds, as good as surely: in every round a loss of each delay d can arrive,
        with the probability of d in the state for which it is largest, whatever was played before.
        """
        return surely(float(np.atleast_2d(self.masses())[:, 1:-1].max(axis=0).sum()))


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


def _units(probabilities: np.ndarray) -> np.ndarray:
    """int64 [n]: the probabilities in units of 2**-32, rounded so that they sum to 1."""
    sums = np.cumsum(probabilities)
    return np.diff(np.rint(sums / sums[-1] * 2.0**WORD), prepend=0).astype(np.int64)


def _alias_cells(weights: np.ndarray, bits: int) -> np.ndarray:
    """uint32 [2**bits]: for every cell a threshold, and in the last bits the other outcome.

    weights: int64 [outcomes], sum 2**32. A cell holds 2**(32 - bits) of it. Outcomes that have less
    keep it all in their own cell, and the rest of that cell goes to one that has more, in order: as
    soon as what that one has left fits into its own cell, the next one takes its place.
    """
    size, whole = 1 << bits, 1 << WORD - bits
    filled = np.zeros(size, np.int64)
    filled[: len(weights)] = weights
    small, large = np.flatnonzero(filled < whole), np.flatnonzero(filled >= whole)
    lacks = np.concatenate([[0], np.cumsum(whole - filled[small])])
    has = np.cumsum(filled[large] - whole)
    kept, other = np.full(size, whole), np.arange(size)
    kept[small] = filled[small]
    other[small] = large[np.searchsorted(has, lacks[:-1], side="left")]
    taken = np.searchsorted(lacks, has[:-1], side="right")  # the last one keeps what is left
    used_up = np.flatnonzero(taken < len(lacks))
    kept[large[used_up]] = whole + has[used_up] - lacks[taken[used_up]]
    other[large[used_up]] = large[used_up + 1]
    kept[other == np.arange(size)] = 0  # both outcomes are the same
    return (kept.astype(np.uint32) << np.uint32(bits)) | other.astype(np.uint32)
