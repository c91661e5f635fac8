"""The oracle on the family of Experiment 3, in worlds of its own; scripts/check_phase.py too."""

from __future__ import annotations

import numpy as np
import reference

GAP = 0.32  # between the good action and the others
SPECS: tuple[reference.Spec, ...] = (
    {"name": "dada-exp3", "delta": 0.05},
    {"name": "metabio", "delta": 0.1, "base": {"name": "dada-exp3", "delta": 0.05}},
)


def final_regret(
    which: int, run: int, *, actions: int, states: int, delay: int, horizon: int
) -> float:
    """Final pseudo-regret of one run, the same world for all. which: of SPECS, base or wrapper."""
    generator = np.random.default_rng([states, delay, run])
    table = np.full((actions, states), 0.4 / (states - 1))
    table[:, 0] = 0.6
    table[0] = np.eye(states)[0]
    theta = np.array([0.2] + [1.0] * (states - 1))
    cdf = np.cumsum(table, axis=1)[:, :-1]
    seen = np.sum(generator.random((horizon, actions, 1)) >= cdf, axis=2)
    losses = (generator.random((horizon, states)) < theta).astype(float)
    world = reference.World(seen.tolist(), losses.tolist(), [delay] * horizon, states)
    trace = reference.play(SPECS[which], world, generator.random(horizon).tolist())
    return GAP * sum(action > 0 for action in trace.actions)


def log_ratio(finals: np.ndarray, paired: bool) -> tuple[float, float]:
    """The logarithm of a ratio of means and its standard error (delta method).

    finals: [2, runs], base and wrapper, of which run i is played in the same world if `paired`.
    """
    means = finals.mean(axis=1, keepdims=True)
    relative = finals / means
    parts = np.diff(relative, axis=0) if paired else relative
    error = np.linalg.norm(parts.std(axis=1, ddof=1)) / np.sqrt(finals.shape[1])
    return float(np.diff(np.log(means), axis=0)[0, 0]), float(error)
