"""The ring by itself: what is filed arrives once, in the order of play, however long the game."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbio.core import Play
from jaxbio.engine import ring
from jaxbio.trees import float_dtype

DEPTH, LANES = 64, 40
HORIZON = jnp.int32(2**30)


def play(action: Any) -> Play:
    return Play(jnp.int32(action), jnp.int32(0), jnp.ones((), float_dtype()), None)


PLAN = ring.codec(play(0), 1 << 20, 2, binary=True)


@partial(jax.jit, static_argnames="boxes")
def filed(slots: ring.Ring, t: Any, delay: Any, action: Any, boxes: int) -> ring.Ring:
    """Round t files its play and is over."""
    packed = PLAN.pack(play(action))
    slots, place = ring.reserve(slots, jnp.int32(t), jnp.int32(delay), HORIZON, DEPTH, boxes)
    return ring.file(slots, packed, place)


@partial(jax.jit, static_argnames=("boxes", "lanes", "blank"))
def read(slots: ring.Ring, t: Any, boxes: int, lanes: int = LANES, blank: bool = True) -> Any:
    number = ring.number_due(slots, jnp.int32(t), jnp.int32(1), DEPTH)
    row, due = ring.read(slots, jnp.int32(t), number, DEPTH, boxes, lanes)
    return number, ring.arrivals(row, due, PLAN, blank)


def due(slots: ring.Ring, t: int, boxes: int, lanes: int = LANES) -> list[int]:
    """The actions whose losses arrive in round t, in their order."""
    number, arrivals = read(slots, t, boxes, lanes)
    found = arrivals.play.action[arrivals.due].tolist()
    assert len(found) == number
    return found


def empty(boxes: int) -> ring.Ring:
    return ring.empty(PLAN, play(0), DEPTH, boxes, counted=True)


BOXES = pytest.mark.parametrize("boxes", [1, 2, 3, 4, 5])


@BOXES
def test_plays_arrive_in_the_round_they_are_filed_under(boxes: int) -> None:
    slots = filed(filed(empty(boxes), 1, 5, 3, boxes), 2, 4, 1, boxes)
    assert [due(slots, t, boxes) for t in (5, 6, 7)] == [[], [3, 1], []]


@BOXES
@pytest.mark.parametrize("lanes", [1, 2, 3, 8, 30, LANES])
def test_of_many_that_arrive_together_all_do_in_the_order_of_play(boxes: int, lanes: int) -> None:
    """As many as there are lanes: some in boxes, the rest in a list."""
    slots = empty(boxes)
    for t in range(1, lanes + 1):
        slots = filed(slots, t, 50 - t, 100 + t, boxes)
    assert due(slots, 50, boxes, lanes) == list(range(101, 101 + lanes))
    assert due(slots, 50, boxes, LANES) == list(range(101, 101 + lanes))
    assert due(slots, 49, boxes) == due(slots, 51, boxes) == []


@BOXES
def test_two_lists_do_not_mix(boxes: int) -> None:
    slots = empty(boxes)
    for t in range(1, 31):
        slots = filed(slots, t, (40 if t % 3 else 41) - t, t, boxes)
    assert due(slots, 40, boxes) == [t for t in range(1, 31) if t % 3]
    assert due(slots, 41, boxes) == [t for t in range(1, 31) if not t % 3]


@BOXES
@pytest.mark.parametrize("later", [DEPTH, 2**26, 2**29])
@pytest.mark.parametrize("together", [1, 6])
def test_a_slot_that_is_not_used_again_stays_empty(boxes: int, later: int, together: int) -> None:
    """Rounds with the same slot, however far apart: no loss arrives twice."""
    slots = empty(boxes)
    for t in range(1, together + 1):
        slots = filed(slots, t, 20 - t, t, boxes)
    for t in range(together + 1, 21):
        assert due(slots, 20, boxes) == list(range(1, together + 1))
        slots = filed(slots, t, 0, 0, boxes)
    assert due(slots, 20 + later, boxes) == []


@BOXES
def test_a_slot_that_is_used_again_holds_only_what_is_new(boxes: int) -> None:
    slots = empty(boxes)
    for turn in range(3):
        first = DEPTH * turn
        for t in range(1, 11):
            slots = filed(slots, first + t, 20 - t, 1000 * turn + t, boxes)
        for t in range(11, 20):
            slots = filed(slots, first + t, 0, 0, boxes)
        wanted = [1000 * turn + t for t in range(1, 11)]
        assert due(slots, first + 20, boxes) == wanted
        for t in range(20, DEPTH + 1):
            slots = filed(slots, first + t, 0, 0, boxes)


@BOXES
def test_the_longest_delay_comes_back_into_the_slot_of_its_own_round_before_it(boxes: int) -> None:
    """A list's entry is kept under the round that was played: the next use of it comes later."""
    slots = empty(boxes)
    for t in range(1, 300):
        wanted = [t - (DEPTH - 1)] if t > DEPTH - 1 else []
        assert due(slots, t, boxes) == wanted
        slots = filed(slots, t, DEPTH - 1, t, boxes)


