"""One run, pure: the loop over rounds, and what is recorded on the way.

`step` is the whole game in one function of one run. `rollout` loops it for one run and composes
with the user's own transformations; `simulate` loops it for blocks of runs side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import checks, ring, rng
from jaxbio.batching import runs_last
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
    is_concrete,
    pytree,
    static,
)
from jaxbio.environment.environment import MAX_HORIZON, Environment, check_environment
from jaxbio.kernel import Program
from jaxbio.ops import Sum, Wide, count, select, sum_add, sum_zero, wide_add, wide_value, wide_zero

FEWEST_LANES = 8  # for random delays
MEASURED_TOGETHER = 128  # runs whose delays are looked at side by side


class Facts(NamedTuple):
    """What the runner counts itself: int32 [] each, total a Wide.

    outstanding: sigma_t, losses that have not arrived at the end of the round; most: sigma_max;
    total: sum of the counts at the beginnings of rounds, the clipped total delay; arrived.
    out_of_range: bool [], an action that does not exist was chosen.
    """

    outstanding: Array
    most: Array
    total: Wide
    arrived: Array
    out_of_range: Array


class Tally(NamedTuple):
    """Sums since the last recorded round: pseudo-regret and realised loss, float [] each."""

    regret: Sum
    loss: Sum


class Carry(NamedTuple):
    """The state of a run between rounds. arriving: what is due at the end of the next round."""

    learner: Any
    ring: ring.Ring
    arriving: Arrivals
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

    best: int32 [], the best action of the whole horizon. lanes: how many losses of older rounds can
    arrive in one round.
    """

    env: Environment
    learner: Any
    known: Known
    best: Array
    lanes: int = static()

    @property
    def template(self) -> Play:
        """A play with the types of this game: scalars."""
        u = self.uniforms(jnp.zeros(2, jnp.uint32), jnp.int32(1))[0]
        shapes = jax.eval_shape(
            lambda k, u: self.learner.act(self.learner.init(k), jnp.int32(1), u), self.known, u
        )
        if any(leaf.shape for leaf in jax.tree.leaves(shapes[1])):
            raise TypeError(f"a ticket must be made of scalars, but act handed out {shapes[1]}")
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes[1])
        return Play(jnp.int32(0), jnp.int32(0), jnp.zeros((), float_dtype()), zeros)

    def uniforms(self, key: Array, t: Array) -> tuple[Array, Array]:
        """The learner's uniform(s) and the one behind the losses, of round t."""
        mine, losses = rng.round_uniforms(key, t)
        wanted = draws_of(self.learner, self.known.num_actions)
        return (mine if wanted == 1 else rng.draws(key, t, wanted)), losses

    @property
    def codec(self) -> ring.Codec:
        return ring.codec(self.template, self.known.num_actions, self.known.state_slots)


def make_game(env: Environment, learner: Any, horizon: Any, ring_depth: int, lanes: int) -> Game:
    """Put a game together; env and learner become trees of arrays."""
    env, learner = as_arrays(env), as_arrays(learner)
    horizon = jnp.asarray(horizon, jnp.int32)
    constant = env.delays.constant
    delay = env.delays.delay(jnp.zeros(2, jnp.uint32), jnp.int32(1)) if constant else jnp.int32(-1)
    known = Known(
        jnp.asarray(env.real_states, jnp.int32),
        horizon,
        delay,
        env.num_actions,
        env.state_slots,
        ring_depth,
    )
    return Game(env, learner, known, env.best_action(horizon), lanes)


def begin(game: Game) -> Carry:
    """Before the first round."""
    template, plan = game.template, game.codec
    counted = not game.env.delays.constant
    slots = ring.empty(plan, template, game.known.ring_depth, game.lanes, counted)
    none = jax.tree.map(lambda x: jnp.zeros((game.lanes, *x.shape), x.dtype), template)
    zero = jnp.int32(0)
    return Carry(
        game.learner.init(game.known),
        slots,
        Arrivals(none, jnp.zeros(game.lanes, bool)),
        Facts(zero, zero, wide_zero(), zero, jnp.bool_(False)),
        Tally(sum_zero(), sum_zero()),
    )


