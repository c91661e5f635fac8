"""MetaBIO (the paper's Algorithm 1): any delayed bandit, fed with estimates of state losses."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbio import checks
from jaxbio.core import (
    Array,
    Arrivals,
    Known,
    Learner,
    Play,
    State,
    Ticket,
    check_learner,
    draws_of,
    facts_of,
)
from jaxbio.learners.estimates import ESTIMATORS, ORDERINGS, RADII, Estimator, estimator
from jaxbio.ops import Means, Wide, count, means_add, means_zero, select, wide_add, wide_zero
from jaxbio.trees import pytree, set_field, static


class MetaTicket(NamedTuple):
    """base: the base's own ticket; wait: bool [], does the base still wait for this round?"""

    base: Ticket
    wait: Array


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


def waiting_facts(waiting: Waiting) -> dict[str, Any]:
    return {
        "waiting_rounds": waiting.waits,
        "total_perceived_delay": waiting.total,
        "rounds_fed": waiting.fed,
    }


class MetaBIOState(NamedTuple):
    """base: the base's state; seen (L): arrived losses per state, [S]; outstanding (sigma_t)."""

    base: State
    seen: Means
    outstanding: Array
    needed: Array
    waiting: Waiting
    estimator: Estimator


@pytree
class MetaBIO:
    """Feed the base at once with an estimate if its state is known well enough, else wait.

    At the end of round t, wait_t is decided once: N_t(S_t) < n_t, where N_t counts the arrived
    losses of the state. A round that waits is fed when its loss arrives. The base sees perceived
    delays only: 0, or the real delay of a round that waits.

    base: any learner. delta: confidence of the estimates; pair MetaBIO(delta) with
      DAdaExp3(delta / 2) as `make_learner` does.
    estimator: "lcb" lower confidence bounds, "mean" plain means (the expectation version).
    threshold: "outstanding" n_t = sigma_t, the rounds outstanding at the end of round t, itself
      included; "delay" n_t = delay, which must be fixed: given, or taken from the environment.
    ordering: of several losses in a round, see `Estimator.lanes`.
    radius: "horizon" uses T; "anytime" needs no horizon. radius_scale: multiplies it.
    """

    base: Any
    delta: Any = 0.1
    estimator: str = static(default="lcb")
    threshold: str = static(default="outstanding")
    ordering: str = static(default="together")
    radius: str = static(default="horizon")
    radius_scale: Any = 1.0
    delay: Any = None
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        checks.learner("base", self.base)
        set_field(self, "delta", checks.probability_of_error("delta", self.delta))
        checks.choice("estimator", self.estimator, ESTIMATORS)
        checks.choice("threshold", self.threshold, ("outstanding", "delay"))
        checks.choice("ordering", self.ordering, ORDERINGS)
        checks.choice("radius", self.radius, RADII)
        set_field(self, "radius_scale", checks.parameter("radius_scale", self.radius_scale, 0))
        if self.delay is not None:
            set_field(self, "delay", checks.integer("delay", self.delay, 0, 2**30))
            if self.threshold != "delay":
                raise ValueError(f"delay needs threshold='delay', but got {self.threshold!r}")

    def check(self, env: Any) -> None:
        """Raise where the environment lacks what this learner needs."""
        if self.threshold == "delay" and self.delay is None and not env.delays.constant:
            raise ValueError(
                "threshold='delay' needs a fixed delay, but the environment has "
                f"{type(env.delays).__name__}: give delay=... or use threshold='outstanding'"
            )
        check_learner(self.base, env)

    def draws(self, num_actions: int) -> int:
        return draws_of(self.base, num_actions)

    def init(self, known: Known) -> MetaBIOState:
        return MetaBIOState(
            base=self.base.init(known),
            seen=means_zero(known.state_slots),
            outstanding=jnp.int32(0),
            needed=jnp.asarray(known.delay if self.delay is None else self.delay, jnp.int32),
            waiting=waiting_zero(),
            estimator=estimator(
                known,
                known.horizon,
                self.delta,
                self.radius_scale,
                self.estimator,
                self.radius,
                self.ordering,
            ),
        )

    def act(self, state: MetaBIOState, t: Array, u: Array) -> tuple[Array, MetaTicket]:
        action, ticket = self.base.act(state.base, t, u)
        return action, MetaTicket(ticket, jnp.bool_(False))

    def learn(
        self, state: MetaBIOState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[MetaBIOState, MetaTicket]:
        old, due = arrivals.play, arrivals.due
        outstanding = state.outstanding + 1 - count(due)
        seen = means_add(state.seen, old.state, old.loss, due)
        needed = outstanding if self.threshold == "outstanding" else state.needed
        wait = self.waits(select(seen.count, play.state), needed)
        feed, waited = feed_lanes(due, old.ticket.wait, wait)
        estimate = state.estimator.lanes(state.seen, seen, old.state, old.loss, due, waited)
        base, ticket = feed_base(self.base, state.base, t, play, old, estimate, feed)
        waiting = waiting_add(state.waiting, feed, wait)
        new = MetaBIOState(base, seen, outstanding, state.needed, waiting, state.estimator)
        return new, MetaTicket(ticket, wait)

    def waits(self, arrived: Array, needed: Array) -> Array:
        """bool []: wait for a round whose state has this many arrived losses (N_t) of n_t?"""
        return arrived < needed

    def facts(self, state: MetaBIOState) -> dict[str, Any]:
        return {**facts_of(self.base, state.base), **waiting_facts(state.waiting)}


def feed_lanes(due: Array, waited: Array, wait: Array) -> tuple[Array, Array]:
    """Which lanes are fed now, and which of them have a loss of their own among the arrivals.

    due, waited: bool [M + 1], the last lane is the round just played; wait: bool [], its decision.
    A round fed at once needs no loss; one that waits is fed when its loss is due.
    """
    is_last = lax.iota(jnp.int32, due.shape[0]) == due.shape[0] - 1
    waits = jnp.where(is_last, wait, waited)
    own_loss = due & (waits | is_last)
    return own_loss | (is_last & ~wait), own_loss


def feed_base(
    base: Learner, state: State, t: Array, play: Play, old: Play, values: Array, feed: Array
) -> tuple[State, Ticket]:
    """The base's end of round t: it sees `values` as the losses of the lanes in `feed`."""
    lanes = old._replace(loss=jnp.where(feed, values, 0), ticket=old.ticket.base)
    own = play._replace(loss=lanes.loss[-1], ticket=play.ticket.base)
    return base.learn(state, t, own, Arrivals(lanes, feed))
