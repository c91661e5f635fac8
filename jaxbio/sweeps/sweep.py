"""Thousands of settings, learners and seeds: grouped by structure, played in blocks, labelled."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import checks, rng
from jaxbio.checks import memory as room
from jaxbio.display.bars import tqdm
from jaxbio.engine.backends import choice
from jaxbio.engine.code.fingerprint import digest
from jaxbio.storage.provenance import surroundings
from jaxbio.storage.store import Store, checked_path
from jaxbio.sweeps import cluster
from jaxbio.sweeps.dataset import label
from jaxbio.sweeps.description import describe, whole
from jaxbio.sweeps.execute import play_all
from jaxbio.sweeps.grid import Grid, Group, Outline, group, make_grid
from jaxbio.sweeps.plan import (
    REMEDIES,
    Block,
    Cut,
    Job,
    Plan,
    check_names,
    cut,
    make_blocks,
    make_plan,
    refuse,
    refuse_outline,
)
from jaxbio.sweeps.workers import number_of_workers

FORMAT = 4


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
    client: Any = None,
    width: int | None = None,
    workers: int | None = None,
    memory: float | None = None,
    backend: str | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Play every learner at every point of a grid, `runs` times.

    Args:
      environment: an Environment, or a function of the axes that it names.
      learners: label -> learner, or a function of the axes that it names.
      axes: name -> values. Numbers share one program per learner; names (of a tuning, a rule) and
        whatever else chooses code cost one each. An axis "horizon" varies T. An axis "world" of
        integers says which runs are played: at w the `runs` from w * runs on. With it problems that
        differ (draws of a posterior) can be met in worlds of their own.
      horizon: T, unless it is an axis.
      runs: per setting. Run i is the same whatever else is in the sweep.
      seed: the root seed.
      rounds: how many rounds to record, spread evenly, or which ones (only a number where the
        horizon is an axis).
      keep: "curves" regret and loss of all runs at all recorded rounds; "moments" mean, variance,
        least and most of the regret over runs at the recorded rounds; "finals" neither. The final
        regret and loss and the facts of every run are always kept.
      quantiles: of the final regret over runs.
      paired: all learners meet the same worlds; False gives each its own.
      store: a folder for finished blocks; the same call goes on where it was interrupted.
      checkpoint: seconds between two savings of a block that is still being played (with a store,
        and not on a cluster). It is also saved when it is stopped.
      client: a `distributed.Client`: its cluster plays the blocks, with the same bits. This process
        writes them to the store as they arrive. By default threads of this process play.
      width, workers: runs per program, blocks in flight here (where these are not given and do not
        fit into memory, one). They never change a run. Another width adds up moments in another
        order, which may change their last bits, and cuts other blocks: a store is of one width.
      memory: bytes that the sweep may take (default: what is free, control groups included).
      backend: what plays, as in `simulate`; the attribute `backend` of the result says which.
      progress: say what it will take, and show a bar (of the planning too, where it takes long).
    Returns:
      A Dataset with dimensions learner, the axes, run and round (part where the horizon is an
      axis: then `round` is a coordinate of horizon and part). A fact that a learner does not
      report is NaN.
    """
    asked = _asked(
        environment, learners, axes, horizon, runs, seed, rounds, keep, quantiles, paired, store,
        checkpoint, client, width, workers, memory, backend, progress,
    )  # fmt: skip
    refuse(asked.plan, asked.memory, REMEDIES[keep])
    described = describe(asked.grid.settings, progress)
    blocks = make_blocks(asked.groups, asked.cuts, asked.job.runs)
    folder = None
    if asked.store is not None:
        words = whole(described)
        settings = _settings(asked, blocks, words)
        folder = Store(asked.store, settings, _contents(asked.job, blocks, words))
        folder.check_blocks()
    if progress:
        tqdm.write(str(asked.plan), file=sys.stderr)
    kept = play_all(
        blocks,
        asked.job,
        folder,
        asked.checkpoint,
        asked.workers,
        progress,
        asked.backend,
        asked.client,
    )
    return label(asked.grid, blocks, kept, asked.job, asked.quantiles, described)


def plan_sweep(environment: Any, learners: Any, axes: Any, **arguments: Any) -> Plan:
    """What `sweep` with these arguments would take; nothing is played, compiled or written."""
    given = inspect.signature(sweep).bind(environment, learners, axes, **arguments)
    given.apply_defaults()
    return _asked(**given.arguments, only_plan=True).plan


