"""One run, pure: the loop over rounds, and what is recorded on the way.

`step` is the whole game in one function of one run. `rollout` loops it for one run and composes
with the user's own transformations; `simulate` loops it for blocks of runs side by side.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import checks, memory, protocol, ring, rng
from jaxbio.batching import cut
from jaxbio.core import (
    Array,
    Arrivals,
    Known,
    Play,
    as_arrays,
    check_learner,
    draws_of,
    facts_of,
    float_dtype,
    ignores_empty_lanes,
    is_concrete,
    library_of,
    pytree,
    static,
)
from jaxbio.environment.environment import MAX_HORIZON, Environment, check_environment
from jaxbio.kernel import at_points
from jaxbio.ops import Sum, Wide, select, sum_add, sum_zero, wide_add, wide_value, wide_zero
from jaxbio.sizing import checked_sizes, ring_sizes


class Facts(NamedTuple):
    """What the runner counts itself: int32 [] each, total a Wide.

    outstanding: sigma_t, losses that have not arrived at the end of the round; most: sigma_max;
    total: sum of the counts at the beginnings of rounds, the clipped total delay; arrived.
    out_of_range: bool [], an action that does not exist was chosen; lost: bool [], a delay was
    negative, not the one that it always is (`constant`), or so long that the ring had no slot for a
    loss that was to arrive.
    """

    outstanding: Array
    most: Array
    total: Wide
    arrived: Array
    out_of_range: Array
    lost: Array


class Tally(NamedTuple):
    """Sums since the last recorded round: pseudo-regret and realised loss, float [] each."""

    regret: Sum
    loss: Sum


class Carry(NamedTuple):
    """The state of a run between rounds.

    number: int32 [], how many losses of older rounds are due at the end of the next round; row:
    their plays as the ring packs them, arrays [lanes, W], or None where they are read when needed.
    """

    learner: Any
    ring: ring.Ring
    number: Array
    row: list[Array] | None
    facts: Facts
    tally: Tally


class Round(NamedTuple):
    """One round as it was played: scalars, or [T] each in a trajectory.

    ticket: as it was filed, with what the learner decided at the end of the round.
    """

    action: Array
    state: Array
    loss: Array
    delay: Array
    ticket: Any


@pytree
class Game:
    """Everything a run is a function of, apart from its key.

    best: int32 [], the best action of the whole horizon; gaps: [E, K] or None, what the others cost
    beyond it (`Environment.gaps`). lanes: how many losses of older rounds can
    arrive in one round.
    """

    env: Environment
    learner: Any
    known: Known
    best: Array
    gaps: Any
    lanes: int = static()

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
        wanted = draws_of(self.learner, self.known.num_actions)
        return (mine if wanted == 1 else rng.draws(key, t, wanted)), losses

    @property
    def codec(self) -> ring.Codec:
        known, binary = self.known, getattr(self.env.losses, "binary", False)
        return ring.codec(self.template, known.num_actions, known.state_slots, binary)


def make_game(
    env: Environment, learner: Any, horizon: Any, ring_depth: int, lanes: int, library: Any = jnp
) -> Game:
    """Put a game together; env and learner become trees of arrays.

    library: jax.numpy, or numpy where nothing is traced and nothing should be compiled.
    """
    horizon = library_of(horizon).asarray(horizon, jnp.int32)  # of jnp, a tracer under jit
    best = env.best_action(horizon)
    delay: Any = _fixed_delay(env.delays) if env.delays.constant else -1
    shapes = (env.num_actions, env.state_slots, ring_depth)
    known = Known(env.real_states, horizon, delay, *shapes)
    return as_arrays(Game(env, learner, known, best, env.gaps(best), lanes), library)


def _fixed_delay(delays: Any) -> Any:
    if all(is_concrete(leaf) for leaf in jax.tree.leaves(delays)):
        return delays.longest()
    return delays.delay(jnp.zeros(2, jnp.uint32), jnp.int32(1))


def begin(game: Game, ahead: bool = True) -> Carry:
    """Before the first round. ahead: is the row of the next round part of the carry?"""
    template, plan = game.template, game.codec
    counted = not game.env.delays.constant
    slots = ring.empty(plan, template, game.known.ring_depth, game.lanes, counted)
    zero = jnp.int32(0)
    return Carry(
        protocol.stored(game.learner, game.learner.init(game.known)),
        slots,
        zero,
        _row(game, slots.words, zero, game.lanes) if ahead else None,
        Facts(zero, zero, wide_zero(), zero, jnp.bool_(False), jnp.bool_(False)),
        Tally(sum_zero(), sum_zero()),
    )


class Acted(NamedTuple):
    """The first half of a round: scalars."""

    action: Array
    ticket: Any
    state: Array
    loss: Array
    delay: Array


def act(game: Game, key: Array, t: Array, carry: Carry) -> Acted:
    """Round t up to the moment at which losses arrive."""
    env, learner = game.env, game.learner
    u, u_loss = cut(game.uniforms(key, t))
    mine = protocol.restored(game.types, carry.learner)
    action, ticket = protocol.pair(learner, "act", learner.act(mine, t, u))
    action = protocol.integer_scalar(f"act of {type(learner).__name__}", action)
    state = protocol.integer_scalar("state of the mapping", env.state(key, t, action))
    loss = env.losses.loss(key, t, state, u_loss)
    loss = protocol.number_scalar("loss of the losses", loss)
    delay = protocol.integer_scalar("delay of the delays", env.delays.delay(key, t))
    # One kernel per stage: without the cut, XLA computes the draw again for every later use.
    return cut(Acted(action, ticket, state, loss, delay))


def learn(
    game: Game, t: Array, state: Any, acted: Acted, row: list[Array], number: Array
) -> tuple[Any, Any]:
    """The learner's end of round t, with the older losses of a row: its state, the ticket."""
    at_once = acted.delay == 0
    play = Play(acted.action, acted.state, jnp.where(at_once, acted.loss, 0), acted.ticket)
    arriving = ring.arrivals(row, game.codec, number, blank=not ignores_empty_lanes(game.learner))
    mine, lanes = protocol.restored(game.types, state), _with_own(arriving, play, at_once)
    returned = game.learner.learn(mine, t, play, lanes)
    learned, ticket = protocol.pair(game.learner, "learn", returned)
    ticket = protocol.checked_ticket(game.learner, ticket, play.ticket)
    return protocol.checked_state(game.learner, learned, state), ticket


