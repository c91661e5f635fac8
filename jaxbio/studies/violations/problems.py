"""Problems that violate what learners with states count on, as strongly as is asked for.

At strength 0 all of them are the same problem: four actions, from one to the next of which good
states become rarer, and losses that are coins with the mean of the state. Action 0 is the best one.
The strength v of a violation goes up to 1; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbio import checks, rng
from jaxbio.checks import memory
from jaxbio.core import Array
from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.environment import Environment
from jaxbio.environment.losses import BernoulliLosses, StationaryLosses, TableLosses
from jaxbio.environment.mappings import AlternatingMapping, StochasticMapping
from jaxbio.ops import select
from jaxbio.trees import float_dtype, pytree, set_field

THETA = (0.1, 0.35, 0.65, 0.9)  # the mean loss of a state, as long as nothing is violated
GOOD = (0.6, 0.25, 0.1, 0.05)  # how often a state is shown at best; at worst the other way round
QUALITY = (0.8, 0.6, 0.4, 0.2)  # of the actions: their share of the good
TURN = 0.4  # the share of the horizon after which losses turn
ACTIONS = STATES = 4


@pytree
class MovingLosses(TableLosses):
    """Coins whose means move: l_t(s) is 1 with probability values[t, s], else 0.

    values: [T, S]. Regret counts the means, which an adversary has chosen beforehand.
    """

    binary = True

    def loss(self, key: Array, t: Array, state: Array, u: Array) -> Array:
        """l_t(state)."""
        return (u < select(self.means(t), state)).astype(float_dtype())


@pytree
class ClusteredLosses(StationaryLosses):
    """Coins with the mean of the state, some of which all rounds of a block share.

    With probability `share` the loss of a round is the block's coin of its state, else a coin of
    its own. So a loss says how the block is, and little about the state.

    theta: [S]; share: in [0, 1]; block: rounds.
    """

    theta: Any
    share: Any
    block: Any

    binary = True

    def __post_init__(self) -> None:
        set_field(self, "theta", checks.unit_interval("theta", self.theta, 1, "[S]"))
        set_field(self, "share", checks.number("share", self.share, 0, 1))
        set_field(self, "block", checks.integer("block", self.block, 1, 2**30))

    def loss(self, key: Array, t: Array, state: Array, u: Array) -> Array:
        """l_t(state)."""
        together = rng.loss_uniform(key, (t - 1) // self.block, state)
        joins = rng.loss_uniform(key, t, jnp.int32(rng.INDICES - 1)) < self.share
        u = jnp.where(joins, together, u)
        return (u < select(self.theta, state)).astype(float_dtype())


def ladder() -> np.ndarray:
    """P [K, S]: from action to action good states become rarer, bad ones more frequent."""
    share = np.array(QUALITY)[:, None]
    return share * np.array(GOOD) + (1 - share) * np.array(GOOD[::-1])


def guessing(horizon: int) -> float:
    """What playing all actions alike costs more than the best one, while nothing is violated."""
    costs = ladder() @ np.array(THETA)
    return float(horizon * (costs.mean() - costs.min()))


def phase_length(strength: float, delay: int, horizon: int) -> int:
    """Rounds for which things stay: from T down to d / 2, evenly on a logarithmic scale."""
    shortest = max(1, min(delay // 2, horizon))
    return round(horizon * (shortest / horizon) ** strength)


def turning(strength: float, delay: int, horizon: int) -> Environment:
    """After 40 % of the rounds states cost something else: at v = 1/2 all the same, at v = 1 good
    ones what bad ones did before.
    """
    _room_for(horizon)
    values = np.tile(THETA, (horizon, 1))
    after = np.arange(horizon) >= TURN * horizon
    values[after] += strength * (values[after, ::-1] - values[after])
    return Environment(StochasticMapping(ladder()), MovingLosses(values), FixedDelay(delay))


def flipping(strength: float, delay: int, horizon: int) -> Environment:
    """In every phase good states cost what bad ones did in the one before."""
    _room_for(horizon)
    phase = np.arange(horizon) // phase_length(strength, delay, horizon)
    values = np.where(phase[:, None] % 2 == 0, THETA, THETA[::-1])
    return Environment(StochasticMapping(ladder()), MovingLosses(values), FixedDelay(delay))


def _room_for(rounds: int) -> None:
    """Raise where a table of losses cannot be made here."""
    memory.refuse_table(f"a table of {rounds:,} rounds", STATES * rounds, "a shorter horizon")


def clustered(strength: float, delay: int, horizon: int) -> Environment:
    """In every block of d + 1 rounds a share v of a state's losses is one and the same coin."""
    return Environment(
        StochasticMapping(ladder()),
        ClusteredLosses(THETA, strength, delay + 1),
        FixedDelay(delay),
    )


