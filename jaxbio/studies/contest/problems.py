"""Classes of problems: what a contest is played on.

A class is a situation that a user might be in; its problems differ in size and in what was drawn.
All numbers are drawn from seeds that are written here: every contest has the same problems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxbio.environment.delays import FixedDelay, TableDelay
from jaxbio.environment.environment import Environment
from jaxbio.environment.instances import make_environment
from jaxbio.environment.losses import BernoulliLosses
from jaxbio.environment.mappings import AlternatingMapping, StochasticMapping
from jaxbio.studies.families import drawn, utility
from jaxbio.studies.violations.problems import THETA, drifting, flipping, ladder, turning

Problems = dict[str, Environment]  # label -> problem
SHORTEST = 1000  # rounds: in fewer some of these problems have no room for what they are about
DELAY = FixedDelay(100)
LATE = 0.2  # of the horizon: a long delay
TURN = 0.4  # of the horizon: when a mapping changes once
SPARSE = 0.1  # of a Dirichlet distribution: an action shows a few states mostly


class Class(NamedTuple):
    """title: in words. build: horizon -> problems. columns: a short title, for a table."""

    title: str
    build: Callable[[int], Problems]
    column: str


def stochastic(horizon: int) -> Problems:
    return {f"d = {d}": make_environment("paper-stochastic", delays=FixedDelay(d))
            for d in (50, 200, 500)}  # fmt: skip


def alternating(horizon: int) -> Problems:
    return {f"d = {d}": make_environment("paper-adversarial", delays=FixedDelay(d))
            for d in (50, 200, 500)}  # fmt: skip


def one_good_state(horizon: int) -> Problems:
    return {f"S = {states}, d = {d}": utility(8, states, FixedDelay(d))
            for states, d in ((4, 100), (12, 100), (12, 500))}  # fmt: skip


def at_random(horizon: int) -> Problems:
    return {f"S = {states}, number {number}": drawn(4, states, DELAY, number)
            for states in (4, 8) for number in (0, 1)}  # fmt: skip


def many_states(horizon: int) -> Problems:
    generator = np.random.default_rng(32)
    P, theta = generator.dirichlet(np.full(32, SPARSE), 4), generator.random(32)
    return {
        "one is good": utility(4, 32, DELAY),
        "at random": drawn(4, 32, DELAY, 0),
        "an action shows few": Environment(StochasticMapping(P), BernoulliLosses(theta), DELAY),
    }


def long_delays(horizon: int) -> Problems:
    return _small(lambda: FixedDelay(round(LATE * horizon)))


def heavy_tails(horizon: int) -> Problems:
    """Half of the delays are below 25 or so; losses that would come after the end never do."""
    generator = np.random.default_rng(1)

    def never_before_the_end() -> TableDelay:
        late = np.ceil(25 * generator.pareto(1, horizon))
        return TableDelay(np.minimum(late, horizon).astype(np.int32))

    return _small(never_before_the_end)


def bursts(horizon: int) -> Problems:
    """Good connections, with a delay of 20 rounds, and bad ones, of a tenth of the horizon, take
    turns at random: a state lasts for 5 % of the horizon on average.
    """
    generator = np.random.default_rng(2)

    def in_turns() -> TableDelay:
        bad = np.cumsum(generator.random(horizon) < 20 / horizon) % 2 == 1
        return TableDelay(np.where(bad, horizon // 10, 20).astype(np.int32))

    return _small(in_turns)


def _small(delays: Callable[[], Any]) -> Problems:
    """Three problems with four actions and at most four states, each with delays of its own."""
    return {
        "experiment 1": make_environment("paper-stochastic", delays=delays()),
        "one good state": utility(4, 4, delays()),
        "at random": drawn(4, 4, delays(), 2),
    }


def switches(horizon: int) -> Problems:
    """The mapping changes once, or every tenth of the horizon."""
    one, other = (drawn(4, 4, DELAY, number) for number in (0, 1))
    P, again = one.mapping.P, other.mapping.P
    once = round(TURN * horizon)

    def changing(tables: list[Any], theta: Any, first: int, growth: float) -> Environment:
        mapping = AlternatingMapping(np.stack(tables), growth=growth, first=first)
        return Environment(mapping, BernoulliLosses(theta), DELAY)

    return {
        "reversed once": changing([ladder(), ladder()[::-1]], THETA, once, 1.5),
        "another one": changing([P, again], one.losses.theta, once, 1.5),
        "to and fro": changing([P, again], other.losses.theta, horizon // 10, 1),
    }


def drifts(horizon: int) -> Problems:
    """The best action changes every 3,466, 1,201 and 416 of 10,000 rounds."""
    return {f"strength {v}": drifting(v, 100, horizon) for v in (0.2, 0.4, 0.6)}


def adversarial(horizon: int) -> Problems:
    hard = {f"hard-adversarial, coins {seed}": make_environment(
                "hard-adversarial", horizon=horizon, actions=4, delay=100, seed=seed)
            for seed in (0, 1)}  # fmt: skip
    return {
        "reversed once, by half": turning(0.5, 100, horizon),
        "reversed once": turning(1, 100, horizon),
        "reversed again and again": flipping(0.4, 100, horizon),
        **hard,
    }


def hard(horizon: int) -> Problems:
    """Two for each bound. That for delays is made of coins, the same in all games, of which one
    draw may please a learner: there are 2 x 32 (where the horizon has room for so many blocks).
    """
    return {
        "hard-actions, K = 4": make_environment("hard-actions", horizon=horizon, delays=DELAY),
        "hard-actions, K = 8": make_environment(
            "hard-actions", horizon=horizon, actions=8, delays=DELAY
        ),
        **{f"hard-states, S = {states}": make_environment(
               "hard-states", horizon=horizon, states=states, delay=50) for states in (8, 16)},
        **{f"hard-delay, coins {seed}": make_environment(
               "hard-delay", horizon=horizon, states=64, delay=100, seed=seed)
           for seed in (0, 1)},
    }  # fmt: skip


CLASSES = {
    "stochastic": Class("the paper's Experiments 1 and 4: a mapping that stays", stochastic,
                        "Exp. 1: stays"),
    "alternating": Class("the paper's Experiment 2: two mappings take turns", alternating,
                         "Exp. 2: in turns"),
    "utility": Class("the paper's Experiments 3 and 5: one good action and state", one_good_state,
                     "Exp. 3: utility"),
    "random": Class("mappings and losses drawn at random", at_random, "random"),
    "many-states": Class("thirty-two states for four actions", many_states, "many states"),
    "long-delays": Class("delays of a fifth of the horizon", long_delays, "long delays"),
    "heavy-tails": Class("delays whose mean does not exist", heavy_tails, "heavy tails"),
    "bursts": Class("short and long delays take turns", bursts, "bursts"),
    "switching": Class("the mapping changes once, or to and fro", switches, "switching"),
    "drifting": Class("the best action changes again and again", drifts, "drifting"),
    "adversarial": Class("what states cost changes", adversarial, "adversarial losses"),
    "hard": Class("hard instances of the lower bounds", hard, "lower bounds"),
}  # fmt: skip
