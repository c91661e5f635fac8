"""A version of JAX that nobody has seen yet: the same results, and at most one line of warning.

Such a version is simulated: a primitive that flattening has never heard of, one of somebody else's
with a name of JAX's, primitives whose parameters have other names, and equations that cannot be
taken apart at all. All of it is played by `jax.vmap`, and refused where LLVM is asked for by name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import BY_VMAP, forget_programs
from jax import lax
from jax.extend import core as jex
from jax.interpreters import batching as batchers
from jax.interpreters import mlir

import jaxbio as jb
from jaxbio.engine import flatten
from jaxbio.engine.backends import choice
from jaxbio.engine.backends.choice import SLOWER
from jaxbio.engine.round import make_game
from jaxbio.engine.rules import GAME

RUNS, HORIZON = 3, 50
MAPPING = jb.StochasticMapping([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
ENV = jb.Environment(MAPPING, jb.BernoulliLosses([0.1, 0.8]), jb.UniformDelay(0, 6))
OPTIONS: Any = {"horizon": HORIZON, "runs": RUNS, "progress": False}


@pytest.fixture(autouse=True)
def own_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program that the JAX of today has compiled serves the one that is simulated."""
    forget_programs(monkeypatch)


def primitive(name: str, meaning: Callable[[Any], Any]) -> jex.Primitive:
    """One that JAX can play, of an array whose last axis it works along."""
    made = jex.Primitive(name)
    made.def_impl(meaning)
    made.def_abstract_eval(lambda x: x)
    mlir.register_lowering(made, mlir.lower_fun(meaning, multiple_results=False))

    def batched(args: Any, axes: Any) -> Any:
        return made.bind(jnp.moveaxis(args[0], axes[0], 0)), 0

    batchers.primitive_batchers[made] = batched  # type: ignore[index]
    return made


unheard_of = primitive("unheard_of", lambda x: x * 2)
square = primitive("square", lambda x: jnp.cumsum(x, axis=-1))  # JAX's is elementwise


@jb.pytree
class Learner:
    """Everything that a step may be made of: a scan, a loop, slices, sums, a call."""

    function: Any = jb.static(default=lambda x: x)

    def init(self, known: jb.Known) -> Any:
        return jnp.zeros(known.num_actions)

    def act(self, state: Any, t: Any, u: Any) -> Any:
        cumulated = lax.scan(lambda total, x: (total + x, total + x), jnp.zeros(()), state)[1]
        halved = lax.while_loop(lambda x: x > 1.0, lambda x: x * 0.5, cumulated[-1])
        return ((u + halved) * 3).astype(jnp.int32) % 3, None

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        mine = arrivals.play.action[:, None] == jnp.arange(3)
        loss = self.function(jnp.where(mine, arrivals.play.loss[:, None], 0.0))
        return state + loss.sum(0), None

    def facts(self, state: Any) -> Any:
        return {"seen": state.sum()}


def expected(learner: Any) -> Any:
    def play(run: Any) -> Any:
        return jb.rollout(ENV, learner, 0, HORIZON, run=run)

    return jax.jit(jax.vmap(play))(jnp.arange(RUNS))


