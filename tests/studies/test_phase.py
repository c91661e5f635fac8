"""The phase diagram: ratios to a wrapper's own base, lines and bands, an independent program."""

from __future__ import annotations

import importlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PolyCollection
from matplotlib.patches import Polygon
from utility_oracle import final_regret, log_ratio

import jaxbio as jb
from jaxbio.figures.style import Look
from jaxbio.storage import netcdf
from jaxbio.studies.contestants import wrappers
from jaxbio.studies.families import drawn, utility
from jaxbio.studies.phase.figures.theorem import phase as draw_phase
from jaxbio.studies.phase.study import helpful_delays, line_of, phase_diagram, ratios, undecided

# --- ratios


def finals(base: np.ndarray, wrapper: np.ndarray, runs: int, noise: float) -> xr.Dataset:
    """Final regrets [states, delay, run] of both, around means [states, delay]."""
    generator = np.random.default_rng(0)
    dims = ("states", "delay", "run")
    made = {
        name: (dims, means[..., None] + generator.normal(0, noise, (*means.shape, runs)))
        for name, means in (("final_regret", wrapper), ("base_regret", base))
    }
    return xr.Dataset(made, {"states": [2, 4], "delay": [1, 3, 7]})


def test_ratios_and_their_intervals() -> None:
    """An interval of 99.9 % misses one of the 6 true ratios with probability below 0.006."""
    base = np.full((2, 3), 100.0)
    wrapper = np.array([[200.0, 100.0, 50.0], [300.0, 120.0, 90.0]])
    found = ratios(finals(base, wrapper, 400, 20.0), level=0.999)
    true = wrapper / base
    assert found.ratio.dims == ("states", "delay")
    np.testing.assert_allclose(found.ratio, true, rtol=0.05)
    assert ((found.low < true) & (true < found.high)).all()
    assert (found.high - found.low < 0.15 * found.ratio).all()


def test_ratios_keep_the_pairing_of_runs() -> None:
    """Twice the base's regret, run by run: without the pairing the interval has a width."""
    means = np.full((2, 3), 100.0)
    data = finals(means, means, 30, 40.0)
    found = ratios(data.assign(final_regret=2 * data.base_regret))
    np.testing.assert_allclose(found.low, 2)
    np.testing.assert_allclose(found.high, 2)


def test_few_runs_have_intervals_of_95_percent_too() -> None:
    """2,000 cells of 4 runs: the share that covers has a standard deviation of 0.005; four of them
    by chance once in 16,000 times. (A percentile bootstrap covers 79 %.)
    """
    base, wrapper = (
        xr.DataArray(np.random.default_rng(seed).normal(mean, 10, (2000, 4)), dims=("cell", "run"))
        for seed, mean in ((0, 100), (1, 150))
    )
    found = ratios(xr.Dataset({"final_regret": wrapper, "base_regret": base}))
    assert abs(float(((found.low < 1.5) & (found.high > 1.5)).mean()) - 0.95) < 0.02


@pytest.mark.parametrize("least", [0.0, -3.0])
def test_there_is_no_ratio_of_regrets_that_are_not_positive(least: float) -> None:
    means = np.full((2, 3), 100.0)
    means[1, 2] = least
    with pytest.raises(ValueError, match=f"base_regret has {least:g} at states=4, delay=7"):
        ratios(finals(np.where(means > 0, means, least), np.full((2, 3), 50.0), 3, 0.0))


# --- lines and bands, on made-up ratios


def made_up(rows: Any, delays: list[int], reach: float = 1.0) -> xr.Dataset:
    """One wrapper, K and T; rows: ratios [states, delays]. Intervals: a factor to both sides."""
    values = np.asarray(rows, float)[None, None, None]
    dims = ("wrapper", "actions", "horizon", "states", "delay")
    named = {"ratio": values, "low": values / reach, "high": values * reach}
    coords = {"wrapper": ["w"], "actions": [8], "horizon": [100], "delay": delays}
    coords["states"] = list(range(2, 2 + values.shape[-2]))
    variables = {name: (dims, own) for name, own in named.items()}
    return xr.Dataset(variables, coords, {"runs": 64, "problems": 1})


