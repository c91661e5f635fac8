"""Where intermediate observations help: regret ratios over the number of states and the delay.

Every cell (S, d) of a grid is played by wrappers that look at states and by the base of each alone,
in the same worlds. The ratio is that of the mean final regrets, wrapper to its own base with all of
its numbers: it is 1 where states play no role, and below 1 they pay. Where a row of the grid passes
1, further delays are played until it is known where.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.analysis.statistics import CONFIDENCE, ratio_of_means
from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.environment import Environment
from jaxbio.storage.store import part
from jaxbio.studies.contestants import wrappers
from jaxbio.studies.families import FAMILY, family_of, problem
from jaxbio.sweeps.sweep import sweep

SIZES = (8, 16, 32, 64, 128)  # state counts up to each of these share arrays of one size
ACTIONS, HORIZONS, RUNS = (8,), (10_000,), 64
WITHIN = 0.1
ENDS = ("from", "to")
REACHES = ("surely", "line", "perhaps")


class Cell(NamedTuple):
    """Where a game is played: K, T, S and d."""

    actions: int
    horizon: int
    states: int
    delay: int


class Line(NamedTuple):
    """What was played at one K, T and S, by increasing delay: delays, ratio, low, high [cells]."""

    delays: np.ndarray
    ratio: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def flags(self) -> dict[str, np.ndarray]:
        """Does the wrapper help: surely, on average, perhaps? [cells] each."""
        return {"surely": self.high < 1, "line": self.ratio < 1, "perhaps": self.low < 1}


def phase_diagram(
    states: Sequence[int],
    delays: Sequence[int],
    *,
    actions: Sequence[int] = ACTIONS,
    horizons: Sequence[int] = HORIZONS,
    runs: int = RUNS,
    seed: int = 0,
    family: Any = FAMILY,
    learners: Mapping[str, Any] | None = None,
    within: float = WITHIN,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Final regret of every wrapper and of its base in every cell, and the ratios of the two.

    Args:
      states, delays, actions, horizons: the grid: S, d, K and T.
      runs: per cell and learner, in the same worlds for all learners; on each problem, where the
        family has several: then a run's regret is their mean.
      seed: the root seed.
      family: "utility", "random", or a function (actions, states, delays) -> Environment of the
        numbers K and S and the law FixedDelay(d); d is `delays.d`, for another law of that size.
      learners: label -> wrapper, a learner with a `base`. Default: MetaBIO and MetaAdaBIO.
      within: beyond the grid, play delays between its cells until those on both sides of an end of
        the helpful ones are no further apart than this, relative to the smaller; or by one round.
      store: a folder for finished parts; the same call goes on where it was interrupted.
      progress: show bars.
    Returns:
      A Dataset with final_regret and base_regret [wrapper, actions, horizon, states, delay, run],
      and ratio, low and high [wrapper, actions, horizon, states, delay] as in `ratios`. What was
      played beyond the grid has the dimension `cell`; see `helpful_delays`.
    """
    counts = checks.increasing("states", states, 1)
    axes = {
        "actions": checks.increasing("actions", actions, 2),
        "horizon": checks.increasing("horizons", horizons, 1),
        "delay": checks.increasing("delays", delays, 0),
    }
    within = checks.number("within", within, 0)
    runs = checks.size("runs", runs, 2)  # one has no interval
    known = _checked(wrappers() if learners is None else learners)
    build = _builder(family)
    for size in itertools.product(axes["actions"], counts, axes["delay"]):
        build(*size, 0)  # a family that refuses a size does so before anything is played
    play = partial(_play, build, family_of(family).instances, runs=runs, seed=seed,
                   progress=progress)  # fmt: skip
    parts = [
        play(known, axes | {"states": group}, store=part(store, f"states-{group[0]}-{group[-1]}"))
        for group in size_groups(counts)
    ]
    order = ("wrapper", "actions", "horizon", "states", "delay", "run")
    finals = xr.concat(parts, "states").transpose(*order)
    grid = finals.merge(ratios(finals)).assign_attrs(parts[0].attrs)
    grid.attrs["problems"] = family_of(family).instances
    return _refined(grid, known, play, within, store)


def _checked(learners: Any) -> dict[str, Any]:
    if not isinstance(learners, Mapping) or not learners:
        raise TypeError(f"learners must map labels to wrappers, but got {checks.shown(learners)}")
    for name, learner in learners.items():
        if not hasattr(checks.learner(f"learners[{name!r}]", learner), "base"):
            raise ValueError(
                f"learners must be wrappers, each around a base that it is compared with, but "
                f"{name!r} is {type(learner).__name__}, which has none"
            )
    return dict(learners)


def _builder(family: Any) -> Callable[[int, int, int, int], Environment]:
    """(actions, states, delay, instance) -> Environment; a family gets the law FixedDelay(d)."""
    found = family_of(family)
    return lambda actions, states, delay, instance: problem(
        found, actions, states, FixedDelay(delay), instance
    )


