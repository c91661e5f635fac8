"""What MetaBIO and MetaAdaBIO share: a base that is fed with estimates, or waits for losses."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbio import checks
from jaxbio.core import (
    Array,
    Arrivals,
    Known,
    Play,
    State,
    Ticket,
    check_learner,
    draws_of,
    facts_of,
)
from jaxbio.learners.estimates import ESTIMATORS, ORDERINGS, RADII, Estimator, estimator
from jaxbio.ops import Means, Wide, count, means_add, means_zero, wide_add, wide_zero
from jaxbio.trees import pytree, set_field, static


class Waiting(NamedTuple):
    """What the base experiences: int32 [] each, total a Wide.

    unfed: rounds that the base waits for; total: sum of unfed over past beginnings of rounds
    (D-tilde); waits: rounds that had to wait; fed: rounds fed to the base.
    """

    unfed: Array
    total: Wide
    waits: Array
    fed: Array


def waiting_zero() -> Waiting:
    return Waiting(jnp.int32(0), wide_zero(), jnp.int32(0), jnp.int32(0))


def waiting_add(waiting: Waiting, feed: Array, wait: Array) -> Waiting:
    """After a round in which the lanes `feed` [M + 1] were fed and round t waits or not."""
    fed = count(feed)
    return Waiting(
        waiting.unfed + 1 - fed,
        wide_add(waiting.total, waiting.unfed),
        waiting.waits + wait.astype(jnp.int32),
        waiting.fed + fed,
    )


class Fed(NamedTuple):
    """base: the base's state; seen (L): arrived losses per state, [S]; outstanding (sigma_t)."""

    base: State
    seen: Means
    outstanding: Array


def fed_zero(base: State, known: Known) -> Fed:
    return Fed(base, means_zero(known.state_slots), jnp.int32(0))


def fed_add(fed: Fed, arrivals: Arrivals, enters: Array) -> Fed:
    """With the losses that are due; the lanes `enters` [M + 1] of them join the estimates."""
    old = arrivals.play
    outstanding = fed.outstanding + 1 - count(arrivals.due)
    return fed._replace(
        outstanding=outstanding, seen=means_add(fed.seen, old.state, old.loss, enters)
    )


@pytree
class Feeder:
    """The options that both have; see MetaBIO.

    base: any learner. delta: confidence.
    """

    base: Any
    delta: Any = 0.1
    _: dataclasses.KW_ONLY
    estimator: str = static(default="lcb")
    ordering: str = static(default="together")
    radius: str = static(default="horizon")
    radius_scale: Any = 1.0

    def __post_init__(self) -> None:
        checks.learner("base", self.base)
        set_field(self, "delta", checks.probability_of_error("delta", self.delta))
        checks.choice("estimator", self.estimator, ESTIMATORS)
        checks.choice("ordering", self.ordering, ORDERINGS)
        checks.choice("radius", self.radius, RADII)
        set_field(self, "radius_scale", checks.parameter("radius_scale", self.radius_scale, 0))

    def check(self, env: Any) -> None:
        """Raise where the environment lacks what the base needs."""
        check_learner(self.base, env)

    def draws(self, num_actions: int) -> int:
        return draws_of(self.base, num_actions)

    def _estimator(self, known: Known, delta: Any) -> Estimator:
        options = (self.radius_scale, self.estimator, self.radius, self.ordering)
        return estimator(known, known.horizon, delta, *options)

    def _facts(self, base: State, waiting: Waiting) -> dict[str, Any]:
        return {
            **facts_of(self.base, base),
            "waiting_rounds": waiting.waits,
            "total_perceived_delay": waiting.total,
            "rounds_fed": waiting.fed,
        }


def feed_lanes(due: Array, waited: Array, wait: Array) -> tuple[Array, Array]:
    """Which lanes are fed now, and which of them have a loss of their own among the arrivals.

    due, waited: bool [M + 1], the last lane is the round just played; wait: bool [], its decision.
    A round fed at once needs no loss; one that waits is fed when its loss is due.
    """
    is_last = lax.iota(jnp.int32, due.shape[0]) == due.shape[0] - 1
    waits = jnp.where(is_last, wait, waited)
    own_loss = due & (waits | is_last)
    return own_loss | (is_last & ~wait), own_loss


def feed(
    base: Any,
    estimates: Estimator,
    waiting: Waiting,
    before: Fed,
    now: Fed,
    t: Array,
    play: Play,
    arrivals: Arrivals,
    wait: Array,
    enters: Array,
    plain: Array | None = None,
) -> tuple[Fed, Waiting, Ticket]:
    """The base's end of its round t.

    before, now: without and with what has arrived (see `fed_add`); wait: bool [], does round t?
    plain: bool [M + 1], lanes fed with their realised losses; None: all get estimates.
    """
    old = arrivals.play
    fed, waited = feed_lanes(arrivals.due, old.ticket.wait, wait)
    waited = waited if plain is None else waited & ~plain
    values = estimates.lanes(before.seen, now.seen, old.state, old.loss, enters, waited)
    values = values if plain is None else jnp.where(plain, old.loss, values)
    lanes = old._replace(loss=jnp.where(fed, values, 0), ticket=old.ticket.base)
    own = play._replace(loss=lanes.loss[-1], ticket=play.ticket.base)
    state, ticket = base.learn(before.base, t, own, Arrivals(lanes, fed))
    return now._replace(base=state), waiting_add(waiting, fed, wait), ticket
