"""From axes and callables to games: which are different, and which one program can play."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio import checks
from jaxbio.checks import memory
from jaxbio.core import check_learner, ignores_empty_lanes
from jaxbio.display.bars import tqdm
from jaxbio.engine.backends.choice import boxes
from jaxbio.engine.footprint import table_bytes
from jaxbio.engine.sizing import ring_sizes
from jaxbio.environment.environment import MAX_HORIZON, Environment, check_environment
from jaxbio.sweeps.sharing import Games, Laws, Once, Recipes, parts_of

# Dimensions and variables of the result; the facts of the learners are added to them.
RESERVED = ("learner", "run", "round", "part", "quantile", "regret", "loss", "final_regret",
            "final_loss", "final_regret_quantile", "regret_mean", "regret_variance", "regret_min",
            "regret_max")  # fmt: skip
HORIZON = "horizon"  # an axis that neither the environment nor a learner has to name
WORLD = "world"  # an axis that says which runs of the seed are played
MOST_WORLDS = 2**24
VALUE_BYTES = 40  # of a value of an axis, at least
PATIENCE = 1.0  # seconds before a bar of the planning is shown
COPIES = 2  # of what a setting is made of: as it was given, and as it is played
THING_BYTES = 4000  # of an environment or a learner and its description, besides arrays

T = TypeVar("T")


class Setting(NamedTuple):
    """What one learner meets at some points of the grid. stream: a number made of its label.

    values: of the axes that it depends on, sorted by name.
    """

    label: str
    stream: int
    env: Environment
    learner: Any
    horizon: int
    values: dict[str, Any]

    @property
    def place(self) -> str:
        """Where on the grid, for a person."""
        return ", ".join(f"{name}={value}" for name, value in self.values.items())


class Outline(NamedTuple):
    """A sweep of which only the sizes are known. axes: name -> values; horizons: all of them.

    names: label -> the axes on which its settings depend, sorted.
    """

    axes: dict[str, list[Any]]
    horizons: list[int]
    names: dict[str, list[str]]

    @property
    def settings(self) -> list[Setting]:
        """None yet."""
        return []

    @property
    def number_of_settings(self) -> int:
        return sum(
            math.prod(len(self.axes[name]) for name in names) for names in self.names.values()
        )

    @property
    def number_of_points(self) -> int:
        """Of all learners together."""
        return len(self.names) * math.prod(len(values) for values in self.axes.values())


class Grid(NamedTuple):
    """All of a sweep. axes: name -> values; settings: the different ones, each played once.

    horizons: all of them. cells: label -> int array [*axes], the number of the setting that holds
    at each point. Settings are numbered by label, and then by the names of axes, whatever their
    order in the call: blocks in a store go by these numbers. bytes: of what they are made of.
    """

    axes: dict[str, list[Any]]
    horizons: list[int]
    settings: list[Setting]
    cells: dict[str, np.ndarray]
    bytes: int

    def labels(self, name: str) -> list[Any]:
        """The values of an axis as coordinates: numbers and strings as they are, others as text."""
        values = self.axes[name]
        plain = all(isinstance(value, bool | int | float | str) for value in values)
        return values if plain else [str(value) for value in values]


class Group(NamedTuple):
    """Settings that one program plays. games: in arrays of one size; settings: their numbers."""

    games: Recipes
    settings: list[int]


def make_grid(
    environment: Any,
    learners: Any,
    axes: Any,
    horizon: Any,
    before: Callable[[Outline], None] = lambda outline: None,
    limit: float = math.inf,
    progress: bool = False,
) -> Grid:
    """Evaluate the callables on the axes that they name, once for each combination of values.

    before: called when it is known how many settings there are, before they are made. limit: bytes
    that they may take.
    """
    axes = _checked_axes(axes, limit)
    horizons = axes.get(HORIZON)
    if (horizon is None) == (horizons is None):
        raise ValueError(
            "the horizon must be given either as horizon=... or as an axis 'horizon', "
            f"but got horizon={horizon!r} and axes {', '.join(axes) or 'none'}"
        )
    if horizons is None:
        horizon = checks.size("horizon", horizon, 1, MAX_HORIZON)
    else:
        axes[HORIZON] = [checks.size("horizon", value, 1, MAX_HORIZON) for value in horizons]
    if WORLD in axes:
        axes[WORLD] = [checks.size("world", value, 0, MOST_WORLDS) for value in axes[WORLD]]
    build_env = _on_axes("environment", environment, axes, Laws())
    builders = {
        label: _on_axes(f"learner {label!r}", learner, axes)
        for label, learner in _checked_learners(learners).items()
    }
    used = {HORIZON}.union(build_env.names, *(build.names for build in builders.values()))
    for name in axes:
        if name not in used:
            raise ValueError(
                f"axis {name!r} is named by neither the environment nor a learner: "
                "drop it, or give it to one of them"
            )
    names = {
        label: sorted({HORIZON, *build_env.names, *build.names} & axes.keys())
        for label, build in sorted(builders.items())
    }
    outline = Outline(axes, axes.get(HORIZON, [horizon]), names)
    before(outline)
    settings: list[Setting] = []
    cells: dict[str, np.ndarray] = {}
    check, room = _Check(), _Room(limit)
    streams = {label: _stream(label) for label in names}
    places = (
        (label, index)
        for label in names
        for index in itertools.product(*(range(len(axes[name])) for name in names[label]))
    )
    for label, index in counted(places, outline.number_of_settings, "made", progress):
        where = dict(zip(names[label], index, strict=True))
        values = {name: axes[name][place] for name, place in where.items()}
        length = int(values.get(HORIZON, horizon))
        env, learner = build_env(where), builders[label](where)
        room.take(env)
        room.take(learner)
        setting = Setting(label, streams[label], env, learner, length, values)
        check(setting)
        settings.append(setting)
    first = 0
    for label in names:
        count = math.prod(len(axes[name]) for name in names[label])
        cells[label] = _cells(np.arange(first, first + count), names[label], axes)
        first += count
    in_order = {label: cells[label] for label in builders}
    return Grid(axes, outline.horizons, settings, in_order, room.taken)


def counted(things: Iterable[T], total: int, what: str, progress: bool) -> Iterator[T]:
    """The same, with a bar on a terminal where it takes long."""
    shown = None if progress else True
    name = f"settings {what}"
    yield from tqdm(things, name, total, unit="setting", delay=PATIENCE, leave=False, disable=shown)


class _Room:
    """Counts what settings are made of while they are made. taken: bytes so far."""

    def __init__(self, limit: float) -> None:
        self.limit, self.taken = limit, 0
        self.take, self.counted = Once(self._take), set()

    def _take(self, thing: Any) -> None:
        self.taken += THING_BYTES
        for part in parts_of(thing):
            if id(part) not in self.counted:  # all are kept: in things that were taken
                self.counted.add(id(part))
                self.taken += table_bytes(part)
        if COPIES * self.taken > self.limit:
            words = f"sweep: its first settings take {memory.size(self.taken)}"
            remedy = "fewer settings, or several sweeps"
            memory.refuse(words, COPIES * self.taken, self.limit, remedy)


def _cells(numbers: np.ndarray, names: list[str], axes: dict[str, list[Any]]) -> np.ndarray:
    """[*axes]: the numbers [*names], which lie in the order of `names`, at every point."""
    table = numbers.reshape([len(axes[name]) for name in names])
    table = table.transpose([names.index(name) for name in axes if name in names])
    table = table.reshape([len(axes[name]) if name in names else 1 for name in axes])
    return np.broadcast_to(table, [len(values) for values in axes.values()])


def _stream(label: str) -> int:
    """32 bits of a label: which worlds a learner meets must not depend on the others."""
    return int.from_bytes(hashlib.sha256(label.encode()).digest()[:4], "big")


def _checked_axes(axes: Any, limit: float) -> dict[str, list[Any]]:
    if not isinstance(axes, Mapping):
        raise TypeError(f"axes must map names to values, but got {checks.shown(axes)}")
    checked = {}
    for name, values in axes.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(
                f"an axis must have a name that can be an argument, but one has "
                f"{checks.shown(name)}"
            )
        check_name(name, RESERVED)
        unordered = isinstance(values, str | set | frozenset | Mapping)
        if unordered or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
            raise TypeError(
                f"axis {name!r} must be a list of values, but got {checks.shown(values)}"
            )
        if isinstance(values, Sized):
            words, needed = f"axis {name!r} of {len(values):,} values", VALUE_BYTES * len(values)
            memory.refuse(words, needed, limit, "fewer of them, or several sweeps")
        plain = [_plain(value) for value in values]
        if not plain:
            raise ValueError(f"axis {name!r} must have at least one value, but it is empty")
        if len({_kind(value) for value in plain} - {None}) > 1:
            raise ValueError(
                f"axis {name!r} must have values of one kind, numbers or names or truth values, "
                f"but got {checks.shown(plain)}"
            )
        if _repeated(plain):
            raise ValueError(f"axis {name!r} has a value twice: {checks.shown(plain)}")
        checked[name] = plain
    return checked


def check_name(axis: str, taken: Iterable[str]) -> None:
    """Raise where an axis has the name of something else in the result."""
    if axis in taken:
        raise ValueError(
            f"an axis cannot be called {axis!r}: the result has a variable or a dimension of that "
            f"name ({', '.join(taken)})"
        )


def _plain(value: Any) -> Any:
    """A number out of an array of NumPy or JAX."""
    scalar = isinstance(value, np.ndarray | np.generic | jax.Array) and value.ndim == 0
    scalar = scalar and not jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    return value.item() if scalar else value


def _kind(value: Any) -> Any:
    """Of a coordinate; None for what is shown as text."""
    if isinstance(value, bool):
        return bool
    if isinstance(value, int | float):
        return float
    return str if isinstance(value, str) else None


def _repeated(values: list[Any]) -> bool:
    if sum(isinstance(value, float) and value != value for value in values) > 1:
        return True
    try:
        return len(set(values)) < len(values)
    except TypeError:  # lists and arrays
        return any(np.array_equal(a, b) for a, b in itertools.combinations(values, 2))


def _checked_learners(learners: Any) -> dict[str, Any]:
    if not isinstance(learners, Mapping) or not learners:
        raise TypeError(f"learners must map labels to learners, but got {checks.shown(learners)}")
    for label in learners:
        if not isinstance(label, str):
            raise TypeError(f"a learner's label must be a string, but got {checks.shown(label)}")
    return dict(learners)


class _Builder:
    """A callable of axes, or a fixed thing; built once per combination of the values it names."""

    def __init__(
        self, what: str, build: Callable[..., Any], names: tuple[str, ...], axes: dict, share: Any
    ) -> None:
        self.what, self.build, self.names, self.axes = what, build, names, axes
        self.share = share
        self.built: dict[tuple[int, ...], Any] = {}

    def __call__(self, where: dict[str, int]) -> Any:
        key = tuple(where[name] for name in self.names)
        if key not in self.built:
            values = {name: self.axes[name][where[name]] for name in self.names}
            try:
                self.built[key] = self.share(self.build(**values))
            except Exception as error:
                error.add_note(self.what + _at(values))
                raise
        return self.built[key]


def _itself(thing: Any) -> Any:
    return thing


def _on_axes(
    what: str, thing: Any, axes: dict[str, list[Any]], share: Callable[[Any], Any] = _itself
) -> _Builder:
    """share: makes one that has parts of those before it of one that was built."""
    if isinstance(thing, Environment) or hasattr(thing, "learn"):
        return _Builder(what, lambda: thing, (), axes, share)
    if not callable(thing):
        raise TypeError(f"{what} must be one, or a function of axes, but got {checks.shown(thing)}")
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        raise TypeError(
            f"{what} must have arguments with names, but got {checks.shown(thing)}"
        ) from None
    for parameter in parameters:
        required = parameter.default is inspect.Parameter.empty
        if required and parameter.name not in axes:
            raise ValueError(
                f"{what} asks for {parameter.name!r}, but the axes are {', '.join(axes) or 'none'}"
            )
    return _Builder(what, thing, tuple(p.name for p in parameters if p.name in axes), axes, share)


class _Check:
    """Raises where the two of a setting cannot play, and says at which point of the grid.

    What has been checked with somebody else before is only asked whether it suits its partner.
    """

    def __init__(self) -> None:
        self.learner = Once(lambda learner: checks.learner("learner", learner))
        self.serves = Once(lambda part, horizon: part.check(horizon))

    def __call__(self, setting: Setting) -> None:
        env, learner, horizon = setting.env, setting.learner, setting.horizon
        try:
            check_environment(env)
            self.learner(learner)
            for part in parts_of(env):
                self.serves(part, horizon)
            check_learner(learner, env)
        except (TypeError, ValueError) as error:
            error.add_note(f"learner {setting.label!r}" + _at(setting.values))
            raise


def _at(values: dict[str, Any]) -> str:
    place = ", ".join(f"{name}={checks.shown(value)}" for name, value in values.items())
    return f" at {place}" if place else ""


def group(
    settings: list[Setting], progress: bool = False, backend: str | None = None
) -> list[Group]:
    """Pad what sets a shape to the largest, and put together what then has one structure."""
    families: dict[Any, list[int]] = {}
    of_env, of_learner = Once(_family_of), Once(_kind_of)
    lanes = Once(lambda env, horizon: ring_sizes(env, horizon)[1])
    for number, setting in enumerate(settings):
        structure, any_lanes = of_learner(setting.learner)
        own = None if any_lanes else lanes(setting.env, setting.horizon)
        family = of_env(setting.env), structure, own
        families.setdefault(family, []).append(number)
    numbers = counted(itertools.chain(*families.values()), len(settings), "grouped", progress)
    groups: dict[Any, Group] = {}
    for members in families.values():
        family = [settings[number] for number in members]
        pairs = {(id(setting.env), setting.horizon): setting for setting in family}.values()
        envs, horizons = [one.env for one in pairs], [one.horizon for one in pairs]
        games = Games(envs, horizons, boxes(backend))
        for number in itertools.islice(numbers, len(members)):
            setting = settings[number]
            kind, game = games.of(setting.env, setting.learner, setting.horizon)
            found = groups.get((games, kind))
            if found is None:
                found = groups[games, kind] = Group(Recipes([]), [])
            found.games.recipes.append(game)
            found.settings.append(number)
    return list(groups.values())


def _family_of(env: Environment) -> Any:
    return *(type(part) for part in (env.mapping, env.losses, env.delays)), env.num_actions


def _kind_of(learner: Any) -> tuple[Any, bool]:
    """Its structure, and whether it may be shown the lanes that another setting needs."""
    return jax.tree.structure(learner), ignores_empty_lanes(learner)
