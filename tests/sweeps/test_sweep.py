"""Sweeps: the labelled result, the games behind it, moments, plans and the front door."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr
from sweeping import BLOCKS, HERE, SMALL, is_played_alike, same, small, small_alone, utility

import jaxbio as jb
from jaxbio.engine.round import begin
from jaxbio.engine.widths import ROUNDS_OF_A_BLOCK
from jaxbio.storage import netcdf
from jaxbio.sweeps import dataset
from jaxbio.sweeps.execute import _Tally
from jaxbio.sweeps.grid import group, make_grid
from jaxbio.sweeps.moments import merged, moments
from jaxbio.sweeps.plan import Job, cut, make_blocks

COMPILED: list[str] = []


def _listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
    if event.endswith("backend_compile_duration"):
        COMPILED.append(event)


jax.monitoring.register_event_duration_secs_listener(_listen)

HORIZON, POINTS = 200, 5
DADA = jb.make_learner("dada-exp3")


def metabio(delta: float) -> Any:
    return jb.make_learner("metabio", delta=delta)


BOTH: dict[str, Any] = {"dada": DADA, "metabio": metabio}
AXES: dict[str, Any] = {"delay": [9, 12], "states": [2, 4], "delta": [0.1, 0.3]}


def play(**options: Any) -> xr.Dataset:
    base = {"environment": utility, "learners": BOTH, "axes": AXES, "horizon": HORIZON}
    base |= {"rounds": POINTS, "progress": False, "seed": 3}
    return jb.sweep(**(base | options))


def alone(env: jb.Environment, learner: Any, runs: int, **options: Any) -> jb.Result:
    """`simulate`, in arrays of its own size."""
    base = {"horizon": HORIZON, "seed": 3, "rounds": POINTS, "width": 8, "progress": False}
    return jb.simulate(env, learner, runs=runs, **(base | options))


@pytest.fixture(scope="module")
def own_blocks() -> xr.Dataset:
    """Two blocks for each setting, one with room left."""
    return play(runs=9, width=8)


@pytest.fixture(scope="module")
def shared_blocks() -> xr.Dataset:
    return play(runs=3)


# --- the dataset


def test_dimensions_and_coordinates(own_blocks: xr.Dataset) -> None:
    dims = ("learner", "delay", "states", "delta", "run", "round")
    assert own_blocks["regret"].dims == own_blocks["loss"].dims == dims
    assert own_blocks["final_regret"].dims == own_blocks["waiting_rounds"].dims == dims[:-1]
    assert own_blocks.sizes == dict(zip(dims, (2, 2, 2, 2, 9, POINTS), strict=True))
    expected = AXES | {"learner": ["dada", "metabio"], "run": list(range(9))}
    expected |= {"round": [40, 80, 120, 160, 200]}
    assert {name: own_blocks[name].values.tolist() for name in own_blocks.coords} == expected
    assert own_blocks["regret"].dtype == own_blocks["final_loss"].dtype == np.float64


def test_attributes(own_blocks: xr.Dataset) -> None:
    units = {"regret": "loss", "loss": "loss", "sigma_max": "losses"}
    units |= dict.fromkeys(("states", "delta", "run"), "1")
    for name, variable in own_blocks.drop_vars("learner").variables.items():
        plain = str(name).removeprefix("final_")
        assert variable.attrs["units"] == units.get(plain, "rounds"), name
        assert variable.attrs["long_name"]
    attributes = own_blocks.attrs
    assert attributes["seed"] == 3
    assert attributes["runs"] == 9
    assert attributes["keep"] == "curves"
    assert attributes["version_jax"] == jax.__version__
    assert attributes["version_jaxbio"] == jb.__version__
    assert {"version_jaxlib", "version_numpy", "platform", "python"} <= attributes.keys()
    assert attributes["precision"] == "float32"
    assert attributes["backend"] == "llvm"
    assert {"machine", "cpu_features", "xla_flags", "sources"} <= attributes.keys()


def test_the_settings_are_spelled_out(own_blocks: xr.Dataset) -> None:
    settings = json.loads(own_blocks.attrs["settings"])
    assert {label: len(points) for label, points in settings.items()} == {"dada": 4, "metabio": 8}
    point = settings["metabio"]["delay=9, delta=0.3, states=4"]
    assert point["horizon"] == HORIZON
    assert point["environment.delays.d"] == 9
    assert point["environment.losses.theta"] == [0.2, 1, 1, 1]
    assert point["learner"] == "MetaBIO"
    assert point["learner.delta"] == metabio(0.3).delta
    assert point["learner.base"] == "DAdaExp3"


@pytest.mark.parametrize("seed", [0, 2**32 - 1, "key"])
def test_netcdf_and_back(seed: Any, tmp_path: Path) -> None:
    """Through SciPy, which knows only netCDF 3: 32-bit integers, no bool."""
    axes = {"delay": [9], "scale": [1.0, 2.0], "name": ["a", "b"], "flag": [True, False]}
    learner = lambda scale, name, flag: jb.make_learner("dada-exp3", scale=scale)  # noqa: E731
    given = jax.random.key(5, impl="threefry2x32") if seed == "key" else seed
    data = play(learners={"dada": learner}, axes=axes, runs=9, quantiles=[0.5], seed=given)
    data.to_netcdf(tmp_path / "data.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "data.nc", engine="scipy") as back:
        xr.testing.assert_equal(back.load(), data)
        assert {k: str(v) for k, v in back.attrs.items()} == {
            k: str(v) for k, v in data.attrs.items()
        }
        assert back["regret"].attrs == data["regret"].attrs
    assert str(data.attrs["seed"]) == ("key of words [0, 5]" if seed == "key" else str(seed))


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = netcdf.save(xr.Dataset({"x": ("run", [1, 2])}), tmp_path / "folder" / "data.nc")
    whole = file.read_bytes()

    def crash(self: Any, path: Path, **_: Any) -> None:
        path.write_bytes(b"half of")
        raise OSError("no space left")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", crash)
    with pytest.raises(OSError, match="no space left"):
        netcdf.save(xr.Dataset({"x": ("run", [3, 4])}), file)
    assert [found.name for found in file.parent.iterdir()] == ["data.nc"]
    assert file.read_bytes() == whole


def test_totals_past_2_to_the_31_survive_netcdf(tmp_path: Path) -> None:
    """The sum of delays of a long run is an int64, which netCDF 3 does not have."""
    grid = make_grid(utility(), {"dada": DADA}, {}, 10**6)
    total = np.array([[2**31 - 1, 2**31, 2**40 + 1]])
    data = xr.Dataset({"total_delay": dataset._variable(grid, "total_delay", total, "run")})
    assert data["total_delay"].dtype == np.int64
    data.to_netcdf(tmp_path / "data.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "data.nc", engine="scipy") as back:
        xr.testing.assert_equal(back.load(), data)


# --- facts that are not the same everywhere


def labelled(facts: dict[str, dict[str, Any]]) -> xr.Dataset:
    """learner -> fact -> its values of 2 runs, put together in the order given."""
    learners = {label: jb.make_learner("dada-exp3") for label in facts}
    grid = make_grid(utility(), learners, {}, HORIZON)
    job = Job(grid, 2, 0, 1, "finals", True)
    groups = group(grid.settings)
    blocks = make_blocks(groups, cut(groups, job, 2), job.runs)
    names = [grid.settings[block.members[0, 0]].label for block in blocks]
    kept = [
        {"backend": np.array("llvm")} | {f"info.{name}": x for name, x in facts[label].items()}
        for label in names
    ]
    return dataset.label(grid, blocks, kept.__getitem__, job, np.empty(0), {})


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_a_fact_has_a_type_that_holds_it_for_all_learners(names: tuple[str, str]) -> None:
    values = [np.array([1, 2], np.int32), np.array([3, 2**40])]
    facts = {name: {"total": x} for name, x in zip(names, values, strict=True)}
    data = labelled(facts)["total"]
    assert data.dtype == np.int64
    for name, x in zip(names, values, strict=True):
        np.testing.assert_array_equal(data.sel(learner=name), x)


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_a_fact_that_a_learner_does_not_report_is_missing(names: tuple[str, str]) -> None:
    one, other = names
    facts = {"count": np.array([1, 2], np.int32), "is_late": np.array([True, False])}
    data = labelled({one: facts, other: {}})
    for name, x in facts.items():
        np.testing.assert_array_equal(data[name].sel(learner=one), x)
        assert np.isnan(data[name].sel(learner=other)).all()
    assert "units" not in data["count"].attrs  # whose meaning nobody knows
    assert data["count"].attrs["long_name"] == "count"


# --- every point is a game of `simulate`


@pytest.mark.parametrize("runs", [9, 3])
def test_every_cell_is_what_simulate_gives(runs: int, request: pytest.FixtureRequest) -> None:
    """Of its own blocks, and of blocks that several settings share."""
    data = request.getfixturevalue("own_blocks" if runs == 9 else "shared_blocks")
    for delay, states, delta in itertools.product(*AXES.values()):
        cell = data.sel(delay=delay, states=states, delta=delta)
        env = utility(delay, states).padded(4)
        is_played_alike(cell.sel(learner="dada"), alone(env, DADA, runs))
        is_played_alike(cell.sel(learner="metabio"), alone(env, metabio(delta), runs))
    smallest = data.sel(learner="metabio", delay=9, states=2, delta=0.3)
    is_played_alike(smallest, alone(utility(9, 2), metabio(0.3), runs))


def test_few_runs_are_the_first_of_many(own_blocks: xr.Dataset, shared_blocks: xr.Dataset) -> None:
    for name in ("regret", "loss", "waiting_rounds"):
        first = own_blocks[name].isel(run=slice(3))
        xr.testing.assert_equal(first, shared_blocks[name])


def test_a_learner_that_ignores_an_axis_is_played_once(own_blocks: xr.Dataset) -> None:
    plan = jb.plan_sweep(utility, BOTH, AXES, horizon=HORIZON, runs=9)
    assert plan.settings == 4 + 8
    dada = own_blocks["regret"].sel(learner="dada")
    xr.testing.assert_equal(dada.sel(delta=0.1, drop=True), dada.sel(delta=0.3, drop=True))
    other = own_blocks["regret"].sel(learner="metabio")
    assert (other.sel(delta=0.1) != other.sel(delta=0.3)).any()


@pytest.mark.parametrize("runs", [8, 2])
def test_random_delays(runs: int) -> None:
    def env(high: int) -> jb.Environment:
        return utility(jb.UniformDelay(0, high))

    data = play(environment=env, learners={"dada": DADA}, axes={"high": [8, 9]}, runs=runs)
    for high in (8, 9):
        is_played_alike(data.sel(learner="dada", high=high), alone(env(high), DADA, runs))


def test_growth_of_phases_as_an_axis() -> None:
    def env(growth: float) -> jb.Environment:
        return jb.make_environment("paper-adversarial", growth=growth, delays=jb.FixedDelay(5))

    for runs in (8, 2):
        data = play(environment=env, learners={"dada": DADA}, axes={"growth": [1.6, 2]}, runs=runs)
        for growth in (1.6, 2):
            is_played_alike(data.sel(learner="dada", growth=growth), alone(env(growth), DADA, runs))


def test_names_as_an_axis() -> None:
    def learner(tuning: str) -> Any:
        return jb.DAdaExp3(tuning=tuning)

    axes = {"tuning": ["corrected", "anytime"]}
    plan = jb.plan_sweep(utility(), {"dada": learner}, axes, horizon=HORIZON, runs=8)
    assert plan.programs == 2
    data = play(environment=utility(), learners={"dada": learner}, axes=axes, runs=8)
    assert data["tuning"].values.tolist() == axes["tuning"]
    for tuning in axes["tuning"]:
        cell = data.sel(learner="dada", tuning=tuning)
        is_played_alike(cell, alone(utility(), learner(tuning), 8))


@pytest.mark.parametrize("runs", [8, 2])
def test_the_horizon_as_an_axis(runs: int) -> None:
    """It need not be named by a callable; one that names it gets it."""
    axes = {"horizon": [200, 120], "delay": [2, 9]}
    data = play(learners={"dada": DADA}, axes=axes, horizon=None, runs=runs)
    assert data["regret"].dims == ("learner", "horizon", "delay", "run", "part")
    assert data["round"].dims == ("horizon", "part")
    for horizon in (200, 120):
        cell = data.sel(learner="dada", horizon=horizon, delay=9)
        assert cell["round"][-1] == horizon
        is_played_alike(cell, alone(utility(9, 4), DADA, runs, horizon=horizon))
    cell = data.sel(learner="dada", horizon=200, delay=2)  # alone it has a smaller ring
    is_played_alike(cell, alone(utility(2, 4), DADA, runs))


def test_the_horizon_reaches_a_callable_that_names_it() -> None:
    def env(horizon: int) -> jb.Environment:
        return utility(horizon // 20)

    grid = jb.sweep(env, {"dada": DADA}, {"horizon": [100, 200]}, runs=8, rounds=5, progress=False)
    settings = json.loads(grid.attrs["settings"])["dada"]
    assert settings["horizon=100"]["environment.delays.d"] == 5
    assert settings["horizon=200"]["environment.delays.d"] == 10


def test_objects_and_arrays_as_axes(tmp_path: Path) -> None:
    """Fixed and random delays cost a program each; with a store too."""
    delays = [jb.FixedDelay(9), jb.UniformDelay(0, 9)]
    options: dict[str, Any] = {"learners": {"dada": DADA}, "axes": {"delay": delays}, "runs": 8}
    data = play(**options, store=tmp_path / "objects")
    assert data["delay"].values.tolist() == ["FixedDelay(d=9)", "UniformDelay(low=0, high=9)"]
    for i, delay in enumerate(delays):
        is_played_alike(data.isel(learner=0, delay=i), alone(utility(delay), DADA, 8))
    same(play(**options, store=tmp_path / "objects"), data)

    def env(theta: Any) -> jb.Environment:
        mapping = utility().mapping
        return jb.Environment(mapping, jb.BernoulliLosses(theta), jb.FixedDelay(9))

    thetas = np.array([[0.2, 1, 1, 1], [0.4, 0.5, 0.6, 0.7]])
    for axis in (thetas, thetas.tolist()):
        data = play(environment=env, learners={"dada": DADA}, axes={"theta": axis}, runs=8)
        is_played_alike(data.isel(learner=0, theta=1), alone(env(thetas[1]), DADA, 8))


def test_a_learner_may_be_fixed_and_axes_none() -> None:
    data = play(environment=utility(), learners={"dada": DADA}, axes={}, runs=8)
    assert data["regret"].dims == ("learner", "run", "round")
    is_played_alike(data.sel(learner="dada"), alone(utility(), DADA, 8))


# --- what never changes a run


def test_order_and_company_do_not_change_a_run(own_blocks: xr.Dataset) -> None:
    turned = play(
        learners=dict(reversed(BOTH.items())), axes=dict(reversed(AXES.items())), runs=9, width=8
    )
    xr.testing.assert_equal(turned["regret"].sel(learner=["dada", "metabio"]).transpose(
        *own_blocks["regret"].dims), own_blocks["regret"])  # fmt: skip
    lonely = play(learners={"dada": DADA}, axes={"delay": [12], "states": [4]}, runs=9, width=8)
    expected = own_blocks["regret"].sel(learner="dada", delay=12, states=4, delta=0.1)
    np.testing.assert_array_equal(lonely["regret"].values.squeeze(), expected)


def test_width_and_workers_do_not_change_a_run(own_blocks: xr.Dataset) -> None:
    xr.testing.assert_identical(play(runs=9, workers=1, width=8)["regret"], own_blocks["regret"])
    one = play(runs=9, learners={"dada": DADA}, axes={"delay": [9], "states": [4]})
    expected = own_blocks["regret"].sel(learner="dada", delay=9, states=4, delta=0.1)
    np.testing.assert_array_equal(one["regret"].values.squeeze(), expected)


def test_learners_meet_the_same_worlds_unless_unpaired() -> None:
    options: dict[str, Any] = {"environment": utility(), "axes": {}, "runs": 8}
    twins = {"one": DADA, "two": DADA}
    paired = play(learners=twins, **options)["regret"]
    np.testing.assert_array_equal(paired.sel(learner="one"), paired.sel(learner="two"))
    apart = play(learners=twins, paired=False, **options)["regret"]
    assert (apart.sel(learner="one") != apart.sel(learner="two")).any("round").all()
    assert (apart.sel(learner="one") != paired.sel(learner="one")).any("round").all()
    more = {"three": DADA, "two": DADA, "one": DADA}
    again = play(learners=more, paired=False, **options)["regret"]
    for label in twins:
        np.testing.assert_array_equal(again.sel(learner=label), apart.sel(learner=label))


def test_an_unpaired_learner_meets_one_world_at_all_points() -> None:
    """Two numbers that make no difference: the same games."""
    learner = lambda twin: DADA  # noqa: E731
    data = play(
        environment=utility(), learners={"dada": learner}, axes={"twin": [0, 1]}, runs=8,
        paired=False,
    )  # fmt: skip
    np.testing.assert_array_equal(data["regret"].sel(twin=0), data["regret"].sel(twin=1))


# --- moments and finals


def test_moments_are_those_of_the_curves() -> None:
    curves, kept = small_alone()["regret"], small(keep="moments", quantiles=[0, 0.25, 0.9])
    assert "regret" not in kept
    assert kept["regret_mean"].dims == ("learner", "delay", "states", "round")
    np.testing.assert_allclose(kept["regret_mean"], curves.mean("run"), rtol=1e-14)
    np.testing.assert_allclose(kept["regret_variance"], curves.var("run", ddof=1), rtol=1e-12)
    np.testing.assert_array_equal(kept["regret_min"], curves.min("run"))
    np.testing.assert_array_equal(kept["regret_max"], curves.max("run"))
    assert kept["regret_variance"].attrs["units"] == "loss^2"
    finals = small_alone()["final_regret"]
    xr.testing.assert_identical(kept["final_regret"], finals)
    expected = np.quantile(finals.values, [0, 0.25, 0.9], axis=-1)
    found = kept["final_regret_quantile"]
    assert found["quantile"].values.tolist() == [0, 0.25, 0.9]
    np.testing.assert_array_equal(found.transpose("quantile", ...), expected)


def test_moments_hardly_depend_on_the_cut() -> None:
    two, one = small(keep="moments"), small(keep="moments", width=16)
    same(small(keep="moments", workers=1), two)
    for name in ("regret_mean", "regret_variance", "regret_min", "regret_max"):
        np.testing.assert_allclose(two[name], one[name], rtol=1e-12)


def test_moments_of_blocks_that_settings_share() -> None:
    options: dict[str, Any] = {"runs": 3, "learners": {"dada": DADA}}
    options["axes"] = {"delay": [2, 9, 5], "states": [2, 4]}
    options["width"] = 8  # a block ends among the runs of a setting
    curves, kept = play(**options)["regret"], play(keep="moments", **options)
    np.testing.assert_allclose(kept["regret_mean"], curves.mean("run"), rtol=1e-14)
    np.testing.assert_allclose(kept["regret_variance"], curves.var("run", ddof=1), rtol=1e-11)
    np.testing.assert_array_equal(kept["regret_max"], curves.max("run"))


def test_the_variance_of_one_run_is_not_a_number() -> None:
    kept = play(runs=1, keep="moments", learners={"dada": DADA}, axes={"states": [2, 4]})
    assert kept["regret_variance"].isnull().all()
    assert not kept["regret_mean"].isnull().any()


def test_merging_in_any_cut() -> None:
    values = np.random.default_rng(0).normal(1e6, 1, (4, 50))
    for cuts in ([], [1], [20, 21, 40], list(range(1, 50))):
        whole = merged(moments(piece) for piece in np.split(values, cuts, axis=1))
        np.testing.assert_allclose(whole.mean, values.mean(axis=1), rtol=1e-15)
        np.testing.assert_allclose(whole.variance, values.var(axis=1, ddof=1), rtol=1e-8)
        np.testing.assert_array_equal(whole.least, values.min(axis=1))
        np.testing.assert_array_equal(whole.most, values.max(axis=1))
        assert (whole.count == 50).all()


def test_finals_only() -> None:
    kept = small(keep="finals", quantiles=0.5)
    assert not {"regret", "loss", "regret_mean"} & set(kept)
    for name in ("final_regret", "final_loss", "total_delay"):
        xr.testing.assert_identical(kept[name], small_alone()[name])
    np.testing.assert_array_equal(
        kept["final_regret_quantile"].squeeze("quantile"), kept["final_regret"].median("run")
    )


# --- the front door


def broken_at_9(delay: int) -> jb.Environment:
    return jb.make_environment("hard-delay", horizon=50 if delay == 9 else 900, delay=delay)


DOOR: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "an axis that is not there": (
        {"environment": lambda d: utility(d)},
        ValueError,
        "environment asks for 'd', but the axes are delay, states",
    ),
    "a learner's axis that is not there": (
        {"learners": {"x": metabio}},
        ValueError,
        "learner 'x' asks for 'delta', but the axes are delay, states",
    ),
    "an axis that nobody names": (
        {"environment": utility()},
        ValueError,
        "axis 'delay' is named by neither the environment nor a learner",
    ),
    "an empty axis": ({"axes": {"delay": []}}, ValueError, "axis 'delay' must have at least one"),
    "a value twice": ({"axes": {"delay": [2, 9, 2]}}, ValueError, "axis 'delay' has a value twice"),
    "an array twice": (
        {"axes": {"delay": [2], "states": [[1, 2], [1, 2]]}},
        ValueError,
        "axis 'states' has a value twice",
    ),
    "a set as an axis": ({"axes": {"delay": {2, 9}}}, TypeError, "must be a list of values"),
    "an array without an axis": (
        {"axes": {"delay": np.array(2)}},
        TypeError,
        "axis 'delay' must be a list of values, but got array(2)",
    ),
    "not a number twice": (
        {"axes": {"delay": [float("nan"), float("nan")]}},
        ValueError,
        "axis 'delay' has a value twice: [nan, nan]",
    ),
    "numbers and names": (
        {"axes": {"delay": [1, "b"]}},
        ValueError,
        "axis 'delay' must have values of one kind, numbers or names or truth values, but got [1,",
    ),
    "an axis called as a result": (
        {"axes": {"loss": [1]}},
        ValueError,
        "an axis cannot be called 'loss': the result has a variable",
    ),
    "an axis called as a fact": (
        {"environment": lambda sigma_max: utility(), "axes": {"sigma_max": [1]}},
        ValueError,
        "an axis cannot be called 'sigma_max': the result has a variable",
    ),
    "a reserved name": ({"axes": {"run": [1]}}, ValueError, "an axis cannot be called 'run'"),
    "a name with a blank": ({"axes": {"a b": [1]}}, ValueError, "but one has 'a b'"),
    "a string as an axis": ({"axes": {"delay": "29"}}, TypeError, "must be a list of values"),
    "axes without names": ({"axes": [1, 2]}, TypeError, "axes must map names to values"),
    "no horizon": ({"horizon": None}, ValueError, "either as horizon=... or as an axis 'horizon'"),
    "two horizons": (
        {"axes": {"delay": [2], "horizon": [100]}},
        ValueError,
        "but got horizon=300 and axes delay, horizon",
    ),
    "a bad horizon": (
        {"horizon": None, "axes": {"delay": [2], "horizon": [0]}},
        ValueError,
        "horizon must be in [1,",
    ),
    "a list of rounds where the horizon is an axis": (
        {"horizon": None, "axes": {"delay": [2], "horizon": [9]}, "rounds": [3, 9]},
        ValueError,
        "rounds must be a number where the horizon is an axis",
    ),
    "more rounds than the shortest horizon": (
        {"horizon": None, "axes": {"delay": [2], "horizon": [4, 300]}},
        ValueError,
        "rounds=6 is more than the shortest horizon 4: record at most 4 rounds",
    ),
    "a wrong keep": ({"keep": "all"}, ValueError, "keep must be one of 'curves', 'moments'"),
    "a quantile outside": ({"quantiles": [0.5, 1.1]}, ValueError, "but got [0.5, 1.1]"),
    "one quantile outside": ({"quantiles": -1}, ValueError, "but got [-1.0]"),
    "quantiles in a table": (
        {"quantiles": [[0.1, 0.5]]},
        ValueError,
        "quantiles must be a list of numbers, but got [[0.1, 0.5]]",
    ),
    "a word for a quantile": ({"quantiles": "a"}, TypeError, "numbers in [0, 1], but got 'a'"),
    "a quantile twice": ({"quantiles": [0.5, 0.5]}, ValueError, "different, but got [0.5, 0.5]"),
    "a word for seconds": ({"checkpoint": "x"}, TypeError, "checkpoint must be a number, but got"),
    "seconds below 0": ({"checkpoint": -1}, ValueError, "checkpoint must be at least 0, but got"),
    "a word for quantiles": ({"quantiles": "0.1"}, TypeError, "quantiles must be numbers in"),
    "truth for quantiles": ({"quantiles": [True]}, TypeError, "quantiles must be numbers in"),
    "a word for bytes": ({"memory": "2GB"}, TypeError, "memory must be a number, but got '2GB'"),
    "no number of bytes": ({"memory": float("nan")}, ValueError, "memory must be greater than 0"),
    "bytes below 0": ({"memory": -5}, ValueError, "memory must be greater than 0, but got -5.0"),
    "a number for a folder": ({"store": 3}, TypeError, "must be the path of a folder, but got 3"),
    "a horizon and a half": (
        {"horizon": None, "axes": {"delay": [2], "horizon": [100.5]}},
        ValueError,
        "horizon must be an integer, but got 100.5",
    ),
    "no runs": ({"runs": 0}, ValueError, "runs must be at least 1"),
    "a width of 0": ({"width": 0}, ValueError, "width must be at least 1"),
    "no workers": ({"workers": 0}, ValueError, "workers must be at least 1"),
    "a bad seed": ({"seed": -1}, ValueError, "seed must be in [0,"),
    "paired=1": ({"paired": 1}, TypeError, "paired"),
    "progress=1": ({"progress": 1}, TypeError, "progress"),
    "an address for a client": (
        {"client": "tcp://127.0.0.1:8786"},
        TypeError,
        "client must be a distributed.Client, but got 'tcp://127.0.0.1:8786'",
    ),
    "learners in a list": ({"learners": [DADA]}, TypeError, "learners must map labels"),
    "no learners": ({"learners": {}}, TypeError, "learners must map labels"),
    "a label that is no string": ({"learners": {1: DADA}}, TypeError, "label must be a string"),
    "a learner's name": ({"learners": {"x": "dada-exp3"}}, TypeError, "learner 'x' must be one"),
    "no environment": ({"environment": 3}, TypeError, "environment must be one, or a function"),
}


@pytest.mark.parametrize("what", DOOR)
def test_errors_at_the_front_door(what: str, tmp_path: Path) -> None:
    options, kind, message = DOOR[what]
    if options.get("store") == "never":
        options = options | {"store": tmp_path / "never"}
    before = len(COMPILED)
    with pytest.raises(kind) as caught:
        small(**options)
    assert message in str(caught.value)
    assert len(COMPILED) == before
    assert not (tmp_path / "never").exists()


def test_a_bad_point_is_named() -> None:
    with pytest.raises(ValueError, match="has 50 rows, but the horizon is 300") as caught:
        small(environment=broken_at_9, axes={"delay": [2, 9]})
    assert caught.value.__notes__ == ["learner 'dada' at delay=9"]
    with pytest.raises(KeyError) as unknown:
        small(environment=lambda delay, states: {2: utility()}[delay])
    assert unknown.value.__notes__ == ["environment at delay=9, states=2"]
    with pytest.raises(ValueError, match="delta") as wrong:
        small(learners={"x": metabio}, axes=SMALL["axes"] | {"delta": [0.1, 2.0]})
    assert wrong.value.__notes__ == ["learner 'x' at delta=2.0"]


def test_a_fact_called_as_a_result_is_refused() -> None:
    class Talking(jb.DAdaExp3):
        def facts(self, state: Any) -> dict[str, Any]:
            return {"regret": jax.numpy.int32(0)}

    with pytest.raises(ValueError, match="learner 'x' reports a fact called 'regret', which is"):
        small(learners={"x": jb.pytree(Talking)()})


def test_arrays_of_jax_and_whole_floats_as_axes() -> None:
    """They become numbers, as those of NumPy do."""
    axes = {"delay": jax.numpy.array([2, 9]), "horizon": np.array([100.0, 200.0])}
    grid = make_grid(utility, {"dada": DADA}, axes, None)
    assert grid.axes == {"delay": [2, 9], "horizon": [100, 200]}
    assert [type(value) for values in grid.axes.values() for value in values] == [int] * 4
    assert grid.labels("delay") == [2, 9]


MANY_MOMENTS = {"axes": {"delay": range(29)}, "horizon": 999, "rounds": 999, "keep": "moments"}


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"rounds": 300, "runs": 99}, "use keep='moments' or fewer rounds="),
        (MANY_MOMENTS, "use keep='finals' or fewer rounds="),
        ({"keep": "finals", "runs": 4000}, "use fewer runs=, or several sweeps"),
        ({"keep": "finals", "axes": {"delay": range(99)}}, "use fewer runs=, or several sweeps"),
        ({"axes": {"delay": [200]}, "keep": "finals"}, "use fewer workers=, a smaller width="),
    ],
)
@pytest.mark.parametrize("share", [0.01, 0.99])
def test_what_cannot_fit_is_refused_with_the_remedy(
    options: dict[str, Any], remedy: str, share: float
) -> None:
    """Before there are any settings where that is enough to know, else when all are there."""
    options = {"workers": 1} | options
    plan = jb.plan_sweep(**(SMALL | options))
    before = len(COMPILED)
    with pytest.raises(MemoryError) as caught:
        small(memory=share * plan.bytes, **options)
    assert "there are; use " in str(caught.value)
    assert len(COMPILED) == before
    if share > 0.9:
        assert str(plan) in str(caught.value)
        assert remedy in str(caught.value)


def test_a_plan_says_what_it_takes_and_compiles_nothing() -> None:
    before = len(COMPILED)
    options = {name: value for name, value in SMALL.items() if name != "progress"}
    plan = jb.plan_sweep(**options, workers=2, quantiles=[0.5], store=Path("never"), seed=3)
    assert len(COMPILED) == before
    assert (plan.settings, plan.runs, plan.rounds) == (6, 96, 96 * 300)
    assert (plan.programs, plan.blocks) == (1, 12)
    held = sum(variable.nbytes for variable in small_alone().data_vars.values())
    assert held <= plan.bytes_of_result <= 4 * held  # the parts, and then the whole
    assert not Path("never").exists()
    assert "6 settings, 96 runs, 2.88e+04 rounds in 12 blocks of 1 program;" in str(plan)


@pytest.mark.parametrize("name", jb.learner_names())
def test_a_plan_counts_what_a_learner_remembers(name: str) -> None:
    """Everything that a block carries from round to round, by itself and in the plan: a block of 16
    runs has room for 32.
    """
    env, width = utility(2000), 16
    grid = make_grid(env, {name: jb.make_learner(name)}, {}, 3000)
    (found,) = group(grid.settings)
    real = jax.eval_shape(begin, found.games[0])
    carried = 32 * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(real))
    plan = jb.plan_sweep(
        env, {name: jb.make_learner(name)}, {}, horizon=3000, width=width, runs=16, workers=1
    )
    assert carried <= plan.bytes_at_work <= 1.2 * carried + 1_000_000
    two = jb.plan_sweep(
        env, {name: jb.make_learner(name)}, {}, horizon=3000, width=width, runs=32, workers=2
    )
    assert two.bytes_at_work == 2 * plan.bytes_at_work


def test_blocks_of_a_learner_that_remembers_much_are_narrow() -> None:
    env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(9000))
    plan = jb.plan_sweep(
        env, {"bold": jb.make_learner("bold-exp3")}, {}, horizon=20_000, runs=10_000, keep="finals",
        workers=1,
    )  # fmt: skip
    assert 1e7 < plan.bytes_at_work < 3e8


def test_a_deep_ring_is_planned_as_it_is_and_refused() -> None:
    """16 runs with losses 10^7 rounds late: an int32 pair for each of 10 x 2^20 rounds, 32 runs."""
    arguments: dict[str, Any] = {
        "environment": jb.make_environment("paper-stochastic", delays=jb.FixedDelay(10**7)),
        "learners": {"metabio": jb.make_learner("metabio")},
        "axes": {},
        "horizon": 2 * 10**7,
        "runs": 16,
        "workers": 1,
    }
    assert jb.plan_sweep(**arguments).bytes_at_work == pytest.approx(32 * 8 * 10 * 2**20, rel=0.01)
    with pytest.raises(MemoryError, match=r"at work 2.69 GB.* more than the 2 GB there are"):
        jb.sweep(**arguments, memory=2e9, progress=False)
    stored = jb.plan_sweep(**arguments, store="never")  # written, a block is there a second time
    assert stored.bytes_at_work == pytest.approx(2 * 32 * 8 * 10 * 2**20, rel=0.01)


def test_a_plan_counts_what_a_round_makes_on_the_way() -> None:
    """NSD-UCRL2 sorts the states of every action by every other: K S^2 numbers of each run."""
    env = jb.make_environment("paper-utility", actions=3, states=200, delays=jb.FixedDelay(9))
    learners = {"nsd": jb.make_learner("nsd-ucrl2")}
    plan = jb.plan_sweep(env, learners, {}, horizon=100, runs=32, workers=1)
    assert 32 * 3 * 200**2 * 4 <= plan.bytes_at_work <= 2 * 32 * 3 * 200**2 * 4


PEAK = """
import re
from pathlib import Path
import jax, jax.numpy as jnp, jaxbio as jb

