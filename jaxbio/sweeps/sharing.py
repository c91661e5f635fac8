"""What the settings of a sweep share is made once: parts of environments, learners, games.

Many settings differ in a number of their delays, or of their learner, and in nothing else. Whatever
is asked of a part (is it fine, how large is it, which arrays is it played in) is asked once,
however many settings have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbio.core import pad_learner
from jaxbio.engine.player import form, stack
from jaxbio.engine.round import Game, make_game, told_delay, told_longest
from jaxbio.engine.sizing import common_sizes, sizes_for
from jaxbio.environment.environment import Environment
from jaxbio.trees import as_arrays, with_fields

NUMBERS = {int, float, bool}


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


class Laws:
    """Puts one law of delays in place of all equal ones: what is asked of it is asked once."""

    def __init__(self) -> None:
        self.first: dict[Any, Any] = {}

    def __call__(self, env: Any) -> Any:
        """The same environment, with a law that others have too where that is made of numbers."""
        numbers = getattr(env.delays, "__dict__", None) if is_plain(env) else None
        if not numbers or not NUMBERS.issuperset(map(type, numbers.values())):
            return env
        # The text of a number tells 0.0 from -0.0, and 1 from 1.0 and True.
        law = self.first.setdefault((type(env.delays), str(numbers)), env.delays)
        return env if law is env.delays else with_fields(env, delays=law)


class Recipe(NamedTuple):
    """A game in parts that others have too. problem: all but the learner, and but the delays unless
    these are None; delays: they themselves, what a learner is told of them, and the longest.
    """

    problem: Game
    delays: tuple[Any, Any, Any] | None
    learner: Any

    def made(self) -> Game:
        game = self.problem if self.delays is None else _with_delays(self.problem, *self.delays)
        return with_fields(game, learner=self.learner)


class Recipes:
    """Games that are put together when they are asked for: there may be very many."""

    def __init__(self, recipes: list[Recipe]) -> None:
        self.recipes = recipes

    def __getitem__(self, place: int) -> Game:
        return self.recipes[place].made()

    def stacked(self) -> Game:
        """`stack` of them all; what they share is looked at once."""
        problems, delays, learners = zip(*self.recipes, strict=True)
        game, laws = stack(problems), stack(delays)
        return Recipe(game, laws, stack(learners)).made()


class Games:
    """The games of many settings, in arrays of one size. envs and horizons: which ones there will
    be; boxes: as in `make_game`.
    """

    def __init__(self, envs: Sequence[Environment], horizons: Sequence[int], boxes: int) -> None:
        sizes = Once(sizes_for)
        self.slots, self.depth, self.lanes = common_sizes(envs, horizons, sizes)
        self.envs = envs  # kept: what is gone may leave its id to another
        self.kinds: dict[Any, int] = {}
        self.problems: dict[Any, tuple[int, Game]] = {}
        laws = {id(env.delays): env.delays for env in envs}
        told = [told_delay(law, known=True) for law in laws.values()]  # else there are no sizes
        self.late, self.boxes = min(told) > 0, boxes
        longest = [told_longest(law, self.depth) for law in laws.values()]
        # Of each: its kind, and what a recipe has of it.
        arrays = as_arrays(list(zip(laws.values(), told, longest, strict=True)), np)
        self.delays = {key: (self._kind(one), one) for key, one in zip(laws, arrays, strict=True)}
        self.learner = Once(self._learner)
        self.whole = Once(self._whole)

    def of(self, env: Environment, learner: Any, horizon: int) -> tuple[Any, Recipe]:
        """What decides which program plays it, equal for two games of the same, and the game."""
        mine, arrays = self.learner(learner)
        if not is_plain(env):
            kind, game = self.whole(env, horizon)
            return (kind, mine), Recipe(game, None, arrays)
        key = id(env.mapping), id(env.losses), env.num_states, horizon
        found = self.problems.get(key)
        if found is None:
            game = _with_delays(self._game(env, horizon), None, None, None)
            found = self.problems[key] = self._kind(game), game
        law, delays = self.delays[id(env.delays)]
        return (found[0], law, mine), Recipe(found[1], delays, arrays)

    def _whole(self, env: Environment, horizon: int) -> tuple[int, Game]:
        game = self._game(env, horizon)
        return self._kind(game), game

    def _game(self, env: Environment, horizon: int) -> Game:
        sizes = self.depth, self.lanes
        return make_game(env.padded(self.slots), None, horizon, *sizes, np, self.boxes, self.late)

    def _learner(self, learner: Any) -> tuple[int, Any]:
        arrays = as_arrays(pad_learner(learner, self.slots), np)
        return self._kind(arrays), arrays

    def _kind(self, tree: Any) -> int:
        """The same number for all trees of a form."""
        return self.kinds.setdefault(form(tree), len(self.kinds))


def _with_delays(game: Game, delays: Any, delay: Any, longest: Any) -> Game:
    """The same problem with other delays: the best action and the gaps do not depend on them."""
    env, known = with_fields(game.env, delays=delays), with_fields(game.known, delay=delay)
    return with_fields(game, env=env, known=known, longest=longest)
