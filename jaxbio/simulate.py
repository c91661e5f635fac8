"""Many runs of one learner, driven from the host: blocks of runs, in stretches of rounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm.auto import tqdm

from jaxbio import checks, rng
from jaxbio.batching import runs_last
from jaxbio.core import Array, as_arrays, float_dtype
from jaxbio.environment.environment import Environment
from jaxbio.kernel import Program, at_points
from jaxbio.ops import WIDE_BITS, Sum, Wide, sum_zero
from jaxbio.record import Result, at_recorded
from jaxbio.rollout import (
    MAX_HORIZON,
    Carry,
    Curve,
    Game,
    begin,
    check_players,
    comparators,
    make_game,
    recorded_rounds,
    step,
    summary,
    take_tally,
    take_totals,
)
from jaxbio.sizing import ring_sizes

WIDTHS = (8, 32, 128)  # runs side by side in one program; small blocks stay in cache
STOPS_PER_CALL = 64
ROUNDS_PER_CALL = 1 << 16  # bounds the time between two looks at the host


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
    devices = jax.local_devices()
    workers = (
        _default_workers(devices) if workers is None else checks.integer("workers", workers, 1)
    )
    width = _default_width(runs, workers) if width is None else checks.integer("width", width, 1)
    root = rng.root_key(seed)
    sizes = ring_sizes(env, root, np.arange(runs), horizon)
    game = make_game(env, learner, horizon, *sizes)
    stops = _all_stops(points, horizon)
    blocks = [np.arange(first, first + width) for first in range(0, runs, width)]
    players = []
    for device in devices[: len(blocks)]:
        with jax.default_device(device):
            players.append(_compile_players(game, width))

    def play(index: int, advance: Callable[[int], None]) -> Any:
        place = index % len(devices)
        with jax.default_device(devices[place]):
            keys = rng.run_keys(root, blocks[index])
            return _play_block(players[place], game, keys, stops, advance)

    parts = _in_parallel(play, len(blocks), workers, horizon * width, progress)
    curves = [jax.tree.map(lambda x: at_recorded(x, stops, points), part[0]) for part in parts]
    info = {name: np.concatenate([part[1][name] for part in parts])[:runs] for name in parts[0][1]}
    checks.flags(info)
    info = {name: fact for name, fact in info.items() if name not in checks.FLAGS}

    def together(pieces: list[np.ndarray]) -> np.ndarray:
        return np.cumsum(np.concatenate(pieces, axis=1)[:, :runs].T, axis=1)

    return Result(
        rounds=points,
        regret=together([curve.regret for curve in curves]),
        loss=together([curve.loss for curve in curves]),
        info=info,
        replay=partial(
            _in_precision,
            float_dtype() == jnp.float64,
            partial(_replay, game.env, root, blocks, stops, points, runs, workers),
        ),
    )


def _default_workers(devices: list[Any]) -> int:
    if len(devices) > 1 or devices[0].platform != "cpu":
        return len(devices)
    own = getattr(os, "sched_getaffinity", None)  # the cores this process may use, where known
    return len(own(0)) if own else (os.cpu_count() or 1)


def _default_width(runs: int, workers: int) -> int:
    """The smallest width that gives every worker one block, or the largest."""
    share = -(-runs // workers)
    return next((width for width in WIDTHS if width >= share), WIDTHS[-1])


def _all_stops(points: np.ndarray, horizon: int) -> np.ndarray:
    """Recorded rounds, and others often enough that no stretch is long."""
    between = np.arange(ROUNDS_PER_CALL, horizon, ROUNDS_PER_CALL, dtype=np.int32)
    return np.union1d(points, between).astype(np.int32)


def _calls(stops: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(last round played, next stops [STOPS_PER_CALL]), padded by repeating the last stop."""
    last, first = 0, 0
    while first < len(stops):
        ahead = stops[first : first + STOPS_PER_CALL]
        ahead = ahead[: max(1, int(np.searchsorted(ahead, last + ROUNDS_PER_CALL, "right")))]
        yield last, np.pad(ahead, (0, STOPS_PER_CALL - len(ahead)), mode="edge")
        last, first = int(ahead[-1]), first + len(ahead)


def _play(
    game: Game, keys: Array, carry: Carry, last: Array, stops: Array, loop: Any
) -> tuple[Carry, Curve]:
    """keys: [2, runs]; leaves of carry: [..., runs]; the curve: [stops, runs]."""
    batched = runs_last(step, (False, True, False, True), keys.shape[-1])
    return at_points(
        lambda t, carry: batched(game, keys, t, carry)[0], take_tally, carry, last, stops, loop
    )


def _compare(
    env: Environment, keys: Array, totals: Sum, last: Array, stops: Array, loop: Any
) -> tuple[Sum, Array]:
    """leaves of totals: [K, runs]; the increments: [stops, K, runs]."""
    batched = runs_last(comparators, (False, True, False, True), keys.shape[-1])
    return at_points(
        lambda t, totals: batched(env, keys, t, totals), take_totals, totals, last, stops, loop
    )


