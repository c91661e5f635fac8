"""Any device: a program as plain operations of JAX on vectors of runs, in scans of known length.

The host sends off scan after scan and reads nothing back, so a device that is slow to answer is
never waited for. What is compiled is a scan of each of a few lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio.engine.backends.vectors import Array, Evaluator, padded_stops, writes
from jaxbio.engine.game_program import GameProgram
from jaxbio.engine.program import Memory

LENGTHS = (1024, 32, 1)  # rounds of a scan; a call is made of as many as it takes


class Arrays:
    """Memories as arrays of JAX, [size, runs], or [size] where all runs share them.

    active: bool [], stores change something only where it holds; None: always.
    """

    def __init__(self, arrays: dict[Memory, Array], runs: int, active: Array | None = None) -> None:
        self.arrays, self.active = dict(arrays), active
        self.lanes = lax.iota(np.int32, runs)

    def load(self, memory: Memory, index: Array) -> Array:
        array = self.arrays[memory]
        if index.ndim == 0:
            return lax.dynamic_index_in_dim(array, index, 0, keepdims=False)
        place = (index, self.lanes) if memory.per_run else (index,)
        # An index of a program is within its memory.
        return array.at[place].get(mode="promise_in_bounds", wrap_negative_indices=False)

    def store(self, memory: Memory, index: Array, value: Array) -> None:
        if self.active is not None:
            value = jnp.where(self.active, value, self.load(memory, index))
        array = self.arrays[memory]
        if index.ndim == 0:
            self.arrays[memory] = lax.dynamic_update_index_in_dim(array, value, index, 0)
        else:
            self.arrays[memory] = array.at[index, self.lanes].set(
                value,
                mode="promise_in_bounds",
                unique_indices=True,
                wrap_negative_indices=False,
            )

    def taken(self, written: Sequence[Memory]) -> list[Array]:
        return [self.arrays[memory] for memory in written]

    def given(self, written: Sequence[Memory], arrays: list[Array]) -> None:
        self.arrays.update(zip(written, arrays, strict=True))


class Vectors:
    """Plays blocks of a program's game. The state: (scalars of the carry [runs] each, memories)."""

    name = "jnp"
    pace = 1 << 24  # rounds of all runs that a first call plays

    def __init__(self, program: GameProgram) -> None:
        self.program = program
        self.tables = {memory: data.reshape(-1) for memory, data in program.tables}
        self._begin = jax.jit(self._begun, donate_argnums=2)
        self._rounds = jax.jit(self._played, donate_argnums=(2, 3))
        self._summary = jax.jit(self._summed)

    def fresh(self, runs: int) -> tuple[list[Array], list[Array]]:
        """What so many runs carry from one call to the next."""
        carry = self.program.carry
        return (
            [jnp.zeros(runs, dtype) for _, _, dtype in carry.scalars],
            [jnp.zeros((memory.size, runs), memory.dtype) for memory in carry.memories],
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
        given = self.program.numbers.dtypes
        numbers = [jnp.asarray(x, dtype) for x, dtype in zip(numbers, given, strict=True)]
        keys = jnp.asarray(keys, jnp.uint32)
        state = self.fresh(runs) if state is None else state
        if last == 0:
            state = self._begin(numbers, keys, state)
        count, stops = len(stops), padded_stops(stops)
        # One row more than there are stops: for the rounds at which nothing is recorded.
        curve = [jnp.zeros((len(stops) + 1, runs), dtype) for dtype in self.program.outputs]
        end = int(np.max(np.abs(stops), initial=last))
        rows = np.full(end - last, len(stops), np.int32)
        recorded = np.flatnonzero(stops > 0)
        rows[stops[recorded] - last - 1] = recorded
        for first, length in spans(last + 1, end):
            chosen = rows[first - last - 1 :][:length]
            state, curve = self._rounds(numbers, keys, state, curve, np.int32(first), chosen)
        facts = self._summary(numbers, keys, state)
        outputs = [np.asarray(one)[:count] for one in curve]
        return (state if kept else None), outputs, [np.asarray(fact) for fact in facts]

    # --- what is compiled

    def outside(
        self, numbers: list[Array], keys: Array, t: Any, scalars: list[Array]
    ) -> Callable[[str, int], Array]:
        """Where an evaluator finds numbers: of the game, of the key, of the round, of the carry."""
        shape = (-1, keys.shape[-1]) if self.program.per_run else (-1,)

        def found(kind: str, place: int) -> Array:
            if kind == "number":
                leaf, entry, _ = self.program.numbers.scalars[place]
                return numbers[leaf].reshape(shape)[entry]
            if kind == "key":
                return keys[place]
            return t if kind == "round" else scalars[place]

        return found

    def memories(
        self, numbers: list[Array], arrays: list[Array], scratch: list[Array], runs: int
    ) -> Arrays:
        """All memories of the program."""
        given, shape = self.program.numbers, (-1, runs) if self.program.per_run else (-1,)
        found = {memory: jnp.asarray(data) for memory, data in self.tables.items()}
        found |= {memory: numbers[memory.leaf].reshape(shape) for memory in given.memories}
        found |= dict(zip(self.program.carry.memories, arrays, strict=True))
        found |= dict(zip(self.program.scratch, scratch, strict=True))
        return Arrays(found, runs)

    def scratch(self, part: str, runs: int) -> list[Array]:
        """Room for what a part works with; next to none for memories that it leaves alone."""
        used = set(writes(self.program.parts[part]))
        return [
            jnp.zeros((memory.size if memory in used else 0, runs), memory.dtype)
            for memory in self.program.scratch
        ]

    def _begun(self, numbers: list[Array], keys: Array, state: Any) -> Any:
        runs = keys.shape[-1]
        memories = self.memories(numbers, state[1], self.scratch("begin", runs), runs)
        outside = self.outside(numbers, keys, None, [])
        scalars = Evaluator(runs, memories, outside).part(self.program.parts["begin"])
        return scalars, memories.taken(self.program.carry.memories)

    def _played(
        self, numbers: list[Array], keys: Array, state: Any, curve: Any, first: Array, rows: Array
    ) -> Any:
        """As many rounds as there are rows: where the outputs of each round go."""
        runs, parts, kept = keys.shape[-1], self.program.parts, self.program.carry.memories
        nowhere = curve[0].shape[0] - 1 if curve else 0
        scratch = self.scratch("round", runs)
        of_take = self.scratch("take", runs)

        def one_round(carry: Any, row: Array) -> Any:
            t, scalars, arrays, scratch, curve = carry
            memories = self.memories(numbers, arrays, scratch, runs)
            outside = self.outside(numbers, keys, t, scalars)
            scalars = Evaluator(runs, memories, outside).part(parts["round"])
            scratch = memories.taken(self.program.scratch)
            is_stop = row < nowhere
            # Taken in every round, and kept at stops: a condition would be read by the host.
            memories.given(self.program.scratch, of_take)
            memories.active = is_stop
            outside = self.outside(numbers, keys, t, scalars)
            taken = Evaluator(runs, memories, outside).part(parts["take"])
            outputs = taken[len(scalars) :]
            scalars = [
                jnp.where(is_stop, new, old)
                for new, old in zip(taken[: len(scalars)], scalars, strict=True)
            ]
            curve = [
                lax.dynamic_update_index_in_dim(all_rows, one, row, 0)
                for all_rows, one in zip(curve, outputs, strict=True)
            ]
            return (t + 1, scalars, memories.taken(kept), scratch, curve), None

        start = (jnp.asarray(first, jnp.int32), *state, scratch, curve)
        (_, scalars, arrays, _, curve), _ = lax.scan(one_round, start, rows)
        return (scalars, arrays), curve

    def _summed(self, numbers: list[Array], keys: Array, state: Any) -> list[Array]:
        runs = keys.shape[-1]
        memories = self.memories(numbers, state[1], self.scratch("summary", runs), runs)
        outside = self.outside(numbers, keys, None, state[0])
        return Evaluator(runs, memories, outside).part(self.program.parts["summary"])


def spans(first: int, last: int) -> list[tuple[int, int]]:
    """(first round, how many) of the scans that play rounds first to last."""
    found = []
    for length in LENGTHS:
        while first + length - 1 <= last:
            found.append((first, length))
            first += length
    return found
