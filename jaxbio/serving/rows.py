"""A play on its way, as a row of words of 32 bits: what is kept of it until its loss comes."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbio.core import Array, Play


class Row(NamedTuple):
    """How plays without their loss become rows, and back.

    treedef, types: of such a play, whose leaves are scalars.
    """

    treedef: Any
    types: tuple[Any, ...]

    @property
    def words(self) -> int:
        """How many a row has."""
        return sum(_words(dtype) for dtype in self.types)

    def pack(self, play: Play) -> Array:
        """int32 [words]"""
        leaves = jax.tree.leaves(play)
        return jnp.concatenate([_to_words(leaf) for leaf in leaves])

    def unpack(self, rows: Array) -> Play:
        """int32 [n, words] -> a play with leaves [n]."""
        leaves, first = [], 0
        for dtype in self.types:
            leaves.append(_from_words(rows[:, first : first + _words(dtype)], dtype))
            first += _words(dtype)
        return jax.tree.unflatten(self.treedef, leaves)


def row_of(ticket: Any) -> Row:
    """For plays with such tickets (types of scalars)."""
    number = jax.ShapeDtypeStruct((), jnp.int32)
    leaves, treedef = jax.tree.flatten(Play(number, number, None, ticket))  # type: ignore[arg-type]
    return Row(treedef, tuple(leaf.dtype for leaf in leaves))


def _words(dtype: Any) -> int:
    return max(1, dtype.itemsize // 4)


def _to_words(leaf: Array) -> Array:
    """int32 [1] or [2]: the same bits, of short types the same number."""
    if leaf.dtype.itemsize < 4:
        wide = jnp.float32 if jnp.issubdtype(leaf.dtype, jnp.floating) else jnp.int32
        leaf = leaf.astype(wide)
    return lax.bitcast_convert_type(leaf, jnp.int32).reshape(-1)


def _from_words(words: Array, dtype: Any) -> Array:
    """int32 [n, 1] or [n, 2] -> [n]."""
    if dtype.itemsize == 8:
        return lax.bitcast_convert_type(words, dtype)
    if dtype.itemsize < 4:
        wide = jnp.float32 if jnp.issubdtype(dtype, jnp.floating) else jnp.int32
        return lax.bitcast_convert_type(words[:, 0], wide).astype(dtype)
    return lax.bitcast_convert_type(words[:, 0], dtype)
