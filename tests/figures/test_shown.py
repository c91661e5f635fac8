"""Results, comparisons, learners and problems show themselves, and become tables and figures."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

import jaxbio as jb
from jaxbio import plot
from jaxbio.figures.style import Look

ENV = jb.make_environment("paper-utility", states=4, delays=jb.FixedDelay(20))


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return jb.sweep(
        lambda delay, states: jb.make_environment(
            "paper-utility", states=states, delays=jb.FixedDelay(delay)
        ),
        {"UCB1": jb.make_learner("ucb1"), "StateThompson": jb.make_learner("state-thompson")},
        {"delay": [5, 80], "states": [2, 4, 8]},
        horizon=200,
        runs=6,
        rounds=20,
        progress=False,
    )


@pytest.fixture(scope="module")
def result() -> jb.Result:
    return jb.simulate(ENV, jb.make_learner("metabio-mean"), horizon=200, runs=6, progress=False)


class Balanced(HTMLParser):
    """Every tag that is opened is closed, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + " "


@pytest.mark.parametrize("name", jb.learner_names())
def test_a_learner_is_the_call_that_makes_it(name: str) -> None:
    """Read back, it is the same learner; numbers that it has by default are left out."""
    learner: Any = jb.make_learner(name)
    assert len(repr(learner)) < 120
    names = {key: getattr(jb, key) for key in jb.__all__}
    again = eval(repr(learner), names)
    assert repr(again) == repr(learner)
    assert type(again) is type(learner)
    assert type(learner).__name__ in Balanced(learner._repr_html_()).text


def test_numbers_that_differ_from_the_usual_ones_are_shown() -> None:
    assert repr(jb.UCB1()) == "UCB1()"
    assert repr(jb.UCB1(exploration=0.2)) == "UCB1(exploration=0.2)"
    shown = repr(jb.StochasticMapping(np.full((3, 4), 0.25)))
    assert shown == "StochasticMapping(P=float64[3, 4])"
    assert repr(jb.BernoulliLosses([0.25, 1])) == "BernoulliLosses(theta=[0.25, 1])"


def test_a_class_of_the_users_keeps_its_own_words() -> None:
    @jb.pytree
    class Own:
        size: Any = 1.0

        def __repr__(self) -> str:
            return "mine"

    @jb.pytree
    class Plain:
        size: Any = 1.0

    assert repr(Own()) == "mine"
    assert repr(Plain(2)) == "Plain(size=2)"


def test_an_environment_is_a_few_lines() -> None:
    lines = repr(ENV).splitlines()
    assert lines[0] == "Environment: 8 actions, 4 states"
    assert [line.split()[0] for line in lines[1:]] == ["mapping", "losses", "delays"]
    assert "FixedDelay(d=20)" in lines[3]
    text = Balanced(ENV._repr_html_()).text
    assert "0.1333" in text
    assert "FixedDelay" in text


def test_a_result_is_a_few_lines(result: jb.Result) -> None:
    said = repr(result)
    assert len(said) < 700
    assert len(said.splitlines()) <= 7
    assert said.startswith("Result: 6 runs of 200 rounds\n")
    assert "MetaBIO(base=DAdaExp3(delta=0.05), estimator='mean')" in said
    error = result.final_regret.std(ddof=1) / np.sqrt(6)
    assert f"mean {result.final_regret.mean():,.1f}, standard error {error:,.1f}" in said
    assert "waiting_rounds" in Balanced(result._repr_html_()).text
    one = jb.simulate(ENV, jb.UCB1(), horizon=10, runs=1, progress=False)
    assert "standard error" not in repr(one)


def test_a_result_becomes_a_table(result: jb.Result) -> None:
    found = result.to_xarray()
    np.testing.assert_array_equal(found.regret, result.regret)
    np.testing.assert_array_equal(found.final_regret, result.final_regret)
    assert set(result.info) <= set(found)
    frame = result.to_dataframe()
    assert list(frame.columns) == ["run", "round", "regret", "loss"]
    assert len(frame) == result.regret.size
    last = frame[(frame.run == 3) & (frame["round"] == 200)]
    assert last.regret.item() == result.final_regret[3]