def pack(
    game: Game, t: Array, slots: ring.Ring, acted: Acted, ticket: Any
) -> tuple[list[Array], ring.Place, Array]:
    """Round t's play as the ring keeps it, its place there, and whether there was none."""
    play = Play(acted.action, acted.state, acted.loss, ticket)
    known = game.known
    found = ring.place(slots, t, acted.delay, known.horizon, known.ring_depth, game.lanes)
    return game.codec.pack(play), *found


def close(
    game: Game, t: Array, carry: Carry, acted: Acted, learned: Any, slots: ring.Ring
) -> Carry:
    """Count round t, whose play has been filed, and look at what the next round brings."""
    env = game.env
    slots = ring.turn(lax.optimization_barrier(slots), t)
    number = ring.number_due(slots, t + 1, acted.delay)
    row = None if carry.row is None else _row(game, slots.words, t + 1, game.lanes)
    regret = env.pseudo_regret(t, acted.action, game.best, game.gaps)
    tally = Tally(sum_add(carry.tally.regret, regret), sum_add(carry.tally.loss, acted.loss))
    arrived = carry.number + (acted.delay == 0).astype(jnp.int32)
    outside = (acted.action < 0) | (acted.action >= env.num_actions)
    beyond = (acted.delay >= game.known.ring_depth) & (t <= game.known.horizon - acted.delay)
    lost = beyond | (acted.delay < 0)
    if env.delays.constant:
        lost = lost | (acted.delay != game.known.delay)
    facts = _count(carry.facts, arrived, outside, lost)
    return Carry(learned, slots, number, row, facts, tally)


