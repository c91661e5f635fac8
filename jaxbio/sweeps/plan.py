"""How a sweep is cut into blocks, and what it will take."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jaxbio import checks, rng
from jaxbio.checks import memory
from jaxbio.engine.footprint import carried, passing, table_bytes, types_of
from jaxbio.engine.player import stops_of
from jaxbio.engine.rollout import recorded_rounds
from jaxbio.engine.widths import of_several, side_by_side, stepped
from jaxbio.sweeps.grid import HORIZON, RESERVED, WORLD, Grid, Group, Outline, check_name
from jaxbio.sweeps.moments import Moments
from jaxbio.sweeps.sharing import Recipes

KEEP = ("curves", "moments", "finals")
MOST_RUNS = 2**32  # of a seed
FACTS = 9  # numbers of a run that are always kept: its final regret and loss, and what is counted
SETTING_BYTES = 6000  # of a setting, its game and its description, besides what it is made of
STORED_BYTES = 18_000  # of the same, to compare it with what a store holds
MEMBER_BYTES = 24  # of a run: which block it is in, and which game it plays there
SEVERAL = "fewer runs=, or several sweeps"
REMEDIES = {  # for a result that does not fit
    "curves": "keep='moments' or fewer rounds=",
    "moments": "keep='finals' or fewer rounds=",
    "finals": SEVERAL,
}
AT_WORK = "fewer workers=, a smaller width= (32 is the smallest that saves) or shorter delays"


class Job:
    """What is asked of every setting. grid: without settings as long as there are none."""

    def __init__(
        self, grid: Grid | Outline, runs: Any, seed: Any, rounds: Any, keep: str, paired: bool
    ) -> None:
        self.runs, self.seed = checks.size("runs", runs, 1), checks.seed(seed)
        self.keep, self.paired = checks.choice("keep", keep, KEEP), checks.boolean("paired", paired)
        self.settings = grid.settings
        worlds = [one.values.get(WORLD, 0) for one in grid.settings]
        self.first = np.array(worlds, np.int64) * self.runs
        if self.first.max(initial=0) + self.runs > MOST_RUNS:
            raise ValueError(
                f"world={max(worlds)} times runs={self.runs} must be below {MOST_RUNS:,}, the "
                "number of runs that a seed has"
            )
        if HORIZON in grid.axes and not checks.is_single(rounds):
            raise ValueError("rounds must be a number where the horizon is an axis, but got a list")
        horizons = sorted(set(grid.horizons))
        self.points = {horizon: recorded_rounds(rounds, horizon) for horizon in horizons}
        lengths = {len(points) for points in self.points.values()}
        if len(lengths) > 1:
            raise ValueError(
                f"rounds={rounds!r} is more than the shortest horizon {horizons[0]}: "
                f"record at most {min(lengths)} rounds"
            )
        self.length = lengths.pop()

    def runs_of_seed(self, members: np.ndarray) -> np.ndarray:
        """int64 [members] of (setting, run) pairs: the number of each run among those of the seed,
        which is not `run` where the axis "world" says so.
        """
        return self.first[members[:, 0]] + members[:, 1]

    def keys(self, members: np.ndarray) -> np.ndarray:
        """uint32 [2, members] of (setting, run) pairs [members, 2]."""
        runs = self.runs_of_seed(members)
        if self.paired:
            return rng.run_keys(self.seed, runs)
        keys = np.empty((2, len(members)), np.uint32)
        streams = np.array([self.settings[setting].stream for setting in members[:, 0]])
        for stream in np.unique(streams):
            mine = streams == stream
            keys[:, mine] = rng.run_keys(self.seed, runs[mine], int(stream))
        return keys


class Cut(NamedTuple):
    """How the runs of a group are cut into blocks: known before any of these is made.

    lots: settings whose runs are laid side by side, then cut after every `width` members. stacked:
    does each run of a block bring a game of its own?
    """

    group: int
    lots: list[list[int]]
    stacked: bool
    width: int

    def count(self, runs: int) -> int:
        """How many blocks."""
        sizes = Counter(map(len, self.lots))
        return sum(many * -(-size * runs // self.width) for size, many in sizes.items())


class Block(NamedTuple):
    """Runs played by one program. group: which; members: int [members, 2], setting and run.

    games: of each member, or the one that all play (stacked is False). width: see `Cut`.
    """

    group: int
    members: np.ndarray
    games: Recipes
    stacked: bool
    width: int


def cut(groups: list[Group], job: Job, width: int | None, backend: str | None = None) -> list[Cut]:
    """One for each group."""
    width = None if width is None else checks.size("width", width, 1)
    cuts = []
    for number, found in enumerate(groups):
        side = _side_by_side(found, job, backend) if width is None else width
        several = len(found.settings) > 1
        mixed = of_several(side, job.runs, table_bytes(found.games[0])) if several else 0
        if mixed:
            cuts.append(Cut(number, _by_horizon(found, job), True, mixed))
        else:
            lots = [[setting] for setting in found.settings]
            cuts.append(Cut(number, lots, False, min(side, stepped(job.runs))))
    return cuts


def make_blocks(groups: list[Group], cuts: list[Cut], runs: int) -> list[Block]:
    blocks = []
    for one in cuts:
        found = groups[one.group]
        recipe_of = dict(zip(found.settings, found.games.recipes, strict=True))
        for lot in one.lots:
            settings = np.array(lot)
            for first in range(0, len(lot) * runs, one.width):
                place = np.arange(first, min(first + one.width, len(lot) * runs))
                members = np.stack([settings[place // runs], place % runs], axis=1)
                playing = members[:, 0].tolist() if one.stacked else lot
                games = Recipes([recipe_of[setting] for setting in playing])
                blocks.append(Block(one.group, members, games, one.stacked, one.width))
    return blocks


def _side_by_side(found: Group, job: Job, backend: str | None) -> int:
    longest = max(job.settings[setting].horizon for setting in found.settings)
    runs, types = len(found.settings) * job.runs, types_of(found.games[0])
    return side_by_side(runs, longest, types.carry, backend)


def _by_horizon(found: Group, job: Job) -> list[list[int]]:
    """Settings that may share blocks: those with the same horizon."""
    lots: dict[int, list[int]] = {}
    for setting in found.settings:
        lots.setdefault(job.settings[setting].horizon, []).append(setting)
    return list(lots.values())


def check_names(grid: Grid, groups: list[Group]) -> None:
    """Raise where a fact of a learner is an array, or has the name of an axis, or of something else
    that we return.
    """
    for found in groups:
        facts, arrays = types_of(found.games[0])[2:]
        if arrays:
            raise TypeError(
                f"learner {grid.settings[found.settings[0]].label!r} reports {arrays[0]!r}, which "
                "is no scalar: a sweep keeps scalars (simulate keeps arrays too)"
            )
        for name in grid.axes:
            check_name(name, facts)
        for name in facts:
            if name in RESERVED:
                label = grid.settings[found.settings[0]].label
                raise ValueError(
                    f"learner {label!r} reports a fact called {name!r}, which is the name of "
                    "something else in the result: rename it"
                )


def game_of_block(block: Block) -> Any:
    """The game of all runs of a block, or those of every run, stacked."""
    return block.games.stacked() if block.stacked else block.games[0]


@dataclass(frozen=True)
class Plan:
    """What a sweep will take. bytes_of_result: in memory; bytes_at_work: blocks in flight;
    bytes_of_settings: what the settings are made of, their descriptions, and which runs share a
    block. The compiled programs, some 0.1 GB, are not counted. name: of the call.
    """

    settings: int
    runs: int
    rounds: int
    programs: int
    blocks: int
    bytes_of_result: int
    bytes_at_work: int
    bytes_of_settings: int
    name: str = "sweep"

    @property
    def bytes(self) -> int:
        """In all."""
        return self.bytes_of_result + self.bytes_at_work + self.bytes_of_settings

    def __str__(self) -> str:
        programs = f"{self.programs} program{'s' * (self.programs != 1)}"
        return (
            f"{self.name}: {self.settings:,} settings, {self.runs:,} runs, {self.rounds:.3g} rounds"
            f" in {self.blocks:,} blocks of {programs}; "
            f"result {memory.size(self.bytes_of_result)}, "
            f"at work {memory.size(self.bytes_at_work)}, "
            f"settings {memory.size(self.bytes_of_settings)}"
        )


def make_plan(
    grid: Grid,
    groups: list[Group],
    cuts: list[Cut],
    job: Job,
    workers: int,
    stored: bool,
    backend: str | None = None,
) -> Plan:
    """stored: finished blocks are written to files, and so are those on their way."""
    facts = 2 + len({name for found in groups for name in types_of(found.games[0]).facts})
    settings, blocks = len(grid.settings), [one.count(job.runs) for one in cuts]
    points = sum(cells.size for cells in grid.cells.values())
    held = [_at_work(groups[one.group], one, job, stored, backend) for one in cuts]
    games = sum(
        len({id(one.problem) for one in found.games.recipes}) * table_bytes(found.games[0])
        for found in groups
    )
    return Plan(
        settings=settings,
        runs=settings * job.runs,
        rounds=sum(setting.horizon for setting in grid.settings) * job.runs,
        programs=len({(one.group, one.stacked) for one in cuts}),
        blocks=sum(blocks),
        bytes_of_result=_result_bytes(job, points, settings, facts, sum(blocks), stored),
        bytes_at_work=min(workers, sum(blocks)) * max(held),
        bytes_of_settings=_setting_bytes(settings, settings * job.runs, stored)
        + grid.bytes
        + games,
    )


def _at_work(found: Group, one: Cut, job: Job, stored: bool, backend: str | None) -> int:
    """Bytes of a block in flight; where it is stored on its way, what is written of it too."""
    horizons = {job.settings[lot[0]].horizon for lot in one.lots}
    longest = max(horizons)
    stops = max(len(stops_of(job.points[horizon])) for horizon in horizons)
    game = found.games[0]
    state = carried(game, one.width, longest, backend)
    besides = passing(game, one.width, one.stacked, stops, longest, backend)
    return state * (1 + stored) + besides


def _result_bytes(
    job: Job, points: int, settings: int, facts: int, blocks: int, stored: bool
) -> int:
    """Of the result at every point, and of the parts that it is put together from: of those in
    files there is one at a time, and the moments so far.
    """
    finals, curves = facts * job.runs, {"curves": 2 * job.length * job.runs}.get(job.keep, 0)
    pieces = settings if stored else settings + blocks
    moments = job.length * (4 * points + len(Moments._fields) * pieces)
    parts = points if stored else points + settings
    return 8 * (parts * (finals + curves) + (moments if job.keep == "moments" else 0))


def _setting_bytes(settings: int, runs: int, stored: bool) -> int:
    return (SETTING_BYTES + STORED_BYTES * stored) * settings + MEMBER_BYTES * runs


def refuse(plan: Plan, given: float | None, remedy: str) -> None:
    """Raise where what is planned does not fit. given: as `memory.checked` gives it; remedy: where
    the result is too large.
    """
    if given is None and plan.bytes <= memory.UNASKED:
        return
    remedies = (
        (plan.bytes_of_result, remedy),
        (plan.bytes_at_work, AT_WORK),
        (plan.bytes_of_settings, SEVERAL),
    )
    memory.refuse(str(plan), plan.bytes, memory.limit_of(given), max(remedies)[1])


def refuse_outline(outline: Outline, job: Job, stored: bool, limit: float, planned: bool) -> None:
    """Raise where a sweep cannot fit, whatever its settings will be like: before there are any.

    planned: where it is only to be planned, nothing but the settings has to fit.
    """
    settings, points = outline.number_of_settings, outline.number_of_points
    runs, words = settings * job.runs, f"sweep: {settings:,} settings"
    held = _setting_bytes(settings, 0 if planned else runs, stored and not planned)
    result = 0 if planned else _result_bytes(job, points, settings, FACTS, 0, stored)
    remedy = REMEDIES[job.keep] if result > held else SEVERAL
    if not planned:
        words = f"{words}, {runs:,} runs; result at least {memory.size(result)}"
    words = f"{words}, settings at least {memory.size(held)}"
    memory.refuse(words, held + result, limit, remedy)
