"""Checks at the front door: values are read before anything is traced.

Each returns the value in its canonical form, or raises with the argument's name, the value it got
and what was expected. A tracer passes through unread: inside a transformation there is no value.
"""

from __future__ import annotations

import inspect
import math
import numbers
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio.checks import names
from jaxbio.core import Scheduled
from jaxbio.trees import float_dtype, is_concrete

LONGEST = 200  # letters of a value in a message
BYTES = bytes | bytearray | memoryview
MOST = 2**31 - 1  # of an integer: programs count with 32 bits
CHOSEN = (str, numbers.Number, np.generic, type(None), tuple)  # types of what can be chosen
LEAST_ERROR = 1e-20  # of a probability of error


def shown(value: Any) -> str:
    """A value for a message: its repr in a line, cut where it is long, and its type where it has
    none.
    """
    try:
        text = repr(value)
        text = " ".join(text.split()) if "\n" in text else text
    except Exception:  # of a class of the user's, or an integer of more digits than Python prints
        return f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def choice(name: str, value: Any, options: Sequence[Any]) -> Any:
    try:  # only plain values: others may call themselves equal to anything
        known = isinstance(value, CHOSEN) and value in options
    except Exception:  # of a class whose values cannot be compared with these
        known = False
    if not known:
        expected = ", ".join(repr(option) for option in options)
        near = names.suggestion(value, options)
        raise ValueError(f"{name} must be one of {expected}, but got {shown(value)}{near}")
    return value


def name_of(name: str, value: Any, options: Sequence[Any]) -> Any:
    """A choice among names, in any case: the option as it is spelled."""
    return choice(name, names.in_any_case(value, options), options)


def path(name: str, value: Any, kind: str = "a path") -> Path:
    """A name that a file or a folder can have."""
    try:
        given = os.fspath(value)
        fine = isinstance(given, str) and given != "" and b"\0" not in os.fsencode(given)
    except (TypeError, UnicodeEncodeError):  # no path; letters that the file system has no code for
        fine = False
    if not fine:
        raise TypeError(f"{name} must be {kind}, but got {shown(value)}")
    return Path(value)


def mapping(name: str, value: Any, kind: str) -> dict[Any, Any]:
    try:
        found = dict(value) if isinstance(value, Mapping) else None
    except Exception:  # of a class of the user's
        found = None
    if found is None:
        raise TypeError(f"{name} must map {kind}, but got {shown(value)}")
    return found


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, but got {shown(value)}")
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
    plain = type(value) is float or (type(value) is int and -MOST <= value <= MOST)
    if plain and low < value < high:  # quickly: a sweep has many of these
        return float(value)
    if not is_concrete(value):
        return value
    result = _as_float(value) if _is_scalar(value) else None
    if result is None:
        raise TypeError(f"{name} must be a number, but got {shown(value)}")
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
        got = shown(result if math.isfinite(result) else value)
        raise ValueError(f"{name} must be {expected}, but got {got}")
    return result


def probability_of_error(name: str, value: Any) -> Any:
    """A confidence parameter, strictly inside (0, 1).

    It has to be at least `LEAST_ERROR`: 8 S T / delta must be a number of single precision.
    """
    found = number(name, value, 0, 1, open_low=True, open_high=True)
    if is_concrete(found) and found < LEAST_ERROR:
        raise ValueError(
            f"{name} must be at least {LEAST_ERROR:g}, which single precision can divide by, but "
            f"got {shown(found)}"
        )
    return found


def integer(name: str, value: Any, low: int, high: int | None = None) -> Any:
    """A whole number of any type, as an int; without a limit of its own at most `MOST`."""
    most = MOST if high is None else high
    if type(value) is int and low <= value <= most:  # quickly: a sweep has many of these
        return value
    if not is_concrete(value):
        return value
    if not _is_scalar(value):
        raise TypeError(f"{name} must be an integer, but got {shown(value)}")
    result = _whole(value)
    if result is None:
        raise ValueError(f"{name} must be an integer, but got {shown(value)}")
    if not low <= result <= most:
        open_end = high is None and result < low
        expected = f"at least {low}" if open_end else f"in [{low}, {most}]"
        raise ValueError(f"{name} must be {expected}, but got {shown(result)}")
    return result


