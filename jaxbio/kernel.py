"""A loop as one native function on CPU.

XLA on CPU runs a loop body as a list of small kernels and pays for each of them in every round: at
the width of a block (hundreds of numbers) that costs four times the arithmetic. XLA can also emit a
whole computation as one function; it does so by itself for tiny loops only, and for a call that
carries the attribute below. The attribute is a hint: a version of XLA that does not know it runs
the same program, slower. Other platforms never see it. Because it is internal to XLA, it is used
only with versions of jaxlib that it has been tested with, and not in 64-bit mode, where this XLA
aborts on some of our loops; the environment variable JAXBIO_NATIVE_LOOPS (1 or 0) overrides that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex

from jaxbio.batching import ELEMENTWISE, INLINED, REDUCTIONS, name_of, native
from jaxbio.core import Array, float_dtype
from jaxbio.traces import code_of, settings, traced

# What XLA's one-function emitter accepts of the things a step is made of. Sorts and scatters are
# among those it does not; a learner that uses them runs kernel by kernel.
EMITTED = (
    ELEMENTWISE
    | REDUCTIONS
    | INLINED
    | frozenset(
        """broadcast_in_dim concatenate cond dynamic_slice dynamic_update_slice gather iota
        optimization_barrier pad reshape scan slice squeeze stack transpose unstack while""".split()
    )
) - {"cumsum", "cumprod", "cummax", "cummin"}


TESTED = ("0.10.", "0.12.0")  # versions of jaxlib, as they begin


def is_available() -> bool:
    """May loops become native functions here?"""
    wish = os.environ.get("JAXBIO_NATIVE_LOOPS")
    allowed = version("jaxlib").startswith(TESTED) if wish is None else wish == "1"
    return allowed and jax.default_backend() == "cpu" and float_dtype() == jnp.float32


def _native_call(closed: Any, leaves: list[Any]) -> list[Any]:
    """Call the jaxpr as one function.

    The function also returns its operands, behind a barrier that keeps them alive: this XLA aborts
    on such a call if the optimiser finds an operand that nothing uses.
    """
    from jax.experimental.xla_metadata import set_xla_metadata  # other versions may lack it

    consts = [jnp.asarray(const) for const in closed.consts]

    def call(leaves: list[Any], consts: list[Any]) -> tuple[list[Any], list[Any]]:
        outs = jex.jaxpr_as_fun(jex.ClosedJaxpr(closed.jaxpr, consts))(*leaves)
        return list(outs), consts

    with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
        results = jax.jit(call)(leaves, consts)
    return lax.optimization_barrier(results)[0]


def fori_loop(first: Any, stop: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
    """lax.fori_loop, compiled into a single native function where that is possible."""

    def loop(first: Any, stop: Any, carry: Any) -> Any:
        with native(stop >= 0):
            # Not `body` itself: JAX keeps what it traced of a function, and below it is traced
            # again, outside of this mode.
            return lax.fori_loop(first, stop, lambda t, now: body(t, now), carry)

    if is_available():
        args = (first, stop, carry)
        closed, shape = jax.make_jaxpr(loop, return_shape=True)(*args)
        if is_emitted(closed.jaxpr):
            outs = _native_call(closed, jax.tree.leaves(args))
            return jax.tree.unflatten(jax.tree.structure(shape), outs)
    return lax.fori_loop(first, stop, body, carry)


def at_points(
    one_round: Callable[[Array, Any], Any],
    take: Callable[[Any], tuple[Any, Any]],
    state: Any,
    last: Array,
    rounds: Array,
    loop: Callable[..., Any] = lax.fori_loop,
) -> tuple[Any, Any]:
    """Play on from round `last`; at each of `rounds` [points] take out what is to be recorded.

    one_round: (t, state) -> state; take: state -> (state, output). `rounds` may be padded with
    repetitions of its last: they cost nothing, and their outputs are 0. A negative one is a pause:
    its output means nothing, and nothing is taken out of the state. Returns the state and the
    outputs [points, ...].
    """
    ends = jnp.abs(rounds)
    before = jnp.concatenate([last[None], ends[:-1]])
    shapes = jax.eval_shape(lambda state: take(state)[1], state)
    empty = jax.tree.map(lambda x: jnp.zeros((*rounds.shape, *x.shape), x.dtype), shapes)

    def point(index: Array, state: Any) -> tuple[Any, Any]:
        # Not `one_round` itself, for the reason given in `fori_loop`.
        body = lambda t, now: one_round(t, now)  # noqa: E731
        state = lax.fori_loop(before[index] + 1, ends[index] + 1, body, state)
        rest, output = take(state)
        return _changed_where(rounds[index] > 0, rest, state), output

    count = jnp.sum(ends > before, dtype=jnp.int32)
    return collect(point, state, count, empty, loop)


def _changed_where(condition: Array, new: Any, old: Any) -> Any:
    """`new` or `old`. What is the same in both is left alone: a choice would copy it."""
    return jax.tree.map(lambda a, b: a if a is b else jnp.where(condition, a, b), new, old)


def collect(
    step: Callable[[Array, Any], tuple[Any, Any]],
    state: Any,
    count: Array,
    outputs: Any,
    loop: Callable[..., Any] = lax.fori_loop,
) -> tuple[Any, Any]:
    """A scan of `count` steps that writes into given memory, outputs [count or more, ...].

    step: (index, state) -> (state, output).
    """

    def one(index: Array, now: tuple[Any, Any]) -> tuple[Any, Any]:
        state, outputs = now
        state, output = step(index, state)
        put = lambda all, x: lax.dynamic_update_index_in_dim(all, x, index, 0)  # noqa: E731
        return state, jax.tree.map(put, outputs, output)

    return loop(jnp.int32(0), count, one, (state, outputs))


def is_emitted(jaxpr: Any) -> bool:
    """Does the jaxpr, with all that it calls, consist of primitives that can be emitted?"""
    return all(
        name_of(eqn) in EMITTED
        and all(
            is_emitted(getattr(inner, "jaxpr", inner)) for inner in jex.jaxprs_in_params(eqn.params)
        )
        for eqn in jaxpr.eqns
    )


# A reduction that XLA hands to a library cannot be part of the one function. And XLA asks LLVM for
# vectors of 256 bits; where the machine has longer ones, they save a sixth of the time.
OPTIONS = {"xla_cpu_experimental_ynn_fusion_type": "", "xla_cpu_prefer_vector_width": 512}
REFUSALS = ("UNIMPLEMENTED", "No such compile option")


class Program:
    """A function of arrays that takes its loop as the argument `loop`, compiled ahead of its calls.

    On CPU the loop becomes one native function; where this XLA cannot do that, and on other
    platforms, it is an ordinary loop. Compiling happens in the thread that asks for the executable
    (settings of JAX made in a `with` block count there only); running it is safe in any thread.
    """

    def __init__(self, function: Callable[..., Any], donate_argnums: Any = ()) -> None:
        self.function, self.donated = function, donate_argnums
        self.executables: dict[Any, Callable[..., Any]] = {}

    def executable(self, *args: Any) -> Callable[..., Any]:
        """Compiled for arguments like these (arrays, or their shapes and types)."""
        key = signature(args)
        if key not in self.executables:
            with traced(jax.tree.structure(args)):
                self.executables[key] = self._compile(args)
        return self.executables[key]

    def _compile(self, args: Any) -> Callable[..., Any]:
        if is_available():
            try:
                return self._jitted(fori_loop, compiler_options=OPTIONS).lower(*args).compile()
            except jax.errors.JaxRuntimeError as error:
                if not any(text in str(error) for text in REFUSALS):
                    raise
        return self._jitted(lax.fori_loop).lower(*args).compile()

    def _jitted(self, loop: Callable[..., Any], **options: Any) -> Any:
        """A function of its own for every program: JAX keeps what it traced by the function, and
        what the user's code does may have changed since.
        """
        function = partial(self.function, loop=loop)
        return jax.jit(function, donate_argnums=self.donated, **options)


def signature(args: Any) -> Any:
    """What decides which compiled program serves these arguments: their form, the code that they
    bring along as it is now, what is set in JAX, and where it will run.
    """
    structure, types = form(args)
    device = str(getattr(jax.config, "jax_default_device", None))
    place = device, os.environ.get("JAXBIO_NATIVE_LOOPS")
    return structure, types, code_of(structure), *settings().values(), *place


def form(args: Any) -> Any:
    """The structure and types of arguments: within one call, what decides the program."""
    leaves, structure = jax.tree.flatten(args)
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)