def test_states_help_from_one_delay_to_another() -> None:
    rows = [[2.0, 0.5, 0.5], [1.0, 0.25, 4.0], [0.9, 0.9, 0.9], [2.0, 2.0, 2.0], [0.5, 2.0, 0.25]]
    found = helpful_delays(made_up(rows, [1, 3, 7]), "w").sel(reach="line").squeeze().values
    # The logarithms of 1 + d are 1, 2, 3 times ln 2, those of the ratios whole multiples of it: the
    # line crosses half way (2**1.5), then half way again (2**2.5), then a third of the way back.
    expected = [[2**1.5 - 1, 7], [1, 2**2.5 - 1], [1, 7], [np.nan] * 2, [2 ** (2 + 1 / 3) - 1, 7]]
    np.testing.assert_allclose(found, expected)


def test_a_ratio_of_one_does_not_help() -> None:
    """A learner that has not switched is its base: its ratio is exactly 1."""
    found = helpful_delays(made_up([[1.0, 1.0, 1.0], [1.0, 1.0, 0.5]], [1, 3, 7]), "w").squeeze()
    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1].sel(end="from"), [7, 3, 3])
    assert undecided(line_of(made_up([[1.0, 1.0, 1.0]], [1, 3, 7]), "w", 8, 100, 2)) == []


def test_the_band_has_the_noise_and_the_distance_between_cells() -> None:
    """The ratio is 10 / d: it crosses 1 at 10, its interval (a factor of 1.5) at 6.7 and 15."""
    delays = [1, 2, 4, 8, 9, 11, 12, 16, 32]
    data = made_up([[10 / d for d in delays]], delays, 1.5)
    found = helpful_delays(data, "w").squeeze().sel(end="from")
    surely, line, perhaps = found.sel(reach=["surely", "line", "perhaps"]).values
    assert (surely, perhaps) == (16, 4)
    assert 9.9 < line < 10.1
    stretches = undecided(line_of(data, "w", 8, 100, 2))
    assert (stretches[0][0], stretches[-1][1]) == (4, 16)


def test_the_band_is_as_wide_as_the_distance_between_sure_cells() -> None:
    """No noise at all, and still nothing is known between the two."""
    data = made_up([[4.0, 0.2]], [1, 64])
    found = helpful_delays(data, "w").squeeze().sel(end="from")
    np.testing.assert_array_equal(found.sel(reach=["surely", "perhaps"]), [64, 1])
    assert undecided(line_of(data, "w", 8, 100, 2)) == [(1, 64)]


# --- refined, on made-up games


def reach(actions: int, horizon: int, states: int) -> float:
    """The delay from which states help in a made-up game: 12 to 33."""
    return 2 * actions + states * horizon / 100


def made_up_games(
    build: Any, learners: Any, axes: Any, *, runs: int, horizon: int = 0, **_: Any
) -> xr.Dataset:
    """As of `sweep`: a base has the regret 1, MetaBIO reach / d, MetaAdaBIO twice as much."""
    regret = np.ones((len(learners), *map(len, axes.values()), runs))
    for index in np.ndindex(regret.shape[1:-1]):
        point = {name: values[i] for (name, values), i in zip(axes.items(), index, strict=True)}
        size = point.pop("horizon", horizon)
        env = build(**point)
        ratio = reach(env.num_actions, size, env.num_states) / env.delays.longest()
        for number, learner in enumerate(learners.values()):
            times = {jb.MetaBIO: ratio, jb.MetaAdaBIO: 2 * ratio}
            regret[(number, *index)] = times.get(type(learner), 1)
    coords = {"learner": list(learners), **axes}
    return xr.Dataset({"final_regret": (("learner", *axes, "run"), regret)}, coords)