def _begin(game: Game, keys: Array, loop: Any) -> Carry:
    return runs_last(begin, (False,), keys.shape[-1])(game)


def _summarise(game: Game, carry: Carry, loop: Any) -> dict[str, Array]:
    return runs_last(summary, (False, True), carry.facts.arrived.shape[-1])(game, carry)


_begin_block = Program(_begin)
_play_stretch = Program(_play, donate_argnums=2)
_summarise_block = Program(_summarise)
_compare_stretch = Program(_compare, donate_argnums=2)


class Players(NamedTuple):
    """The compiled programs of a block."""

    begin: Callable[..., Any]
    play: Callable[..., Any]
    summarise: Callable[..., Any]


def _on_host(fact: Any) -> np.ndarray:
    """[runs]; a Wide becomes the int64 that it stands for."""
    if isinstance(fact, Wide):
        high, low = (np.asarray(word).astype(np.int64) for word in fact)
        return (high << WIDE_BITS) + low
    return np.asarray(fact)


def _compile_players(game: Game, width: int) -> Players:
    keys = jax.ShapeDtypeStruct((2, width), jnp.uint32)
    last, stops = (
        jax.ShapeDtypeStruct((), jnp.int32),
        jax.ShapeDtypeStruct((STOPS_PER_CALL,), jnp.int32),
    )
    carry = jax.eval_shape(partial(_begin, loop=None), game, keys)
    return Players(
        _begin_block.executable(game, keys),
        _play_stretch.executable(game, keys, carry, last, stops),
        _summarise_block.executable(game, carry),
    )


def _play_block(
    players: Players, game: Game, keys: Array, stops: np.ndarray, advance: Callable[[int], None]
) -> tuple[Curve, dict[str, np.ndarray]]:
    """All rounds of one block: increments [stops, runs], and the facts [runs]."""
    carry = players.begin(game, keys)
    pieces = []
    for last, ahead in _calls(stops):
        carry, curve = players.play(game, keys, carry, jnp.int32(last), jnp.asarray(ahead))
        kept = len(np.unique(ahead))
        pieces.append(jax.tree.map(lambda x, n=kept: np.asarray(x)[:n].copy(), curve))
        advance((int(ahead[-1]) - last) * keys.shape[-1])
    info = {name: _on_host(value) for name, value in players.summarise(game, carry).items()}
    return jax.tree.map(lambda *xs: np.concatenate(xs), *pieces), info


def _in_precision(double: bool, function: Callable[[], Any]) -> Any:
    with jax.enable_x64(double):
        return function()


def _replay(
    env: Environment,
    root: Array,
    blocks: list[np.ndarray],
    stops: np.ndarray,
    points: np.ndarray,
    runs: int,
    workers: int,
) -> np.ndarray:
    """[runs, points, K]: increments of every action's realised loss in the same worlds."""
    env = as_arrays(env)
    width = len(blocks[0])

    def begin_totals() -> Sum:
        empty = sum_zero(env.num_actions)
        return jax.tree.map(lambda x: jnp.zeros((*x.shape, width), x.dtype), empty)

    first, ahead = jnp.int32(0), jnp.asarray(next(_calls(stops))[1])
    compare = _compare_stretch.executable(
        env, rng.run_keys(root, blocks[0]), begin_totals(), first, ahead
    )

    def play(index: int, advance: Callable[[int], None]) -> np.ndarray:
        keys, totals, pieces = rng.run_keys(root, blocks[index]), begin_totals(), []
        for last, ahead in _calls(stops):
            totals, piece = compare(env, keys, totals, jnp.int32(last), jnp.asarray(ahead))
            pieces.append(np.asarray(piece)[: len(np.unique(ahead))].copy())
        return at_recorded(np.concatenate(pieces), stops, points)

    parts = _in_parallel(play, len(blocks), workers, 0, progress=False)
    return np.concatenate(parts, axis=-1)[..., :runs].transpose(2, 0, 1)


def _in_parallel(
    play: Callable[[int, Callable[[int], None]], Any],
    blocks: int,
    workers: int,
    rounds_per_block: int,
    progress: bool,
) -> list[Any]:
    """Play the blocks, several at once; Ctrl-C stops before the next stretch of each."""
    stopped = False
    precision = float_dtype() == jnp.float64  # may be set in a `with` block of this thread only
    bar = tqdm(
        total=blocks * rounds_per_block,
        unit="round",
        unit_scale=True,
        disable=None if progress else True,
    )

    def advance(rounds: int) -> None:
        if stopped:
            raise KeyboardInterrupt
        bar.update(rounds)

    def play_one(index: int) -> Any:
        with jax.enable_x64(precision):
            return play(index, advance)

    with bar, ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(play_one, index) for index in range(blocks)]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stopped = True
            for future in futures:
                future.cancel()
            raise
