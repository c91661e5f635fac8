"""MetaBIO (the paper's Algorithm 1): any delayed bandit, fed with estimates of state losses."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play, Ticket
from jaxbio.learners.estimates import Estimator
from jaxbio.learners.feeding import Fed, Feeder, Waiting, fed_add, fed_zero, feed, waiting_zero
from jaxbio.ops import select
from jaxbio.trees import pytree, set_field, static


class MetaTicket(NamedTuple):
    """base: the base's own ticket; wait: bool [], does the base still wait for this round?"""

    base: Ticket
    wait: Array


class MetaBIOState(NamedTuple):
    """needed: int32 [], n_t where it is the delay."""

    fed: Fed
    needed: Array
    waiting: Waiting
    estimator: Estimator


@pytree
class MetaBIO(Feeder):
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

    _: dataclasses.KW_ONLY
    threshold: str = static(default="outstanding")
    delay: Any = None
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("threshold", self.threshold, ("outstanding", "delay"))
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
        super().check(env)

    def init(self, known: Known) -> MetaBIOState:
        return MetaBIOState(
            fed=fed_zero(self.base.init(known), known),
            needed=jnp.asarray(known.delay if self.delay is None else self.delay, jnp.int32),
            waiting=waiting_zero(),
            estimator=self._estimator(known, self.delta),
        )

    def act(self, state: MetaBIOState, t: Array, u: Array) -> tuple[Array, MetaTicket]:
        action, ticket = self.base.act(state.fed.base, t, u)
        return action, MetaTicket(ticket, jnp.bool_(False))

    def learn(
        self, state: MetaBIOState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[MetaBIOState, MetaTicket]:
        due = arrivals.due
        now = fed_add(state.fed, arrivals, due)
        needed = now.outstanding if self.threshold == "outstanding" else state.needed
        wait = self.waits(select(now.seen.count, play.state), needed)
        known = state.estimator, state.waiting, state.fed
        fed, waiting, ticket = feed(self.base, *known, now, t, play, arrivals, wait, due)
        return state._replace(fed=fed, waiting=waiting), MetaTicket(ticket, wait)

    def waits(self, arrived: Array, needed: Array) -> Array:
        """bool []: wait for a round whose state has this many arrived losses (N_t) of n_t?"""
        return arrived < needed

    def facts(self, state: MetaBIOState) -> dict[str, Any]:
        return self._facts(state.fed.base, state.waiting)
