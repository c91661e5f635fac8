"""The settings of a sweep in words: for a person, and for a store to compare.

A description comes in pieces, and those of a part that settings share are made, and written down,
once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from jaxbio.engine.code.fingerprint import flat_parts, parts
from jaxbio.environment.environment import Environment
from jaxbio.sweeps.grid import Setting, counted
from jaxbio.sweeps.sharing import Once, is_plain

Pieces = list[dict[str, Any]]  # dotted names -> values; no name is in two of them
Described = dict[str, dict[str, Pieces]]  # label -> point -> everything that its game is made of
HEAD = {"environment": parts("x", Environment)["x"]}


def describe(settings: list[Setting], progress: bool = False) -> Described:
    """In the order of the settings, which are sorted by label."""
    described: Described = {}
    of = _Pieces()
    for setting in counted(settings, len(settings), "described", progress):
        places = described.setdefault(setting.label, {})
        place = setting.place
        places[f"{place} ({len(places)})" if place in places else place] = of(setting)
    return described


def whole(described: Described) -> dict[str, dict[str, dict[str, Any]]]:
    """label -> point -> dotted name -> value."""
    return {
        label: {place: _merged(found) for place, found in places.items()}
        for label, places in described.items()
    }


def as_text(described: Described) -> str:
    """What `json.dumps` makes of the whole."""
    word = lru_cache(maxsize=1024)(json.dumps)
    inside = Once(lambda piece: _inside(piece, word))
    labels = []
    for label, places in described.items():
        points = [
            f"{json.dumps(place)}: {{{', '.join([inside(piece) for piece in found])}}}"
            for place, found in places.items()
        ]
        labels.append(f"{json.dumps(label)}: {{{', '.join(points)}}}")
    return f"{{{', '.join(labels)}}}"


def _inside(piece: dict[str, Any], word: Callable[[str], str]) -> str:
    """What `json.dumps` makes of a piece, without the brackets. word: of a text, remembered."""
    written = []
    for name, value in piece.items():
        if type(value) is int:
            written.append(f"{word(name)}: {value}")
        elif type(value) is str:
            written.append(f"{word(name)}: {word(value)}")
        else:
            return json.dumps(piece)[1:-1]
    return ", ".join(written)  # quickly: there are many


class _Pieces:
    """The description of one setting after the other."""

    def __init__(self) -> None:
        self.starts: dict[int, dict[str, Any]] = {}
        self.problems: dict[Any, dict[str, Any] | None] = {}
        self.of_env, self.of_learner = Once(self._of_env), Once(self._of_learner)
        self.of_delays = Once(lambda delays: flat_parts("environment.delays", delays))

    def __call__(self, setting: Setting) -> Pieces:
        env, (learner, alone) = self.of_env(setting.env), self.of_learner(setting.learner)
        start = self.starts.get(setting.horizon)
        if start is None:
            start = self.starts[setting.horizon] = {"horizon": setting.horizon}
        if alone:
            return [start, *env, learner]
        # Code of the user's: both may have something to say about one module.
        return [_merged([start, *env, learner])]

    def _of_env(self, env: Environment) -> Pieces:
        if is_plain(env):
            delays, rest = self.of_delays(env.delays), self._rest(env)
            if delays is not None and rest is not None:
                return [HEAD, delays, rest]
        return [parts("environment", env)]

    def _rest(self, env: Environment) -> dict[str, Any] | None:
        """All but the delays; None where that cannot be told apart."""
        key = id(env.mapping), id(env.losses), id(env.real_states)
        if key not in self.problems:
            fields = ("losses", "mapping", "real_states")  # sorted, like all parts
            found = [flat_parts(f"environment.{name}", getattr(env, name)) for name in fields]
            known = [piece for piece in found if piece is not None]
            self.problems[key] = _merged(known) if len(known) == len(fields) else None
        return self.problems[key]

    def _of_learner(self, learner: Any) -> tuple[dict[str, Any], bool]:
        """And is it about the learner alone?"""
        found = parts("learner", learner)
        return found, all(name.startswith("learner") for name in found)


def _merged(found: Pieces) -> dict[str, Any]:
    return {name: value for piece in found for name, value in piece.items()}
