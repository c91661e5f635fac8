"""Many runs of one learner, driven from the host in blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio import checks, rng
from jaxbio.checks import memory as room
from jaxbio.engine.backends import choice
from jaxbio.engine.code.traces import code_of
from jaxbio.engine.footprint import CURVE_BYTES, carried, passing, table_bytes, types_of
from jaxbio.engine.player import Player, compile_player, play_block, play_once, stops_of
from jaxbio.engine.rollout import check_players, recorded_rounds
from jaxbio.engine.round import Curve, Game, make_game
from jaxbio.engine.rules import WORLD
from jaxbio.engine.sizing import ring_sizes
from jaxbio.engine.widths import shared_out, widest
from jaxbio.environment.environment import MAX_HORIZON, Environment
from jaxbio.sweeps.plan import Plan, refuse
from jaxbio.sweeps.result import Result, at_recorded, running_sum
from jaxbio.sweeps.workers import Advance, bar, in_parallel, number_of_workers
from jaxbio.trees import as_arrays, float_dtype

KEPT = "fewer rounds= or runs="  # where the curves of all runs do not fit
KEY_BYTES = 32  # of a run: its number and its key, while they are made


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
    backend: str | None = None,
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
      width: runs that one call plays (a measured default). Never changes a result.
      workers: blocks in flight at once (default: the number of devices, or of cores on CPU).
      memory: bytes that the games and their result may take (default: what is free, control groups
        included).
      backend: what plays: "llvm" (machine code for the CPU), "pallas" (one kernel on a GPU), "jnp"
        (JAX arrays on any device) or "vmap" (`jax.vmap` of the step: the definition, slow).
        Default: the fastest one that can play this learner here. `Result.backend` says which.
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
    workers, backend = number_of_workers(workers), choice.checked(backend)
    depth, lanes = ring_sizes(env, horizon)
    stops = stops_of(points)
    boxes = choice.boxes(backend)
    game = make_game(env, learner, horizon, depth, lanes, library=np, boxes=boxes)
    code = code_of(jax.tree.structure(game.env))
    if width is None:
        width = shared_out(runs, widest(horizon, types_of(game).carry, backend), workers)
    width = checks.size("width", width, 1)
    plan = _plan(game, horizon, runs, len(stops), width, workers, backend)
    refuse(plan, memory, KEPT)
    keys = rng.run_keys(seed, np.arange(runs))
    blocks = [slice(first, min(first + width, runs)) for first in range(0, runs, width)]
    players = _players(game, len(blocks), backend)
    regret, loss = sums = np.empty((len(Curve._fields), len(points), runs))

    def play(index: int, advance: Advance) -> dict[str, np.ndarray]:
        device, player = players[index % len(players)]
        mine = blocks[index]
        with jax.default_device(device):
            played = play_block(player, game, keys[:, mine], stops, advance)
        for increments, total in zip(played.curve, sums, strict=True):
            running_sum(at_recorded(increments, stops, points), out=total[:, mine])
        return played.info

    with bar(runs * horizon, progress) as shown:
        done = dict(in_parallel(play, range(len(blocks)), workers, shown))
    parts = [done[index] for index in range(len(blocks))]
    info = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    checks.flags(info)
    return Result(
        rounds=points,
        regret=regret.T,
        loss=loss.T,
        info={name: fact for name, fact in info.items() if name not in checks.FLAGS},
        replay=partial(
            _in_precision,
            float_dtype() == jnp.float64,
            partial(_replay, game.env, code, keys, width, stops, points, workers, backend),
        ),
        backend=players[0][1].name,
        learner=repr(learner),
    )


def _plan(
    game: Game,
    horizon: int,
    runs: int,
    stops: int,
    width: int,
    workers: int,
    backend: str | None,
) -> Plan:
    """What it will take. Curves of all runs are in memory as they came, and then as the result."""
    blocks = -(-runs // width)
    held = carried(game, width, horizon, backend)
    held += passing(game, width, False, 0, horizon, backend)
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


def _players(game: Game, blocks: int, backend: str | None) -> list[tuple[Any, Player]]:
    """For each device that gets a block: the device and a player."""
    players = []
    for device in jax.local_devices()[:blocks]:
        with jax.default_device(device):
            players.append((device, compile_player(game, backend=backend)))
    return players


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
    backend: str | None,
) -> np.ndarray:
    """[runs, points, K]: increments of every action's realised loss in the same worlds.

    code: of the environment, when the runs were played; keys: [2, runs].
    """
    if code_of(jax.tree.structure(env)) != code:
        raise RuntimeError(
            "the code of the environment has changed since these runs were played, so what other "
            "actions would have lost in them is gone: simulate again"
        )
    env = as_arrays(env, np)
    player = compile_player(env, backend=backend, rules=WORLD)
    blocks = [keys[:, first : first + width] for first in range(0, keys.shape[1], width)]

    def play(index: int, advance: Advance) -> np.ndarray:
        played = play_once(player, env, blocks[index], stops, lambda rounds: advance(0))
        return at_recorded(played.curve, stops, points)  # [points, K, runs]

    done = dict(in_parallel(play, range(len(blocks)), workers))
    parts = [done[index] for index in range(len(blocks))]
    return np.concatenate(parts, axis=-1).transpose(2, 0, 1)