def step(game: Game, key: Array, t: Array, carry: Carry) -> tuple[Carry, Round]:
    """Round t of one run."""
    acted = act(game, key, t, carry)
    assert carry.row is not None
    learned, ticket = learn(game, t, carry.learner, acted, carry.row, carry.number)
    played = Round(acted.action, acted.state, acted.loss, acted.delay, ticket)
    slots = ring.write(carry.ring, *pack(game, t, carry.ring, acted, ticket))
    return close(game, t, carry, acted, learned, slots), played


def _row(game: Game, words: list[Array], t: Array, lanes: int) -> list[Array]:
    return ring.row(words, t, game.known.ring_depth, lanes)


def learn_late(
    game: Game, t: Array, state: Any, acted: Acted, words: list[Array], number: Array, lanes: int
) -> tuple[Any, Any, Array]:
    """`learn` with at most `lanes` losses of older rounds, read from the ring only now.

    Also returns how many were read.
    """
    row = _row(game, words, t, lanes)
    return *learn(game, t, state, acted, row, number), jnp.minimum(number, lanes)


def _with_own(arriving: Arrivals, play: Play, due: Array) -> Arrivals:
    """The lanes of older rounds, then the round just played: leaves [M + 1]."""
    lanes = jax.tree.map(lambda old, own: jnp.concatenate([old, own[None]]), arriving.play, play)
    return Arrivals(lanes, jnp.concatenate([arriving.due, due[None]]))


def _count(facts: Facts, arrived: Array, out_of_range: Array, lost: Array) -> Facts:
    outstanding = facts.outstanding + 1 - arrived
    return Facts(
        outstanding,
        jnp.maximum(facts.most, outstanding),
        wide_add(facts.total, facts.outstanding),
        facts.arrived + arrived,
        facts.out_of_range | out_of_range,
        facts.lost | lost,
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
        "overflow": carry.ring.overflow | facts.lost,
        "out_of_range": facts.out_of_range,
        "not_a_number": _has_nan(carry.learner),
    }
    info |= facts_of(game.learner, protocol.restored(game.types, carry.learner))
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


def comparators(env: Environment, key: Array, t: Array, totals: Sum) -> Sum:
    """Add round t's realised loss of every action, l_t(s_t(a)), to totals [K]."""
    u = rng.round_uniforms(key, t)[1]
    rows = []
    for action in range(env.num_actions):
        state = env.state(key, t, jnp.int32(action))
        rows.append(env.losses.loss(key, t, state, u))
    return sum_add(totals, jnp.stack(rows))


def take_totals(totals: Sum) -> tuple[Sum, Array]:
    """The actions' realised losses since the last recorded round; they begin again at 0."""
    return jax.tree.map(jnp.zeros_like, totals), totals.total


class Record(NamedTuple):
    """What one run leaves: rounds int32 [points]; regret, realized_regret, loss: float [points],
    sums up to each recorded round; info: named scalars, with the flags of what went wrong in flight
    (`checks.FLAGS`), which raise where they have values and travel along inside a transformation.
    """

    rounds: Array
    regret: Array
    realized_regret: Array
    loss: Array
    info: dict[str, Array]


