"""Thousands of settings, learners and seeds: grouped by structure, played in blocks, labelled."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from jaxbio import checks, rng
from jaxbio.blocks import (
    Played,
    Player,
    Progress,
    compile_player,
    play_block,
    stack,
    stops_of,
)
from jaxbio.core import float_dtype
from jaxbio.grid import HORIZON, Grid, Group, describe, group, make_grid
from jaxbio.moments import Moments, merged, moments
from jaxbio.record import at_recorded
from jaxbio.rollout import Curve, recorded_rounds
from jaxbio.store import Store
from jaxbio.workers import Advance, bar, in_parallel, number_of_workers

KEEP = ("curves", "moments", "finals")
WIDEST = {"cpu": 128}  # runs side by side; other platforms want thousands
WIDEST_ELSEWHERE = 4096
FEWEST = 8  # runs of one setting that fill a block of their own on CPU
BLOCK_BYTES = 1 << 28  # a block's ring and stacked tables stay below this
FORMAT = 1


class Block(NamedTuple):
    """Runs played side by side. group: which program; members: (setting, run) of each.

    settings: the numbers of the different settings, in the order of the members.
    """

    group: int
    members: np.ndarray
    games: list[Any]
    stacked: bool
    width: int


@dataclass(frozen=True)
class Plan:
    """What a sweep will take. bytes_of_result: in memory; bytes_at_work: blocks in flight."""

    settings: int
    runs: int
    rounds: int
    programs: int
    blocks: int
    bytes_of_result: int
    bytes_at_work: int

    def __str__(self) -> str:
        return (
            f"sweep: {self.settings:,} settings, {self.runs:,} runs, {self.rounds:.3g} rounds in "
            f"{self.blocks:,} blocks of {self.programs} program{'s' * (self.programs != 1)}; "
            f"result {_size(self.bytes_of_result)}, at work {_size(self.bytes_at_work)}"
        )


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
    job = _Job(grid, checks.integer("runs", runs, 1), seed, rounds, keep, paired)
    checked = _checked_quantiles(quantiles)
    index, count = _processes(processes, store)
    workers = number_of_workers(workers)
    groups = group(grid.settings)
    blocks = _blocks(groups, job, width)
    plan = _plan(grid, groups, blocks, job, workers)
    _refuse(plan, memory, keep)
    kept = None if store is None else Store(store, _settings(grid, job, blocks))
    shown_here = checks.boolean("progress", progress) and index == 0
    if shown_here:
        tqdm.write(str(plan), file=None)
    done = _play_all(groups, blocks, job, kept, checkpoint, (index, count), workers, shown_here)
    return _dataset(grid, blocks, done, job, checked)


class _Job:
    """What is asked of every setting."""

    def __init__(
        self, grid: Grid, runs: int, seed: Any, rounds: Any, keep: str, paired: bool
    ) -> None:
        self.runs, self.seed = runs, checks.seed(seed)
        self.keep, self.paired = checks.choice("keep", keep, KEEP), checks.boolean("paired", paired)
        self.settings = grid.settings
        if HORIZON in grid.axes and np.ndim(rounds) != 0:
            raise ValueError("rounds must be a number where the horizon is an axis, but got a list")
        horizons = sorted({setting.horizon for setting in grid.settings})
        self.points = {horizon: recorded_rounds(rounds, horizon) for horizon in horizons}
        lengths = {len(points) for points in self.points.values()}
        if len(lengths) > 1:
            raise ValueError(
                f"rounds={rounds!r} is more than the shortest horizon {horizons[0]}: "
                f"record at most {min(lengths)} rounds"
            )
        self.length = lengths.pop()

    def keys(self, members: np.ndarray) -> np.ndarray:
        """uint32 [2, members] of (setting, run) pairs [members, 2]."""
        if self.paired:
            return rng.run_keys(self.seed, members[:, 1])
        keys = np.empty((2, len(members)), np.uint32)
        streams = np.array([self.settings[setting].stream for setting in members[:, 0]])
        for stream in np.unique(streams):
            mine = streams == stream
            keys[:, mine] = rng.run_keys(self.seed, members[mine, 1], int(stream))
        return keys


def _checked_quantiles(quantiles: Any) -> np.ndarray:
    values = np.atleast_1d(np.asarray(quantiles, np.float64))
    if values.size and not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"quantiles must lie in [0, 1], but got {list(quantiles)}")
    return values


def _processes(given: Any, store: Any) -> tuple[int, int]:
    index, count = (jax.process_index(), jax.process_count()) if given is None else given
    index, count = checks.integer("processes", index, 0), checks.integer("processes", count, 1)
    if index >= count:
        raise ValueError(f"processes must be (index, count), index below count, but got {given}")
    if count > 1 and store is None:
        raise ValueError(f"{count} processes share their work through a store: pass store=...")
    return index, count


# --- blocks


def _blocks(groups: list[Group], job: _Job, width: int | None) -> list[Block]:
    blocks = []
    for number, found in enumerate(groups):
        widest = _widest(found, width)
        enough = FEWEST if jax.default_backend() == "cpu" else widest
        if job.runs >= min(enough, widest) or _table_bytes(found) * widest > BLOCK_BYTES:
            blocks += _own_blocks(number, found, job.runs, widest)
        else:
            blocks += _shared_blocks(number, found, job, widest)
    return blocks


def _widest(found: Group, width: int | None) -> int:
    if width is not None:
        return checks.integer("width", width, 1)
    game = found.games[0]
    per_run = 4 * 3 * game.known.ring_depth * game.lanes  # about three words for each play
    widest = WIDEST.get(jax.default_backend(), WIDEST_ELSEWHERE)
    while widest > FEWEST and widest * per_run > BLOCK_BYTES:
        widest //= 2
    return widest


def _table_bytes(found: Group) -> int:
    return sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(found.games[0]))


def _own_blocks(number: int, found: Group, runs: int, widest: int) -> list[Block]:
    """Blocks of one setting each, as equal as multiples of 8 can be."""
    share = -(-runs // -(-runs // widest))
    width = min(widest, -(-share // FEWEST) * FEWEST)
    blocks = []
    for game, setting in zip(found.games, found.settings, strict=True):
        for first in range(0, runs, width):
            own = np.arange(first, min(first + width, runs))
            members = np.stack([np.full(len(own), setting), own], axis=1)
            blocks.append(Block(number, members, [game], False, width))
    return blocks


def _shared_blocks(number: int, found: Group, job: _Job, widest: int) -> list[Block]:
    """Blocks of several settings with few runs each, all with the same horizon."""
    game_of = dict(zip(found.settings, found.games, strict=True))
    by_horizon: dict[int, list[int]] = {}
    for setting in found.settings:
        by_horizon.setdefault(job.settings[setting].horizon, []).append(setting)
    most = max(len(settings) for settings in by_horizon.values()) * job.runs
    width = min(widest, -(-most // FEWEST) * FEWEST)
    blocks = []
    for settings in by_horizon.values():
        pairs = np.array([(setting, run) for setting in settings for run in range(job.runs)])
        for first in range(0, len(pairs), width):
            members = pairs[first : first + width]
            games = [game_of[setting] for setting in members[:, 0]]
            blocks.append(Block(number, members, games, True, width))
    return blocks


def _game_of(block: Block) -> Any:
    """The block's game; a block with room left plays its last member again."""
    if not block.stacked:
        return block.games[0]
    return stack(block.games + block.games[-1:] * (block.width - len(block.games)))


