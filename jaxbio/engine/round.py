"""One round of one run: the learner acts, losses arrive, the learner learns, the play is filed.

`step` is the whole game in one function of one run; everything that plays, plays this function.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import checks, rng
from jaxbio.core import (
    Array,
    Arrivals,
    Known,
    Play,
    draws_of,
    facts_of,
    ignores_empty_lanes,
    looks,
)
from jaxbio.engine import protocol, ring
from jaxbio.engine.marks import most_of_block
from jaxbio.engine.sizing import is_known, longest_of
from jaxbio.environment.environment import Environment
from jaxbio.ops import Sum, Wide, sum_add, sum_zero, wide_add, wide_value, wide_zero
from jaxbio.trees import as_arrays, float_dtype, library_of, pytree, static

# Boxes of a slot (see `ring`). Most rounds bring at most 5 losses to the busiest of 32 runs; where
# memory is dear, one box and the lists take half as much.
BOXES = 5
# Lanes: a round looks at the first of these numbers that is enough.
LADDER = (3, 4, 5, 8, 16, 64, 256, 1024, 4096, 16384)


class Facts(NamedTuple):
    """What the runner counts itself: int32 [] each, total a Wide.

    outstanding: sigma_t, losses that have not arrived at the end of the round; most: sigma_max;
    total: sum of the counts at the beginnings of rounds, the clipped total delay; arrived.
    out_of_range: bool [], an action that does not exist was chosen; lost: bool [], a delay was
    negative, not the one that it always is (`constant`), or so long that the ring had no slot for a
    loss that was to arrive; crowded: bool [], more losses arrived in a round than it has lanes.
    """

    outstanding: Array
    most: Array
    total: Wide
    arrived: Array
    out_of_range: Array
    lost: Array
    crowded: Array


class Tally(NamedTuple):
    """Sums since the last recorded round: pseudo-regret and realised loss, float [] each."""

    regret: Sum
    loss: Sum


class Carry(NamedTuple):
    """The state of a run between rounds."""

    learner: Any
    ring: ring.Ring
    facts: Facts
    tally: Tally


class Round(NamedTuple):
    """One round as it was played: scalars, or [T] each in a trajectory.

    loss: what counts; shown: what the learner is shown of it when it arrives, the same unless the
    delays change it (`WindowedDelay`). ticket: as it was filed, with what the learner decided at
    the end of the round.
    """

    action: Array
    state: Array
    loss: Array
    delay: Array
    ticket: Any
    shown: Array


def learner_uniforms(learner: Any, known: Known, key: Array, t: Array, mine: Array) -> Array:
    """What a learner gets for round t: the first uniform of the round, or as many as it wants."""
    wanted = draws_of(learner, known.num_actions)
    return mine if wanted == 1 else rng.draws(key, t, wanted)


@pytree
class Game:
    """Everything a run is a function of, apart from its key.

    best: int32 [], the best action of the whole horizon; gaps: [E, K] or None, what the others cost
    beyond it (`Environment.gaps`); longest: int32 [], of the delays, as their law says. lanes: how
    many losses of older rounds can arrive in one round; boxes: of a slot of the ring; late: is it
    known that no loss arrives in its own round? These three are never part of a result.
    """

    env: Environment
    learner: Any
    known: Known
    best: Array
    gaps: Any
    longest: Array
    lanes: int = static()
    boxes: int = static(default=BOXES)
    late: bool = static(default=False)

    @property
    def types(self) -> protocol.Types:
        """Of the learner's state and ticket."""
        return protocol.types_of(self.learner, self.known)

    @property
    def template(self) -> Play:
        """A play with the types of this game: scalars."""
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), self.types.ticket)
        return Play(jnp.int32(0), jnp.int32(0), jnp.zeros((), float_dtype()), zeros)

    def uniforms(self, key: Array, t: Array) -> tuple[Array, Array]:
        """The learner's uniform(s) and the one behind the losses, of round t."""
        mine, losses = rng.round_uniforms(key, t)
        return learner_uniforms(self.learner, self.known, key, t, mine), losses

    @property
    def codec(self) -> ring.Codec:
        env, known = self.env, self.known
        binary = getattr(env.losses, "binary", False)
        binary = binary and (not looks(env.delays) or getattr(env.delays, "binary", False))
        return ring.codec(self.template, known.num_actions, known.state_slots, binary)


def make_game(
    env: Environment,
    learner: Any,
    horizon: Any,
    ring_depth: int,
    lanes: int,
    library: Any = jnp,
    boxes: int = BOXES,
    late: bool | None = None,
) -> Game:
    """Put a game together; env and learner become trees of arrays.

    library: jax.numpy, or numpy where nothing is traced and nothing should be compiled. late: None
    finds out.
    """
    horizon = library_of(horizon).asarray(horizon, np.int32)  # of jnp, a tracer under jit
    best = env.best_action(horizon)
    delay = told_delay(env.delays)
    shapes = (env.num_actions, env.state_slots, ring_depth)
    known = Known(env.real_states, horizon, delay, *shapes)
    late = is_late(env.delays) if late is None else late
    numbers = best, env.gaps(best), told_longest(env.delays, ring_depth)
    return as_arrays(Game(env, learner, known, *numbers, lanes, boxes, late), library)


