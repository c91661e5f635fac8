"""Many runs of one learner, driven from the host: blocks of runs, in stretches of rounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tqdm.auto import tqdm

from jaxbio import checks, rng
from jaxbio.batching import runs_last
from jaxbio.core import Array, as_arrays, check_learner
from jaxbio.environment.environment import Environment
from jaxbio.kernel import Program
from jaxbio.ops import Sum, sum_zero
from jaxbio.record import Result, at_recorded
from jaxbio.rollout import (
    MAX_HORIZON,
    Carry,
    Curve,
    Game,
    at_points,
    begin,
    comparators,
    make_game,
    recorded_rounds,
    ring_sizes,
    step,
    summary,
    take_tally,
    take_totals,
)

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
    _check_players(env, learner, horizon)
    devices = jax.local_devices()
    workers = (
        _default_workers(devices) if workers is None else checks.integer("workers", workers, 1)
    )
    width = _default_width(runs, workers) if width is None else checks.integer("width", width, 1)
    root = rng.root_key(_check_seed(seed))
    sizes = ring_sizes(env, root, np.arange(runs), horizon)
    game = make_game(env, learner, horizon, *sizes)
    stops = _all_stops(points, horizon)
    blocks = [np.arange(first, first + width) for first in range(0, runs, width)]

    def play(index: int, advance: Callable[[int], None]) -> Any:
        with jax.default_device(devices[index % len(devices)]):
            return _play_block(game, rng.run_keys(root, blocks[index]), stops, advance)

    parts = _in_parallel(play, len(blocks), workers, horizon * width, progress)
    curves = [jax.tree.map(lambda x: at_recorded(x, stops, points), part[0]) for part in parts]
    info = {name: np.concatenate([part[1][name] for part in parts])[:runs] for name in parts[0][1]}
    _raise_flags(info)

    def together(pieces: list[np.ndarray]) -> np.ndarray:
        return np.cumsum(np.concatenate(pieces, axis=1)[:, :runs].T, axis=1)

    return Result(
        rounds=points,
        regret=together([curve.regret for curve in curves]),
        loss=together([curve.loss for curve in curves]),
        info=info,
        replay=partial(_replay, game.env, root, blocks, stops, points, runs, workers),
    )


def _check_players(env: Any, learner: Any, horizon: int) -> None:
    if not isinstance(env, Environment):
        raise TypeError(f"env must be an Environment, but got {env!r}")
    checks.learner("learner", learner)
    env.check(horizon)
    check_learner(learner, env)


def _check_seed(seed: Any) -> Any:
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        return seed
    return checks.integer("seed", seed, 0, 2**63 - 1)


def _default_workers(devices: list[Any]) -> int:
    on_one_cpu = len(devices) == 1 and devices[0].platform == "cpu"
    return (os.cpu_count() or 1) if on_one_cpu else len(devices)


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


@partial(jax.jit, static_argnums=1)
def _begin_block(game: Game, width: int) -> Carry:
    return runs_last(begin, (False,), width)(game)


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


_play_stretch = Program(_play, donate_argnums=2)
_compare_stretch = Program(_compare, donate_argnums=2)


@jax.jit
def _summarise(game: Game, carry: Carry) -> dict[str, Array]:
    runs = carry.facts.arrived.shape[-1]
    return runs_last(summary, (False, True), runs)(game, carry)


def _play_block(
    game: Game, keys: Array, stops: np.ndarray, advance: Callable[[int], None]
) -> tuple[Curve, dict[str, np.ndarray]]:
    """All rounds of one block: increments [stops, runs], and the facts [runs]."""
    width = keys.shape[-1]
    carry = _begin_block(game, width)
    pieces = []
    for last, ahead in _calls(stops):
        carry, curve = _play_stretch(game, keys, carry, jnp.int32(last), jnp.asarray(ahead))
        kept = len(np.unique(ahead))
        pieces.append(jax.tree.map(lambda x, n=kept: np.asarray(x)[:n], curve))
        advance((int(ahead[-1]) - last) * width)
    info = {name: np.asarray(value) for name, value in _summarise(game, carry).items()}
    return jax.tree.map(lambda *xs: np.concatenate(xs), *pieces), info


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

    def play(index: int, advance: Callable[[int], None]) -> np.ndarray:
        keys = rng.run_keys(root, blocks[index])
        totals = jax.tree.map(
            lambda x: jnp.zeros((*x.shape, width), x.dtype), sum_zero(env.num_actions)
        )
        pieces = []
        for last, ahead in _calls(stops):
            totals, piece = _compare_stretch(env, keys, totals, jnp.int32(last), jnp.asarray(ahead))
            pieces.append(np.asarray(piece)[: len(np.unique(ahead))])
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

    with bar, ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(play, index, advance) for index in range(blocks)]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stopped = True
            for future in futures:
                future.cancel()
            raise


def _raise_flags(info: dict[str, np.ndarray]) -> None:
    """Raise what could only show in flight."""
    if info.pop("overflow").any():
        raise RuntimeError(
            "a loss found no lane in the ring: more losses arrived in one round than were measured "
            "beforehand; please report the delays that did this"
        )
