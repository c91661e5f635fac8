"""All four regimes: mappings and losses, each stochastic or adversarial.

With stochastic losses an average of past losses says what a state costs, and MetaBIO gains from it,
whatever the mapping does. With adversarial losses it says nothing, and the two environments here
are built so that this shows: what MetaBIO is told about its actions is wrong, or empty. How regret
grows with the delay in each regime is measured besides (`play_delays`): there, adversarial losses
are those of the lower bound.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.analysis.intervals import of_mean
from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.environment import MAX_HORIZON, Environment
from jaxbio.environment.instances import make_environment
from jaxbio.environment.losses import TableLosses
from jaxbio.environment.mappings import StochasticMapping, TableMapping
from jaxbio.storage.store import part
from jaxbio.studies.adversaries import play_instances
from jaxbio.studies.contestants import contestants, robust, uniform_play
from jaxbio.sweeps.sweep import sweep

TURN = 0.4  # the share of the horizon after which adversarial losses turn
DELAYS = (10, 20, 50, 100, 200, 400)
MEANS = ("regret_mean", "mean_low", "mean_high")
DIFFERENCES = ("difference", "difference_low", "difference_high")
REGIMES = (
    "stochastic mapping, stochastic losses",
    "adversarial mapping, stochastic losses",
    "stochastic mapping, adversarial losses",
    "adversarial mapping, adversarial losses",
)


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
    made = (
        make_environment("paper-stochastic", delays=delays),
        make_environment("paper-adversarial", delays=delays),
        turning_losses(horizon, delay),
        swapping_states(horizon, delay),
    )
    return dict(zip(REGIMES, made, strict=True))


def alternating(env: Environment) -> Environment:
    """A problem with two states and a table of losses, in which states change places in odd rounds
    and losses with them: what an action costs stays, what a state means does not.
    """
    fixed: Any = env
    values = np.array(fixed.losses.values)  # [T, 2]
    odd = np.arange(len(values)) % 2
    states = np.argmax(fixed.mapping.P, axis=1) ^ odd[:, None]  # [T, K]
    swapped = np.where(odd[:, None] == 1, values[:, ::-1], values)
    return Environment(TableMapping(states, 2), TableLosses(swapped), env.delays)


def _drawn_losses(horizon: int, coins: int, regime: str, delay: int) -> Environment:
    """The lower bound's problem; with the mapping of the regime."""
    env = make_environment("hard-adversarial", horizon=horizon, delay=delay, seed=coins)
    return env if regime == REGIMES[2] else alternating(env)


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
    horizon = checks.size("horizon", horizon, 2, MAX_HORIZON)
    delay = checks.size("delay", delay, 0, horizon - 1)
    known = contestants() if learners is None else _labelled(learners)
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


def _labelled(learners: Any) -> dict[str, Any]:
    if not isinstance(learners, Mapping) or not learners:
        raise TypeError(f"learners must map labels to learners, but got {checks.shown(learners)}")
    return dict(learners)


# --- over delays


def play_delays(
    delays: Sequence[int] = DELAYS,
    *,
    horizon: int = 10_000,
    runs: int = 50,
    seed: int = 0,
    learners: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Final regret over the delay in all four regimes, beside the rates of the paper's table.

    With stochastic losses the problems are those of `four_regimes`; with adversarial ones they are
    those of the lower bound, "hard-adversarial", whose losses are drawn anew for every run (draws
    differ more than the runs on one of them do); with an adversarial mapping its states change
    places in every round.

    learners: by default those of `robust` and uniform play, which never learns.

    Returns:
      A Dataset with regret_mean, mean_low, mean_high [regime, learner, delay]; difference,
      difference_low, difference_high [regime, learner, delay]: regret less that of the first
      learner in the same runs; and rate [regime, seen, delay]: sqrt((K + d) T) without states, and
      with them sqrt((K + min(S, d)) T) where losses are stochastic. Intervals are of 95 %.
    """
    values, horizon, runs = checked_delays(delays, horizon, runs)
    known = robust() | uniform_play() if learners is None else _labelled(learners)
    given: Any = {
        "learners": known,
        "horizon": horizon,
        "seed": seed,
        "rounds": 1,
        "keep": "finals",
        "progress": progress,
    }
    stochastic = sweep(
        lambda regime, delay: four_regimes(horizon, delay)[regime],
        axes={"regime": REGIMES[:2], "delay": values},
        runs=runs,
        store=part(store, "stochastic"),
        **given,
    ).final_regret
    adversarial = play_instances(
        lambda coins: partial(_drawn_losses, horizon, coins),
        runs,
        runs=1,
        axes={"regime": REGIMES[2:], "delay": values},
        store=part(store, "adversarial"),
        **given,
    )
    data = xr.concat([_means(stochastic), _means(adversarial)], "regime")
    data["rate"] = _table(values, horizon)
    about = {"horizon": horizon, "runs": runs, "seed": str(seed), "reference": next(iter(known))}
    return data.assign_attrs(title="jaxbio regimes", **about)


def checked_delays(delays: Any, horizon: Any, runs: Any) -> tuple[list[int], int, int]:
    """The front door of `play_delays`: increasing delays, the horizon and the number of runs."""
    horizon = checks.size("horizon", horizon, 2, MAX_HORIZON)
    runs = checks.size("runs", runs, 2)
    values = sorted({checks.size("delays", delay, 1, horizon - 1) for delay in delays})
    if not values:
        raise ValueError(f"delays must have at least one value, but got {delays!r}")
    return values, horizon, runs


def _means(regret: xr.DataArray) -> xr.Dataset:
    """Of regret [learner, regime, delay, units]: means and intervals of it and of what it is more
    than the first learner's in the same unit, regimes in front.
    """
    dims, values = ("learner", "regime", "delay"), regret.values
    found = [*of_mean(values), *of_mean(values - values[:1])]
    coordinates = {name: regret[name].values for name in dims}
    named = zip(MEANS + DIFFERENCES, found, strict=True)
    made = xr.Dataset({name: (dims, numbers) for name, numbers in named}, coordinates)
    return made.transpose("regime", "learner", "delay")


def _table(delays: list[int], horizon: int) -> xr.DataArray:
    """[regime, seen, delay]: the paper's rates with states and without."""
    d = np.array(delays)
    with_states, without = np.sqrt((4 + np.minimum(3, d)) * horizon), np.sqrt((4 + d) * horizon)
    lower = np.sqrt((2 + d) * horizon)  # states are of no use
    return xr.DataArray(
        [[with_states, without]] * 2 + [[lower, lower]] * 2,
        {"regime": list(REGIMES), "seen": ["states", "nothing"], "delay": delays},
        ("regime", "seen", "delay"),
    )
