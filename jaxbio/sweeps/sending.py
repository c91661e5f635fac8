"""Games in bytes, for a process that may never have seen the classes they are made of.

A game is sent as its numbers and its form: the environment and the learner with a hole for each
number, by cloudpickle, so that classes and functions of a script or a notebook go along. A process
unpacks each form once: functions in it stay the same objects, and its programs are compiled once.
"""

from __future__ import annotations

import dataclasses
import io
import pickle
import threading
from collections import OrderedDict
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbio import trees
from jaxbio.engine.code.fingerprint import HOLE, digest, parts, refuse_unknown
from jaxbio.engine.player import stack
from jaxbio.sweeps.landing import points_of
from jaxbio.sweeps.plan import Block, Job

FORMS = 256  # that a process keeps


class Form(NamedTuple):
    """content: a game without numbers; code: a digest of the code in it, None if unknown."""

    content: bytes
    code: str | None


class OtherCode(Exception):  # noqa: N818
    """Code that is imported here under the same name is not that of the sender."""


@dataclasses.dataclass(frozen=True)
class Task:
    """A block, as it is sent. numbers: those of each different game; places: which of them each run
    plays (None: all play the only one). members, keys, points, keep, backend: as elsewhere.
    """

    numbers: list[list[np.ndarray]]
    places: list[int] | None
    members: np.ndarray
    keys: np.ndarray
    points: np.ndarray
    keep: str
    backend: str | None

    def game(self, structure: Any) -> Any:
        """Of all runs, or those of every run, stacked."""
        games = [structure.unflatten(numbers) for numbers in self.numbers]
        return games[0] if self.places is None else stack([games[i] for i in self.places])


def form_of(game: Any) -> Form:
    """Raises TypeError where something in it cannot be sent."""
    structure = jax.tree.structure(game)
    empty = structure.unflatten([0] * structure.num_leaves)
    return Form(_packed(empty), _code(structure))


def task_of(block: Block, job: Job, backend: str | None) -> bytes:
    """A block in bytes."""
    recipes = block.games.recipes
    different = {id(recipe): recipe for recipe in recipes}
    number = {recipe: i for i, recipe in enumerate(different)}
    places = [number[id(recipe)] for recipe in recipes] if block.stacked else None
    numbers = [jax.tree.leaves(recipe.made()) for recipe in different.values()]
    keys, points = job.keys(block.members), points_of(block, job)
    return _packed(Task(numbers, places, block.members, keys, points, job.keep, backend))


def unpacked(form: Form, task: bytes) -> tuple[Any, Task]:
    """The structure of a game, and the block to play. Raises OtherCode."""
    return _structure(form), pickle.loads(task)


_forms: OrderedDict[Form, Any] = OrderedDict()  # -> structure
_lock = threading.Lock()


def _structure(form: Form) -> Any:
    with _lock:
        found = _forms.pop(form, None)
        # A class may have got other methods since, from a form in which it is newer or older.
        if found is None or _code(found) != form.code:
            found = jax.tree.structure(pickle.loads(form.content))
        if _code(found) != form.code:
            raise OtherCode(_changed(found))
        _forms[form] = found
        while len(_forms) > FORMS:
            _forms.popitem(last=False)
        return found


def _changed(structure: Any) -> str:
    """The classes that a form is made of, for a person."""
    game = structure.unflatten([HOLE] * structure.num_leaves)
    things = (game.learner, game.env.mapping, game.env.losses, game.env.delays)
    return ", ".join(f"{type(one).__module__}.{type(one).__qualname__}" for one in things)


def _code(structure: Any) -> str | None:
    found = parts("game", structure.unflatten([HOLE] * structure.num_leaves))
    try:
        refuse_unknown(found)
    except ValueError:
        return None
    return digest(found)


def _packed(thing: Any) -> bytes:
    from cloudpickle import Pickler

    class WithTrees(Pickler):
        """Classes that go along have all of their name where they arrive, and JAX knows them."""

        def reducer_override(self, obj: Any) -> Any:
            if obj is dataclasses.MISSING:  # a thing that is compared by identity
                return "MISSING"
            reduced = super().reducer_override(obj)
            if isinstance(obj, type) and isinstance(reduced, tuple) and len(reduced) == 6:
                make, given, state, _, _, fill = reduced  # by value
                more = fill, state, obj.__qualname__, obj in trees.registered
                return make, given, more, None, None, _fill
            return reduced

    buffer = io.BytesIO()
    try:
        WithTrees(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(thing)
    except Exception as error:  # whatever the classes of others raise
        raise TypeError(f"it cannot be sent to a worker: {error}") from error
    return buffer.getvalue()


def _fill(cls: type, state: Any) -> None:
    """The second half of unpickling a class."""
    fill, rest, cls.__qualname__, is_tree = state
    fill(cls, rest)
    if is_tree and cls not in trees.registered:
        trees.register(cls)
