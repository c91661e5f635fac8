"""How large the ring must be: known before the game."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from jaxbio import checks
from jaxbio.checks import memory
from jaxbio.core import looks
from jaxbio.engine import ring
from jaxbio.environment.delays import most_together
from jaxbio.environment.environment import MAX_HORIZON, Environment, check_environment
from jaxbio.ops import wrapping
from jaxbio.trees import is_concrete

MOST_BOXES = 8  # of a slot (`round.BOXES` and fewer)


def ring_sizes(env: Environment, horizon: int) -> tuple[int, int]:
    """(ring depth, lanes) for the games of an environment.

    Where every delay is the same one loss arrives a round; a table of delays is counted; random
    delays get 16 lanes, or what a law that looks at states and losses says. Delays that crowd more
    than that raise a flag, and `simulate` plays the block again with twice as many.
    """
    check_environment(env)
    return sizes_for(env.delays, checks.size("horizon", horizon, 1))


def sizes_for(delays: Any, horizon: int) -> tuple[int, int]:
    """The same, of which only the delays matter."""
    if not is_known(delays):
        raise ValueError(
            "the sizes of the ring cannot be read off traced delays: "
            "pass ring_depth=... and lanes=... to rollout"
        )
    depth, lanes = ring.depth_for(longest_of(delays), horizon), _lanes_for(delays, horizon)
    places = depth * min(lanes, MOST_BOXES) + 1
    if places > checks.MOST:  # places have numbers of 32 bits
        raise memory.TooLargeError(
            f"a ring for delays of up to {depth:,} rounds has {places:,} places, but at most "
            f"{checks.MOST:,} can be: use shorter delays, or a shorter horizon"
        )
    return depth, lanes


def common_sizes(
    envs: Sequence[Environment],
    horizons: Sequence[int],
    of: Callable[[Any, int], tuple[int, int]] = sizes_for,
) -> tuple[int, int, int]:
    """(state slots, ring depth, lanes) that serve the games of all these environments.

    of: `sizes_for`, or one that remembers what it was asked.
    """
    slots = max(env.state_slots for env in envs)
    sizes = [of(env.delays, horizon) for env, horizon in zip(envs, horizons, strict=True)]
    depth, lanes = (max(size) for size in zip(*sizes, strict=True))
    return slots, depth, lanes


def is_known(delays: Any) -> bool:
    """Is no number of the law traced?"""
    return all(is_concrete(leaf) for leaf in jax.tree.leaves(delays))


def longest_of(delays: Any) -> int:
    """The longest delay that a law says can occur, at most the length of the longest game."""
    found = delays.longest()
    if type(found) is int and 0 <= found <= MAX_HORIZON:
        return found
    if isinstance(found, float | int) and found > MAX_HORIZON:
        return MAX_HORIZON
    return checks.size(f"longest() of {type(delays).__name__}", found, 0)


def _lanes_for(delays: Any, horizon: int) -> int:
    """Of a round, for all losses of older rounds that arrive in it."""
    most = checks.size(f"together() of {type(delays).__name__}", most_together(delays, horizon), 1)
    if most > ring.MAX_LANES:
        raise ValueError(
            f"up to {most} losses arrive in one round, but at most {ring.MAX_LANES} can: "
            "spread the delays, or shorten the horizon"
        )
    return _rounded(most) if delays.written_down or looks(delays) else most


def _rounded(most: int) -> int:
    """1, 2, 4, 6, 8, 12, 16, ...: few sizes, so that other tables find the same program."""
    size = wrapping(most)
    return size * 3 // 4 if size >= 8 and size * 3 // 4 >= most else size


def checked_sizes(env: Environment, horizon: int, ring_depth: Any, lanes: Any) -> tuple[int, int]:
    """(ring depth, lanes) as given; raises where a ring of these sizes could lose losses."""
    ring_depth = checks.size("ring_depth", ring_depth, 1)
    lanes = checks.size("lanes", lanes, 1, ring.MAX_LANES)
    needed = min(longest_of(env.delays), horizon) + 1 if is_known(env.delays) else 1
    if ring_depth < needed:
        raise ValueError(
            f"ring_depth must be at least {needed} for these delays, but got {ring_depth}"
        )
    return ring_depth, lanes
