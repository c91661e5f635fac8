"""A version of JAX that nobody has seen yet: the same results, and at most one line of warning.

Such a version is simulated: a primitive that the interpreter has never heard of, primitives whose
parameters have other names, and one whose equations cannot be taken apart at all.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend import core as jex
from jax.interpreters import batching as batchers
from jax.interpreters import mlir

import jaxbio as jb
from jaxbio import batching, blocks, kernel

RUNS, HORIZON = 3, 50
MAPPING = jb.StochasticMapping([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
ENV = jb.Environment(MAPPING, jb.BernoulliLosses([0.1, 0.8]), jb.UniformDelay(0, 6))

unheard_of = jex.Primitive("unheard_of")  # twice its operand
unheard_of.def_impl(lambda x: x * 2)
unheard_of.def_abstract_eval(lambda x: x)
mlir.register_lowering(unheard_of, mlir.lower_fun(lambda x: x * 2, multiple_results=False))


def _batch(args: Any, axes: Any) -> Any:
    _batch.calls += 1
    return unheard_of.bind(args[0]), axes[0]


_batch.calls = 0  # type: ignore[attr-defined]
batchers.primitive_batchers[unheard_of] = _batch  # type: ignore[index]


@pytest.fixture(autouse=True)
def own_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program that the JAX of today has compiled serves the one that is simulated."""
    monkeypatch.setattr(blocks, "_players", {})
    monkeypatch.setattr(blocks, "_programs", blocks.make_programs())


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


def played(learner: Any) -> tuple[np.ndarray, np.ndarray]:
    result = jb.simulate(ENV, learner, horizon=HORIZON, runs=RUNS, progress=False)
    return result.regret, result.info["seen"]


def expected(learner: Any) -> tuple[np.ndarray, np.ndarray]:
    def play(run: Any) -> Any:
        return jb.rollout(ENV, learner, 0, HORIZON, run=run)

    record = jax.jit(jax.vmap(play))(jnp.arange(RUNS))
    return np.asarray(record.regret), np.asarray(record.info["seen"])


def assert_alike(learner: Any) -> None:
    for mine, theirs in zip(played(learner), expected(learner), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-5)


def test_an_unknown_primitive_goes_to_vmap() -> None:
    before = _batch.calls  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_alike(Learner(unheard_of.bind))
    assert _batch.calls > before + 1  # type: ignore[attr-defined]  # once is vmap(rollout)
    assert not kernel.is_emitted(jax.make_jaxpr(unheard_of.bind)(1.0).jaxpr)


def test_a_primitive_of_somebody_elses_with_a_name_of_jaxs_keeps_its_meaning() -> None:
    """One that is called `square` and is a cumulative sum: not elementwise."""
    square = jex.Primitive("square")
    square.def_abstract_eval(lambda x: x)
    square.def_impl(lambda x: jnp.cumsum(x, axis=-1))
    lowering = mlir.lower_fun(lambda x: jnp.cumsum(x, axis=-1), multiple_results=False)
    mlir.register_lowering(square, lowering)
    moved = lambda args, axes: (square.bind(jnp.moveaxis(args[0], axes[0], 0)), 0)  # noqa: E731
    batchers.primitive_batchers[square] = moved  # type: ignore[index]
    got = jax.jit(batching.runs_last(square.bind, [True], RUNS))(X)
    np.testing.assert_array_equal(got, np.cumsum(X, axis=0))
    assert not kernel.is_emitted(jax.make_jaxpr(square.bind)(X).jaxpr)


