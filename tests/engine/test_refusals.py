"""What cannot be flattened is refused by name, as CannotFlatten and as nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flat import program_of_step
from jax import lax
from jax.extend import core as jex
from jax.interpreters import mlir

from jaxbio.engine import elementwise, flatten, jaxprs
from jaxbio.engine.jaxprs import CannotFlatten

V = jax.ShapeDtypeStruct((4,), np.float32)
WORDS = jax.ShapeDtypeStruct((2,), np.uint32)
TWO = jnp.asarray([1, 2], jnp.int8)
TABLE = jax.ShapeDtypeStruct((100,), np.float32)


def flattened(function: Callable[..., Any], *args: Any) -> Any:
    return program_of_step(lambda _, carry: function(*carry) and carry, [], list(args), False)


def kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with results that are not looked at."""
    return lambda *args: [function(*args)]


REFUSED: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "keys": (lambda w: jax.random.uniform(jax.random.wrap_key_data(w)), WORDS, "random_wrap"),
    "sin": (jnp.sin, V, "sin"),
    "lgamma": (jax.lax.lgamma, V, "lgamma"),
    "float16": (lambda v: v.astype(jnp.float16), V, "convert_element_type.*float16"),
    "bfloat16": (lambda v: v.astype(jnp.bfloat16) * 2, V, "convert_element_type.*bfloat16"),
    "complex": (lambda v: lax.complex(v, v), V, "complex.*complex64"),
    "int8": (lambda v: v.astype(jnp.int8), V, "convert_element_type.*int8"),
    "a constant": (lambda v: v[:2] * TWO.astype(jnp.float32), V, "int8"),
    "a float's remainder": (lambda v: v % 2, V, "rem"),
    "bytes": (lambda w: lax.bitcast_convert_type(w, jnp.uint8), WORDS, "bitcast.*uint8"),
    "a function of entries": (lambda v: v.at[0].apply(jnp.abs), V, "scatter"),
    "one hot": (lambda v: v.at[jnp.argmin(v)].get(mode="one_hot"), TABLE, "gather|unstack|dot"),
    "low precision": (lambda v: lax.reduce_precision(v, 5, 10), V, "reduce_precision"),
    "inside a jit": (lambda v: jax.jit(lambda x: jnp.cos(x) + 1)(v), V, "cos"),
    "inside a scan": (lambda v: lax.scan(lambda c, x: (c, jnp.tan(x)), 0.0, v), V, "tan"),
    "inside a loop": (lambda v: lax.while_loop(lambda x: x[0] < 0, jnp.sin, v), V, "sin"),
    "inside a cond": (lambda v: lax.cond(v[0] > 0, jnp.sin, jnp.cos, v), V, "sin|cos"),
    "inside a large one": (lambda v: jnp.sin(v * 2).sum(), TABLE, "sin"),
    "a convolution": (lambda v: jnp.convolve(v, v), V, "conv_general_dilated"),
    "a decomposition": (lambda v: jnp.linalg.inv(v.reshape(2, 2)), V, "lu|solve|custom"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name: str) -> None:
    function, type_, said = REFUSED[name]
    with pytest.raises(CannotFlatten, match=said):
        flattened(kept(function), type_)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint8, np.int16, np.complex64])
def test_numbers_of_another_type_are_refused(dtype: Any) -> None:
    with pytest.raises(CannotFlatten, match=np.dtype(dtype).name):
        flattened(kept(lambda x: x), jax.ShapeDtypeStruct((4,), dtype))


def test_double_precision_is_refused() -> None:
    with jax.enable_x64(True), pytest.raises(CannotFlatten, match=r"convert_element_type.*float64"):
        flattened(kept(lambda v: v.astype(jnp.float64) * 2), V)


def test_a_primitive_that_nobody_knows_is_refused() -> None:
    unheard_of = jex.Primitive("unheard_of")
    unheard_of.def_abstract_eval(lambda x: x)
    with pytest.raises(CannotFlatten, match="unheard_of"):
        flattened(kept(unheard_of.bind), V)