# --- what it takes


def _plan(
    grid: Grid, groups: list[Group], blocks: list[Block], job: _Job, workers: int
) -> Plan:
    points = sum(cells.size for cells in grid.cells.values())
    curves = {"curves": 2 * job.length * job.runs, "moments": 4 * job.length, "finals": 0}
    per_point = 8 * (curves[job.keep] + 10 * job.runs)
    at_work = [
        12 * found.games[0].known.ring_depth * found.games[0].lanes for found in groups
    ]
    return Plan(
        settings=len(grid.settings),
        runs=len(grid.settings) * job.runs,
        rounds=sum(setting.horizon for setting in grid.settings) * job.runs,
        programs=len({(block.group, block.stacked, block.width) for block in blocks}),
        blocks=len(blocks),
        bytes_of_result=per_point * (points + len(grid.settings)),
        bytes_at_work=workers * max(at_work[block.group] * block.width for block in blocks),
    )


def _refuse(plan: Plan, memory: float | None, keep: str) -> None:
    limit = _free_memory() if memory is None else float(memory)
    needed = plan.bytes_of_result + plan.bytes_at_work
    if needed <= limit:
        return
    remedies = {"curves": "keep='moments' or fewer rounds=", "moments": "keep='finals'"}
    if plan.bytes_at_work > plan.bytes_of_result:
        remedy = "a smaller width= or fewer workers="
    else:
        remedy = remedies.get(keep, "fewer runs=, or several sweeps")
    raise MemoryError(f"{plan}: more than the {_size(limit)} there are; use {remedy}")


