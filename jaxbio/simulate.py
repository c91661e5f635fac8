"""Many runs of one learner, driven from the host in blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio import checks, rng
from jaxbio.batching import runs_last
from jaxbio.blocks import Played, Player, calls, compile_player, play_block, stops_of
from jaxbio.core import Array, as_arrays, float_dtype
from jaxbio.environment.environment import Environment
from jaxbio.kernel import Program, at_points
from jaxbio.ops import Sum, sum_zero
from jaxbio.record import Result, at_recorded, running_sum
from jaxbio.rollout import (
    MAX_HORIZON,
    Game,
    check_players,
    comparators,
    make_game,
    recorded_rounds,
    take_totals,
)
from jaxbio.sizing import cpu_width, ring_sizes
from jaxbio.workers import Advance, bar, in_parallel, number_of_workers

WIDTHS = (8, 32, 64, 128, 256, 512)  # runs side by side in one program


def simulate(
    env: Environment,
    learner: Any,
    *,
    horizon: int,
    runs: int = 20,
    seed: Any = 0,
    rounds: Any = 200,
    width: Any = None,
    workers: Any = None,
    progress: bool = True,
) -> Result:
    """Play `runs` independent games of `horizon` rounds.

    Args:
      env, learner: the problem and who plays it.
      horizon: T.
      runs: how many; run i is the same game whatever their number.
      seed: the root seed, an integer or a typed key. Learners that play the same environment with
        the same seed meet the same world in the same run.
      rounds: how many rounds to record, spread evenly, or which ones; the horizon always is.
      width: runs per compiled program (a measured default). Never changes a result.
      workers: blocks in flight at once (default: the number of devices, or of cores on CPU).
      progress: show a bar that counts rounds played.
    Returns:
      A Result with NumPy arrays.
    """
    horizon = checks.integer("horizon", horizon, 1, MAX_HORIZON)
    runs = checks.integer("runs", runs, 1)
    points = recorded_rounds(rounds, horizon)
    check_players(env, learner, horizon)
    workers = number_of_workers(workers)
    depth, lanes = ring_sizes(env, horizon)
    if width is None:
        width = _default_width(runs, workers, horizon, lanes)
    width = checks.integer("width", width, 1)
    game = make_game(env, learner, horizon, depth, lanes, library=np)
    stops = stops_of(points)
    keys = rng.run_keys(seed, np.arange(-(-runs // width) * width)).reshape(2, -1, width)
    players = _players(game, width, keys.shape[1])

    def play(index: int, advance: Advance) -> Played:
        device, player, there = players[index % len(players)]
        with jax.default_device(device):
            return play_block(player, there, keys[:, index], stops, advance)

    with bar(keys.shape[1] * width * horizon, progress) as shown:
        done = dict(in_parallel(play, range(keys.shape[1]), workers, shown))
    parts = [done[index] for index in range(keys.shape[1])]
    info = {
        name: np.concatenate([part.info[name] for part in parts])[:runs] for name in parts[0].info
    }
    checks.flags(info)
    curves = [jax.tree.map(lambda x: at_recorded(x, stops, points), part.curve) for part in parts]

    def together(pieces: list[np.ndarray]) -> np.ndarray:
        return running_sum(np.concatenate(pieces, axis=1)[:, :runs]).T

    return Result(
        rounds=points,
        regret=together([curve.regret for curve in curves]),
        loss=together([curve.loss for curve in curves]),
        info={name: fact for name, fact in info.items() if name not in checks.FLAGS},
        replay=partial(
            _in_precision,
            float_dtype() == jnp.float64,
            partial(_replay, game.env, keys, stops, points, runs, workers),
        ),
    )


def _players(game: Game, width: int, blocks: int) -> list[tuple[Any, Player, Game]]:
    """For each device that gets a block: the device, a player, and the game in its memory."""
    players = []
    for device in jax.local_devices()[:blocks]:
        with jax.default_device(device):
            player = compile_player(game, width, stacked=False)
            players.append((device, player, jax.device_put(game)))
    return players


def _default_width(runs: int, workers: int, horizon: int, lanes: int) -> int:
    """The smallest width that gives every worker one block, or the largest that is worth it."""
    most = cpu_width(lanes, horizon)
    share = -(-runs // workers)
    return min(most, next((width for width in WIDTHS if width >= share), most))


def _compare(
    env: Environment, keys: Array, totals: Sum, last: Array, stops: Array, loop: Any
) -> tuple[Sum, Array]:
    """leaves of totals: [K, runs]; the increments: [stops, K, runs]."""
    batched = runs_last(comparators, (False, True, False, True), keys.shape[-1])
    return at_points(
        lambda t, totals: batched(env, keys, t, totals), take_totals, totals, last, stops, loop
    )


_compare_stretch = Program(_compare, donate_argnums=2)


def _in_precision(double: bool, function: Callable[[], Any]) -> Any:
    with jax.enable_x64(double):
        return function()


def _replay(
    env: Environment,
    keys: np.ndarray,
    stops: np.ndarray,
    points: np.ndarray,
    runs: int,
    workers: int,
) -> np.ndarray:
    """[runs, points, K]: increments of every action's realised loss in the same worlds.

    keys: [2, blocks, width].
    """
    env = as_arrays(env)
    shapes = jax.eval_shape(lambda: sum_zero(env.num_actions))

    def begin_totals() -> Sum:
        return jax.tree.map(lambda x: jnp.zeros((*x.shape, keys.shape[-1]), x.dtype), shapes)

    first, ahead = jnp.int32(0), jnp.asarray(next(calls(stops))[1])
    compare = _compare_stretch.executable(env, keys[:, 0], begin_totals(), first, ahead)

    def play(index: int, advance: Advance) -> np.ndarray:
        totals, pieces = begin_totals(), []
        for last, ahead in calls(stops):
            totals, piece = compare(env, keys[:, index], totals, np.int32(last), ahead)
            pieces.append(np.asarray(piece)[: len(np.unique(ahead))].copy())
            advance(0)
        return at_recorded(np.concatenate(pieces), stops, points)

    done = dict(in_parallel(play, range(keys.shape[1]), workers))
    parts = [done[index] for index in range(keys.shape[1])]
    return np.concatenate(parts, axis=-1)[..., :runs].transpose(2, 0, 1)
