"""How many rounds a learner waits for, with and without intermediate observations."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from jaxbio.engine.rollout import trajectory
from jaxbio.engine.sizing import common_sizes
from jaxbio.environment.environment import Environment
from jaxbio.studies.paper.experiment import Experiment, Options

WITHOUT = "without intermediate observations"
OBSERVERS = ("MetaBIO", "MetaAdaBIO")  # learners whose ticket says whether the base waits
SEED_RUNS = 3


def points(experiment: Experiment) -> list[dict[str, Any]]:
    """Every point of an experiment's grid: axis -> value."""
    values = itertools.product(*experiment.axes.values())
    return [dict(zip(experiment.axes, point, strict=True)) for point in values]


def environment_at(experiment: Experiment, options: Options, point: dict[str, Any]) -> Environment:
    found = experiment.environment(options)
    return found if isinstance(found, Environment) else found(**point)


def outstanding(experiment: Experiment, options: Options, runs: int = SEED_RUNS) -> xr.DataArray:
    """Rounds that are waited for at the end of every round, of the runs that the sweep plays too.

    Returns:
      [learner, *axes, run, round]; the first learner is `WITHOUT`: every round waits for its loss.
    """
    learners = experiment.learners(options)
    names = [name for name in OBSERVERS if name in learners]
    grid = points(experiment)
    envs = [environment_at(experiment, options, point) for point in grid]
    runs = min(runs, options.runs)
    found = np.stack([_one_learner(envs, learners[name], options, runs) for name in names])
    every = found[:1, :, 0]
    values = np.concatenate([every, found[:, :, 1]])  # [learner, point, run, round]
    shape = [len(values) for values in experiment.axes.values()]
    return xr.DataArray(
        values.reshape(len(names) + 1, *shape, runs, options.horizon),
        dims=("learner", *experiment.axes, "run", "round"),
        coords={
            "learner": [WITHOUT, *names],
            **{name: list(values) for name, values in experiment.axes.items()},
            "round": np.arange(1, options.horizon + 1),
        },
    )


def _one_learner(envs: list[Environment], learner: Any, options: Options, runs: int) -> np.ndarray:
    """[points, 2, runs, rounds]: rounds outstanding, and of them those that the base waits for."""
    slots, depth, lanes = common_sizes(envs, [options.horizon] * len(envs))
    played = [
        _play(
            env.padded(slots),
            learner,
            options.seed,
            jnp.arange(runs),
            options.horizon,
            depth,
            lanes,
        )
        for env in envs
    ]
    pairs = [(np.asarray(delay), np.asarray(wait)) for delay, wait in played]
    return np.stack(
        [[_waiting(delay, np.ones_like(wait)), _waiting(delay, wait)] for delay, wait in pairs]
    )


@partial(jax.jit, static_argnames=("horizon", "depth", "lanes"))
def _play(
    env: Environment, learner: Any, seed: Any, runs: Any, horizon: int, depth: int, lanes: int
) -> tuple[Any, Any]:
    """Delay and decision to wait of every round: [runs, rounds] each."""

    def one(run: Any) -> tuple[Any, Any]:
        played = trajectory(env, learner, seed, horizon, run=run, ring_depth=depth, lanes=lanes)
        return played.delay, played.ticket.wait

    return jax.vmap(one)(runs)


def _waiting(delay: np.ndarray, wait: np.ndarray) -> np.ndarray:
    """[runs, rounds]: #{j <= t: round j waits and j + d_j > t}."""
    runs, horizon = delay.shape
    ends = np.minimum(np.arange(horizon) + delay, horizon)
    change = np.zeros((runs, horizon + 1), np.int64)
    change[:, :horizon] += wait
    np.subtract.at(change, (np.arange(runs)[:, None], ends), wait.astype(np.int64))
    return np.cumsum(change[:, :horizon], axis=1)