def peak():  # not of the operating system's `resource`: that begins at the peak of the parent
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

@jb.pytree
class Hoarder:  # 16 numbers for every loss on its way
    def init(self, known):
        return jnp.zeros(())
    def act(self, state, t, u):
        return jnp.int32(0), (u,) * 16
    def learn(self, state, t, play, arrivals):
        return state + jnp.sum(arrivals.play.ticket[3]), play.ticket

jax.block_until_ready(jnp.zeros(1))
before = peak()
arguments = dict(
    environment=jb.make_environment("paper-stochastic", delays=jb.FixedDelay(250_000)),
    learners={"hoarder": Hoarder()},
    axes={}, horizon=270_000, runs=16, workers=1, progress=False,
)
plan = jb.plan_sweep(**arguments)
jb.sweep(**arguments)
print(peak() - before, plan.bytes)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="where peaks are told")
def test_a_plan_is_what_a_process_takes() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    said = subprocess.run(
        [sys.executable, "-c", PEAK], env=environment, capture_output=True, text=True, check=True
    )
    peak, planned = map(int, said.stdout.split())
    assert 0.9 * planned <= peak <= 1.25 * planned


# --- planning: counted first, allocated later


@pytest.fixture
def little_memory() -> Iterator[Callable[[], int]]:
    """The most bytes that Python and NumPy have held so far."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def many(**options: Any) -> dict[str, Any]:
    one = {"axes": {}, "environment": utility(9), "width": None, "keep": "finals"}
    return SMALL | one | options


def test_a_billion_runs_are_planned_and_refused(little_memory: Callable[[], int]) -> None:
    plan = jb.plan_sweep(**many(runs=10**9))
    assert (plan.runs, plan.rounds) == (10**9, 300 * 10**9)
    assert plan.bytes_of_result > 8 * 9 * 10**9
    assert plan.blocks >= 10**9 / (ROUNDS_OF_A_BLOCK / 300 + 32)
    with pytest.raises(MemoryError, match=r"1,000,000,000 runs; result at least 1\d\d GB"):
        jb.sweep(**many(runs=10**9, memory=1e9))
    assert little_memory() < 20_000_000


def test_planning_does_not_look_at_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million runs of many recorded rounds: the stops of a block are made once, not in each."""
    schedule: Any = sys.modules["jaxbio.sweeps.plan"]
    asked: list[int] = []
    stops_of = schedule.stops_of
    watched = lambda points: asked.append(len(points)) or stops_of(points)  # noqa: E731
    monkeypatch.setattr(schedule, "stops_of", watched)
    plan = jb.plan_sweep(**many(runs=10**6, horizon=10**5, rounds=1000))
    assert plan.blocks > 1000
    assert len(asked) <= 3


