"""The ring: plays on their way to the learner, filed under the round in which they arrive.

The only place that knows slots. Entry [slot, lane] holds a play that arrives in the round with that
slot. One write per round at the play's own arrival slot, then one read of a row: the read needs no
index per run, several arrivals are neighbouring lanes, and the row is read after the write, so the
compiled loop updates the ring in place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbio.core import Array, Arrivals, Play

COUNT_BITS = 12  # lanes <= 4095
MAX_LANES = (1 << COUNT_BITS) - 1
SMALLEST = 64


class Ring(NamedTuple):
    """words: arrays [depth, lanes, W], the packed plays, one array per machine type.

    filed: int32 [depth], how many plays wait in the slot, stamped with the slot's revolution (a
    stale stamp means none); None where every delay is the same, so that one play arrives a round.
    overflow: bool [], a play found no lane.
    """

    words: list[Array]
    filed: Array | None
    overflow: Array


class Codec(NamedTuple):
    """How a play is packed into few arrays, so that filing it is one write.

    The first leaves of a play are its action and state; with the flags of the ticket they share
    one int32 word where they fit. float32 leaves travel as the int32 with the same bits.
    """

    treedef: Any
    bits: tuple[int, ...]  # bits of each leaf in the shared word; 0 for a leaf of its own
    types: tuple[Any, ...]

    def pack(self, play: Play) -> list[Array]:
        """Arrays [W], one per machine type."""
        shared, shift = jnp.int32(0), 0
        groups: dict[Any, list[Array]] = {}
        for leaf, bits in zip(jax.tree.leaves(play), self.bits, strict=True):
            if bits:
                shared = shared | (leaf.astype(jnp.int32) << shift)
                shift += bits
            else:
                word = _to_word(leaf)
                groups.setdefault(word.dtype, []).append(word)
        groups.setdefault(jnp.dtype(jnp.int32), []).append(shared)
        return [jnp.stack(words) for words in groups.values()]

    def unpack(self, arrays: list[Array]) -> Play:
        """arrays [lanes, W] -> a play with leaves [lanes]."""
        groups = {array.dtype: list(jnp.moveaxis(array, 1, 0)) for array in arrays}
        shared, shift, leaves = groups[jnp.dtype(jnp.int32)].pop(), 0, []
        for bits, dtype in zip(self.bits, self.types, strict=True):
            if bits:
                leaves.append(((shared >> shift) & ((1 << bits) - 1)).astype(dtype))
                shift += bits
            else:
                leaves.append(_from_word(groups[_word_type(dtype)].pop(0), dtype))
        return jax.tree.unflatten(self.treedef, leaves)


def _word_type(dtype: Any) -> Any:
    return jnp.dtype(jnp.int32 if dtype == jnp.float32 else dtype)


def _to_word(leaf: Array) -> Array:
    return lax.bitcast_convert_type(leaf, jnp.int32) if leaf.dtype == jnp.float32 else leaf


def _from_word(word: Array, dtype: Any) -> Array:
    return lax.bitcast_convert_type(word, dtype) if dtype == jnp.float32 else word


def depth_for(longest: int, horizon: int) -> int:
    """Slots for delays up to `longest` within `horizon` rounds: the next power of 4, from 64.

    Powers of 4 so that most new delays find a program that is already compiled.
    """
    needed = min(longest, horizon) + 1
    depth = SMALLEST
    while depth < needed:
        depth *= 4
    return depth


def codec(template: Play, num_actions: int, state_slots: int) -> Codec:
    """Plan the packing of plays like `template`, whose leaves are scalars."""
    leaves, treedef = jax.tree.flatten(template)
    limits = {0: num_actions, 1: state_slots}  # Play's first two leaves
    bits = [
        max(1, (limits[i] - 1).bit_length()) if i in limits else int(leaf.dtype == bool)
        for i, leaf in enumerate(leaves)
    ]
    while sum(bits) > 31:
        bits[bits.index(max(bits))] = 0
    return Codec(treedef, tuple(bits), tuple(leaf.dtype for leaf in leaves))


def empty(plan: Codec, template: Play, depth: int, lanes: int, counted: bool) -> Ring:
    words = [jnp.zeros((depth, lanes, *word.shape), word.dtype) for word in plan.pack(template)]
    filed = jnp.zeros(depth, jnp.int32) if counted else None
    return Ring(words, filed, jnp.bool_(False))


def write(ring: Ring, plan: Codec, play: Play, t: Array, delay: Array, horizon: Array) -> Ring:
    """File round t's play under round t + delay. A delay of 0 leaves nothing to wait for.

    What arrives after the horizon is not counted (it may lie about in a slot: no stamp makes it
    valid). A delay past the end of the ring is such a case (see `depth_for`).
    """
    depth, lanes = ring.words[0].shape[:2]
    due_round = t + jnp.minimum(delay, depth - 1)
    slot = due_round & (depth - 1)
    lane, filed, overflow = jnp.int32(0), ring.filed, ring.overflow
    if filed is not None:
        entry = lax.dynamic_index_in_dim(filed, slot, keepdims=False)
        # Looked up once, before the write: a second look would need the array as it was, a copy.
        entry, filed = lax.optimization_barrier((entry, filed))
        stamp = _stamp(due_round, depth)
        lane = jnp.where(entry & ~MAX_LANES == stamp, entry & MAX_LANES, 0)
        waits = (delay > 0) & (delay < depth) & (t <= horizon - delay)
        filed = lax.dynamic_update_index_in_dim(
            filed, jnp.where(waits, stamp | (lane + 1), entry), slot, 0
        )
        overflow = overflow | (waits & (lane >= lanes))
        lane = jnp.minimum(lane, lanes - 1)
    words = [
        lax.dynamic_update_slice(array, word[None, None], (slot, lane, jnp.int32(0)))
        for array, word in zip(ring.words, plan.pack(play), strict=True)
    ]
    return Ring(words, filed, overflow)


def read(ring: Ring, plan: Codec, t: Array, delay: Array) -> Arrivals:
    """What arrives at the end of round t, from the M = lanes older rounds: leaves [M]."""
    depth, lanes = ring.words[0].shape[:2]
    slot = t & (depth - 1)
    row = [lax.dynamic_index_in_dim(word, slot, keepdims=False) for word in ring.words]
    if ring.filed is None:
        due = jnp.broadcast_to((delay > 0) & (t > delay), (1,))
    else:
        entry = lax.dynamic_index_in_dim(ring.filed, slot, keepdims=False)
        count = jnp.where(entry & ~MAX_LANES == _stamp(t, depth), entry & MAX_LANES, 0)
        due = lax.iota(jnp.int32, lanes) < count
    play = plan.unpack(row)
    return Arrivals(play._replace(loss=jnp.where(due, play.loss, 0)), due)


def _stamp(t: Array, depth: int) -> Array:
    """The revolution of the ring in which round t falls, in the bits above the count.

    Never 0 in the first revolutions, so that an empty ring holds no valid stamp.
    """
    return ((t >> (depth.bit_length() - 1)) + 1) << COUNT_BITS
