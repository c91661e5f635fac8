"""From axes and callables to games: which are different, and which one program can play."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbio import checks
from jaxbio.core import pad_learner
from jaxbio.environment.environment import MAX_HORIZON, Environment
from jaxbio.kernel import signature
from jaxbio.rollout import Game, check_players, make_game
from jaxbio.sizing import common_sizes

RESERVED = ("learner", "run", "round", "part", "quantile")
SPELLED_OUT = 64  # larger arrays are described by their digest
HORIZON = "horizon"  # an axis that neither the environment nor a learner has to name


class Setting(NamedTuple):
    """What one learner meets at some points of the grid. stream: a number made of its label."""

    label: str
    stream: int
    env: Environment
    learner: Any
    horizon: int
    values: dict[str, Any]


class Grid(NamedTuple):
    """All of a sweep. axes: name -> values; settings: the different ones, each played once.

    cells: label -> int array [*axes], the number of the setting that holds at each point.
    """

    axes: dict[str, list[Any]]
    settings: list[Setting]
    cells: dict[str, np.ndarray]

    def labels(self, name: str) -> list[Any]:
        """The values of an axis as coordinates: numbers and strings as they are, others as text."""
        values = self.axes[name]
        plain = all(isinstance(value, bool | int | float | str) for value in values)
        return values if plain else [str(value) for value in values]


class Group(NamedTuple):
    """Settings that one program plays. games: in arrays of one size; settings: their numbers."""

    games: list[Game]
    settings: list[int]


def make_grid(environment: Any, learners: Any, axes: Any, horizon: Any) -> Grid:
    """Evaluate the callables on the axes that they name, once for each combination of values."""
    axes = _checked_axes(axes)
    horizons = axes.get(HORIZON)
    if (horizon is None) == (horizons is None):
        raise ValueError(
            "the horizon must be given either as horizon=... or as an axis 'horizon', "
            f"but got horizon={horizon!r} and axes {', '.join(axes) or 'none'}"
        )
    for value in horizons or [horizon]:
        checks.integer("horizon", value, 1, MAX_HORIZON)
    build_env = _on_axes("environment", environment, axes)
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
    settings: list[Setting] = []
    cells: dict[str, np.ndarray] = {}
    for label, build in builders.items():
        names = [name for name in axes if name in {HORIZON, *build_env.names, *build.names}]
        found: dict[tuple[int, ...], int] = {}
        shape = [len(values) for values in axes.values()]
        cells[label] = np.empty(shape, np.int64)
        for index in itertools.product(*(range(n) for n in shape)):
            where = dict(zip(axes, index, strict=True))
            own = tuple(where[name] for name in names)
            if own not in found:
                found[own] = len(settings)
                values = {name: axes[name][where[name]] for name in names}
                length = int(values.get(HORIZON, horizon))
                env, learner = build_env(where), build(where)
                _check(env, learner, length, label, values)
                settings.append(Setting(label, _stream(label), env, learner, length, values))
            cells[label][index] = found[own]
    return Grid(axes, settings, cells)


def _stream(label: str) -> int:
    """32 bits of a label: which worlds a learner meets must not depend on the others."""
    return int.from_bytes(hashlib.sha256(label.encode()).digest()[:4], "big")


def _checked_axes(axes: Any) -> dict[str, list[Any]]:
    if not isinstance(axes, Mapping):
        raise TypeError(f"axes must map names to values, but got {axes!r}")
    checked = {}
    for name, values in axes.items():
        if not isinstance(name, str) or not name.isidentifier() or name in RESERVED:
            raise ValueError(
                f"an axis must have a name that can be an argument, other than "
                f"{', '.join(RESERVED)}, but got {name!r}"
            )
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError(f"axis {name!r} must be a list of values, but got {values!r}")
        plain = [value.item() if isinstance(value, np.generic) else value for value in values]
        if not plain:
            raise ValueError(f"axis {name!r} must have at least one value, but it is empty")
        if _repeated(plain):
            raise ValueError(f"axis {name!r} has a value twice: {plain}")
        checked[name] = plain
    return checked


def _repeated(values: list[Any]) -> bool:
    try:
        return len(set(values)) < len(values)
    except TypeError:  # lists and arrays
        return any(np.array_equal(a, b) for a, b in itertools.combinations(values, 2))


def _checked_learners(learners: Any) -> dict[str, Any]:
    if not isinstance(learners, Mapping) or not learners:
        raise TypeError(f"learners must map labels to learners, but got {learners!r}")
    for label in learners:
        if not isinstance(label, str):
            raise TypeError(f"a learner's label must be a string, but got {label!r}")
    return dict(learners)


class _Builder:
    """A callable of axes, or a fixed thing; built once per combination of the values it names."""

    def __init__(self, build: Callable[..., Any], names: tuple[str, ...], axes: dict) -> None:
        self.build, self.names, self.axes = build, names, axes
        self.built: dict[tuple[int, ...], Any] = {}

    def __call__(self, where: dict[str, int]) -> Any:
        key = tuple(where[name] for name in self.names)
        if key not in self.built:
            values = {name: self.axes[name][where[name]] for name in self.names}
            self.built[key] = self.build(**values)
        return self.built[key]


def _on_axes(what: str, thing: Any, axes: dict[str, list[Any]]) -> _Builder:
    if isinstance(thing, Environment) or hasattr(thing, "learn"):
        return _Builder(lambda: thing, (), axes)
    if not callable(thing):
        raise TypeError(f"{what} must be one, or a function of axes, but got {thing!r}")
    parameters = inspect.signature(thing).parameters.values()
    for parameter in parameters:
        required = parameter.default is inspect.Parameter.empty
        if required and parameter.name not in axes:
            raise ValueError(
                f"{what} asks for {parameter.name!r}, but the axes are {', '.join(axes) or 'none'}"
            )
    return _Builder(thing, tuple(p.name for p in parameters if p.name in axes), axes)


def _check(env: Any, learner: Any, horizon: int, label: str, values: dict[str, Any]) -> None:
    """Raise where these two cannot play, and say at which point of the grid."""
    try:
        check_players(env, learner, horizon)
    except (TypeError, ValueError) as error:
        place = ", ".join(f"{name}={value!r}" for name, value in values.items())
        error.add_note(f"learner {label!r}" + (f" at {place}" if place else ""))
        raise


def group(settings: list[Setting]) -> list[Group]:
    """Pad what sets a shape to the largest, and put together what then has one structure."""
    families: dict[Any, list[int]] = {}
    for number, setting in enumerate(settings):
        families.setdefault(_family(setting), []).append(number)
    groups: dict[Any, Group] = {}
    for members in families.values():
        games = _padded([settings[number] for number in members])
        for number, game in zip(members, games, strict=True):
            found = groups.setdefault(signature(game), Group([], []))
            found.games.append(game)
            found.settings.append(number)
    return list(groups.values())


def _family(setting: Setting) -> Any:
    env = setting.env
    parts = tuple(type(part) for part in (env.mapping, env.losses, env.delays))
    return parts, env.num_actions, jax.tree.structure(setting.learner)


def _padded(family: list[Setting]) -> list[Game]:
    slots, depth, lanes = common_sizes(
        [setting.env for setting in family], [setting.horizon for setting in family]
    )
    envs: dict[int, Environment] = {}
    games = []
    for setting in family:
        if id(setting.env) not in envs:
            envs[id(setting.env)] = setting.env.padded(slots)
        env = envs[id(setting.env)]
        learner = pad_learner(setting.learner, slots)
        games.append(make_game(env, learner, setting.horizon, depth, lanes, library=np))
    return games


def describe(settings: list[Setting]) -> dict[str, Any]:
    """label -> point -> everything that its game is made of, for a person and for comparing."""
    described: dict[str, Any] = {}
    for setting in settings:
        entry = {"horizon": setting.horizon}
        entry |= parts("environment", setting.env)
        entry |= parts("learner", setting.learner)
        place = ", ".join(f"{name}={value}" for name, value in setting.values.items())
        places = described.setdefault(setting.label, {})
        places[f"{place} ({len(places)})" if place in places else place] = entry
    return described


def parts(name: str, thing: Any) -> dict[str, Any]:
    """Dotted name -> value of everything that a thing is made of."""
    return dict(_fields(name, thing))


def _fields(name: str, thing: Any) -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of all that a tree of dataclasses holds, its class included."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        yield name, type(thing).__qualname__
        for field in dataclasses.fields(thing):
            yield from _fields(f"{name}.{field.name}", getattr(thing, field.name))
    elif thing is None or isinstance(thing, bool | int | float | str):
        yield name, thing
    elif isinstance(thing, np.ndarray | np.generic | jax.Array):
        yield name, _values(np.asarray(thing))
    elif isinstance(thing, list | tuple):
        yield name, f"{type(thing).__qualname__} of {len(thing)}"
        for i, part in enumerate(thing):
            yield from _fields(f"{name}.{i}", part)
    elif isinstance(thing, Mapping):
        yield name, f"{type(thing).__qualname__} of {len(thing)}"
        for key, part in thing.items():
            yield from _fields(f"{name}.{key}", part)
    elif isinstance(thing, partial):
        yield from _fields(name, (thing.func, thing.args, thing.keywords))
    elif inspect.isfunction(thing):
        yield from _of_function(name, thing)
    else:
        yield name, getattr(thing, "__qualname__", type(thing).__qualname__)


def _of_function(name: str, function: Any) -> Iterator[tuple[str, Any]]:
    """What a schedule, or another function that a field holds, is made of."""
    digest = hashlib.sha256(_code(function.__code__).encode()).hexdigest()
    yield name, f"{function.__qualname__} sha256 {digest[:16]}"
    for i, default in enumerate(function.__defaults__ or ()):
        yield from _fields(f"{name}.default{i}", default)
    yield from _captured(name, function)


def _captured(name: str, function: Any) -> Iterator[tuple[str, Any]]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for variable, cell in cells:
        if cell.cell_contents is not function:
            yield from _fields(f"{name}.{variable}", cell.cell_contents)


def _code(code: Any) -> str:
    constants = [
        _code(part) if inspect.iscode(part) else repr(part)
        for part in code.co_consts
        if not isinstance(part, frozenset)  # in another order in every process
    ]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _values(array: np.ndarray) -> Any:
    if array.size <= SPELLED_OUT:
        return array.tolist()
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return f"{array.dtype}{list(array.shape)} sha256 {digest[:16]}"
