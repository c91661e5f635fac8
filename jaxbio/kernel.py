"""A loop as one native function on CPU.

XLA on CPU runs a loop body as a list of small kernels and pays for each of them in every round: at
the width of a block (hundreds of numbers) that costs four times the arithmetic. XLA can also emit a
whole computation as one function; it does so by itself for tiny loops only, and for a call that
carries the attribute below. The attribute is a hint: a version of XLA that does not know it runs
the same program, slower. Other platforms never see it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend import core as jex

from jaxbio.batching import ELEMENTWISE, INLINED, REDUCTIONS, writes_in_loop

# What XLA's one-function emitter accepts of the things a step is made of. Sorts and scatters are
# among those it does not; a learner that uses them runs kernel by kernel.
EMITTED = (
    ELEMENTWISE
    | REDUCTIONS
    | frozenset(INLINED)
    | frozenset(
        """broadcast_in_dim concatenate dynamic_slice dynamic_update_slice gather iota
        optimization_barrier pad reshape scan slice squeeze stack transpose while""".split()
    )
) - {"cumsum", "cumprod", "cummax", "cummin"}


def one_function(function: Callable[..., Any], *args: Any) -> Any:
    """function(*args), compiled into a single native function where that is possible."""
    leaves = jax.tree.leaves(args)
    if jax.default_backend() == "cpu":
        with writes_in_loop(True):
            closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        if is_emitted(closed.jaxpr):
            with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
                outs = jax.jit(jex.jaxpr_as_fun(closed))(*leaves)
            return jax.tree.unflatten(jax.tree.structure(shape), outs)
    return function(*args)


def fori_loop(first: Any, stop: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
    """lax.fori_loop in one function."""
    return one_function(lambda a, b, c: lax.fori_loop(a, b, body, c), first, stop, carry)


def is_emitted(jaxpr: Any) -> bool:
    """Does the jaxpr, with all that it calls, consist of primitives that can be emitted?"""
    return all(
        eqn.primitive.name in EMITTED
        and all(
            is_emitted(getattr(inner, "jaxpr", inner)) for inner in jex.jaxprs_in_params(eqn.params)
        )
        for eqn in jaxpr.eqns
    )


# A reduction that XLA hands to a library cannot be part of the one function.
OPTIONS = {"xla_cpu_experimental_ynn_fusion_type": ""}
REFUSALS = ("UNIMPLEMENTED", "No such compile option")


class Program:
    """A jitted function of arrays that takes its loop as the argument `loop`.

    On CPU the loop becomes one native function; where this XLA cannot do that, and on other
    platforms, it is an ordinary loop.
    """

    def __init__(self, function: Callable[..., Any], donate_argnums: int) -> None:
        self.native = jax.jit(
            partial(function, loop=fori_loop),
            donate_argnums=donate_argnums,
            compiler_options=OPTIONS,
        )
        self.plain = jax.jit(partial(function, loop=lax.fori_loop), donate_argnums=donate_argnums)
        self._refused: dict[Any, bool] = {}
        self._first_call = threading.Lock()

    def __call__(self, *args: Any) -> Any:
        if jax.default_backend() != "cpu":
            return self.plain(*args)
        key = _signature(args)
        if key not in self._refused:
            with self._first_call:
                if key not in self._refused:
                    return self._try_native(key, args)
        return (self.plain if self._refused[key] else self.native)(*args)

    def _try_native(self, key: Any, args: Any) -> Any:
        try:
            out = self.native(*args)
        except jax.errors.JaxRuntimeError as error:
            if not any(text in str(error) for text in REFUSALS):
                raise
            self._refused[key] = True
            return self.plain(*args)
        self._refused[key] = False
        return out


def _signature(args: Any) -> Any:
    """What decides which compiled program serves these arguments."""
    leaves, structure = jax.tree.flatten(args)
    return structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)