def test_a_primitive_of_somebody_elses_with_a_name_of_jaxs_is_refused() -> None:
    """One that is called `square` and is a cumulative sum."""
    square = jex.Primitive("square")
    square.def_abstract_eval(lambda x: x)
    mlir.register_lowering(square, mlir.lower_fun(jnp.cumsum, multiple_results=False))
    with pytest.raises(CannotFlatten, match="square"):
        flattened(kept(square.bind), V)


USES: dict[str, tuple[Callable[..., Any], Any]] = {
    "broadcast_in_dim": (lambda v: lax.broadcast_in_dim(v, (2, 4), (1,)), V),
    "reshape": (lambda v: lax.reshape(v, (2, 2)), V),
    "squeeze": (lambda v: lax.squeeze(v[:1], (0,)), V),
    "transpose": (lambda v: v.reshape(2, 2).T, V),
    "concatenate": (lambda v: lax.concatenate([v, v], 0), V),
    "slice": (lambda v: lax.slice(v, (1,), (3,)), V),
    "pad": (lambda v: lax.pad(v, v[0], [(1, 1, 0)]), V),
    "rev": (lambda v: lax.rev(v, (0,)), V),
    "iota": (lambda v: v + jnp.arange(4.0), V),
    "gather": (lambda v: v[jnp.argmin(v)[None]], V),
    "scatter": (lambda v: v.at[jnp.argmin(v)].set(1.0), V),
    "scatter-add": (lambda v: v.at[jnp.argmin(v)].add(1.0), V),
    "dynamic_slice": (lambda v: lax.dynamic_slice(v, (jnp.argmin(v),), (1,)), V),
    "sort": (lax.sort, V),
    "top_k": (lambda v: lax.top_k(v, 2), V),
    "dot_general": (lambda v: v @ v, V),
    "reduce_sum": (jnp.sum, V),
    "argmin": (jnp.argmin, V),
    "cumsum": (lax.cumsum, V),
}


@pytest.mark.parametrize("name", USES)
def test_a_renamed_parameter_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JAX with other names than the rule knows looks like one with new names."""
    function, type_ = USES[name]
    used = {eqn.primitive.name for eqn in jax.make_jaxpr(function)(type_).eqns}
    assert name in used
    rule, params = flatten.RULES[name]
    monkeypatch.setitem(flatten.RULES, name, (rule, " ".join(f"new_{p}" for p in params.split())))
    with pytest.raises(CannotFlatten, match=f"{name} with the parameter"):
        flattened(kept(function), type_)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("scan", lambda v: lax.scan(lambda c, x: (c + x, c), 0.0, v)),
        ("while", lambda v: lax.while_loop(lambda x: x[0] < 9, lambda x: x * 2 + 1, v)),
        ("cond", lambda v: lax.cond(v[0] > 0, lambda x: x, lambda x: x * 2, v)),
        ("jit", lambda v: jax.jit(lambda x: x * 2)(v)),
        ("custom_jvp_call", jax.nn.relu),
        ("exp", jnp.exp),
        ("convert_element_type", lambda v: v.astype(jnp.int32)),
    ],
)
def test_a_parameter_that_is_new_is_refused(
    name: str, function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    flattened(kept(function), V)
    check = jaxprs.check

    def stricter(eqn: Any, known: Any) -> None:
        check(eqn, known if eqn.primitive.name != name else ())

    for module in (flatten, jaxprs, flatten.control):
        monkeypatch.setattr(module, "check", stricter)
    with pytest.raises(CannotFlatten, match=f"{name} with the parameter"):
        flattened(kept(function), V)


@pytest.mark.parametrize("error", [KeyError, AssertionError, IndexError, ValueError, StopIteration])
def test_a_rule_that_fails_refuses(error: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a parameter of the same name had come to mean something else."""

    def broken(*_: Any) -> Any:
        raise error("odd")

    monkeypatch.setattr(elementwise, "apply", broken)
    with pytest.raises(CannotFlatten, match=r"add .*odd"):
        flattened(kept(lambda v: v + 1), V)


def test_a_mistake_of_the_user_is_not_taken_for_a_new_jax() -> None:
    def mistaken(_: Any) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        flattened(mistaken, V)
