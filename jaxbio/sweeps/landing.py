"""What stays of a block when all its rounds are played, wherever that was."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from jaxbio import checks
from jaxbio.engine.player import Played, stops_of
from jaxbio.sweeps.moments import Moments, moments
from jaxbio.sweeps.plan import Block, Job
from jaxbio.sweeps.result import at_recorded, running_sum

Arrays = dict[str, np.ndarray]


class Landed(NamedTuple):
    """kept: arrays by name, and who has played them; flags: bool [runs], see `checks.FLAGS`."""

    kept: Arrays
    flags: Arrays


def points_of(block: Block, job: Job) -> np.ndarray:
    """The recorded rounds of a block."""
    return job.points[job.settings[block.members[0, 0]].horizon]


def rounds_of(block: Block, job: Job) -> int:
    """Of all runs together."""
    return job.settings[block.members[0, 0]].horizon * len(block.members)


def problem(flags: Arrays, block: Block, job: Job) -> str | None:
    """What only showed in flight, and where: learner, point and run."""
    for flag, message in checks.FLAGS.items():
        raised = np.flatnonzero(flags[flag])
        if raised.size:
            setting, run = block.members[raised[0]]
            found = job.settings[setting]
            place = f" at {found.place}" if found.place else ""
            return (
                f"{message} (learner {found.label!r}{place}, run {run}; "
                f"{raised.size} of {len(block.members)} runs of this block)"
            )
    return None


def land(
    played: Played, backend: str, members: np.ndarray, points: np.ndarray, keep: str
) -> Landed:
    """members: of the block; points: its recorded rounds; keep: as in `sweep`."""
    stops = stops_of(points)
    curve = jax.tree.map(lambda x: running_sum(at_recorded(x, stops, points)), played.curve)
    # Copies: views would keep whole curves, and idle room, in memory.
    facts = {name: fact.copy() for name, fact in played.info.items()}
    flags = {name: facts.pop(name) for name in checks.FLAGS}
    kept = {f"info.{name}": fact for name, fact in facts.items()}
    kept["backend"] = np.array(backend)
    kept |= {"final_regret": curve.regret[-1].copy(), "final_loss": curve.loss[-1].copy()}
    if keep == "curves":
        kept |= {"regret": curve.regret, "loss": curve.loss}
    if keep == "moments":
        borders = np.flatnonzero(np.diff(members[:, 0])) + 1
        pieces = [moments(piece) for piece in np.split(curve.regret, borders, axis=1)]
        kept |= {
            f"moments.{name}": np.stack([getattr(piece, name) for piece in pieces])
            for name in Moments._fields
        }
    return Landed(kept, flags)
