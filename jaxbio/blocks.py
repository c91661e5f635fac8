"""A block: runs played side by side by one compiled program, stretch by stretch of rounds.

The runs of a block play one game (its numbers are shared by all), or each run a game of its own
(the numbers of the games are stacked, with the runs on the last axis). Which runs share a block is
never part of a result.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import kernel, ring
from jaxbio.batching import runs_last
from jaxbio.core import Array
from jaxbio.ops import WIDE_BITS, Wide
from jaxbio.rollout import (
    Carry,
    Curve,
    Game,
    act,
    begin,
    close,
    learn_late,
    pack,
    step,
    summary,
    take_tally,
)

STOPS_PER_CALL = 256
ROUNDS_PER_CALL = 1 << 16  # bounds the time between two looks at the host
LARGE = 256  # numbers of a run
PLAYERS_WITH_MEMORY = 8  # older ones give theirs back
LADDER = (4, 6)  # arrivals of a round: a block takes the first of these that is enough


def stops_of(points: np.ndarray) -> np.ndarray:
    """int32: the recorded rounds, and others often enough that no stretch is long."""
    between = np.arange(ROUNDS_PER_CALL, points[-1], ROUNDS_PER_CALL, dtype=np.int32)
    return np.union1d(points, between).astype(np.int32)


def calls(stops: np.ndarray, last: int = 0) -> Iterator[tuple[int, np.ndarray]]:
    """(last round played, next stops [STOPS_PER_CALL]), padded by repeating the last stop."""
    first = int(np.searchsorted(stops, last, "right"))
    while first < len(stops):
        ahead = stops[first : first + STOPS_PER_CALL]
        ahead = ahead[: max(1, int(np.searchsorted(ahead, last + ROUNDS_PER_CALL, "right")))]
        yield last, np.pad(ahead, (0, STOPS_PER_CALL - len(ahead)), mode="edge")
        last, first = int(ahead[-1]), first + len(ahead)


def stack(games: list[Game]) -> Game:
    """One game per run: leaves [..., runs]. Several runs may have the same one."""
    different = {id(game): game for game in games}
    places = {game: place for place, game in enumerate(different)}
    mine = [places[id(game)] for game in games]
    return jax.tree.map(lambda *leaves: np.stack(leaves, axis=-1)[..., mine], *different.values())


def _play(
    game: Game, keys: Array, carry: Carry, last: Array, stops: Array, loop: Any, stacked: bool
) -> tuple[Carry, Curve, dict[str, Any]]:
    """Play on from round `last`; from the beginning where that is 0, whatever carry holds.

    keys: [2, runs]; leaves of carry: [..., runs], of a stacked game too; the curve: increments
    [stops, runs]; the facts so far: [runs].
    """
    runs = keys.shape[-1]
    fresh = runs_last(partial(begin, ahead=carry.row is not None), (stacked,), runs)(game)
    words = carry.ring.words  # as they are: old plays count for nothing once `filed` is empty
    fresh, carry = (c._replace(ring=c.ring._replace(words=None)) for c in (fresh, carry))
    carry = jax.tree.map(lambda new, old: jnp.where(last == 0, new, old), fresh, carry)
    carry = carry._replace(ring=carry.ring._replace(words=words))
    one_round = _round_of_block(game, keys, stacked)
    carry, curve = kernel.at_points(one_round, take_tally, carry, last, stops, loop)
    return carry, curve, runs_last(summary, (stacked, True), runs)(game, carry)


def _round_of_block(game: Game, keys: Array, stacked: bool) -> Callable[[Array, Carry], Carry]:
    """(t, carry) -> carry, for all runs of a block."""
    runs = keys.shape[-1]

    def batched(function: Callable[..., Any], *flags: bool) -> Callable[..., Any]:
        return runs_last(function, (stacked, *flags), runs)

    whole = batched(step, True, False, True)
    first_half = batched(act, True, False, True)
    packed = batched(pack, False, True, True, True)
    second_half = batched(close, False, True, True, True, True)
    ladder = [lanes for lanes in LADDER if lanes < game.lanes] + [game.lanes]
    late = [
        batched(partial(learn_late, lanes=lanes), False, True, True, True, True) for lanes in ladder
    ]

    def one_round(t: Array, carry: Carry) -> Carry:
        if carry.row is not None:
            return whole(game, keys, t, carry)[0]
        acted = first_half(game, keys, t, carry)
        most = jnp.max(carry.number)
        rung = sum(((most > lanes).astype(jnp.int32) for lanes in ladder[:-1]), jnp.int32(0))
        operands = (game, t, carry.learner, acted, carry.ring.words, carry.number)
        learned, ticket, seen = lax.switch(rung, late, *operands)
        # Never true. What is filed must depend on what was read: else XLA copies the ring.
        acted = acted._replace(delay=jnp.where(seen < 0, 0, acted.delay))
        play = packed(game, t, carry.ring, acted, ticket)
        slots = ring.write_one_by_one(carry.ring, *play)
        return second_half(game, t, carry, acted, learned, slots)

    return one_round


_programs = {
    stacked: kernel.Program(partial(_play, stacked=stacked), donate_argnums=2)
    for stacked in (False, True)
}


class Player(NamedTuple):
    """The compiled program of a block of `width` runs.

    carry: the types of what it carries on. spare: what finished blocks carried; the next ones
    begin in their memory (fresh memory for a ring costs as much as thousands of rounds).
    """

    play: Callable[..., tuple[Carry, Curve, dict[str, Any]]]
    carry: Carry
    width: int
    stacked: bool
    spare: list[Carry]


def compile_player(game: Game, width: int, stacked: bool) -> Player:
    """The player of blocks of `width` runs of games like this (stacked: leaves [..., width])."""
    key = (kernel.signature(game), width, stacked)
    with _lock:
        player = _players.get(key)
    player = player or _new_player(game, width, stacked)
    with _lock:
        _players.pop(key, None)
        _players[key] = player  # the last one is the latest
        for older in list(_players.values())[:-PLAYERS_WITH_MEMORY]:
            older.spare.clear()
    return player


_players: dict[Any, Player] = {}
_lock = threading.Lock()


def _new_player(game: Game, width: int, stacked: bool) -> Player:
    one = jax.tree.map(lambda x: x[..., 0], game) if stacked else game
    shapes = jax.eval_shape(partial(begin, ahead=not _reads_late(one)), one)
    carry = jax.tree.map(lambda x: jax.ShapeDtypeStruct((*x.shape, width), x.dtype), shapes)
    args = (
        game,
        jax.ShapeDtypeStruct((2, width), jnp.uint32),
        carry,
        jax.ShapeDtypeStruct((), jnp.int32),
        jax.ShapeDtypeStruct((STOPS_PER_CALL,), jnp.int32),
    )
    return Player(_programs[stacked].executable(*args), carry, width, stacked, [])


def _reads_late(game: Game) -> bool:
    """Are arrivals read in the round itself, only as many as there are?

    Worth it in native loops, unless the learner keeps a large array: XLA copies such an array in
    every round where branches of a conditional update it.
    """
    if game.lanes == 1 or not kernel.is_available():
        return False
    key, t = np.zeros(2, np.uint32), np.int32(1)
    shapes = jax.eval_shape(begin, game)
    if any(leaf.size >= LARGE for leaf in jax.tree.leaves(shapes.learner)):
        return False
    return kernel.is_emitted(jax.make_jaxpr(step)(game, key, t, shapes).jaxpr)


class Progress(NamedTuple):
    """A block half played: up to round `last`. pieces: the increments of each stretch so far."""

    last: int
    carry: Any
    pieces: list[Curve]


class Played(NamedTuple):
    """A block: increments [stops, runs] of regret and loss, and the facts [runs]."""

    curve: Curve
    info: dict[str, np.ndarray]


def play_block(
    player: Player,
    game: Game,
    keys: np.ndarray,
    stops: np.ndarray,
    advance: Callable[[int], None],
    resume: Progress | None = None,
    checkpoint: Callable[[Progress], None] | None = None,
) -> Played:
    """All rounds of one block.

    How many losses arrive together is bounded only in probability where delays are random. A block
    in which one found no lane is played again with twice the lanes: no result depends on that.

    keys: uint32 [2, width]. advance: told how many rounds have been played. resume, checkpoint:
    go on from there; called after each stretch but the last.
    """
    played = _play_once(player, game, keys, stops, advance, resume, checkpoint)
    while played.info["overflow"].any() and 2 * game.lanes <= ring.MAX_LANES:
        game = dataclasses.replace(game, lanes=2 * game.lanes)
        player = compile_player(game, player.width, player.stacked)
        played = _play_once(player, game, keys, stops, lambda rounds: advance(0), None, None)
    return played


def _play_once(
    player: Player,
    game: Game,
    keys: np.ndarray,
    stops: np.ndarray,
    advance: Callable[[int], None],
    resume: Progress | None,
    checkpoint: Callable[[Progress], None] | None,
) -> Played:
    first, carry, pieces = resume or Progress(0, _memory(player), [])
    facts: dict[str, Any] = {}
    for last, ahead in calls(stops, first):
        carry, curve, facts = player.play(game, keys, carry, np.int32(last), ahead)
        kept = len(np.unique(ahead))
        pieces.append(jax.tree.map(lambda x, n=kept: np.asarray(x)[:n].copy(), curve))
        advance((int(ahead[-1]) - last) * player.width)
        if checkpoint is not None and ahead[-1] != stops[-1]:
            checkpoint(Progress(int(ahead[-1]), carry, pieces))
    info = {name: _on_host(fact) for name, fact in facts.items()}
    player.spare.append(carry)
    return Played(jax.tree.map(lambda *xs: np.concatenate(xs), *pieces), info)


def _memory(player: Player) -> Carry:
    """Somewhere to begin: the contents do not matter."""
    try:
        return player.spare.pop()
    except IndexError:
        return jax.tree.map(lambda x: jax.device_put(np.zeros(x.shape, x.dtype)), player.carry)


def _on_host(fact: Any) -> np.ndarray:
    """[runs]; a Wide becomes the int64 that it stands for."""
    if isinstance(fact, Wide):
        high, low = (np.asarray(word).astype(np.int64) for word in fact)
        return (high << WIDE_BITS) + low
    return np.asarray(fact)