def is_late(delays: Any) -> bool:
    """Is it known that every loss arrives after its own round?"""
    return is_known(delays) and told_delay(delays, known=True) > 0


def told_delay(delays: Any, known: bool = False) -> Any:
    """What a learner is told: the fixed delay, or -1 where delays vary. known: no number in them is
    traced.
    """
    if not delays.constant:
        return -1
    if known or is_known(delays):
        return delays.longest()
    return delays.delay(jnp.zeros(2, jnp.uint32), jnp.int32(1))


def told_longest(delays: Any, ring_depth: int) -> Any:
    """The longest delay that the law says can occur, or that fits into the ring."""
    return min(longest_of(delays), ring_depth - 1) if is_known(delays) else ring_depth - 1


def begin(game: Game) -> Carry:
    """Before the first round."""
    counted, zero, false = not game.env.delays.constant, jnp.int32(0), jnp.bool_(False)
    depth, boxes = game.known.ring_depth, min(game.boxes, game.lanes)
    return Carry(
        protocol.stored(game.learner, game.learner.init(game.known)),
        ring.empty(game.codec, game.template, depth, boxes, counted),
        Facts(zero, zero, wide_zero(), zero, false, false, false),
        Tally(sum_zero(), sum_zero()),
    )


class Acted(NamedTuple):
    """The first half of a round: scalars. loss: what counts; shown: what the learner will see."""

    action: Array
    ticket: Any
    state: Array
    loss: Array
    delay: Array
    shown: Array


def delay_of(game: Game, key: Array, t: Array) -> Array:
    """int32 []: of the loss of round t."""
    return protocol.integer_scalar("delay of the delays", game.env.delays.delay(key, t))


def act(game: Game, key: Array, t: Array, state: Any) -> Acted:
    """Round t up to the moment at which losses arrive."""
    env, learner = game.env, game.learner
    u, u_loss = game.uniforms(key, t)
    mine = protocol.restored(game.types, state)
    action, ticket = protocol.pair(learner, "act", learner.act(mine, t, u))
    action = protocol.integer_scalar(f"act of {type(learner).__name__}", action)
    ticket = protocol.stored_ticket(ticket)
    state = protocol.integer_scalar("state of the mapping", env.state(key, t, action))
    loss = env.losses.loss(key, t, state, u_loss)
    loss = protocol.number_scalar("loss of the losses", loss)
    if looks(env.delays):
        revealed = env.delays.reveal(key, t, state, loss)
        shown, delay = protocol.shown_late(env.delays, revealed)
    else:
        shown, delay = loss, delay_of(game, key, t)
    return Acted(action, ticket, state, loss, delay, shown)


def learn(
    game: Game, t: Array, state: Any, acted: Acted, slots: ring.Ring, number: Array, lanes: int
) -> tuple[Any, Any]:
    """The learner's end of round t, with so many lanes of older losses: its state, the ticket."""
    boxes = min(game.boxes, game.lanes)
    row, due = ring.read(slots, t, number, game.known.ring_depth, boxes, lanes)
    arriving = ring.arrivals(row, due, game.codec, blank=not ignores_empty_lanes(game.learner))
    at_once = jnp.bool_(False) if game.late else acted.delay == 0
    play = Play(acted.action, acted.state, jnp.where(at_once, acted.shown, 0), acted.ticket)
    mine, every = protocol.restored(game.types, state), _with_own(arriving, play, at_once)
    returned = game.learner.learn(mine, t, play, every)
    learned, ticket = protocol.pair(game.learner, "learn", returned)
    ticket = protocol.checked_ticket(game.learner, ticket, play.ticket)
    return protocol.checked_state(game.learner, learned, state), ticket


def _learn_what_arrives(
    game: Game, t: Array, carry: Carry, acted: Acted, number: Array
) -> tuple[Any, Any]:
    """`learn` with all lanes, or with as many as the runs that are played together need, where the
    learner does not mind how many are empty.
    """
    fewer = LADDER if ignores_empty_lanes(game.learner) else ()
    ladder = [lanes for lanes in fewer if lanes < game.lanes] + [game.lanes]
    most = most_of_block(number)
    rung = sum(((most > lanes).astype(jnp.int32) for lanes in ladder[:-1]), jnp.int32(0))
    ways = [partial(_learn_with, game, lanes=lanes) for lanes in ladder]
    return lax.switch(rung, ways, t, carry.learner, acted, carry.ring, number)


def _learn_with(game: Game, *args: Any, lanes: int) -> tuple[Any, Any]:
    t, state, acted, slots, number = args
    return learn(game, t, state, acted, slots, number, lanes)