def test_every_cell_beyond_the_grid_is_one_of_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its K, T, S and wrapper, at its delay; the stretch from 1 to 128 is halved, not walked."""
    seeds = []

    def sweep(*args: Any, seed: int, **options: Any) -> xr.Dataset:
        seeds.append(seed)
        return made_up_games(*args, **options)

    monkeypatch.setattr(importlib.import_module("jaxbio.studies.phase.study"), "sweep", sweep)
    sizes: dict[str, Any] = {"actions": [2, 3], "horizons": [200, 300]}
    data = phase_diagram([4, 6, 9], [1, 128], runs=2, seed=7, progress=False, **sizes)
    assert set(seeds) == {7}
    for name, times in (("MetaBIO", 1), ("MetaAdaBIO", 2)):
        helpful = helpful_delays(data, name).sel(end="from")
        for K, T, S in itertools.product(*sizes.values(), [4, 6, 9]):
            line, end = line_of(data, name, K, T, S), times * reach(K, T, S)
            np.testing.assert_allclose(line.ratio, end / line.delays)
            assert 4 < len(line.delays) <= 9
            found = helpful.sel(actions=K, horizon=T, states=S)
            assert float(found.sel(reach="line")) == pytest.approx(end, rel=0.01)
            assert found.sel(reach="perhaps") <= end <= found.sel(reach="surely")


# --- played


SMALL: dict[str, Any] = {"actions": [4], "horizons": [1500], "progress": False}
CELLS = [(2, 32), (8, 32), (8, 4)]


@pytest.fixture(scope="module")
def diagram() -> xr.Dataset:
    return phase_diagram([2, 8], [4, 32], runs=128, **SMALL)


def test_a_cell_is_what_simulate_gives(diagram: xr.Dataset) -> None:
    env, learner = utility(4, 2, jb.FixedDelay(32)), wrappers()["MetaBIO"]
    sizes: dict[str, Any] = {"horizon": 1500, "runs": 128, "rounds": 1, "progress": False}
    cell = diagram.sel(wrapper="MetaBIO", actions=4, horizon=1500, states=2, delay=32)
    for name, one in (("final_regret", learner), ("base_regret", learner.base)):
        np.testing.assert_array_equal(cell[name], jb.simulate(env, one, **sizes).final_regret)


def test_each_wrapper_is_compared_with_its_own_base(diagram: xr.Dataset) -> None:
    """MetaAdaBIO does not switch where d is below S: there it is its base, to the bit."""
    assert float(wrappers()["MetaAdaBIO"].base.delta) < float(wrappers()["MetaBIO"].base.delta)
    cell = diagram.sel(wrapper="MetaAdaBIO", states=8, delay=4).squeeze()
    np.testing.assert_array_equal(cell.final_regret, cell.base_regret)
    assert cell.ratio == cell.low == cell.high == 1
    assert np.isnan(helpful_delays(diagram, "MetaAdaBIO").sel(states=8)).all()
    switched = diagram.sel(wrapper="MetaAdaBIO", states=2, delay=32).squeeze()
    assert (switched.final_regret != switched.base_regret).any()


def test_an_end_is_played_until_its_place_is_known(diagram: xr.Dataset) -> None:
    """MetaBIO with two states begins to help between the two delays of the grid."""
    line = line_of(diagram, "MetaBIO", 4, 1500, 2)
    assert line.delays[0] == 4
    assert line.delays[-1] == 32
    assert len(line.delays) > 4
    found = helpful_delays(diagram, "MetaBIO").sel(states=2, end="from").squeeze()
    surely, middle, perhaps = found.sel(reach=["surely", "line", "perhaps"]).values
    assert 4 <= perhaps < middle < surely < 32
    near = np.flatnonzero(np.diff(line.ratio < 1))
    gaps = np.diff(line.delays)[near]
    assert (gaps <= np.maximum(1, 0.1 * line.delays[near])).all()
    for name in ("MetaBIO", "MetaAdaBIO"):
        alone = helpful_delays(diagram.sel(wrapper=[name]), name)
        xr.testing.assert_equal(alone, helpful_delays(diagram, name))
    coarse = phase_diagram([2, 8], [4, 32], runs=128, within=1e9, **SMALL)
    assert "cell" not in coarse.dims
    xr.testing.assert_equal(coarse.final_regret, diagram.final_regret)


def test_a_finished_diagram_is_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play() -> xr.Dataset:
        return phase_diagram([2], [1, 16], runs=32, actions=[3], horizons=[400], store=tmp_path,
                             progress=False)  # fmt: skip

    first = play()
    steps = list(tmp_path.glob("step-*"))
    assert steps
    monkeypatch.setattr(importlib.import_module("jaxbio.sweeps.execute"), "play_block", None)
    xr.testing.assert_identical(first, play())


@pytest.mark.slow
@pytest.mark.parametrize(("states", "delay"), CELLS)
def test_an_independent_program_finds_the_same_ratio(
    diagram: xr.Dataset, states: int, delay: int
) -> None:
    """The oracle's ratio of 12 runs, in worlds of its own, and the package's of 128.

    Both are means of independent runs, so the difference of their logarithms has about a normal
    law, whose spread is taken from the runs (delta method); 4.5 of them are exceeded with
    probability 7e-6.
    """
    found = diagram.sel(wrapper="MetaBIO", states=states, delay=delay).squeeze()
    size = {"actions": 4, "states": states, "delay": delay, "horizon": 1500}
    ours = np.stack([found.base_regret.values, found.final_regret.values])
    theirs = np.array([[final_regret(i, run, **size) for run in range(12)] for i in range(2)])
    both = log_ratio(ours, paired=True), log_ratio(theirs, paired=True)
    error = np.hypot(both[0][1], both[1][1])
    assert error < 0.25, "too few runs to see anything"
    assert abs(both[0][0] - both[1][0]) < 4.5 * error


def test_random_problems_count_together() -> None:
    """A run's regret is the mean over the eight problems of the family."""
    learners = {"MetaBIO": wrappers()["MetaBIO"]}
    options: dict[str, Any] = {"actions": [3], "horizons": [200], "runs": 3, "progress": False}
    data = phase_diagram([3], [10], family="random", learners=learners, **options)
    alone = [
        jb.simulate(drawn(3, 3, jb.FixedDelay(10), i), learners["MetaBIO"], horizon=200, runs=3,
                    progress=False).final_regret
        for i in range(8)
    ]  # fmt: skip
    np.testing.assert_allclose(data.final_regret.squeeze(), np.mean(alone, axis=0))
    assert data.attrs["problems"] == 8