def step(game: Game, key: Array, t: Array, carry: Carry) -> tuple[Carry, Round]:
    """Round t of one run."""
    env, learner, plan = game.env, game.learner, game.codec
    u, u_loss = game.uniforms(key, t)
    action, ticket = learner.act(carry.learner, t, u)
    action = jnp.asarray(action).astype(jnp.int32)
    state = env.state(key, t, action)
    loss = env.losses.loss(key, t, state, u_loss)
    delay = env.delays.delay(key, t)
    # One kernel per stage: without the cut, XLA computes the draw again for every later use.
    action, ticket, state, loss, delay = lax.optimization_barrier(
        (action, ticket, state, loss, delay)
    )
    at_once = delay == 0
    play = Play(action, state, jnp.where(at_once, loss, 0), ticket)
    arrivals = _with_own(carry.arriving, play, at_once)
    learned, ticket = learner.learn(carry.learner, t, play, arrivals)
    filed = play._replace(loss=loss, ticket=_like(ticket, play.ticket))
    slots = ring.write(carry.ring, plan, filed, t, delay, game.known.horizon)
    slots = lax.optimization_barrier(slots)
    arriving = ring.read(slots, plan, t + 1, delay)
    regret = env.pseudo_loss(t, action) - env.pseudo_loss(t, game.best)
    tally = Tally(sum_add(carry.tally.regret, regret), sum_add(carry.tally.loss, loss))
    facts = _count(carry.facts, arrivals.due, (action < 0) | (action >= env.num_actions))
    played = Round(action, state, loss, delay, filed.ticket)
    return Carry(learned, slots, arriving, facts, tally), played


def _with_own(arriving: Arrivals, play: Play, due: Array) -> Arrivals:
    """The lanes of older rounds, then the round just played: leaves [M + 1]."""
    lanes = jax.tree.map(lambda old, own: jnp.concatenate([old, own[None]]), arriving.play, play)
    return Arrivals(lanes, jnp.concatenate([arriving.due, due[None]]))


def _like(ticket: Any, template: Any) -> Any:
    given, expected = jax.tree.map(jax.typeof, ticket), jax.tree.map(jax.typeof, template)
    if jax.tree.flatten(given) != jax.tree.flatten(expected):
        raise TypeError(
            "learn must return a ticket like the one act handed out, "
            f"but act gave {expected} and learn returned {given}"
        )
    return ticket


def _count(facts: Facts, due: Array, out_of_range: Array) -> Facts:
    arrived = count(due)
    outstanding = facts.outstanding + 1 - arrived
    return Facts(
        outstanding,
        jnp.maximum(facts.most, outstanding),
        wide_add(facts.total, facts.outstanding),
        facts.arrived + arrived,
        facts.out_of_range | out_of_range,
    )


class Curve(NamedTuple):
    """Increments between recorded rounds: float [points] each."""

    regret: Array
    loss: Array


