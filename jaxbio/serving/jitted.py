"""A learner through `jax.jit`: whatever JAX can compile, in tens to hundreds of microseconds."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxbio.engine.code.traces import traced
from jaxbio.serving.lanes import lanes_for
from jaxbio.serving.mind import ACT_MESSAGE, Mind
from jaxbio.trees import float_dtype


class Jitted:
    """Calls what `Mind` does through JAX on the CPU; see `compiled.Compiled`."""

    name = "jit"

    def __init__(self, mind: Mind, key: np.ndarray) -> None:
        self.mind, self._key = mind, key
        self.state = self._compiled("begin", [], [])(mind.numbers, [])
        self._act = self._compiled("act", ACT_MESSAGE, mind.kept)
        self._learn: dict[int, Any] = {}

    def _compiled(self, method: str, message: list[Any], kept: list[Any]) -> Any:
        with jax.default_device(jax.local_devices(backend="cpu")[0]), traced(self.mind.structure):
            given = self.mind.types_given(message)
            return jax.jit(getattr(self.mind, method)).lower(given, kept).compile()

    def act(self, number: int, t: int) -> tuple[int, bytes]:
        """As `Compiled.act`."""
        message = [self._key, np.int32(number), np.int32(t)]
        *_, action, row = self._act([*self.mind.numbers, *message], self._kept)
        return int(action), np.asarray(row).tobytes()

    def learn(
        self, t: int, row: bytes, seen: int, loss: float | None, rows: list[bytes], losses: Any
    ) -> bytes:
        """As `Compiled.learn`."""
        lanes = lanes_for(len(rows))
        words = np.zeros((lanes + 1, self.mind.row.words), np.int32)
        words.reshape(-1)[: len(rows) * words.shape[1]] = np.frombuffer(b"".join(rows), np.int32)
        words[-1] = np.frombuffer(row, np.int32)
        known = np.zeros(lanes + 1, float_dtype())
        known[: len(rows)], known[-1] = losses, loss or 0
        self.prepare(lanes)
        numbers = [np.int32(t), np.int32(seen), np.int32(len(rows)), np.bool_(loss is not None)]
        given = [*self.mind.numbers, *numbers, words, known]
        *self._kept, filed = self._learn[lanes](given, self._kept)
        return np.asarray(filed).tobytes()

    def prepare(self, lanes: int) -> None:
        """Compile what learns from so many losses at once."""
        if lanes not in self._learn:
            message = self.mind.learn_message(lanes)
            self._learn[lanes] = self._compiled("learn", message, self.mind.kept)

    @property
    def state(self) -> list[np.ndarray]:
        """The leaves of the learner's state."""
        return [np.array(leaf) for leaf in self._kept]

    @state.setter
    def state(self, leaves: list[Any]) -> None:
        self._kept = leaves
