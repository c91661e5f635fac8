"""The theorems' bounds along a regret curve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxbio import theory
from jaxbio.environment.delays import realised_delays
from jaxbio.environment.environment import Environment
from jaxbio.experiments.experiment import Options

POINTS = 25


def bounds(env: Environment, options: Options) -> dict[str, np.ndarray]:
    """Learner -> [points, 2]: rounds t and the bound on the regret of a game of t rounds.

    Only for learners whose tuning the theorem supposes; random delays are those of run 0.
    """
    delays = realised_delays(env.delays, options.seed, options.horizon)
    first = min(10, options.horizon)
    rounds = np.unique(np.geomspace(first, options.horizon, POINTS).round().astype(int))
    return {
        name: np.array([[t, bound(env, options, delays[:t])] for t in rounds])
        for name, bound in _bounds(options).items()
    }


def _bounds(options: Options) -> dict[str, Callable[[Environment, Options, Any], float]]:
    known = {"DAda-Exp3": _dada}
    if options.tuning == "corrected":
        known |= {"MetaBIO": _metabio, "MetaAdaBIO": _metaadabio}
    return known


def _dada(env: Environment, options: Options, delays: Any) -> float:
    # The learner's delta' = delta / 2 is that of pseudo-regret at 3/2 delta: two events of three.
    return theory.dada_bound(
        horizon=len(delays),
        num_actions=env.num_actions,
        delays=delays,
        delta=min(1.5 * options.delta, 0.999),
        tuning=options.tuning,
        regret="pseudo",
    ).total


def _metabio(env: Environment, options: Options, delays: Any) -> float:
    return theory.metabio_bound(**_given(env, options, delays)).total


def _metaadabio(env: Environment, options: Options, delays: Any) -> float:
    return theory.metaadabio_bound(**_given(env, options, delays)).total


def _given(env: Environment, options: Options, delays: Any) -> dict[str, Any]:
    return {
        "horizon": len(delays),
        "num_actions": env.num_actions,
        "num_states": env.num_states,
        "delays": delays,
        "delta": options.delta,
    }
