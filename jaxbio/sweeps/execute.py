"""The blocks of a sweep: played in threads here or by a cluster, counted, kept, saved midway."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

import jax
import numpy as np

from jaxbio.engine.player import (
    Played,
    Player,
    Progress,
    compile_player,
    play_block,
    stops_of,
)
from jaxbio.storage.store import Store
from jaxbio.sweeps import cluster
from jaxbio.sweeps.checkpoint import arrays_of, progress_of
from jaxbio.sweeps.landing import Arrays, Landed, land, points_of, problem, rounds_of
from jaxbio.sweeps.plan import Block, Job, game_of_block
from jaxbio.sweeps.workers import Advance, OutOfTime, bar, in_parallel

Kept = Callable[[int], Arrays]  # number of a block -> its arrays by name


def play_all(
    blocks: list[Block],
    job: Job,
    store: Store | None,
    checkpoint: float,
    workers: int,
    progress: bool,
    backend: str | None = None,
    client: Any = None,
) -> Kept:
    """Play what is missing; what comes back gives each block once where nothing is stored.

    client: of the cluster that plays; None: threads of this process play.
    """
    finished = set() if store is None else store.finished() & set(range(len(blocks)))
    missing = [number for number in range(len(blocks)) if number not in finished]
    rounds = [rounds_of(block, job) for block in blocks]
    ready = sum(rounds[number] for number in finished)
    with bar(sum(rounds), progress, initial=ready) as shown:
        tally = _Tally(shown, rounds, finished)
        team = _Team(blocks, job, store, checkpoint, workers, tally, backend)
        try:
            if client is None:
                team.play(missing)
            elif missing:
                with closing(cluster.play(client, blocks, job, backend, missing)) as arriving:
                    team.receive(arriving)
        except OutOfTime as late:
            late.finals, late.rounds = team.finals(), sum(rounds)
            late.played = sum(tally.counted.values())
            raise
        except KeyboardInterrupt as interrupt:
            if store is not None:
                interrupt.add_note(f"finished blocks are in {store.path}: the same call goes on")
            raise
    team.raise_problems()
    return team.done.pop if store is None else store.load


class _Tally:
    """The bar of a sweep: the rounds of each block once.

    counted: for each block, how many of its rounds the bar shows.
    """

    def __init__(self, shown: Any, rounds: list[int], finished: Iterable[int]) -> None:
        self.shown, self.rounds = shown, rounds
        self.counted = {number: rounds[number] for number in finished}
        self.lock = threading.Lock()

    def played(self, number: int, rounds: int) -> None:
        """So many more rounds of a block have been played."""
        with self.lock:
            self._add(number, rounds)

    def resumed(self, number: int, rounds: int) -> None:
        """So many rounds of a block were there before, and say nothing of the speed."""
        with self.lock:
            if not getattr(self.shown, "disable", True):
                self.shown.initial += rounds
                self.shown.last_print_n += rounds
            self._add(number, rounds)

    def settle(self, number: int) -> None:
        """The block is finished."""
        with self.lock:
            self._add(number, self.rounds[number] - self.counted.get(number, 0))

    def _add(self, number: int, rounds: int) -> None:
        self.counted[number] = self.counted.get(number, 0) + rounds
        self.shown.update(rounds)


class _Team:
    """The workers of this process. done: blocks that are kept in memory; problems: by block."""

    def __init__(
        self,
        blocks: list[Block],
        job: Job,
        store: Store | None,
        checkpoint: float,
        workers: int,
        tally: _Tally,
        backend: str | None,
    ) -> None:
        self.blocks, self.job, self.store = blocks, job, store
        self.checkpoint, self.workers, self.tally = checkpoint, workers, tally
        self.backend = backend
        self.devices = jax.local_devices()
        self.done: dict[int, Arrays] = {}
        self.problems: dict[int, str] = {}

    def play(self, missing: Sequence[int]) -> None:
        """These blocks, in threads on all devices."""
        self._compile(missing)
        turns = {number: turn for turn, number in enumerate(missing)}

        def play(number: int, advance: Advance) -> None:
            self._play(number, self.devices[turns[number] % len(self.devices)], advance)

        for _ in in_parallel(play, missing, self.workers):
            pass

    def receive(self, arriving: Iterable[tuple[int, Landed]]) -> None:
        """Blocks that others play."""
        for number, landed in arriving:
            self._keep(number, landed)
            self.tally.settle(number)

    def finals(self) -> list[tuple[str, np.ndarray]]:
        """Of what is finished: see `OutOfTime`."""
        found = np.full((len(self.job.settings), self.job.runs), np.nan)
        kept = self.done.__getitem__ if self.store is None else self.store.load
        over = self.done.__contains__ if self.store is None else self.store.has
        for number, block in enumerate(self.blocks):
            if over(number):
                found[*block.members.T] = kept(number)["final_regret"]
        return [(one.label, row) for one, row in zip(self.job.settings, found, strict=True)]

    def raise_problems(self) -> None:
        """What showed in flight, after all other blocks are finished."""
        if self.problems:
            first = min(self.problems)
            more = len(self.problems) - 1
            rest = f"; {more} more blocks have such runs" if more else ""
            raise RuntimeError(self.problems[first] + rest)

    def _compile(self, numbers: Sequence[int]) -> None:
        """One program per structure and device, several compiled at once."""
        kinds = {(self.blocks[n].group, self.blocks[n].stacked): self.blocks[n] for n in numbers}
        devices = self.devices[: len(numbers)]
        tasks = [(block, device) for block in kinds.values() for device in devices]

        def compile_one(task: tuple[Block, Any], advance: Advance) -> None:
            block, device = task
            with jax.default_device(device):
                player_of(block, self.backend)

        # More than cores: while some wait for the compiler, the others prepare what it is to do.
        for _ in in_parallel(compile_one, tasks, 2 * self.workers):
            pass

    def _play(self, number: int, device: Any, advance: Advance) -> None:
        advance(0)
        block, between = self.blocks[number], _Between(number, self, advance)
        with jax.default_device(device):
            player = player_of(block, self.backend)
            played = _play_one(player, block, self.job, number, between)
        points = points_of(block, self.job)
        self._keep(number, land(played, player.name, block.members, points, self.job.keep))
        if between.stop:
            raise between.stop

    def _keep(self, number: int, landed: Landed) -> None:
        found = problem(landed.flags, self.blocks[number], self.job)
        if found and self.store is None:
            raise RuntimeError(found)
        if found:  # the others go on, so that nothing of theirs is lost
            self.problems[number] = found
        elif self.store is None:
            self.done[number] = landed.kept
        else:
            self.store.save(number, landed.kept)


class _Between:
    """What happens between two stretches of a block. stop: why to end after the next saving."""

    def __init__(self, number: int, team: _Team, advance: Advance) -> None:
        self.number, self.store, self.every = number, team.store, team.checkpoint
        self.tally, self.advance = team.tally, advance
        self.saved, self.stop = time.monotonic(), None

    def count(self, rounds: int) -> None:
        """Told how many rounds have been played; 0 where nothing can be saved."""
        try:
            self.tally.played(self.number, rounds)
            self.advance(0)
        except KeyboardInterrupt as stop:
            if self.store is None or rounds == 0:
                raise
            self.stop = stop

    def save(self, progress: Progress) -> None:
        """Keep the block's state, if it is time to; end here where that is wanted."""
        assert self.store is not None
        if self.stop or time.monotonic() - self.saved >= self.every:
            self.store.save_progress(self.number, arrays_of(progress))
            self.saved = time.monotonic()
        if self.stop:
            raise self.stop


def player_of(block: Block, backend: str | None) -> Player:
    """What plays a block, compiled once for all that are alike."""
    return compile_player(block.games[0], block.stacked, backend)


def _play_one(player: Player, block: Block, job: Job, number: int, between: _Between) -> Played:
    stops = stops_of(points_of(block, job))
    keys = job.keys(block.members)
    resume, save = None, None
    if between.store is not None:
        resume = progress_of(between.store, number, player, len(block.members))
        save = between.save
    if resume is not None:
        between.tally.resumed(number, resume.last * len(block.members))
    return play_block(player, game_of_block(block), keys, stops, between.count, resume, save)
