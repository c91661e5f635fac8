"""The ring by itself: what is filed arrives once, however long the game."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbio import ring
from jaxbio.core import Play, float_dtype

DEPTH, LANES = 64, 2
HORIZON = jnp.int32(2**30)


def play(action: int) -> Play:
    return Play(jnp.int32(action), jnp.int32(0), jnp.ones((), float_dtype()), None)


PLAN = ring.codec(play(0), 4, 2, binary=True)


def filed(slots: ring.Ring, t: int, delay: int, action: int) -> ring.Ring:
    """Round t files its play and is over."""
    place = ring.place(slots, jnp.int32(t), jnp.int32(delay), HORIZON, DEPTH, LANES)
    return ring.turn(ring.write(slots, PLAN.pack(play(action)), *place), jnp.int32(t))


def due(slots: ring.Ring, t: int) -> list[int]:
    """The actions whose losses arrive in round t, in their order."""
    number = ring.number_due(slots, jnp.int32(t), jnp.int32(1))
    row = ring.row(slots.words, jnp.int32(t), DEPTH, LANES)
    return ring.arrivals(row, PLAN, number).play.action[: int(number)].tolist()


@pytest.fixture
def empty() -> ring.Ring:
    return ring.empty(PLAN, play(0), DEPTH, LANES, counted=True)


def test_plays_arrive_in_the_round_they_are_filed_under(empty: ring.Ring) -> None:
    slots = filed(filed(empty, 1, 5, 3), 2, 4, 1)
    assert [due(slots, t) for t in (5, 6, 7)] == [[], [3, 1], []]
    assert not slots.overflow


@pytest.mark.parametrize("later", [DEPTH, 2**26, 2**29])
def test_a_slot_that_is_not_used_again_stays_empty(empty: ring.Ring, later: int) -> None:
    """Rounds with the same slot, however far apart: no loss arrives twice."""
    slots = filed(empty, 1, 5, 3)
    for t in range(2, 7):
        assert due(slots, 6) == [3]
        slots = filed(slots, t, 0, 0)
    assert due(slots, 6 + later) == []


def test_a_full_slot_raises_the_flag(empty: ring.Ring) -> None:
    slots = filed(filed(empty, 1, 5, 3), 2, 4, 1)
    assert filed(slots, 3, 3, 2).overflow


def test_what_is_not_due_is_blank(empty: ring.Ring) -> None:
    """A lane that was used long ago still holds its play, which nobody may see."""
    slots = filed(filed(empty, 1, 5, 3), 2, 4, 1)
    row = ring.row(slots.words, jnp.int32(6), DEPTH, LANES)
    play = ring.arrivals(row, PLAN, jnp.int32(1)).play
    assert (play.action.tolist(), play.loss.tolist()) == ([3, 0], [1.0, 0.0])
    assert ring.arrivals(row, PLAN, jnp.int32(1), blank=False).play.action.tolist() == [3, 1]


@pytest.mark.parametrize("lanes", [2, ring.UNROLLED_LANES, ring.UNROLLED_LANES + 1, 300])
def test_a_row_is_read_lane_by_lane(lanes: int) -> None:
    """Of a ring with 300 lanes, whose entry [lane, slot] holds 1000 lane + slot."""
    entries = 1000 * jnp.arange(300)[:, None] + jnp.arange(DEPTH)
    words = [entries.reshape(-1, 1), jnp.stack([entries, -entries], -1).reshape(-1, 2)]
    narrow, wide = ring.row(words, jnp.int32(3 * DEPTH + 7), DEPTH, lanes)
    expected = 1000 * np.arange(lanes) + 7
    np.testing.assert_array_equal(narrow, expected[:, None])
    np.testing.assert_array_equal(wide, np.stack([expected, -expected], 1))


def test_the_code_of_a_row_does_not_grow_with_its_lanes() -> None:
    """A program with a load for each of 1,024 lanes took two minutes to compile."""
    words = [jax.ShapeDtypeStruct((1024 * DEPTH, 2), jnp.int32)]

    def length(lanes: int) -> int:
        read = lambda words, t: ring.row(words, t, DEPTH, lanes)  # noqa: E731
        return len(jax.make_jaxpr(read)(words, jnp.int32(1)).jaxpr.eqns)

    assert length(1023) == length(64) < 20
