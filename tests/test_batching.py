"""runs_last means what jax.vmap means with the runs on the last axis, whatever the function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxbio.batching import cut, is_native, native, runs_last

K = 3  # runs are 3 too in one half of the tests, so that a confused axis still has a valid shape


class Arg(NamedTuple):
    """One argument of a one-run function; a shared one has no trailing axis of runs."""

    shape: tuple[int, ...] = ()
    kind: str = "float"
    batched: bool = True


X, Y, M = Arg((K,)), Arg((K,)), Arg((K, 4))
SCALAR, INDEX = Arg(), Arg((), "index")
SHARED, SHARED_MATRIX, SHARED_INDEX = (
    Arg((K,), batched=False),
    Arg((K, 4), batched=False),
    Arg((), "index", batched=False),
)
INTS, WORDS, FLAGS = Arg((K,), "int"), Arg((K,), "word"), Arg((K,), "flag")


def sample(arg: Arg, runs: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    shape = (*arg.shape, runs) if arg.batched else arg.shape
    match arg.kind:
        case "float":
            return jnp.asarray(rng.normal(size=shape), jnp.float32)
        case "int":
            return jnp.asarray(rng.integers(-9, 9, size=shape), jnp.int32)
        case "index":  # out of range on both sides
            return jnp.asarray(rng.integers(-7, K + 5, size=shape), jnp.int32)
        case "word":
            return jnp.asarray(rng.integers(0, 2**32, size=shape, dtype=np.uint32))
    return jnp.asarray(rng.integers(0, 2, size=shape), bool)


def both(function: Callable[..., Any], args: tuple[Arg, ...], runs: int) -> tuple[Any, Any]:
    """What jax.vmap makes of the function, and what runs_last does: traced, not yet compiled."""
    values = [sample(arg, runs, seed) for seed, arg in enumerate(args)]
    batched = [arg.batched for arg in args]
    axes = tuple(-1 if is_batched else None for is_batched in batched)
    theirs = jax.vmap(function, in_axes=axes, out_axes=-1, axis_size=runs)(*values)
    return theirs, runs_last(function, batched, runs)(*values)


@functools.cache
def group_results(group: str, runs: int) -> dict[str, tuple[Any, Any]]:
    """All functions of a group in one compiled program."""
    cases = GROUPS[group]
    return jax.jit(lambda: {name: both(*case, runs) for name, case in cases.items()})()


def assert_same(got: Any, expected: Any) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        tolerance = 2e-6 if jnp.issubdtype(mine.dtype, jnp.floating) else 0
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def newton(x: Any) -> Any:
    """A loop whose number of steps differs from run to run."""
    start = (jnp.int32(0), jnp.abs(x) + 1)
    return lax.while_loop(lambda s: s[1] > 0.3, lambda s: (s[0] + 1, s[1] * 0.5), start)


def countdown(i: Any, m: Any, y: Any) -> Any:
    """A loop that reads what it does not change, a number of times that may differ between runs."""

    def step(s: Any) -> Any:
        return s[0] - 1, s[1] + m[s[0]].sum() * y, ~s[2]

    return lax.while_loop(lambda s: (s[0] > 0) & (m[0, 0] < 9), step, (i, y, jnp.bool_(True)))


def scanned(x: Any, y: Any) -> Any:
    """A scan with a carry, outputs and one output that is thrown away."""
    carry, (sums, _) = lax.scan(lambda c, v: (c + v * y.sum(), (c, v)), jnp.float32(0), x)
    return carry, sums


def branches(i: Any, x: Any) -> Any:
    return lax.switch(i, [lambda v: v, lambda v: v * 2, lambda v: v - 1], x)


def plus(carry: Any, x: Any) -> Any:
    return carry + x, carry * x


ELEMENTWISE: dict[str, tuple[Callable[..., Any], tuple[Arg, ...]]] = {
    "mixed ranks": (lambda a, x, m: (a + x, x * a, x[:, None] + m, m / a), (SCALAR, X, M)),
    "batched meets shared": (lambda x, y: (x + y, y - x, jnp.maximum(y, x)), (X, SHARED)),
    "shared scalar": (lambda x, a: x * a + 1, (X, Arg(batched=False))),
    "functions": (lambda x: (jnp.exp(x), jnp.log1p(x * x), jnp.tanh(x), x**3, abs(x) ** 0.5), (X,)),
    "comparisons": (lambda x, y: (x < y, x == y, (x >= y) | (x != x)), (X, Y)),
    "clip": (lambda x, a: (jnp.clip(x, -0.5, 0.5), jnp.clip(x, None, a)), (X, SCALAR)),
    "where": (
        lambda a, x, y: (jnp.where(a > 0, x, y), jnp.where(x > 0, a, y), jnp.where(x > y, x, 0)),
        (SCALAR, X, Y),
    ),
    "select with shared mask": (lambda f, x: jnp.where(f, x, -x), (Arg((K,), "flag", False), X)),
    "casts": (
        lambda x, i: (x.astype(jnp.int32), i.astype(jnp.float32), i.astype(bool)),
        (X, INTS),
    ),
    "integers": (lambda i, j: (i + j, i // 3, i % 5, i * j, -i, jnp.sign(j)), (INTS, INTS)),
    "words": (
        lambda w: ((w << np.uint32(5)) | (w >> np.uint32(27)), w ^ np.uint32(77), ~w),
        (WORDS,),
    ),
    "flags": (lambda f, x: (f & (x > 0), ~f, f | (x < 0), f ^ f), (FLAGS, X)),
    "same-width bitcast": (lambda w: lax.bitcast_convert_type(w >> 9, jnp.float32), (WORDS,)),
}

SHAPES: dict[str, tuple[Callable[..., Any], tuple[Arg, ...]]] = {
    "broadcast": (lambda a, x: (jnp.full((2, K), a), jnp.tile(x, (2, 1)), x[None]), (SCALAR, X)),
    "outer product": (lambda x, y: x[:, None] * y, (X, SHARED)),
    "reshape": (lambda m: (m.reshape(2, 6), m.reshape(-1), m.reshape(4, 1, K)), (M,)),
    "ravel order": (lambda m: m.reshape(-1, order="F"), (M,)),
    "transpose": (lambda m: (m.T, m[None].transpose(2, 0, 1)), (M,)),
    "squeeze": (lambda m: (m[:1].squeeze(0), m[:, 1:2].squeeze(-1)), (M,)),
    "concatenate": (
        lambda x, y, m: (jnp.concatenate([x, y]), jnp.stack([x, y], 1), jnp.hstack([m, m])),
        (X, SHARED, M),
    ),
    "slices": (lambda m, x: (m[1:, ::2], x[-1], m[:, 2], x[::-1], m[::-1, 1:3]), (M, X)),
    "pad": (lambda x: jnp.pad(x, (1, 2), constant_values=7), (X,)),
    "split": (lambda m: jnp.split(m, 2, axis=1), (M,)),
}

REDUCTIONS: dict[str, tuple[Callable[..., Any], tuple[Arg, ...]]] = {
    "sums": (lambda m: (m.sum(), m.sum(0), m.sum(1), m.mean(-1, keepdims=True)), (M,)),
    "extremes": (lambda m: (m.max(), m.min(0), m.argmin(), m.argmax(1), m.argmin(0)), (M,)),
    "products": (lambda x: (jnp.prod(x), jnp.any(x > 0), jnp.all(x > -1)), (X,)),
    "counts": (lambda f: jnp.sum(f, dtype=jnp.int32), (FLAGS,)),
    "cumulative": (
        lambda m: (jnp.cumsum(m, 0), jnp.cumsum(m, 1), lax.cummax(m, 1), jnp.cumprod(m[:, 0])),
        (M,),
    ),
    "reverse cumulative": (lambda m: lax.cumsum(m, 0, reverse=True), (M,)),
    "sorting": (lambda m, i: (jnp.sort(m, 0), jnp.argsort(m, 1), jnp.sort(i)), (M, INTS)),
    "top k": (lambda m: lax.top_k(m, 2), (M,)),
    "products of matrices": (lambda m, y: (m.T @ y, jnp.einsum("ks,ls->kl", m, m)), (M, SHARED)),
    "softmax": (lambda m: (jax.nn.softmax(m, 0), jax.nn.logsumexp(m, axis=1)), (M,)),
}

ONE_INDEX: dict[str, tuple[Arg, Callable[..., Any]]] = {
    "read a row": (M, lambda m, i: lax.dynamic_slice(m, (i, 0), (1, 4))),
    "read an entry": (M, lambda m, i: lax.dynamic_slice(m, (i, i), (1, 1))),
    "read a block": (M, lambda m, i: lax.dynamic_slice(m, (i, i), (2, 3))),
    "read a column": (M, lambda m, i: lax.dynamic_index_in_dim(m, i, 1)),
    "read without the axis": (M, lambda m, i: lax.dynamic_index_in_dim(m, i, keepdims=False)),
    "write a row": (M, lambda m, i: lax.dynamic_update_slice(m, m[:1] * 2, (i, 0))),
    "write an entry": (M, lambda m, i: lax.dynamic_update_slice(m, m[:1, :1] * 2, (i, i))),
    "write a block": (M, lambda m, i: lax.dynamic_update_slice(m, m[:2, :2] * 2, (i, 1))),
    "m[i]": (M, lambda m, i: m[i]),
    "m[:, i]": (M, lambda m, i: m[:, i]),
    "m.at[i].add": (M, lambda m, i: m.at[i].add(1.0)),
    "m.at[i, 2].set": (M, lambda m, i: m.at[i, 2].set(9.0)),
    "m.at[:, i].multiply": (M, lambda m, i: m.at[:, i].multiply(2.0)),
    "integers": (INTS, lambda x, i: x.at[i].add(2)),
    "flags": (FLAGS, lambda x, i: x.at[i].set(True)),
    "shared table": (
        SHARED_MATRIX,
        lambda m, i: (m[i], lax.dynamic_index_in_dim(m, i), m.at[i].add(1.0)),
    ),
    "write into a shared table": (
        SHARED,
        lambda x, i: lax.dynamic_update_index_in_dim(x, jnp.float32(5), i, 0),
    ),
}
INDEXING: dict[str, tuple[Callable[..., Any], tuple[Arg, ...]]] = {
    f"{name}, {whose} index": (function, (x, index))
    for whose, index in (("own", INDEX), ("shared", SHARED_INDEX))
    for name, (x, function) in ONE_INDEX.items()
} | {
    "gather of many": (lambda m, i: jnp.take(m, jnp.abs(i) % K, axis=0), (M, INTS)),
    "take along": (lambda m, i: jnp.take_along_axis(m, jnp.abs(i)[:, None] % 4, 1), (M, INTS)),
    "scatter of many": (lambda x, i: x.at[jnp.abs(i) % K].add(1.0), (X, INTS)),
    "batched update of shared table": (
        lambda m, x, i: lax.dynamic_update_slice(m, x[:1, None], (i, 0)),
        (SHARED_MATRIX, X, SHARED_INDEX),
    ),
    "shared update of batched table": (
        lambda m, y, i: lax.dynamic_update_slice(m, y[None, :1], (i, i)),
        (M, SHARED, INDEX),
    ),
    "two kinds of index": (
        lambda m, i, j: lax.dynamic_slice(m, (i, j), (1, 1)),
        (M, INDEX, SHARED_INDEX),
    ),
}

CONTROL: dict[str, tuple[Callable[..., Any], tuple[Arg, ...]]] = {
    "while": (newton, (SCALAR,)),
    "while with constants": (countdown, (INDEX, M, SHARED)),
    "while that all runs leave together": (countdown, (SHARED_INDEX, M, SHARED)),
    "fori": (lambda x: lax.fori_loop(0, 4, lambda i, s: s + x * i, x), (X,)),
    "scan": (scanned, (X, Y)),
    "scan over shared": (scanned, (SHARED, Y)),
    "cond": (lambda a, x: lax.cond(a > 0, lambda v: v + 1, lambda v: v * 2, x), (SCALAR, X)),
    "shared cond": (
        lambda a, x: lax.cond(a > 0, lambda v: v + 1, lambda v: v * 2, x),
        (Arg(batched=False), X),
    ),
    "switch": (branches, (INDEX, X)),
    "nested jit": (lambda x, y: jax.jit(lambda a, b: (a + b, b))(x, y), (X, SHARED)),
    "inner vmap": (lambda m: jax.vmap(lambda row: row[0] + row.sum())(m), (M,)),
    "map": (lambda m: lax.map(lambda row: row.max(), m), (M,)),
    "relu": (lambda x: (jax.nn.relu(x), jax.nn.silu(x), jax.nn.softplus(x)), (X,)),
    "gradient": (lambda x: jax.grad(lambda v: jnp.sum(jax.nn.relu(v) ** 2))(x), (X,)),
    "checkpoint": (lambda x: jax.checkpoint(lambda v: jnp.sin(v) * 2)(x), (X,)),
    "barrier": (lambda x, y: lax.optimization_barrier((x * 2, y)), (X, SHARED)),
    "random": (
        lambda w: jax.random.uniform(jax.random.wrap_key_data(w[:2]), (4,)),
        (WORDS,),
    ),
}

SCANS: dict[str, tuple[Callable[..., Any], tuple[Arg, ...]]] = {
    "shared start that becomes batched": (
        lambda m, y: lax.scan(lambda c, row: (c + row[:K], c.sum()), y, m), (M, SHARED)
    ),
    "nothing carried": (lambda m: lax.scan(lambda c, row: (c, row.max()), None, m)[1], (M,)),
    "nothing scanned": (lambda x: lax.scan(lambda c, _: (c * 0.5, None), x, length=4)[0], (X,)),
    "reverse": (
        lambda m, y: lax.scan(lambda c, row: (c - row.sum() * y, c), y, m, reverse=True),
        (M, SHARED),
    ),
    "unrolled": (lambda x: lax.scan(lambda c, v: (c * v, c + v), 1.0, x, unroll=2), (X,)),
    "only shared values": (lambda x, y: (x, jnp.cumsum(y), lax.scan(plus, 0.0, y)), (X, SHARED)),
    "scan in a scan": (lambda m: lax.scan(lambda c, r: lax.scan(plus, c, r), 0.0, m), (M,)),
    "read and write in a scan": (
        lambda x, i: lax.scan(lambda c, v: (c.at[i].add(v), c[i]), x, x), (X, INDEX)
    ),
    "loop of steps": (
        lambda x, y: lax.fori_loop(0, 3, lambda i, s: (s[1], s[0] + y * i), (x, y))[0], (X, SHARED)
    ),
    "cut": (lambda x, y: cut((x * 2, {"y": y + 1}))[1]["y"] + x, (X, SHARED)),
    "cut in a scan": (lambda x, y: lax.scan(lambda c, v: (cut(c + v), y), 0.0, x), (X, SHARED)),
}  # fmt: skip

GROUPS = {
    "elementwise": ELEMENTWISE,
    "shapes": SHAPES,
    "reductions": REDUCTIONS,
    "indexing": INDEXING,
    "control": CONTROL,
    "scans": SCANS,
}
EVERY = [(group, name) for group, cases in GROUPS.items() for name in cases]


@pytest.mark.parametrize("runs", [K, 7])
@pytest.mark.parametrize(("group", "name"), EVERY)
def test_same_as_vmap(group: str, name: str, runs: int) -> None:
    expected, got = group_results(group, runs)[name]
    assert_same(got, expected)


def test_indices_reach_both_sides_of_the_range() -> None:
    index = np.concatenate([np.ravel(sample(INDEX, runs, 1)) for runs in (K, 7)])
    assert (index < 0).any()
    assert (index >= K).any()
    assert ((index >= 0) & (index < K)).any()


def test_bitcast_to_another_width() -> None:
    expected, got = both(lambda w: lax.bitcast_convert_type(w, jnp.uint8), (WORDS,), 4)
    assert_same(got, expected)


def test_large_unsigned_index_is_clamped_to_the_end() -> None:
    function = lambda x, i: lax.dynamic_slice(x, (i,), (1,))  # noqa: E731
    index = jnp.full(4, 2**31 + 5, jnp.uint32)
    got = runs_last(function, (True, True), 4)(jnp.arange(12.0).reshape(K, 4), index)
    np.testing.assert_array_equal(got, [[8.0, 9.0, 10.0, 11.0]])


def test_outputs_without_a_batch_are_spread() -> None:
    table = jnp.arange(K)
    out = runs_last(lambda x, y: (y + 1, jnp.int32(4), x, table), (True, False), 5)(
        jnp.zeros((2, 5)), jnp.arange(3)
    )
    assert [leaf.shape for leaf in out] == [(3, 5), (5,), (2, 5), (K, 5)]
    np.testing.assert_array_equal(out[0], np.repeat([[1], [2], [3]], 5, axis=1))
    np.testing.assert_array_equal(out[1], [4] * 5)
    np.testing.assert_array_equal(out[3], np.repeat(np.arange(K)[:, None], 5, axis=1))


def test_trees_and_missing_leaves_keep_their_structure() -> None:
    def function(tree: dict[str, Any]) -> dict[str, Any]:
        return {"sum": tree["a"] + tree["b"][0], "none": None, "pair": (tree["a"], tree["b"])}

    tree = {"a": jnp.ones(4), "b": [jnp.arange(8.0).reshape(2, 4)]}
    out = runs_last(function, (True,), 4)(tree)
    assert out["none"] is None
    np.testing.assert_array_equal(out["sum"], 1 + np.arange(8.0).reshape(2, 4))
    assert jax.tree.structure(out["pair"][1]) == jax.tree.structure(tree["b"])


def test_a_loop_around_the_batched_function() -> None:
    """As the runner uses it: the batch inside, a compiled loop outside."""
    step = lambda t, x: x.at[t % K].add(x.sum() * 0.1)  # noqa: E731
    batched = runs_last(step, (False, True), 4)
    start = jnp.arange(4.0 * K).reshape(K, 4)
    got = jax.jit(lambda x: lax.fori_loop(0, 9, batched, x))(start)
    one = jax.vmap(lambda x: lax.fori_loop(0, 9, step, x), in_axes=-1, out_axes=-1)
    np.testing.assert_allclose(got, one(start), rtol=1e-5)


def walls(function: Callable[..., Any], *args: Any) -> int:
    """How many conditionals a function is made of."""
    return str(jax.make_jaxpr(function)(*args)).count("cond[")


def test_a_cut_is_a_wall_in_native_mode_only() -> None:
    def stages(x: Any, y: Any) -> Any:
        first, shared = cut((jnp.sin(x), y * 2))
        return cut(first * shared.sum()), shared

    x, y = jnp.arange(4.0 * K).reshape(K, 4), jnp.arange(1.0 * K)
    batched = runs_last(stages, (True, False), 4)

    def in_native_mode(x: Any, y: Any, true: Any) -> Any:
        with native(true):
            assert is_native()
            return batched(x, y)

    assert not is_native()
    assert walls(batched, x, y) == 0
    assert walls(in_native_mode, x, y, True) == 2
    got, expected = jax.jit(in_native_mode)(x, y, True), jax.jit(batched)(x, y)
    assert not is_native()
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    gone, spread = jax.jit(in_native_mode)(x, y, False)  # what a wall would say: it is one
    assert not gone.any()
    np.testing.assert_array_equal(spread, expected[1])


def test_writes_at_an_index_per_run_in_native_mode() -> None:
    """One by one in a loop there, by a scatter elsewhere: the same numbers."""

    def write(m: Any, x: Any, i: Any) -> Any:
        one = lax.dynamic_update_index_in_dim(m, x, i, 0)
        return one, lax.dynamic_update_slice(m, x[None, :1], (i, i))

    args = [sample(arg, 7, seed) for seed, arg in enumerate((Arg((K, 4)), Arg((4,)), INDEX))]
    batched = runs_last(write, (True,) * 3, 7)

    def in_native_mode(true: Any, *args: Any) -> Any:
        with native(true):
            return batched(*args)

    assert "scatter" in str(jax.make_jaxpr(batched)(*args))
    assert "scatter" not in str(jax.make_jaxpr(in_native_mode)(True, *args))
    assert_same(jax.jit(in_native_mode)(True, *args), jax.jit(batched)(*args))


def test_a_wrong_number_of_flags_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        runs_last(lambda x, y: x + y, (True,), 3)(jnp.zeros(3), jnp.zeros(3))