@dataclass(frozen=True)
class _Asked:
    """What is asked, checked, and what it will take."""

    grid: Grid
    job: Job
    groups: list[Group]
    cuts: list[Cut]
    plan: Plan
    quantiles: np.ndarray
    store: Path | None
    checkpoint: float
    client: Any
    workers: int
    memory: float | None
    backend: str | None


def _asked(
    environment: Any,
    learners: Any,
    axes: Any,
    horizon: Any,
    runs: Any,
    seed: Any,
    rounds: Any,
    keep: Any,
    quantiles: Any,
    paired: Any,
    store: Any,
    checkpoint: Any,
    client: Any,
    width: Any,
    workers: Any,
    memory: Any,
    backend: Any,
    progress: Any,
    only_plan: bool = False,
) -> _Asked:
    """The front door. Raises with the argument's name, the value and what was expected."""
    checks.boolean("progress", progress)
    checkpoint = checks.number("checkpoint", checkpoint, 0)
    memory = room.checked(memory)
    limit = room.limit_of(memory)
    chosen = _checked_quantiles(quantiles)
    client = cluster.checked(client, workers)
    most = number_of_workers(1 if client else workers)
    folder = checked_path(store)
    backend = choice.checked(backend)

    def before_settings(outline: Outline) -> None:
        job = Job(outline, runs, seed, rounds, keep, paired)
        refuse_outline(outline, job, folder is not None, limit, only_plan)

    grid = make_grid(environment, learners, axes, horizon, before_settings, limit, progress)
    job = Job(grid, runs, seed, rounds, keep, paired)
    groups = group(grid.settings, progress, backend)
    check_names(grid, groups)
    cuts = cut(groups, job, width, backend)
    plan = make_plan(grid, groups, cuts, job, most, folder is not None, backend)
    if workers is None and plan.bytes > limit:  # one block at a time may fit
        most = 1
        plan = make_plan(grid, groups, cuts, job, most, folder is not None, backend)
    return _Asked(grid, job, groups, cuts, plan, chosen, folder, checkpoint, client, most, memory,
                  backend)  # fmt: skip


def _checked_quantiles(quantiles: Any) -> np.ndarray:
    try:
        given = np.asarray(quantiles)
        fine = given.dtype.kind in "iuf"
    except (TypeError, ValueError, MemoryError, RecursionError):
        fine, given = False, np.empty(0)
    if not fine:
        raise TypeError(f"quantiles must be numbers in [0, 1], but got {checks.shown(quantiles)}")
    values = np.atleast_1d(given.astype(np.float64))
    if values.ndim > 1:
        raise ValueError(f"quantiles must be a list of numbers, but got {values.tolist()}")
    if values.size and not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"quantiles must lie in [0, 1], but got {values.tolist()}")
    if len(np.unique(values)) < len(values):
        raise ValueError(f"quantiles must be different, but got {values.tolist()}")
    return values


def _settings(asked: _Asked, blocks: list[Block], described: dict[str, Any]) -> dict[str, Any]:
    """Everything that the bits of the result depend on, and how blocks are cut."""
    grid, job = asked.grid, asked.job
    return {
        "format": FORMAT,
        **surroundings(),
        "seed": job.seed if isinstance(job.seed, int) else rng.root_words(job.seed).tolist(),
        "runs": job.runs,
        "paired": job.paired,
        "keep": job.keep,
        "rounds": {str(horizon): points.tolist() for horizon, points in job.points.items()},
        "axes": {name: grid.labels(name) for name in grid.axes},
        "learners": described,
        "blocks": len(blocks),
        "backend": choice.preferred(asked.backend),
        "widths": sorted({block.width for block in blocks}),
    }


def _contents(job: Job, blocks: list[Block], described: dict[str, Any]) -> list[str]:
    """For each block, a digest of the games and runs in it."""
    made = [digest([name, of]) for name, places in described.items() for of in places.values()]
    played = [zip(block.members[:, 0], job.runs_of_seed(block.members), strict=True)
              for block in blocks]  # fmt: skip
    return [digest([[made[setting], int(run)] for setting, run in pairs]) for pairs in played]
