"""From axes and callables to games: which are different, and which one program can play."""

from __future__ import annotations

import hashlib
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbio import checks
from jaxbio.core import ignores_empty_lanes, pad_learner
from jaxbio.environment.environment import MAX_HORIZON, Environment
from jaxbio.fingerprint import parts
from jaxbio.kernel import form
from jaxbio.rollout import Game, check_players, make_game
from jaxbio.sizing import common_sizes, ring_sizes

# Dimensions and variables of the result; the facts of the learners are added to them.
RESERVED = ("learner", "run", "round", "part", "quantile", "regret", "loss", "final_regret",
            "final_loss", "final_regret_quantile", "regret_mean", "regret_variance", "regret_min",
            "regret_max")  # fmt: skip
HORIZON = "horizon"  # an axis that neither the environment nor a learner has to name


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


class Grid(NamedTuple):
    """All of a sweep. axes: name -> values; settings: the different ones, each played once.

    cells: label -> int array [*axes], the number of the setting that holds at each point. Settings
    are numbered by label, and then by the names of axes, whatever their order in the call: blocks
    in a store go by these numbers.
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
    if horizons is None:
        horizon = checks.integer("horizon", horizon, 1, MAX_HORIZON)
    else:
        axes[HORIZON] = [checks.integer("horizon", value, 1, MAX_HORIZON) for value in horizons]
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
    for label, build in sorted(builders.items()):
        names = sorted({HORIZON, *build_env.names, *build.names} & axes.keys())
        first = len(settings)
        for index in itertools.product(*(range(len(axes[name])) for name in names)):
            where = dict(zip(names, index, strict=True))
            values = {name: axes[name][place] for name, place in where.items()}
            length = int(values.get(HORIZON, horizon))
            env, learner = build_env(where), build(where)
            setting = Setting(label, _stream(label), env, learner, length, values)
            _check(setting)
            settings.append(setting)
        cells[label] = _cells(np.arange(first, len(settings)), names, axes)
    return Grid(axes, settings, {label: cells[label] for label in builders})


def _cells(numbers: np.ndarray, names: list[str], axes: dict[str, list[Any]]) -> np.ndarray:
    """[*axes]: the numbers [*names], which lie in the order of `names`, at every point."""
    table = numbers.reshape([len(axes[name]) for name in names])
    table = table.transpose([names.index(name) for name in axes if name in names])
    table = table.reshape([len(axes[name]) if name in names else 1 for name in axes])
    return np.broadcast_to(table, [len(values) for values in axes.values()])


def _stream(label: str) -> int:
    """32 bits of a label: which worlds a learner meets must not depend on the others."""
    return int.from_bytes(hashlib.sha256(label.encode()).digest()[:4], "big")


def _checked_axes(axes: Any) -> dict[str, list[Any]]:
    if not isinstance(axes, Mapping):
        raise TypeError(f"axes must map names to values, but got {axes!r}")
    checked = {}
    for name, values in axes.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(
                f"an axis must have a name that can be an argument, but one has {name!r}"
            )
        check_name(name, RESERVED)
        unordered = isinstance(values, str | set | frozenset | Mapping)
        if unordered or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
            raise TypeError(f"axis {name!r} must be a list of values, but got {values!r}")
        plain = [_plain(value) for value in values]
        if not plain:
            raise ValueError(f"axis {name!r} must have at least one value, but it is empty")
        if len({_kind(value) for value in plain} - {None}) > 1:
            raise ValueError(
                f"axis {name!r} must have values of one kind, numbers or names or truth values, "
                f"but got {plain}"
            )
        if _repeated(plain):
            raise ValueError(f"axis {name!r} has a value twice: {plain}")
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
        raise TypeError(f"learners must map labels to learners, but got {learners!r}")
    for label in learners:
        if not isinstance(label, str):
            raise TypeError(f"a learner's label must be a string, but got {label!r}")
    return dict(learners)


class _Builder:
    """A callable of axes, or a fixed thing; built once per combination of the values it names."""

    def __init__(
        self, what: str, build: Callable[..., Any], names: tuple[str, ...], axes: dict
    ) -> None:
        self.what, self.build, self.names, self.axes = what, build, names, axes
        self.built: dict[tuple[int, ...], Any] = {}

    def __call__(self, where: dict[str, int]) -> Any:
        key = tuple(where[name] for name in self.names)
        if key not in self.built:
            values = {name: self.axes[name][where[name]] for name in self.names}
            try:
                self.built[key] = self.build(**values)
            except Exception as error:
                error.add_note(self.what + _at(values))
                raise
        return self.built[key]


def _on_axes(what: str, thing: Any, axes: dict[str, list[Any]]) -> _Builder:
    if isinstance(thing, Environment) or hasattr(thing, "learn"):
        return _Builder(what, lambda: thing, (), axes)
    if not callable(thing):
        raise TypeError(f"{what} must be one, or a function of axes, but got {thing!r}")
    parameters = inspect.signature(thing).parameters.values()
    for parameter in parameters:
        required = parameter.default is inspect.Parameter.empty
        if required and parameter.name not in axes:
            raise ValueError(
                f"{what} asks for {parameter.name!r}, but the axes are {', '.join(axes) or 'none'}"
            )
    return _Builder(what, thing, tuple(p.name for p in parameters if p.name in axes), axes)


def _check(setting: Setting) -> None:
    """Raise where these two cannot play, and say at which point of the grid."""
    try:
        check_players(setting.env, setting.learner, setting.horizon)
    except (TypeError, ValueError) as error:
        error.add_note(f"learner {setting.label!r}" + _at(setting.values))
        raise


def _at(values: dict[str, Any]) -> str:
    place = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return f" at {place}" if place else ""


def group(settings: list[Setting]) -> list[Group]:
    """Pad what sets a shape to the largest, and put together what then has one structure."""
    families: dict[Any, list[int]] = {}
    for number, setting in enumerate(settings):
        families.setdefault(_family(setting), []).append(number)
    groups: dict[Any, Group] = {}
    for members in families.values():
        games = _padded([settings[number] for number in members])
        for number, game in zip(members, games, strict=True):
            found = groups.setdefault(form(game), Group([], []))
            found.games.append(game)
            found.settings.append(number)
    return list(groups.values())


def _family(setting: Setting) -> Any:
    env = setting.env
    parts = tuple(type(part) for part in (env.mapping, env.losses, env.delays))
    lanes = None if ignores_empty_lanes(setting.learner) else ring_sizes(env, setting.horizon)[1]
    return parts, env.num_actions, jax.tree.structure(setting.learner), lanes


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
    """label -> point -> everything that its game is made of, for a person and for comparing.

    In the order of the settings, which are sorted by label.
    """
    described: dict[str, Any] = {}
    for setting in settings:
        places = described.setdefault(setting.label, {})
        place = setting.place
        entry: dict[str, Any] = {"horizon": setting.horizon}
        entry |= parts("environment", setting.env) | parts("learner", setting.learner)
        places[f"{place} ({len(places)})" if place in places else place] = entry
    return described
