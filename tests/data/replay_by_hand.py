"""The oracle of replays, in plain Python: lists, and a loop over rows that are accepted or not.

Nothing here imports jaxbio or JAX: orders of rows are drawn from threefry as docs say, and learners
are those of `reference`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import reference

WORD = 2**32
ORDER = 4 << 24  # the purpose of a word in threefry's counter
TURNS = 24


class Row(NamedTuple):
    """A row of a log. delay: None where the loss never comes."""

    action: int
    state: int
    loss: float
    delay: int | None


class Replayed(NamedTuple):
    """One entry per accepted row; skipped: how many rows were not."""

    actions: list[int]
    losses: list[float]
    skipped: int


def own_word(word: int, index: int) -> int:
    word = (word + index * 0x9E3779B9) % WORD
    word = (word ^ (word >> 16)) * 0x7FEB352D % WORD
    word = (word ^ (word >> 15)) * 0x846CA68B % WORD
    return word ^ (word >> 16)


def order_of(key: tuple[int, int], pile: int, size: int) -> list[int]:
    """Where the places 0, 1, ... of a pile go in the run with this key."""
    pivots, coins = reference.threefry(key, (0, pile | ORDER))
    found = []
    for place in range(size):
        x = place
        for turn in range(TURNS):
            other = (own_word(pivots, turn) * size // WORD - x) % size
            if own_word(own_word(coins, turn), max(x, other)) >> 31:
                x = other
        found.append(x)
    return found


def laid_out(
    rows: Sequence[Row], num_actions: int, rounds: int, orders: Sequence[Sequence[int]]
) -> list[Row]:
    """Rows as a replay goes through them: one of every action for each round."""
    piles = [[row for row in rows if row.action == a] for a in range(num_actions)]
    return [piles[a][orders[a][t]] for t in range(rounds) for a in range(num_actions)]


def replay(
    spec: reference.Spec,
    rows: Sequence[Row],
    num_actions: int,
    num_states: int,
    rounds: int,
    uniforms: Sequence[Any],
) -> Replayed:
    """Go through rows; accept the first of each round that has the action which was chosen."""
    learner = reference.build(spec, num_actions, num_states, rounds)
    accepted: list[Row] = []
    due: dict[int, list[int]] = {}
    skipped = 0
    for t in range(1, rounds + 1):
        action = learner.act(t, uniforms[t - 1], None).action
        for row in rows[(t - 1) * num_actions : t * num_actions]:
            if row.action != action:
                skipped += 1
                continue
            learner.played(t, action, row.state)
            accepted.append(row)
            if row.delay is not None:
                due.setdefault(t + row.delay, []).append(t)
        feedback = [
            reference.Feedback(j, accepted[j - 1].action, accepted[j - 1].state,
                               accepted[j - 1].loss)
            for j in due.get(t, [])
        ]  # fmt: skip
        learner.feed(t, feedback)
    return Replayed([row.action for row in accepted], [row.loss for row in accepted], skipped)
