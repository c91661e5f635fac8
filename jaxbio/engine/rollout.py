"""One run, pure: the loop over rounds, and what is recorded on the way.

`rollout` loops the step of one run and composes with the user's own transformations: it is the
definition that every back-end is tested against.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import checks, rng
from jaxbio.checks import memory
from jaxbio.core import Array, check_learner
from jaxbio.engine.recording import at_points
from jaxbio.engine.round import (
    Carry,
    Game,
    Round,
    as_numbers,
    begin,
    make_game,
    step,
    summary,
    take_tally,
)
from jaxbio.engine.rules import comparators, take_totals
from jaxbio.engine.sizing import checked_sizes, ring_sizes
from jaxbio.environment.environment import MAX_HORIZON, Environment, check_environment
from jaxbio.ops import select, sum_zero


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
