"""What it is worth to wait longer for outcomes that come by themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.checks import memory
from jaxbio.environment.environment import (
    Environment,
    check_environment,
    sample_world,
    world_entries,
)
from jaxbio.environment.windowed import WindowedDelay
from jaxbio.sweeps.sweep import sweep

MOST_ROUNDS = 50_000  # of which the conversions in time are counted
MOST_BYTES = 1 << 30  # that the world of these rounds may take while it is made
OWN = ("environment", "axes")  # arguments of `sweep` that are made here


def sweep_windows(
    env: Environment | Sequence[Environment],
    learners: Any,
    windows: Sequence[int],
    *,
    horizon: int,
    absent: float = 1.0,
    seed: Any = 0,
    **options: Any,
) -> xr.Dataset:
    """Play every learner with every window: what waiting longer is worth.

    Regret counts the true losses in all of them (see `WindowedDelay`), so it can be compared.

    Args:
      env: the problem; its delays are those of conversions. Or several, as draws of a posterior:
        then each is played in worlds of its own, the dimension "world" of the result counts them,
        and means over it are means over draws and runs together.
      learners, horizon, seed: as in `sweep`.
      windows: for how many rounds an outcome is waited for, increasing.
      absent: the loss of a round in which nothing happens.
      options: of `sweep`.
    Returns:
      The Dataset of the sweep, with a dimension "window", and in_time [window, state]: the share of
      conversions that come within the window, counted in the first rounds of run 0 (of each
      problem); NaN where a state has none. It counts at most 50,000 rounds of all problems
      together, and fewer where they take more than 1 GB.
    """
    envs: list[Any] = list(env) if isinstance(env, Sequence) and env else [env]
    several = envs[0] is not env
    for one in envs:
        check_environment(one)
        if isinstance(one.delays, WindowedDelay):
            raise ValueError(
                "env must have the delays of conversions, but they have a window already: "
                "give the law in it (env.delays.law)"
            )
    for name in OWN:
        if name in options:
            raise TypeError(f"sweep_windows has no option {name!r}: it sweeps windows of env")
    windows = checks.increasing("windows", windows, 0)
    horizon = checks.size("horizon", horizon, 1)

    def problem(window: int, world: int = 0) -> Environment:
        one = envs[world]
        return dataclasses.replace(one, delays=WindowedDelay(one.delays, window, absent))

    problem(windows[0])  # its complaints first
    axes: dict[str, list[int]] = {"window": windows}
    made: Any = lambda window: problem(window)  # noqa: E731
    if several:
        axes["world"], made = list(range(len(envs))), problem
    # Before the sweep, which may take hours: whatever is wrong with it is said at once.
    rounds = max(1, min(horizon, _rounds_that_fit(envs[0])) // len(envs))
    found = _in_time(envs, windows, rounds, absent, seed)
    data = sweep(made, learners, axes, horizon=horizon, seed=seed, **options)
    return data.assign(in_time=(("window", "state"), found))


def _rounds_that_fit(env: Environment) -> int:
    room = min(MOST_BYTES, memory.free_memory() / 2)
    return max(1, min(MOST_ROUNDS, int(room / (8 * memory.CHECKED * world_entries(env)))))


def _in_time(
    envs: list[Environment], windows: list[int], rounds: int, absent: float, seed: Any
) -> np.ndarray:
    """[windows, S]; rounds: of each problem."""
    inside, every = np.zeros(()), np.zeros(())
    for run, env in enumerate(envs):
        world = sample_world(env, seed, run, rounds)
        delays = np.broadcast_to(world["delays"].reshape(rounds, -1), world["losses"].shape)
        comes = world["losses"] != world["losses"].dtype.type(absent)
        own = [np.sum(comes & (delays <= window), axis=0) for window in windows]
        inside, every = inside + np.stack(own), every + comes.sum(axis=0)
    shares = np.where(every > 0, inside / np.maximum(every, 1), np.nan)
    return shares[:, : envs[0].num_states]
