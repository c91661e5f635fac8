"""The figures of the studies, drawn from numbers that are made up: readable at any width."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib import rc_context
from test_figures import LOOKS, assert_readable

from jaxbio.analysis.comparison import Comparison, Row
from jaxbio.analysis.intervals import YES
from jaxbio.figures.style import Look, style
from jaxbio.studies.advise.figures.table import advice
from jaxbio.studies.advise.tournament import Left, Outcome
from jaxbio.studies.beyond.figure import beyond
from jaxbio.studies.beyond.study import CHANGES, FORGETFUL, MEMORIES
from jaxbio.studies.contest.entrants import ENTRANTS
from jaxbio.studies.contest.figure import WORST, table
from jaxbio.studies.contest.problems import CLASSES
from jaxbio.studies.contest.study import FORMS
from jaxbio.studies.contestants import ROBUST, UNIFORM, contestants
from jaxbio.studies.guarantees.figure import bounds_and_runs
from jaxbio.studies.guarantees.study import TRIVIAL
from jaxbio.studies.guarantees.theorems import GUARANTEES
from jaxbio.studies.phase import command as phase_command
from jaxbio.studies.phase.figures.theorem import phase
from jaxbio.studies.phase.figures.tuned import worth_panels
from jaxbio.studies.rates.figure import slopes
from jaxbio.studies.rates.series import VALUES, default_series
from jaxbio.studies.regimes.figure import delays, regimes
from jaxbio.studies.regimes.study import DELAYS, REGIMES
from jaxbio.studies.violations.figure import FORGETTING, risk
from jaxbio.studies.violations.problems import KINDS
from jaxbio.studies.violations.study import COUNTERPARTS, DIFFERENCE, STRENGTHS


def made_up_guarantees() -> xr.Dataset:
    """Bounds that lie close together, as those of T = 10,000 do."""
    axes = {"horizon": [300, 1_000, 10_000], "delta": [0.1, 0.01, 0.001]}
    names = [one.name for one in GUARANTEES]
    dims, shape = ("guarantee", *axes), (len(names), 3, 3)
    bound = np.linspace(9_000, 10_000, len(names))[:, None, None] * np.array([[0.1], [0.3], [1]])
    bound = np.broadcast_to(bound, shape)
    terms = bound[..., None] * np.array([0.5, 0.3, 0.15, 0.05])
    full = {
        "bound": bound,
        "regret_quantile": bound / 9,
        "ratio": np.full(shape, 9.0),
        "exceeded": np.zeros(shape, int),
        "share_low": np.zeros(shape),
        "share_high": np.full(shape, 3.7e-5),
        "verdict": np.full(shape, YES),
    }
    variables: dict[str, Any] = {name: (dims, values) for name, values in full.items()}
    variables["terms"] = ((*dims, "term"), terms)
    variables["most_possible"] = ("horizon", [96.0, 320.0, 3_200.0])
    coordinates = {"guarantee": names, **axes}
    coordinates["term"] = ["states_or_delays", "actions", "delays", "lower_order"]
    about = {"runs": 100_000, "actions": 8, "states": 4, "mean_delay": 100.0}
    return xr.Dataset(variables, coordinates, about)


def made_up_rates() -> xr.Dataset:
    """The default lines: points on the paper's rate."""
    lines = [
        (one, name) for one in default_series(**VALUES, horizon=8_000) for name in one.learners
    ]
    rate = np.full((len(lines), 5), np.nan)
    value = rate.copy()
    for row, x, (one, _) in zip(rate, value, lines, strict=True):
        row[: len(one.values)], x[: len(one.values)] = one.rates(), one.values
    shape = ("line", "point")
    slope = ("line", np.full(len(lines), 0.5))
    variables = {"value": (shape, value), "rate": (shape, rate), "regret_mean": (shape, rate)}
    variables |= {"mean_low": (shape, 0.9 * rate), "mean_high": (shape, 1.1 * rate)}
    names = ("slope", "slope_low", "slope_high", "rate_slope")
    coordinates = {
        "axis": ("line", [one.axis for one, _ in lines]),
        "problem": ("line", [one.problem.name for one, _ in lines]),
        "learner": ("line", [name for _, name in lines]),
    }
    return xr.Dataset({**variables, **dict.fromkeys(names, slope)}, coordinates, {"runs": 400})


