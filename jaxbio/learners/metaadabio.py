"""MetaAdaBIO (the paper's Algorithm 2): the base alone until its delays cost more than states."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbio import checks
from jaxbio.core import Array, Arrivals, Known, Play, Ticket
from jaxbio.learners.estimates import Estimator
from jaxbio.learners.feeding import Fed, Feeder, Waiting, fed_add, fed_zero, feed, waiting_zero
from jaxbio.ops import Wide, choose, select, wide_add, wide_value, wide_zero
from jaxbio.trees import float_dtype, pytree, set_field, static

RULES = ("theory", "practical", "footnote", "expected")
AT_SWITCH = ("learner", "fresh", "all")
NEVER = 2**31 - 1


class AdaTicket(NamedTuple):
    """base: the base's ticket; wait: bool [], does the base wait for this round's loss?

    plain: bool [], played before the switch, to be fed with its realised loss; start: int32 [],
    when the instance that played it began (None where instances are never replaced).
    """

    base: Ticket
    wait: Array
    plain: Array
    start: Array | None


class Instance(NamedTuple):
    """One run of the algorithm; a fresh switch or a new epoch begins another.

    total (frak-D): sum of sigma_t so far; switched: bool []; start: int32 [], the last round
    before the base's first one.
    """

    fed: Fed
    total: Wide
    switched: Array
    start: Array


class MetaAdaBIOState(NamedTuple):
    """The instance that plays now, and what outlives it.

    epoch_end: int32 [], the epoch's last round; known.horizon: the epoch's length;
    switch_round: int32 [], the first round at whose end it switched.
    """

    instance: Instance
    known: Known
    epoch_end: Array
    switch_round: Array
    waiting: Waiting
    estimator: Estimator


@pytree
class MetaAdaBIO(Feeder):
    """Play the base on realised losses; switch to MetaBIO(base, delta / 2) when delay costs more.

    base: any learner. delta: confidence; pair MetaAdaBIO(delta) with DAdaExp3(delta / 3).
    rule: tested at the end of each round but the last (of the horizon, or of an epoch), with
      frak-D_t the sum of the outstanding counts sigma_t:
      "theory" frak-D (3 ln K + ln(6/delta)) > 49 S T ln(8 S T / delta); "footnote" the same with
      S T on the right; "practical" frak-D > S T; "expected" 8 frak-D ln K > 36 S T ln(2 S T).
    at_switch: "learner" the same base goes on, estimates start empty; "all" estimates hold what
      arrived before, too; "fresh" (the theorem) a new base, and older rounds are forgotten.
    after: the base from a fresh switch on (same structure as base), or None for base itself.
    estimator, ordering, radius, radius_scale: as in MetaBIO.
    literal: count sigma_t as Algorithm 2 prints it, without round t itself.
    doubling: the first epoch's length; epochs double, each plays the algorithm anew with its own
      length as the horizon, so the real one need not be known. Our reading: delta is that of each
      epoch, so failures add up over epochs. None: one epoch, the horizon.
    switch_scale: multiplies the right-hand side of the rule.
    """

    _: dataclasses.KW_ONLY
    rule: str = static(default="theory")
    at_switch: str = static(default="learner")
    literal: bool = static(default=False)
    switch_scale: Any = 1.0
    doubling: Any = None
    after: Any = None
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("rule", self.rule, RULES)
        checks.choice("at_switch", self.at_switch, AT_SWITCH)
        checks.boolean("literal", self.literal)
        value = checks.parameter("switch_scale", self.switch_scale, 0, open_low=True)
        set_field(self, "switch_scale", value)
        if self.doubling is not None:
            set_field(self, "doubling", checks.integer("doubling", self.doubling, 2, 2**28))
        if self.after is not None:
            self._check_after()

    def _check_after(self) -> None:
        if self.at_switch != "fresh":
            raise ValueError(f"after needs at_switch='fresh', but got {self.at_switch!r}")
        if jax.tree.structure(self.after) != jax.tree.structure(self.base):
            raise ValueError(
                "after must have the structure of base (same class and choices), "
                f"but got {self.after!r} after {self.base!r}"
            )

    @property
    def _replaces(self) -> bool:
        """Do later instances take the place of earlier ones?"""
        return self.at_switch == "fresh" or self.doubling is not None

    def init(self, known: Known) -> MetaAdaBIOState:
        epoch_end = jnp.asarray(known.horizon, jnp.int32)
        if self.doubling is not None:
            epoch_end = jnp.asarray(self.doubling, jnp.int32)
            known = dataclasses.replace(known, horizon=epoch_end)
        instance = self._begin(self.base, known, jnp.int32(0), jnp.bool_(False))
        return MetaAdaBIOState(
            instance, known, epoch_end, jnp.int32(NEVER), waiting_zero(), self._estimates(known)
        )

    def _begin(self, base: Any, known: Known, start: Array, switched: Array) -> Instance:
        return Instance(fed_zero(base.init(known), known), wide_zero(), switched, start)

    def _estimates(self, known: Known) -> Estimator:
        """Those of MetaBIO(base, delta / 2)."""
        return self._estimator(known, jnp.asarray(self.delta) / 2.0)

    def _active_base(self, switched: Array) -> Any:
        if self.after is None:
            return self.base
        return jax.tree.map(lambda new, old: jnp.where(switched, new, old), self.after, self.base)

    def act(self, state: MetaAdaBIOState, t: Array, u: Array) -> tuple[Array, AdaTicket]:
        now = state.instance
        base = self._active_base(now.switched)
        action, ticket = base.act(now.fed.base, t - now.start, u)
        return action, self._ticket(now, ticket, jnp.bool_(False))

    def _ticket(self, now: Instance, base: Ticket, wait: Array) -> AdaTicket:
        return AdaTicket(base, wait, ~now.switched, now.start if self._replaces else None)

    def learn(
        self, state: MetaAdaBIOState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[MetaAdaBIOState, AdaTicket]:
        now = state.instance
        arrivals = arrivals._replace(due=self._relevant(now, arrivals))
        due = arrivals.due
        enters = due if self.at_switch == "all" else due & now.switched
        fed = fed_add(now.fed, arrivals, enters)
        outstanding = fed.outstanding
        wait = ~now.switched | (select(fed.seen.count, play.state) < outstanding)
        plain = jnp.concatenate([arrivals.play.ticket.plain[:-1], ~now.switched[None]])
        base = self._active_base(now.switched)
        known = state.estimator, state.waiting, now.fed, fed
        fed, waiting, ticket = feed(
            base, *known, t - now.start, play, arrivals, wait, enters, plain
        )
        counted = outstanding - (~due[-1]).astype(jnp.int32) if self.literal else outstanding
        ended = now._replace(fed=fed, total=wide_add(now.total, counted))
        new = state._replace(instance=ended, waiting=waiting)
        return self._next_epoch(self._switch(new, t), t), self._ticket(now, ticket, wait)

    def _relevant(self, now: Instance, arrivals: Arrivals) -> Array:
        """bool [M + 1]: lanes that are due and were played by the present instance."""
        if not self._replaces:
            return arrivals.due
        own = arrivals.play.ticket.start[:-1] == now.start
        return arrivals.due & jnp.concatenate([own, jnp.ones(1, bool)])

    def _switch(self, state: MetaAdaBIOState, t: Array) -> MetaAdaBIOState:
        """Test the rule at the end of round t. After an epoch's last there is nothing to play."""
        now = state.instance
        holds = ~now.switched & (t != state.epoch_end) & self._rule(now.total, state.known)
        switch_round = jnp.where(holds, jnp.minimum(state.switch_round, t), state.switch_round)
        waiting = state.waiting
        if self.at_switch == "fresh":
            base = self.base if self.after is None else self.after
            fresh = self._begin(base, state.known, t, jnp.bool_(True))
            now = choose(holds, fresh, now)
            waiting = waiting._replace(unfed=jnp.where(holds, 0, waiting.unfed))
        now = now._replace(switched=now.switched | holds)
        return state._replace(instance=now, switch_round=switch_round, waiting=waiting)

    def _rule(self, total: Wide, known: Known) -> Array:
        dtype = float_dtype()
        states, rounds = known.num_states.astype(dtype), known.horizon.astype(dtype)
        log_actions, size = math.log(known.num_actions), states * rounds
        delay_cost, state_cost = wide_value(total), size
        if self.rule in ("theory", "footnote"):
            delay_cost = delay_cost * (3.0 * log_actions + jnp.log(6.0 / self.delta))
        if self.rule == "theory":
            state_cost = 49.0 * size * jnp.log(8.0 * size / self.delta)
        if self.rule == "expected":
            delay_cost = 8.0 * delay_cost * log_actions
            state_cost = 36.0 * size * jnp.log(2.0 * size)
        return delay_cost > self.switch_scale * state_cost

    def _next_epoch(self, state: MetaAdaBIOState, t: Array) -> MetaAdaBIOState:
        """At the end of an epoch, begin anew with twice its length."""
        if self.doubling is None:
            return state
        over = t == state.epoch_end
        longer = jnp.where(over, 2, 1) * state.known.horizon
        known = dataclasses.replace(state.known, horizon=longer)
        fresh = self._begin(self.base, known, t, jnp.bool_(False))
        unfed = jnp.where(over, 0, state.waiting.unfed)
        return state._replace(
            instance=choose(over, fresh, state.instance),
            known=known,
            epoch_end=jnp.where(over, t + known.horizon, state.epoch_end),
            waiting=state.waiting._replace(unfed=unfed),
            estimator=self._estimates(known),
        )

    def facts(self, state: MetaAdaBIOState) -> dict[str, Any]:
        own = self._facts(state.instance.fed.base, state.waiting)
        return {**own, "switch_round": state.switch_round}
