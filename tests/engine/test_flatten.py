"""A flattened function means what jax.vmap means, whatever the function and however large."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pytest
from cases import GROUPS, INDEX, LARGE, SMALL, Size, sample
from flat import alone, assert_same, by_vmap, flat

RUNS = 37  # not a multiple of what a vector holds
SIZES = {"small": SMALL, "large": LARGE}
EVERY = [(group, name) for group, cases in GROUPS.items() for name in cases]
# Groups whose functions write nothing in place: each in both sizes and with its arguments in both
# places, but not in all four pairs. What places hold is read by the same code for all of them.
READING = ("elementwise", "shapes", "reductions", "sorts")
PLACES = {"carried": False, "numbers": True}
CASES = [
    pytest.param(group, name, size, per_run, id=f"{group}-{name}-{size}-{place}")
    for number, (group, name) in enumerate(EVERY)
    for which, size in enumerate(SIZES)
    for place, per_run in PLACES.items()
    if group not in READING or per_run == ((which + number) % 2 == 0)
]


@functools.cache
def expected(group: str, size: Size) -> dict[str, Any]:
    """What jax.vmap makes of all functions of a group, in one compiled program."""
    cases = GROUPS[group]
    given = {
        name: [sample(arg, size, RUNS, seed) for seed, arg in enumerate(args)]
        for name, (_, args) in cases.items()
    }
    return jax.jit(
        lambda given: {
            name: by_vmap(function, given[name], [arg.batched for arg in args], RUNS)
            for name, (function, args) in cases.items()
        }
    )(given)


@pytest.mark.parametrize(("group", "name", "size", "per_run"), CASES)
def test_same_as_vmap(group: str, name: str, size: str, per_run: bool) -> None:
    function, args = GROUPS[group][name]
    given = [sample(arg, SIZES[size], RUNS, seed) for seed, arg in enumerate(args)]
    got = flat(function, given, [arg.batched for arg in args], per_run, RUNS)
    assert_same(got, expected(group, SIZES[size])[name])


@pytest.mark.parametrize(
    ("group", "name", "size"),
    [(*one, [*SIZES][number % 2]) for number, one in enumerate(EVERY)],
)
def test_a_run_alone_is_one_of_many(group: str, name: str, size: str) -> None:
    """The code of a function that is called for one run at a time."""
    function, args = GROUPS[group][name]
    given = [sample(arg, SIZES[size], RUNS, seed) for seed, arg in enumerate(args)]
    all_runs, run = expected(group, SIZES[size])[name], len(name) % RUNS
    got = alone(function, given, [arg.batched for arg in args], run)
    assert_same(got, jax.tree.map(lambda x: np.asarray(x)[..., run], all_runs))


@pytest.mark.parametrize("size", SIZES)
def test_indices_reach_both_sides_of_the_range(size: str) -> None:
    rows = SIZES[size].rows
    index = sample(INDEX, SIZES[size], RUNS, 1)
    assert (index < 0).any()
    assert (index >= rows).any()
    assert ((index >= 0) & (index < rows)).any()
