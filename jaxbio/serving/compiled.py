"""A learner as machine code: a decision takes microseconds."""

from __future__ import annotations

import threading
from array import array
from typing import Any

import numpy as np

from jaxbio.engine.backends.single import Code, Function
from jaxbio.engine.code.traces import traced
from jaxbio.engine.player import signature
from jaxbio.engine.single import single_program
from jaxbio.serving.lanes import lanes_for
from jaxbio.serving.mind import ACT_MESSAGE, Mind
from jaxbio.trees import float_dtype

WORD = 4  # bytes


class Compiled:
    """Calls what `Mind` does as machine code. Every machine has these methods and `name`.

    key: uint32 [2], of the run whose uniforms the learner gets.
    """

    name = "llvm"

    def __init__(self, mind: Mind, key: np.ndarray) -> None:
        self.mind, self._row = mind, WORD * mind.row.words
        begin = _code(mind, "begin", 0)
        self._state, self._begin = begin.fresh(), begin
        self._function(begin)()
        self._act = self._function(_code(mind, "act", 0))
        message = len(mind.numbers)
        self._act.give(message, key)
        self._number, self._round = (self._act.given[message + i].first for i in (1, 2))
        self._action = self._act.outputs
        first = WORD * (self._action + 1)
        self._decided = slice(first, first + self._row)
        self._learn: dict[int, _Learn] = {}

    def _function(self, code: Code) -> Function:
        """With the numbers of the learner written down."""
        function = Function(code, self._state)
        for leaf, number in enumerate(self.mind.numbers):
            function.give(leaf, number)
        return function

    def act(self, number: int, t: int) -> tuple[int, bytes]:
        """The action of a decision in round t, and its row."""
        function = self._act
        ints = function.ints
        ints[self._number], ints[self._round] = number, t
        function()
        return ints[self._action], bytes(function.raw[self._decided])

    def learn(
        self, t: int, row: bytes, seen: int, loss: float | None, rows: list[bytes], losses: Any
    ) -> bytes:
        """The end of round t, whose play has this row and showed the state `seen`; its loss is
        None unless it is known. rows, losses: of older rounds, in order. Returns the row as filed.
        """
        lanes = lanes_for(len(rows))
        if lanes not in self._learn:
            self.prepare(lanes)
        return self._learn[lanes](t, row, seen, loss, rows, losses)

    def prepare(self, lanes: int) -> None:
        """Compile what learns from so many losses at once."""
        if lanes not in self._learn:
            function = self._function(_code(self.mind, "learn", lanes))
            self._learn[lanes] = _Learn(function, len(self.mind.numbers), lanes, self._row)

    @property
    def state(self) -> list[np.ndarray]:
        """The leaves of the learner's state."""
        return [place.get(self._state) for place in self._begin.kept]

    @state.setter
    def state(self, leaves: list[np.ndarray]) -> None:
        self._begin.keep(self._state, leaves)


class _Learn:
    """The function `Mind.learn` with so many lanes. message: the first leaf of the message."""

    def __init__(self, function: Function, message: int, lanes: int, row: int) -> None:
        self.function, self.lanes, self.row = function, lanes, row
        self.places = tuple(place.first for place in function.given[message:])
        self.filed = WORD * function.outputs

    def __call__(
        self, t: int, row: bytes, seen: int, loss: float | None, rows: list[bytes], losses: Any
    ) -> bytes:
        function, lanes = self.function, self.lanes
        ints, floats, raw = function.ints, function.floats, function.raw
        t_at, seen_at, number_at, once_at, rows_at, losses_at = self.places
        ints[t_at], ints[seen_at] = t, seen
        ints[number_at], ints[once_at] = len(rows), loss is not None
        first, last = WORD * rows_at, WORD * rows_at + lanes * self.row
        raw[last : last + self.row] = row
        if rows:
            raw[first : first + len(rows) * self.row] = b"".join(rows)
            first = WORD * losses_at
            raw[first : first + WORD * len(rows)] = array("f", losses).tobytes()
        floats[losses_at + lanes] = loss or 0.0
        function()
        return bytes(raw[self.filed : self.filed + self.row])


def _code(mind: Mind, method: str, lanes: int) -> Code:
    """Made once for all agents with such learners."""
    key = (signature((mind.learner, mind.known)), method, lanes, float_dtype())
    with _lock:
        code = _codes.get(key)
    if code is None:
        messages = {"begin": [], "act": ACT_MESSAGE, "learn": mind.learn_message(lanes)}
        with traced(mind.structure):
            given = mind.types_given(messages[method])
            code = Code(single_program(getattr(mind, method), given, mind.kept))
        with _lock:
            _codes[key] = code
    return code


_codes: dict[Any, Code] = {}
_lock = threading.Lock()
