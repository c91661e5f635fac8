"""What the methods of learners and environments return, checked while a round is traced.

A loop carries arrays of fixed types. Here the state of a learner takes that form (`stored`) and
gets back its own (`restored`), and whatever a method returns that cannot be played is refused with
a sentence that says what to return.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio.core import Array, Known, State, draws_of
from jaxbio.engine.code.traces import code_of, settings, traced
from jaxbio.ops import Wide
from jaxbio.trees import float_dtype

SENTENCES = {
    "act": "act must return an action and a ticket (None if it needs none)",
    "learn": "learn must return the new state and the ticket that is filed with the play "
    "(play.ticket, or None if act hands out none)",
}


class Types(NamedTuple):
    """What a learner works with. state: its types as stored; keys: for each leaf of its own state
    the name of the random generator of a typed key, else None; ticket: the types of `act`'s.
    """

    state: Any
    keys: tuple[Any, ...]
    ticket: Any


def types_of(learner: Any, known: Known) -> Types:
    """The types of a learner's state and ticket, traced once for each structure and its code."""
    leaves, structure = jax.tree.flatten((learner, known))
    shapes = tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    known_by = code_of(structure), *settings().values()
    return _types(structure, shapes, jnp.dtype(float_dtype()), known_by)


@lru_cache(maxsize=64)
def _types(structure: Any, shapes: tuple[Any, ...], dtype: Any, code: Any) -> Types:
    learner, known = structure.unflatten([jax.ShapeDtypeStruct(*one) for one in shapes])
    wanted = draws_of(learner, known.num_actions)
    u = jax.ShapeDtypeStruct(() if wanted == 1 else (wanted,), dtype)
    keys: list[Any] = []

    def begin_and_act(learner: Any, known: Known, u: Array) -> Any:
        state = learner.init(known)
        keys[:] = [_generator(leaf) for leaf in jax.tree.leaves(state)]
        ticket = pair(learner, "act", learner.act(state, jnp.int32(1), u))[1]
        return stored(learner, state), _of_numbers(learner, "act", ticket)

    with traced(structure):
        state, ticket = jax.eval_shape(begin_and_act, learner, known, u)
    for leaf in jax.tree.leaves(ticket):
        if leaf.shape or jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raise TypeError(
                f"the ticket of {_name(learner)} must be made of scalars, but act handed out "
                f"{ticket}"
            )
    return Types(state, tuple(keys), ticket)


def _of_numbers(learner: Any, method: str, ticket: Any) -> Any:
    """A ticket, refused where JAX cannot carry what it is made of."""
    for leaf in jax.tree.leaves(ticket):
        if _dtype(leaf) == np.dtype(object):
            raise TypeError(
                f"the ticket of {_name(learner)} must be made of scalars, but {method} handed out "
                f"{leaf!r}"
            )
    return ticket


def _dtype(leaf: Any) -> Any:
    """Of a number or an array; that of objects where it is neither, or needs more than 32 bits."""
    if not jax.tree_util.all_leaves([leaf]):  # a list, which JAX would make an array of
        return np.dtype(object)
    try:
        return jnp.asarray(leaf).dtype
    except (TypeError, ValueError, OverflowError):
        return np.dtype(object)


def stored(learner: Any, state: State, method: str = "init") -> State:
    """A learner's state as a loop carries it: arrays, the words of a key in place of the key.

    method: that it comes from.
    """

    def convert(path: Any, leaf: Any) -> Any:
        if _generator(leaf) is not None:
            return jax.random.key_data(leaf)
        dtype = _dtype(leaf)
        if not (jnp.issubdtype(dtype, jnp.number) or dtype == jnp.bool_):
            raise TypeError(
                f"the state of {_name(learner)} must be made of numbers and arrays, but {method} "
                f"gave {leaf!r} at {jax.tree_util.keystr(path) or 'its root'}"
            )
        # Not of a weak type, which a Python number has: what is carried would change its type.
        return jnp.asarray(leaf).astype(dtype)

    return jax.tree_util.tree_map_with_path(convert, state)


def restored(types: Types, state: State) -> State:
    """A learner's own state again, from the form in which it is carried."""
    if not any(types.keys):
        return state
    leaves, structure = jax.tree.flatten(state)
    wrapped = [
        leaf if name is None else jax.random.wrap_key_data(leaf, impl=name)
        for leaf, name in zip(leaves, types.keys, strict=True)
    ]
    return structure.unflatten(wrapped)