def test_a_comparison_becomes_a_table(data: xr.Dataset) -> None:
    found = data.jaxbio.compare({"delay": 80, "states": 4})
    assert repr(found) == found.table()
    frame = found.to_dataframe()
    assert list(frame["name"]) == [row.name for row in found.rows]
    assert set(frame.delay) == {80}
    assert frame["mean"][0] == found.rows[0].mean
    assert found.verdict in Balanced(found._repr_html_()).text


def test_latex_of_a_comparison_compiles_by_itself() -> None:
    """Every line of the table has as many cells as the head, and nothing is left that LaTeX would
    take for a command.
    """
    finals = {"a_b & 50 %": np.array([1.0, 2, 3]), "plain": np.array([5.0, 6, 8])}
    lines = jb.compare(finals).to_latex().splitlines()
    assert lines[0] == r"\begin{tabular}{lrrrrr}"
    assert lines[-1] == r"\end{tabular}"
    rows = [line for line in lines if line.endswith(r"\\")]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in rows] == [5, 5, 5]
    assert r"\textbf{a\_b \& 50 \%}" in rows[1]
    assert not re.search(r"(?<!\\)[_%#]", "".join(rows))


def test_curves_go_into_axes_of_the_users(data: xr.Dataset) -> None:
    """With their names, colours and the meaning of the band; nothing else of the figure changes."""
    figure, (left, right) = plt.subplots(1, 2)
    results = data.jaxbio.results({"delay": 80, "states": 4})
    made = plot.regret_curves(
        results, ax=left, labels={"UCB1": "no states"}, colors={"UCB1": "#ff0000"}, band="interval"
    )
    assert made is figure
    assert not right.lines
    legend = left.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["no states", "StateThompson"]
    assert legend.get_title().get_text() == "Mean of 6 runs; band: 95 % interval of the mean."
    assert left.lines[0].get_color() == "#ff0000"
    np.testing.assert_allclose(
        np.asarray(left.lines[0].get_ydata()),
        data.regret.sel(learner="UCB1", delay=80, states=4).mean("run"),
    )
    plot.regret_curves(results, ax=right, log="xy", band=None)
    FigureCanvasAgg(figure).draw()
    assert (right.get_xscale(), right.get_yscale()) == ("log", "log")
    assert right.get_ylim()[0] > 0
    assert not right.collections
    plt.close(figure)


def test_the_band_is_the_one_that_is_said(result: jb.Result) -> None:
    from scipy import stats

    wanted = {
        "deviation": result.regret.std(axis=0)[-1],
        "interval": stats.t.ppf(0.975, 5) * stats.sem(result.regret[:, -1]),
    }
    for band, reach in wanted.items():
        axes = plot.regret_curves({"a": result}, band=band).axes[0]
        edge = np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1].max()
        top = (result.regret.mean(axis=0) + reach)[-1]
        assert edge >= top - 1e-9
        assert edge == pytest.approx(top, rel=0.05)


def test_the_figure_says_how_many_runs(result: jb.Result) -> None:
    said = " ".join(text.get_text() for text in result.plot().texts)
    assert "Mean of 6 runs; band: one standard deviation." in said


def test_a_figure_shows_itself_and_keeps_its_letters(result: jb.Result, tmp_path: Path) -> None:
    figure: Any = result.plot()
    picture = Image.open(io.BytesIO(figure._repr_png_()))
    assert picture.size[0] > 600
    figure.savefig(tmp_path / "a.pdf")
    assert b"/FontFile2" in (tmp_path / "a.pdf").read_bytes()  # TrueType, embedded
    figure.savefig(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().count("<path") > 10


def test_a_heat_map_shows_the_means(data: xr.Dataset) -> None:
    figure = plot.heatmap(data, "delay", "states")
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in panels] == ["UCB1", "StateThompson"]
    mean = data.final_regret.mean("run").sel(learner="UCB1").transpose("states", "delay").values
    written = [text.get_text() for text in panels[0].texts]
    assert written == [f"{value:,.0f}" for value in mean.ravel()]
    figure = plot.heatmap(data, "delay", "states", relative_to="UCB1")
    ratio = data.final_regret.mean("run")
    ratio = (ratio.sel(learner="StateThompson") / ratio.sel(learner="UCB1")).transpose(
        "states", "delay"
    )
    (panel,) = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [text.get_text() for text in panel.texts] == [f"{x:.2f}" for x in ratio.values.ravel()]