def _free_memory() -> float:
    try:
        with open("/proc/meminfo") as lines:
            found = next(line for line in lines if line.startswith("MemAvailable"))
        return 1024.0 * int(found.split()[1])
    except (OSError, StopIteration):
        return float("inf")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def _settings(grid: Grid, job: _Job, blocks: list[Block]) -> dict[str, Any]:
    """Everything that the bits of the result depend on, and how blocks are cut."""
    seed = job.seed
    if not isinstance(seed, int):
        seed = np.asarray(jax.random.key_data(seed)).tolist()
    return {
        "format": FORMAT,
        "versions": versions(),
        "platform": jax.default_backend(),
        "precision": str(jnp.dtype(float_dtype())),
        "seed": seed,
        "runs": job.runs,
        "paired": job.paired,
        "keep": job.keep,
        "rounds": {str(horizon): points.tolist() for horizon, points in job.points.items()},
        "axes": grid.axes,
        "learners": describe(grid.settings),
        "blocks": len(blocks),
        "widths": sorted({block.width for block in blocks}),
    }


def versions() -> dict[str, str]:
    """Of what decides the bits of a result."""
    return {name: version(name) for name in ("jaxbio", "jax", "jaxlib", "numpy")}


# --- playing


def _play_all(
    groups: list[Group],
    blocks: list[Block],
    job: _Job,
    store: Store | None,
    checkpoint: float,
    processes: tuple[int, int],
    workers: int,
    progress: bool,
) -> dict[int, dict[str, np.ndarray]]:
    """number of a block -> what is kept of it."""
    finished = set() if store is None else store.finished()
    order = [number for number in _order(len(blocks), *processes) if number not in finished]
    total = [_rounds(block, job) for block in blocks]
    devices = jax.local_devices()
    done: dict[int, dict[str, np.ndarray]] = {}

    def play(number: int, advance: Advance) -> dict[str, np.ndarray] | None:
        if store is not None and number in store.finished():  # by another process, meanwhile
            advance(total[number])
            return None
        block, device = blocks[number], devices[number % len(devices)]
        with jax.default_device(device):
            player = compile_player(_game_of(block), block.width, block.stacked)
            arrays = _play_one(player, block, job, number, store, checkpoint, advance)
        if store is not None:
            store.save(number, arrays)
            return None
        return arrays

    with bar(sum(total), progress, initial=sum(total[number] for number in finished)) as shown:
        _compile_all(blocks, order, devices[: len(order)])
        try:
            for number, arrays in in_parallel(play, order, workers, shown):
                if arrays is not None:
                    done[number] = arrays
        except KeyboardInterrupt as interrupt:
            if store is not None:
                interrupt.add_note(f"finished blocks are in {store.path}: the same call goes on")
            raise
    if store is not None:
        done = {number: store.load(number) for number in range(len(blocks))}
    return done


def _order(blocks: int, index: int, count: int) -> list[int]:
    """This process's share first; then what others have left, from the end they reach last."""
    mine = list(range(index, blocks, count))
    others = [number for number in range(blocks) if number % count != index]
    return mine + others[::-1]


def _rounds(block: Block, job: _Job) -> int:
    return job.settings[block.members[0, 0]].horizon * block.width


def _compile_all(blocks: list[Block], order: list[int], devices: Sequence[Any]) -> None:
    """One program per structure and device, in this thread."""
    seen: set[Any] = set()
    for number in order:
        block = blocks[number]
        kind = (block.group, block.stacked, block.width)
        if kind not in seen:
            seen.add(kind)
            for device in devices:
                with jax.default_device(device):
                    compile_player(_game_of(block), block.width, block.stacked)


def _play_one(
    player: Player,
    block: Block,
    job: _Job,
    number: int,
    store: Store | None,
    checkpoint: float,
    advance: Advance,
) -> dict[str, np.ndarray]:
    points = job.points[job.settings[block.members[0, 0]].horizon]
    stops = stops_of(points)
    room = np.minimum(np.arange(block.width), len(block.members) - 1)
    keys = job.keys(block.members[room])
    resume, save = None, None
    if store is not None:
        resume = _load_progress(store, number, player)
        save = partial(_save_progress, store, number, [time.monotonic()], checkpoint)
        advance(resume.last * block.width if resume else 0)
    played = play_block(player, _game_of(block), keys, stops, advance, resume, save)
    return _kept(played, len(block.members), stops, points, block, job.keep)


def _kept(
    played: Played, members: int, stops: np.ndarray, points: np.ndarray, block: Block, keep: str
) -> dict[str, np.ndarray]:
    """What stays of a block: arrays by name."""
    info = {name: fact[:members] for name, fact in played.info.items()}
    checks.flags(info)
    curve = jax.tree.map(
        lambda x: np.cumsum(at_recorded(x, stops, points)[:, :members], axis=0), played.curve
    )
    kept = {f"info.{name}": fact for name, fact in info.items() if name not in checks.FLAGS}
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
    curve = Curve(*(arrays[f"curve.{name}"] for name in Curve._fields))
    return Progress(int(arrays["last"]), jax.tree.unflatten(structure, leaves), [curve])


# --- the labelled result


