"""GPU: a whole call as one kernel, through Pallas and Triton. One run is one thread.

Nothing goes to and fro between host and device in a call: the kernel itself goes from stop to stop
and from round to round, with what is carried in registers and the memories next to each other for
the runs of a block. In this file a block is what CUDA calls so, the threads that are started
together: BLOCK runs, of which a call plays many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio.engine.arrays import is_small
from jaxbio.engine.backends.jnp import Vectors
from jaxbio.engine.backends.vectors import (
    OPERATIONS,
    Array,
    Evaluator,
    outside_of,
    padded_stops,
)
from jaxbio.engine.game_program import GameProgram
from jaxbio.engine.program import BOOL, Memory

# A block is one warp. Blocks wait for nobody, so `most` and `any` need no shared memory; few runs
# still reach every multiprocessor (4,096 runs are 128 blocks, an H100 has 132); and the 32 blocks
# that a multiprocessor holds are what its registers hold anyway with 64 or more a thread.
BLOCK = 32
WARPS = 1
DIFFERENT = 16  # see `agrees`


class Unavailable(Exception):  # noqa: N818
    """This JAX has no Pallas with Triton."""


def _pallas() -> tuple[Any, Any]:
    """The two modules of Pallas. Not part of what JAX promises to keep, so looked for when used."""
    try:
        from jax.experimental import pallas
        from jax.experimental.pallas import triton
    except ImportError as error:
        raise Unavailable(f"JAX {jax.__version__} has no Pallas with Triton: {error}") from error
    return pallas, triton


def _extreme(better: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """The larger or the smaller number; NaN if either is: Triton's own drop it."""

    def chosen(x: Array, y: Array) -> Array:
        found = lax.select(better(x, y), x, y)
        return lax.select(lax.ne(x, x), x, found) if x.dtype.kind == "f" else found

    return chosen


def _negated(x: Array) -> Array:
    """-x. Triton's own is 0 - x, which gives 0 and not -0 for x = 0."""
    return lax.mul(x, lax.full_like(x, -1)) if x.dtype.kind == "f" else lax.neg(x)


OF_TRITON = OPERATIONS | {"max": _extreme(lax.gt), "min": _extreme(lax.lt), "neg": _negated}


def _repeated(turn: Callable[[Any], Any], start: Any) -> Any:
    """As `while_first`, in loops whose length is known when they begin: XLA's compiler of Triton
    crashes on others. Each of them has eight times as many turns as the one before, or none.
    """

    def turned(_: Array, carry: Any) -> Any:
        return lax.cond(carry[0], turn, lambda carry: carry, carry)

    def loop(i: Array, carry: Any) -> Any:
        turns = lax.select(carry[0], lax.shift_left(np.int32(1), 3 * i), np.int32(0))
        return lax.fori_loop(np.int32(0), turns, turned, carry)

    return lax.fori_loop(np.int32(0), np.int32(11), loop, start)


class References:
    """Memories as references that a kernel reads and writes: [size, block], or [size] shared."""

    def __init__(self, references: dict[Memory, Any]) -> None:
        self.references = references

    def load(self, memory: Memory, index: Array) -> Array:
        return self.references[memory][self._place(memory, index)]

    def store(self, memory: Memory, index: Array, value: Array) -> None:
        self.references[memory][self._place(memory, index)] = value

    @staticmethod
    def _place(memory: Memory, index: Array) -> tuple[Any, ...]:
        if not memory.per_run:
            return (index,)
        return (index, slice(None) if index.ndim == 0 else lax.iota(np.int32, BLOCK))

    def taken(self, written: Sequence[Memory]) -> list[Array]:
        return []

    def given(self, written: Sequence[Memory], arrays: list[Array]) -> None:
        pass


