"""Which back-end plays: by itself the fastest one that can, or the one that is asked for."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbio import checks, rng
from jaxbio.engine.backends.native import Native
from jaxbio.engine.backends.vmap import Batched
from jaxbio.engine.flatten import CannotFlatten
from jaxbio.engine.game_program import GameProgram, program_of
from jaxbio.engine.round import BOXES
from jaxbio.engine.rules import Rules

BACKENDS = ("llvm", "pallas", "jnp", "vmap")
NO_KERNEL = "jaxbio plays without its kernel on this GPU, with the same results, but slower"
SLOWER = "jaxbio plays this with jax.vmap, with the same results, but slower: its own compiler"


class Chosen(NamedTuple):
    """machine: something with the methods of `native.Native`; why: this one, in a few words."""

    machine: Any
    why: str


def checked(backend: Any) -> str | None:
    """The name of a back-end, or None for the fastest one."""
    return None if backend is None else checks.choice("backend", backend, BACKENDS)


def boxes(backend: str | None) -> int:
    """How many boxes a slot of the ring has (see `ring`): few where so many runs are played at the
    same time that memory is dear.
    """
    return BOXES if platform() == "cpu" and backend in (None, "llvm", "vmap") else 1


def platform() -> str:
    """The kind of device that JAX uses now: "cpu", "gpu", ..."""
    device = getattr(jax.config, "jax_default_device", None)
    return getattr(device, "platform", None) or jax.default_backend()


def preferred(backend: str | None) -> str:
    """The back-end that is asked for, or the default of this platform. Steps that it cannot play go
    to another one.
    """
    return backend or ("llvm" if platform() == "cpu" else "jnp")


def make(rules: Rules, tree: Any, per_run: bool, backend: str | None) -> Chosen:
    """A back-end that plays trees like this one, and why it is that one.

    tree: of arrays of one run, or of their types.
    """
    if backend == "vmap":
        return Chosen(Batched(rules, tree, per_run), "asked for")
    try:
        program = flattened(rules, tree, per_run, preferred(backend) == "llvm")
    except CannotFlatten as reason:
        if backend is not None:
            raise ValueError(
                f"backend={backend!r} cannot play this: it does not know {reason}. "
                "Leave backend out, or use backend='vmap'"
            ) from None
        warnings.warn(f"{SLOWER} does not know {reason}", RuntimeWarning, stacklevel=2)
        return Chosen(Batched(rules, tree, per_run), f"jaxbio's compiler does not know {reason}")
    if backend is not None:
        return Chosen(_asked_for(program, backend), "asked for")
    return _fastest(program, jax.tree.leaves(tree))


def _asked_for(program: GameProgram, backend: str) -> Any:
    if backend == "llvm":
        return Native(program)
    from jaxbio.engine.backends import jnp, pallas

    if backend == "pallas":
        return pallas.Kernel(program, interpret=platform() == "cpu")
    return jnp.Vectors(program)


def _fastest(program: GameProgram, numbers: list[Any]) -> Chosen:
    if platform() == "cpu":
        return Chosen(Native(program), "the fastest one on a CPU")
    from jaxbio.engine.backends import jnp, pallas

    if platform() not in ("gpu", "cuda", "rocm"):
        return Chosen(jnp.Vectors(program), f"there is no kernel for {platform()}")
    problem = _problem(program, numbers)
    if problem is None:
        return Chosen(pallas.Kernel(program), "on this GPU its kernel plays as plain JAX does")
    warnings.warn(f"{NO_KERNEL} ({problem})", RuntimeWarning, stacklevel=3)
    return Chosen(jnp.Vectors(program), problem)


def _problem(program: GameProgram, numbers: list[Any]) -> str | None:
    """Why the kernel of this program cannot be used on this device; None where it can.

    numbers: of one run.
    """
    from jaxbio.engine.backends import pallas

    keys = rng.run_keys(0, np.arange(2 * pallas.BLOCK))
    if program.per_run:
        numbers = [np.stack([np.asarray(leaf)] * keys.shape[1], axis=-1) for leaf in numbers]
    return pallas.agrees(program, numbers, keys)


def flattened(rules: Rules, tree: Any, per_run: bool, shares: bool = False) -> GameProgram:
    """The straight-line program of these rules; CannotFlatten where there is none.

    shares: see `program_of`.
    """
    leaves, structure = jax.tree.flatten(tree)
    types = [jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype) for leaf in leaves]
    carry = jax.eval_shape(rules.begin, structure.unflatten(types))
    kept, of_carry = jax.tree.flatten(carry)
    idle = {id(leaf) for leaf in rules.idle(carry)}

    def one_round(numbers: Any, key: Any, t: Any, state: Any) -> list[Any]:
        tree = structure.unflatten(numbers)
        return jax.tree.leaves(rules.step(tree, key, t, of_carry.unflatten(state)))

    return program_of(
        types,
        lambda numbers: jax.tree.leaves(rules.begin(structure.unflatten(numbers))),
        one_round,
        lambda state: jax.tree.leaves(rules.take(of_carry.unflatten(state))),
        lambda numbers, state: jax.tree.leaves(
            rules.summary(structure.unflatten(numbers), of_carry.unflatten(state))
        ),
        kept,
        per_run,
        frozenset(i for i, leaf in enumerate(kept) if id(leaf) in idle),
        shares,
    )