def made_up_phase(actions: list[int], horizons: list[int]) -> xr.Dataset:
    """The axes of the wide grid; states help with few of them at delays of hundreds."""
    states, delays = phase_command.GRIDS["wide"]
    wrappers = ["MetaBIO", "MetaAdaBIO"]
    dims = ("wrapper", "actions", "horizon", "states", "delay")
    distance = np.abs(np.log(np.array(delays) / 200)) / 4  # [delays]
    ratio = (np.array(states)[:, None] / 20) ** 0.5 + distance
    values = np.broadcast_to(ratio, (2, len(actions), len(horizons), *ratio.shape))
    named = {"ratio": values, "low": values / 1.05, "high": values * 1.05}
    coordinates = {"wrapper": wrappers, "actions": actions, "horizon": horizons}
    coordinates |= {"states": states, "delay": delays}
    about = {"runs": 300, "problems": 8}
    return xr.Dataset({name: (dims, own) for name, own in named.items()}, coordinates, about)


def made_up_worth(actions: list[int], horizons: list[int]) -> xr.Dataset:
    """The same ratios for both forms and mappings; two cells have none."""
    plain = made_up_phase(actions, horizons).isel(wrapper=[0]).rename(wrapper="mapping")
    both = plain.isel(mapping=[0, 0]).assign_coords(mapping=["stationary", "changing"])
    ratio = both.ratio.expand_dims(form=["tuned", "theorem"]).copy()
    ratio[0, 1, ..., 3, 2:4] = np.nan
    named = {"ratio": ratio, "low": ratio / 1.05, "high": ratio * 1.05}
    differences = {"difference": 0, "difference_low": -9, "difference_high": 9}
    named |= {name: ratio.fillna(1) + shift for name, shift in differences.items()}
    named["uniform_regret"] = both.ratio.expand_dims(run=2) + 1_000
    return xr.Dataset(named, attrs=plain.attrs)


def made_up_advice() -> Outcome:
    """Names with options, regrets far apart, and a tie for the first place."""
    names = ["nsd-ucrl2", "ucb1", "metaadabio-tsallis:rule=practical,delta=0.05", "metabio"]
    means = [190.0, 191.0, 12_300.0, 15_700.0]
    rows = [
        Row(name, mean, 0.98 * mean, 1.02 * mean, mean - 190, mean - 199, mean - 181,
            None if i == 0 else 0.4, 0.5 * (i < 2), 0.5 * (i < 2))
        for i, (name, mean) in enumerate(zip(names, means, strict=True))
    ]  # fmt: skip
    left = Left("hindsight-exp3:scale=3", 20_000.0, 19_000.0, 21_000.0, 32)
    return Outcome(Comparison(tuple(rows), 1_024, True, 0.05 / 12), (left,), None, 30_000.0)


SIZES = {"one": ([8], [10_000]), "several": ([2, 8, 32], [2_000, 20_000])}


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-narrow"])
@pytest.mark.parametrize("size", SIZES)
def test_the_phase_diagram_can_be_read(look: Look, size: str) -> None:
    data = made_up_phase(*SIZES[size])
    shown = data if size == "one" else data.sel(wrapper=["MetaAdaBIO"])
    with rc_context(style(look)):
        figure = phase(shown, look)
        assert_readable(size, figure)
    if not look.narrow:
        assert figure.get_size_inches()[1] < 12, "too tall for a page"


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-narrow"])
def test_what_states_are_worth_can_be_read(look: Look) -> None:
    with rc_context(style(look)):
        figure = worth_panels(made_up_worth(*SIZES["one"]), look)
        assert_readable("worth", figure)
        assert_readable("several", worth_panels(made_up_worth([2, 32], [2_000, 20_000]), look))
    if not look.narrow:
        assert figure.get_size_inches()[1] < 12, "too tall for a page"


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-narrow"])
def test_advice_can_be_read(look: Look) -> None:
    with rc_context(style(look)):
        assert_readable("advice", advice(made_up_advice(), "K = 8, S = 12, T = 100,000", look))