@BOXES
def test_what_does_not_wait_is_not_filed(boxes: int) -> None:
    """Delays of 0, negative ones, those past the ring and those that end after the horizon."""
    slots = empty(boxes)
    for t, delay in ((1, 0), (2, -3), (3, DEPTH), (4, 10**6)):
        slots = filed(slots, t, delay, 7, boxes)
    last = int(HORIZON)
    slots = filed(slots, last - 3, 4, 7, boxes)
    assert int(jnp.sum(slots.filed)) == 0  # type: ignore[arg-type]
    assert due(filed(slots, last - 2, 2, 8, boxes), last, boxes) == [8]


@BOXES
def test_random_delays_arrive_as_a_list_of_python_says(boxes: int) -> None:
    generator = np.random.default_rng(boxes)
    slots, waiting = empty(boxes), {}
    for t in range(1, 400):
        assert due(slots, t, boxes) == waiting.pop(t, []), t
        together = 30 - t % 30 if t % 90 < 30 else int(generator.integers(0, DEPTH))
        slots = filed(slots, t, together, t, boxes)
        if together:
            waiting.setdefault(t + together, []).append(t)


@pytest.mark.parametrize("boxes", [1, 2])
def test_what_is_not_due_is_blank(boxes: int) -> None:
    """A lane that was used long ago still holds its play, which nobody may see."""
    slots = filed(filed(empty(boxes), 1, 5, 3, boxes), 2, 4, 1, boxes)
    for t in range(3, 7):
        slots = filed(slots, t, 0, 0, boxes)
    slots = filed(slots, 7, DEPTH - 1, 2, boxes)  # into the same slot
    number, seen = read(slots, 6 + DEPTH, boxes, lanes=4)
    assert number == 1
    assert seen.play.action.tolist() == [2, 0, 0, 0]
    assert seen.play.loss.tolist() == [1.0, 0.0, 0.0, 0.0]
    _, left = read(slots, 6 + DEPTH, boxes, lanes=4, blank=False)
    assert left.play.loss.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert boxes == 1 or left.play.action[1] == 1  # it does lie about


def test_one_arrival_a_round_needs_neither_counts_nor_lists() -> None:
    slots = ring.empty(PLAN, play(0), DEPTH, 1, counted=False)
    assert (slots.filed, slots.lists) == (None, None)
    for t in range(1, 200):
        number = ring.number_due(slots, jnp.int32(t), jnp.int32(7), DEPTH)
        assert int(number) == (t > 7)
        row, due = ring.read(slots, jnp.int32(t), number, DEPTH, 1, 1)
        assert due.tolist() == [t > 7]
        if t > 7:
            assert ring.arrivals(row, due, PLAN).play.action.tolist() == [t - 7]
        packed = PLAN.pack(play(t))
        slots = ring.file(slots, packed, ring.only_place(jnp.int32(t), jnp.int32(7), DEPTH))


def test_the_memory_of_a_ring_does_not_grow_with_its_lanes() -> None:
    """Mailboxes for every lane took 131 kB a run at Laplace(50, 25)."""
    slots = ring.empty(PLAN, play(0), 1024, 5, counted=True)
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(slots)) <= 32_768 * 2


def test_the_code_of_a_row_does_not_grow_with_its_lanes() -> None:
    """A program with a load for each of 1,024 lanes took two minutes to compile."""
    slots = empty(5)

    def length(lanes: int) -> int:
        look = lambda slots, t: ring.read(slots, t, jnp.int32(9), DEPTH, 5, lanes)  # noqa: E731
        return len(jax.make_jaxpr(look)(slots, jnp.int32(1)).jaxpr.eqns)

    assert length(1023) == length(64) < 80
