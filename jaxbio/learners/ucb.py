"""UCB1 on delayed losses (Delayed-UCB1 of Joulani et al. 2013), and with a discount."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play, round_number
from jaxbio.learners.forgetting import (
    FORGOTTEN,
    Faded,
    checked_discount,
    faded_add,
    faded_zero,
)
from jaxbio.ops import Means, argmin_fair, means_add, means_value, means_zero, one_hot
from jaxbio.trees import pytree, set_field


class UCB1State(NamedTuple):
    """seen: arrived losses of each action, [K], with weights where there is a discount; pulls:
    int32 [K].
    """

    seen: Means | Faded
    pulls: Array


class Seen(NamedTuple):
    """Of each action: count [K], how many losses, 1 where there are none; mean [K]; none: bool [K].
    rounds: float [], t in the logarithm.
    """

    count: Array
    mean: Array
    none: Array
    rounds: Array


def summary(seen: Means | Faded, t: Array) -> Seen:
    if isinstance(seen, Means):
        count = jnp.maximum(seen.count, 1).astype(seen.sum.total.dtype)
        return Seen(count, means_value(seen), seen.count == 0, round_number(t))
    none = seen.count.total < FORGOTTEN
    count = jnp.where(none, 1.0, seen.count.total)
    return Seen(count, seen.total.total / count, none, seen.rounds.total)


@pytree
class UCB1:
    """Play the least mean - sqrt(exploration ln t / n), from ARRIVED losses only.

    While an action has no arrived loss, the one of those with the fewest pulls is played. Ties are
    broken at random.

    With a discount below 1 it is discounted UCB (Kocsis and Szepesvari 2006; Garivier and Moulines
    2011, whose 4 B^2 xi is `exploration`), for losses that change over time: after round t the loss
    of round s counts discount ** (t - s), and n, the mean and t are sums of such weights. A loss is
    as old as its play, not as its arrival: that is our reading, as they have no delay. So what is
    late counts little, and with long delays more is explored. Proved, with exploration above 2,
    without delay and for a discount that fits: a regret of order sqrt(changes T) ln T. With delay
    nothing is proved.

    exploration: 2 in UCB1. discount: in (0, 1]; None, the same as 1, forgets nothing. An action
    whose losses together count less than 1e-30 has none.
    """

    exploration: Any = 2.0
    discount: Any = None
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        set_field(self, "exploration", checks.parameter("exploration", self.exploration, 0))
        set_field(self, "discount", checked_discount(self.discount))

    def init(self, known: Known) -> UCB1State:
        K = known.num_actions
        seen = means_zero(K) if self.discount is None else faded_zero(K, self.discount)
        return UCB1State(seen, jnp.zeros(K, jnp.int32))

    def act(self, state: UCB1State, t: Array, u: Array) -> tuple[Array, Array | None]:
        seen = summary(state.seen, t)
        index = seen.mean - jnp.sqrt(self.exploration * jnp.log(seen.rounds) / seen.count)
        fewest = jnp.where(seen.none, state.pulls.astype(u.dtype), jnp.inf)
        action = argmin_fair(jnp.where(jnp.any(seen.none), fewest, index), u)
        return action, None if self.discount is None else t

    def learn(
        self, state: UCB1State, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[UCB1State, Array | None]:
        old, seen = arrivals.play, state.seen
        if isinstance(seen, Means):
            seen = means_add(seen, old.action, old.loss, arrivals.due)
        else:
            lanes = old.ticket, old.action, old.loss, arrivals.due
            seen = faded_add(seen, self.discount, t, *lanes)
        pulls = state.pulls + one_hot(play.action, state.pulls.shape[0]).astype(jnp.int32)
        return UCB1State(seen, pulls), play.ticket