def made_up_regimes() -> xr.Dataset:
    """Curves that end close together, some of them below zero."""
    names, rounds = list(contestants()), np.arange(500, 10_001, 500)
    ends = np.linspace(-1_000, 1_400, 20).reshape(4, 5)[..., None, None]
    regret = ends * np.linspace(0, 1, 20) * np.array([[0.9], [1.1]])
    dims = ("regime", "learner", "run", "round")
    coordinates = {"regime": list(REGIMES), "learner": names, "round": rounds}
    return xr.Dataset({"regret": (dims, regret)}, coordinates)


def made_up_delays() -> xr.Dataset:
    """As far apart, and as close together, as those of the default."""
    d = np.array(DELAYS)
    mean = np.stack([300 + d / 2, 280 + d / 2, 281 + d / 2, 299 + d / 2]) * np.ones((4, 1, 1))
    dims = ("regime", "learner", "delay")
    values = {"regret_mean": mean, "mean_low": mean - 290, "mean_high": mean + 290}
    variables: dict[str, Any] = {name: (dims, value) for name, value in values.items()}
    rates = np.stack([np.full(len(d), 265.0), 100 * np.sqrt(4 + d)])
    rate = np.stack([rates, rates, rates[[1, 1]], rates[[1, 1]]])
    variables["rate"] = (("regime", "seen", "delay"), rate)
    coordinates = {"regime": list(REGIMES), "learner": [*ROBUST, UNIFORM]}
    coordinates |= {"delay": d, "seen": ["states", "nothing"]}
    return xr.Dataset(variables, coordinates, {"horizon": 10_000, "runs": 50})


def made_up_beyond() -> tuple[xr.Dataset, xr.Dataset]:
    names = ["DAda-Exp3", "MetaBIO", "NSD-UCRL2", *FORGETFUL]
    runs = np.array([0.98, 1.02])
    memory = np.abs(np.log(MEMORIES)) + 1  # the best is 0.93
    means = np.array([2_069, 2_020, 433, 1_395, 430])[:, None, None] * memory[:, None] * runs
    means = np.broadcast_to(means[:, None], (5, len(CHANGES), len(MEMORIES), 2))
    dims = ("learner", "changes", "memory", "run")
    coordinates = {"learner": names, "changes": list(CHANGES), "memory": list(MEMORIES)}
    changes = xr.Dataset({"dynamic_regret": (dims, means), "uniform_regret": 2_100.0}, coordinates)
    names = ["DAda-Exp3", "MetaBIO", "MetaBIO, no horizon", "MetaAdaBIO", "MetaAdaBIO, no horizon"]
    finals = np.array([434, 300, 298, 425, 515])[:, None, None] * np.ones((3, 1)) * runs
    coordinates = {"learner": names, "spare": [1, 4, 16]}
    return changes, xr.Dataset({"final_regret": (("learner", "spare", "run"), finals)}, coordinates)


def made_up_violations() -> xr.Dataset:
    """All begin apart and end together, as they do where nothing is left to learn."""
    names, v = list(COUNTERPARTS), np.array(STRENGTHS)
    mean = np.linspace(-0.6, 0.1, len(names))[:, None] * (1 - v)
    values = np.stack([mean, mean - 0.02, mean + 0.02])
    values = np.broadcast_to(values[:, None], (3, len(KINDS), len(names), len(v)))
    dims = ("kind", "pair", "strength")
    variables: dict[str, Any] = {
        name: (dims, own) for name, own in zip(DIFFERENCE, values, strict=True)
    }
    coordinates = {"kind": list(KINDS), "pair": names, "strength": v}
    about = {"against": "blind", "guessing": 1_455.0, "runs": 64, "horizon": 10_000, "delay": 100}
    return xr.Dataset(variables, coordinates, about)


