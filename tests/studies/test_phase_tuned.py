"""What states are worth: chosen in training and judged elsewhere, ratios, the command, figures."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PolyCollection
from scipy import stats

import jaxbio as jb
from jaxbio.analysis.tune import training_seed
from jaxbio.cli import main as cli
from jaxbio.figures.style import Look
from jaxbio.storage import netcdf
from jaxbio.studies import outputs
from jaxbio.studies.contestants import looks_at_states, uniform_play, wrappers
from jaxbio.studies.families import FAMILIES, in_turns, utility
from jaxbio.studies.phase import command, halving, tuned_text
from jaxbio.studies.phase.figures.tuned import worth_panels
from jaxbio.studies.phase.study import phase_diagram
from jaxbio.studies.phase.tuned import entrants, worth_diagram
from jaxbio.studies.phase.worth import DIFFERENCE, RATIO, compared, overall, sides
from jaxbio.studies.practical import PRACTICAL, Practical

DUELS = "jaxbio.studies.phase.duels"
LEARNERS = {
    "UCB1": Practical("ucb1", {}, {"exploration": (2.0, 0.2, 0.05)}),
    "DAda-Exp3": Practical("dada-exp3", {}, {"scale": (1.0, 3.0)}),
    "MetaBIO-mean": Practical("metabio-mean", {}, {"scale": (1.0, 3.0)}),
    "NSD-UCRL2": Practical("nsd-ucrl2", {}, {"radius_scale": (1.0, 0.3, 0.1)}),
}
SMALL: dict[str, Any] = {
    "actions": [4],
    "horizons": [300],
    "runs": 24,
    "training": 3,
    "learners": LEARNERS,
    "progress": False,
}


@pytest.fixture(scope="module")
def diagram() -> xr.Dataset:
    return worth_diagram([2, 4], [3, 30], **SMALL)


# --- who is chosen, and where they are judged


def test_learners_and_settings_are_chosen_in_training_and_judged_elsewhere(
    diagram: xr.Dataset,
) -> None:
    """All of it again with `simulate`: the least mean of the runs of training names the learner,
    and what is judged are the runs that `simulate` plays with the same seed.
    """
    by_training_only = 0
    for mapping, number in (("stationary", 0), ("changing", 1)):
        envs = in_turns(FAMILIES["utility"], 4, 4, jb.FixedDelay(3), 0)
        assert envs is not None
        place = {"mapping": mapping, "states": 4, "delay": 3, "actions": 4, "horizon": 300}
        played = _played(envs[number], {"seed": training_seed(0, 0), "runs": 3})
        judged = _played(envs[number], {"runs": 24})
        for group, does in (("with states", True), ("without", False)):
            labels = [
                label
                for label, one in LEARNERS.items()
                if looks_at_states(one.made({}), envs[0]) == does
            ]
            mine = {key: own for key, own in played.items() if key[0] in labels}
            assert len(mine) == 5
            (label, words), regrets = min(mine.items(), key=lambda one: one[1].mean())
            cell = diagram.sel(form="tuned", group=group, **place)
            assert (str(cell.chosen.values), str(cell.setting.values)) == (label, words)
            np.testing.assert_allclose(cell.final_regret, judged[label, words])
            least = float(diagram.training_regret.sel(learner=label, **place))
            assert least == pytest.approx(regrets.mean())
            by_training_only += min(mine, key=lambda one: judged[one].mean()) != (label, words)
    assert by_training_only, "runs that judge would have chosen the same: nothing is tested"


def _played(env: jb.Environment, worlds: dict[str, Any]) -> dict[tuple[str, str], np.ndarray]:
    """Label and words of a setting -> final regrets of all that may be chosen."""
    return {
        (label, one.written(setting)): jb.simulate(
            env, one.made(setting), horizon=300, rounds=1, progress=False, **worlds
        ).final_regret
        for label, one in LEARNERS.items()
        for setting in one.settings
    }


def made_up(regrets: dict[str, tuple[float, float]]) -> Any:
    """As `play_problems` and `train` of jaxbio.studies.practical: a label's regret in training
    and elsewhere is made up, the same in all runs.
    """

    def train(label: str, entrant: Practical, problems: Any, *_: Any, **__: Any) -> np.ndarray:
        return np.full((len(problems), len(entrant.settings)), regrets[label][0])

    def play(problems: Any, learners: Any, axes: Any, runs: int, **_: Any) -> xr.DataArray:
        types = {type(one.made({})): label for label, one in LEARNERS.items()}
        values = np.ones((len(learners), len(problems), runs))
        for i, learner in enumerate(learners.values()):
            for j in range(len(problems)):
                made = learner(problem=j) if callable(learner) else learner
                values[i, j] = regrets[types[type(made)]][1] if type(made) in types else 7.0
        dims = ("learner", "problem", "run")
        return xr.DataArray(values, {"learner": list(learners)}, dims)

    return train, play


class Calls:
    """As `play_problems`: what a learner's numbers make of it is made up, by stage, and noted."""

    def __init__(self, regret: Any) -> None:
        self.regret = regret
        self.worlds: list[tuple[int, Any]] = []
        self.played: list[list[set[str]]] = []  # of each call, by problem

    def __call__(
        self, problems: Any, learners: Any, axes: Any, runs: int, seed: Any, **_: Any
    ) -> xr.DataArray:
        stage = len(self.worlds)
        made = [[one(problem=j) if callable(one) else one for j in range(len(problems))]
                for one in learners.values()]  # fmt: skip
        self.worlds.append((runs, seed))
        self.played.append([{str(row[j]) for row in made} for j in range(len(problems))])
        means = [[self.regret(one, stage, j) for j, one in enumerate(row)] for row in made]
        values = np.repeat(np.array(means)[..., None], runs, axis=2)
        return xr.DataArray(values, {"learner": list(learners)}, ("learner", "problem", "run"))


