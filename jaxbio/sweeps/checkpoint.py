"""The state of a block on its way, in arrays that a store keeps."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxbio.engine.player import Player, Progress
from jaxbio.engine.round import Curve
from jaxbio.storage.store import Store
from jaxbio.sweeps.landing import Arrays


def arrays_of(progress: Progress) -> Arrays:
    """By name, for a store."""
    leaves = jax.tree.leaves(progress.state)
    arrays = {f"state.{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    arrays["last"] = np.array(progress.last)
    for name in Curve._fields:
        pieces = [getattr(piece, name) for piece in progress.pieces]
        arrays[f"curve.{name}"] = np.concatenate(pieces) if pieces else np.empty((0, 0), np.float32)
    return arrays


def progress_of(store: Store, number: int, player: Player, runs: int) -> Progress | None:
    """What was saved last of a block of so many runs. Raises where another program saved it."""
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