def drifting(strength: float, delay: int, horizon: int) -> Environment:
    """In every phase the next action is the best one, and the one before it the worst."""
    P = ladder()
    tables = np.stack([np.roll(P, phase, axis=0) for phase in range(ACTIONS)])
    length = phase_length(strength, delay, horizon)
    mapping = AlternatingMapping(tables, growth=1, first=length)
    return Environment(mapping, BernoulliLosses(THETA), FixedDelay(delay))


def bypassed(strength: float, delay: int, horizon: int) -> Environment:
    """The action decides a share v of its loss itself, past the state that it shows: if all of it,
    action 0 would be the worst and action 1 the best.

    What the environment calls states are pairs s K + a of a state and the action that shows it, in
    this order, so that a uniform leads to the pair of the state that it leads to without them.
    """
    pairs = ladder()[:, :, None] * np.eye(ACTIONS)[:, None]  # [K, s, a]
    own = np.roll(ladder() @ np.array(THETA), 1)  # [K]: what the states cost of the action before
    means = (1 - strength) * np.array(THETA)[:, None] + strength * own  # [s, a]
    return _of_pairs(pairs, means, delay)


def mislabelled(strength: float, delay: int, horizon: int) -> Environment:
    """With probability v any state is shown at random, not the one that decides the loss.

    What the environment calls states are pairs s' S + s of the state that is shown and that which
    decides.
    """
    shown = (1 - strength) * np.eye(STATES) + strength / STATES  # [s', s]
    return _of_pairs(ladder()[:, None] * shown, np.tile(THETA, (STATES, 1)), delay)


def _of_pairs(mapping: np.ndarray, means: np.ndarray, delay: int) -> Environment:
    """mapping: [K, shown, hidden]; means: [shown, hidden], of the losses."""
    mapping = mapping.reshape(len(mapping), -1)
    return Environment(
        StochasticMapping(mapping), BernoulliLosses(means.ravel()), FixedDelay(delay)
    )


class Kind(NamedTuple):
    """A way to violate an assumption.

    title, strength: in words, what happens and what v is. build: (v, d, T) -> problem. each: how
    many of its states look the same to a learner.
    """

    title: str
    strength: str
    build: Callable[[float, int, int], Environment]
    each: int = 1


KINDS = {
    "bypassed": Kind(
        "The action itself decides the loss",
        "v: share of the loss that is the action's",
        bypassed,
        ACTIONS,
    ),
    "mislabelled": Kind(
        "States are wrong at random",
        "v: share of rounds with a random state",
        mislabelled,
        STATES,
    ),
    "turning": Kind(
        "What states cost is reversed once",
        "v: how far (1/2: all states alike)",
        turning,
    ),
    "flipping": Kind(
        "What states cost is reversed ever faster",
        "v: phases of T (0) to d / 2 (1) rounds",
        flipping,
    ),
    "clustered": Kind(
        "Losses are alike in blocks of d + 1",
        "v: share of losses that a block shares",
        clustered,
    ),
    "drifting": Kind(
        "The mapping changes ever faster",
        "v: phases of T (0) to d / 2 (1) rounds",
        drifting,
    ),
}
