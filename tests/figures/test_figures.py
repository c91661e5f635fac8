"""Figures: made for every experiment, readable, with one colour for a learner everywhere.

The regret that they show is made up here, in the shape of a sweep's: compiling all programs of
Experiments 1 and 2 costs more than a minute. `outstanding` is played, once.
"""

from __future__ import annotations

import errno
import os
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, same_color
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

import jaxbio as jb
from jaxbio import plot, theory
from jaxbio.analysis.compare import compare
from jaxbio.analysis.tuned import Step, Tuned
from jaxbio.figures import lines, saving, style
from jaxbio.figures.lines import spread
from jaxbio.figures.saving import Drawing, save_all
from jaxbio.figures.style import DARK, LEARNER_COLOURS, LIGHT, REGISTERED, Look, colours
from jaxbio.figures.tuning import tuning
from jaxbio.learners.ucb import UCB1
from jaxbio.studies.paper.experiment import Experiment, Options
from jaxbio.studies.paper.figures.bounds import bounds
from jaxbio.studies.paper.figures.gallery import drawings
from jaxbio.studies.paper.figures.waiting import WITHOUT, outstanding
from jaxbio.studies.paper.registry import EXPERIMENTS

TINY = Options(horizon=300, runs=4, rounds=30)
LOOKS = [Look(LIGHT), Look(DARK, narrow=True)]


def made_up(experiment: Experiment) -> xr.Dataset:
    """A sweep's dataset with regret that is made up; learners lie close together."""
    names = list(experiment.learners(TINY))
    shape = [len(names), *(len(v) for v in experiment.axes.values()), TINY.runs, TINY.rounds]
    steps = np.random.default_rng(0).uniform(0.3, 1.0, shape)
    regret = np.cumsum(steps, axis=-1)
    dims = ["learner", *experiment.axes, "run", "round"]
    data = {"regret": (dims, regret), "final_regret": (dims[:-1], regret[..., -1])}
    switch = np.full(shape[:-1], 150 if experiment.number == 4 else TINY.horizon + 1)
    rounds = np.arange(10, TINY.horizon + 1, 10)
    axes = {name: list(values) for name, values in experiment.axes.items()}
    coordinates = {"learner": names, "round": rounds, **axes}
    return xr.Dataset(data | {"switch_round": (dims[:-1], switch)}, coordinates)


def made_up_counts(experiment: Experiment, options: Options) -> xr.DataArray:
    names = [n for n in ("MetaBIO", "MetaAdaBIO") if n in experiment.learners(options)]
    shape = [len(names) + 1, *(len(v) for v in experiment.axes.values()), 3, options.horizon]
    dims = ["learner", *experiment.axes, "run", "round"]
    return xr.DataArray(
        np.full(shape, 4),
        {"learner": [WITHOUT, *names], "round": np.arange(1, options.horizon + 1),
         **{k: list(v) for k, v in experiment.axes.items()}},
        dims,
    )  # fmt: skip