def test_settings_are_counted_before_they_are_made(little_memory: Callable[[], int]) -> None:
    def never(delay: int, states: int) -> Any:
        raise AssertionError("made")

    axes = {"delay": range(10**4), "states": range(10**4)}
    for call in (jb.sweep, jb.plan_sweep):
        with pytest.raises(MemoryError, match=r"sweep: 100,000,000 settings.*several sweeps"):
            call(**many(environment=never, axes=axes, memory=1e9))
        with pytest.raises(MemoryError, match=r"axis 'delay' of 1,000,000,000,000 values"):
            call(**many(environment=never, axes={"delay": range(10**12)}, memory=1e9))
    assert little_memory() < 20_000_000


def test_settings_are_counted_while_they_are_made() -> None:
    """Each holds a table of its own."""
    made: list[int] = []

    def tables(delay: int) -> jb.Environment:
        made.append(delay)
        mapping = jb.TableMapping(np.zeros((10_000, 2), int))
        return jb.Environment(mapping, jb.BernoulliLosses([0.1, 0.9]), jb.FixedDelay(delay))

    with pytest.raises(MemoryError, match=r"its first settings take .* more than the 5 MB"):
        jb.plan_sweep(**many(environment=tables, axes={"delay": range(500)}, memory=5e6))
    assert 10 < len(made) < 100


