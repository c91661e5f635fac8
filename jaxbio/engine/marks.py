"""A mark in the step of one run: here the runs that are played together may do the same thing.

`most_of_block(x)` is x for one run. Where runs are played together it is the largest x among them,
one number for all. It is for choices that any larger number serves as well, such as how many lanes
are looked at: under `jax.vmap` a conditional on it stays a conditional, of which one branch runs.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax.extend import core as jex
from jax.interpreters import batching, mlir

most_of_block_p = jex.Primitive("most_of_block")
most_of_block_p.def_impl(lambda x: x)
most_of_block_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(most_of_block_p, lambda ctx, x: [x])


def _batched(args: Any, axes: Any) -> Any:
    # Marked again: a further vmap around this one takes the largest of all.
    return most_of_block(jnp.max(args[0], axis=axes[0])), None


batching.primitive_batchers[most_of_block_p] = _batched  # type: ignore[index]


def most_of_block(x: Any) -> Any:
    """x; the largest one where many runs are played together. x: int32 []."""
    return most_of_block_p.bind(x)