def test_a_family_gets_a_law_as_it_does_in_advice() -> None:
    """One signature for both: (actions, states, delays), the law of the delays."""
    asked = []

    def family(actions: int, states: int, delays: Any) -> jb.Environment:
        asked.append((actions, states, str(delays)))
        return utility(actions, states, delays)

    options: Any = {"progress": False, "family": family}
    phase_diagram([2], [3, 7], actions=[3], horizons=[50], runs=2, within=1e9, **options)
    in_phase, asked[:] = asked[:2], []
    jb.advise(actions=3, states=2, horizon=50, delays=jb.FixedDelay(3), looks=1, first=2, **options)
    assert in_phase == [(3, 2, "FixedDelay(d=3)"), (3, 2, "FixedDelay(d=7)")]
    assert asked == in_phase[:1]


def takes_a_number(actions: int, states: int, delay: Any) -> jb.Environment:
    return utility(actions, states, jb.FixedDelay(delay))


def test_a_family_that_wants_a_number_is_told_what_it_gets() -> None:
    with pytest.raises((TypeError, ValueError), match="FixedDelay") as error:
        phase_diagram([2], [5], family=takes_a_number, progress=False)
    (note,) = error.value.__notes__
    assert note == (
        "family was called with 8, 2 and FixedDelay(d=5): it must be a function "
        "(actions, states, delays), which gets the numbers K and S and the law of the delays, such "
        "as FixedDelay(50)"
    )


def refuses_many(actions: int, states: int, delays: Any) -> jb.Environment:
    if states > 8:
        raise ValueError(f"no {states} states")
    return utility(actions, states, delays)