def test_a_wrong_number_of_runs_is_seen_before_settings_are_made() -> None:
    def never(delay: int) -> Any:
        raise AssertionError("made")

    with pytest.raises(ValueError, match="runs must be at least 1"):
        jb.sweep(**many(environment=never, axes={"delay": [1, 2]}, runs=0))


@pytest.mark.parametrize("runs", [1, 5, 40, 300])
@pytest.mark.parametrize("width", [None, 7])
def test_blocks_are_those_that_were_counted(runs: int, width: int | None) -> None:
    axes = {"delay": [2, 9], "states": [2, 4, 5], "horizon": [50, 90]}
    grid = make_grid(utility, {"dada": DADA, "metabio": metabio(0.1)}, axes, None)
    job = Job(grid, runs, 0, 10, "finals", True)
    groups = group(grid.settings)
    cuts = cut(groups, job, width)
    blocks = make_blocks(groups, cuts, runs)
    assert len(blocks) == sum(one.count(runs) for one in cuts)
    pairs = [tuple(pair) for block in blocks for pair in block.members.tolist()]
    assert sorted(pairs) == [(i, run) for i in range(len(grid.settings)) for run in range(runs)]
    for block in blocks:
        made = [recipe.made() for recipe in block.games.recipes]
        games = made if block.stacked else made * len(block.members)
        for game, (setting, _) in zip(games, block.members, strict=True):
            assert game.known.horizon == grid.settings[setting].horizon
            assert game.env.delays.d == grid.settings[setting].env.delays.d


