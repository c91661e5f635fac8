"""All four regimes: mappings and losses, each stochastic or adversarial.

With stochastic losses an average of past losses says what a state costs, and MetaBIO gains from it,
whatever the mapping does. With adversarial losses it says nothing, and the two environments here
are built so that this shows: what MetaBIO is told about its actions is wrong, or empty.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.environment import Environment
from jaxbio.environment.instances import make_environment
from jaxbio.environment.losses import TableLosses
from jaxbio.environment.mappings import StochasticMapping, TableMapping
from jaxbio.lab.contestants import contestants
from jaxbio.sweep import sweep

TURN = 0.4  # the share of the horizon after which adversarial losses turn


def turning_losses(horizon: int, delay: int) -> Environment:
    """Stochastic mapping, adversarial losses: a state that is best for a while, then worst.

    Action 0 leads to state 0, which costs nothing before the turn and 1 after it; action 1 leads to
    state 1, which always costs 0.4 and is the better choice over all. The average of state 0 rises
    so slowly after the turn that an estimate from it keeps action 0 the favourite to the end.
    """
    after = np.arange(horizon) >= TURN * horizon
    values = np.stack([np.where(after, 1.0, 0.0), np.full(horizon, 0.4)], axis=1)
    return Environment(
        StochasticMapping([[0.9, 0.1], [0.1, 0.9]]), TableLosses(values), FixedDelay(delay)
    )


def swapping_states(horizon: int, delay: int) -> Environment:
    """Adversarial mapping, adversarial losses: states change their meaning in every round.

    Action 0 shows state 0 in even rounds and 1 in odd ones, action 1 the other; the losses swap
    along, so an action costs 0.25 or 0.75 whatever the parity, and both states cost the same on
    average: states tell nothing about actions. After the turn the actions change places, which a
    learner that only looks at states cannot see.
    """
    t = np.arange(horizon)
    states = np.stack([t % 2, 1 - t % 2], axis=1)
    first = np.where(t < TURN * horizon, 0.25, 0.75)  # of action 0
    values = np.empty((horizon, 2))
    values[t, states[:, 0]], values[t, states[:, 1]] = first, 1 - first
    return Environment(TableMapping(states, 2), TableLosses(values), FixedDelay(delay))


def four_regimes(horizon: int, delay: int) -> dict[str, Environment]:
    """regime -> environment; the two with stochastic losses are the paper's."""
    delays = FixedDelay(delay)
    return {
        "stochastic mapping, stochastic losses": make_environment(
            "paper-stochastic", delays=delays
        ),
        "adversarial mapping, stochastic losses": make_environment(
            "paper-adversarial", delays=delays
        ),
        "stochastic mapping, adversarial losses": turning_losses(horizon, delay),
        "adversarial mapping, adversarial losses": swapping_states(horizon, delay),
    }


def play_regimes(
    *,
    horizon: int = 10_000,
    delay: int = 100,
    runs: int = 50,
    seed: int = 0,
    rounds: int = 200,
    learners: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Regret of every learner in all four regimes.

    store: a folder for finished parts; the same call goes on where it was interrupted.

    Returns:
      A Dataset as of `sweep`, with the dimension regime in front: regret [regime, learner, run,
      round] and the facts of the runs.
    """
    horizon, delay = checks.integer("horizon", horizon, 2), checks.integer("delay", delay, 0)
    known = dict(contestants() if learners is None else learners)
    envs = four_regimes(horizon, delay)
    data = sweep(
        lambda regime: envs[regime],
        known,
        {"regime": list(envs)},
        horizon=horizon,
        runs=runs,
        seed=seed,
        rounds=rounds,
        store=store,
        progress=progress,
    )
    return data.transpose("regime", ...)
