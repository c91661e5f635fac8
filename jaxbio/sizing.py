"""How large the ring must be, read off the delays before the game: they are oblivious."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import checks, ring, rng
from jaxbio.batching import runs_last
from jaxbio.core import Array, as_arrays, is_concrete
from jaxbio.environment.environment import Environment
from jaxbio.kernel import Program, at_points

FEWEST_LANES = 8  # for random delays
MEASURED_TOGETHER = 128  # runs whose delays are looked at side by side


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
    runs = runs[:1] if env.delays.written_down else runs  # one table: the same in every run
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


def check_sizes(env: Environment, horizon: int, ring_depth: int, lanes: int) -> None:
    """Raise where a ring of these sizes could lose losses."""
    checks.integer("lanes", lanes, 1, ring.MAX_LANES)
    delays_known = all(is_concrete(leaf) for leaf in jax.tree.leaves(env.delays))
    needed = min(env.delays.longest(), horizon) + 1 if delays_known else 1
    if ring_depth < needed or ring_depth & (ring_depth - 1):
        raise ValueError(
            f"ring_depth must be a power of 2 and at least {needed} for these delays, "
            f"but got {ring_depth}"
        )
