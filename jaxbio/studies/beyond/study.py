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
from jaxbio.environment.environment import MAX_HORIZON, Environment
from jaxbio.environment.instances import make_environment
from jaxbio.environment.losses import BernoulliLosses
from jaxbio.environment.mappings import AlternatingMapping, StochasticMapping
from jaxbio.environment.padding import pad_states
from jaxbio.learners.registry import make_learner
from jaxbio.storage.store import part
from jaxbio.sweeps.sweep import sweep

GOOD, OTHERS = 0.9, 0.5  # the probability of the good state, for the phase's best action and others
THETA = (0.1, 0.7, 0.9)
CHANGES = (0, 1, 3, 7)
MEMORIES = (0.31, 0.62, 0.93, 1.24, 1.86, 2.48)  # no simple fractions: restarts would meet changes
FORGETFUL = {"MetaBIO, restarting": "MetaBIO", "NSD-UCRL2, window": "NSD-UCRL2"}  # of whom


def phase_length(horizon: int, changes: int) -> int:
    """Rounds of every phase but the last, which may be shorter."""
    return -(-horizon // (changes + 1))


def _changes(horizon: int, wanted: Any) -> int:
    """A number of changes that phases of equal length can have."""
    changes = checks.size("changes", wanted, 0, horizon - 1)
    possible = -(-horizon // phase_length(horizon, changes)) - 1
    if possible != changes:
        raise ValueError(
            f"changes must cut the horizon into phases of equal length, but {horizon} rounds "
            f"cannot have {changes} changes so; they can have {possible}"
        )
    return changes


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


def _paid(actions: int, horizon: int, changes: int) -> np.ndarray:
    """[T, K]: what each action costs on average in each round."""
    mapping: Any = changing(actions, 0, horizon, changes).mapping
    costs = np.asarray(mapping.P_phases) @ np.array(THETA)  # [E, K]
    return costs[np.arange(horizon) // phase_length(horizon, changes) % actions]


def dynamic_gap(actions: int, horizon: int, changes: int) -> float:
    """What the best single action costs more than the best of every phase, over the horizon."""
    paid = _paid(actions, horizon, changes)
    return float(paid.sum(axis=0).min() - paid.min(axis=1).sum())


def uniform_regret(actions: int, horizon: int) -> float:
    """The dynamic regret of playing all actions alike, the same for any number of changes."""
    paid = _paid(actions, horizon, 0)
    return float((paid.mean(axis=1) - paid.min(axis=1)).sum())


def play_changes(
    changes: Sequence[int] = CHANGES,
    *,
    memories: Sequence[float] = MEMORIES,
    actions: int = 4,
    delay: int = 50,
    horizon: int = 10_000,
    store: str | os.PathLike[str] | None = None,
    **given: Any,
) -> xr.Dataset:
    """Learners where the best action changes so many times.

    The restarting base begins anew after `memories` phases, and the window of NSD-UCRL2 is as long:
    both are told how often the mapping changes, not when. The same length is not the same memory: a
    window always holds its length, a restarting base half its period on average; so each is to be
    judged at the length that is best for it (`at_best`). given: of `sweep`.

    Returns:
      A Dataset with final_regret and dynamic_regret [learner, changes, memory, run], measured on
      the same games (a learner that forgets nothing is the same along memory); uniform_regret, the
      dynamic regret of uniform play.
    """
    horizon = checks.size("horizon", horizon, 2, MAX_HORIZON)
    actions, delay = checks.size("actions", actions, 2), checks.size("delay", delay, 0)
    axes = {
        "changes": [_changes(horizon, count) for count in _several("changes", changes)],
        "memory": [
            checks.number("memories", memory, 0, open_low=True)
            for memory in _several("memories", memories)
        ],
    }
    env = partial(_at, partial(changing, actions, delay, horizon))
    steady = {name: make_learner(name.lower()) for name in ("DAda-Exp3", "MetaBIO", "NSD-UCRL2")}
    rounds = partial(remembered, horizon)
    forgetful = {
        "MetaBIO, restarting": lambda changes, memory: make_learner(
            "metabio-restarting", period=rounds(memory, changes)
        ),
        "NSD-UCRL2, window": lambda changes, memory: make_learner(
            "nsd-ucrl2", window=rounds(memory, changes)
        ),
    }
    counts = {"changes": axes["changes"]}
    still = _finals(env, steady, counts, horizon, store=part(store, "steady"), **given)
    moving = _finals(env, forgetful, axes, horizon, store=part(store, "forgetful"), **given)
    still = still.expand_dims(memory=axes["memory"])
    regret = xr.concat([still.final_regret, moving.final_regret], "learner")
    gaps = [dynamic_gap(actions, horizon, count) for count in counts["changes"]]
    both = {"final_regret": regret, "dynamic_regret": regret + xr.DataArray(gaps, counts)}
    data = xr.Dataset(both).transpose("learner", "changes", "memory", "run")
    return data.assign(uniform_regret=uniform_regret(actions, horizon))


def at_best(regret: xr.DataArray) -> xr.DataArray:
    """Each learner at the memory with the least mean, chosen in hindsight for each number of
    changes: [learner, changes, run] of [learner, changes, memory, run], with the coordinate memory.
    """
    return regret.isel(memory=regret.mean("run").argmin("memory"))


def _at(environment: Any, changes: int) -> Environment:
    return environment(changes)


def _several(name: str, values: Any) -> list[Any]:
    found = checks.several(name, values, "numbers")
    if not found:
        raise ValueError(f"{name} must be a list of numbers, but got []")
    return found


def _finals(
    environment: Any,
    learners: Any,
    axes: Any,
    horizon: int,
    runs: int = 50,
    **given: Any,
) -> xr.Dataset:
    runs = checks.size("runs", runs, 2)  # one has no interval
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
    horizon: int = 10_000,
    **given: Any,
) -> xr.Dataset:
    """What it costs not to know the horizon, or the number of states.

    spare: the factors by which the number of states is overestimated. A learner without the horizon
    uses a radius for all rounds (MetaBIO) or doubles its guess (MetaAdaBIO). given: of `sweep`.

    Returns:
      A Dataset as of `sweep` with final_regret [learner, spare, run].
    """
    factors = [checks.size("spare", factor, 1) for factor in _several("spare", spare)]
    delay = checks.size("delay", delay, 0)
    horizon = checks.size("horizon", horizon, 2, MAX_HORIZON)
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
        horizon,
        **given,
    )


def play_beyond(
    *,
    changes: Sequence[int] = CHANGES,
    memories: Sequence[float] = MEMORIES,
    horizon: int = 10_000,
    delay: int = 50,
    runs: int = 50,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> tuple[xr.Dataset, xr.Dataset]:
    """Both studies: (of `play_changes`, of `play_unknowns`)."""
    given: Any = {"horizon": horizon, "delay": delay, "runs": runs, "seed": seed}
    given["progress"] = progress
    changed = play_changes(changes, memories=memories, store=part(store, "changes"), **given)
    return changed, play_unknowns(store=part(store, "unknowns"), **given)