@pytest.fixture(scope="module")
def all_drawings() -> dict[int, list[Drawing]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxbio.studies.paper.figures.gallery.outstanding", made_up_counts)
        return {n: drawings(e, made_up(e), TINY) for n, e in EXPERIMENTS.items()}


def texts(figure: Figure) -> list[Text]:
    """Everything that is written and not empty."""
    FigureCanvasAgg(figure).draw()
    found = list(figure.texts)
    scales = [inset for axes in figure.axes for inset in axes.child_axes]  # of colours
    for axes in {*figure.axes, *scales}:
        found += [axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label]  # type: ignore
        found += [*axes.texts, *_tick_labels(axes.xaxis), *_tick_labels(axes.yaxis)]
    return [text for text in found if text.get_text().strip()]


def _tick_labels(axis: Axis) -> list[Text]:
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    labels = [label for tick in ticks for label in (tick.label1, tick.label2)]
    return [label for label in labels if label.get_visible()]


def assert_readable(name: str, figure: Figure) -> None:
    """Nothing that is written overlaps, is clipped or is too small."""
    written = texts(figure)
    boxes = [(t.get_text(), t.get_window_extent()) for t in written]
    for (one, a), (other, b) in combinations(boxes, 2):
        apart = a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 or b.y1 <= a.y0
        assert apart, f"{name}: {one!r} overlaps {other!r}"
    for text, box in boxes:
        assert box.x0 >= 0, f"{name}: {text!r} is cut at the left"
        assert box.y0 >= 0, f"{name}: {text!r} is cut at the bottom"
        assert box.x1 <= figure.bbox.x1, f"{name}: {text!r} is cut at the right"
        assert box.y1 <= figure.bbox.y1, f"{name}: {text!r} is cut at the top"
    assert all(float(t.get_fontsize()) >= 9 for t in written)


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-narrow"])
@pytest.mark.parametrize("number", EXPERIMENTS)
def test_nothing_that_is_written_overlaps_or_is_clipped(
    all_drawings: dict[int, list[Drawing]], number: int, look: Look
) -> None:
    for drawing in all_drawings[number]:
        assert_readable(drawing.name, drawing.figure(look))


def test_every_experiment_has_its_figures(all_drawings: dict[int, list[Drawing]]) -> None:
    for number, made in all_drawings.items():
        names = {drawing.name for drawing in made}
        assert names >= {"regret", "final", "waiting", "bounds"}
        assert ("swept" in names) == bool(EXPERIMENTS[number].axes)
        assert all(drawing.caption for drawing in made)


def test_a_learner_has_one_colour_everywhere(all_drawings: dict[int, list[Drawing]]) -> None:
    """The leader before a label has the learner's colour, in every figure."""
    seen = set()
    for number in (1, 2, 4, 5):
        regret = next(d for d in all_drawings[number] if d.name == "regret")
        axes = regret.figure(Look()).axes[0]
        leaders = [line for line in axes.lines if line.get_transform() == axes.transAxes]
        for line, label in zip(leaders, axes.texts[-len(leaders) :], strict=True):
            name = label.get_text().split("  ")[0]
            wanted = style.colours([name], Look())[name]
            assert same_color(line.get_color(), wanted)
            seen.add(name)
    assert {"MetaBIO", "DAda-Exp3", "MetaAdaBIO", "NSD-UCRL2"} < seen <= set(LEARNER_COLOURS)
    assert len(set(LEARNER_COLOURS.values())) == len(LEARNER_COLOURS)


def test_names_of_the_registry_have_the_same_colours() -> None:
    assert set(REGISTERED) <= set(jb.learner_names())
    assert set(REGISTERED.values()) == set(LEARNER_COLOURS)
    names = ["metabio:delta=0.5", "metabio:delta=0.1", "dada-exp3", "my own"]
    found = colours(names, Look())
    assert found[names[0]] == LEARNER_COLOURS["MetaBIO"]
    assert found["dada-exp3"] == LEARNER_COLOURS["DAda-Exp3"]
    assert len(set(found.values())) == len(names)


def test_the_switch_is_marked_only_where_there_is_one(
    all_drawings: dict[int, list[Drawing]],
) -> None:
    for number, expected in ((4, True), (5, False)):
        axes = all_drawings[number][0].figure(Look()).axes[0]
        marked = any("switch after round 150" in text.get_text() for text in axes.texts)
        assert marked == expected


def test_every_variant_is_saved(all_drawings: dict[int, list[Drawing]], tmp_path: Path) -> None:
    (files,) = save_all(all_drawings[5][:1], tmp_path / "here", "experiment-5")
    (others,) = save_all(all_drawings[5][:1], tmp_path / "there", "experiment-5", workers=2)
    assert all(files[name].read_bytes() == path.read_bytes() for name, path in others.items())
    assert sorted(path.name for path in files.values()) == [
        "experiment-5-regret-dark-narrow.png",
        "experiment-5-regret-dark.pdf",
        "experiment-5-regret-dark.png",
        "experiment-5-regret-light-narrow.png",
        "experiment-5-regret-light.pdf",
        "experiment-5-regret-light.png",
    ]


@pytest.mark.parametrize("inches", [0.1, 1.0, 1.5, 2.0, 9.0])
def test_lines_do_not_break_within_an_equation_or_a_percentage(inches: float) -> None:
    text = "Not known (95 %). Dashed: S = d, where it changes"
    found = style.wrapped(text, inches, style.SIZE)
    assert " ".join(found) == text
    assert all(style.text_inches(line) <= inches or len(line) < 9 for line in found)
    assert any("S = d," in line for line in found)
    assert any("(95 %)." in line for line in found)
    assert style.wrapped("", inches, style.SIZE) == []


def test_spread_keeps_labels_apart_and_in_order() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        wanted = rng.uniform(0, 100, rng.integers(1, 8)).tolist()
        placed = spread(wanted, 12, 100)
        order = np.argsort(wanted, kind="stable")
        assert (np.diff(np.array(placed)[order]) >= 12 - 1e-6).all()
        assert min(placed) >= 0
        assert max(placed) <= 100 + 1e-6
    assert spread([10, 50], 12, 100) == [10, 50]


def made_up_tuning(reach: float) -> Tuned:
    """Two parameters that move apart, each by the factor `reach`."""
    rng = np.random.default_rng(0)
    held_out = compare({"tuned": rng.normal(90, 9, 20), "start": rng.normal(100, 9, 20)})
    path = np.linspace(0, 1, 40)
    curve = [Step({"scale": reach**x, "radius_scale": reach**-x}, 1 - x / 2, 0.1) for x in path]
    return Tuned(UCB1(), curve[-1].parameters, curve[0].parameters, tuple(curve), held_out)


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-narrow"])
@pytest.mark.parametrize("reach", [1.1, 2, 30, 1e5])
def test_a_tuning_shows_its_parameters_and_the_held_out_result(reach: float, look: Look) -> None:
    tuned = made_up_tuning(reach)
    with rc_context(style.style(look)):
        figure = tuning(tuned, "Tuning metabio on paper-stochastic", look)
    assert_readable(f"tuning {reach}", figure)
    written = " ".join(text.get_text() for text in texts(figure))
    assert f"radius_scale  {1 / reach:.3g}" in written
    assert "saves " + tuned.summary().split("saves ")[1] in written
    assert "not the result" in written
    assert "mean regret / that of the start values" in written
    ticks = [t.get_text() for t in _tick_labels(figure.axes[0].yaxis) if t.get_text()]
    assert len(ticks) >= 2


@pytest.mark.parametrize("number", [4, 5])
def test_no_bound_is_drawn_for_what_no_theorem_is_about(
    all_drawings: dict[int, list[Drawing]], number: int
) -> None:
    """Experiments 4 and 5 play MetaAdaBIO by the practical rule, with a base that goes on."""
    drawing = next(one for one in all_drawings[number] if one.name == "bounds")
    (axes,) = drawing.figure(Look()).axes
    labels = " ".join(text.get_text() for text in axes.texts)
    assert "DAda-Exp3, bound" in labels
    assert "MetaBIO, bound" in labels
    assert "MetaAdaBIO" not in labels
    assert "MetaAdaBIO has none here" in drawing.caption


def test_the_theorem_of_metaadabio_is_drawn_where_it_holds() -> None:
    env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(20))
    proved = jb.make_learner("metaadabio", delta=0.1, rule="theory", at_switch="fresh")
    found = bounds(env, TINY, {"MetaAdaBIO": proved})
    game = {"num_actions": 4, "num_states": 3, "delays": 20, "delta": 0.1}
    last = theory.metaadabio_bound(horizon=300, **game).total  # type: ignore[arg-type]
    assert found["MetaAdaBIO"][-1] == pytest.approx([300, last])
    for other in ({"rule": "practical", "at_switch": "fresh"}, {"rule": "theory"},
                  {"at_switch": "fresh", "tuning": "printed"}):  # fmt: skip
        assert not bounds(env, TINY, {"MetaAdaBIO": jb.make_learner("metaadabio", **other)})


