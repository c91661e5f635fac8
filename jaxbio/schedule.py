"""How a sweep is cut into blocks, and what it will take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbio import checks, rng
from jaxbio.blocks import PLAYERS_WITH_MEMORY, is_one_call, stack, stops_of
from jaxbio.core import float_dtype
from jaxbio.grid import HORIZON, RESERVED, Grid, Group, check_name
from jaxbio.rollout import Carry, Game, begin, recorded_rounds, summary
from jaxbio.sizing import most_strips, widest
from jaxbio.surroundings import free_memory

KEEP = ("curves", "moments", "finals")
STEP = 16  # widths are multiples of it
ALONE = 32  # runs of one setting that are worth a block of their own on CPU
SHARED = 64  # runs in a block of several settings on CPU, so that larger grids compile nothing new
BLOCK_BYTES = 1 << 28  # what a block carries, and its stacked tables, stay below this
CURVE_BYTES = 48  # of a run and stop: two increments as they come and together, two sums


class Job:
    """What is asked of every setting."""

    def __init__(
        self, grid: Grid, runs: Any, seed: Any, rounds: Any, keep: str, paired: bool
    ) -> None:
        self.runs, self.seed = checks.integer("runs", runs, 1), checks.seed(seed)
        self.keep, self.paired = checks.choice("keep", keep, KEEP), checks.boolean("paired", paired)
        self.settings = grid.settings
        if HORIZON in grid.axes and not checks.is_single(rounds):
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


class Block(NamedTuple):
    """Runs played by one program. group: which; members: int [members, 2], setting and run.

    games: of each member, or the one that all play (stacked is False). width: with idle room;
    strips: how many parts of it are played one after the other.
    """

    group: int
    members: np.ndarray
    games: list[Any]
    stacked: bool
    width: int
    strips: int


def cut_into_blocks(groups: list[Group], job: Job, width: int | None) -> list[Block]:
    blocks = []
    for number, found in enumerate(groups):
        side = _side_by_side(found, job) if width is None else checks.integer("width", width, 1)
        strips = _most_strips(found, job) if width is None else 1
        enough = ALONE if jax.default_backend() == "cpu" else side
        alone = len(found.settings) == 1 or job.runs >= min(enough, side)
        if alone or _table_bytes(found) * side * strips > BLOCK_BYTES:
            blocks += _own_blocks(number, found, job.runs, side, strips)
        else:
            blocks += _shared_blocks(number, found, job, side, strips)
    return blocks


def _side_by_side(found: Group, job: Job) -> int:
    """A measured default. It leaves work for a second worker where there are runs enough, but how
    many workers there are does not count, so that a store can move to another machine.
    """
    total = len(found.settings) * job.runs
    side = widest(found.games[0].lanes)
    if jax.default_backend() == "cpu" and job.runs < ALONE:
        side = SHARED if total > SHARED else ALONE
    elif jax.default_backend() == "cpu":
        side = min(max(ALONE, _stepped(-(-total // 2))), side)
    while side > STEP and side * carry_bytes(found.games[0]) > BLOCK_BYTES:
        side //= 2
    return side


def _most_strips(found: Group, job: Job) -> int:
    """As many as the longest game of the group allows."""
    longest = max(job.settings[setting].horizon for setting in found.settings)
    return most_strips(longest) if is_one_call(stops_of(job.points[longest])) else 1


def _stepped(runs: int) -> int:
    return -(-runs // STEP) * STEP


def carry_bytes(game: Game) -> int:
    """Of one run: its ring, and what its learner remembers."""
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(_shapes(game)[0]))


def facts_of(game: Game) -> list[str]:
    """The names of what is reported of every run."""
    return [name for name in _shapes(game)[1] if name not in checks.FLAGS]


def _shapes(game: Game) -> tuple[Carry, dict[str, Any]]:
    """The types of what a run carries on, and of its facts."""
    leaves, structure = jax.tree.flatten(game)
    types = tuple((np.shape(leaf), np.result_type(leaf)) for leaf in leaves)
    return _shapes_of_type(structure, types, str(float_dtype()))


@lru_cache(maxsize=64)
def _shapes_of_type(structure: Any, types: Any, precision: str) -> Any:
    """Traced once for all games of a structure (in each precision)."""
    game = structure.unflatten([jax.ShapeDtypeStruct(*one) for one in types])

    def both(game: Game) -> tuple[Carry, dict[str, Any]]:
        carry = begin(game)
        return carry, summary(game, carry)

    return jax.eval_shape(both, game)


def check_names(grid: Grid, groups: list[Group]) -> None:
    """Raise where a fact of a learner has the name of an axis, or of something else we return."""
    for found in groups:
        facts = facts_of(found.games[0])
        for name in grid.axes:
            check_name(name, facts)
        for name in facts:
            if name in RESERVED:
                label = grid.settings[found.settings[0]].label
                raise ValueError(
                    f"learner {label!r} reports a fact called {name!r}, which is the name of "
                    "something else in the result: rename it"
                )


def _table_bytes(found: Group) -> int:
    return sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(found.games[0]))


def _own_blocks(number: int, found: Group, runs: int, side: int, strips: int) -> list[Block]:
    """Blocks of one setting each; strips as equal as multiples of 16 can be.

    Few runs leave strips of a block empty, so that more of them compile nothing new.
    """
    parts = -(-runs // side)
    side = min(side, _stepped(-(-runs // parts)))
    strips = strips if parts > 1 else 1
    take = side * (min(strips, -(-parts // 2)) if len(found.settings) == 1 else strips)
    blocks = []
    for game, setting in zip(found.games, found.settings, strict=True):
        for first in range(0, runs, take):
            own = np.arange(first, min(first + take, runs))
            members = np.stack([np.full(len(own), setting), own], axis=1)
            blocks.append(Block(number, members, [game], False, side * strips, strips))
    return blocks


def _shared_blocks(number: int, found: Group, job: Job, side: int, strips: int) -> list[Block]:
    """Blocks of several settings with few runs each, all with the same horizon.

    Of a small grid a block leaves strips empty, so that a larger one compiles nothing new.
    """
    game_of = dict(zip(found.settings, found.games, strict=True))
    by_horizon: dict[int, list[int]] = {}
    for setting in found.settings:
        by_horizon.setdefault(job.settings[setting].horizon, []).append(setting)
    most = max(len(settings) for settings in by_horizon.values()) * job.runs
    side = min(side, _stepped(most))
    strips = strips if most > side else 1
    take = side * min(strips, max(1, most // (2 * side)))
    blocks = []
    for settings in by_horizon.values():
        pairs = np.array([(setting, run) for setting in settings for run in range(job.runs)])
        for first in range(0, len(pairs), take):
            members = pairs[first : first + take]
            games = [game_of[setting] for setting in members[:, 0]]
            blocks.append(Block(number, members, games, True, side * strips, strips))
    return blocks


def game_of_block(block: Block) -> Any:
    """The block's game; a block with room left plays its last member again."""
    if not block.stacked:
        return block.games[0]
    return stack(block.games + block.games[-1:] * (block.width - len(block.games)))


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


