"""The ring: plays on their way to the learner, filed under the round in which they arrive.

The only place that knows slots. Every slot has a few boxes, each with room for one play that
arrives in its round: a round reads the boxes of its own slot, in the order of play, without looking
anything up. A play that finds its boxes taken is kept under the slot of its own round instead, in a
list that begins at the slot of its arrival: most recent first, each entry with the place of the one
before. So room is needed for as many plays as there are rounds on the way, however many of them
arrive together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbio.core import Array, Arrivals, Play
from jaxbio.engine.marks import most_of_block
from jaxbio.trees import float_dtype

MAX_LANES = 1 << 16
SMALLEST = 80  # slots: more than a small array has, which would be taken apart
WRITTEN_OUT = 16  # entries of a list that are read one after the other without a loop


class Lists(NamedTuple):
    """Plays that found no box. words: arrays [depth, W], under the slot of their own round;
    before: int32 [depth], for each the slot of the one before it; newest: int32 [depth], for each
    slot the slot where its list begins. How long a list is follows from the number of plays that
    wait; what stands beyond its end is left from long ago.
    """

    words: list[Array]
    before: Array
    newest: Array


class Ring(NamedTuple):
    """words: arrays [boxes * depth + 1, W], the packed plays, box by box, one array per machine
    type; the last row takes what has no box. filed: int32 [depth], how many plays wait in a slot.

    filed, lists: None where every delay is the same, so that one play arrives a round.
    """

    words: list[Array]
    filed: Array | None
    lists: Lists | None


class Codec(NamedTuple):
    """How a play is packed into few arrays, so that filing it is one write.

    The first leaves of a play are its action and state; with the flags of the ticket, and a loss
    that is 0 or 1, they share one int32 word where they fit. float32 leaves travel as the int32
    with the same bits.
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
                whole = leaf > 0 if leaf.dtype == float_dtype() else leaf  # a loss of 0 or 1
                shared = shared | (whole.astype(jnp.int32) << shift)
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
    """Slots for delays up to `longest` within `horizon` rounds: few different numbers, so that few
    programs are compiled, and not many more than needed: all that are in use stay in the cache.
    """
    needed = max(SMALLEST, min(longest, horizon) + 1)
    step = 1 << (needed - 1).bit_length() - 3  # quarters of a power of 2
    return -(-needed // step) * step


def codec(template: Play, num_actions: int, state_slots: int, binary: bool) -> Codec:
    """Plan the packing of plays like `template`, whose leaves are scalars.

    binary: every loss is 0 or 1, so that one bit holds it.
    """
    leaves, treedef = jax.tree.flatten(template)
    limits = {0: num_actions, 1: state_slots}  # Play's first leaves
    if binary:
        limits[2] = 2
    bits = [
        max(1, (limits[i] - 1).bit_length()) if i in limits else int(leaf.dtype == bool)
        for i, leaf in enumerate(leaves)
    ]
    while sum(bits) > 31:
        bits[bits.index(max(bits))] = 0
    return Codec(treedef, tuple(bits), tuple(leaf.dtype for leaf in leaves))


def empty(plan: Codec, template: Play, depth: int, boxes: int, counted: bool) -> Ring:
    """counted: may several plays arrive in one round?"""
    packed = plan.pack(template)
    if not counted:
        return Ring([jnp.zeros((depth, *word.shape), word.dtype) for word in packed], None, None)
    rows = boxes * depth + 1
    zeros = jnp.zeros(depth, jnp.int32)
    lists = Lists([jnp.zeros((depth, *w.shape), w.dtype) for w in packed], zeros, zeros)
    return Ring([jnp.zeros((rows, *w.shape), w.dtype) for w in packed], zeros, lists)


def _slot(t: Array, depth: int) -> Array:
    return lax.rem(t, jnp.int32(depth))


def _later(slot: Array, rounds: Array, depth: int) -> Array:
    """The slot so many rounds after another, fewer than there are slots."""
    later = slot + rounds
    return jnp.where(later >= depth, later - depth, later)


def _at(array: Array, index: Array) -> Array:
    """array[index] along the first axis; the index is not negative."""
    start, size = _first(array, index), (1, *array.shape[1:])
    return lax.dynamic_slice(array, start, size).reshape(array.shape[1:])


def _put(array: Array, value: Array, index: Array) -> Array:
    return lax.dynamic_update_slice(array, value[None], _first(array, index))


def _first(array: Array, index: Array) -> tuple[Array, ...]:
    return (index, *(jnp.zeros_like(index) for _ in array.shape[1:]))


def number_due(ring: Ring, t: Array, delay: Array, depth: int) -> Array:
    """int32 []: how many plays of older rounds arrive at the end of round t.

    delay: of round t; where every delay is the same it says whether a loss is on its way at all.
    """
    if ring.filed is None:
        return ((delay > 0) & (t > delay)).astype(jnp.int32)
    return _at(ring.filed, _slot(t, depth))


def read(
    ring: Ring, t: Array, number: Array, depth: int, boxes: int, lanes: int
) -> tuple[list[Array], Array]:
    """Plays that arrive at the end of round t, as they are packed: arrays [lanes, W], and which of
    the lanes hold one: bool [lanes]. They are in the order of play.
    """
    slot, positions = _slot(t, depth), lax.iota(jnp.int32, lanes)
    boxed = min(boxes, lanes)
    rows = [[_at(word, box * depth + slot) for box in range(boxed)] for word in ring.words]
    if lanes <= boxes or ring.lists is None:
        return [jnp.stack(row) for row in rows], positions < number
    listed = _read_list(ring.lists, slot, lanes - boxes)
    due = (positions < jnp.minimum(number, boxes)) | (positions >= lanes - (number - boxes))
    both = [jnp.concatenate([jnp.stack(row), more]) for row, more in zip(rows, listed, strict=True)]
    return both, due


def _read_list(lists: Lists, slot: Array, count: int) -> list[Array]:
    """The last plays of a list, the most recent one last: arrays [count, W]."""

    def earlier(place: Array, _: None = None) -> tuple[Array, list[Array]]:
        return _at(lists.before, place), [_at(word, place) for word in lists.words]

    place = _at(lists.newest, slot)
    if count > WRITTEN_OUT:
        return lax.scan(earlier, place, None, length=count, reverse=True)[1]
    found = []
    for _ in range(count):
        place, words = earlier(place)
        found.append(words)
    return [jnp.stack(word[::-1]) for word in zip(*found, strict=True)]


class Place(NamedTuple):
    """Where a play goes. now, due: int32 [], the slots of its own round and of its arrival; row:
    int32 [], of the words; spills: bool [], does it wait without a box?
    """

    now: Array
    due: Array
    row: Array
    spills: Array


def only_place(t: Array, delay: Array, depth: int) -> Place:
    """Of round t's play, where every delay is the same: a slot that no other play looks for."""
    now = _slot(t, depth)
    due = _later(now, jnp.clip(delay, 0, depth - 1), depth)
    return Place(now, due, due, jnp.bool_(False))


def reserve(
    ring: Ring, t: Array, delay: Array, horizon: Array, depth: int, boxes: int
) -> tuple[Ring, Place]:
    """Count round t's play where it arrives, in round t + delay, and empty the slot of round t.
    Nothing of this depends on what is played, unless the delay looks at it.

    A delay of 0 leaves nothing to wait for. What arrives after the horizon is not counted (it may
    lie about in a slot). A delay past the end of the ring is such a case (see `depth_for`); where
    it is not, the run is marked (`round.Facts.lost`).
    """
    if ring.filed is None:
        raise ValueError("a ring without counts has nothing to reserve")
    now, due, _, _ = only_place(t, delay, depth)
    taken = _at(ring.filed, due)
    waits = (delay > 0) & (delay < depth) & (t <= horizon - delay)
    has_box = taken < boxes
    row = jnp.where(has_box, taken * depth + due, boxes * depth)
    filed = _put(ring.filed, taken + waits.astype(jnp.int32), due)
    filed = _put(filed, jnp.int32(0), now)
    return ring._replace(filed=filed), Place(now, due, row, waits & ~has_box)


def file(ring: Ring, packed: list[Array], place: Place) -> Ring:
    """Put a play away, at the place that is reserved for it."""
    words = [_put(a, word, place.row) for a, word in zip(ring.words, packed, strict=True)]
    if ring.lists is None:
        return ring._replace(words=words)

    def add(lists: Lists) -> Lists:
        first = _at(lists.newest, place.due)
        return Lists(
            [_put(a, word, place.now) for a, word in zip(lists.words, packed, strict=True)],
            _put(lists.before, first, place.now),
            _put(lists.newest, jnp.where(place.spills, place.now, first), place.due),
        )

    spilt = most_of_block(place.spills.astype(jnp.int32)) > 0
    lists = lax.cond(spilt, add, lambda lists: lists, ring.lists)
    return ring._replace(words=words, lists=lists)


def arrivals(row: list[Array], due: Array, plan: Codec, blank: bool = True) -> Arrivals:
    """The plays of lanes [lanes, W]: leaves [lanes].

    blank: is everything 0 in a lane that is not due, or only its loss? What else it holds is left
    from plays of long ago.
    """
    play = plan.unpack(row)
    if blank:
        return Arrivals(jax.tree.map(lambda x: jnp.where(due, x, jnp.zeros_like(x)), play), due)
    return Arrivals(play._replace(loss=jnp.where(due, play.loss, 0)), due)
