"""A block: runs played by one compiled program.

Long games are played side by side, stretch by stretch of rounds. A block of short games is cut into
strips: the program plays one strip from the first round to the last, then the next in the same
memory, so that many runs share the cost of a call, and few of them the cache.

The runs of a block play one game (its numbers are shared by all), or each run a game of its own
(the numbers of the games are stacked, with the runs on the last axis). Which runs share a block is
never part of a result.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import kernel, ring
from jaxbio.batching import runs_last
from jaxbio.core import Array, ignores_empty_lanes
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
from jaxbio.traces import traced

STOPS_PER_CALL = 256
ROUNDS_PER_CALL = 1 << 16  # at most; fewer where they are slow:
SECONDS_PER_CALL = 0.5  # about, between two looks at the host
FIRST_CALL = 1 << 14  # rounds, of a game whose speed is not known yet
CROWDED = 16  # with more lanes a round may take a thousand times longer
FIRST_CROWDED_CALL = 1 << 10
VECTOR = 16  # numbers in the longest vector of a CPU
LARGE = 256  # numbers of a run
PLAYERS_WITH_MEMORY = 8  # older ones give theirs back
SPARE_BYTES = 1 << 28  # of one block: more than that is never kept for the next one
LADDER = (4, 6, 64)  # arrivals of a round: a block takes the first of these that is enough


def stops_of(points: np.ndarray) -> np.ndarray:
    """int32: the recorded rounds, and others often enough that no stretch is long."""
    between = np.arange(ROUNDS_PER_CALL, points[-1], ROUNDS_PER_CALL, dtype=np.int32)
    return np.union1d(points, between).astype(np.int32)


def calls(
    stops: np.ndarray, last: int = 0, first: int | None = None
) -> Iterator[tuple[int, np.ndarray]]:
    """(last round played, next stops [STOPS_PER_CALL]), padded by repeating the last stop.

    first: rounds of the first call. Then calls become as long as whoever plays them can afford,
    and may end on the way to a stop: in a pause, a negative number (see `kernel.at_points`). Where
    a game pauses is never part of a result. None: no call pauses.
    """
    rounds = ROUNDS_PER_CALL if first is None else min(first, ROUNDS_PER_CALL)
    while last < stops[-1]:
        ahead, begun = _next_stops(stops, last, rounds), time.monotonic()
        yield last, ahead
        played, last = abs(int(ahead[-1])) - last, abs(int(ahead[-1]))
        if first is not None:
            rounds = _paced(played, time.monotonic() - begun)


def _next_stops(stops: np.ndarray, last: int, rounds: int) -> np.ndarray:
    """int32 [STOPS_PER_CALL]: what a call of at most so many rounds reaches, or a pause."""
    first = int(np.searchsorted(stops, last, "right"))
    ahead = stops[first : first + STOPS_PER_CALL]
    ahead = ahead[: int(np.searchsorted(ahead, last + rounds, "right"))]
    ahead = ahead if len(ahead) else np.array([-(last + rounds)], np.int32)
    return np.pad(ahead, (0, STOPS_PER_CALL - len(ahead)), mode="edge")


def _paced(rounds: int, seconds: float) -> int:
    """Rounds of the next call, after one of so many that took so long."""
    if seconds > 2 * SECONDS_PER_CALL:
        return max(1, int(rounds * SECONDS_PER_CALL / seconds))
    return min(rounds if seconds > SECONDS_PER_CALL / 2 else 2 * rounds, ROUNDS_PER_CALL)


def is_one_call(stops: np.ndarray) -> bool:
    """Is a game with these stops over within one call?"""
    return len(stops) <= STOPS_PER_CALL and stops[-1] <= ROUNDS_PER_CALL


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
    words = carry.ring.words
    fresh = _begin(game, None, keys.shape[-1], stacked, carry.row is not None)
    carry = _with_words(carry, None)
    carry = jax.tree.map(lambda new, old: jnp.where(last == 0, new, old), fresh, carry)
    return _on(game, keys, _with_words(carry, words), last, stops, loop, stacked)


def _on(
    game: Game, keys: Array, carry: Carry, last: Array, stops: Array, loop: Any, stacked: bool
) -> tuple[Carry, Curve, dict[str, Any]]:
    """Play on from round `last` to the last stop: as `_play`, without a beginning."""
    one_round = _round_of_block(game, keys, stacked)
    carry, curve = kernel.at_points(one_round, take_tally, carry, last, stops, loop)
    facts = runs_last(summary, (stacked, True), keys.shape[-1])(game, carry)
    return carry, curve, facts


def _begin(game: Game, words: Any, runs: int, stacked: bool, ahead: bool) -> Carry:
    """Before the first round, with this memory for the ring: leaves [..., runs].

    What it holds does not matter: old plays count for nothing once `filed` is empty.
    """
    return _with_words(runs_last(partial(begin, ahead=ahead), (stacked,), runs)(game), words)


def _with_words(carry: Carry, words: Any) -> Carry:
    return carry._replace(ring=carry.ring._replace(words=words))


class Memory(NamedTuple):
    """Where strips are played: what one carries, and the curve [strips, stops, runs] and facts
    [strips, runs] of all. What it holds does not matter.
    """

    carry: Carry
    outputs: tuple[Curve, dict[str, Any]]


def _play_strips(
    game: Game, keys: Array, memory: Memory, used: Array, stops: Array, loop: Any, stacked: bool
) -> Memory:
    """Play whole games, one strip of runs after the other, all in the memory of one ring.

    keys: [2, strips, runs]; leaves of a stacked game: [..., strips, runs]; used: int32 [], how many
    strips have anything to play.
    """
    runs = keys.shape[-1]
    ahead = memory.carry.row is not None

    def strip(index: Array, carry: Carry) -> tuple[Carry, tuple[Curve, dict[str, Any]]]:
        mine = _of_strip(game, index) if stacked else game
        carry = _begin(mine, carry.ring.words, runs, stacked, ahead)
        own = _of_strip(keys, index)
        carry, curve, facts = _on(mine, own, carry, jnp.int32(0), stops, lax.fori_loop, stacked)
        return carry, (curve, facts)

    return Memory(*kernel.collect(strip, memory.carry, used, memory.outputs, loop))


def _of_strip(tree: Any, index: Any) -> Any:
    """leaves [..., strips, runs] -> [..., runs]"""
    pick = partial(lax.dynamic_index_in_dim, index=index, axis=-2, keepdims=False)
    return jax.tree.map(pick, tree)


def _round_of_block(game: Game, keys: Array, stacked: bool) -> Callable[[Array, Carry], Carry]:
    """(t, carry) -> carry, for all runs of a block."""
    runs = keys.shape[-1]

    def batched(function: Callable[..., Any], *flags: bool) -> Callable[..., Any]:
        return runs_last(function, (stacked, *flags), runs)

    whole = batched(step, True, False, True)
    first_half = batched(act, True, False, True)
    packed = batched(pack, False, True, True, True)
    second_half = batched(close, False, True, True, True, True)
    fewer = LADDER if ignores_empty_lanes(game.learner) else ()
    ladder = [lanes for lanes in fewer if lanes < game.lanes] + [game.lanes]
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


def make_programs() -> dict[tuple[Any, bool], kernel.Program]:
    """By what they play (`_play` or `_play_strips`), and whether the games are stacked."""
    return {
        (function, stacked): kernel.Program(partial(function, stacked=stacked), donate_argnums=2)
        for function in (_play, _play_strips)
        for stacked in (False, True)
    }


_programs = make_programs()


class Player(NamedTuple):
    """The compiled program of a block of `width` runs, in strips of which one is played at a time.

    memory: the types of what it carries on, a Carry, or a Memory if there are several strips.
    spare: that of finished blocks; the next ones begin in it (fresh memory for a ring costs as much
    as thousands of rounds).
    """

    play: Callable[..., Any]
    memory: Any
    width: int
    strips: int
    stacked: bool
    spare: list[Any]


def compile_player(game: Game, width: int, stacked: bool, strips: int = 1) -> Player:
    """The player of blocks of up to `width` runs of games like this (stacked: leaves [..., width]).

    strips: how many parts of the block are played one after the other, each to its end; for games
    of one call (`is_one_call`) only.
    """
    width = with_room(width, strips)
    game = _widened(game, width) if stacked else game
    key = (kernel.signature(game), width, stacked, strips)
    with _lock:
        player = _players.get(key)
    if player is None:
        with traced(jax.tree.structure(game)):
            player = _new_player(game, width, stacked, strips)
    with _lock:
        _players.pop(key, None)
        _players[key] = player  # the last one is the latest
        for older in list(_players.values())[:-PLAYERS_WITH_MEMORY]:
            older.spare.clear()
    return player


_players: dict[Any, Player] = {}
_lock = threading.Lock()


def give_back_memory() -> None:
    """Free what finished blocks have left for later ones."""
    with _lock:
        for player in _players.values():
            player.spare.clear()


def _new_player(game: Game, width: int, stacked: bool, strips: int) -> Player:
    one = jax.tree.map(lambda x: x[..., 0], game) if stacked else game
    carry = jax.eval_shape(partial(begin, ahead=not _reads_late(one)), one)
    facts = jax.eval_shape(summary, one, carry)
    curve = jax.eval_shape(lambda carry: take_tally(carry)[1], carry)
    runs = width // strips
    function, memory, side = _play, _typed(carry, (), (runs,)), (runs,)
    if strips > 1:
        curves = _typed(curve, (strips, STOPS_PER_CALL), (runs,))
        outputs = curves, _typed(facts, (strips,), (runs,))
        function, memory, side = _play_strips, Memory(memory, outputs), (strips, runs)
    args = (
        _in_strips(game, strips) if stacked else game,
        jax.ShapeDtypeStruct((2, *side), jnp.uint32),
        memory,
        jax.ShapeDtypeStruct((), jnp.int32),
        jax.ShapeDtypeStruct((STOPS_PER_CALL,), jnp.int32),
    )
    program = _programs[function, stacked].executable(*args)
    return Player(program, memory, width, strips, stacked, [])


def _typed(tree: Any, before: tuple[int, ...], after: tuple[int, ...]) -> Any:
    """Types with further axes."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((*before, *x.shape, *after), x.dtype), tree)


