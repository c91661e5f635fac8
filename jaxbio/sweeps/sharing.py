"""What the settings of a sweep share is made once: parts of environments, learners, games.

Many settings differ in a number of their delays, or of their learner, and in nothing else. Whatever
is asked of a part (is it fine, how large is it, which arrays is it played in) is asked once,
however many settings have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxbio.core import pad_learner
from jaxbio.engine.player import form
from jaxbio.engine.round import Game, make_game, told_delay
from jaxbio.engine.sizing import common_sizes, sizes_for
from jaxbio.environment.environment import Environment
from jaxbio.trees import as_arrays, with_fields


class Once:
    """A function of a thing that is asked once for each, however often it comes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.known: dict[Any, Any] = {}
        self.kept: list[Any] = []  # the id of what is gone may come again

    def __call__(self, thing: Any, *more: Any) -> Any:
        key = (id(thing), *more) if more else id(thing)
        if key not in self.known:
            self.known[key] = self.function(thing, *more)
            self.kept.append(thing)
        return self.known[key]


def is_plain(env: Any) -> bool:
    """Is it nothing but its parts? A class that inherits from ours may do everything otherwise."""
    return type(env) is Environment


def parts_of(thing: Any) -> tuple[Any, ...]:
    """What several environments may share, or the thing itself."""
    return (thing.mapping, thing.losses, thing.delays) if is_plain(thing) else (thing,)


class Games:
    """The games of many settings, in arrays of one size. envs and horizons: which ones there will
    be; boxes: as in `make_game`.
    """

    def __init__(self, envs: Sequence[Environment], horizons: Sequence[int], boxes: int) -> None:
        sizes = Once(sizes_for)
        self.slots, self.depth, self.lanes = common_sizes(envs, horizons, sizes)
        self.envs = envs  # kept: what is gone may leave its id to another
        self.kinds: dict[Any, int] = {}
        self.problems: dict[Any, tuple[Game, int]] = {}
        laws = {id(env.delays): env.delays for env in envs}
        told = [told_delay(law, known=True) for law in laws.values()]  # else there are no sizes
        self.late, self.boxes = min(told) > 0, boxes
        # Of each: its kind, and it itself beside what a learner is told of it.
        arrays = as_arrays(list(zip(laws.values(), told, strict=True)), np)
        self.delays = {key: (self._kind(one), one) for key, one in zip(laws, arrays, strict=True)}
        self.learner = Once(self._learner)
        self.without_learner = Once(self._without_learner)

    def of(self, env: Environment, learner: Any, horizon: int) -> tuple[Any, Game]:
        """What decides which program plays it, equal for two games of the same, and the game."""
        kind, game, parts = self.without_learner(env, horizon)
        mine, arrays = self.learner(learner)
        return (kind, mine), with_fields(game, learner=arrays, **parts)

    def _without_learner(self, env: Environment, horizon: int) -> tuple[Any, Game, dict[str, Any]]:
        """What decides its program, a game of the same problem, and what is to be put into it."""
        if not is_plain(env):
            game = self._game(env, horizon)
            return self._kind(game), game, {}
        key = id(env.mapping), id(env.losses), env.num_states, horizon
        found = self.problems.get(key)
        if found is None:
            game = self._game(env, horizon)
            kind = self._kind(with_fields(game, **_with_delays(game, None, None)))
            found = self.problems[key] = game, kind
        game, kind = found
        mine, delays = self.delays[id(env.delays)]
        return (kind, mine), game, _with_delays(game, *delays)

    def _game(self, env: Environment, horizon: int) -> Game:
        sizes = self.depth, self.lanes
        return make_game(env.padded(self.slots), None, horizon, *sizes, np, self.boxes, self.late)

    def _learner(self, learner: Any) -> tuple[int, Any]:
        arrays = as_arrays(pad_learner(learner, self.slots), np)
        return self._kind(arrays), arrays

    def _kind(self, tree: Any) -> int:
        """The same number for all trees of a form."""
        return self.kinds.setdefault(form(tree), len(self.kinds))


def _with_delays(game: Game, delays: Any, delay: Any) -> dict[str, Any]:
    """What changes in a game with other delays. Its best action and its gaps do not."""
    return {
        "env": with_fields(game.env, delays=delays),
        "known": with_fields(game.known, delay=delay),
    }
