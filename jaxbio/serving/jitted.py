"""A learner through `jax.jit`: whatever JAX can compile, at tens to hundreds of microseconds."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxbio.engine.code.traces import traced
from jaxbio.serving.lanes import lanes_for
from jaxbio.serving.mind import Mind
from jaxbio.trees import float_dtype


class Jitted:
    """Calls what `Mind` does through JAX on the CPU; see `compiled.Compiled`."""

    name = "jit"

    def __init__(self, mind: Mind, key: np.ndarray) -> None:
        self.mind, self._key = mind, key
        self._calls = {name: jax.jit(getattr(mind, name)) for name in ("begin", "act", "learn")}
        self._kept = self._call("begin", [])

    def _call(self, method: str, message: list[Any]) -> list[np.ndarray]:
        kept = [] if method == "begin" else self._kept
        with jax.default_device(jax.local_devices(backend="cpu")[0]), traced(self.mind.structure):
            return [np.asarray(x) for x in self._calls[method]([*self.mind.numbers, *message], kept)]

    def act(self, number: int, t: int) -> tuple[int, bytes]:
        """As `Compiled.act`."""
        *_, action, row = self._call("act", [self._key, np.int32(number), np.int32(t)])
        return int(action), row.tobytes()

    def learn(
        self, t: int, row: bytes, seen: int, loss: float | None, rows: list[bytes], losses: Any
    ) -> bytes:
        """As `Compiled.learn`."""
        lanes = lanes_for(len(rows))
        words = np.zeros((lanes + 1, self.mind.row.words), np.int32)
        flat = words.reshape(-1)
        flat[: len(rows) * words.shape[1]] = np.frombuffer(b"".join(rows), np.int32)
        words[-1] = np.frombuffer(row, np.int32)
        known = np.zeros(lanes + 1, float_dtype())
        known[: len(rows)], known[-1] = losses, loss or 0
        numbers = [np.int32(t), np.int32(seen), np.int32(len(rows)), np.bool_(loss is not None)]
        *self._kept, filed = self._call("learn", [*numbers, words, known])
        return filed.tobytes()

    def prepare(self, lanes: int) -> None:
        """Compile what learns from so many losses at once."""
        types = self.mind.types_given(self.mind.learn_message(lanes))
        self._calls["learn"].lower(types, self.mind.kept).compile()

    @property
    def state(self) -> list[np.ndarray]:
        """The leaves of the learner's state."""
        return [leaf.copy() for leaf in self._kept]

    @state.setter
    def state(self, leaves: list[np.ndarray]) -> None:
        self._kept = [np.asarray(leaf) for leaf in leaves]