def at_points(
    one_round: Callable[[Array, Any], Any],
    take: Callable[[Any], tuple[Any, Any]],
    state: Any,
    last: Array,
    rounds: Array,
    loop: Callable[..., Any] = lax.fori_loop,
) -> tuple[Any, Any]:
    """Play on from round `last`; at each of `rounds` [points] take out what is to be recorded.

    one_round: (t, state) -> state; take: state -> (state, output). A round equal to the one before
    it plays nothing, so `rounds` may be padded. Returns the state and the outputs [points, ...].
    """

    def point(now: tuple[Any, Array], until: Array) -> tuple[tuple[Any, Array], Any]:
        state, last = now
        state, output = take(loop(last + 1, until + 1, one_round, state))
        return (state, jnp.maximum(until, last)), output

    (state, _), outputs = lax.scan(point, (state, last), rounds)
    return state, outputs


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
        "overflow": carry.ring.overflow,
        "out_of_range": facts.out_of_range,
        "not_a_number": _has_nan(carry.learner),
    }
    info |= facts_of(game.learner, carry.learner)
    info["switch_round"] = jnp.minimum(info["switch_round"], game.known.horizon + 1)
    return info


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
    points = recorded_rounds(rounds, checks.integer("horizon", horizon, 1, MAX_HORIZON))
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
    facts = summary(game, carry)
    checks.flags(facts)
    info = {
        name: wide_value(value) if isinstance(value, Wide) else value
        for name, value in facts.items()
    }
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

    For looking closely at one run; memory grows with the horizon.
    """
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
    horizon = checks.integer("horizon", horizon, 1, MAX_HORIZON)
    check_players(env, learner, horizon)
    checks.integer("run", run, 0, 2**31 - 1)
    if ring_depth is None or lanes is None:
        sizes = ring_sizes(env, seed, [run], horizon)
        ring_depth = sizes[0] if ring_depth is None else ring_depth
        lanes = sizes[1] if lanes is None else lanes
    _check_sizes(env, horizon, ring_depth, lanes)
    return make_game(env, learner, horizon, ring_depth, lanes)


def check_players(env: Any, learner: Any, horizon: int) -> None:
    """Raise where these two cannot play that long."""
    check_environment(env)
    checks.learner("learner", learner)
    env.check(horizon)
    check_learner(learner, env)


def _check_sizes(env: Environment, horizon: int, ring_depth: int, lanes: int) -> None:
    checks.integer("lanes", lanes, 1, ring.MAX_LANES)
    delays_known = all(is_concrete(leaf) for leaf in jax.tree.leaves(env.delays))
    needed = min(env.delays.longest(), horizon) + 1 if delays_known else 1
    if ring_depth < needed or ring_depth & (ring_depth - 1):
        raise ValueError(
            f"ring_depth must be a power of 2 and at least {needed} for these delays, "
            f"but got {ring_depth}"
        )


def recorded_rounds(rounds: Any, horizon: int) -> np.ndarray:
    """int32 [points], ascending, the last one is the horizon.

    rounds: how many, spread evenly over the horizon (fewer where rounds would repeat), or which.
    """
    if np.ndim(rounds) == 0:
        count = checks.integer("rounds", rounds, 1)
        even = np.round(np.arange(1, count + 1) * (horizon / count)).astype(np.int64)
        return np.unique(np.clip(even, 1, horizon)).astype(np.int32)
    chosen = np.unique(checks.integers("rounds", rounds, 1, "[points]", low=1))
    if chosen[-1] > horizon:
        raise ValueError(f"rounds must be at most the horizon {horizon}, but got {chosen[-1]}")
    return np.unique(np.append(chosen, horizon)).astype(np.int32)


def ring_sizes(env: Environment, seed: Any, runs: Any, horizon: int) -> tuple[int, int]:
    """(ring depth, lanes) for these runs, measured from their delays.

    Delays are oblivious, so the largest number of losses that ever arrive together is known before
    the game. Lanes are rounded up (1, 2, 4, 6, 8, 12, 16, ...; at least 8 for random delays) so
    that other seeds and numbers of runs find the same program.
    """
    _require_values("delays", env.delays)
    depth = ring.depth_for(env.delays.longest(), horizon)
    if env.delays.constant:
        return depth, 1
    _require_values("seeds or runs with random delays", (seed, runs))
    most = 1
    with jax.ensure_compile_time_eval():
        for first in range(0, len(runs), MEASURED_TOGETHER):
            block = np.resize(runs[first : first + MEASURED_TOGETHER], MEASURED_TOGETHER)
            keys = rng.run_keys(seed, block)
            filed = jnp.zeros((depth, MEASURED_TOGETHER), jnp.int32)
            stops = jnp.full(1, horizon, jnp.int32)
            counts = _most_together(as_arrays(env.delays), keys, filed, jnp.int32(0), stops)
            most = max(most, int(jnp.max(counts)))
    if most > ring.MAX_LANES:
        raise ValueError(
            f"up to {most} losses arrive in one round, but at most {ring.MAX_LANES} can: "
            "spread the delays, or shorten the horizon"
        )
    return depth, _rounded_lanes(most if env.delays.written_down else max(most, FEWEST_LANES))


def _require_values(what: str, tree: Any) -> None:
    if not all(is_concrete(leaf) for leaf in jax.tree.leaves(tree)):
        raise ValueError(
            f"the sizes of the ring cannot be read off traced {what}: "
            "pass ring_depth=... and lanes=... to rollout"
        )


def _rounded_lanes(most: int) -> int:
    size = 1
    while size < most:
        size *= 2
    return size * 3 // 4 if size >= 8 and size * 3 // 4 >= most else size


def _count_together(
    delays: Any,
    keys: Array,
    filed: Array,
    last: Array,
    stops: Array,
    loop: Callable[..., Any],
) -> Array:
    """int32 [runs]: the most losses of older rounds that arrive in one round up to stops[-1].

    keys: [2, runs]; filed: int32 [depth, runs], zeros.
    """
    depth, runs = filed.shape
    horizon = stops[-1]

    def one_round(t: Array, delays: Any, key: Array, filed: Array, most: Array) -> Any:
        delay = delays.delay(key, t)
        slot = (t + jnp.minimum(delay, depth - 1)) & (depth - 1)
        waiting = lax.dynamic_index_in_dim(filed, slot, keepdims=False)
        waiting, filed = lax.optimization_barrier((waiting, filed))
        inside = (delay > 0) & (delay < depth) & (t <= horizon - delay)
        together = waiting + inside.astype(jnp.int32)
        filed = lax.dynamic_update_index_in_dim(filed, together, slot, 0)
        cleared = lax.dynamic_update_index_in_dim(filed, jnp.int32(0), t & (depth - 1), 0)
        return cleared, jnp.maximum(most, together)

    batch = runs_last(one_round, (False, False, True, True, True), runs)
    state = (filed, jnp.zeros(runs, jnp.int32))
    (_, most), _ = at_points(
        lambda t, state: batch(t, delays, keys, *state),
        lambda state: (state, None),
        state,
        last,
        stops,
        loop,
    )
    return most


_most_together = Program(_count_together)