def size_groups(states: Sequence[int]) -> list[list[int]]:
    """State counts whose arrays are padded to one size: a round costs what the largest costs."""
    sizes = np.searchsorted(SIZES, states).tolist()
    return [
        [count for count, own in zip(states, sizes, strict=True) if own == size]
        for size in sorted(set(sizes))
    ]


def _play(
    build: Callable[..., Environment],
    instances: int,
    known: Mapping[str, Any],
    axes: Mapping[str, Sequence[int]],
    cells: Sequence[Cell] = (),
    **options: Any,
) -> xr.Dataset:
    """final_regret and base_regret [wrapper, *axes, run], means over the instances of the family.

    cells: where there is an axis `cell`, what its numbers mean.
    """
    bases = {f"{name}, base": learner.base for name, learner in known.items()}

    def on_grid(actions: int, states: int, delay: int, instance: int) -> Environment:
        return build(actions, states, delay, instance)

    def on_cell(cell: int, instance: int) -> Environment:
        place = cells[cell]
        return build(place.actions, place.states, place.delay, instance)

    data = sweep(
        on_cell if cells else on_grid,
        {**known, **bases},
        {**axes, "instance": list(range(instances))},
        rounds=1,
        keep="finals",
        **options,
    )
    finals = data.final_regret.mean("instance").rename(learner="wrapper")
    names = list(known)
    both = {"final_regret": names, "base_regret": list(bases)}
    return xr.Dataset(
        {
            what: finals.sel(wrapper=labels).assign_coords(wrapper=names)
            for what, labels in both.items()
        },
        attrs=data.attrs,
    )


def ratios(finals: xr.Dataset, level: float = CONFIDENCE) -> xr.Dataset:
    """Ratios of mean final regret, wrapper to its base, with intervals.

    As `ratio_of_means` has them; base and wrapper keep their pairing.

    finals: final_regret and base_regret [..., run]. Returns ratio, low, high: [...].
    """
    both = [finals[name].transpose(..., "run") for name in ("final_regret", "base_regret")]
    means = [_positive(one.mean("run"), str(one.name)) for one in both]
    found = ratio_of_means(both[0].values, both[1].values, level)
    names = ("ratio", "low", "high")
    return xr.Dataset(
        {name: means[0].copy(data=one) for name, one in zip(names, found, strict=True)}
    )


def _positive(means: xr.DataArray, name: str) -> xr.DataArray:
    """Mean regrets [...] of which a ratio can be made."""
    bad = np.argwhere(~(means.values > 0))
    if len(bad):
        one = means[tuple(bad[0])]
        place = ", ".join(f"{axis}={value.item()!r}" for axis, value in one.coords.items())
        raise ValueError(
            f"a ratio needs mean regrets above 0, but {name} has {one.item():g} at {place}: regret "
            "may be negative with adversarial losses, and is 0 where no action is better"
        )
    return means


# --- from a grid to its lines


def _refined(
    data: xr.Dataset,
    known: Mapping[str, Any],
    play: Callable[..., xr.Dataset],
    within: float,
    store: str | os.PathLike[str] | None,
) -> xr.Dataset:
    """Halve the stretches in which an end of the helpful delays lies until they are short."""
    step = 0
    while sought := _sought(data, within):
        found = []
        for (wrapper, *size), own in itertools.groupby(
            sorted(sought, key=lambda one: (_kind(one), one)), _kind
        ):
            cells, name = [cell for _, cell in own], data.wrapper.values[wrapper]
            played = play(
                {name: known[name]},
                {"cell": list(range(len(cells)))},
                cells,
                horizon=cells[0].horizon,
                store=part(store, "-".join(map(str, ["step", step, wrapper, *size]))),
            ).sel(wrapper=name, drop=True)
            found.append(_labelled(ratios(played), name, cells))
        data, step = _with_cells(data, found), step + 1
    return data


def _kind(sought: tuple[int, Cell]) -> tuple[int, int, int, int]:
    """What one program plays: the wrapper, T, K and the size of the arrays of states."""
    wrapper, cell = sought
    return wrapper, cell.horizon, cell.actions, int(np.searchsorted(SIZES, cell.states))


def _sought(data: xr.Dataset, within: float) -> set[tuple[int, Cell]]:
    """Delays halfway between two that are on both sides of an end and too far apart: the number of
    a wrapper, and where it is to play.
    """
    found = set()
    for (number, name), row in itertools.product(enumerate(data.wrapper.values), _rows(data)):
        line = line_of(data, name, *row)
        for flag in line.flags.values():
            for inside, outside in _brackets(line, flag):
                low, high = sorted((line.delays[inside], line.delays[outside]))
                if inside != outside and high - low > max(1, within * low):
                    middle = np.expm1((np.log1p(low) + np.log1p(high)) / 2)
                    between = int(np.clip(round(middle), low + 1, high - 1))
                    found.add((number, Cell(*row, between)))
    return found