def test_what_is_kept_of_a_block_is_no_view_of_more(monkeypatch: pytest.MonkeyPatch) -> None:
    playing: Any = sys.modules["jaxbio.sweeps.execute"]
    land, kept = playing.land, []

    def watched(*args: Any) -> Any:
        landed = land(*args)
        kept.append({**landed.kept, **landed.flags})
        return landed

    monkeypatch.setattr(playing, "land", watched)
    small(keep="finals")
    assert len(kept) == BLOCKS
    held = [array.nbytes if array.base is None else array.base.nbytes
            for arrays in kept for array in arrays.values()]  # fmt: skip
    assert sum(held) == sum(array.nbytes for arrays in kept for array in arrays.values())


# --- programs

COUNT = """
import jax, jaxbio as jb
from jaxbio.engine.backends import machine_code
compiled, by_xla = [], []
object_code = machine_code.object_code
def counted(text, *target):
    compiled.append(text)
    return object_code(text, *target)
machine_code.object_code = counted
def listen(event, duration, **_):
    if event.endswith("backend_compile_duration"):
        by_xla.append(event)
jax.monitoring.register_event_duration_secs_listener(listen)
def play(delays, states, deltas):
    before = len(compiled)
    jb.sweep(
        lambda delay, states: jb.make_environment(
            "paper-utility", actions=3, states=states, delays=jb.FixedDelay(delay)),
        {"dada": jb.make_learner("dada-exp3"),
         "metabio": lambda delta: jb.make_learner("metabio", delta=delta)},
        {"delay": delays, "states": states, "delta": deltas},
        horizon=20, runs=8, rounds=2, progress=False,
    )
    print(len(compiled) - before, len(by_xla))
play([1, 5, 9], [2, 3, 4, 5, 6], [0.01, 0.1, 0.2, 0.3])
play([2, 8, 9], [2, 3, 6], [0.02, 0.4])
"""