def size(name: str, value: Any, low: int, high: int | None = None) -> int:
    """An integer that sets a shape or a length: it must have a value where a program is made."""
    if not is_concrete(value):
        raise TypeError(
            f"{name} must be a number that is known beforehand, but got one that JAX is tracing: "
            "make it a static argument of your jit, or leave it out of your vmap"
        )
    return integer(name, value, low, high)


def parameter(name: str, value: Any, low: float, *, open_low: bool = False) -> Any:
    """A number at least `low` that programs compute with: one that their precision can hold."""
    found = number(name, value, low, open_low=open_low)
    if is_concrete(found) and found != 0:
        limits = np.finfo(float_dtype())
        if not float(limits.tiny) <= abs(found) <= float(limits.max):
            raise ValueError(
                f"{name} must be a number that {limits.dtype} can hold, from {limits.tiny:.2g} to "
                f"{limits.max:.2g}, but got {shown(found)}"
            )
    return found


def increasing(name: str, values: Any, low: int) -> list[int]:
    """Integers at least `low`, one or more, each larger than the one before."""
    given = several(name, values, "integers")
    found = [integer(f"each of {name}", value, low) for value in given]
    if not found or sorted(set(found)) != found:
        raise ValueError(f"{name} must be increasing integers, but got {shown(given)}")
    return found


def several(name: str, values: Any, kind: str) -> list[Any]:
    """The entries of a list, an array or another thing of known length, none of them a text."""
    try:
        listed = isinstance(values, Iterable) and isinstance(values, Sized)
        single = isinstance(values, str | Mapping | BYTES)
        found = list(values) if listed and not single else None
    except Exception:  # of an array without axes, or of a class of the user's
        found = None
    if found is None:
        raise TypeError(f"{name} must be a list of {kind}, but got {shown(values)}")
    return found


def is_single(value: Any) -> bool:
    """Has it no axes? Whatever NumPy cannot make an array of has some."""
    try:
        return np.ndim(value) == 0
    except Exception:  # of rows of different lengths, or of a class of the user's
        return False


def array(name: str, value: Any, ndim: int, shape_words: str) -> Any:
    """A numeric array of `ndim` axes without NaN."""
    if isinstance(value, jax.Array) and not is_concrete(value):
        if value.ndim != ndim:
            raise ValueError(
                f"{name} must have shape {shape_words}, but its shape is {value.shape}"
            )
        return value
    try:
        given = np.asarray(None if _is_masked(value) or isinstance(value, BYTES) else value)
        result = given.astype(np.float64) if _has_numbers(given.dtype) else None
    except Exception:  # of NumPy, and of a class of the user's that says how it becomes an array
        result = None
    if result is None:
        raise TypeError(f"{name} must be an array {shape_words}, but got {shown(value)}")
    if result.ndim != ndim:
        raise ValueError(f"{name} must have shape {shape_words}, but its shape is {result.shape}")
    if result.size == 0:
        raise ValueError(f"{name} must have shape {shape_words}, but it is empty: {result.shape}")
    if not np.logical_and.reduce(np.isfinite(result), axis=None):
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
    if np.minimum.reduce(result, axis=None) < 0 or np.maximum.reduce(result, axis=None) > 1:
        where = tuple(int(i) for i in np.argwhere((result < 0) | (result > 1))[0])
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
    wrong = np.abs(sums - 1) > 1e-6
    if np.logical_or.reduce(wrong, axis=None):
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"{name} rows must sum to 1, but row {_index(where)} sums to {sums[where]:.6g} ({part})"
        )
    return result


def integers(
    name: str, value: Any, ndim: int, shape_words: str, low: int = 0, high: float = math.inf
) -> Any:
    """An array of whole numbers from `low` to `high`, as int32; larger ones are the largest."""
    result = array(name, value, ndim, shape_words)
    if not isinstance(result, np.ndarray):
        return result
    for wrong, expected in (
        (result != np.floor(result), "integers"),
        (result < low, f">= {low}"),
        (result > high, f"<= {high}"),
    ):
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
        return Scheduled(_schedule(name, value))
    return parameter(name, value, 0, open_low=True)