def always_two(actions: int, states: int, delays: Any) -> jb.Environment:
    return utility(actions, 2, delays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": [4, 2]}, r"states must be increasing integers, but got \[4, 2\]"),
        ({"states": 3}, "states must be a list of integers, but got 3"),
        ({"delays": []}, "delays must be increasing"),
        ({"actions": [1]}, "actions must be at least 2, but got 1"),
        ({"learners": {"alone": jb.UCB1()}}, "must be wrappers, .* but 'alone' is UCB1"),
        ({"learners": [jb.UCB1()]}, "learners must map labels to wrappers"),
        ({"family": 3}, "family must be one of 'utility', 'random' or a function .* got 3"),
        ({"family": "odd"}, "family must be one of 'utility', 'random', but got 'odd'"),
        ({"family": lambda *_: 1}, "family must make an Environment, .* it made 1"),
        ({"within": -1}, "within must be at least 0"),
        ({"runs": 1}, "runs must be at least 2, but got 1"),
        ({"states": [2, 3], "family": always_two}, "3 states it made one with 8 and 2"),
        ({"states": [2, 9], "family": refuses_many}, "no 9 states"),
    ],
)
def test_bad_grids_are_refused_before_anything_is_played(
    change: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("jaxbio.sweeps.execute"), "play_block", None)
    given: dict[str, Any] = {"states": [2], "delays": [1]} | change
    with pytest.raises((ValueError, TypeError), match=message):
        phase_diagram(given.pop("states"), given.pop("delays"), progress=False, **given)


# --- drawn


def panel(data: xr.Dataset) -> Any:
    return next(axes for axes in draw_phase(data, Look()).axes if axes.get_title(loc="left"))


def test_the_line_is_drawn_in_its_band() -> None:
    """Row S = 2 helps from 10 on, its interval is a factor of 1.5; S = 3 does not help."""
    delays = [1, 2, 4, 8, 9, 11, 12, 16, 32]
    data = made_up([[10 / d for d in delays], [4.0] * len(delays)], delays, 1.5)
    axes = panel(data)
    assert axes.get_title(loc="left") == "w"
    assert axes.get_xlabel() == "delay d in rounds"
    (line,) = [patch for patch in axes.patches if isinstance(patch, Polygon)]
    x, y = np.asarray(line.get_xy()).T
    assert 9.9 < x.min() < 10.1
    assert x.max() > 32, "an open end reaches the border"
    assert (y.min(), y.max()) == (1.5, 2.5)
    (band,) = [one for one in axes.collections if isinstance(one, PolyCollection)]
    corners = np.concatenate([path.vertices for path in band.get_paths()])
    assert (corners[:, 0].min(), corners[:, 0].max()) == (4, 16)
    assert (corners[:, 1].min(), corners[:, 1].max()) == (1.5, 2.5)
    (theory,) = axes.lines
    np.testing.assert_array_equal(theory.get_xdata(), theory.get_ydata())


def test_a_diagram_from_a_file_is_drawn_the_same(diagram: xr.Dataset, tmp_path: Path) -> None:
    netcdf.save(diagram, tmp_path / "phase.nc")
    loaded = xr.load_dataset(tmp_path / "phase.nc")
    for name in ("MetaBIO", "MetaAdaBIO"):
        xr.testing.assert_equal(helpful_delays(loaded, name), helpful_delays(diagram, name))
    lines = [panel(data).patches[0].get_xy() for data in (loaded, diagram)]
    np.testing.assert_array_equal(*lines)


def test_an_axis_is_logarithmic_where_its_values_are() -> None:
    for delays, scale in (([2, 4, 32], "log"), ([2, 4, 6], "linear"), ([0, 1, 9], "linear")):
        axes = panel(made_up([[2.0, 1.0, 0.5]], delays))
        assert axes.get_xscale() == scale
    wide = [2.0**power for power in range(1, 9)]
    rows = np.ones((8, 3))
    axes = panel(made_up(rows, [1, 3, 7]).assign_coords(states=wide))
    assert 256 in axes.get_yticks(), "the largest is marked"