def _labelled(cells: xr.Dataset, wrapper: str, places: Sequence[Cell]) -> xr.Dataset:
    """Ratios of cells beyond the grid, with names that do not meet those of the grid."""
    about = {"wrapper": np.full(len(places), wrapper)}
    about |= {name: np.array([getattr(one, name) for one in places]) for name in Cell._fields}
    named = cells.drop_vars([*cells.coords]).rename({name: f"cell_{name}" for name in cells})
    return named.assign({f"cell_{name}": ("cell", values) for name, values in about.items()})


def _with_cells(data: xr.Dataset, found: Sequence[xr.Dataset]) -> xr.Dataset:
    """The grid, and all that was played beyond it."""
    before = [data[[name for name in data if "cell" in data[name].dims]]]
    cells = xr.concat([*(one for one in before if one.sizes), *found], "cell")
    grid = data.drop_dims("cell", errors="ignore")
    return grid.merge(cells).assign_attrs(data.attrs)


def _rows(data: xr.Dataset) -> Iterator[tuple[int, int, int]]:
    """K, T and S of each row of the grid."""
    return itertools.product(*(data[name].values.tolist() for name in Cell._fields[:3]))


def line_of(data: xr.Dataset, wrapper: str, actions: int, horizon: int, states: int) -> Line:
    """All that was played at one K, T and S, on the grid and beyond. data: of `phase_diagram`."""
    place = {"actions": actions, "horizon": horizon, "states": states}
    names = ("delay", "ratio", "low", "high")
    columns = data.sel(place | {"wrapper": wrapper})
    values = np.stack([np.asarray(columns[name], float) for name in names])  # [4, cells]
    if "cell" in data.dims:
        mine = data.cell_wrapper.values == wrapper
        for name, value in place.items():
            mine &= data[f"cell_{name}"].values == value
        more = np.stack([np.asarray(data[f"cell_{name}"], float)[mine] for name in names])
        values = np.concatenate([values, more], axis=1)
    return Line(*values[:, np.argsort(values[0])])


def _brackets(line: Line, flag: np.ndarray) -> list[tuple[int, int]]:
    """(inside, outside) of the stretch of flagged cells around the least ratio, at both its ends.

    Outside is the first cell that is not flagged, or the last one inside where the grid ends. None
    at all where the cell of the least ratio is not flagged. flag: bool [cells].
    """
    best = int(np.argmin(line.ratio))
    if not flag[best]:
        return []
    ends = []
    for step, last in ((-1, 0), (1, len(flag) - 1)):
        inside = best
        while inside != last and flag[inside + step]:
            inside += step
        ends.append((inside, inside if inside == last else inside + step))
    return ends


def helpful_delays(data: xr.Dataset, wrapper: str) -> xr.DataArray:
    """The delays around its best one at which a wrapper has less regret than its base.

    At short delays there is nothing to gain, at very long ones no learner learns: where states
    help, they do so from one delay to another, the dimension `end`. The dimension `reach` has the
    line and its band. line: where the ratio is 1, interpolated between the two delays next to it
    that were played. surely: the outermost delay up to which the 95 % interval of every delay that
    was played lies below 1. perhaps: the next one at which it does not reach below 1. Both were
    played: the band has the noise of the cells and the distance between them. NaN where the base
    wins at every delay (or surely does not lose); the first or last delay of the grid where the
    range goes on beyond it. [actions, horizon, states, end, reach].
    """
    names = Cell._fields[:3]
    ends = [_ends(line_of(data, wrapper, *row)) for row in _rows(data)]
    shape = (*(data.sizes[name] for name in names), len(ENDS), len(REACHES))
    coords = {name: data[name].values for name in names} | {"end": [*ENDS], "reach": [*REACHES]}
    return xr.DataArray(np.reshape(ends, shape), coords, (*names, "end", "reach"))


def _ends(line: Line) -> np.ndarray:
    """[2, 3]: for both ends the delays of `REACHES`."""
    found = np.full((len(ENDS), len(REACHES)), np.nan)
    for column, (reach, flag) in enumerate(line.flags.items()):
        for end, (inside, outside) in enumerate(_brackets(line, flag)):
            found[end, column] = {
                "surely": line.delays[inside],
                "line": _crossing(line, inside, outside),
                "perhaps": line.delays[outside],
            }[reach]
    return found


def _crossing(line: Line, inside: int, outside: int) -> float:
    """The delay at which the ratio is 1: its logarithm is straight over that of 1 + d."""
    if inside == outside:
        return float(line.delays[inside])
    x = np.log1p(line.delays[[inside, outside]])
    y = np.log(line.ratio[[inside, outside]])
    return float(np.expm1(x[0] + y[0] / (y[0] - y[1]) * (x[1] - x[0])))


def undecided(line: Line) -> list[tuple[float, float]]:
    """Stretches of delays, each from one that was played to the next, of which both ends do not
    surely lie on the same side of 1.
    """
    side = np.where(line.high < 1, -1, np.where(line.low >= 1, 1, 0))  # [cells]
    same = (side[1:] == side[:-1]) & (side[1:] != 0)
    return [
        (float(low), float(high))
        for low, high, agree in zip(line.delays[:-1], line.delays[1:], same, strict=True)
        if not agree
    ]
