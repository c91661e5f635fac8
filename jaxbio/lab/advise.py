"""Which learner should I run at my K, S, T and delays? Played, not looked up.

Learners play a family of problems of the user's size in the same worlds, more and more runs, until
a winner is beyond doubt or time is over. A test is made after every look at the results, each at a
share of the level, so that looking often does not make a winner of chance.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbio import checks, rng
from jaxbio.compare import compare
from jaxbio.comparison import Comparison
from jaxbio.environment.environment import Environment
from jaxbio.environment.instances import make_environment
from jaxbio.environment.losses import BernoulliLosses
from jaxbio.environment.mappings import StochasticMapping
from jaxbio.lab.contestants import ROBUST, contestants
from jaxbio.store import part
from jaxbio.sweep import sweep

LOOKS = 6  # at the results; runs double from one to the next
LEVEL = 0.05  # the probability, at most, that any look names a winner among equals
FIRST = 32  # games of each learner before the first look
ROUNDS = 3_200_000  # of each learner before the first look, at most, unless games are fewer than
FEWEST = 8


def utility(actions: int, states: int, delays: Any, instance: int) -> Environment:
    """The family of Experiments 3 and 5: one good action and one good state. One instance."""
    return make_environment("paper-utility", actions=actions, states=states, delays=delays)


def random(actions: int, states: int, delays: Any, instance: int) -> Environment:
    """Rows of the mapping uniform on the simplex, mean losses uniform on [0, 1]."""
    generator = np.random.default_rng([instance, actions, states])
    mapping = StochasticMapping(generator.dirichlet(np.ones(states), actions))
    return Environment(mapping, BernoulliLosses(generator.random(states)), delays)


FAMILIES: dict[str, tuple[Callable[..., Environment], int]] = {  # and how many instances
    "utility": (utility, 1),
    "random": (random, 8),
}


@dataclass(frozen=True)
class Advice:
    """What the runs say.

    overall: all learners, for a mapping that does not change. robust: those of `ROBUST` (with
    whatever options), whose regret is bounded where it may, compared on the same games, in which it
    does not; None where fewer than two of them played. runs: of each learner. Where the family has
    several instances, a run is one on each of them, and its regret their mean: what is compared is
    the mean over these very instances.
    """

    overall: Comparison
    robust: Comparison | None
    runs: int
    seconds: float

    @property
    def decided(self) -> bool:
        """Has every comparison a winner?"""
        asked = [self.overall, self.robust]
        return all(one.winner is not None for one in asked if one is not None)


def advise(
    *,
    actions: int,
    states: int,
    horizon: int,
    delays: Any,
    family: str = "utility",
    learners: Mapping[str, Any] | None = None,
    seconds: float = 45.0,
    looks: int = LOOKS,
    first: int = FIRST,
    level: float = LEVEL,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Advice:
    """Play a problem of this size and recommend a learner, or say that it is too close to call.

    Args:
      actions, states, horizon, delays: K, S, T and the law of the delays.
      family: "utility" or "random"; see `FAMILIES`.
      learners: label -> learner (default: `contestants()`); a label may have options after a colon.
      seconds: no look after the first begins that would end after so much time.
      looks, first: at most so many looks at the results; the first at so many games of each
        learner (fewer where they are long), each further one at twice as many as the one before.
      level: the probability, at most, that a winner is named among equals.
      seed: the root seed.
      store: a folder for finished parts; the same call goes on where it was interrupted.
      progress: show bars.
    """
    checks.choice("family", family, tuple(FAMILIES))
    looks, first = checks.integer("looks", looks, 1), checks.integer("first", first, 2)
    level = checks.probability_of_error("level", level)
    budget = checks.number("seconds", seconds, 0)
    known = dict(contestants() if learners is None else learners)
    if len(known) < 2:
        raise ValueError(f"learners must be two or more, but got {list(known)}")
    build, instances = FAMILIES[family]
    horizon = checks.integer("horizon", horizon, 1)
    few = min(first, max(FEWEST, ROUNDS // horizon))
    units = max(min(FEWEST, first), few // instances)  # a unit is a game on every instance
    begun, finals = time.monotonic(), {name: np.empty(0) for name in known}
    for look in range(looks):
        own = time.monotonic()
        data = sweep(
            lambda instance: build(actions, states, delays, instance),
            known,
            {"instance": list(range(instances))},
            horizon=horizon,
            runs=units * 2 ** max(look - 1, 0),
            seed=rng.stream_key(seed, look),
            rounds=1,
            keep="finals",
            store=part(store, f"look-{look}"),
            progress=progress,
        )
        for name in known:
            more = data.final_regret.sel(learner=name).mean("instance").values
            finals[name] = np.concatenate([finals[name], more])
        advice = _advice(finals, level / looks, time.monotonic() - begun)
        now = time.monotonic()
        if advice.decided or now - begun + 2 * (now - own) > budget:
            break
    return advice


def _advice(finals: Mapping[str, np.ndarray], level: float, seconds: float) -> Advice:
    """level: of all that is asked, shared equally between the two questions."""
    robust = {name: values for name, values in finals.items() if _is_robust(name)}
    both = 1 < len(robust) < len(finals)
    runs = len(next(iter(finals.values())))
    each = level / 2 if both else level
    return Advice(
        compare(finals, level=each),
        compare(robust, level=each) if len(robust) > 1 else None,
        runs,
        seconds,
    )


def _is_robust(label: str) -> bool:
    return label.partition(":")[0].lower() in {name.lower() for name in ROBUST}
