"""Logs of a known world, in which actions were chosen at random."""

from __future__ import annotations

import warnings
from typing import Any

import helpers
import numpy as np

import jaxbio as jb

K, S = 3, 3
P = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]])
THETA = np.array([0.9, 0.5, 0.25])
NAMES: dict[str, Any] = {
    "time": "shown", "action": "arm", "state": "seen", "loss": "cost", "arrived": "known",
    "time_unit": "number",
}  # fmt: skip


def world(delay: float) -> jb.Environment:
    """What `table` draws from."""
    return jb.Environment(
        jb.StochasticMapping(P), jb.BernoulliLosses(THETA), jb.GeometricDelay(delay)
    )


def table(
    rows: int, seed: int, delay: float, graded: bool = False, **columns: Any
) -> dict[str, Any]:
    """Rounds 1, 2, ... with an outcome each, which is known after a geometric delay, unless the log
    has ended by then. columns: instead of its own.
    """
    generator = np.random.default_rng(seed)
    action = generator.integers(K, size=rows)
    state = helpers.draw_states(generator, P, rows)[np.arange(rows), action]
    loss = helpers.draw_losses(generator, THETA, rows, graded)[np.arange(rows), state]
    shown = np.arange(1.0, rows + 1)
    known = shown + generator.geometric(1 / (delay + 1), rows) - 1
    made = {
        "shown": shown,
        "arm": np.char.add("arm ", action.astype(str)),
        "seen": np.char.add("state ", state.astype(str)),
        "cost": loss,
        "known": np.where(known > rows, np.nan, known),
    }
    made["cost"] = np.where(np.isnan(made["known"]), np.nan, loss)
    return made | columns


def read(source: Any, **options: Any) -> jb.Log:
    """Without warnings of what looks wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jb.LogWarning)
        return jb.read_log(source, **NAMES | options, progress=False)
