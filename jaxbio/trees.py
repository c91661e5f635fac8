"""Trees of numbers: classes that JAX takes apart, and what their leaves are made of."""

from __future__ import annotations

import dataclasses
import weakref
from functools import lru_cache
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from jaxbio.display import html, text

T = TypeVar("T")


def static(*, default: Any = dataclasses.MISSING) -> Any:
    """A field that chooses code: part of the tree's structure, hashable, never traced."""
    return dataclasses.field(default=default, metadata={"static": True})


def derived(*, init: bool = False) -> Any:
    """A traced field that `__post_init__` computes from the others."""
    return dataclasses.field(init=init, repr=False)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, static, derived))
def pytree(cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass and a pytree whose leaves are its non-static fields.

    Rebuilding a tree skips `__init__` and `__post_init__`: values are checked when a person
    constructs the object, not when a transformation passes tracers or stacks of values through.
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a class, as in @pytree above one, but got {cls!r}")
    if cls.__repr__ is object.__repr__:
        cls.__repr__ = text.in_short  # type: ignore[method-assign]
    if not hasattr(cls, "_repr_html_"):
        cls._repr_html_ = html.of_fields  # type: ignore[attr-defined]
    return register(dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls))


# Classes that `register` has seen in this process.
registered: weakref.WeakSet[type] = weakref.WeakSet()


def register(cls: type[T]) -> type[T]:
    """Tell JAX how a dataclass with static and other fields is taken apart."""
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    names = tuple(f.name for f in fields if not f.metadata.get("static"))
    meta = tuple(f.name for f in fields if f.metadata.get("static"))

    keys = tuple(jax.tree_util.GetAttrKey(name) for name in names)

    def flatten(obj: Any) -> tuple[Any, Any]:
        return tuple([getattr(obj, n) for n in names]), tuple([getattr(obj, n) for n in meta])

    def flatten_with_keys(obj: Any) -> tuple[Any, Any]:
        children, aux = flatten(obj)
        return tuple(zip(keys, children, strict=True)), aux

    def unflatten(aux: Any, children: Any) -> Any:
        obj = object.__new__(cls)
        for name, value in zip((*names, *meta), (*children, *aux), strict=True):
            object.__setattr__(obj, name, value)
        return obj

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    registered.add(cls)
    return cls


def set_field(obj: Any, name: str, value: Any) -> None:
    """Assign inside `__post_init__` of a frozen dataclass."""
    object.__setattr__(obj, name, value)


def with_fields(tree: T, **fields: Any) -> T:
    """The same with other fields that have been checked: without `__init__` and `__post_init__`."""
    other = object.__new__(type(tree))
    vars(other).update(vars(tree), **fields)
    return other


def float_dtype() -> Any:
    """float32, or float64 where JAX runs in 64-bit mode."""
    return jnp.result_type(float)


def as_arrays(tree: Any, library: Any = jnp) -> Any:
    """Turn every leaf into an array of canonical type, so that a new number never compiles anew.

    library: jax.numpy, or numpy for arrays that stay on the host until a program takes them.
    """

    floating = float_dtype()
    canonical = _canonical(floating)

    def convert(leaf: Any) -> Any:
        if type(leaf) is np.ndarray and leaf.dtype in canonical:  # quickly: a sweep has many
            return library.asarray(leaf, canonical[leaf.dtype])
        if type(leaf) is int and -(2**31) <= leaf < 2**31:
            return library.asarray(leaf, np.int32)
        on_host = isinstance(leaf, np.ndarray | np.generic | float | int)
        try:
            dtype = np.result_type(leaf) if on_host else jnp.result_type(leaf)
        except TypeError:
            raise TypeError(
                f"a field must hold numbers, but one holds {leaf!r}: declare a field that chooses "
                "code with jaxbio.static()"
            ) from None
        if dtype in canonical:
            return library.asarray(leaf, canonical[dtype])
        if jnp.issubdtype(dtype, jax.dtypes.prng_key):
            return leaf
        if jnp.issubdtype(dtype, jnp.floating):
            return library.asarray(leaf, floating)
        if jnp.issubdtype(dtype, jnp.unsignedinteger):
            return library.asarray(leaf)
        if jnp.issubdtype(dtype, jnp.complexfloating):
            return library.asarray(leaf, jnp.result_type(complex))
        return library.asarray(leaf, jnp.int32)

    return jax.tree.map(convert, tree)


@lru_cache(maxsize=8)
def _canonical(floating: Any) -> dict[Any, Any]:
    """Types of NumPy -> those that programs compute with."""
    return {
        np.dtype(bool): np.dtype(bool),
        np.dtype(np.int32): np.dtype(np.int32),
        np.dtype(np.int64): np.dtype(np.int32),
        np.dtype(np.float32): np.dtype(floating),
        np.dtype(np.float64): np.dtype(floating),
    }


def library_of(*values: Any) -> Any:
    """numpy where all values are known, so that sums are made on the host in float64."""
    return np if all(is_concrete(value) for value in values) else jnp


def is_concrete(value: Any) -> bool:
    """False for a tracer: its value is not known, so it cannot be checked."""
    return not isinstance(value, jax.core.Tracer)


def host(value: Any) -> np.ndarray:
    """A concrete array on the host, in float64 where it is a float."""
    array = np.asarray(value)
    return array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array
