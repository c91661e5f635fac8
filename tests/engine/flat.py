"""Any one-run function, flattened and played by machine code, beside what jax.vmap makes of it.

What every run has of its own is given to the program in what it carries (and must still be there
afterwards); what all runs share are numbers of the game. Or all are numbers, one per run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio.engine.arrays import is_small
from jaxbio.engine.backends.layout import WIDTH, WORD
from jaxbio.engine.backends.native import Native
from jaxbio.engine.backends.single import Code, Function
from jaxbio.engine.game_program import GameProgram, program_of
from jaxbio.engine.single import single_program


def types_of(arrays: Sequence[Any]) -> list[Any]:
    return [jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype) for x in arrays]


def program_of_step(
    step: Callable[[list[Any], list[Any]], Any], shared: list[Any], own: list[Any], per_run: bool
) -> GameProgram:
    """The program whose round is step(numbers, carry) -> carry. shared, own: types of one run."""
    return program_of(
        shared,
        lambda _: [jnp.zeros(x.shape, x.dtype) for x in own],
        lambda numbers, key, t, carry: step(numbers, carry),
        lambda carry: carry,
        lambda numbers, carry: [],
        own,
        per_run,
    )


def _places(machine: Native) -> list[tuple[int, int]]:
    """Where each leaf of the carry lies in the state of a vector: (first word, entries)."""
    carry, layout = machine.program.carry, machine.layout
    memories = {memory.leaf: layout.state[memory] // WORD for memory in carry.memories}
    found, scalars = [], 0
    for leaf, shape in enumerate(carry.shapes):
        size = int(np.prod(shape))
        found.append((memories.get(leaf, scalars * WIDTH), size))
        scalars += size if is_small(shape) else 0
    return found


def _write(machine: Native, state: np.ndarray, carry: Sequence[np.ndarray]) -> None:
    """carry: [..., runs]; runs beyond the last are copies of it."""
    words = state.view(np.uint32)
    for (first, size), leaf in zip(_places(machine), carry, strict=True):
        if size:
            rows = np.ascontiguousarray(leaf).reshape(size, -1)
            rows = rows.astype(np.uint32) if rows.dtype == bool else rows.view(np.uint32)
            rows = np.pad(rows, ((0, 0), (0, len(state) * WIDTH - rows.shape[1])), mode="edge")
            rows = rows.reshape(size, len(state), WIDTH).transpose(1, 0, 2)
            words[:, first : first + size * WIDTH] = rows.reshape(len(state), -1)


def _read(machine: Native, state: np.ndarray, runs: int) -> list[np.ndarray]:
    words, carry, found = state.view(np.uint32), machine.program.carry, []
    places = zip(_places(machine), carry.shapes, carry.dtypes, strict=True)
    for (first, size), shape, dtype in places:
        rows = words[:, first : first + size * WIDTH].reshape(len(state), size, WIDTH)
        rows = rows.transpose(1, 0, 2).reshape(size, len(state) * WIDTH)[:, :runs].copy()
        rows = rows != 0 if dtype.kind == "b" else rows.view(dtype)
        found.append(rows.reshape(*shape, runs))
    return found


def play_carry(
    machine: Native, numbers: Sequence[Any], carry: Sequence[Any], runs: int, rounds: int = 1
) -> list[np.ndarray]:
    """What is carried after so many rounds. carry: [..., runs]."""
    state = machine.fresh(runs)
    state[:] = 0xCD  # what nobody has written is not 0
    _write(machine, state, carry)
    keys, stops = np.zeros((2, runs), np.uint32), np.array([-1 - rounds], np.int32)
    machine.play([np.asarray(x) for x in numbers], keys, state, 1, stops)
    return _read(machine, state, runs)


def flat(
    function: Callable[..., Any],
    args: Sequence[Any],
    batched: Sequence[bool],
    per_run: bool,
    runs: int,
) -> Any:
    """function(*args) for every run, as a tree [..., runs], by machine code.

    args: [..., runs] where batched, else shared by all runs. per_run: all arguments are numbers of
    the game, one for each run (also those that are the same for all).
    """
    args = [np.asarray(x) for x in args]
    one = types_of([x[..., 0] if own else x for x, own in zip(args, batched, strict=True)])
    outs, tree = jax.tree.flatten(jax.eval_shape(function, *one))
    if per_run:
        everybody = [
            x if own else np.repeat(x[..., None], runs, -1)
            for x, own in zip(args, batched, strict=True)
        ]
        program = program_of_step(
            lambda numbers, _: jax.tree.leaves(function(*numbers)), one, outs, True
        )
        empty = [np.zeros((*out.shape, runs), out.dtype) for out in outs]
        return tree.unflatten(play_carry(Native(program), everybody, empty, runs))
    step, mine, shared = keeping(function, batched)
    kept = [*(one[i] for i in mine), *outs]
    program = program_of_step(step, [one[i] for i in shared], kept, False)
    start = [*(args[i] for i in mine), *(np.zeros((*x.shape, runs), x.dtype) for x in outs)]
    found = play_carry(Native(program), [args[i] for i in shared], start, runs)
    for i, left in zip(mine, found, strict=False):
        np.testing.assert_array_equal(left, args[i], err_msg="an argument was changed")
    return tree.unflatten(found[len(mine) :])


def keeping(function: Callable[..., Any], batched: Sequence[bool]) -> Any:
    """A step(numbers, carry) that keeps the arguments that every run has of its own and puts the
    results behind them; and which arguments these are, and which are shared.
    """
    mine = [i for i, own in enumerate(batched) if own]
    shared = [i for i, own in enumerate(batched) if not own]

    def step(numbers: list[Any], carry: list[Any]) -> list[Any]:
        given = dict(zip(shared, numbers, strict=True)) | dict(zip(mine, carry, strict=False))
        found = function(*(given[i] for i in range(len(batched))))
        return [*carry[: len(mine)], *jax.tree.leaves(found)]

    return step, mine, shared


def alone(
    function: Callable[..., Any], args: Sequence[Any], batched: Sequence[bool], run: int
) -> Any:
    """function(*args) for one of the runs, by the machine code of a run that is alone."""
    pairs = zip(map(np.asarray, args), batched, strict=True)
    one = [x[..., run] if own else x for x, own in pairs]
    outs, tree = jax.tree.flatten(jax.eval_shape(function, *types_of(one)))
    step, mine, shared = keeping(function, batched)
    numbers, start = [one[i] for i in shared], [one[i] for i in mine]
    start += [np.zeros(x.shape, x.dtype) for x in outs]
    code = Code(single_program(step, types_of(numbers), types_of(start)))
    state = code.fresh()
    called = Function(code, state)
    called.raw[:] = b"\xcd" * len(called.raw)  # what nobody has written is not 0
    for leaf, number in enumerate(numbers):
        called.give(leaf, number)
    code.keep(state, start)
    called()
    found = [place.get(state) for place in code.kept]
    for i, left in zip(mine, found, strict=False):
        np.testing.assert_array_equal(left, one[i], err_msg="an argument was changed")
    return tree.unflatten(found[len(mine) :])


def by_vmap(
    function: Callable[..., Any], args: Sequence[Any], batched: Sequence[bool], runs: int
) -> Any:
    axes = tuple(-1 if own else None for own in batched)
    given = [jnp.asarray(x) for x in args]
    return jax.vmap(function, in_axes=axes, out_axes=-1, axis_size=runs)(*given)


def assert_same(got: Any, expected: Any, tolerance: float = 2e-6) -> None:
    """Integers and flags exactly; floats but for contraction of products and sums, which XLA does.

    A sum is as exact as its largest term, which is about 1 in these tests.
    """
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        close = tolerance if np.issubdtype(mine.dtype, np.floating) else 0
        np.testing.assert_allclose(mine, theirs, rtol=close, atol=close)
