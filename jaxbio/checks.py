"""Checks at the front door: values are read before anything is traced.

Each returns the value in its canonical form, or raises with the argument's name, the value it got
and what was expected. A tracer passes through unread: inside a transformation there is no value.
"""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio.core import Scheduled, is_concrete


def choice(name: str, value: Any, options: Sequence[str]) -> str:
    if value not in options:
        expected = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {expected}, but got {value!r}")
    return value


def number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> Any:
    """A finite number in an interval whose ends may be open."""
    if not is_concrete(value):
        return value
    if isinstance(value, bool) or not _is_scalar(value):
        raise TypeError(f"{name} must be a number, but got {value!r}")
    result = float(value)
    fine = (low < result if open_low else low <= result) and (
        result < high if open_high else result <= high
    )
    if not fine or not math.isfinite(result):
        left, right = "(" if open_low else "[", ")" if open_high else "]"
        if math.isinf(high) and math.isinf(low):
            expected = "finite"
        elif math.isinf(high):
            expected = f"{'greater than' if open_low else 'at least'} {low:g}"
        else:
            expected = f"in {left}{low:g}, {high:g}{right}"
        raise ValueError(f"{name} must be {expected}, but got {result!r}")
    return result


def probability_of_error(name: str, value: Any) -> Any:
    """A confidence parameter, strictly inside (0, 1)."""
    return number(name, value, 0, 1, open_low=True, open_high=True)


def integer(name: str, value: Any, low: int, high: int | None = None) -> Any:
    if not is_concrete(value):
        return value
    if isinstance(value, bool) or not _is_scalar(value):
        raise TypeError(f"{name} must be an integer, but got {value!r}")
    as_float = float(value)
    if not math.isfinite(as_float) or as_float != int(as_float):
        raise ValueError(f"{name} must be an integer, but got {value!r}")
    result = int(value)
    if result < low or (high is not None and result > high):
        expected = f"at least {low}" if high is None else f"in [{low}, {high}]"
        raise ValueError(f"{name} must be {expected}, but got {result}")
    return result


def increasing(name: str, values: Any, low: int) -> list[int]:
    """Integers at least `low`, one or more, each larger than the one before."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of integers, but got {values!r}")
    given = list(values)
    found = [integer(f"each of {name}", value, low) for value in given]
    if not found or sorted(set(found)) != found:
        raise ValueError(f"{name} must be increasing integers, but got {given}")
    return found


def array(name: str, value: Any, ndim: int, shape_words: str) -> Any:
    """A numeric array of `ndim` axes without NaN."""
    if isinstance(value, jax.Array) and not is_concrete(value):
        if value.ndim != ndim:
            raise ValueError(
                f"{name} must have shape {shape_words}, but its shape is {value.shape}"
            )
        return value
    try:
        if np.asarray(value).dtype.kind in "USO":
            raise TypeError("not numbers")
        result = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array {shape_words}, but got {value!r}") from error
    if result.ndim != ndim:
        raise ValueError(f"{name} must have shape {shape_words}, but its shape is {result.shape}")
    if result.size == 0:
        raise ValueError(f"{name} must have shape {shape_words}, but it is empty: {result.shape}")
    if not np.isfinite(result).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        raise ValueError(
            f"{name} must not contain NaN or infinity, but entry {where} is {result[where]}"
        )
    return result


def per_state(name: str, value: Any, num_states: int) -> None:
    """Raise where an array [S] belongs to other states than the environment's."""
    if value.shape[0] != num_states:
        raise ValueError(
            f"{name} must have shape ({num_states},), one mean loss per state of the "
            f"environment, but its shape is {value.shape}"
        )


def unit_interval(name: str, value: Any, ndim: int, shape_words: str) -> Any:
    """An array with entries in [0, 1]."""
    result = array(name, value, ndim, shape_words)
    if not isinstance(result, np.ndarray):
        return result
    outside = np.argwhere((result < 0) | (result > 1))
    if outside.size:
        where = tuple(int(i) for i in outside[0])
        raise ValueError(
            f"{name} must lie in [0, 1], but entry {_index(where)} is {result[where]:g}"
        )
    return result