def make_plan(grid: Grid, groups: list[Group], blocks: list[Block], job: Job, workers: int) -> Plan:
    points = sum(cells.size for cells in grid.cells.values())
    curves = {"curves": 2 * job.length * job.runs, "moments": 4 * job.length, "finals": 0}
    facts = len({name for found in groups for name in facts_of(found.games[0])})
    per_point = 8 * (curves[job.keep] + (2 + facts) * job.runs)
    programs = {(b.group, b.stacked, b.width, b.strips): b for b in blocks}
    carried = [_carried(groups[block.group], block) for block in programs.values()]
    kept = sum(sorted(carried)[-PLAYERS_WITH_MEMORY:])  # for the next block of the same program
    passing = max(_passing(groups[block.group], block, job) for block in blocks)
    return Plan(
        settings=len(grid.settings),
        runs=len(grid.settings) * job.runs,
        rounds=sum(setting.horizon for setting in grid.settings) * job.runs,
        programs=len(programs),
        blocks=len(blocks),
        bytes_of_result=per_point * (points + len(grid.settings)),
        bytes_at_work=min(workers, len(blocks)) * (kept + passing),
    )


def _carried(found: Group, block: Block) -> int:
    """Bytes of what one block carries from round to round."""
    return carry_bytes(found.games[0]) * (block.width // block.strips)


def _passing(found: Group, block: Block, job: Job) -> int:
    """Bytes that a block takes besides: its tables, here and on the device, and its curves."""
    stops = stops_of(job.points[job.settings[block.members[0, 0]].horizon])
    tables = _table_bytes(found) * (block.width if block.stacked else 1)
    return 2 * tables + CURVE_BYTES * len(stops) * block.width


def checked_memory(memory: Any) -> float | None:
    """Bytes; infinity for no limit, None for what is free."""
    if memory is None or memory == math.inf:
        return memory
    return checks.number("memory", memory, 0, open_low=True)


def refuse(plan: Plan, memory: float | None, keep: str) -> None:
    limit = free_memory() if memory is None else memory
    needed = plan.bytes_of_result + plan.bytes_at_work
    if needed <= limit:
        return
    remedies = {"curves": "keep='moments' or fewer rounds=", "moments": "keep='finals'"}
    if plan.bytes_at_work > plan.bytes_of_result:
        remedy = "a smaller width= or fewer workers="
    else:
        remedy = remedies.get(keep, "fewer runs=, or several sweeps")
    raise MemoryError(f"{plan}: more than the {_size(limit)} there are; use {remedy}")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
