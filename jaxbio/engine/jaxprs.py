"""What flattening reads off a jaxpr, with public parts of JAX alone.

A primitive that is not known, or one with a parameter that is not, means that a function cannot be
flattened (`CannotFlatten`, which names it).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex
from jax.extend.core import primitives

from jaxbio.engine.elementwise import is_understood

# A primitive of somebody else's may have the name of one of JAX's, and another meaning.
OF_JAX = frozenset(
    value
    for module in (lax, primitives)
    for name, value in vars(module).items()
    if name.endswith("_p") and isinstance(value, jex.Primitive)
)
# Primitives that call a jaxpr once on their operands, with the parameters that they may have.
_OF_JIT = (
    "jaxpr in_shardings out_shardings in_layouts out_layouts donated_invars ctx_mesh name "
    "keep_unused inline compiler_options_kvs resource_env"
)
_OF_REMAT = "jaxpr prevent_cse differentiated policy"
CALLS = {
    "jit": _OF_JIT,
    "pjit": _OF_JIT,
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr name",
    "checkpoint": _OF_REMAT,
    "remat": _OF_REMAT,
    "remat2": _OF_REMAT,
    "custom_jvp_call": "call_jaxpr jvp_jaxpr_fun num_consts symbolic_zeros",
    "custom_vjp_call": "call_jaxpr fwd_jaxpr_thunk num_consts bwd out_trees symbolic_zeros",
}


class CannotFlatten(Exception):  # noqa: N818
    """A function has something that a program cannot express; the message names it."""


def check(eqn: Any, known: Collection[str]) -> None:
    """Refuse an equation with a parameter that is not known."""
    odd = set(eqn.params) - set(known)
    if odd:
        raise CannotFlatten(f"{eqn.primitive.name} with the parameter {min(odd)}")


def check_types(eqn: Any) -> None:
    """Refuse an equation with numbers of a type that a program does not have."""
    for atom in (*eqn.invars, *eqn.outvars):
        dtype = getattr(atom.aval, "dtype", None)
        if not (isinstance(dtype, np.dtype) and is_understood(dtype)):
            raise CannotFlatten(f"{eqn.primitive.name} with numbers of type {dtype or atom.aval}")


class Uses:
    """last: variable -> number of the last equation that uses it; count: in how many equations it
    is used, and as how many results.
    """

    def __init__(self, jaxpr: Any) -> None:
        self.last: dict[Any, int] = {}
        self.count: dict[Any, int] = {}
        for number, eqn in enumerate(jaxpr.eqns):
            for atom in variables(eqn.invars):
                self.last[atom] = number
                self.count[atom] = self.count.get(atom, 0) + 1
        for atom in jaxpr.outvars:
            if not isinstance(atom, jex.Literal):
                self.last[atom] = len(jaxpr.eqns)
                self.count[atom] = self.count.get(atom, 0) + 1


def variables(atoms: Sequence[Any]) -> set[Any]:
    return {atom for atom in atoms if not isinstance(atom, jex.Literal)}


def called(eqn: Any) -> Any:
    """The closed jaxpr that an equation calls once on its operands."""
    check(eqn, CALLS[eqn.primitive.name].split())
    inner = eqn.params["jaxpr" if "jaxpr" in eqn.params else "call_jaxpr"]
    closed = inner if hasattr(inner, "jaxpr") else jex.ClosedJaxpr(inner, ())
    if len(closed.jaxpr.invars) != len(eqn.invars):
        raise CannotFlatten(f"{eqn.primitive.name} of other operands than it has")
    return closed


def expanded(eqn: Any) -> Any:
    """The closed jaxpr of a primitive that says itself what it is made of (jax 0.12 has some)."""
    check(eqn, ["_prim"])
    types = [jax.ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype) for atom in eqn.invars]
    closed, shape = jax.make_jaxpr(eqn.params["_prim"].expand, return_shape=True)(*types)
    wanted = [(var.aval.shape, var.aval.dtype) for var in eqn.outvars]
    if [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(shape)] != wanted:
        raise CannotFlatten(f"{eqn.primitive.name} of another form")
    return closed


def weight(jaxpr: Any, largest: int) -> int:
    """About how many values a jaxpr becomes. largest: entries of an array that is taken apart."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = [getattr(one, "jaxpr", one) for one in jex.jaxprs_in_params(eqn.params)]
        sizes = [int(np.prod(getattr(out.aval, "shape", ()))) for out in eqn.outvars]
        own = max((size if size <= largest else 1 for size in sizes), default=0)
        total += sum(weight(one, largest) for one in inner) or own
    return total


def split_of_scan(eqn: Any, jaxpr: Any) -> tuple[int, int]:
    """How many operands are constants, and how many are carried. Told by shapes where it is not
    said: names of the parameters differ between versions of JAX.
    """
    params = eqn.params
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    carries = 0
    for inner, outer in zip(jaxpr.outvars, eqn.outvars, strict=True):
        if inner.aval.shape != outer.aval.shape:
            break
        carries += 1
    scanned = 0
    for inner, outer in zip(reversed(jaxpr.invars), reversed(eqn.invars), strict=True):
        if inner.aval.shape == outer.aval.shape:
            break
        scanned += 1
    return len(jaxpr.invars) - carries - scanned, carries
