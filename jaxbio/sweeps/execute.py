"""The blocks of a sweep: played, counted, saved on their way, and divided among processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np

from jaxbio import checks
from jaxbio.engine.player import (
    Played,
    Player,
    Progress,
    compile_player,
    play_block,
    stack,
    stops_of,
)
from jaxbio.engine.round import Curve
from jaxbio.storage.store import Store
from jaxbio.sweeps.claims import Claims
from jaxbio.sweeps.moments import Moments, moments
from jaxbio.sweeps.plan import Block, Job, game_of_block
from jaxbio.sweeps.result import at_recorded, running_sum
from jaxbio.sweeps.workers import Advance, OutOfTime, bar, in_parallel

LOOK = 1.0  # seconds between two looks at what other processes have saved
WAIT = 0.2  # seconds between two tries to find a block that nobody plays

Arrays = dict[str, np.ndarray]
Kept = Callable[[int], Arrays]  # number of a block -> its arrays by name


def play_all(
    blocks: list[Block],
    job: Job,
    store: Store | None,
    checkpoint: float,
    processes: tuple[int, int],
    workers: int,
    progress: bool,
    backend: str | None = None,
) -> Kept:
    """Play what is missing; what comes back gives each block once where nothing is stored."""
    index, count = processes
    finished = set() if store is None else store.finished() & set(range(len(blocks)))
    rounds = [_rounds(block, job) for block in blocks]
    claims = Claims(store.claims, index) if store is not None and count > 1 else None
    ready = sum(rounds[number] for number in finished)
    with claims or nullcontext(), bar(sum(rounds), progress, initial=ready) as shown:
        tally = _Tally(shown, rounds, finished, store)
        team = _Team(blocks, job, store, claims, checkpoint, workers, tally, backend)
        mine = list(range(index, len(blocks), count))
        others = [number for number in range(len(blocks)) if number % count != index]
        try:
            team.play(mine)
            team.play_rest(others[::-1] + mine)  # from the end that the others reach last
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
    """The bar of a sweep: the rounds of each block once, whoever plays them.

    counted: for each block, how many of its rounds the bar shows.
    """

    def __init__(
        self, shown: Any, rounds: list[int], finished: Iterable[int], store: Store | None
    ) -> None:
        self.shown, self.rounds, self.store = shown, rounds, store
        self.counted = {number: rounds[number] for number in finished}
        self.looked, self.lock = time.monotonic(), threading.Lock()

    def played(self, number: int, rounds: int) -> None:
        """So many more rounds of a block have been played."""
        with self.lock:
            self._add(number, rounds)
        if self.store is not None and time.monotonic() - self.looked > LOOK:
            self.look()

    def resumed(self, number: int, rounds: int) -> None:
        """So many rounds of a block were there before, and say nothing of the speed."""
        with self.lock:
            if not getattr(self.shown, "disable", True):
                self.shown.initial += rounds
                self.shown.last_print_n += rounds
            self._add(number, rounds)

    def settle(self, numbers: Iterable[int]) -> None:
        """These blocks are finished, by whomever."""
        with self.lock:
            for number in numbers:
                self._add(number, self.rounds[number] - self.counted.get(number, 0))

    def look(self) -> None:
        """Count what others have finished."""
        self.looked = time.monotonic()
        if self.store is not None:
            self.settle(self.store.finished() & set(range(len(self.rounds))))

    def _add(self, number: int, rounds: int) -> None:
        self.counted[number] = self.counted.get(number, 0) + rounds
        self.shown.update(rounds)


class _SavedElsewhere(Exception):  # noqa: N818
    """Another process has finished the block that is being played."""


class _Team:
    """The workers of this process. done: blocks that are kept in memory; problems: by block."""

    def __init__(
        self,
        blocks: list[Block],
        job: Job,
        store: Store | None,
        claims: Claims | None,
        checkpoint: float,
        workers: int,
        tally: _Tally,
        backend: str | None,
    ) -> None:
        self.blocks, self.job, self.store, self.claims = blocks, job, store, claims
        self.checkpoint, self.workers, self.tally = checkpoint, workers, tally
        self.backend = backend
        self.devices = jax.local_devices()
        self.compiled: set[Any] = set()
        self.done: dict[int, Arrays] = {}
        self.problems: dict[int, str] = {}

    def is_over(self, number: int) -> bool:
        stored = self.store is not None and self.store.has(number)
        return stored or number in self.done or number in self.problems

    def play(self, numbers: Sequence[int]) -> None:
        """Those of these blocks that are missing and that no other process is playing."""
        missing = [number for number in numbers if not self.is_over(number)]
        self._compile(missing)
        turns = {number: turn for turn, number in enumerate(missing)}

        def play(number: int, advance: Advance) -> None:
            self._play(number, self.devices[turns[number] % len(self.devices)], advance)

        for _ in in_parallel(play, missing, self.workers):
            pass

    def play_rest(self, numbers: Sequence[int]) -> None:
        """These blocks too; wait for those that others are playing."""
        while not all(self.is_over(number) for number in numbers):
            self.play(numbers)
            self.tally.look()
            if not all(self.is_over(number) for number in numbers):
                time.sleep(WAIT)
        self.tally.look()

    def finals(self) -> list[tuple[str, np.ndarray]]:
        """Of what is finished: see `OutOfTime`."""
        found = np.full((len(self.job.settings), self.job.runs), np.nan)
        kept = self.done.__getitem__ if self.store is None else self.store.load
        for number, block in enumerate(self.blocks):
            if self.is_over(number) and number not in self.problems:
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
        devices = self.devices[: len(numbers)]
        kinds = {(self.blocks[n].group, self.blocks[n].stacked): self.blocks[n] for n in numbers}
        tasks = [
            (kind, block, device)
            for kind, block in kinds.items()
            for device in devices
            if (kind, device) not in self.compiled
        ]

        def compile_one(task: tuple[Any, Block, Any], advance: Advance) -> None:
            _, block, device = task
            with jax.default_device(device):
                player_of(block, self.backend)

        for (kind, _, device), _ in in_parallel(compile_one, tasks, self.workers):
            self.compiled.add((kind, device))

    def _play(self, number: int, device: Any, advance: Advance) -> None:
        advance(0)
        if self.is_over(number) or (self.claims and not self.claims.take(number)):
            return
        block, between = self.blocks[number], _Between(number, self, advance)
        try:
            with jax.default_device(device):
                player = player_of(block, self.backend)
                played = _play_one(player, block, self.job, number, between)
            self._keep(number, played, player.name)
        except _SavedElsewhere:
            self.tally.settle([number])
        finally:
            if self.claims:
                self.claims.give_back(number)
        if between.stop:
            raise between.stop

    def _keep(self, number: int, played: Played, backend: str) -> None:
        block, job = self.blocks[number], self.job
        problem = _problem(played.info, block, job)
        if problem and self.store is None:
            raise RuntimeError(problem)
        if problem:  # the others go on, so that nothing of theirs is lost
            self.problems[number] = problem
        elif self.store is None:
            self.done[number] = _kept(played, backend, block, job)
        else:
            self.store.save(number, _kept(played, backend, block, job))


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
        if self.store.has(self.number):
            raise _SavedElsewhere
        if self.stop or time.monotonic() - self.saved >= self.every:
            self.store.save_progress(self.number, _arrays_of(progress))
            self.saved = time.monotonic()
        if self.stop:
            raise self.stop


def player_of(block: Block, backend: str | None) -> Player:
    """What plays a block, compiled once for all that are alike."""
    return compile_player(stack(block.games[:1]) if block.stacked else block.games[0],
                          block.stacked, backend)  # fmt: skip


def _play_one(player: Player, block: Block, job: Job, number: int, between: _Between) -> Played:
    stops = stops_of(_points(block, job))
    keys = job.keys(block.members)
    resume, save = None, None
    if between.store is not None:
        resume = _load_progress(between.store, number, player, len(block.members))
        save = between.save
    if resume is not None:
        between.tally.resumed(number, resume.last * len(block.members))
    return play_block(player, game_of_block(block), keys, stops, between.count, resume, save)


def _points(block: Block, job: Job) -> np.ndarray:
    """The recorded rounds of a block."""
    return job.points[job.settings[block.members[0, 0]].horizon]


def _rounds(block: Block, job: Job) -> int:
    return job.settings[block.members[0, 0]].horizon * len(block.members)


def _problem(info: Arrays, block: Block, job: Job) -> str | None:
    """What only showed in flight, and where: learner, point and run."""
    for flag, message in checks.FLAGS.items():
        raised = np.flatnonzero(info[flag])
        if raised.size:
            setting, run = block.members[raised[0]]
            found = job.settings[setting]
            place = f" at {found.place}" if found.place else ""
            return (
                f"{message} (learner {found.label!r}{place}, run {run}; "
                f"{raised.size} of {len(block.members)} runs of this block)"
            )
    return None


def _kept(played: Played, backend: str, block: Block, job: Job) -> Arrays:
    """What stays of a block: arrays by name, and who has played it."""
    points = _points(block, job)
    stops = stops_of(points)
    curve = jax.tree.map(lambda x: running_sum(at_recorded(x, stops, points)), played.curve)
    # Copies: views would keep whole curves, and idle room, in memory.
    facts = {name: fact.copy() for name, fact in played.info.items() if name not in checks.FLAGS}
    kept = {f"info.{name}": fact for name, fact in facts.items()}
    kept["backend"] = np.array(backend)
    kept |= {"final_regret": curve.regret[-1].copy(), "final_loss": curve.loss[-1].copy()}
    if job.keep == "curves":
        kept |= {"regret": curve.regret, "loss": curve.loss}
    if job.keep == "moments":
        borders = np.flatnonzero(np.diff(block.members[:, 0])) + 1
        pieces = [moments(piece) for piece in np.split(curve.regret, borders, axis=1)]
        kept |= {
            f"moments.{name}": np.stack([getattr(piece, name) for piece in pieces])
            for name in Moments._fields
        }
    return kept


# --- the state of a block on its way


def _arrays_of(progress: Progress) -> Arrays:
    leaves = jax.tree.leaves(progress.state)
    arrays = {f"state.{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    arrays["last"] = np.array(progress.last)
    for name in Curve._fields:
        pieces = [getattr(piece, name) for piece in progress.pieces]
        arrays[f"curve.{name}"] = np.concatenate(pieces) if pieces else np.empty((0, 0), np.float32)
    return arrays


def _load_progress(store: Store, number: int, player: Player, runs: int) -> Progress | None:
    arrays = store.load_progress(number)
    if arrays is None:
        return None
    wanted = player.machine.state_types(runs)
    leaves, structure = jax.tree.flatten(wanted)
    expected = {f"state.{i}": _type(leaf) for i, leaf in enumerate(leaves)}
    found = {name: _type(leaf) for name, leaf in arrays.items() if name.startswith("state.")}
    needed = {"last", *(f"curve.{name}" for name in Curve._fields)}
    if found != expected or not needed <= set(arrays):
        raise ValueError(
            f"{store.progress_file(number)} is the state of another program "
            f"({len(found)} arrays, not the {len(expected)} of this one, or of other sizes): "
            "delete it and call again, and the block will be played from its first round"
        )
    state = structure.unflatten([player.machine.restored(arrays[name]) for name in expected])
    pieces: Any = {name: arrays[f"curve.{name}"] for name in Curve._fields}
    curve = Curve(**pieces)
    return Progress(int(arrays["last"]), state, [curve] if curve.regret.size else [])


def _type(leaf: Any) -> tuple[Any, str]:
    return tuple(leaf.shape), str(leaf.dtype)
