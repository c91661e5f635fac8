"""A block: runs that are played together, call by call, by one back-end.

The runs of a block play one game (its numbers are shared by all), or each run a game of its own
(the numbers of the games are stacked, with the runs on the last axis). Which runs share a block,
and where its calls end, is never part of a result.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbio.engine import ring
from jaxbio.engine.backends import choice
from jaxbio.engine.code.traces import code_of, settings, traced
from jaxbio.engine.rules import GAME, Rules
from jaxbio.ops import WIDE_BITS, Wide

ROUNDS_PER_CALL = 1 << 16  # of a run, at most; fewer where they are slow:
SECONDS_PER_CALL = 0.5  # about, between two looks at the host
CROWDED = 16  # with more lanes a round may take a hundred times longer
SLOWER = 64


def stops_of(points: np.ndarray) -> np.ndarray:
    """int32: the recorded rounds, and others often enough that no stretch is long."""
    between = np.arange(ROUNDS_PER_CALL, points[-1], ROUNDS_PER_CALL, dtype=np.int32)
    return np.union1d(points, between).astype(np.int32)


def calls(
    stops: np.ndarray, last: int = 0, first: int | None = None
) -> Iterator[tuple[int, np.ndarray]]:
    """(last round played, next stops).

    first: rounds of the first call. Then calls become as long as whoever plays them can afford,
    and may end on the way to a stop: in a pause, a negative number (see `recording.at_points`).
    Where a game pauses is never part of a result. None: no call pauses.
    """
    rounds = ROUNDS_PER_CALL if first is None else min(first, ROUNDS_PER_CALL)
    while last < stops[-1]:
        ahead, begun = _next_stops(stops, last, rounds), time.monotonic()
        yield last, ahead
        played, last = abs(int(ahead[-1])) - last, abs(int(ahead[-1]))
        if first is not None:
            rounds = _paced(played, time.monotonic() - begun)


def _next_stops(stops: np.ndarray, last: int, rounds: int) -> np.ndarray:
    """int32: what a call of at most so many rounds reaches, or a pause."""
    first = int(np.searchsorted(stops, last, "right"))
    ahead = stops[first : int(np.searchsorted(stops, last + rounds, "right"))]
    return ahead if len(ahead) else np.array([-(last + rounds)], np.int32)


def _paced(rounds: int, seconds: float) -> int:
    """Rounds of the next call, after one of so many that took so long."""
    if seconds > 2 * SECONDS_PER_CALL:
        return max(1, int(rounds * SECONDS_PER_CALL / seconds))
    return min(rounds if seconds > SECONDS_PER_CALL / 2 else 2 * rounds, ROUNDS_PER_CALL)


def stack(trees: Sequence[Any]) -> Any:
    """One game per run: leaves [..., runs]. Several runs may have the same one."""
    trees = list(trees)  # which may be made on the way
    different = {id(tree): tree for tree in trees}
    places = dict(zip(different, range(len(different)), strict=True))
    mine = [places[id(tree)] for tree in trees]
    return jax.tree.map(lambda *leaves: np.stack(leaves, axis=-1)[..., mine], *different.values())


class Player(NamedTuple):
    """machine: plays (see `backends`); outputs, facts: the forms of what it gives, for one run;
    why: this machine and no other.
    """

    machine: Any
    outputs: Any
    facts: Any
    rules: Rules
    stacked: bool
    backend: str | None
    why: str

    @property
    def name(self) -> str:
        """The name of the back-end that plays."""
        return self.machine.name


def compile_player(
    tree: Any, stacked: bool = False, backend: str | None = None, rules: Rules = GAME
) -> Player:
    """The player of games like this one, made once for all of them. stacked: runs of a block bring
    games of their own.
    """
    key = (signature(tree), stacked, backend, id(rules))
    with _lock:
        player = _players.get(key)
    if player is None:
        with traced(jax.tree.structure(tree)):
            carry = jax.eval_shape(rules.begin, tree)
            outputs = jax.eval_shape(lambda carry: rules.take(carry)[1], carry)
            facts = jax.eval_shape(rules.summary, tree, carry)
            machine, why = choice.make(rules, tree, stacked, backend)
            player = Player(machine, outputs, facts, rules, stacked, backend, why)
    with _lock:
        _players[key] = player
    return player


_players: dict[Any, Player] = {}
_lock = threading.Lock()


def signature(tree: Any) -> Any:
    """What decides which compiled program serves a tree: its form, the code that it brings along as
    it is now, what is set in JAX, and where it will run.
    """
    structure, types = form(tree)
    device = str(getattr(jax.config, "jax_default_device", None))
    return structure, types, code_of(structure), *settings().values(), device


def form(tree: Any) -> Any:
    """The structure and types of a tree: within one call, what decides the program."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple([(leaf.shape, leaf.dtype) for leaf in leaves])