def close(
    game: Game, t: Array, carry: Carry, acted: Acted, learned: Any, slots: ring.Ring, number: Array
) -> Carry:
    """Count round t, whose play has been filed."""
    env = game.env
    regret = env.pseudo_regret(t, acted.action, game.best, game.gaps)
    tally = Tally(sum_add(carry.tally.regret, regret), sum_add(carry.tally.loss, acted.loss))
    arrived = number if game.late else number + (acted.delay == 0).astype(jnp.int32)
    outside = (acted.action < 0) | (acted.action >= env.num_actions)
    beyond = (acted.delay > game.longest) & (t <= game.known.horizon - acted.delay)
    lost = beyond | (acted.delay < 0)
    if env.delays.constant:
        lost = lost | (acted.delay != game.known.delay)
    facts = _count(carry.facts, arrived, outside, lost, number > game.lanes)
    return Carry(learned, slots, facts, tally)


def step(game: Game, key: Array, t: Array, carry: Carry) -> tuple[Carry, Round]:
    """Round t of one run."""
    delays, depth, boxes = game.env.delays, game.known.ring_depth, min(game.boxes, game.lanes)
    slots, place, number = carry.ring, None, None
    if not (delays.constant or looks(delays)):
        # Long before the play is filed: a processor fetches what it needs for that in the meantime.
        delay = delay_of(game, key, t)
        number = ring.number_due(slots, t, delay, depth)
        slots, place = ring.reserve(slots, t, delay, game.known.horizon, depth, boxes)
    acted = act(game, key, t, carry.learner)
    if number is None:
        number = ring.number_due(slots, t, acted.delay, depth)
        if looks(delays):
            slots, place = ring.reserve(slots, t, acted.delay, game.known.horizon, depth, boxes)
    learned, ticket = _learn_what_arrives(game, t, carry._replace(ring=slots), acted, number)
    packed = game.codec.pack(Play(acted.action, acted.state, acted.shown, ticket))
    slots = ring.file(slots, packed, place or ring.only_place(t, acted.delay, depth))
    played = Round(acted.action, acted.state, acted.loss, acted.delay, ticket, acted.shown)
    return close(game, t, carry, acted, learned, slots, number), played


def _with_own(arriving: Arrivals, play: Play, due: Array) -> Arrivals:
    """The lanes of older rounds, then the round just played: leaves [M + 1]."""
    lanes = jax.tree.map(lambda old, own: jnp.concatenate([old, own[None]]), arriving.play, play)
    return Arrivals(lanes, jnp.concatenate([arriving.due, due[None]]))


def _count(facts: Facts, arrived: Array, out_of_range: Array, lost: Array, crowded: Array) -> Facts:
    outstanding = facts.outstanding + 1 - arrived
    return Facts(
        outstanding,
        jnp.maximum(facts.most, outstanding),
        wide_add(facts.total, facts.outstanding),
        facts.arrived + arrived,
        facts.out_of_range | out_of_range,
        facts.lost | lost,
        facts.crowded | crowded,
    )


class Curve(NamedTuple):
    """Increments between recorded rounds: float [points] each."""

    regret: Array
    loss: Array


def take_tally(carry: Carry) -> tuple[Carry, Curve]:
    """The sums since the last recorded round; they begin again at 0."""
    empty = jax.tree.map(jnp.zeros_like, carry.tally)
    curve = Curve(carry.tally.regret.total, carry.tally.loss.total)
    return carry._replace(tally=empty), curve


def summary(game: Game, carry: Carry) -> dict[str, Any]:
    """The facts of a run: scalars or Wide. A learner's own take the place of the runner's."""
    facts = carry.facts
    played = facts.outstanding + facts.arrived
    info = {
        "waiting_rounds": played,
        "total_perceived_delay": facts.total,
        "rounds_fed": facts.arrived,
        "switch_round": jnp.int32(2**31 - 1),
        "sigma_max": facts.most,
        "total_delay": facts.total,
        "arrived": facts.arrived,
        "lost": facts.lost,
        "overflow": facts.crowded | facts.lost,
        "out_of_range": facts.out_of_range,
        "not_a_number": _has_nan(carry.learner),
    }
    mine = facts_of(game.learner, protocol.restored(game.types, carry.learner))
    info |= protocol.checked_facts(game.learner, mine, checks.FLAGS)
    never, switch = game.known.horizon + 1, info["switch_round"]
    # After the last round there is nothing left that a switch could change.
    info["switch_round"] = jnp.where(switch < game.known.horizon, switch, never)
    return info


def as_numbers(facts: dict[str, Any]) -> dict[str, Array]:
    """The facts with every Wide as a float."""
    return {
        name: wide_value(fact) if isinstance(fact, Wide) else fact for name, fact in facts.items()
    }


def _has_nan(tree: Any) -> Array:
    floats = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]
    found = jnp.bool_(False)
    for leaf in floats:
        found = found | jnp.any(jnp.isnan(leaf))
    return found