def made_up_contest() -> xr.Dataset:
    """All learners and classes, from the best to one that is worse than guessing."""
    names, classes = list(ENTRANTS), list(CLASSES)
    share = np.linspace(0, 1.31, len(names) * len(classes)).reshape(len(names), -1)[::-1]
    values = np.broadcast_to(share, (len(FORMS), *share.shape))
    cells, rows = ("form", "learner", "class"), ("form", "learner")
    variables: dict[str, Any] = {
        "behind": (cells, values),
        "may_be_best": (cells, values < 0.01),
        "worst": (rows, values.max(axis=-1)),
        "worst_class": (rows, np.full(values.shape[:2], "many-states")),
        "may_be_robust": (rows, values[..., 0] < 0.01),
        "looks_at_states": ("learner", [number % 2 == 0 for number in range(len(names))]),
        "best": ("problem", ["UCB1"] * 39),
    }
    coordinates = {"form": list(FORMS), "learner": names, "class": classes}
    return xr.Dataset(variables, coordinates, {"runs": 128, "horizon": 10_000})


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-narrow"])
@pytest.mark.parametrize("form", FORMS)
def test_the_table_of_a_contest_can_be_read(look: Look, form: str) -> None:
    data = made_up_contest()
    with rc_context(style(look)):
        figure = table(data, form, look)
        assert_readable(form, figure)
    (axes,) = figure.axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert [label[2:] for label in labels] == list(ENTRANTS)[::-1]  # the most robust above
    assert {label[0] for label in labels} == {"●", "○"}
    texts = [text.get_text() for text in axes.texts]
    assert WORST in texts
    worst = [f"{100 * value:.0f}" for value in data.worst.isel(form=0).values if value > 0.1]
    assert set(worst) <= set(texts)
    bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
    shown = 1 if look.narrow else 2 + int((data.behind[0] < 0.01).sum())
    assert 1 <= len(bold) <= shown
    if look.narrow:
        assert "many states" in texts
    else:
        assert {one.column for one in CLASSES.values()} <= set(texts)


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-narrow"])
def test_the_studies_can_be_read(look: Look) -> None:
    with rc_context(style(look)):
        assert_readable("guarantees", bounds_and_runs(made_up_guarantees(), look))
        assert_readable("rates", slopes(made_up_rates(), look))
        assert_readable("regimes", regimes(made_up_regimes(), look))
        assert_readable("delays", delays(made_up_delays(), look))
        assert_readable("beyond", beyond(*made_up_beyond(), look))
        assert_readable("violations", risk(made_up_violations(), look))


def written(figure: Any, panel: int) -> list[str]:
    return [text.get_text() for text in figure.axes[panel].texts]


def test_every_term_of_a_bound_is_named() -> None:
    data = made_up_guarantees()
    figure = bounds_and_runs(data, LOOKS[0])
    named = [text for text in written(figure, 3) if text.endswith("%")]
    assert named == ["states or delays 50%", "actions 30%", "delays 15%", "lower order 5%"] * len(
        GUARANTEES
    )
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[2] == "Runs above the bound, T = 10,000"
    trivial = (data.verdict.dims, np.full(data.verdict.shape, TRIVIAL))
    vacuous = bounds_and_runs(data.assign(verdict=trivial), LOOKS[0])
    assert vacuous.axes[2].get_title(loc="left") == f"{titles[2]}: none can be"


def test_labels_of_dashed_lines_are_dashed() -> None:
    axes = bounds_and_runs(made_up_guarantees(), LOOKS[0]).axes[0]
    leaders = [line for line in axes.lines if line.get_transform() == axes.transAxes]
    texts = written(axes.figure, 0)
    dashed = {text: line.is_dashed() for text, line in zip(texts, leaders, strict=True)}
    assert dashed["MetaBIO, bound"]
    assert not dashed["MetaBIO"]


def test_those_that_forget_are_drawn_at_their_best() -> None:
    changes, unknowns = made_up_beyond()
    axes = beyond(changes, unknowns, LOOKS[0]).axes[0]
    best = changes.dynamic_regret.sel(memory=0.93).mean("run")
    heights = [np.asarray(line.get_ydata()) for line in axes.lines]
    drawn = [height[-1] for height in heights if len(height) == len(CHANGES)]
    wanted = best.isel(changes=-1).values
    assert all(np.isclose(drawn, mean).any() for mean in wanted)
    assert any(np.array_equal(height, [2_100, 2_100]) for height in heights)
    assert "uniform play" in written(axes.figure, 0)