def rollout(
    env: Environment,
    learner: Any,
    seed: Any,
    horizon: int,
    *,
    run: Any = 0,
    rounds: Any = 200,
    ring_depth: int | None = None,
    lanes: int | None = None,
) -> Record:
    """Play one run: a pure function that composes with jit, vmap and shard_map.

    Args:
      env, learner: pytrees; their numbers may be traced.
      seed: an integer or a typed key; with `run` it fixes the run, as in `simulate`.
      horizon: T, static.
      run: the run's index; may be traced.
      rounds: how many rounds to record, spread evenly, or which ones.
      ring_depth, lanes: sizes of the ring. They are read off the delays where those have values;
        with traced delays pass them (`ring_sizes` gives them for concrete ones).
    Returns:
      A Record. Its realised regret costs a second loop over the rounds; under jit it is not
      computed unless it is used.
    """
    horizon = checks.size("horizon", horizon, 1, MAX_HORIZON)
    points = recorded_rounds(rounds, horizon)
    game = _one_game(env, learner, seed, run, horizon, ring_depth, lanes)
    key = rng.run_key(seed, run)
    start, stops = jnp.int32(0), jnp.asarray(points, jnp.int32)
    carry, curve = at_points(
        lambda t, carry: step(game, key, t, carry)[0], take_tally, begin(game), start, stops
    )
    world = partial(comparators, game.env, key)
    others = sum_zero(game.known.num_actions)
    _, increments = at_points(world, take_totals, others, start, stops)
    every = jnp.cumsum(increments, axis=0)
    loss = jnp.cumsum(curve.loss)
    best = select(every.T, jnp.argmin(every[-1]).astype(jnp.int32))
    info = as_numbers(summary(game, carry))
    checks.flags(info)
    return Record(stops, jnp.cumsum(curve.regret), loss - best, loss, info)


def trajectory(
    env: Environment,
    learner: Any,
    seed: Any,
    horizon: int,
    *,
    run: Any = 0,
    ring_depth: int | None = None,
    lanes: int | None = None,
) -> Round:
    """Play the run that `rollout` plays and keep every round of it: leaves [T].

    For looking closely at one run; memory grows with the horizon. What went wrong in flight raises;
    with traced delays it cannot, and there is no place for it in the result: `rollout` has one.
    """
    horizon = checks.size("horizon", horizon, 1, MAX_HORIZON)
    memory.refuse_table(f"a trajectory of {horizon:,} rounds", 5 * horizon, "a shorter horizon")
    game = _one_game(env, learner, seed, run, horizon, ring_depth, lanes)
    key = rng.run_key(seed, run)

    def one_round(carry: Carry, t: Array) -> tuple[Carry, Round]:
        return step(game, key, t, carry)

    rounds = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    carry, played = lax.scan(one_round, begin(game), rounds)
    checks.flags(summary(game, carry))
    return played


def _one_game(
    env: Environment,
    learner: Any,
    seed: Any,
    run: Any,
    horizon: int,
    ring_depth: int | None,
    lanes: int | None,
) -> Game:
    """Check the players and put their game together."""
    check_players(env, learner, horizon)
    checks.integer("run", run, 0, 2**31 - 1)
    if ring_depth is None or lanes is None:
        sizes = ring_sizes(env, horizon)
        ring_depth = sizes[0] if ring_depth is None else ring_depth
        lanes = sizes[1] if lanes is None else lanes
    ring_depth, lanes = checked_sizes(env, horizon, ring_depth, lanes)
    what = f"a ring of {ring_depth:,} rounds (ring_depth) and {lanes} lanes"
    memory.refuse_table(what, ring_depth * lanes, "shorter delays, or a smaller ring")
    return make_game(env, learner, horizon, ring_depth, lanes)


def check_players(env: Any, learner: Any, horizon: int) -> None:
    """Raise where these two cannot play that long."""
    check_environment(env)
    checks.learner("learner", learner)
    env.check(horizon)
    check_learner(learner, env)


def recorded_rounds(rounds: Any, horizon: int) -> np.ndarray:
    """int32 [points], ascending, the last one is the horizon.

    rounds: how many, spread evenly over the horizon (fewer where rounds would repeat), or which.
    """
    if checks.is_single(rounds):
        count = min(checks.size("rounds", rounds, 1), horizon)
        memory.refuse_table(f"rounds={count:,}", count, "fewer rounds=")
        even = np.round(np.arange(1, count + 1) * (horizon / count)).astype(np.int64)
        return np.unique(np.clip(even, 1, horizon)).astype(np.int32)
    chosen = np.unique(checks.integers("rounds", rounds, 1, "[points]", low=1))
    if chosen[-1] > horizon:
        raise ValueError(f"rounds must be at most the horizon {horizon}, but got {chosen[-1]}")
    return np.unique(np.append(chosen, horizon)).astype(np.int32)