def test_more_training_is_for_those_that_are_best_with_less(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four of twelve settings a group go on, then three, each time in worlds of their own; the last
    stage chooses. On problem j setting number i has the regret |i - j - 4.2|, -i, and |i - j - 5|.
    """
    numbers = [0.1 * i for i in range(1, 13)]
    learners = {
        "UCB1": Practical("ucb1", {}, {"exploration": numbers}),
        "NSD-UCRL2": Practical("nsd-ucrl2", {}, {"radius_scale": numbers}),
    }

    def number(learner: Any) -> int:
        own = getattr(learner, "exploration", None) or getattr(learner, "radius_scale", 0.1)
        return round(own / 0.1) - 1

    def train(label: str, entrant: Any, problems: Any, games: int, *_: Any, **__: Any) -> Any:
        assert games == 4
        return np.array([[abs(i - j - 4.2) for i in range(12)] for j in range(len(problems))])

    def further(learner: Any, stage: int, j: int) -> float:
        return -number(learner) if stage == 0 else abs(number(learner) - j - 5)

    calls = Calls(further)
    for name, value in {"train": train, "play_problems": calls, "TRAINING_RUNS": 4}.items():
        monkeypatch.setattr(importlib.import_module(DUELS), name, value)
    for name, value in {"TRAINING_RUNS": 4, "SEMIFINALISTS": 4, "FINALISTS": 3}.items():
        monkeypatch.setattr(halving, name, value)
    data = worth_diagram([2], [3], actions=[4], horizons=[9], runs=6, training=25, seed=5,
                         learners=learners)  # fmt: skip
    assert calls.worlds[:2] == [(10, training_seed(5, 1)), (25, training_seed(5, 2))]
    assert calls.worlds[2:] == [(6, 5)]
    for j, mapping in enumerate(("stationary", "changing")):
        went_on = [{str(one.made(one.settings[i + j])) for one in learners.values() for i in places}
                   for places in ((3, 4, 5, 6), (4, 5, 6))]  # fmt: skip
        assert [played[j] for played in calls.played[:2]] == went_on
        tuned = data.sel(form="tuned", mapping=mapping).squeeze()
        words = [one.written(one.settings[5 + j]) for one in learners.values()]
        assert tuned.setting.values.tolist() == words[::-1]
        assert data.training_regret.sel(mapping=mapping).squeeze().values == pytest.approx(0.2)
    # 2 problems x 2 groups x (12 settings x 4 games, 4 x 10, 3 x 25), and five play 6 runs each.
    assert "2 learners with 24 settings on 2 problems: 652 games of training, then 60 games" in (
        capsys.readouterr().err
    )


def test_stages() -> None:
    assert halving.stages(64) == []
    assert halving.stages(512) == [(181, 16), (512, 5)]


def test_the_best_of_the_judged_runs_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training prefers UCB1 and NSD-UCRL2, the runs that judge the other two."""
    train, play = made_up(
        {"UCB1": (1, 40), "DAda-Exp3": (2, 10), "MetaBIO-mean": (2, 4), "NSD-UCRL2": (1, 8)}
    )
    monkeypatch.setattr(importlib.import_module(DUELS), "train", train)
    monkeypatch.setattr(importlib.import_module(DUELS), "play_problems", play)
    data = worth_diagram([2], [3], **SMALL)
    tuned = data.sel(form="tuned").squeeze()
    assert (tuned.chosen.sel(group="with states") == "NSD-UCRL2").all()
    assert (tuned.chosen.sel(group="without") == "UCB1").all()
    np.testing.assert_allclose(tuned.ratio, 8 / 40)


def test_both_groups_and_the_yardstick_meet_the_same_worlds(diagram: xr.Dataset) -> None:
    """Beside the tuned ones: MetaBIO and its base, in the cells of `phase_diagram`, and uniform
    play, on a mapping that does not change.
    """
    theorem = diagram.sel(form="theorem", mapping="stationary")
    sizes: dict[str, Any] = {"actions": [4], "horizons": [300], "runs": 24, "progress": False}
    metabio = {"MetaBIO": wrappers()["MetaBIO"]}
    known = phase_diagram([2, 4], [3, 30], learners=metabio, within=1e9, **sizes)
    known = known.sel(wrapper="MetaBIO")
    for group, name in (("with states", "final_regret"), ("without", "base_regret")):
        np.testing.assert_allclose(theorem.final_regret.sel(group=group), known[name])
    for name in RATIO:
        np.testing.assert_allclose(theorem[name], known[name])
    env, (guess,) = utility(4, 4, jb.FixedDelay(30)), uniform_play().values()
    alone = jb.simulate(env, guess, horizon=300, runs=24, rounds=1, progress=False)
    cell = diagram.uniform_regret.sel(mapping="stationary", states=4, delay=30).squeeze()
    np.testing.assert_allclose(cell, alone.final_regret)


def test_several_problems_share_one_choice() -> None:
    """Of the family drawn at random: a run's regret is the mean over its eight problems."""
    few: dict[str, Any] = SMALL | {"family": "random", "runs": 3, "training": 2}
    data = worth_diagram([4], [10], **few)
    tuned = data.sel(form="tuned", mapping="changing").squeeze()
    assert data.attrs["problems"] == 8
    for group in ("with states", "without"):
        cell = tuned.sel(group=group)
        name, _, words = str(cell.setting.values).partition(":")
        options = {
            key: float(value) for key, value in (w.split("=") for w in words.split(",") if w)
        }
        finals = []
        for instance in range(8):
            envs = in_turns(FAMILIES["random"], 4, 4, jb.FixedDelay(10), instance)
            assert envs is not None
            learner = jb.make_learner(name, **options)
            finals.append(
                jb.simulate(envs[1], learner, horizon=300, runs=3, progress=False).final_regret
            )
        np.testing.assert_allclose(cell.final_regret, np.mean(finals, axis=0), rtol=1e-6)


def test_a_family_without_a_changing_form_is_played_as_it_is_made() -> None:
    def family(actions: int, states: int, delays: Any) -> jb.Environment:
        return utility(actions, states, delays)

    few: dict[str, Any] = SMALL | {"runs": 2, "training": 2}
    data = worth_diagram([4], [3], family=family, **few)
    assert data.mapping.values.tolist() == ["as made"]
    found, text = tuned_text.summary(data), "On the mapping of this family, the best learner"
    assert [row["mapping"] for row in found] == ["as made"] * 2
    assert found[0]["sentence"].startswith(text)
    titles = [axes.get_title(loc="left") for axes in worth_panels(data, Look()).axes]
    assert [one for one in titles if one] == [
        "Tuned, as made",
        "Theorem, as made",
    ]


def test_entrants_are_practical_learners_with_no_other_settings() -> None:
    for label, one in entrants().items():
        whole = PRACTICAL[label]
        assert (one.name, one.options, list(one.grid)) == (
            whole.name, whole.options, list(whole.grid)
        )  # fmt: skip
        assert all(setting in whole.settings for setting in one.settings)
        assert one.settings[0] == whole.settings[0], "the form of the theorem comes first"


# --- numbers


def test_ratios_and_differences_are_those_of_numpy(diagram: xr.Dataset) -> None:
    for states, delay in ((2, 30), (4, 3)):
        for form in ("tuned", "theorem"):
            cell = diagram.sel(form=form, mapping="changing", states=states, delay=delay)
            cell = cell.squeeze()
            one, other = (cell.final_regret.sel(group=g).values for g in ("with states", "without"))
            ratio = one.mean() / other.mean()
            reach = stats.t.ppf(0.975, 23) * stats.sem(one / one.mean() - other / other.mean())
            wanted = [ratio, ratio / np.exp(reach), ratio * np.exp(reach)]
            np.testing.assert_allclose([cell[name] for name in RATIO], wanted)
            mean = (one - other).mean()
            reach = stats.t.ppf(0.975, 23) * stats.sem(one - other)
            wanted = [mean, mean - reach, mean + reach]
            np.testing.assert_allclose([cell[name] for name in DIFFERENCE], wanted)


def made_up_finals(ratios: Any, noise: float = 5.0, runs: int = 400) -> xr.Dataset:
    """Final regrets of one form, mapping, K and T in which the true ratios [states, delays] hold:
    without states 100, negative where the ratio is. All cells share their runs.
    """
    ratios = np.atleast_2d(np.asarray(ratios, float))
    generator = np.random.default_rng(0)
    without = np.where(ratios > 0, 100.0, -10.0)
    both = np.stack([100 * ratios, without])[..., None] + generator.normal(
        0, noise, (2, 1, 1, runs)
    )
    dims = ("form", "group", "mapping", "actions", "horizon", "states", "delay", "run")
    shape = (1, 2, 1, 1, 1, *ratios.shape, runs)
    coords = {"form": ["tuned"], "group": ["with states", "without"], "mapping": ["changing"]}
    coords |= {"actions": [8], "horizon": [100], "states": range(2, 2 + len(ratios))}
    coords |= {"delay": [2**i for i in range(ratios.shape[1])]}
    uniform = np.full((*shape[2:-1], runs), 200.0)
    variables = {
        "final_regret": (dims, both.reshape(shape)),
        "uniform_regret": (dims[2:], uniform),
        "chosen": (dims[:-1], np.full(shape[:-1], "somebody")),
        "setting": (dims[:-1], np.full(shape[:-1], "somebody:scale=3.0")),
    }
    return compared(xr.Dataset(variables, coords, {"runs": runs, "problems": 1}))


def test_all_cells_in_one_number() -> None:
    """The geometric mean of 1/4, 1/2 and 2; its interval knows that cells share their runs.

    With its 400 runs and a noise of 5 %, the interval of a cell is 0.7 % wide, and so is that of
    the mean of cells that move together; as if they were independent it would be 0.4 %.
    """
    data = made_up_finals([0.25, 0.5, 2.0])
    found = overall(data.sel(form="tuned", mapping="changing", actions=8, horizon=100))
    assert found.ratio == pytest.approx(0.25 ** (1 / 3), rel=0.02)
    assert (found.cells, found.rated, found.helps, found.hurts) == (3, 3, 2, 1)
    assert found.least == pytest.approx(0.25, rel=0.02)
    assert found.most == pytest.approx(2, rel=0.02)
    finals = data.final_regret.squeeze().values  # [group, delay, run]
    parts = finals / finals.mean(-1, keepdims=True)
    reach = stats.t.ppf(0.975, 399) * stats.sem((parts[0] - parts[1]).mean(0))
    np.testing.assert_allclose(
        np.log([found.high, found.low]) - np.log(found.ratio), [reach, -reach]
    )


def test_a_mean_regret_below_zero_has_no_ratio_and_counts_by_its_difference() -> None:
    """Cell 2: -30 with states against -10; cell 4: 10 more than without, which are -10."""
    data = made_up_finals([2.0, -0.3, 0.5, -0.001])
    tuned = data.sel(form="tuned")
    np.testing.assert_array_equal(np.isnan(tuned.ratio.squeeze()), [False, True, False, True])
    found = overall(tuned.sel(mapping="changing", actions=8, horizon=100))
    assert (found.cells, found.rated, found.helps, found.hurts) == (4, 2, 2, 2)
    assert sides(tuned).squeeze().values.tolist() == [1, -1, -1, 1]
    (row,) = tuned_text.helpful_ranges(data)
    assert (row["helps"], row["undecided"], row["hurts"]) == ([2, 4], [], [1, 8])
    assert row["best_delay"] == 4, "the least ratio there is"
    cells = tuned_text.all_cells(data)
    assert [cell["ratio"] is None for cell in cells] == [False, True, False, True]
    assert cells[1]["difference"] == pytest.approx(-20, abs=1)
    json.dumps(cells, allow_nan=False)
    none = overall(made_up_finals([-1.0]).sel(form="tuned", mapping="changing"))
    assert none.rated == 0
    assert "no cell has two mean regrets above 0" in tuned_text.in_a_sentence(
        "tuned", "changing", none
    )


# --- the front door, and going on


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": [4, 2]}, r"states must be increasing integers, but got \[4, 2\]"),
        ({"delays": []}, "delays must be increasing"),
        ({"actions": [1]}, "actions must be at least 2, but got 1"),
        ({"horizons": [0]}, "horizons must be at least 1, but got 0"),
        ({"runs": 1}, "runs must be at least 2, but got 1"),
        ({"training": 0}, "training must be at least 1, but got 0"),
        ({"seed": "one"}, "seed must be .* 'one'"),
        ({"family": "odd"}, "family must be one of 'utility', 'random', but got 'odd'"),
        ({"family": lambda *_: 1}, "family must make an Environment, .* it made 1"),
        ({"learners": {"UCB1": jb.UCB1()}}, r"learners\['UCB1'\] must be a Practical.* got UCB1"),
        ({"learners": [1]}, "learners must map labels to Practical"),
        ({"learners": {}}, "one that looks at states and one that does not, but got none"),
        (
            {"learners": {"UCB1": PRACTICAL["UCB1"]}},
            "one that looks at states and one that does not, but got UCB1",
        ),
        ({"learners": {"odd": Practical("odd", {}, {})}}, "'odd'"),
        ({"progress": 3}, "progress must be"),
    ],
)
def test_bad_calls_are_refused_before_anything_is_played(
    change: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("jaxbio.sweeps.execute"), "play_block", None)
    given: dict[str, Any] = {"states": [2], "delays": [1], "progress": False} | change
    with pytest.raises((ValueError, TypeError), match=message):
        worth_diagram(given.pop("states"), given.pop("delays"), **given)