def test_those_that_forget_are_drawn_where_the_mapping_changes() -> None:
    figure = risk(made_up_violations(), LOOKS[0])
    for panel, kind in enumerate(KINDS):
        names = set(written(figure, panel))
        forgetting = {name for name in COUNTERPARTS if FORGETTING in name}
        assert names == set(COUNTERPARTS) - (set() if kind == "drifting" else forgetting)


def test_rates_over_delays_begin_where_their_learners_do() -> None:
    data = made_up_delays()
    figure = delays(data, LOOKS[0])
    for panel, count in ((0, 2), (2, 1)):
        axes = figure.axes[panel]
        rates = [line for line in axes.lines
                 if line.is_dashed() and line.get_transform() != axes.transAxes]  # fmt: skip
        assert len(rates) == count
        assert np.asarray(rates[0].get_ydata())[0] == pytest.approx(305)  # of DAda-Exp3
    heights = [np.asarray(line.get_ydata(), float) for line in figure.axes[0].lines]
    assert any(np.allclose(height, 285) for height in heights)  # MetaBIO's, with min(S, d)


def test_a_panel_has_three_problems_at_most() -> None:
    """The fourth along d has one of its own: there the rate rises and is then flat."""
    figure = slopes(made_up_rates(), LOOKS[0])
    names = [axes.get_title(loc="left").split("  ") for axes in figure.axes]
    assert names == [
        ["● hard-states", "▲ hard-adversarial", "■ paper-utility"],
        ["● hard-states", "■ paper-utility"],
        ["▲ hard-adversarial", "◆ hard-delay", "■ paper-utility"],
        ["● hard-states"],
        ["● hard-actions", "■ paper-utility"],
    ]
    assert [axes.get_xlabel()[-1] for axes in figure.axes] == ["T", "S", "d", "d", "K"]
    dashed = [np.asarray(line.get_ydata()) for line in figure.axes[3].lines if line.is_dashed()]
    (rate,) = [height for height in dashed if len(height) == len(VALUES["delays"])]
    steps = np.diff(np.log(rate))
    assert steps == pytest.approx([np.log(2) / 2] * 2 + [0] * 2)


def test_points_are_joined() -> None:
    """A straight line would hide that they bend."""
    data = made_up_rates()
    data.regret_mean[0] = [1, 5, 2, 7, 3]
    lines = slopes(data, LOOKS[0]).axes[0].lines
    full = [np.asarray(line.get_ydata()) for line in lines if line.get_linestyle() == "-"]
    assert any(np.array_equal(height, [1, 5, 2, 7, 3]) for height in full)


def test_uniform_play_is_drawn_over_delays() -> None:
    figure = delays(made_up_delays(), LOOKS[0])
    for panel, axes in enumerate(figure.axes):
        assert UNIFORM in written(figure, panel)
        (own,) = [line for line in axes.lines if line.get_color() == LOOKS[0].theme.muted
                  and line.get_transform() != axes.transAxes
                  and line.get_marker() == "o"]  # fmt: skip
        np.testing.assert_allclose(np.asarray(own.get_ydata(), float), 299 + np.array(DELAYS) / 2)


def test_a_single_delay_is_in_sight() -> None:
    data = made_up_delays().isel(delay=[2])
    with rc_context(style(LOOKS[0])):
        figure = delays(data, LOOKS[0])
    assert_readable("delays", figure)
    for axes in figure.axes:
        low, high = axes.get_xlim()
        assert low < 0.9 * 50 < 1.1 * 50 < high


def test_a_mean_below_zero_is_left_out() -> None:
    """A logarithmic axis has no place for it, and a line through it has no slope."""
    data = made_up_rates()
    data.regret_mean[0, 0] = -1.0
    data.slope[0] = np.nan
    with rc_context(style(LOOKS[0])):
        figure = slopes(data, LOOKS[0])
    assert_readable("rates", figure)
    assert any("nan" in text.get_text() for text in figure.axes[0].texts)
