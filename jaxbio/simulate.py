"""Many runs of one learner, driven from the host in blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio import checks, rng
from jaxbio import memory as room
from jaxbio.batching import runs_last
from jaxbio.blocks import Played, Player, calls, compile_player, is_one_call, play_block, stops_of
from jaxbio.core import Array, as_arrays, float_dtype
from jaxbio.environment.environment import Environment
from jaxbio.footprint import CURVE_BYTES, carried, passing, table_bytes, types_of
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
from jaxbio.schedule import Plan, refuse
from jaxbio.sizing import most_strips, ring_sizes, widest
from jaxbio.traces import code_of
from jaxbio.workers import Advance, bar, in_parallel, number_of_workers

KEPT = "fewer rounds= or runs="  # where the curves of all runs do not fit
KEY_BYTES = 32  # of a run: its number and its key, while they are made
WIDTHS = (32, 64, 128, 256, 512, 1024, 2048)  # runs side by side in one program


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
    memory: float | None = None,
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
      width: runs side by side in the compiled program (a measured default). Never changes a
        result.
      workers: blocks in flight at once (default: the number of devices, or of cores on CPU).
      memory: bytes that the games and their result may take (default: what is free, control groups
        included).
      progress: show a bar that counts rounds played.
    Returns:
      A Result with NumPy arrays.
    """
    checks.boolean("progress", progress)
    seed, memory = checks.seed(seed), room.checked(memory)
    horizon = checks.size("horizon", horizon, 1, MAX_HORIZON)
    runs = checks.size("runs", runs, 1)
    points = recorded_rounds(rounds, horizon)
    check_players(env, learner, horizon)
    workers = number_of_workers(workers)
    depth, lanes = ring_sizes(env, horizon)
    stops = stops_of(points)
    share = -(-runs // workers)
    strips = most_strips(horizon) if width is None and is_one_call(stops) else 1
    width = _default_width(share, lanes) if width is None else checks.size("width", width, 1)
    strips = strips if share > width else 1
    game = make_game(env, learner, horizon, depth, lanes, library=np)
    code = code_of(jax.tree.structure(game.env))
    take = width * min(strips, -(-share // width))
    plan = _plan(game, horizon, runs, len(stops), width, strips, take, workers)
    refuse(plan, memory, KEPT)
    keys = rng.run_keys(seed, np.arange(runs))
    blocks = [keys[:, first : first + take] for first in range(0, runs, take)]
    players = _players(game, width * strips, strips, len(blocks))

    def play(index: int, advance: Advance) -> Played:
        device, player, there = players[index % len(players)]
        with jax.default_device(device):
            return play_block(player, there, blocks[index], stops, advance)

    with bar(runs * horizon, progress) as shown:
        done = dict(in_parallel(play, range(len(blocks)), workers, shown))
    parts = [done[index] for index in range(len(blocks))]
    info = {name: np.concatenate([part.info[name] for part in parts]) for name in parts[0].info}
    checks.flags(info)
    curves = [jax.tree.map(lambda x: at_recorded(x, stops, points), part.curve) for part in parts]

    def together(pieces: list[np.ndarray]) -> np.ndarray:
        return running_sum(np.concatenate(pieces, axis=1)).T

    return Result(
        rounds=points,
        regret=together([curve.regret for curve in curves]),
        loss=together([curve.loss for curve in curves]),
        info={name: fact for name, fact in info.items() if name not in checks.FLAGS},
        replay=partial(
            _in_precision,
            float_dtype() == jnp.float64,
            partial(_replay, game.env, code, keys, width, stops, points, workers),
        ),
    )


def _plan(
    game: Game,
    horizon: int,
    runs: int,
    stops: int,
    width: int,
    strips: int,
    take: int,
    workers: int,
) -> Plan:
    """What it will take. Curves of all runs are in memory as they came, and then as the result."""
    blocks = -(-runs // take)
    held = carried(game, width * strips, strips) + passing(game, width * strips, strips, False, 0)
    per_run = CURVE_BYTES * stops + 2 * 8 * len(types_of(game).facts)
    return Plan(
        settings=1,
        runs=runs,
        rounds=runs * horizon,
        programs=1,
        blocks=blocks,
        bytes_of_result=runs * per_run,
        bytes_at_work=min(workers, blocks) * held,
        bytes_of_settings=table_bytes(game) + KEY_BYTES * runs,
        name="simulate",
    )


def _players(game: Game, width: int, strips: int, blocks: int) -> list[tuple[Any, Player, Game]]:
    """For each device that gets a block: the device, a player, and the game in its memory."""
    players = []
    for device in jax.local_devices()[:blocks]:
        with jax.default_device(device):
            player = compile_player(game, width, False, strips)
            players.append((device, player, jax.device_put(game)))
    return players


def _default_width(share: int, lanes: int) -> int:
    """The smallest width that holds a worker's share of the runs, or the largest worth having."""
    most = widest(lanes)
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
    code: Any,
    keys: np.ndarray,
    width: int,
    stops: np.ndarray,
    points: np.ndarray,
    workers: int,
) -> np.ndarray:
    """[runs, points, K]: increments of every action's realised loss in the same worlds.

    code: of the environment, when the runs were played; keys: [2, runs].
    """
    if code_of(jax.tree.structure(env)) != code:
        raise RuntimeError(
            "the code of the environment has changed since these runs were played, so what other "
            "actions would have lost in them is gone: simulate again"
        )
    env = as_arrays(env)
    shapes = jax.eval_shape(lambda: sum_zero(env.num_actions))
    runs = keys.shape[1]
    blocks = np.pad(keys, ((0, 0), (0, -runs % width)), mode="edge").reshape(2, -1, width)

    def begin_totals() -> Sum:
        return jax.tree.map(lambda x: jnp.zeros((*x.shape, width), x.dtype), shapes)

    first, ahead = jnp.int32(0), jnp.asarray(next(calls(stops))[1])
    compare = _compare_stretch.executable(env, blocks[:, 0], begin_totals(), first, ahead)

    def play(index: int, advance: Advance) -> np.ndarray:
        totals, pieces = begin_totals(), []
        for last, ahead in calls(stops):
            totals, piece = compare(env, blocks[:, index], totals, np.int32(last), ahead)
            pieces.append(np.asarray(piece)[: len(np.unique(ahead))].copy())
            advance(0)
        return at_recorded(np.concatenate(pieces), stops, points)

    done = dict(in_parallel(play, range(blocks.shape[1]), workers))
    parts = [done[index] for index in range(blocks.shape[1])]
    return np.concatenate(parts, axis=-1)[..., :runs].transpose(2, 0, 1)
