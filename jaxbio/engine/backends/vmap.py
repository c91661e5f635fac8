"""Any device: `jax.vmap` of the step in a loop. Plays whatever JAX can batch, and is the definition
that the other back-ends are tested against.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from jaxbio.engine.recording import at_points
from jaxbio.engine.rules import Rules

STOPS = 64  # of a call: fewer are filled up, so that other rounds to record compile nothing new
STEP = 16  # runs are filled up to a multiple of it


class Batched:
    """Plays blocks with `jax.vmap`. State: the carry of all runs, leaves [runs, ...]."""

    name = "vmap"
    pace = 1 << 19  # rounds of all runs that a first call plays

    def __init__(self, rules: Rules, tree: Any, per_run: bool) -> None:
        structure = jax.tree.structure(tree)
        self.per_run, self._carry = per_run, jax.eval_shape(rules.begin, tree)
        numbers = -1 if per_run else None

        def one_run(numbers: Any, key: Any, carry: Any, last: Any, stops: Any) -> Any:
            tree = structure.unflatten(numbers)
            play = partial(rules.step, tree, key)
            carry, outputs = at_points(play, rules.take, carry, last, stops)
            return carry, jax.tree.leaves(outputs), jax.tree.leaves(rules.summary(tree, carry))

        def start(numbers: Any, key: Any) -> Any:
            return rules.begin(structure.unflatten(numbers))

        self._start = jax.jit(jax.vmap(start, (numbers, -1)))
        axes = (numbers, -1, 0, None, None)
        self._play = jax.jit(jax.vmap(one_run, axes, (0, -1, -1)), donate_argnums=2)

    def state_types(self, runs: int) -> Any:
        """The types of what so many runs carry, filled up to a multiple of STEP."""
        carry, room = self._carry, runs + -runs % STEP
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct((room, *x.shape), x.dtype), carry)

    restored = staticmethod(jax.device_put)

    def fresh(self, runs: int) -> None:
        """Nothing: the first call makes what it needs."""

    def play(
        self, numbers: list[Any], keys: np.ndarray, state: Any, last: int, stops: np.ndarray
    ) -> tuple[Any, list[np.ndarray], list[np.ndarray]]:
        """As `native.Native.play`."""
        runs = keys.shape[-1]
        keys = _filled(keys, -runs % STEP)
        if self.per_run:
            numbers = [_filled(np.asarray(leaf), -runs % STEP) for leaf in numbers]
        state = self._start(numbers, keys) if last == 0 else state
        outputs: list[list[np.ndarray]] = []
        facts: Any = []
        for first in range(0, len(stops), STOPS):
            some = stops[first : first + STOPS]
            padded = np.pad(some, (0, STOPS - len(some)), mode="edge").astype(np.int32)
            state, found, facts = self._play(numbers, keys, state, np.int32(last), padded)
            outputs.append([np.asarray(leaf)[: len(some)] for leaf in found])
            last = abs(int(some[-1]))
        whole = [np.concatenate(pieces)[..., :runs] for pieces in zip(*outputs, strict=True)]
        spread = [row for leaf in whole for row in _rows(leaf)]
        found = [row[0] for fact in facts for row in _rows(np.asarray(fact)[None, ..., :runs])]
        return state, spread, found


def _filled(x: np.ndarray, room: int) -> np.ndarray:
    """[..., runs], the last run again where there is room."""
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, room)], mode="edge") if room else x


def _rows(leaf: np.ndarray) -> list[np.ndarray]:
    """[stops, ..., runs] -> [stops, runs], one for each entry between."""
    flat = leaf.reshape(leaf.shape[0], -1, leaf.shape[-1])
    return [flat[:, i] for i in range(flat.shape[1])]
