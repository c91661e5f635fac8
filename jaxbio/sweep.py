"""Thousands of settings, learners and seeds: grouped by structure, played in blocks, labelled."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from jaxbio import checks, rng
from jaxbio.blocks import Played, Player, Progress, compile_player, play_block, stops_of
from jaxbio.dataset import Kept, label, surroundings
from jaxbio.grid import Grid, describe, group, make_grid
from jaxbio.moments import Moments, moments
from jaxbio.record import at_recorded, running_sum
from jaxbio.rollout import Curve
from jaxbio.schedule import Block, Job, Plan, cut_into_blocks, game_of_block, make_plan, refuse
from jaxbio.store import Store
from jaxbio.workers import Advance, bar, in_parallel, number_of_workers

FORMAT = 3


def sweep(
    environment: Any,
    learners: Any,
    axes: Any,
    *,
    horizon: int | None = None,
    runs: int = 20,
    seed: Any = 0,
    rounds: Any = 200,
    keep: str = "curves",
    quantiles: Sequence[float] = (),
    paired: bool = True,
    store: str | os.PathLike[str] | None = None,
    checkpoint: float = 60.0,
    processes: tuple[int, int] | None = None,
    width: int | None = None,
    workers: int | None = None,
    memory: float | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Play every learner at every point of a grid, `runs` times.

    Several processes exchange nothing but files. With `processes` given by hand, any of them may be
    killed and started again while the others go on. Under `jax.distributed` that takes
    `jax.config.update("jax_enable_recoverability", True)` before `jax.distributed.initialize`, and
    holds for all but process 0, which must also be the last to leave: if it is gone, JAX stops the
    others, and the job is to be started anew. The store then has all finished blocks.

    Args:
      environment: an Environment, or a function of the axes that it names.
      learners: label -> learner, or a function of the axes that it names.
      axes: name -> values. Numbers share one program per learner; names (of a tuning, a rule) and
        whatever else chooses code cost one each. An axis "horizon" varies T.
      horizon: T, unless it is an axis.
      runs: per setting. Run i is the same whatever else is in the sweep.
      seed: the root seed.
      rounds: how many rounds to record, spread evenly, or which ones (only a number where the
        horizon is an axis).
      keep: "curves" all runs at all recorded rounds; "moments" mean, variance, least and most over
        runs at the recorded rounds, and every run's final regret; "finals" the last only.
      quantiles: of the final regret over runs.
      paired: all learners meet the same worlds; False gives each its own.
      store: a folder for finished blocks; the same call goes on where it was interrupted.
      checkpoint: seconds between two savings of a block that is still being played (with a store).
      processes: (index, count) of this process among those that share the work and the store; by
        default as `jax.distributed` says.
      width, workers: runs per program, blocks in flight. They never change a result.
      memory: bytes that the sweep may take (default: what is free).
      progress: say what it will take, and show a bar.
    Returns:
      A Dataset with dimensions learner, the axes, run and round (part where the horizon is an
      axis: then `round` is a coordinate of horizon and part).
    """
    grid = make_grid(environment, learners, axes, horizon)
    job = Job(grid, runs, seed, rounds, keep, paired)
    checked = _checked_quantiles(quantiles)
    index, count = _processes(processes, store)
    workers = number_of_workers(workers)
    blocks, plan = _scheduled(grid, job, width, workers)
    refuse(plan, memory, keep)
    folder = None if store is None else Store(store, _settings(grid, job, blocks))
    shown_here = checks.boolean("progress", progress) and index == 0
    if shown_here:
        tqdm.write(str(plan), file=sys.stderr)
    kept = _play_all(blocks, job, folder, checkpoint, (index, count), workers, shown_here)
    return label(grid, blocks, kept, job, checked)


def plan_sweep(
    environment: Any,
    learners: Any,
    axes: Any,
    *,
    horizon: int | None = None,
    runs: int = 20,
    rounds: Any = 200,
    keep: str = "curves",
    width: int | None = None,
    workers: int | None = None,
) -> Plan:
    """What `sweep` with these arguments would take; nothing is played or compiled."""
    grid = make_grid(environment, learners, axes, horizon)
    job = Job(grid, runs, 0, rounds, keep, True)
    return _scheduled(grid, job, width, number_of_workers(workers))[1]


def _scheduled(grid: Grid, job: Job, width: Any, workers: int) -> tuple[list[Block], Plan]:
    groups = group(grid.settings)
    blocks = cut_into_blocks(groups, job, width)
    return blocks, make_plan(grid, groups, blocks, job, workers)


def _checked_quantiles(quantiles: Any) -> np.ndarray:
    values = np.atleast_1d(np.asarray(quantiles, np.float64))
    if values.size and not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"quantiles must lie in [0, 1], but got {values.tolist()}")
    return values


def _processes(given: Any, store: Any) -> tuple[int, int]:
    if given is not None and (not isinstance(given, Sequence) or len(given) != 2):
        raise ValueError(f"processes must be (index, count), but got {given!r}")
    index, count = (jax.process_index(), jax.process_count()) if given is None else given
    index, count = checks.integer("processes", index, 0), checks.integer("processes", count, 1)
    if index >= count:
        raise ValueError(f"processes must be (index, count), index below count, but got {given}")
    if count > 1 and store is None:
        raise ValueError(f"{count} processes share their work through a store: pass store=...")
    return index, count