def test_small_integers_index_large_arrays() -> None:
    table = jnp.arange(300.0)
    index = jnp.array([0, 7, 255], jnp.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = batching.runs_last(lambda i: lax.dynamic_index_in_dim(table, i), [True], RUNS)
        np.testing.assert_array_equal(read(index)[0], [0, 7, 255])


def test_a_bitcast_that_joins_bytes_stays_on_the_fast_path() -> None:
    words = jnp.arange(2 * 4 * RUNS, dtype=jnp.uint8).reshape(2, 4, RUNS)
    join = lambda x: lax.bitcast_convert_type(x, jnp.float32)  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = batching.runs_last(join, [True], RUNS)(words)
    np.testing.assert_array_equal(got[:, 1], join(words[..., 1]))


def test_a_constant_table_is_read_at_an_index_per_run() -> None:
    """Some versions of JAX keep a constant as an array of the host's."""
    u = jnp.array([0.1, 0.8, 0.99])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        place = batching.runs_last(
            lambda u: jnp.searchsorted(jnp.array([0.7, 0.85, 0.95]), u), [True], RUNS
        )
        np.testing.assert_array_equal(place(u), [0, 1, 3])


@pytest.mark.parametrize("name", sorted(batching.PARAMETERS))
def test_a_renamed_parameter_goes_to_vmap(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the interpreter, a JAX with other names than it knows looks like one with new names."""
    renamed = frozenset(f"new_{word}" for word in batching.PARAMETERS[name]) or frozenset(["new"])
    monkeypatch.setitem(batching.PARAMETERS, name, renamed)
    by_vmap = []
    whole = batching._by_vmap

    def spy(eqn: Any, operands: Any) -> Any:
        by_vmap.append(eqn.primitive.name)
        return whole(eqn, operands)

    monkeypatch.setattr(batching, "_by_vmap", spy)
    function, args = USES[name]
    axes = (-1,) * len(args)
    got = batching.runs_last(function, [True] * len(args), RUNS)(*args)
    wanted = jax.vmap(function, in_axes=axes, out_axes=-1)(*args)
    jax.tree.map(np.testing.assert_array_equal, got, wanted)
    used = {eqn.primitive.name for eqn in jax.make_jaxpr(function)(*(x[..., 0] for x in args)).eqns}
    assert name in by_vmap or name not in used  # `stack` and `unstack` are not in every version


X = jnp.arange(4.0 * RUNS).reshape(4, RUNS)
INDEX = jnp.array([0, 2, 3], jnp.int32)
USES = {
    "broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (2, 4), (1,)), (X,)),
    "reshape": (lambda x: lax.reshape(x, (2, 2)), (X,)),
    "squeeze": (lambda x: lax.squeeze(x[:1], (0,)), (X,)),
    "transpose": (lambda x: x.reshape(2, 2).T, (X,)),
    "stack": (lambda x: jnp.stack([x, x]), (X,)),
    "unstack": (lambda x: jnp.unstack(x), (X,)),
    "concatenate": (lambda x: lax.concatenate([x, x], 0), (X,)),
    "slice": (lambda x: lax.slice(x, (1,), (3,)), (X,)),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i,), (1,)), (X, INDEX)),
    "dynamic_update_slice": (
        lambda x, i: lax.dynamic_update_slice(x, jnp.ones(1), (i,)),
        (X, INDEX),
    ),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y, c), x[0], x), (X,)),
    "while": (lambda x: lax.while_loop(lambda y: y[0] < 9, lambda y: y * 2 + 1, x), (X,)),
}


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_is_read_off_shapes(reverse: bool) -> None:
    """With constants, several carried values, inputs and outputs, of all numbers of axes."""

    def function(a: Any, x: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            total, table = carry
            return (total + a[0] * y[0], table + y), (total, table[::-1])

        return lax.scan(step, (jnp.zeros(()), a), (x.reshape(2, 2)), reverse=reverse)

    args = (X[:2], X)
    got = batching.runs_last(function, [True, True], RUNS)(*args)
    wanted = jax.vmap(function, in_axes=-1, out_axes=-1)(*args)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6), got, wanted)


def test_a_primitive_with_another_result_than_expected_goes_to_vmap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if a parameter of the same name had come to mean something else."""
    monkeypatch.setattr(batching, "_runs_last", lambda *_: [jnp.zeros((RUNS, 9))])
    function = batching.runs_last(lambda x, y: jnp.concatenate([x, y]), [True, False], RUNS)
    got = function(X, jnp.arange(5.0))
    assert got.shape == (9, RUNS)
    np.testing.assert_array_equal(got[:, 1], jnp.concatenate([X[:, 1], jnp.arange(5.0)]))


def test_equations_that_cannot_be_taken_apart_cost_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = played(Learner())
    monkeypatch.setattr(blocks, "_players", {})
    monkeypatch.setattr(blocks, "_programs", blocks.make_programs())

    def broken(*_: Any) -> Any:
        raise AttributeError("'NewEquation' object has no attribute 'params'")

    monkeypatch.setattr(batching, "_interpret", broken)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")  # as a user has it
        got = played(Learner())
    assert [str(line.message) for line in said] == [batching.UNKNOWN_JAX]
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-5)


def test_a_mistake_of_the_user_is_not_taken_for_a_new_jax() -> None:
    def mistaken(x: Any) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        batching.runs_last(mistaken, [True], RUNS)(X)