def checked_state(learner: Any, state: State, before: State) -> State:
    """What `learn` returned, stored: the types are those that the round began with."""
    after = stored(learner, state, "learn")
    old, new = (jax.tree_util.tree_flatten_with_path(tree)[0] for tree in (before, after))
    if jax.tree.structure(before) != jax.tree.structure(after):
        raise TypeError(
            f"{SENTENCES['learn']}: a state of the structure that init of {_name(learner)} gave, "
            f"{jax.tree.structure(before)}, but it returned {jax.tree.structure(after)}"
        )
    for (path, was), (_, found) in zip(old, new, strict=True):
        if (was.shape, was.dtype) != (found.shape, found.dtype):
            raise TypeError(
                f"learn of {_name(learner)} must keep the types of the state, but "
                f"{jax.tree_util.keystr(path) or 'the state'} was {_type(was)} from init and is "
                f"{_type(found)} from learn"
            )
    return after


def stored_ticket(ticket: Any) -> Any:
    """What `act` hands out, as arrays: it may be Python's and NumPy's numbers."""
    return jax.tree.map(lambda x: jnp.asarray(x).astype(_dtype(x)), ticket)


def checked_ticket(learner: Any, ticket: Any, template: Any) -> Any:
    """What `learn` files with a play: the same types as what `act` handed out."""

    def types(tree: Any) -> Any:
        return jax.tree.map(lambda x: (jnp.shape(x), jnp.result_type(x)), tree)

    ticket = _of_numbers(learner, "learn", ticket)
    if jax.tree.flatten(types(ticket)) != jax.tree.flatten(types(template)):
        raise TypeError(
            f"learn of {_name(learner)} must return a ticket like the one act handed out, but act "
            f"gave {_types_of(template)} and learn returned {_types_of(ticket)}"
        )
    return jax.tree.map(lambda x, like: jnp.asarray(x).astype(like.dtype), ticket, template)


def checked_facts(learner: Any, facts: Any, taken: Collection[str]) -> dict[str, Any]:
    """What `facts` returned: numbers by name. taken: names that mean something else."""
    who = f"facts of {_name(learner)}"
    if not isinstance(facts, dict) or not all(isinstance(name, str) for name in facts):
        raise TypeError(f"{who} must return a dict of numbers by name, but it returned {facts!r}")
    for name, fact in facts.items():
        dtype = _dtype(0 if isinstance(fact, Wide) else fact)
        if not (jnp.issubdtype(dtype, jnp.number) or dtype == jnp.bool_):
            raise TypeError(f"{who} must return numbers, but {name!r} is {_said(fact, dtype)}")
        if name in taken:
            raise TypeError(f"{who} must not use the name {name!r}, which tells of an error")
    return facts


def pair(learner: Any, method: str, returned: Any) -> tuple[Any, Any]:
    """The two things that `act` and `learn` return."""
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise TypeError(f"{SENTENCES[method]}, but that of {_name(learner)} returned {returned!r}")
    return returned[0], returned[1]


def shown_late(delays: Any, returned: Any) -> tuple[Array, Array]:
    """The loss that a learner is shown, and its delay, as a law of delays gives them."""
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise TypeError(
            f"reveal of {_name(delays)} must return the loss that the learner is shown and its "
            f"delay, but it returned {returned!r}"
        )
    shown = number_scalar("the loss that the delays show", returned[0])
    return shown, integer_scalar("delay of the delays", returned[1])


def integer_scalar(what: str, value: Any) -> Array:
    """An int32 []; a float would be cut off without a word."""
    dtype = _dtype(value)
    whole = jnp.issubdtype(dtype, jnp.integer) or dtype == jnp.bool_
    if not whole or jnp.shape(value):
        raise TypeError(
            f"{what} must return an integer scalar, such as x.astype(jnp.int32), but it returned "
            f"{_said(value, dtype)}"
        )
    return jnp.asarray(value).astype(jnp.int32)


def number_scalar(what: str, value: Any) -> Array:
    """A float []."""
    dtype = _dtype(value)
    if not jnp.issubdtype(dtype, jnp.number) or jnp.shape(value):
        raise TypeError(f"{what} must return a number, but it returned {_said(value, dtype)}")
    return jnp.asarray(value).astype(float_dtype())


def _said(value: Any, dtype: Any) -> str:
    return repr(value) if dtype == np.dtype(object) else _type(value)


def _generator(leaf: Any) -> Any:
    """The random generator of a typed key; None where a leaf is something else."""
    if jnp.issubdtype(getattr(leaf, "dtype", np.dtype(object)), jax.dtypes.prng_key):
        return jax.random.key_impl(leaf)
    return None


def _name(thing: Any) -> str:
    return type(thing).__name__


def _type(value: Any) -> str:
    return f"{jnp.result_type(value)} {list(jnp.shape(value))}"


def _types_of(tree: Any) -> str:
    return str(jax.tree.map(_type, tree))