def test_compilations_of_a_large_grid(tmp_path: Path) -> None:
    """3 delays x 5 numbers of states x 4 deltas x 2 learners: 2, and XLA has nothing to do. Other
    numbers: none.
    """
    environment = os.environ | {"PYTHONPATH": str(HERE.parents[1])}
    environment |= {"XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["2 0", "0 0"]
    kept = [file.suffix for file in (tmp_path / "jaxbio" / "machine-code").iterdir()]
    assert kept == [".o", ".o"]


# --- progress


def test_a_pipe_gets_the_plan_and_no_bar(capfd: pytest.CaptureFixture[str]) -> None:
    small(progress=True)
    out, errors = capfd.readouterr()
    assert out == ""
    assert errors.startswith("sweep: 6 settings, 96 runs")
    assert errors.count("\n") == 1
    assert "\r" not in errors


def test_silence(capfd: pytest.CaptureFixture[str]) -> None:
    small(progress=False)
    assert capfd.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Bar:
    """What `_Tally` uses of a bar."""

    disable, initial, last_print_n, n = False, 0, 0, 0

    def update(self, rounds: int) -> None:
        self.n += rounds


def test_the_bar_counts_every_block_once() -> None:
    shown: Any = Bar()
    tally = _Tally(shown, [100, 100, 100], {0})
    shown.n = 100
    tally.resumed(1, 40)
    assert (shown.n, shown.initial, shown.last_print_n) == (140, 40, 40)  # no part of the speed
    tally.played(1, 10)
    assert (shown.n, shown.initial) == (150, 40)
    tally.settle(1)
    tally.settle(2)
    assert (shown.n, shown.initial) == (300, 40)
    tally.settle(1)
    assert shown.n == 300


def test_a_terminal_gets_a_bar_that_counts_rounds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for _ in range(2):  # the second time everything is there already
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        small(progress=True, store=tmp_path)
        last = terminal.getvalue().split("\r")[-1]
        assert "100%" in last
        assert "28.8k/28.8k" in last
        assert "round/s" in last


def test_a_terminal_sees_settings_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxbio.sweeps.grid.PATIENCE", 0)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    jb.plan_sweep(**SMALL)
    assert terminal.getvalue() == ""
    jb.plan_sweep(**SMALL | {"progress": True})
    said = terminal.getvalue()
    assert "settings made" in said
    assert "settings grouped" in said
    assert "/6" in said


# --- worlds


def test_an_axis_of_worlds_deals_out_the_runs_of_the_seed(tmp_path: Path) -> None:
    """One run in each of three worlds is three runs of one; a store tells the worlds apart."""
    env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(9))
    given: dict[str, Any] = {"learners": {"dada": DADA}, "axes": {"world": [0, 1, 2]}, "runs": 1}
    for paired in (True, False):
        given["paired"] = paired
        found = play(environment=lambda world: env, **given)
        whole = play(environment=env, learners={"dada": DADA}, axes={}, runs=3, paired=paired)
        np.testing.assert_array_equal(found.regret.isel(learner=0, run=0), whole.regret[0])
    two = play(environment=lambda world: env, **given | {"runs": 2, "axes": {"world": [3]}})
    later = play(environment=env, learners={"dada": DADA}, axes={}, runs=8, paired=False)
    np.testing.assert_array_equal(two.regret[0, 0], later.regret[0, 6:])
    stored = given | {"store": tmp_path, "axes": {"world": [4]}}
    play(environment=lambda world: env, **stored)
    with pytest.raises(ValueError, match="store"):
        play(environment=lambda world: env, **stored | {"axes": {"world": [5]}})


@pytest.mark.parametrize(
    ("worlds", "message"),
    [
        ([0.5], "world must be an integer, but got 0.5"),
        ([-1], r"world must be in \[0, 16777216\], but got -1"),
        ([2**24], r"world=16777216 times runs=1000 must be below 4,294,967,296"),
    ],
)
def test_worlds_are_checked(worlds: list[Any], message: str) -> None:
    env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(9))
    with pytest.raises((TypeError, ValueError), match=message):
        play(environment=lambda world: env, learners={"dada": DADA}, axes={"world": worlds},
             runs=1000)  # fmt: skip