# --- regret curves on logarithmic axes


def grown(power: float, shift: float = 0.0, noise: float = 0.5) -> jb.Result:
    """Regret that grows like a power of t, less a shift; some runs are below 0 in the beginning."""
    rounds = np.arange(5, 1001, 5)
    runs = np.random.default_rng(0).normal(0, noise, (8, 1))
    regret = rounds**power - shift + runs * np.sqrt(rounds)
    return jb.Result(rounds, regret, regret, {}, lambda: regret)


def seen(axes: Axes) -> list[float]:
    """For each curve, the share of the panel's width over which it is in view."""
    shares = []
    for line in axes.lines:
        if line.get_transform() == axes.transData:
            points = np.column_stack(line.get_data())
            points = points[points[:, 1] > 0] if axes.get_yscale() == "log" else points
            if not len(points):
                shares.append(0.0)
                continue
            places = axes.transAxes.inverted().transform(axes.transData.transform(points))
            inside = places[((places >= -1e-9) & (places <= 1 + 1e-9)).all(axis=1), 0]
            shares.append(float(np.ptp(inside)) if len(inside) else 0.0)
    return shares


@pytest.mark.parametrize("scales", [("log", "log"), ("linear", "log"), ("log", "linear")])
@pytest.mark.parametrize("later", [False, True], ids=["argument", "set later"])
def test_regret_curves_are_seen_on_any_scale(scales: tuple[str, str], later: bool) -> None:
    results = {"DAda-Exp3": grown(0.8), "MetaBIO": grown(0.6)}
    xscale, yscale = scales
    given: Any = {} if later else {"xscale": xscale, "yscale": yscale}
    figure = plot.regret_curves(results, "a title", **given)
    (axes,) = figure.axes
    if later:
        axes.set_xscale(xscale)
        axes.set_yscale(yscale)
    FigureCanvasAgg(figure).draw()
    assert (axes.get_xscale(), axes.get_yscale()) == scales
    assert all(share > 0.95 for share in seen(axes)), seen(axes)
    assert len(seen(axes)) == 2
    for text, result in zip(axes.texts, results.values(), strict=True):  # labels are at the ends
        end = axes.transData.transform((1000, result.final_regret.mean()))
        height = axes.transAxes.inverted().transform(end)[1]
        assert text.xy[1] == pytest.approx(height, abs=0.05)  # type: ignore[attr-defined]
    assert_readable("regret curves", figure)