def assert_alike(result: jb.Result, learner: Any) -> None:
    wanted = expected(learner)
    np.testing.assert_array_equal(result.loss, wanted.loss)
    np.testing.assert_allclose(result.regret, wanted.regret, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(result.info["seen"], wanted.info["seen"], rtol=1e-6)


def assert_by_vmap(learner: Any, name: str) -> None:
    """By `jax.vmap`, with one line that names what is not known; by name, LLVM refuses."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")  # a user would see even fewer
        result = jb.simulate(ENV, learner, **OPTIONS)
        jb.simulate(ENV, learner, **OPTIONS | {"runs": 5})
    lines = [str(line.message) for line in said]
    assert len(lines) == 1, lines
    assert lines[0].startswith(f"{SLOWER} does not know ")
    assert name in lines[0]
    assert "\n" not in lines[0]
    assert said[0].category is RuntimeWarning
    assert result.backend == "vmap"
    assert_alike(result, learner)
    for play in (
        lambda: jb.simulate(ENV, learner, **OPTIONS, backend="llvm"),
        lambda: jb.sweep(ENV, {"a": learner}, {}, **OPTIONS, backend="llvm"),
    ):
        with pytest.raises(ValueError, match=rf"backend='llvm' cannot play this.*{name}"):
            play()


def test_what_is_known_needs_no_vmap() -> None:
    """Else the tests below would show nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = jb.simulate(ENV, Learner(), **OPTIONS)
    assert result.backend == "llvm"
    assert_alike(result, Learner())


def test_the_filter_of_the_suite_knows_the_warning() -> None:
    assert f"default:{SLOWER.partition(',')[0]}" == BY_VMAP


def test_an_unknown_primitive_goes_to_vmap() -> None:
    assert_by_vmap(Learner(unheard_of.bind), "unheard_of")


def test_a_primitive_of_somebody_elses_with_a_name_of_jaxs_keeps_its_meaning() -> None:
    assert_by_vmap(Learner(square.bind), "square")


def delayed(delay: int) -> jb.Environment:
    return jb.Environment(MAPPING, ENV.losses, jb.UniformDelay(0, delay))


def test_a_sweep_says_it_once_and_who_has_played() -> None:
    learners = {"mine": Learner(unheard_of.bind), "yours": Learner()}
    with pytest.warns(RuntimeWarning, match="does not know unheard_of") as said:
        data = jb.sweep(delayed, learners, {"delay": [3, 4, 6]}, **OPTIONS)
    assert len(said) == 1
    assert data.attrs["backend"] == "llvm, vmap"
    result = jb.simulate(ENV, Learner(), **OPTIONS)
    np.testing.assert_array_equal(data.loss.sel(learner="yours", delay=6), result.loss)


def used_by(function: Callable[..., Any], *args: Any) -> set[str]:
    """The names of all primitives of a function, at any depth."""
    found: set[str] = set()

    def walk(jaxpr: Any) -> None:
        for eqn in jaxpr.eqns:
            found.add(eqn.primitive.name)
            for inner in jex.jaxprs_in_params(eqn.params):
                walk(getattr(inner, "jaxpr", inner))

    walk(jax.make_jaxpr(function)(*args).jaxpr)
    return found


INDEX = jnp.int32(1)
X = jnp.arange(12.0).reshape(4, 3)
# What a learner may do with its lanes [lanes, 3], each through one primitive of this name.
USES: dict[str, Callable[[Any], Any]] = {
    "broadcast_in_dim": lambda x: x + lax.broadcast_in_dim(x[0], x.shape, (1,)),
    "reshape": lambda x: lax.reshape(lax.reshape(x, (x.size,)), x.shape),
    "squeeze": lambda x: x + lax.squeeze(x[:1], (0,)),
    "transpose": lambda x: lax.transpose(lax.transpose(x, (1, 0)), (1, 0)),
    "concatenate": lambda x: lax.concatenate([x[1:], x[:1]], 0),
    "slice": lambda x: x + lax.slice(x, (1, 0), (2, 3)),
    "dynamic_slice": lambda x: x + lax.dynamic_slice(x, (x[0, 0].astype(jnp.int32), 0), (1, 3)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(
        x, x[:1] + 1, (x[0, 0].astype(jnp.int32), 0)
    ),
    "gather": lambda x: x + x[x[:, 0].astype(jnp.int32)],
    "scatter-add": lambda x: x.at[x[:, 0].astype(jnp.int32)].add(x),
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c), x[0], x)[1],
    "while": lambda x: lax.while_loop(lambda y: y[0, 0] < 9, lambda y: y * 2 + 1, x),
    "cond": lambda x: lax.cond(x[0, 0] > 0, lambda y: y * 2, lambda y: y + 1, x),
    "reduce_sum": lambda x: x + x.sum(0),
    "argmin": lambda x: x + jnp.argmin(x, axis=0).astype(x.dtype),
    "sort": lambda x: lax.sort(x, dimension=0),
    "cumsum": lambda x: lax.cumsum(x, axis=0),
    "dot_general": lambda x: x @ jnp.eye(3, dtype=x.dtype),
    "convert_element_type": lambda x: x.astype(jnp.int32).astype(x.dtype),
    "select_n": lambda x: jnp.where(x > 0, x, 1.0),
    "exp": jnp.exp,
}


class Renamed:
    """An equation whose parameters have names that nobody knows."""

    def __init__(self, eqn: Any) -> None:
        self.eqn = eqn
        self.params = {f"new_{name}": value for name, value in eqn.params.items()} or {"new": 1}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.eqn, name)


def seen_as(name: str, other: Callable[[Any], Any], patch: pytest.MonkeyPatch) -> None:
    """Flattening meets `other(equation)` in the place of those of this primitive."""
    equation = flatten.Flattener._equation

    def changed(self: Any, eqn: Any, *rest: Any) -> Any:
        return equation(self, other(eqn) if eqn.primitive.name == name else eqn, *rest)

    patch.setattr(flatten.Flattener, "_equation", changed)


def flattened(learner: Any) -> Any:
    game = make_game(ENV, learner, HORIZON, *jb.ring_sizes(ENV, HORIZON), library=np)
    return choice.flattened(GAME, game, False)


@pytest.mark.parametrize("name", sorted(USES))
def test_renamed_parameters_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in used_by(USES[name], X)
    flattened(Learner(USES[name]))
    seen_as(name, Renamed, monkeypatch)
    with pytest.raises(flatten.CannotFlatten, match=name):
        flattened(Learner(USES[name]))


@pytest.mark.parametrize("name", ["scan", "gather"])
def test_renamed_parameters_go_to_vmap(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen_as(name, Renamed, monkeypatch)
    assert_by_vmap(Learner(USES[name]), name)


def test_one_parameter_more_is_not_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It might mean that the primitive does something else."""

    def more(eqn: Any) -> Any:
        found = Renamed(eqn)
        found.params = eqn.params | {"upside_down": True}
        return found

    seen_as("cumsum", more, monkeypatch)
    with pytest.raises(ValueError, match=r"cumsum.*upside_down"):
        jb.simulate(ENV, Learner(USES["cumsum"]), **OPTIONS, backend="llvm")


def test_equations_that_cannot_be_taken_apart_cost_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class NewEquation:
        def __init__(self, eqn: Any) -> None:
            self.primitive, self.invars, self.outvars = eqn.primitive, eqn.invars, eqn.outvars

    seen_as("cumsum", NewEquation, monkeypatch)
    assert_by_vmap(Learner(USES["cumsum"]), "cumsum")


def test_a_mistake_of_the_user_is_not_taken_for_a_new_jax() -> None:
    def mistaken(x: Any) -> Any:
        raise ZeroDivisionError("mine")

    for backend in (None, "llvm", "vmap"):
        with pytest.raises(ZeroDivisionError, match="mine"):
            jb.simulate(ENV, Learner(mistaken), **OPTIONS, backend=backend)