def test_finished_parts_are_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted in the last learner's training, then finished, then there without playing."""
    few: dict[str, Any] = SMALL | {"runs": 4, "training": 2, "horizons": [50], "store": tmp_path}
    duels = importlib.import_module(DUELS)
    train, trained = duels.train, []

    def interrupted(label: str, *given: Any, **how: Any) -> Any:
        if label == "NSD-UCRL2":
            raise KeyboardInterrupt
        trained.append(label)
        return train(label, *given, **how)

    monkeypatch.setattr(duels, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        worth_diagram([4], [3], **few)
    assert trained == ["UCB1", "DAda-Exp3", "MetaBIO-mean"]
    monkeypatch.undo()
    first = worth_diagram([4], [3], **few)
    fresh: dict[str, Any] = few | {"store": None}
    xr.testing.assert_identical(first, worth_diagram([4], [3], **fresh))
    monkeypatch.setattr(importlib.import_module("jaxbio.sweeps.execute"), "play_block", None)
    xr.testing.assert_identical(first, worth_diagram([4], [3], **few))


# --- the command


def test_the_command_hands_over_its_options_and_says_what_was_found(
    diagram: xr.Dataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: dict[str, Any] = {}

    @functools.wraps(worth_diagram)
    def play(*grid: Any, **given: Any) -> xr.Dataset:
        asked.update(given, grid=grid)
        return diagram

    monkeypatch.setattr(command, "worth_diagram", play)
    monkeypatch.setattr(outputs, "number_of_workers", lambda: 1)  # of pictures, drawn here
    words = "phase --tuned --actions 4 --horizon 300 --runs 24 --training 3".split()
    assert cli.main([*words, "--folder", str(tmp_path), "--json"]) == 0
    name = "tuned-3-small-4-300-24-0"
    assert asked["grid"] == command.GRIDS["small"]
    assert (asked["training"], asked["runs"], asked["horizons"]) == (3, 24, [300])
    assert asked["store"] == tmp_path / "store" / name
    found = json.loads(capsys.readouterr().out)
    assert len(found["cells"]) == 16
    assert len(found["ranges"]) == 4
    data = xr.load_dataset(next(file for file in found["files"] if file.endswith(".nc")))
    assert {Path(file).name for file in found["files"]} >= {
        f"{name}-worth-light.png", f"{name}-worth-dark.png"
    }  # fmt: skip
    for cell in found["cells"]:
        place = {name: cell[name] for name in ("form", "mapping", "states", "delay")}
        own = data.sel(place).squeeze()
        assert cell["ratio"] == pytest.approx(float(own.ratio))
        assert cell["without"]["learner"] == str(own.chosen.sel(group="without").values)
        mean = float(own.final_regret.sel(group="with states").mean())
        assert cell["with_states"]["regret_mean"] == pytest.approx(mean)
    text = tuned_text.as_text(found)
    assert text.startswith("On a mapping that does not change, the best learner with states has ")
    assert text.count("geometric mean over 4 cells") == 4
    assert "a mapping that changes, K = 4, T = 300" in text
    row = next(line for line in text.splitlines() if line.startswith("    4 "))
    assert "UCB1" in row or "DAda-Exp3" in row


def test_training_is_for_tuned_learners(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["phase", "--training", "3"]) == 2
    assert "--training is for --tuned, but got 3 without it" in capsys.readouterr().err


def test_both_diagrams_have_the_same_defaults() -> None:
    """The command hands over one set of options to either."""
    known = inspect.signature(phase_diagram).parameters
    for name, parameter in inspect.signature(worth_diagram).parameters.items():
        if name not in ("training", "learners"):
            assert parameter.default == known[name].default, name


# --- drawn


def test_a_cell_without_a_ratio_is_hatched_and_the_line_goes_by_its_difference(
    tmp_path: Path,
) -> None:
    data = made_up_finals([[2.0, -0.3, 0.5], [2.0, 2.0, 2.0], [3.0, 4.0, 5.0]])
    netcdf.save(data, tmp_path / "worth.nc")
    figure = worth_panels(xr.load_dataset(tmp_path / "worth.nc"), Look())
    axes = next(axes for axes in figure.axes if axes.get_title(loc="left"))
    (hatched,) = [one for one in axes.collections if one.get_gid() == "hatched"]
    (path,) = hatched.get_paths()
    assert path.vertices[:, 1].min() < 2 < path.vertices[:, 1].max()  # type: ignore[operator]
    assert path.vertices[:, 0].min() < 2 < path.vertices[:, 0].max()  # type: ignore[operator]
    (line,) = [one for one in axes.collections if one.get_gid() == "line"]
    x, y = np.concatenate([piece.vertices for piece in line.get_paths()]).T  # type: ignore[misc]
    assert 1 < x.min() < 2
    assert x.max() > 4
    assert (y.min(), y.max()) == (1.5, 2.5)
    note = " ".join(text.get_text() for text in figure.texts)
    assert "Hatched: a mean regret is not above 0" in note
    assert not axes.lines, "S = d has a meaning for the theorem's form only"


def test_grey_is_what_is_not_decided_and_the_line_parts_less_from_more() -> None:
    """A noise of 200 %: of the ratios 1.1, 0.5 and 0.9 only the second is decided."""
    data = made_up_finals([[1.1, 0.5, 0.9], [3.0, 3.0, 3.0]], noise=200.0)
    tuned = data.sel(form="tuned").squeeze()
    found = sides(tuned).values
    assert found.tolist() == [[0, -1, 0], [1, 1, 1]]
    axes = next(axes for axes in worth_panels(data, Look()).axes if axes.get_title(loc="left"))
    (band,) = [one for one in axes.collections if one.get_gid() == "band"]
    grey = [path.vertices.mean(axis=0).tolist() for path in band.get_paths()]  # type: ignore[union-attr]
    assert len(grey) == 2
    assert all(y < 2.5 for _, y in grey)
    (line,) = [one for one in axes.collections if one.get_gid() == "line"]
    upright = [piece.vertices for piece in line.get_paths() if np.ptp(piece.vertices[:, 0]) == 0]  # type: ignore[index]
    means = tuned.difference.values < 0
    assert len(upright) == np.abs(np.diff(np.pad(means, ((0, 0), (1, 1))).astype(int))).sum()
    assert tuned_text._stretches([2, 4, 16], [2, 4, 8, 16]) == "2 to 4, 16"


def test_every_panel_shows_its_own_cells(diagram: xr.Dataset) -> None:
    figure = worth_panels(diagram, Look())
    titles = {
        "Tuned, fixed mapping": ("tuned", "stationary"),
        "Tuned, changing mapping": ("tuned", "changing"),
        "Theorem, fixed mapping": ("theorem", "stationary"),
        "Theorem, changing mapping": ("theorem", "changing"),
    }
    drawn = {axes.get_title(loc="left"): axes for axes in figure.axes}
    for title, (form, mapping) in titles.items():
        axes = drawn[title]
        mesh = next(one for one in axes.collections if not isinstance(one, PolyCollection))
        cells = diagram.ratio.sel(form=form, mapping=mapping).squeeze()
        wanted = np.clip(cells.transpose("states", "delay"), 1 / 8, 8)
        np.testing.assert_allclose(np.ravel(np.asarray(mesh.get_array(), float)), np.ravel(wanted))
        assert bool(len(axes.lines)) == (form == "theorem")
    bars = [axes.get_ylabel() for axes in figure.axes if not axes.get_title(loc="left")]
    assert all("with states : without" in label for label in bars)