def test_labels_follow_a_scale_that_leaves_the_limits_alone() -> None:
    results = {"DAda-Exp3": grown(0.8), "MetaBIO": grown(0.6)}
    figure = plot.regret_curves(results)
    (axes,) = figure.axes
    axes.set_ylim(1, 2 * results["DAda-Exp3"].final_regret.mean())
    axes.set_yscale("log")
    FigureCanvasAgg(figure).draw()
    for text, result in zip(axes.texts, results.values(), strict=True):
        end = axes.transData.transform((1000, result.final_regret.mean()))
        height = axes.transAxes.inverted().transform(end)[1]
        assert text.xy[1] == pytest.approx(height, abs=0.05)  # type: ignore[attr-defined]


def test_a_curve_of_one_point_is_a_mark_and_names_may_be_numbers() -> None:
    flat = np.full((2, 1), 5.0)
    one = jb.Result(np.array([10]), flat, flat, {}, lambda: flat)
    figure = plot.regret_curves({50: one})  # type: ignore[dict-item]
    assert figure.axes[0].lines[0].get_marker() == "o"
    assert figure.axes[0].texts[0].get_text().startswith("50 ")
    with pytest.raises(ValueError, match="names that differ as text"):
        plot.regret_curves({50: one, "50": one})  # type: ignore[dict-item]