def test_lines_show_what_states_are_worth(data: xr.Dataset) -> None:
    axes = plot.lines(data, "delay", at={"states": 8}, relative_to="UCB1", log="x").axes[0]
    mean = data.final_regret.sel(states=8).mean("run")
    ratio = (mean.sel(learner="StateThompson") / mean.sel(learner="UCB1")).values
    drawn = [line for line in axes.lines if len(np.asarray(line.get_xdata())) == 2]
    assert any(np.allclose(np.asarray(line.get_ydata()), ratio) for line in drawn)
    assert axes.get_xscale() == "log"


@pytest.mark.parametrize("look", [Look(), Look(narrow=True)], ids=["wide", "narrow"])
def test_nothing_is_written_over_the_edge(data: xr.Dataset, look: Look) -> None:
    for figure in (
        plot.heatmap(data, "delay", "states", relative_to="UCB1", look=look),
        plot.lines(data, "delay", at={"states": 2}, look=look),
        plot.final_regret(data.jaxbio.compare({"delay": 5, "states": 2}), look=look),
    ):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        width, height = canvas.get_width_height()
        for axes in figure.axes:
            box = axes.get_tightbbox(canvas.get_renderer())
            assert box is not None
            assert box.x0 > -1
            assert box.y0 > -1
            assert box.x1 < width + 1
            assert box.y1 < height + 1


POINT = {"delay": 5, "states": 2}
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "ax": (
        lambda data: data.jaxbio.curves(POINT, ax=3),
        TypeError,
        "ax must be Axes of matplotlib, but got 3",
    ),
    "band": (
        lambda data: data.jaxbio.curves(POINT, band="sd"),
        ValueError,
        "band must be one of 'deviation', 'interval', but got 'sd'",
    ),
    "log": (
        lambda data: data.jaxbio.lines("delay", at={"states": 2}, log="z"),
        ValueError,
        "log must be one of",
    ),
    "axis": (
        lambda data: data.jaxbio.heatmap("delay", "size"),
        ValueError,
        "an axis must be one of 'delay', 'states', but got 'size'",
    ),
    "same axis": (
        lambda data: data.jaxbio.heatmap("delay", "delay"),
        ValueError,
        "must be different axes",
    ),
    "several": (
        lambda data: data.jaxbio.lines("delay"),
        ValueError,
        re.escape("several values of states: choose with at=, as in at={'states': 2}"),
    ),
    "value": (
        lambda data: data.jaxbio.curves({"delay": 6, "states": 2}),
        ValueError,
        "at.*must be one of 5, 80",
    ),
    "learner": (
        lambda data: data.jaxbio.heatmap("delay", "states", relative_to="x"),
        ValueError,
        "relative_to must be one of 'UCB1', 'StateThompson'",
    ),
    "no sweep": (
        lambda data: plot.heatmap(data.drop_vars("final_regret"), "delay", "states"),
        TypeError,
        "data must be the Dataset of a sweep",
    ),
    "no curves": (
        lambda data: data.drop_vars("regret").jaxbio.results(POINT),
        ValueError,
        "has no regret curves",
    ),
    "comparison": (plot.final_regret, TypeError, "comparison must be a Comparison"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_gets_a_sentence(name: str, data: xr.Dataset) -> None:
    call, kind, said = REFUSED[name]
    with pytest.raises(kind, match=said):
        call(data)


def test_realised_regret_is_not_in_a_sweep(data: xr.Dataset) -> None:
    one = data.jaxbio.results({"delay": 5, "states": 2})["UCB1"]
    with pytest.raises(ValueError, match="play the point by simulate"):
        _ = one.realized_regret


def test_figures_are_there_without_an_import() -> None:
    """And matplotlib is not imported before one is drawn."""
    code = "import sys, jaxbio as jb; print('matplotlib' in sys.modules, jb.plot.regret_curves)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False <function regret_curves")
    assert set(plot.PLACES) == set(plot.__all__) == set(dir(plot))
    assert all(hasattr(plot, name) for name in plot.__all__)
    with pytest.raises(AttributeError, match="no attribute 'curve'"):
        _ = plot.curve  # type: ignore[attr-defined]
