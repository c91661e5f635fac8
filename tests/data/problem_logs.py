"""Small logs of a problem that is known, with one violation of the model or none."""

from __future__ import annotations

from typing import Any

import numpy as np

import jaxbio as jb

MAPPING = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]])
THETA = np.array([0.1, 0.35, 0.6, 0.9])
RATES = np.array([0.05, 0.15, 0.3, 0.5])  # of conversions, in place of theta
SPAN = 100.0  # of the log


def made(
    rng: np.random.Generator,
    rows: int,
    kind: str = "outcomes",
    *,
    late: bool = True,
    spread: str = "coins",
    drift: float = 0.0,
    turn: float = 0.0,
    effect: float = 0.0,
    slow: float = 0.0,
    slow_losses: float = 0.0,
    action: np.ndarray | None = None,
) -> jb.Log:
    """late: outcomes come after exponential times, with a mean of 15. spread: of losses, "coins",
    "beta" or "sales", where most are 0 and a few are large.

    drift: how far the mapping moves; turn: how much losses of all states rise; effect: of the
    action on the loss; slow: how much later outcomes of each state come than those of the one
    before; slow_losses: the logarithm of how many times as late losses of 1 come as losses of 0.
    action: codes [rows], in place of a choice at random.
    """
    time = np.sort(rng.random(rows)) * SPAN
    if action is None:
        action = rng.integers(0, 3, rows)
    moved = (drift * time / SPAN)[:, None]
    shares = (1 - moved) * MAPPING[action] + moved * np.roll(MAPPING, 1, axis=0)[action]
    state = (rng.random(rows)[:, None] > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)
    usual = (RATES if kind == "conversions" else THETA)[state]
    mean = usual * (1 + effect * (action - 1)) + turn * (time / SPAN - 0.5)
    loss = _losses(rng, np.clip(mean, 0.001, 0.999), spread)
    waited = rng.exponential(15, rows) * (1 + slow * state) * np.exp(slow_losses * loss)
    arrived = time + waited if late else time
    come = arrived <= SPAN
    columns = {"time": time, "action": np.char.add("a", action.astype(str)),
               "state": np.char.add("s", state.astype(str))}  # fmt: skip
    roles: dict[str, Any] = {"time": "time", "action": "action", "state": "state"}
    if kind == "conversions":
        come &= loss == 1
        columns |= {"bought": come.astype(float), "arrived": np.where(come, arrived, np.nan)}
        roles |= {"reward": "bought", "arrived": "arrived"}
    else:
        columns |= {"loss": np.where(come, loss, np.nan)}
        roles |= {"loss": "loss"}
        if late:
            columns["arrived"] = np.where(come, arrived, np.nan)
            roles["arrived"] = "arrived"
    return jb.read_log(columns, **roles, time_unit="number", progress=False)


def _losses(rng: np.random.Generator, mean: np.ndarray, spread: str) -> np.ndarray:
    if spread == "coins":
        return (rng.random(mean.size) < mean).astype(float)
    if spread == "beta":
        return rng.beta(4 * mean, 4 * (1 - mean))
    sales = np.minimum(rng.lognormal(-4, 1.3, mean.size), 1)
    return np.where(rng.random(mean.size) < 0.05 + 0.1 * mean, sales, 0.0)


def bias(effect: float, theta: np.ndarray = THETA) -> np.ndarray:
    """[K]: what states leave unexplained of each action's loss, actions being chosen alike."""
    means = np.clip(theta * (1 + effect * (np.arange(3)[:, None] - 1)), 0.001, 0.999)
    pooled = (MAPPING * means).sum(axis=0) / MAPPING.sum(axis=0)
    return (MAPPING * (means - pooled)).sum(axis=1)
