"""One-run functions, and the arguments that they are tried with: small arrays, which a program
takes apart, and large ones, which it keeps in memories.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Cases = dict[str, tuple[Callable[..., Any], tuple["Arg", ...]]]


class Size(NamedTuple):
    """x: [rows]; m: [rows, columns]; v: [length]."""

    rows: int
    columns: int
    length: int


SMALL, LARGE = Size(3, 4, 5), Size(12, 30, 100)


class Arg(NamedTuple):
    """One argument of a one-run function. shape: of letters of Size; a shared one has no runs."""

    shape: str = ""
    kind: str = "float"
    batched: bool = True


def sample(arg: Arg, size: Size, runs: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    lengths = {"r": size.rows, "c": size.columns, "n": size.length}
    shape = [lengths[letter] for letter in arg.shape] + [runs] * arg.batched
    match arg.kind:
        case "float":
            return rng.normal(size=shape).astype(np.float32)
        case "positive":
            return rng.uniform(0.1, 2, size=shape).astype(np.float32)
        case "ties":  # few values, with both zeros, infinities and NaN
            values = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 0.5], np.float32)
            return rng.choice(values, size=shape)
        case "int":
            return rng.integers(-9, 9, size=shape).astype(np.int32)
        case "index":  # out of range on both sides
            return rng.integers(-size.rows - 4, 2 * size.rows, size=shape).astype(np.int32)
        case "few":
            return rng.integers(0, 6, size=shape).astype(np.int32)
        case "word":
            return rng.integers(0, 2**32, size=shape, dtype=np.uint32)
    return rng.integers(0, 2, size=shape).astype(bool)


A, X, Y, V, M = Arg(), Arg("r"), Arg("r"), Arg("n"), Arg("rc")
INDEX, FEW = Arg("", "index"), Arg("", "few")
SHARED, SHARED_M, SHARED_V = (
    Arg("r", batched=False),
    Arg("rc", batched=False),
    Arg("n", batched=False),
)
SHARED_A, SHARED_INDEX = Arg(batched=False), Arg("", "index", False)
INTS, WORDS, FLAGS, MANY = Arg("n", "int"), Arg("n", "word"), Arg("n", "flag"), Arg("n", "index")
TIES, TIES_M = Arg("n", "ties"), Arg("rc", "ties")
POSITIVE = Arg("n", "positive")

ELEMENTWISE: Cases = {
    "mixed ranks": (lambda a, x, m: (a + x, x * a, x[:, None] + m, m / a), (A, X, M)),
    "batched meets shared": (lambda x, y: (x + y, y - x, jnp.maximum(y, x)), (V, SHARED_V)),
    "shared scalar": (lambda x, a: x * a + 1, (V, SHARED_A)),
    "functions": (
        lambda x: (jnp.exp(x), jnp.log1p(x * x), jnp.tanh(x), x**3, abs(x) ** 0.5, jnp.expm1(x)),
        (V,),
    ),
    "more functions": (
        lambda x: (jnp.log(x), lax.rsqrt(x), lax.logistic(x), jnp.exp2(x), lax.erf_inv(x - 1.05)),
        (POSITIVE,),
    ),
    "powers": (
        lambda x, y: (
            x**-2, x**1.5, x**0.25, x**-0.75, x**0.3, jnp.power(x, y), x**0, lax.square(x),
        ),
        (POSITIVE, V),
    ),
    "comparisons": (lambda x, y: (x < y, x == y, (x >= y) | (x != x)), (V, SHARED_V)),
    "comparisons of everything": (
        lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y, jnp.isnan(x), jnp.isfinite(x)),
        (TIES, TIES),
    ),
    "extremes of everything": (
        lambda x, y: (jnp.maximum(x, y), jnp.minimum(x, y), jnp.maximum(x, 0.5), jnp.minimum(2, x)),
        (TIES, Arg("n", "ties", False)),
    ),
    "extremes with NaN": (
        lambda x: (jnp.maximum(x, jnp.nan), jnp.minimum(jnp.nan, x)), (V,)
    ),
    "clip": (
        lambda x, a: (jnp.clip(x, -0.5, 0.5), jnp.clip(x, None, a), lax.clamp(a, x, a + 1)),
        (TIES, A),
    ),
    "where": (
        lambda a, x, y: (jnp.where(a > 0, x, y), jnp.where(x > 0, a, y), jnp.where(x > y, x, 0)),
        (A, V, SHARED_V),
    ),
    "select of three": (
        lambda i, x: lax.select_n(jnp.clip(i, 0, 2), x, x * 2, x - 1), (INTS, V)
    ),
    "select with shared mask": (lambda f, x: jnp.where(f, x, -x), (Arg("n", "flag", False), V)),
    "casts": (
        lambda x, i, w, f: (
            x.astype(jnp.int32), i.astype(jnp.float32), i.astype(bool), w.astype(jnp.float32),
            w.astype(jnp.int32), i.astype(jnp.uint32), f.astype(jnp.float32), x.astype(bool),
            f.astype(jnp.uint32),
        ),
        (V, INTS, WORDS, FLAGS),
    ),
    "casts of everything": (lambda x: ((x * 3).astype(jnp.int32), x.astype(bool)), (TIES,)),
    "integers": (
        lambda i, j: (i + j, i // 3, i % 5, i * j, -i, jnp.sign(j), abs(i), i // -4, i**3, i & j),
        (INTS, INTS),
    ),
    "division": (
        lambda i, j: (lax.div(i, j), lax.rem(i, j), i // j, i % j, jnp.divmod(i, 7)),
        (Arg("n", "int"), Arg("n", "int")),
    ),
    "words": (
        lambda w, v: (
            (w << np.uint32(5)) | (w >> np.uint32(27)), w ^ np.uint32(77), ~w, w * v, w - v,
            w // (v % 7), w % (v >> 20), jnp.minimum(w, v), w < v, abs(w), jnp.sign(w),
        ),
        (WORDS, WORDS),
    ),
    "shifts": (
        lambda i, w: (
            lax.shift_left(i, (w % 40).astype(jnp.int32)),
            lax.shift_right_arithmetic(i, (w % 40).astype(jnp.int32)),
            lax.shift_right_logical(i, (w % 40).astype(jnp.int32)),
            lax.shift_right_logical(w, w % 70), lax.shift_right_arithmetic(i, jnp.full_like(i, -1)),
        ),
        (INTS, WORDS),
    ),
    "flags": (lambda f, x: (f & (x > 0), ~f, f | (x < 0), f ^ f, f == (x > 0)), (FLAGS, V)),
    "bitcasts": (
        lambda w, x: (
            lax.bitcast_convert_type(w >> 9, jnp.float32), lax.bitcast_convert_type(x, jnp.int32),
        ),
        (WORDS, V),
    ),
    "rounding": (
        lambda x: (
            jnp.floor(x * 9), jnp.ceil(x * 9), jnp.round(jnp.floor(x * 9) / 2),
            lax.round(jnp.floor(x * 9) / 2, lax.RoundingMethod.AWAY_FROM_ZERO), jnp.trunc(x * 9),
        ),
        (V,),
    ),
    "signs": (lambda x: (jnp.sign(x), abs(x), -x, jnp.copysign(x, -1.0)), (TIES,)),
}  # fmt: skip

SHAPES: Cases = {
    "broadcast": (lambda a, x: (jnp.full((2, 50), a), jnp.tile(x, (2, 1)), x[None]), (A, V)),
    "outer product": (lambda x, y: x[:, None] * y, (X, SHARED)),
    "reshape": (lambda m: (m.reshape(2, -1), m.reshape(-1) * 2, (m * 2).reshape(-1, 1, 2)), (M,)),
    "ravel order": (lambda m: m.reshape(-1, order="F"), (M,)),
    "transpose": (lambda m: (m.T, m[None].transpose(2, 0, 1), (m + 1).T * m.T), (M,)),
    "squeeze": (lambda m: (m[:1].squeeze(0), m[:, 1:2].squeeze(-1)), (M,)),
    "concatenate": (
        lambda x, y, m: (jnp.concatenate([x, y]), jnp.stack([x, y], 1), jnp.hstack([m, m * 2, m])),
        (X, SHARED, M),
    ),
    "stack": (
        lambda v, w: (jnp.stack([v, w * 2]), jnp.stack([v, w], 1), jnp.concatenate([v, v[:0], w])),
        (V, SHARED_V),
    ),
    "slices": (lambda m, v: (m[1:, ::2], v[-1], m[:, 2], v[::-1], m[::-1, 1:3], v[3:0:-1]), (M, V)),
    "pad": (
        lambda v, m: (
            jnp.pad(v, (1, 2), constant_values=7), lax.pad(v, jnp.float32(3), [(-1, 2, 0)]),
            lax.pad(m, jnp.float32(3), [(1, -1, 2), (0, 1, 1)]), jnp.pad(v[:0], 2),
        ),
        (V, M),
    ),
    "split": (lambda m: jnp.split(m, 2, axis=1), (M,)),
    "unstack": (lambda m: jnp.unstack(m), (M,)),
    "roll": (
        lambda v, i, m: (jnp.roll(v, 2), jnp.roll(v, -1) + v, jnp.roll(m, i, axis=1)), (V, FEW, M)
    ),
    "iota": (lambda m: (lax.iota(jnp.float32, 90) * m[0, 0], jnp.tril(m), jnp.arange(7)), (M,)),
    "one hot": (lambda i: (jax.nn.one_hot(i, 5), jax.nn.one_hot(i, 80)), (INDEX,)),
    "empty": (lambda v: (v[:0], v[:0].sum(), jnp.prod(v[:0]), v[:0] * 2), (V,)),
}  # fmt: skip

REDUCTIONS: Cases = {
    "sums": (lambda m: (m.sum(), m.sum(0), m.sum(1), m.mean(-1, keepdims=True), m.var()), (M,)),
    "extremes": (lambda m: (m.max(), m.min(0), m.argmin(), m.argmax(1), m.argmin(0)), (M,)),
    "extremes with ties": (  # what XLA makes of the maximum of many with NaN depends on its mood
        lambda m, i: (m.argmin(1), m.argmax(0), m.argmax(), i.argmin(), i.max(), i.min()),
        (TIES_M, INTS),
    ),
    "extremes of words and flags": (
        lambda w, f: (w.max(), w.min(), w.argmax(), f.argmax(), f.argmin(), f.max()),
        (WORDS, FLAGS),
    ),
    "products": (
        lambda x, i: (jnp.prod(x), jnp.any(x > 3), jnp.all(x > 0), jnp.prod(i)), (POSITIVE, INTS)
    ),
    "bits": (
        lambda w: (
            lax.reduce_and(w | np.uint32(7), (0,)), lax.reduce_or(w >> 1, (0,)),
            lax.reduce_xor(w, (0,)), w.sum(),
        ),
        (WORDS,),
    ),
    "counts": (lambda f: jnp.sum(f, dtype=jnp.int32), (FLAGS,)),
    "cumulative": (
        lambda m, v, i: (
            jnp.cumsum(m, 0), jnp.cumsum(m, 1), lax.cummax(m, 1), lax.cummin(v), jnp.cumsum(i),
            jnp.cumprod(m[:, 0]),
        ),
        (M, V, INTS),
    ),
    "reverse cumulative": (
        lambda m, v: (
            lax.cumsum(m, 0, reverse=True), lax.cummax(m, 1, reverse=True),
            lax.cumprod(v / 2 + 1, reverse=True),
        ),
        (M, V),
    ),
    "products of matrices": (
        lambda m, y, v: (m.T @ y, jnp.einsum("ks,ls->kl", m, m), jnp.dot(v, v), y @ m, v * (v @ v)),
        (M, SHARED, V),
    ),
    "products with batches": (
        lambda m: jnp.einsum("kab,kbc->kac", m[:, :2, None] * m[:, None, :3], m[:, :3, None] + 1),
        (M,),
    ),
    "integer products": (lambda i, j: (jnp.dot(i, j), jnp.outer(i, j[:3])), (INTS, INTS)),
    "softmax": (
        lambda m: (jax.nn.softmax(m, 0), jax.nn.logsumexp(m, axis=1), jax.nn.log_softmax(m)), (M,)
    ),
    "norms": (lambda v: (jnp.linalg.norm(v), jnp.sum(v, where=v > 0), jnp.std(v)), (V,)),
}  # fmt: skip

SORTS: Cases = {
    "sort": (lambda m, i: (jnp.sort(m, 0), jnp.argsort(m, 1), jnp.sort(i)), (M, INTS)),
    "ties": (lambda m, i: (jnp.sort(m, 1), jnp.argsort(m, 0), jnp.argsort(i)), (TIES_M, INTS)),
    "several keys": (lambda i, j, v: lax.sort((i % 3, j % 2, v), num_keys=2), (INTS, INTS, V)),
    "words and flags": (lambda w, f: (jnp.sort(w), jnp.argsort(f)), (WORDS, FLAGS)),
    "top k": (lambda m, i: (lax.top_k(m, 2), lax.top_k(i, 3)), (M, INTS)),
    "top k with ties": (lambda v: lax.top_k(v, 4), (TIES,)),
    "descending": (lambda v: jnp.argsort(v, descending=True), (V,)),
    "median": (lambda m, v: (jnp.median(m), jnp.median(v), jnp.quantile(m, 0.3, axis=1)), (M, V)),
}

ONE_INDEX: dict[str, tuple[Arg, Callable[..., Any]]] = {
    "read a row": (M, lambda m, i: lax.dynamic_slice(m, (i, 0), (1, 4))),
    "read an entry": (M, lambda m, i: lax.dynamic_slice(m, (i, i), (1, 1))),
    "read a block": (M, lambda m, i: lax.dynamic_slice(m, (i, i), (2, m.shape[1] - 1))),
    "read a column": (M, lambda m, i: lax.dynamic_index_in_dim(m, i, 1)),
    "read without the axis": (M, lambda m, i: lax.dynamic_index_in_dim(m, i, keepdims=False)),
    "write a row": (M, lambda m, i: lax.dynamic_update_slice(m, m[:1] * 2, (i, 0))),
    "write an entry": (M, lambda m, i: lax.dynamic_update_slice(m, m[:1, :1] * 2, (i, i))),
    "write a block": (M, lambda m, i: lax.dynamic_update_slice(m, m[:2, :2] * 2, (i, 1))),
    "m[i]": (M, lambda m, i: m[i]),
    "m[:, i]": (M, lambda m, i: m[:, i]),
    "m[i, i]": (M, lambda m, i: m[i, i]),
    "v[i]": (V, lambda v, i: (v[i], v.at[i].get(mode="fill"), v.at[i].get(mode="clip"))),
    "words[i]": (WORDS, lambda w, i: (w[i], w.at[i].get(mode="fill"))),
    "flags[i]": (FLAGS, lambda f, i: (f[i], f.at[i].get(mode="fill"), f.at[i].set(True))),
    "integers[i]": (INTS, lambda x, i: (x.at[i].get(mode="fill", fill_value=-5), x.at[i].add(2))),
    "m.at[i].add": (M, lambda m, i: m.at[i].add(1.0)),
    "m.at[i, 2].set": (M, lambda m, i: m.at[i, 2].set(9.0)),
    "m.at[:, i].multiply": (M, lambda m, i: m.at[:, i].multiply(2.0)),
    "v.at[i]": (
        V,
        lambda v, i: (
            v.at[i].set(3.0), v.at[i].subtract(1.0), v.at[i].min(-0.2), v.at[i].max(0.2),
            v.at[i].divide(3.0), v.at[i].set(5.0, mode="clip"),
        ),
    ),
    "shared table": (
        SHARED_M,
        lambda m, i: (m[i], lax.dynamic_index_in_dim(m, i), m.at[i].add(1.0)),
    ),
    "write into a shared table": (
        SHARED_V,
        lambda v, i: lax.dynamic_update_index_in_dim(v, jnp.float32(5), i, 0),
    ),
    "a constant table": (
        A,
        lambda a, i: (jnp.arange(5.0)[i] * a, jnp.asarray(np.arange(100.0, dtype=np.float32))[i]),
    ),
}  # fmt: skip
INDEXING: Cases = {
    f"{name}, {whose} index": (function, (x, index))
    for whose, index in (("own", INDEX), ("shared", SHARED_INDEX))
    for name, (x, function) in ONE_INDEX.items()
} | {
    "gather of many": (lambda m, i: (m[i], jnp.take(m, abs(i) % 3, axis=1)), (M, MANY)),
    "gather of pairs": (lambda m, i: m[i, i[::-1]], (M, MANY)),
    "take along": (
        lambda m, v: (
            jnp.take_along_axis(m, m.argmin(1)[:, None], 1),
            jnp.take_along_axis(m, jnp.argsort(m, 0), 0), v[jnp.argsort(v)],
        ),
        (M, V),
    ),
    "scatter of many, with duplicates": (
        lambda x, v, i: (
            x.at[i].add(v), v.at[i].add(v), x.at[i].set(v), v.at[i].max(x[0]), v.at[i].min(v),
            v.at[i % 3].multiply(1 + v / 9), v.at[i].set(v, mode="clip"),
        ),
        (X, V, MANY),
    ),
    "scatter of rows": (
        lambda m, i: (m.at[i[:4]].add(m[:1] * 2), m.at[:, i[:2]].set(0.0)), (M, MANY)
    ),
    "scatter of pairs": (lambda m, i, v: m.at[i, abs(i)].add(v), (M, MANY, V)),
    "histogram": (lambda i: jnp.zeros(7, jnp.int32).at[i].add(1), (Arg("n", "few"),)),
    "search": (
        lambda v, a, m: (
            jnp.searchsorted(jnp.sort(v), a), jnp.searchsorted(jnp.sort(v), m[0], side="right"),
        ),
        (V, A, M),
    ),
    "batched update of shared table": (
        lambda m, x, i: lax.dynamic_update_slice(m, x[:1, None], (i, 0)),
        (SHARED_M, X, SHARED_INDEX),
    ),
    "shared update of batched table": (
        lambda m, y, i: lax.dynamic_update_slice(m, y[None, :1], (i, i)), (M, SHARED, INDEX)
    ),
    "known places outside": (
        lambda v, x: (
            lax.dynamic_slice(v, (jnp.int32(200),), (2,)), v.at[jnp.int32(200)].get(mode="clip"),
            v.at[jnp.int32(-300)].get(mode="fill"), lax.dynamic_update_slice(v, x[:2], (-9,)),
            v.at[jnp.array([200, -300, 1])].set(x[:3]), v.at[jnp.array([200])].set(1, mode="clip"),
        ),
        (V, X),
    ),
    "two kinds of index": (
        lambda m, i, j: lax.dynamic_slice(m, (i, j), (1, 1)), (M, INDEX, SHARED_INDEX)
    ),
    "unsigned index": (
        lambda v, w: (
            lax.dynamic_slice(v, (w[0],), (1,)), v.at[w].get(mode="fill"), v.at[w[1]].set(0),
        ),
        (V, WORDS),
    ),
    "a gather inside a batch": (
        lambda m, i: jax.vmap(lambda r, j: r[j])(m, i[: m.shape[0]]), (M, MANY)
    ),
    "a scatter inside a batch": (
        lambda m, i: jax.vmap(lambda r, j: r.at[j].add(2.0))(m, i[: m.shape[0]]), (M, MANY)
    ),
}  # fmt: skip


def newton(a: Any) -> Any:
    """A loop whose number of steps differs from run to run."""
    start = (jnp.int32(0), jnp.abs(a) + 1)
    return lax.while_loop(lambda s: s[1] > 0.3, lambda s: (s[0] + 1, s[1] * 0.5), start)


def countdown(i: Any, m: Any, y: Any) -> Any:
    """A loop that reads what it does not change, a number of times that may differ between runs."""

    def step(s: Any) -> Any:
        return s[0] - 1, s[1] + m[s[0]].sum() * y / 9, ~s[2]

    return lax.while_loop(lambda s: (s[0] > 0) & (m[0, 0] < 9), step, (i, y, jnp.bool_(True)))


def filled(i: Any, v: Any) -> Any:
    """A loop that writes into an array, at another place in each turn."""

    def step(s: Any) -> Any:
        return s[0] - 1, s[1].at[s[0]].add(s[1][s[0] + 1] / 2), s[1]

    return lax.while_loop(lambda s: s[0] > 0, step, (i, v, v * 2))


def bisected(m: Any, y: Any) -> Any:
    """Loops side by side, each with a number of turns of its own, over rows and a table of them."""

    def one(row: Any, high: Any) -> Any:
        def step(s: Any) -> Any:
            turns, low, high, seen = s
            middle = (low + high) / 2
            left = middle > row[0]
            low, high = jnp.where(left, low, middle), jnp.where(left, middle, high)
            return turns + 1, low, high, seen.at[turns % row.size].add(middle)

        start = jnp.int32(0), jnp.float32(-4), high, row
        return lax.while_loop(lambda s: (s[2] - s[1] > abs(row[1])) & (s[0] < 20), step, start)

    return jax.vmap(one)(m, 4 + abs(y))


def scanned(x: Any, y: Any) -> Any:
    """A scan with a carry, outputs and one output that is thrown away."""
    carry, (sums, _) = lax.scan(lambda c, v: (c + v * y[0], (c, v)), jnp.float32(0), x)
    return carry, sums


def branches(i: Any, v: Any) -> Any:
    return lax.switch(i, [lambda v: v, lambda v: v * 2, lambda v: v.at[i].set(7)], v)


def either(a: Any, v: Any) -> Any:
    """Branches that change an array, swap two, and leave them."""
    return lax.cond(
        a > 0, lambda x, y: (x.at[2].add(a), y, x[0]), lambda x, y: (y, x, y[1] * a), v, v * 2
    )


def plus(carry: Any, x: Any) -> Any:
    return carry + x, carry * x


def cut(x: Any) -> Any:
    return x * 2


@jax.custom_vjp
def own_rule(x: Any) -> Any:
    return x * 3


own_rule.defvjp(lambda x: (x * 3, None), lambda _, g: (g * 3,))


CONTROL: Cases = {
    "while": (newton, (A,)),
    "while with constants": (countdown, (INDEX, M, SHARED)),
    "while that all runs leave together": (countdown, (SHARED_INDEX, M, SHARED)),
    "while that writes": (filled, (FEW, V)),
    "while that writes, all runs alike": (filled, (Arg("", "few", False), V)),
    "whiles side by side": (bisected, (M, X)),
    "whiles side by side, all runs alike": (bisected, (SHARED_M, SHARED)),
    "many whiles side by side": (lambda v, w: jax.vmap(newton)(v * w), (V, SHARED_V)),
    "whiles within": (
        lambda m: jax.vmap(lambda r: (jax.vmap(newton)(r), newton(r[0])))(m), (M,)
    ),
    "fori": (lambda v: lax.fori_loop(0, 4, lambda i, s: s + v * i, v), (V,)),
    "fori with bounds": (
        lambda v, i: lax.fori_loop(1, i, lambda j, s: s.at[j].add(s[j - 1]), v), (V, FEW)
    ),
    "fori with shared bounds": (
        lambda v, i: lax.fori_loop(1, i, lambda j, s: s.at[j].add(s[j - 1]), v),
        (V, Arg("", "few", False)),
    ),
    "scan": (scanned, (V, X)),
    "scan over shared": (scanned, (SHARED_V, X)),
    "cond": (lambda a, v: lax.cond(a > 0, lambda x: x + 1, lambda x: x * 2, v), (A, V)),
    "shared cond": (
        lambda a, v: lax.cond(a > 0, lambda x: x + 1, lambda x: x * 2, v), (SHARED_A, V)
    ),
    "cond that writes": (either, (A, V)),
    "shared cond that writes": (either, (SHARED_A, V)),
    "other shared cond that writes": (lambda a, v: either(-a, v), (SHARED_A, V)),
    "switch": (branches, (INDEX, V)),
    "shared switch": (branches, (SHARED_INDEX, V)),
    "known switch": (lambda v: lax.switch(jnp.int32(1), [jnp.exp, lambda x: x + 2], v), (V,)),
    "nested jit": (lambda x, y: jax.jit(lambda a, b: (a + b, b))(x, y), (V, SHARED_V)),
    "a function called cut": (lambda v: jax.jit(cut)(v) + jax.jit(cut)(v + 1), (V,)),
    "inner vmap": (lambda m: jax.vmap(lambda row: row[0] + row.sum())(m), (M,)),
    "map": (lambda m: lax.map(lambda row: row.max(), m), (M,)),
    "relu": (lambda v: (jax.nn.relu(v), jax.nn.silu(v), jax.nn.softplus(v), own_rule(v)), (V,)),
    "gradient": (lambda v: jax.grad(lambda x: jnp.sum(jax.nn.relu(x) ** 2))(v), (V,)),
    "gradient through a softmax": (
        lambda m: jax.grad(lambda x: jnp.sum(jax.nn.softmax(x[::2]) ** 2))(m), (M,)
    ),
    "checkpoint": (lambda v: jax.checkpoint(lambda x: jnp.exp(x) * 2)(v), (V,)),
    "barrier": (lambda x, y: lax.optimization_barrier((x * 2, y)), (V, SHARED_V)),
    "associative scan": (lambda v: lax.associative_scan(jnp.add, v), (V,)),
}  # fmt: skip

SCANS: Cases = {
    "shared start that becomes batched": (
        lambda m, v: lax.scan(lambda c, r: (c + r[0], c.sum()), v, m), (M, SHARED_V)
    ),
    "nothing carried": (lambda m: lax.scan(lambda c, row: (c, row.max()), None, m)[1], (M,)),
    "nothing scanned": (lambda v: lax.scan(lambda c, _: (c * 0.5, None), v, length=4)[0], (V,)),
    "no turn": (lambda v: lax.scan(plus, 0.0, v[:0]), (V,)),
    "reverse": (
        lambda m, y: lax.scan(lambda c, row: (c - row.sum() * y / 9, c), y, m, reverse=True),
        (M, SHARED),
    ),
    "reverse, with rows": (
        lambda m: lax.scan(lambda c, r: (c + r, (r * c, c[0])), m[0], m, reverse=True), (M,)
    ),
    "reverse, many turns": (
        lambda v, m: lax.scan(lambda c, x: (c * 0.5 + x, (c[0], c - x)), m[0], v, reverse=True),
        (V, M),
    ),
    "unrolled": (lambda v: lax.scan(lambda c, x: (c * x, c + x), 1.0, v, unroll=2), (V,)),
    "only shared values": (lambda x, v: (x, jnp.cumsum(v), lax.scan(plus, 0.0, v)), (X, SHARED_V)),
    "scan in a scan": (lambda m: lax.scan(lambda c, r: lax.scan(plus, c, r / 9), 0.0, m), (M,)),
    "scan in a scan, over an array": (
        lambda m: lax.scan(
            lambda c, r: lax.scan(lambda d, x: (d.at[1].add(x / 9), d[0] * x), c + r / 9, r),
            m[0], m,
        ),
        (M,),
    ),
    "read and write in a scan": (
        lambda v, i: lax.scan(lambda c, x: (c.at[i].add(x / 9), c[i]), v, v), (V, INDEX)
    ),
    "loop of steps": (
        lambda v, w: lax.fori_loop(0, 3, lambda i, s: (s[1], s[0] + w * i), (v, w))[0],
        (V, SHARED_V),
    ),
    "two swapped in a scan": (
        lambda v: lax.scan(lambda c, x: ((c[1], c[0].at[1].add(x)), c[0][1]), (v, v * 2), v), (V,)
    ),
    "one that becomes both": (
        lambda v: lax.fori_loop(0, 3, lambda i, s: (s[1], s[1] * 0.5), (v, v[::-1])), (V,)
    ),
    "a turned one": (lambda v: lax.fori_loop(0, 3, lambda i, s: s[::-1] * 0.5 + v, v), (V,)),
}  # fmt: skip

HAZARDS: Cases = {
    "old and new": (lambda v: (v.at[1].set(5), v, v.at[2].add(1)), (V,)),
    "a value that reads the array": (lambda v, i: v.at[i].set(v[::-1].sum() + v[i]), (V, FEW)),
    "a slice into itself": (lambda v: v.at[1:].set(v[:-1]), (V,)),
    "a slice into itself, backwards": (lambda v: v.at[:-1].add(v[1:]), (V,)),
    "all of itself": (lambda v: v.at[::-1].set(v), (V,)),
    "read after write": (
        lambda v, i: (lambda w: (w[i], v[i], w.at[i].multiply(w[0]), w * v))(v.at[i].add(1)),
        (V, FEW),
    ),
    "two views": (
        lambda m: (lambda t: (t.at[0].set(0), m.at[0].set(1), t * 2, m.reshape(-1)))(m.T), (M,)
    ),
    "a view that outlives": (lambda m: (lambda r: (m.at[1].set(3.0), r + 1))(m[1:].T * 2), (M,)),
    "written twice": (lambda v: (lambda w: (w.at[0].set(1), w.at[0].set(2)))(v * 3), (V,)),
    "a chain": (lambda v, i: v.at[i].add(1).at[i].multiply(3).at[0].set(v[i]), (V, FEW)),
    "a copy": (lambda v: (lambda w: (w.at[0].set(1), w))(jnp.array(v, copy=True)), (V,)),
    "a lazy one and its source": (
        lambda v: (lambda w, u: (u.at[0].set(w[0]), w))(v * 2 + 1, v.at[1].add(1)), (V,)
    ),
    "reshaped": (lambda m: (lambda f: (f.at[3].set(9.0), m + 1))(m.reshape(-1)), (M,)),
    "through a jit": (lambda v: (jax.jit(lambda x: x.at[0].set(1))(v), v[0]), (V,)),
    "through a cond": (
        lambda v, a: (lax.cond(a > 0, lambda x: x.at[0].set(1), lambda x: x * 2, v), v),
        (V, SHARED_A),
    ),
}  # fmt: skip

GROUPS = {
    "elementwise": ELEMENTWISE,
    "shapes": SHAPES,
    "reductions": REDUCTIONS,
    "sorts": SORTS,
    "indexing": INDEXING,
    "control": CONTROL,
    "scans": SCANS,
    "hazards": HAZARDS,
}
