"""The theorems' bounds along a regret curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxbio import theory
from jaxbio.environment.delays import realised_delays
from jaxbio.environment.environment import Environment
from jaxbio.learners.exp3 import DAdaExp3
from jaxbio.learners.metaadabio import MetaAdaBIO
from jaxbio.learners.metabio import MetaBIO
from jaxbio.studies.paper.experiment import Options

POINTS = 25


def bounds(
    env: Environment, options: Options, learners: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Learner -> [points, 2]: rounds t and the bound on the regret R_t of a game of t rounds.

    Only for learners that a theorem is about, with the tuning that it supposes (`is_covered`);
    random delays are those of run 0. learners: label -> learner, as they play.
    """
    delays = realised_delays(env.delays, options.seed, options.horizon)
    first = min(10, options.horizon)
    rounds = np.unique(np.geomspace(first, options.horizon, POINTS).round().astype(int))
    return {
        name: np.array([[t, bound(env, options, delays[:t])] for t in rounds])
        for name, bound in BOUNDS.items()
        if name in learners and is_covered(learners[name])
    }


def is_covered(learner: Any) -> bool:
    """Is a theorem about this learner? All are about DAda-Exp3 alone or inside; around it they
    suppose the corrected rate. That of MetaAdaBIO is for the rule "theory" and a base that starts
    afresh at the switch: not for the practical rule, and not for a base that goes on.
    """
    if isinstance(learner, MetaAdaBIO):
        as_proved = learner.rule == "theory" and learner.at_switch == "fresh"
        return as_proved and _is_corrected(learner.base)
    if isinstance(learner, MetaBIO):
        return _is_corrected(learner.base)
    return isinstance(learner, DAdaExp3)


def _is_corrected(base: Any) -> bool:
    return isinstance(base, DAdaExp3) and base.tuning == "corrected"


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


BOUNDS: dict[str, Callable[[Environment, Options, Any], float]] = {
    "DAda-Exp3": _dada,
    "MetaBIO": _metabio,
    "MetaAdaBIO": _metaadabio,
}


def _given(env: Environment, options: Options, delays: Any) -> dict[str, Any]:
    return {
        "horizon": len(delays),
        "num_actions": env.num_actions,
        "num_states": env.num_states,
        "delays": delays,
        "delta": options.delta,
    }