def distributions(name: str, value: Any, ndim: int, shape_words: str, part: str) -> Any:
    """Rows (last axis) that are probability distributions, over at least 2 actions."""
    result = unit_interval(name, value, ndim, shape_words)
    if result.shape[-2] < 2:
        raise ValueError(
            f"{name} must have at least 2 actions (K >= 2), but its shape is {result.shape}: "
            f"add the actions to choose from ({part})"
        )
    if not isinstance(result, np.ndarray):
        return result
    sums = result.sum(axis=-1)
    wrong = np.argwhere(np.abs(sums - 1) > 1e-6)
    if wrong.size:
        where = tuple(int(i) for i in wrong[0])
        raise ValueError(
            f"{name} rows must sum to 1, but row {_index(where)} sums to {sums[where]:.6g} ({part})"
        )
    return result


def integers(name: str, value: Any, ndim: int, shape_words: str, low: int = 0) -> Any:
    """An array of whole numbers at least `low`, as int32."""
    result = array(name, value, ndim, shape_words)
    if not isinstance(result, np.ndarray):
        return result
    for wrong, expected in ((result != np.floor(result), "integers"), (result < low, f">= {low}")):
        if wrong.any():
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise ValueError(
                f"{name} must be {expected}, but entry {_index(where)} is {result[where]:g}"
            )
    return np.minimum(result, np.iinfo(np.int32).max // 2).astype(np.int32)


def rate_scale(name: str, value: Any) -> Any:
    """A rate multiplier: a positive number, or an optax schedule (a function of the round)."""
    if isinstance(value, Scheduled):
        return value
    if callable(value):
        return Scheduled(value)
    return number(name, value, 0, open_low=True)


def long_enough(name: str, length: int, horizon: int) -> None:
    if length < horizon:
        raise ValueError(
            f"{name} has {length} rows, but the horizon is {horizon}: "
            "give one row per round or play fewer rounds"
        )


def learner(name: str, value: Any) -> Any:
    """An instance with the three methods, registered as a pytree."""
    if isinstance(value, type):
        raise TypeError(
            f"{name} must be a learner, but got the class {value.__name__}: "
            f"give an instance, {value.__name__}()"
        )
    missing = [m for m in ("init", "act", "learn") if not callable(getattr(value, m, None))]
    if missing:
        raise TypeError(
            f"{name} must be a learner with init, act and learn, but {value!r} lacks "
            f"{', '.join(missing)}"
        )
    if any(leaf is value for leaf in jax.tree.leaves(value)):
        raise TypeError(
            f"{name} must be a pytree, but {type(value).__name__} is not: "
            "decorate its class with jaxbio.pytree"
        )
    return value


def seed(value: Any) -> Any:
    """A typed threefry key, or an integer that fits in 32 bits."""
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        if str(jax.random.key_impl(value)) != "threefry2x32":
            raise ValueError(
                f"seed must be a threefry key, but got one of {jax.random.key_impl(value)}: "
                "use jax.random.key(..., impl='threefry2x32')"
            )
        if value.ndim:
            raise ValueError(f"seed must be one key, but got an array of shape {value.shape}")
        return value
    return integer("seed", value, 0, 2**32 - 1)


FLAGS = {
    "lost": "a loss did not fit into the ring: a delay was negative, or longer than the delay "
    "law's longest() says (with ring_depth=... given to rollout: than that ring is deep)",
    "overflow": "more losses arrived in one round than the ring has lanes",
    "out_of_range": "the learner chose an action below 0 or not below num_actions "
    "(BOLD does where it has too few copies: give more, or copies=None)",
    "not_a_number": "the learner's state holds NaN",
}


def flags(info: dict[str, Any]) -> None:
    """Raise what could only show in flight; a tracer passes unread."""
    for flag, message in FLAGS.items():
        raised = np.flatnonzero(info[flag]) if is_concrete(info[flag]) else np.empty(0)
        if raised.size:
            raise RuntimeError(f"{message} (in {raised.size} runs, the first is {raised[0]})")


def boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, but got {value!r}")
    return value


def _is_scalar(value: Any) -> bool:
    if isinstance(value, numbers.Real):
        return True
    return isinstance(value, np.ndarray | jax.Array) and value.ndim == 0


def _index(where: tuple[int, ...]) -> str:
    return str(where[0]) if len(where) == 1 else str(where)


def options(name: str, given: dict[str, Any], signature: inspect.Signature) -> None:
    """Raise where a named builder does not know an option."""
    known = list(signature.parameters)
    for option in given:
        if option not in known:
            raise TypeError(f"{name!r} has no option {option!r}; it has {', '.join(known)}")