def _settings(grid: Grid, job: Job, blocks: list[Block]) -> dict[str, Any]:
    """Everything that the bits of the result depend on, and how blocks are cut."""
    return {
        "format": FORMAT,
        **surroundings(),
        "seed": job.seed if isinstance(job.seed, int) else rng.root_words(job.seed).tolist(),
        "runs": job.runs,
        "paired": job.paired,
        "keep": job.keep,
        "rounds": {str(horizon): points.tolist() for horizon, points in job.points.items()},
        "axes": {name: grid.labels(name) for name in grid.axes},
        "learners": describe(grid.settings),
        "blocks": len(blocks),
        "widths": sorted({block.width for block in blocks}),
    }


def _play_all(
    blocks: list[Block],
    job: Job,
    store: Store | None,
    checkpoint: float,
    processes: tuple[int, int],
    workers: int,
    progress: bool,
) -> Kept:
    """Play what is missing; returns number of a block -> what is kept of it."""
    finished = set() if store is None else store.finished() & set(range(len(blocks)))
    order = [number for number in _order(len(blocks), *processes) if number not in finished]
    total = [_rounds(block, job) for block in blocks]
    devices = jax.local_devices()
    turns = {number: turn for turn, number in enumerate(order)}
    done: dict[int, dict[str, np.ndarray]] = {}

    def play(number: int, advance: Advance) -> dict[str, np.ndarray] | None:
        if store is not None and store.has(number):  # by another process, meanwhile
            advance(total[number])
            return None
        block, device = blocks[number], devices[turns[number] % len(devices)]
        with jax.default_device(device):
            game = game_of_block(block)
            player = compile_player(game, block.width, block.stacked, block.strips)
            arrays = _play_one(player, block, job, number, game, store, checkpoint, advance)
        if store is not None:
            store.save(number, arrays)
            return None
        return arrays

    with bar(sum(total), progress, initial=sum(total[number] for number in finished)) as shown:
        _compile_all(blocks, order, devices[: len(order)], workers)
        try:
            for number, arrays in in_parallel(play, order, workers, shown):
                if arrays is not None:
                    done[number] = arrays
        except KeyboardInterrupt as interrupt:
            if store is not None:
                interrupt.add_note(f"finished blocks are in {store.path}: the same call goes on")
            raise
    return done.__getitem__ if store is None else store.load


def _order(blocks: int, index: int, count: int) -> list[int]:
    """This process's share first; then what others have left, from the end they reach last."""
    mine = list(range(index, blocks, count))
    others = [number for number in range(blocks) if number % count != index]
    return mine + others[::-1]


def _rounds(block: Block, job: Job) -> int:
    return job.settings[block.members[0, 0]].horizon * len(block.members)


def _compile_all(
    blocks: list[Block], order: list[int], devices: Sequence[Any], workers: int
) -> None:
    """One program per structure and device, several compiled at once."""
    kinds = {(blocks[number].group, blocks[number].stacked): blocks[number] for number in order}
    tasks = [(block, device) for block in kinds.values() for device in devices]

    def compile_one(task: tuple[Block, Any], advance: Advance) -> None:
        block, device = task
        with jax.default_device(device):
            compile_player(game_of_block(block), block.width, block.stacked, block.strips)

    for _ in in_parallel(compile_one, tasks, workers):
        pass


def _play_one(
    player: Player,
    block: Block,
    job: Job,
    number: int,
    game: Any,
    store: Store | None,
    checkpoint: float,
    advance: Advance,
) -> dict[str, np.ndarray]:
    points = job.points[job.settings[block.members[0, 0]].horizon]
    stops = stops_of(points)
    keys = job.keys(block.members)
    resume, save = None, None
    if store is not None:
        resume = _load_progress(store, number, player)
        save = partial(_save_progress, store, number, [time.monotonic()], checkpoint)
        advance(resume.last * len(block.members) if resume else 0)
    played = play_block(player, game, keys, stops, advance, resume, save)
    return _kept(played, stops, points, block, job.keep)


def _kept(
    played: Played, stops: np.ndarray, points: np.ndarray, block: Block, keep: str
) -> dict[str, np.ndarray]:
    """What stays of a block: arrays by name."""
    checks.flags(played.info)
    curve = jax.tree.map(lambda x: running_sum(at_recorded(x, stops, points)), played.curve)
    kept = {f"info.{name}": fact for name, fact in played.info.items() if name not in checks.FLAGS}
    kept |= {"final_regret": curve.regret[-1], "final_loss": curve.loss[-1]}
    if keep == "curves":
        kept |= {"regret": curve.regret, "loss": curve.loss}
    if keep == "moments":
        borders = np.flatnonzero(np.diff(block.members[:, 0])) + 1
        pieces = [moments(piece) for piece in np.split(curve.regret, borders, axis=1)]
        kept |= {
            f"moments.{name}": np.stack([getattr(piece, name) for piece in pieces])
            for name in Moments._fields
        }
    return kept


def _save_progress(
    store: Store, number: int, saved: list[float], every: float, progress: Progress
) -> None:
    if time.monotonic() - saved[0] < every:
        return
    leaves = jax.tree.leaves(progress.carry)
    arrays = {f"carry.{i:04d}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    arrays["last"] = np.array(progress.last)
    for name in Curve._fields:
        pieces = [getattr(piece, name) for piece in progress.pieces]
        arrays[f"curve.{name}"] = np.concatenate(pieces)
    store.save_progress(number, arrays)
    saved[0] = time.monotonic()


def _load_progress(store: Store, number: int, player: Player) -> Progress | None:
    arrays = store.load_progress(number)
    if arrays is None:
        return None
    shapes, structure = jax.tree.flatten(player.carry)
    leaves = [jax.device_put(arrays[f"carry.{i:04d}"]) for i in range(len(shapes))]
    pieces: Any = [arrays[f"curve.{name}"] for name in Curve._fields]
    return Progress(int(arrays["last"]), jax.tree.unflatten(structure, leaves), [Curve(*pieces)])
