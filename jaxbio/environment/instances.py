"""Named problems: the paper's experiments, and the hard instances behind its lower bounds."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import jax
import numpy as np

from jaxbio import checks
from jaxbio.checks import memory, names
from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.environment import MAX_HORIZON, Environment, check_environment
from jaxbio.environment.losses import (
    BernoulliLosses,
    BlockBernoulliLosses,
    ConstantLosses,
    TableLosses,
)
from jaxbio.environment.mappings import AlternatingMapping, StochasticMapping, TableMapping

STOCHASTIC_P = ((0.8, 0.1, 0.1), (0.4, 0.5, 0.1), (0.3, 0.7, 0.0), (0.5, 0.3, 0.2))
STOCHASTIC_THETA = (0.2, 0.4, 0.8)
ADVERSARIAL_P = (
    ((0.06, 0.47, 0.47), (0.0, 0.5, 0.5), (0.0, 0.5, 0.5), (0.0, 0.5, 0.5)),
    ((1.0, 0.0, 0.0), (0.94, 0.03, 0.03), (0.94, 0.03, 0.03), (0.94, 0.03, 0.03)),
)
ADVERSARIAL_THETA = (0.0, 1.0, 1.0)
SHARED = 1 << 12  # entries of a mapping that is kept for the next environment


def paper_stochastic(delays: Any = None) -> Environment:
    """Experiments 1 and 4: 4 actions, 3 states, gaps 0.06 to 0.10 (delays: FixedDelay(50))."""
    return Environment(*_stochastic(), FixedDelay(50) if delays is None else delays)


@cache
def _stochastic() -> tuple[StochasticMapping, BernoulliLosses]:
    return _shared(StochasticMapping(STOCHASTIC_P), BernoulliLosses(STOCHASTIC_THETA))


def paper_adversarial(
    delays: Any = None,
    growth: Any = None,
    first: int = 1,
    start: int = 0,
    reading: str = "ceil",
) -> Environment:
    """Experiment 2: two mappings alternate in phases of growing length (delays: FixedDelay(50))."""
    given = (growth, first, start, reading)
    plain = all(type(one) in (int, float, str, type(None)) for one in given)
    mapping, losses = (_adversarial if plain else _adversarial.__wrapped__)(*given)
    return Environment(mapping, losses, FixedDelay(50) if delays is None else delays)


@lru_cache(maxsize=256, typed=True)
def _adversarial(
    growth: Any, first: int, start: int, reading: str
) -> tuple[AlternatingMapping, BernoulliLosses]:
    """All but the delays of `paper_adversarial`: made once for a sweep over delays."""
    mapping = AlternatingMapping(ADVERSARIAL_P, growth, first, start, reading)
    return _shared(mapping, BernoulliLosses(ADVERSARIAL_THETA))


def paper_utility(
    delays: Any = None, actions: int = 8, states: int = 4, reach: float = 0.6, good: float = 0.2
) -> Environment:
    """Experiments 3 and 5: one good state among S, gap 0.32 for any S (delays: FixedDelay(100)).

    The best action always reaches the good state (mean loss `good`), the others with probability
    `reach`; else they fall on one of the S - 1 bad states (mean loss 1) at random. So the gap is
    (1 - reach) (1 - good).
    """
    actions = checks.size("actions", actions, 2)
    states = checks.size("states", states, 2)
    reach, good = checks.number("reach", reach, 0, 1), checks.number("good", good, 0, 1)
    make = _utility if actions * states <= SHARED else _utility.__wrapped__
    mapping, losses = make(actions, states, reach + 0.0, good + 0.0)  # no -0.0: equal to 0.0
    return Environment(mapping, losses, FixedDelay(100) if delays is None else delays)


@lru_cache(maxsize=256)
def _utility(
    actions: int, states: int, reach: float, good: float
) -> tuple[StochasticMapping, BernoulliLosses]:
    """All but the delays of `paper_utility`: made once for a sweep over delays."""
    _room_for(f"a mapping of {actions:,} actions to {states:,} states", actions * states)
    P = np.full((actions, states), (1 - reach) / (states - 1))
    P[:, 0] = reach
    P[0] = 0
    P[0, 0] = 1
    theta = np.ones(states)
    theta[0] = good
    return _shared(StochasticMapping(P), BernoulliLosses(theta))


def _shared(*parts: Any) -> Any:
    """Parts of several environments: nobody can change their arrays."""
    for leaf in jax.tree.leaves(parts):
        if isinstance(leaf, np.ndarray):
            leaf.flags.writeable = False
    return parts


def hard_actions(
    horizon: int = 10_000, actions: int = 4, best: int = 0, delays: Any = None
) -> Environment:
    """The sqrt(KT) lower bound: two states with losses 1 and 0, so the state tells the loss.

    Every action reaches the bad state with probability 1/2, the best one with 1/2 - e,
    e = sqrt(K / T) / 4 (delays: FixedDelay(0); they do not matter here).
    """
    horizon = checks.size("horizon", horizon, 1, MAX_HORIZON)
    actions = checks.size("actions", actions, 2)
    best = checks.size("best", best, 0, actions - 1)
    _room_for(f"a mapping of {actions:,} actions to 2 states", 2 * actions)
    bad = np.full(actions, 0.5)
    bad[best] -= min(0.25, math.sqrt(actions / horizon) / 4)
    mapping = StochasticMapping(np.stack([bad, 1 - bad], axis=1))
    delays = FixedDelay(0) if delays is None else delays
    return Environment(mapping, ConstantLosses([1.0, 0.0]), delays)


def hard_states(
    horizon: int = 10_000, states: int = 8, delay: int = 50, best: int = 0
) -> Environment:
    """The sqrt(min(S, d) T) lower bound: 2 actions, losses shared by the states of a block.

    Blocks of S' = floor(min(S / 2, d)) rounds; round i of a block shows state 2 i + a for action a;
    one Bernoulli(1/2 - e 1[a = best]) per block and action is the loss of all its states, with
    e = sqrt(S' / (2 T ln(4/3))) / 4, at most 1/4.
    """
    horizon = checks.size("horizon", horizon, 1, MAX_HORIZON)
    states = checks.size("states", states, 2)
    delay = checks.size("delay", delay, 1)
    best = checks.size("best", best, 0, 1)
    _room_for(f"a table of {horizon:,} rounds and {states:,} states", 2 * horizon + states)
    block = min(states // 2, delay)
    shift = min(0.25, 0.25 * math.sqrt(block / (2 * horizon * math.log(4 / 3))))
    action_of = np.arange(states) % 2
    theta = 0.5 - shift * (action_of == best)
    rows = 2 * (np.arange(horizon) % block)
    mapping = TableMapping(np.stack([rows, rows + 1], axis=1), states)
    return Environment(mapping, BlockBernoulliLosses(theta, action_of, block), FixedDelay(delay))


def hard_delay(
    horizon: int = 10_000, states: int = 8, delay: int = 50, seed: int = 0
) -> Environment:
    """The (d + 1) sqrt(S) lower bound: each block of d + 1 rounds has two states of its own.

    Their losses are 0 and 1 in an order drawn from `seed`, the same for all runs (average over
    `seed`); what is learnt comes after the block is over. Rounds after the last of the
    min(S / 2, T / (d + 1)) blocks cost every action the same.
    """
    horizon = checks.size("horizon", horizon, 1, MAX_HORIZON)
    states = checks.size("states", states, 2)
    delay = checks.size("delay", delay, 0, horizon - 1)
    _room_for(f"a table of {horizon:,} rounds and {states:,} states", 2 * horizon + states)
    blocks = min(states // 2, horizon // (delay + 1))
    first_loss = np.random.default_rng(checks.size("seed", seed, 0, 2**64 - 1)).integers(
        0, 2, size=states // 2
    )
    theta = np.zeros(states)
    theta[0 : 2 * (states // 2) : 2] = first_loss
    theta[1 : 2 * (states // 2) : 2] = 1 - first_loss
    index = np.arange(horizon) // (delay + 1)
    rows = 2 * np.minimum(index, blocks - 1)
    table = np.stack([rows, rows + (index < blocks)], axis=1)
    return Environment(TableMapping(table, states), ConstantLosses(theta), FixedDelay(delay))


def hard_adversarial(
    horizon: int = 10_000, actions: int = 2, delay: int = 50, best: int = 0, seed: int = 0
) -> Environment:
    """The sqrt(dT) lower bound: adversarial losses that stay the same for d + 1 rounds.

    The best action shows state 1, all others state 0. Losses of both states are coins drawn from
    `seed` once per block of d + 1 rounds, with means 1/2 - e and 1/2, e = sqrt((d + 1) / T) / 4.
    All runs share the coins: average over `seed`.
    """
    horizon = checks.size("horizon", horizon, 1, MAX_HORIZON)
    actions = checks.size("actions", actions, 2)
    delay = checks.size("delay", delay, 0)
    best = checks.size("best", best, 0, actions - 1)
    _room_for(f"a table of {horizon:,} rounds and {actions:,} actions", 2 * (horizon + actions))
    shift = min(0.25, math.sqrt((delay + 1) / horizon) / 4)
    blocks = -(-horizon // (delay + 1))
    generator = np.random.default_rng(checks.size("seed", seed, 0, 2**64 - 1))
    coins = generator.random((blocks, 2)) < np.array([0.5, 0.5 - shift])
    values = coins.astype(float)[np.arange(horizon) // (delay + 1)]
    P = np.tile([1.0, 0.0], (actions, 1))
    P[best] = [0.0, 1.0]
    return Environment(StochasticMapping(P), TableLosses(values), FixedDelay(delay))


def _room_for(what: str, entries: int) -> None:
    """Raise where a table of so many numbers cannot be made here."""
    memory.refuse_table(what, entries, "a shorter horizon, or fewer states or actions")


ENVIRONMENTS: dict[str, Callable[..., Environment]] = {
    "paper-stochastic": paper_stochastic,
    "paper-adversarial": paper_adversarial,
    "paper-utility": paper_utility,
    "hard-actions": hard_actions,
    "hard-states": hard_states,
    "hard-delay": hard_delay,
    "hard-adversarial": hard_adversarial,
}


OWN = frozenset(ENVIRONMENTS)


def environment_names() -> tuple[str, ...]:
    """The names that `make_environment` knows."""
    return tuple(ENVIRONMENTS)


_signature = cache(inspect.signature)


def make_environment(name: str, **options: Any) -> Environment:
    """A named problem; see `environment_names()` and the functions of this module."""
    build = ENVIRONMENTS[checks.name_of("environment name", name, environment_names())]
    checks.options(name, options, _signature(build))
    made = build(**options)
    check_environment(made, f"what {name!r} makes")
    return made


def register_environment(name: str, make: Callable[..., Any], *, replace: bool = False) -> None:
    """Add a problem to those with a name, for this process.

    name: small letters, digits and . _ + -. make: a function that makes an `Environment`; its
    arguments are the options, each with a default, `delays` among them where a delay may be chosen
    (`--delay` of commands). replace: an earlier one of yours with this name goes; those of jaxbio
    stay.
    """
    names.register(ENVIRONMENTS, OWN, "environment name", name, make, replace)
