"""Delays from a table of their probabilities.

A delay is looked up with one random word of 32 bits (Walker's alias method): the first bits of the
word choose a cell of a table, the others decide between the two delays of the cell. That costs the
same whatever the longest delay.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import rng
from jaxbio.core import Array
from jaxbio.environment.delays import NEVER, VaryingDelay
from jaxbio.trees import host

WORD = 32  # bits of the random word behind a delay
FEWEST = 7  # bits of a cell's number, at least: a small table would be taken apart
MOST = 24  # bits of a cell's number, at most
LONGEST = (1 << MOST) - 3  # rounds


class TabledDelay(VaryingDelay):
    """What laws have in common that look delays up. cells: uint32 [n] or [S, n], the table, of
    `alias_table`; last: int32, the number of the longest delay that comes.
    """

    cells: Any
    last: Any

    def delay(self, key: Array, t: Array) -> Array:
        return self.drawn(rng.delay_word(key, t), ())

    def drawn(self, word: Array, row: tuple[Array, ...]) -> Array:
        """The delay of a random word. row: (state,) where every state has a law of its own."""
        bits = self.cells.shape[-1].bit_length() - 1
        own = (word >> np.uint32(WORD - bits)).astype(jnp.int32)
        found = lax.dynamic_slice(self.cells, (*row, own), (1,) * self.cells.ndim).reshape(())
        rest = word & np.uint32((1 << WORD - bits) - 1)
        other = (found & np.uint32((1 << bits) - 1)).astype(jnp.int32)
        drawn = jnp.where(rest < found >> np.uint32(bits), own, other)
        return jnp.where(drawn > self.last, jnp.int32(NEVER), self.of_number(drawn))

    def of_number(self, drawn: Array) -> Array:
        """The delay of this number in the table: 0, 1, ... unless a law says otherwise."""
        return drawn

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
        found = weights[:, : int(np.max(host(self.last))) + 2] / 2.0**WORD
        return found if self.cells.ndim == 2 else found[0]


def alias_table(rows: np.ndarray, never: np.ndarray) -> tuple[np.ndarray, int]:
    """cells uint32 [rows, n], and the longest delay that comes.

    rows: [rows, d_max + 1], the probabilities of 0, ..., d_max; never: [rows].
    """
    weights = np.stack([_units(row) for row in np.column_stack([rows, never])])
    last = int(np.max(np.flatnonzero(weights[:, :-1].any(axis=0)), initial=0))
    weights = np.column_stack([weights[:, : last + 1], weights[:, -1]])
    bits = max(FEWEST, (last + 1).bit_length())
    return np.stack([_alias_cells(row, bits) for row in weights]), last


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