def with_room(width: int, strips: int) -> int:
    """A multiple of 16 runs, at least 32, in every strip.

    Over one vector of runs, or part of one, the loops of a round dissolve into straight code. The
    compiler then joins a product and a sum that stand in different loops, and rounds once instead
    of twice: in some runs a last bit would depend on the width.
    """
    vectors = -(-width // (strips * VECTOR))
    return strips * VECTOR * max(2, vectors)


def _widened(tree: Any, width: int) -> Any:
    """leaves [..., n] -> [..., width]: the last run again where there is room."""

    def widen(x: np.ndarray) -> np.ndarray:
        room = width - x.shape[-1]
        return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, room)], mode="edge") if room else x

    return jax.tree.map(widen, tree)


def _in_strips(tree: Any, strips: int) -> Any:
    """leaves [..., width] -> [..., strips, runs] where there is more than one strip."""
    if strips == 1:
        return tree
    return jax.tree.map(lambda x: x.reshape(*x.shape[:-1], strips, -1), tree)


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
    in which one found no lane is played again with twice the lanes, for the runs that need them:
    what the others did with fewer lanes stays.

    keys: uint32 [2, members], of at most as many runs as the player is wide. advance: told how many
    rounds have been played. resume, checkpoint: go on from there; called after each stretch but the
    last.
    """
    played = _play_once(player, game, keys, stops, advance, resume, checkpoint)
    crowded = _crowded(played)
    while crowded.any() and 2 * game.lanes <= ring.MAX_LANES:
        game = dataclasses.replace(game, lanes=2 * game.lanes)
        player = compile_player(game, player.width, player.stacked, player.strips)
        again = _play_once(player, game, keys, stops, lambda rounds: advance(0), None, None)
        chosen = partial(np.where, crowded)
        played = jax.tree.map(chosen, again, played)
        crowded = _crowded(played)
    return played


def _crowded(played: Played) -> np.ndarray:
    """bool [runs]: more lanes would help."""
    return played.info["overflow"] & ~played.info["lost"]


def _play_once(
    player: Player,
    game: Game,
    keys: np.ndarray,
    stops: np.ndarray,
    advance: Callable[[int], None],
    resume: Progress | None,
    checkpoint: Callable[[Progress], None] | None,
) -> Played:
    members = keys.shape[1]
    keys = _widened(keys, player.width)
    game = _widened(game, player.width) if player.stacked else game
    if player.strips == 1:
        played = _play_stretches(player, game, keys, members, stops, advance, resume, checkpoint)
    else:
        played = _play_whole(player, game, keys, members, stops)
        advance(int(stops[-1]) * members)
    return jax.tree.map(lambda x: x[..., :members], played)


def _play_stretches(
    player: Player,
    game: Game,
    keys: np.ndarray,
    members: int,
    stops: np.ndarray,
    advance: Callable[[int], None],
    resume: Progress | None,
    checkpoint: Callable[[Progress], None] | None,
) -> Played:
    first, carry, pieces = resume or Progress(0, _memory(player), [])
    facts: dict[str, Any] = {}
    pace = FIRST_CALL if game.lanes <= CROWDED else FIRST_CROWDED_CALL
    for last, ahead in calls(stops, first, pace):
        carry, curve, facts = player.play(game, keys, carry, np.int32(last), ahead)
        kept, now = len(np.unique(ahead[ahead > 0])), abs(int(ahead[-1]))
        pieces.append(jax.tree.map(lambda x, n=kept: np.asarray(x)[:n].copy(), curve))
        advance((now - last) * members)
        if checkpoint is not None and now != stops[-1]:
            checkpoint(Progress(now, carry, pieces))
    info = {name: _on_host(fact) for name, fact in facts.items()}
    _spare(player, carry)
    return Played(jax.tree.map(lambda *xs: np.concatenate(xs), *pieces), info)


def _play_whole(
    player: Player, game: Game, keys: np.ndarray, members: int, stops: np.ndarray
) -> Played:
    """All strips in one call."""
    ((_, ahead),) = calls(stops)
    used = -(-members * player.strips // player.width)
    game = _in_strips(game, player.strips) if player.stacked else game
    keys = _in_strips(keys, player.strips)
    memory = player.play(game, keys, _memory(player), np.int32(used), ahead)
    curve, facts = memory.outputs
    # Copies: the memory will be used again.
    increments = jax.tree.map(lambda x: _side_by_side(np.asarray(x)[:used, : len(stops)]), curve)
    info = {name: _on_host(fact)[:used].reshape(-1).copy() for name, fact in facts.items()}
    _spare(player, memory)
    return Played(increments, info)


def _side_by_side(strips: np.ndarray) -> np.ndarray:
    """[strips, stops, runs] -> [stops, strips * runs]"""
    return np.concatenate(list(strips), axis=1)


def _spare(player: Player, memory: Any) -> None:
    """Keep the memory of a finished block for the next one."""
    if sum(leaf.nbytes for leaf in jax.tree.leaves(memory)) <= SPARE_BYTES:
        player.spare.append(memory)


def _memory(player: Player) -> Any:
    """Somewhere to begin: the contents do not matter."""
    try:
        return player.spare.pop()
    except IndexError:
        return jax.tree.map(lambda x: jax.device_put(np.zeros(x.shape, x.dtype)), player.memory)


def _on_host(fact: Any) -> np.ndarray:
    """[runs]; a Wide becomes the int64 that it stands for."""
    if isinstance(fact, Wide):
        high, low = (np.asarray(word).astype(np.int64) for word in fact)
        return (high << WIDE_BITS) + low
    return np.asarray(fact)
