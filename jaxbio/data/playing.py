"""The log of a game that jaxbio plays itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from jaxbio import checks
from jaxbio.environment.environment import (
    MAX_HORIZON,
    Environment,
    check_environment,
    sample_world,
)
from jaxbio.environment.windowed import WindowedDelay


def play_log(env: Environment, rows: int, seed: int = 0) -> pd.DataFrame:
    """The log of a game in which actions are chosen at random, all with the same probability.

    Columns: `round` (1, 2, ...), `action`, `state`, `loss` and `arrived` (the round at the end of
    which the loss is seen). What has not come when the log ends has no `arrived` and no `loss`.
    Where delays are a `WindowedDelay` it is the log of a shop: it has conversions only, whenever
    they come; all other rows have the loss `absent`, and no `arrived`.

    env: the problem. rows: rounds. seed: the same seed gives the same log.
    """
    check_environment(env)
    rows = checks.size("rows", rows, 1, MAX_HORIZON)
    seed = checks.integer("seed", seed, 0, 2**32 - 1)
    shop = env.delays if isinstance(env.delays, WindowedDelay) else None
    if shop is not None:
        env = dataclasses.replace(env, delays=shop.law)
    world = sample_world(env, seed, 0, rows)
    at = np.arange(rows)
    action = np.random.default_rng(seed).integers(env.num_actions, size=rows)
    state = world["states"][at, action]
    loss = world.get("shown", world["losses"])[at, state].astype(float)
    delay = world["delays"]
    arrived = at + 1.0 + (delay[at, state] if delay.ndim == 2 else delay)
    arrived[arrived > rows] = np.nan
    if shop is not None:
        arrived[loss == shop.absent] = np.nan
    loss[np.isnan(arrived)] = np.nan if shop is None else shop.absent
    columns = {"round": at + 1, "action": action, "state": state, "loss": loss}
    return pd.DataFrame(columns | {"arrived": arrived})