class Kernel:
    """Plays blocks of a program's game. The state: words of the carry uint32 [n, runs], and
    memories [blocks, size, BLOCK]; runs up to a multiple of BLOCK.

    interpret: play with JAX itself what the kernel would do, on any device: for tests.
    """

    name = "pallas"
    pace = 1 << 30  # rounds of all runs that a first call plays

    def __init__(self, program: GameProgram, interpret: bool = False) -> None:
        self.program, self.interpret = program, interpret
        self.pallas, self.triton = _pallas()
        self.tables = [np.asarray(data).reshape(-1) for _, data in program.tables]
        self.call = jax.jit(self._call, donate_argnums=4)

    def fresh(self, runs: int) -> tuple[Array, list[Array]]:
        """What so many runs carry from one call to the next."""
        blocks, carry = -(-runs // BLOCK), self.program.carry
        return (
            jnp.zeros((len(carry.scalars), blocks * BLOCK), jnp.uint32),
            [jnp.zeros((blocks, memory.size, BLOCK), memory.dtype) for memory in carry.memories],
        )

    def state_types(self, runs: int) -> Any:
        """The types of what `fresh` gives."""
        return jax.eval_shape(lambda: self.fresh(runs))

    restored = staticmethod(jax.device_put)

    def play(
        self, numbers: list[Any], keys: Any, state: Any, last: int, stops: np.ndarray
    ) -> tuple[Any, list[np.ndarray], list[np.ndarray]]:
        """As `native.Native.play`; a state that is given is used up."""
        runs, kept = keys.shape[-1], state is not None
        state = self.fresh(runs) if state is None else state
        arguments = self.arguments(numbers, keys, last, stops)
        state, outputs, facts = self.call(*arguments, state)
        outputs = [np.asarray(one)[: len(stops), :runs] for one in outputs]
        return (state if kept else None), outputs, [np.asarray(one)[:runs] for one in facts]

    def arguments(self, numbers: list[Any], keys: Any, last: int, stops: np.ndarray) -> tuple:
        """Those of `call` before the state, made by the host: the call itself is the kernel.

        (words of the numbers uint32 [n] or [n, runs]; memories of the numbers; keys uint32
        [2, runs]; int32: 0, the round that was the last, how many stops there are, the stops)
        """
        given, room = self.program.numbers, -keys.shape[-1] % BLOCK
        leaves = [
            _rows(leaf, dtype, shape, self.program.per_run, room)
            for leaf, dtype, shape in zip(numbers, given.dtypes, given.shapes, strict=True)
        ]
        small = [_words(rows) for rows in leaves if is_small(rows.shape[:1])]
        # One word more, as no array of a kernel may be empty.
        filler = np.zeros((1, keys.shape[-1] + room) if self.program.per_run else 1, np.uint32)
        words = np.concatenate([*small, filler])
        memories = [self._blocked(leaves[memory.leaf]) for memory in given.memories]
        keys = _padded(np.asarray(keys, np.uint32), room)
        span = np.concatenate([np.array([0, last, len(stops)], np.int32), padded_stops(stops)])
        return words, memories, keys, span

    def _blocked(self, rows: np.ndarray) -> np.ndarray:
        """[size, runs] -> [blocks, size, BLOCK]; what is shared stays [size]."""
        if not self.program.per_run:
            return rows
        return np.ascontiguousarray(rows.reshape(len(rows), -1, BLOCK).swapaxes(0, 1))

    def _call(self, words: Array, numbers: Any, keys: Array, span: Array, state: Any) -> Any:
        """One launch: the next state, the outputs [stops, runs] each, the facts [runs] each."""
        program, runs = self.program, keys.shape[-1]
        spec, blocks = self.pallas.BlockSpec, runs // BLOCK
        whole = lambda x: spec(x.shape, lambda i: (0,) * x.ndim)  # noqa: E731
        rows = lambda x: spec((x.shape[0], BLOCK), lambda i: (0, i))  # noqa: E731
        block = lambda x: spec((None, x.shape[1], BLOCK), lambda i: (i, 0, 0))  # noqa: E731
        vector = lambda x: spec((BLOCK,), lambda i: (i,))  # noqa: E731
        own = program.per_run
        inputs = [
            (words, rows if own else whole),
            (keys, rows),
            (span, whole),
            *((table, whole) for table in self.tables),
            *((memory, block if own else whole) for memory in numbers),
        ]
        carried = [(state[0], rows), *((memory, block) for memory in state[1])]
        typed = jax.ShapeDtypeStruct
        made = [
            *((typed((span.shape[0] - 3, runs), dtype), rows) for dtype in program.outputs),
            *((typed((runs,), dtype), vector) for dtype in program.facts),
            *((typed((blocks, m.size, BLOCK), m.dtype), block) for m in program.scratch),
        ]
        kernel = self.pallas.pallas_call(
            self._kernel,
            grid=(blocks,),
            in_specs=[place(x) for x, place in [*inputs, *carried]],
            out_specs=[place(x) for x, place in [*carried, *made]],
            out_shape=[typed(x.shape, x.dtype) for x, _ in [*carried, *made]],
            input_output_aliases={len(inputs) + i: i for i in range(len(carried))},
            compiler_params=self.triton.CompilerParams(num_warps=WARPS, num_stages=1),
            interpret=self.interpret,
        )
        found = kernel(*(x for x, _ in [*inputs, *carried]))
        state, outputs, facts, _ = _split(
            found, len(carried), len(program.outputs), len(program.facts)
        )
        return (state[0], list(state[1:])), outputs, facts

    # --- what one thread does

    def _kernel(self, *references: Any) -> None:
        program, parts = self.program, self.program.parts
        carry, given = program.carry, program.numbers
        counts = (3, len(self.tables), len(given.memories), 1 + len(carry.memories), 1)
        fixed, tables, numbers, _, words, left = _split(references, *counts)
        memories, outputs, facts, scratch = _split(
            left, len(carry.memories), len(program.outputs), len(program.facts)
        )
        number_words, keys, span = fixed
        (state,) = words
        of = zip(
            [*(m for m, _ in program.tables), *given.memories, *carry.memories, *program.scratch],
            [*tables, *numbers, *memories, *scratch],
            strict=True,
        )
        memory = References(dict(of))

        def read(kind: str, place: int) -> Array:
            if kind == "key":
                return keys[place, :]
            word = number_words[(place, slice(None)) if program.per_run else place]
            return _from_word(word, given.scalars[place][2])

        # Read before the first round, not in every one: what depends on them alone leaves the loop.
        ahead = {
            param: read(*param)
            for param in outside_of(parts["round"])
            if param[0] in ("number", "key")
        }

        def part(name: str, t: Any, scalars: Sequence[Array]) -> list[Array]:
            def outside(kind: str, place: int) -> Array:
                if kind in ("number", "key"):
                    return ahead[kind, place] if (kind, place) in ahead else read(kind, place)
                return t if kind == "round" else scalars[place]

            evaluator = Evaluator(BLOCK, memory, outside, OF_TRITON, self.interpret, _repeated)
            return evaluator.part(parts[name])

        def kept() -> list[Array]:
            return [_from_word(state[i, :], dtype) for i, (_, _, dtype) in enumerate(carry.scalars)]

        # A counter that LLVM cannot see through. Else it keeps apart what is added to the round in
        # the many sums of a random number, and every one of them becomes two.
        zero = span[0]

        def one_round(t: Array, scalars: list[Array]) -> list[Array]:
            return part("round", lax.bitwise_or(t, zero), scalars)

        def one_stop(i: Array, carried: Any) -> Any:
            last, scalars = carried
            stop = span[i + 3]
            end = lax.select(stop < 0, -stop, stop)
            scalars = lax.fori_loop(last + 1, end + 1, one_round, scalars)

            def take() -> list[Array]:
                taken = part("take", end, scalars)
                for reference, output in zip(outputs, taken[len(scalars) :], strict=True):
                    reference[i, :] = output
                return taken[: len(scalars)]

            def pause() -> list[Array]:
                for reference, dtype in zip(outputs, program.outputs, strict=True):
                    reference[i, :] = lax.full((BLOCK,), 0, dtype)
                return scalars

            return end, lax.cond(stop > 0, take, pause)

        last = span[1]
        scalars = lax.cond(last == 0, lambda: part("begin", last, []), kept)
        last, scalars = lax.fori_loop(np.int32(0), span[2], one_stop, (last, scalars))
        for i, scalar in enumerate(scalars):
            state[i, :] = _word(scalar)
        for reference, fact in zip(facts, part("summary", last, scalars), strict=True):
            reference[:] = fact


# --- is it right?


def agrees(
    program: GameProgram,
    numbers: list[Any],
    keys: np.ndarray,
    rounds: int = 128,
    interpret: bool = False,
) -> str | None:
    """None if the kernel plays a few runs as plain JAX does, in two calls; else why it cannot be
    used, in a sentence. For the first use on a device that nobody has tested.

    A device divides and takes roots a little differently, and adds a product in one step: a choice
    that hangs on the last bit may fall otherwise, and its run is another one from there on. So one
    run in DIFFERENT may differ; of a kernel that is wrong, most do.
    """
    keys = np.asarray(keys)[:, : 2 * BLOCK]
    runs, stops = keys.shape[1], (rounds // 2, rounds)
    if program.per_run:
        numbers = [np.asarray(leaf)[..., :runs] for leaf in numbers]

    def played(machine: Any) -> list[np.ndarray]:
        state, found, last, facts = machine.fresh(runs), [], 0, []
        for stop in stops:
            state, outputs, facts = machine.play(
                numbers, keys, state, last, np.array([stop], np.int32)
            )
            found, last = [*found, *(output[0] for output in outputs)], stop
        return [*found, *facts]

    try:
        mine = played(Kernel(program, interpret))
    except Exception as error:  # of a compiler or a driver: whatever it is, there is another way
        reason = str(error).strip().partition("\n")[0]
        return f"the kernel cannot be compiled or run here ({type(error).__name__}: {reason})"
    wrong = np.zeros(runs, bool)
    for one, other in zip(mine, played(Vectors(program)), strict=True):
        wrong |= ~np.isclose(one, other, rtol=1e-4, atol=1e-4, equal_nan=True)
    if DIFFERENT * wrong.sum() > runs:
        return f"{wrong.sum()} of {runs} runs of the kernel differ from those of plain JAX"
    return None


# --- words: numbers of any type in 32 bits


def _word(x: Array) -> Array:
    if x.dtype == BOOL:
        return lax.convert_element_type(x, np.uint32)
    return lax.bitcast_convert_type(x, np.uint32)


def _from_word(word: Array, dtype: np.dtype) -> Array:
    return word != 0 if dtype == BOOL else lax.bitcast_convert_type(word, dtype)


def _words(rows: np.ndarray) -> np.ndarray:
    return rows.astype(np.uint32) if rows.dtype == BOOL else rows.view(np.uint32)


def _rows(
    leaf: Any, dtype: np.dtype, shape: tuple[int, ...], per_run: bool, room: int
) -> np.ndarray:
    """A leaf of the numbers as [entries], or [entries, runs] up to a multiple of BLOCK."""
    array, entries = np.ascontiguousarray(leaf, dtype), math.prod(shape)
    if not per_run:
        return array.reshape(entries)
    return _padded(array.reshape(entries, array.shape[-1]), room)


def _padded(rows: np.ndarray, room: int) -> np.ndarray:
    """[n, runs] with the last run again where there is room."""
    return np.pad(rows, ((0, 0), (0, room)), mode="edge")


def _split(items: Sequence[Any], *counts: int) -> list[list[Any]]:
    """The first so many items, the next so many, and what is left."""
    found, items = [], list(items)
    for count in counts:
        found.append(items[:count])
        items = items[count:]
    return [*found, items]