class Progress(NamedTuple):
    """A block half played: up to round `last`. pieces: the increments of each call so far."""

    last: int
    state: Any
    pieces: list[Any]


class Played(NamedTuple):
    """A block: increments between stops, leaves [stops, ..., runs], and the facts [runs, ...]."""

    curve: Any
    info: dict[str, np.ndarray]


def play_block(
    player: Player,
    game: Any,
    keys: np.ndarray,
    stops: np.ndarray,
    advance: Callable[[int], None],
    resume: Progress | None = None,
    checkpoint: Callable[[Progress], None] | None = None,
) -> Played:
    """All rounds of one block.

    How many losses arrive together is bounded only in probability where delays are random. A block
    in which a round had too few lanes is played again with twice as many, for the runs that need
    them: what the others did with fewer lanes stays.

    keys: uint32 [2, runs]. advance: told how many rounds have been played. resume, checkpoint: go
    on from there; called after each call but the last.
    """
    played = play_once(player, game, keys, stops, advance, resume, checkpoint)
    crowded = _crowded(played)
    while crowded.any() and 2 * game.lanes <= ring.MAX_LANES:
        game = dataclasses.replace(game, lanes=2 * game.lanes)
        one = jax.tree.map(lambda x: x[..., 0], game) if player.stacked else game
        player = compile_player(one, player.stacked, player.backend)
        again = play_once(player, game, keys, stops, lambda rounds: advance(0))
        curve = jax.tree.map(partial(np.where, crowded), again.curve, played.curve)
        info = {name: fact.copy() for name, fact in played.info.items()}
        for name, fact in again.info.items():
            info[name][crowded] = fact[crowded]
        played = Played(curve, info)
        crowded = _crowded(played)
    return played


def _crowded(played: Played) -> np.ndarray:
    """bool [runs]: more lanes would help."""
    return played.info["overflow"] & ~played.info["lost"]


def play_once(
    player: Player,
    tree: Any,
    keys: np.ndarray,
    stops: np.ndarray,
    advance: Callable[[int], None],
    resume: Progress | None = None,
    checkpoint: Callable[[Progress], None] | None = None,
) -> Played:
    """All rounds of one block, call by call."""
    runs, numbers = keys.shape[1], jax.tree.leaves(tree)
    first, state, pieces = resume or Progress(0, None, [])
    facts: list[np.ndarray] = []
    for last, ahead in calls(stops, first, first_call(player, tree, runs)):
        if state is None and (last or ahead[-1] != stops[-1]):
            state = player.machine.fresh(runs)
        state, outputs, facts = player.machine.play(numbers, keys, state, last, ahead)
        now = abs(int(ahead[-1]))
        if ahead[-1] > 0:
            pieces.append(_formed(player.outputs, outputs))
        advance((now - last) * runs)
        if checkpoint is not None and now != stops[-1]:
            checkpoint(Progress(now, state, pieces))
    named = _formed(player.facts, facts)
    info = {name: _on_host(fact) for name, fact in named.items()}
    return Played(jax.tree.map(_joined, *pieces), info)


def _joined(first: np.ndarray, *more: np.ndarray) -> np.ndarray:
    return np.concatenate([first, *more]) if more else first


def first_call(player: Player, tree: Any, runs: int) -> int:
    """Rounds of the first call, whose speed is not known yet."""
    crowded = getattr(tree, "lanes", 1) > CROWDED
    return max(1, player.machine.pace // (runs * (SLOWER if crowded else 1)))


def _formed(shapes: Any, numbers: list[np.ndarray]) -> Any:
    """[..., runs] of every number -> leaves [..., (shape), runs]."""
    left = iter(numbers)

    def leaf(shape: Any) -> np.ndarray:
        if not shape.shape:
            return next(left)
        rows = np.stack([next(left) for _ in range(math.prod(shape.shape))], axis=-2)
        return rows.reshape(*rows.shape[:-2], *shape.shape, rows.shape[-1])

    return jax.tree.map(leaf, shapes)


def _on_host(fact: Any) -> np.ndarray:
    """[runs], or [runs, ...] of an array; a Wide becomes the int64 that it stands for."""
    if isinstance(fact, Wide):
        high, low = (np.asarray(word).astype(np.int64) for word in fact)
        return (high << WIDE_BITS) + low
    return np.moveaxis(np.asarray(fact), -1, 0)
