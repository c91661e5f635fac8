"""Errors of the engine's own functions, over all float32 numbers: `python -m benchmarks.functions`.

In units in the last place (ulp) of float32, against double precision (NumPy, SciPy). All numbers
take some minutes a function; `--stride 211` takes every 211th.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy import special

from jaxbio.engine.backends.native import Native
from jaxbio.engine.game_program import program_of

CHUNK = 1 << 21
LEAST = 2.0**-125  # of what powers of e and 2 are; below it they are 0


def above_least(function: Callable[..., Any]) -> Callable[..., Any]:
    def truth(x: Any) -> Any:
        exact = function(x)
        return np.where(exact < LEAST, 0.0, exact)

    return truth


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {  # ours, the truth
    "exp": (jnp.exp, above_least(np.exp)),
    "log": (jnp.log, np.log),
    "sqrt": (jnp.sqrt, np.sqrt),
    "log1p": (jnp.log1p, np.log1p),
    "expm1": (jnp.expm1, np.expm1),
    "exp2": (jnp.exp2, above_least(np.exp2)),
    "tanh": (jnp.tanh, np.tanh),
    "cosh": (jnp.cosh, np.cosh),
    "sinh": (jnp.sinh, np.sinh),
    "logistic": (lax.logistic, above_least(special.expit)),
    "erf_inv": (lax.erf_inv, special.erfinv),
    "x**0.75": (lambda x: x**0.75, lambda x: np.sqrt(x) * np.sqrt(np.sqrt(x))),
    "x**1.5": (lambda x: x**1.5, lambda x: x * np.sqrt(x)),
    "x**-3": (lambda x: x**-3, lambda x: x**-3.0),
}


class Errors(NamedTuple):
    """worst: the largest error in ulp, at the number `at`; above: the share with more than half an
    ulp and a bit; wrong: numbers whose result is NaN or infinite and should not be, or is not and
    should be.
    """

    worst: float
    at: float
    above: float
    wrong: list[float]


def compiled(function: Callable[..., Any], operands: int = 1) -> Callable[..., np.ndarray]:
    """The function of float32 arrays [n], by machine code."""
    number = jax.ShapeDtypeStruct((), np.float32)
    program = program_of(
        [number] * operands,
        lambda _: [jnp.float32(0)],
        lambda numbers, key, t, carry: [function(*numbers)],
        lambda carry: [*carry, carry[0]],
        lambda numbers, carry: [],
        [number],
        True,
    )
    machine, stops = Native(program), np.array([1], np.int32)

    def call(*x: np.ndarray) -> np.ndarray:
        keys = np.zeros((2, x[0].size), np.uint32)
        return machine.play(list(x), keys, None, 0, stops)[1][0][0]

    return call


def ulps(got: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """float64: how far float32 results are from the truth; 0 where both are the same inf or NaN."""
    with np.errstate(all="ignore"):
        size = np.clip(np.abs(truth), np.finfo(np.float32).tiny, np.finfo(np.float32).max)
        unit = np.exp2(np.floor(np.log2(size)) - 23)
        error = np.abs(got.astype(np.float64) - truth) / unit
    # A truth beyond the largest float32 may be rounded up to infinity.
    beyond = np.abs(truth) >= 2.0**128 - 2.0**103
    same = (np.isnan(got) & np.isnan(truth)) | (np.isinf(got) & beyond & ((got > 0) == (truth > 0)))
    return np.where(same, 0.0, error)


def measure(call: Any, true: Any, chunks: Iterator[np.ndarray]) -> Errors:
    worst, at, above, count, wrong = 0.0, np.nan, 0, 0, []
    for x in chunks:
        with np.errstate(all="ignore"):
            truth = true(x.astype(np.float64))
        error = ulps(call(x), truth)
        odd = ~np.isfinite(error)
        wrong += x[odd][:5].tolist()
        error[odd] = 0
        place = int(np.argmax(error))
        if error[place] > worst:
            worst, at = float(error[place]), float(x[place])
        above, count = above + int((error > 0.501).sum()), count + x.size
    return Errors(worst, at, above / count, wrong[:5])


def all_floats(stride: int = 1) -> Iterator[np.ndarray]:
    """float32 [CHUNK]: every number there is, or one of so many."""
    for first in range(0, 1 << 32, CHUNK * stride):
        last = min(first + CHUNK * stride, 1 << 32)
        yield np.arange(first, last, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*FUNCTIONS], metavar="name")
    parser.add_argument("--stride", type=int, default=1)
    given = parser.parse_args(argv)
    print(f"{'function':10} {'worst ulp':>10} {'at':>14} {'not nearest':>12}  wrong")
    for name in given.names:
        function, true = FUNCTIONS[name]
        found = measure(compiled(function), true, all_floats(given.stride))
        print(
            f"{name:10} {found.worst:10.3f} {found.at:14.6g} {found.above:12.2%}  "
            f"{found.wrong or 'none'}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