@pytest.mark.parametrize("name", ["a.png", "a.pdf", "a.svg"])
def test_a_figure_is_there_whole_or_not_at_all(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = plot.regret_curves({"one": grown(0.6)})
    saving.save_as(figure, tmp_path / name)
    before = (tmp_path / name).read_bytes()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("jaxbio.storage.atomic.os.fsync", full)
    with pytest.raises(OSError, match=name) as caught:
        saving.save_as(figure, tmp_path / name)
    assert caught.value.errno == errno.ENOSPC
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == before


def test_a_linear_axis_begins_at_zero() -> None:
    (axes,) = plot.regret_curves({"one": grown(0.6)}).axes
    assert axes.get_xlim() == (0, 1000)
    assert axes.get_ylim()[0] == 0


def test_a_curve_that_is_not_positive_is_named() -> None:
    results = {"above": grown(0.6), "below": grown(0.6, shift=500)}
    figure = plot.regret_curves(results, "title", note="Runs.", yscale="log")
    said = " ".join(text.get_text() for text in figure.texts)
    assert "Runs. Not positive, and so below the axis: below." in said
    assert seen(figure.axes[0])[0] > 0.95
    assert 0 <= figure.axes[0].texts[1].xy[1] < 0.1  # type: ignore[attr-defined]


def test_scales_are_checked() -> None:
    with pytest.raises(ValueError, match="yscale must be one of 'linear', 'log', but got 'odd'"):
        plot.regret_curves({"one": grown(0.6)}, yscale="odd")


def test_waiting_counts_are_those_of_theory() -> None:
    counts = outstanding(EXPERIMENTS[4], TINY, runs=2)
    every = counts.sel(learner=WITHOUT).values
    expected = np.minimum(np.arange(1, TINY.horizon + 1), 20)
    assert (every == expected).all()
    assert (every[:, :-20] == theory.end_counts(20, horizon=TINY.horizon)[:-20]).all()
    waits = counts.sel(learner="MetaBIO").values
    assert (waits <= every).all()
    assert (waits[:, -1] < every[:, -1]).all()


def test_areas_keep_their_colours_in_a_png() -> None:
    """More colours than a palette holds: those of areas stay, the rest become near ones."""
    rng = np.random.default_rng(0)
    pixels = np.full((200, 200, 3), (252, 253, 255), np.uint8)
    pixels[:100] = (239, 240, 238)
    pixels[50, :] = rng.integers(0, 256, (200, 3))
    pixels[150, :] = rng.integers(0, 256, (200, 3))
    palette, indices = saving._few_colours(pixels)
    assert palette.shape == (saving.COLOURS, 3)
    shown = palette[indices]
    areas = np.ones(200, bool)
    areas[[50, 150]] = False
    np.testing.assert_array_equal(shown[areas], pixels[areas])
    distance = np.linalg.norm(pixels[150, :, None].astype(int) - palette.astype(int), axis=2)
    mine = np.linalg.norm(pixels[150].astype(int) - shown[150].astype(int), axis=1)
    np.testing.assert_allclose(mine, distance.min(axis=1))


def test_a_scale_of_colours_keeps_its_ends_in_a_png(tmp_path: Path) -> None:
    """Cells of a few colours and many letters, so that steps of the bar are rare colours."""
    scale = LinearSegmentedColormap.from_list("scale", ["#0072B2", "#ffffff", "#D55E00"])
    figure, (axes,) = lines.panels(
        ["a title"], Look(), heading="A heading " * 20, note="note " * 90
    )
    drawn = axes.pcolormesh([[1.4, 1.6], [1.5, 1.5]], cmap=scale, vmin=1, vmax=2)
    bar = figure.colorbar(drawn, ax=axes)
    saving.save(figure, tmp_path / "scale", ["png"])
    with Image.open(tmp_path / "scale.png") as image:
        pixels = np.asarray(image.convert("RGB"))
    box = bar.ax.get_window_extent()
    column = pixels[::-1][int(box.y0) + 2 : int(box.y1) - 2, int((box.x0 + box.x1) / 2)]
    steps = np.round(255 * scale(np.linspace(0, 1, len(column)))[:, :3])
    assert np.abs(column.astype(int) - steps).max() <= 6, "colours of the bar were replaced"
    assert len(np.unique(column, axis=0)) > 200