def _dataset(
    grid: Grid,
    blocks: list[Block],
    done: dict[int, dict[str, np.ndarray]],
    job: _Job,
    quantiles: np.ndarray,
) -> xr.Dataset:
    time_name = "part" if HORIZON in grid.axes else "round"
    per_run = _per_run(grid, blocks, done, job)
    variables: dict[str, Any] = {}
    for name, values in per_run.items():
        dims = ["run", time_name] if values.ndim == 3 else ["run"]
        variables[name.removeprefix("info.")] = _spread(grid, values, dims, name)
    if job.keep == "moments":
        for name, values in _merged(grid, blocks, done).items():
            variables[name] = _spread(grid, values, [time_name], name)
    if quantiles.size:
        values = np.quantile(per_run["final_regret"], quantiles, axis=1).T
        variables["final_regret_quantile"] = _spread(
            grid, values, ["quantile"], "final_regret_quantile"
        )
    return xr.Dataset(variables, _coordinates(grid, job, quantiles, time_name), _attributes(grid, job))


def _per_run(
    grid: Grid, blocks: list[Block], done: dict[int, dict[str, np.ndarray]], job: _Job
) -> dict[str, np.ndarray]:
    """name -> [settings, runs] or [settings, runs, points]."""
    out: dict[str, np.ndarray] = {}
    for number, block in enumerate(blocks):
        setting, run = block.members.T
        for name, values in done[number].items():
            if name.startswith("moments."):
                continue
            values = values.T  # runs first
            if name not in out:
                shape = (len(grid.settings), job.runs, *values.shape[1:])
                out[name] = np.zeros(shape, values.dtype)
            out[name][setting, run] = values
    return out


def _merged(
    grid: Grid, blocks: list[Block], done: dict[int, dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """name -> [settings, points]: moments of the regret over runs."""
    parts: dict[int, list[Moments]] = {}
    for number, block in enumerate(blocks):
        kept = [done[number][f"moments.{name}"] for name in Moments._fields]
        order = block.members[np.sort(np.unique(block.members[:, 0], return_index=True)[1]), 0]
        for i, setting in enumerate(order):
            parts.setdefault(int(setting), []).append(Moments(*(values[i] for values in kept)))
    whole = [merged(parts[setting]) for setting in range(len(grid.settings))]
    return {
        "regret_mean": np.stack([moment.mean for moment in whole]),
        "regret_variance": np.stack([moment.variance for moment in whole]),
        "regret_min": np.stack([moment.least for moment in whole]),
        "regret_max": np.stack([moment.most for moment in whole]),
    }


def _spread(grid: Grid, values: np.ndarray, dims: Iterable[str], name: str) -> Any:
    """values [settings, ...] at every point: an xarray variable [learner, *axes, ...]."""
    points = np.stack([values[cells] for cells in grid.cells.values()])
    return ("learner", *grid.axes, *dims), points, _unit(name)


def _unit(name: str) -> dict[str, str]:
    """The unit of measure, and in words what is measured."""
    plain = name.removeprefix("info.")
    long_name = plain.replace("_", " ")
    if "regret" in plain:
        unit = "loss^2" if plain.endswith("variance") else "loss"
        return {"units": unit, "long_name": long_name.replace("regret", "pseudo-regret")}
    return {"units": "loss" if "loss" in plain else "rounds", "long_name": long_name}


def _coordinates(
    grid: Grid, job: _Job, quantiles: np.ndarray, time_name: str
) -> dict[str, Any]:
    coordinates: dict[str, Any] = {"learner": list(grid.cells), "run": np.arange(job.runs)}
    for name, values in grid.axes.items():
        plain = all(isinstance(value, bool | int | float | str) for value in values)
        coordinates[name] = values if plain else [str(value) for value in values]
    about = {"units": "rounds", "long_name": "round, from 1"}
    if time_name == "part":
        rows = np.stack([job.points[horizon] for horizon in grid.axes[HORIZON]])
        coordinates["round"] = ((HORIZON, "part"), rows, about)
    else:
        coordinates["round"] = ("round", next(iter(job.points.values())), about)
    if quantiles.size:
        coordinates["quantile"] = quantiles
    return coordinates


def _attributes(grid: Grid, job: _Job) -> dict[str, Any]:
    """What reproduces the result."""
    seed = job.seed if isinstance(job.seed, int) else "a typed key"
    return {
        "title": "jaxbio sweep",
        "runs": job.runs,
        "seed": seed,
        "paired": str(job.paired),
        "keep": job.keep,
        "horizon": json.dumps(sorted(job.points)),
        "platform": jax.default_backend(),
        "python": platform.python_version(),
        "settings": json.dumps(describe(grid.settings)),
    } | {f"version_{name}": value for name, value in versions().items()}
