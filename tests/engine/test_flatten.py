"""A flattened function means what jax.vmap means, whatever the function and however large."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pytest
from cases import GROUPS, INDEX, LARGE, SMALL, Size, sample
from flat import assert_same, by_vmap, flat

RUNS = 37  # not a multiple of what a vector holds
SIZES = {"small": SMALL, "large": LARGE}
EVERY = [(group, name) for group, cases in GROUPS.items() for name in cases]


def arguments(group: str, size: Size) -> dict[str, list[np.ndarray]]:
    return {
        name: [sample(arg, size, RUNS, seed) for seed, arg in enumerate(args)]
        for name, (_, args) in GROUPS[group].items()
    }


@functools.cache
def expected(group: str, size: Size) -> dict[str, Any]:
    """What jax.vmap makes of all functions of a group, in one compiled program."""
    given, cases = arguments(group, size), GROUPS[group]
    return jax.jit(
        lambda given: {
            name: by_vmap(function, given[name], [arg.batched for arg in args], RUNS)
            for name, (function, args) in cases.items()
        }
    )(given)


@functools.cache
def played(group: str, size: Size, per_run: bool) -> dict[str, Any]:
    """What machine code makes of them, in one program as well."""
    given, cases = arguments(group, size), GROUPS[group]
    flags = {name: [arg.batched for arg in args] for name, (_, args) in cases.items()}

    def everything(*values: Any) -> dict[str, Any]:
        left = iter(values)
        own = {name: [next(left) for _ in flags[name]] for name in cases}
        return {name: function(*own[name]) for name, (function, _) in cases.items()}

    values = [value for name in cases for value in given[name]]
    batched = [flag for name in cases for flag in flags[name]]
    return flat(everything, values, batched, per_run, RUNS)


@pytest.mark.parametrize("per_run", [False, True], ids=["carried", "numbers"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("group", "name"), EVERY)
def test_same_as_vmap(group: str, name: str, size: str, per_run: bool) -> None:
    got = played(group, SIZES[size], per_run)[name]
    assert_same(got, expected(group, SIZES[size])[name])


@pytest.mark.parametrize("size", SIZES)
def test_indices_reach_both_sides_of_the_range(size: str) -> None:
    rows = SIZES[size].rows
    index = sample(INDEX, SIZES[size], RUNS, 1)
    assert (index < 0).any()
    assert (index >= rows).any()
    assert ((index >= 0) & (index < rows)).any()