def _schedule(name: str, value: Any) -> Any:
    """A function that makes a number of a round, as can be seen without playing one."""
    expected = f"{name} must be a positive number, or a function that makes one of the round"
    try:
        with jax.numpy_dtype_promotion("standard"):  # which optax counts on
            # Not `value` itself: JAX crashes where it is a function of NumPy's written in C.
            made = jax.eval_shape(lambda t: value(t), jax.ShapeDtypeStruct((), jnp.int32))
        fine = made.shape == () and _has_numbers(made.dtype)
    except Exception as error:  # whatever the user's function raises
        raise TypeError(f"{expected}, but {shown(value)} raised {error!r}") from error
    if not fine:
        raise TypeError(f"{expected}, but {shown(value)} makes {made}")
    return value


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
    wanted = ("init", "act", "learn")
    missing = [one for one in wanted if not (has(value, one) and callable(getattr(value, one)))]
    if missing:
        raise TypeError(
            f"{name} must be a learner with init, act and learn, but {shown(value)} lacks "
            f"{', '.join(missing)}"
        )
    is_pytree(name, value)
    return value


def has(value: Any, name: str) -> bool:
    """Has it such an attribute, and can it be asked for it?"""
    try:
        return hasattr(value, name)
    except Exception:  # of a class of the user's
        return False


def is_pytree(name: str, value: Any) -> None:
    if type(value) in _PYTREES:  # classes stay what they are
        return
    if any(leaf is value for leaf in jax.tree.leaves(value)):
        raise TypeError(
            f"{name} must be a pytree, but {type(value).__name__} is not: "
            "decorate its class with jaxbio.pytree"
        )
    _PYTREES.add(type(value))


_PYTREES: weakref.WeakSet[type] = weakref.WeakSet()  # that have been asked


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
    "lost": "a loss did not fit into the ring: a delay was negative, changed although the delay "
    "law says that it is constant, or was longer than the law's longest() says (with "
    "ring_depth=... given to rollout: than that ring is deep)",
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
        raise TypeError(f"{name} must be True or False, but got {shown(value)}")
    return value


def _is_scalar(value: Any) -> bool:
    if _is_masked(value):
        return False
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return value.ndim == 0 and value.dtype != bool and _has_numbers(value.dtype)
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_masked(value: Any) -> bool:
    """Are entries marked as missing? Under the mask is anything."""
    return isinstance(value, np.ma.MaskedArray) and bool(np.ma.is_masked(value))


def _has_numbers(dtype: Any) -> bool:
    """Truth values, integers or floats: no texts, dates, complex numbers, keys or objects."""
    kind = getattr(dtype, "kind", "")
    return kind in ("b", "i", "u", "f") or jnp.issubdtype(dtype, jnp.floating)


def _as_float(value: Any) -> float | None:
    """Infinity where the number is larger than any float; None where it is no number after all."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except Exception:  # of a class of the user's
        return None


def _whole(value: Any) -> int | None:
    """None where it is not a whole number."""
    plain = value.item() if isinstance(value, np.ndarray | np.generic | jax.Array) else value
    try:
        result = int(plain)
        return result if result == plain else None
    except Exception:  # of NaN and infinity, or of a class of the user's
        return None


def _index(where: tuple[int, ...]) -> str:
    return str(where[0]) if len(where) == 1 else str(where)


def options(name: str, given: dict[str, Any], signature: inspect.Signature) -> None:
    """Raise where a named builder does not know an option."""
    known = signature.parameters
    if any(one.kind is one.VAR_KEYWORD for one in known.values()):
        return
    for option in given:
        if option not in known:
            has = ", ".join(known) or "none"
            near = names.suggestion(option, known)
            raise TypeError(f"{name!r} has no option {option!r}; it has {has}{near}")
