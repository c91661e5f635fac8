"""Beyond the paper's assumptions: mappings that change, an unknown horizon, unknown states.

Where the mapping changes, the comparator is the best sequence of actions with one change per phase
(dynamic regret), not the best single action.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.environment import Environment
from jaxbio.environment.instances import make_environment
from jaxbio.environment.losses import BernoulliLosses
from jaxbio.environment.mappings import AlternatingMapping, StochasticMapping
from jaxbio.environment.padding import pad_states
from jaxbio.learners.registry import make_learner
from jaxbio.store import part
from jaxbio.sweep import sweep

GOOD, OTHERS = 0.9, 0.5  # the probability of the good state, for the phase's best action and others
THETA = (0.1, 0.7, 0.9)
MEMORY = 0.62  # in phases; not a simple fraction, or restarts would meet the changes


def phase_length(horizon: int, changes: int) -> int:
    return -(-horizon // (changes + 1))


def remembered(horizon: int, memory: float, changes: int) -> int:
    """Rounds after which a learner forgets. memory: in phases."""
    return max(1, round(memory * phase_length(horizon, changes)))


def changing(actions: int, delay: int, horizon: int, changes: int) -> Environment:
    """Phases of equal length; in each the next action is the best. Three states."""
    tables = np.full((actions, actions, len(THETA)), (1 - OTHERS) / 2)
    tables[:, :, 0] = OTHERS
    best = np.arange(actions)
    tables[best, best] = [GOOD, (1 - GOOD) / 2, (1 - GOOD) / 2]
    mapping = AlternatingMapping(tables, growth=1, first=phase_length(horizon, changes))
    return Environment(mapping, BernoulliLosses(THETA), FixedDelay(delay))


def dynamic_gap(actions: int, delay: int, horizon: int, changes: int) -> float:
    """What the best single action costs more than the best of every phase, over the horizon."""
    mapping: Any = changing(actions, delay, horizon, changes).mapping
    costs = np.asarray(mapping.P_phases) @ np.array(THETA)  # [E, K]
    phase = np.arange(horizon) // phase_length(horizon, changes)
    paid = costs[phase % actions]  # [T, K]
    return float(paid.sum(axis=0).min() - paid.min(axis=1).sum())


def play_changes(
    changes: Sequence[int] = (0, 1, 3, 7),
    *,
    actions: int = 4,
    delay: int = 50,
    horizon: int = 10_000,
    memory: float = MEMORY,
    **given: Any,
) -> xr.Dataset:
    """Learners where the best action changes so many times.

    The restarting base begins anew after `memory` phases, and the window of NSD-UCRL2 is as long:
    both are told how often the mapping changes, not when. given: of `sweep`.

    Returns:
      A Dataset as of `sweep` with final_regret and dynamic_regret [learner, changes, run]; both are
      measured on the same games.
    """
    counts = [checks.integer("changes", count, 0, horizon - 1) for count in changes]

    share = checks.number("memory", memory, 0)
    rounds = partial(remembered, horizon, share)
    data = _finals(
        lambda changes: changing(actions, delay, horizon, changes),
        {
            "DAda-Exp3": make_learner("dada-exp3"),
            "MetaBIO": make_learner("metabio"),
            "MetaBIO, restarting": lambda changes: make_learner(
                "metabio-restarting", period=rounds(changes)
            ),
            "NSD-UCRL2": make_learner("nsd-ucrl2"),
            "NSD-UCRL2, window": lambda changes: make_learner("nsd-ucrl2", window=rounds(changes)),
        },
        {"changes": counts},
        horizon,
        **given,
    )
    gaps = [dynamic_gap(actions, delay, horizon, count) for count in counts]
    gap = xr.DataArray(gaps, {"changes": counts}, ("changes",))
    return data.assign(dynamic_regret=data.final_regret + gap)


def _finals(
    environment: Any,
    learners: Any,
    axes: Any,
    horizon: int = 10_000,
    runs: int = 50,
    **given: Any,
) -> xr.Dataset:
    return sweep(
        environment, learners, axes, horizon=horizon, runs=runs, rounds=1, keep="finals", **given
    )


def with_spare_states(spare: int, delay: int) -> Environment:
    """The problem of Experiment 1 among `spare` times as many states: the others never show."""
    known: Any = make_environment("paper-stochastic")
    slots = spare * known.num_states
    mapping = StochasticMapping(pad_states(known.mapping.P, slots))
    return Environment(
        mapping, BernoulliLosses(pad_states(known.losses.theta, slots)), FixedDelay(delay)
    )


def play_unknowns(
    spare: Sequence[int] = (1, 4, 16),
    *,
    delay: int = 50,
    **given: Any,
) -> xr.Dataset:
    """What it costs not to know the horizon, or the number of states.

    spare: the factors by which the number of states is overestimated. A learner without the horizon
    uses a radius for all rounds (MetaBIO) or doubles its guess (MetaAdaBIO). given: of `sweep`.

    Returns:
      A Dataset as of `sweep` with final_regret [learner, spare, run].
    """
    factors = [checks.integer("spare", factor, 1) for factor in spare]
    return _finals(
        lambda spare: with_spare_states(spare, delay),
        {
            "DAda-Exp3": make_learner("dada-exp3"),
            "MetaBIO": make_learner("metabio"),
            "MetaBIO, no horizon": make_learner("metabio", radius="anytime"),
            "MetaAdaBIO": make_learner("metaadabio", rule="practical"),
            "MetaAdaBIO, no horizon": make_learner("metaadabio", rule="practical", doubling=200),
        },
        {"spare": factors},
        **given,
    )


def play_beyond(
    *,
    horizon: int = 10_000,
    delay: int = 50,
    runs: int = 50,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> tuple[xr.Dataset, xr.Dataset]:
    """Both studies: (of `play_changes`, of `play_unknowns`)."""
    given = {"horizon": horizon, "delay": delay, "runs": runs, "seed": seed, "progress": progress}
    changes = play_changes(store=part(store, "changes"), **given)
    return changes, play_unknowns(store=part(store, "unknowns"), **given)
