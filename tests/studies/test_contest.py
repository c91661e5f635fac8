"""The contest: its numbers by hand, who is surely worse, robustness, and its problems."""

from __future__ import annotations

import functools
import importlib
import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy import stats

import jaxbio as jb
from jaxbio.analysis.tune import training_seed
from jaxbio.cli import main as cli
from jaxbio.studies import outputs
from jaxbio.studies.contest.entrants import ENTRANTS, SIZES, alone, guessing
from jaxbio.studies.contest.problems import CLASSES, SHORTEST
from jaxbio.studies.contest.scores import (
    Yardstick,
    fixed_settings,
    larger,
    most_robust,
    ratios,
    robustness,
    scores,
    yardstick,
)
from jaxbio.studies.contest.study import FORMS, contest
from jaxbio.studies.contest.text import as_text, percent, summary
from jaxbio.studies.contestants import UNIFORM
from jaxbio.studies.practical import PRACTICAL, Practical, train_all

# --- the problems


@pytest.mark.parametrize("horizon", [SHORTEST, 10_000])
@pytest.mark.parametrize("name", CLASSES)
def test_every_class_has_problems_of_its_horizon(name: str, horizon: int) -> None:
    """In each some action is better than another one, or what is best changes."""
    made = CLASSES[name].build(horizon)
    assert len(made) >= 3
    for env in made.values():
        env.check(horizon)
        rounds = np.linspace(1, horizon, 20).astype(int)
        costs = np.array(
            [
                [env.pseudo_loss(jnp.int32(t), jnp.int32(a)) for a in range(env.num_actions)]
                for t in rounds
            ]
        )
        assert np.ptp(costs, axis=1).max() > 1e-3


def test_there_are_a_dozen_classes_of_three_dozen_problems() -> None:
    assert len(CLASSES) == 12
    assert 35 <= sum(len(one.build(10_000)) for one in CLASSES.values()) <= 50
    again = {name: one.build(2000) for name, one in CLASSES.items()}
    for name, one in CLASSES.items():
        for label, env in one.build(2000).items():
            assert str(env) == str(again[name][label])


def test_heavy_tails_are_heavy_and_bursts_burst() -> None:
    for env in CLASSES["heavy-tails"].build(10_000).values():
        late = np.asarray(env.delays.delays)
        assert 15 < np.median(late) < 35
        assert late.max() == 10_000  # never seen
        assert 5 * np.median(late) < late.mean()
    for env in CLASSES["bursts"].build(10_000).values():
        late = np.asarray(env.delays.delays)
        assert set(late.tolist()) == {20, 1000}
        assert 4 <= (np.diff(late) != 0).sum() <= 60
    for env in CLASSES["long-delays"].build(10_000).values():
        assert env.delays.longest() == 2000


def test_sizes_name_what_there_is() -> None:
    for one in SIZES.values():
        assert set(one.classes) <= set(CLASSES)
        assert set(one.entrants) <= set(ENTRANTS)
    assert SIZES["full"].classes == tuple(CLASSES)
    assert set(SIZES["full"].entrants) == set(ENTRANTS)
    names = {one.name for one in ENTRANTS.values()}
    assert set(jb.learner_names()) - names == {"bold-exp3"}


# --- by hand


def finals_of(values: Any, forms: tuple[str, ...] = ("tuned",)) -> xr.DataArray:
    """values: [form, learner, problem, run]."""
    made = np.asarray(values, float)
    labels = [f"L{i}" for i in range(made.shape[1])]
    coords = {"form": list(forms), "learner": labels}
    return xr.DataArray(made, coords, ("form", "learner", "problem", "run"))


def test_the_yardstick() -> None:
    """The second learner is best on the first problem, at its second setting; where regret is
    negative it adds to what guessing costs; where guessing costs nothing a round's loss is left.
    """
    training = {
        "a": np.array([[5.0, 4.0], [-30.0, 9.0], [0.0, 0.0]]),
        "b": np.array([[7.0, 3.0], [1.0, 2.0], [0.0, 0.0]]),
    }
    found = yardstick(training, np.array([100.0, 50.0, 0.0]))
    assert found.best.tolist() == [1, 0, 0]
    assert found.regret.tolist() == [3, -30, 0]
    assert found.scale.tolist() == [100, 80, 1]


def test_scores_and_ratios_keep_the_pairing_of_runs() -> None:
    """Two problems of class A, one of class B; L1 has 10 more in each run of A's first problem."""
    noise = np.array([-50.0, 0, 50])
    best = np.stack([100 + noise, 200 + noise, -10 + noise])
    other = best + np.array([10.0, 40, 0])[:, None]
    measure = Yardstick(
        np.array([0, 0, 0]), np.array([100.0, 200, -10]), np.array([100.0, 400, 50])
    )
    finals, classes = finals_of([[best, other]]), ["A", "A", "B"]
    found = scores(finals, measure, classes, "tuned").sel(form="tuned")
    np.testing.assert_allclose(found.sel(learner="L0"), 0)
    np.testing.assert_allclose(found.sel({"learner": "L1", "class": "A"}), 0.1)  # 10 %, 10 %
    np.testing.assert_allclose(found.sel({"learner": "L1", "class": "B"}), 0)
    ratio = ratios(finals, measure, classes, "tuned")
    own = ratio["ratio"].sel(form="tuned", learner="L1")
    assert own.sel({"class": "A"}).item() == pytest.approx(np.sqrt(1.1 * 1.2))
    assert np.isnan(own.sel({"class": "B"}).item())
    low, high = (ratio[name].sel({"form": "tuned", "learner": "L1", "class": "A"}).item()
                 for name in ("ratio_low", "ratio_high"))  # fmt: skip
    # By hand: the logarithm moves by the mean of noise (1 / 110 - 1 / 100) and (1 / 240 - 1 / 200).
    moved = noise * ((1 / 110 - 1 / 100) + (1 / 240 - 1 / 200)) / 2
    reach = stats.t.ppf(0.975, 2) * moved.std(ddof=1) / np.sqrt(3)
    assert (np.log(high) - np.log(low)) / 2 == pytest.approx(reach)


def test_one_setting_for_all_is_least_behind_where_it_is_most() -> None:
    """The first is best on average, the second on the worst class; classes count, not problems."""
    measure = Yardstick(np.zeros(4, int), np.zeros(4), np.full(4, 100.0))
    training = {"a": np.array([[0.0, 30.0], [0.0, 30.0], [0.0, 30.0], [60.0, 40.0]])}
    assert fixed_settings(training, measure, ["A", "A", "A", "B"]) == {"a": 1}
    # In one class the first has a mean of 15, the second 32.5.
    assert fixed_settings(training, measure, ["A", "A", "A", "A"]) == {"a": 0}


def test_the_worst_class_of_each() -> None:
    """Means 0.1 and 0.3, against 0.2 and 0.2: the second is the more robust. No noise."""
    values = np.array([[[0.1, 0.3], [0.2, 0.2]]])[..., None] + np.array([-0.01, 0, 0.01])
    dims = ("form", "learner", "class", "run")
    coords = {"form": ["fixed"], "learner": ["a", "b"], "class": ["A", "B"]}
    found = robustness(xr.DataArray(values, coords, dims))
    np.testing.assert_allclose(found["worst"], [[0.3, 0.2]])
    assert found["worst_class"].values.tolist() == [["B", "A"]]
    reach = stats.t.ppf(1 - 0.025 / 2, 2) * 0.01 / np.sqrt(3)
    np.testing.assert_allclose(found["worst_high"] - found["worst"], reach)
    np.testing.assert_allclose(found["worst"] - found["worst_low"], reach)
    assert found["may_be_robust"].values.tolist() == [[False, True]]


def test_the_tests_are_students() -> None:
    values = np.random.default_rng(0).normal([[0.0], [0.3], [0.0]], 1, (3, 20))
    found = larger(values)
    for i in range(3):
        for j in set(range(3)) - {i}:
            expected = stats.ttest_rel(values[i], values[j], alternative="greater").pvalue
            assert found[i, j] == pytest.approx(expected)
    same = np.stack([values[0], values[0], values[0] + 1])
    assert larger(same)[0, 1] == pytest.approx(0.5)  # no difference at all
    assert larger(same)[2, 0] == 0  # one that never varies
    assert larger(same)[0, 2] == 1


TRIES = 400


def test_the_most_robust_is_seldom_ruled_out_and_others_are() -> None:
    """Two equals, and one that is worse in one class: one of the equals is ruled out
    with a probability of at most 5 %. More than 38 of 400 have one of 1e-4 then; the other one is
    ruled out always (by 1.5 in 50 runs, z = 7.5, where 3 will do).
    """
    generator = np.random.default_rng(1)
    wrong = 0
    for _ in range(TRIES):
        values = generator.normal(0, 1, (3, 4, 50))
        values[:, 3] += 1  # the worst class of all, but for that of the last learner
        values[2, 2] += 2.5
        may = most_robust(values)
        wrong += not may[:2].all()
        assert not may[2]
    assert wrong <= stats.binom.isf(1e-4, TRIES, 0.05)


def test_the_interval_of_the_worst_class_covers_it() -> None:
    """With 95 % at least: fewer than 361 of 400 have a probability of 1e-4 then."""
    generator = np.random.default_rng(2)
    truth = np.array([0.0, 0.1, 0.3, 0.31])
    dims = ("form", "learner", "class", "run")
    values = generator.normal(truth[:, None], 0.5, (1, TRIES, 4, 40))
    found = robustness(xr.DataArray(values, dims=dims, coords={
        "form": ["f"], "learner": np.arange(TRIES), "class": list("ABCD")}))  # fmt: skip
    inside = (found["worst_low"] <= 0.31) & (found["worst_high"] >= 0.31)
    assert inside.sum() >= stats.binom.ppf(1e-4, TRIES, 0.95)
    assert (found["worst_high"] - found["worst_low"]).mean() < 0.5


# --- played

PLAIN = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(10))
HARD = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(40))
TURNING = jb.make_environment("paper-adversarial", delays=jb.FixedDelay(10))
OWN = {"stays": {"short": PLAIN, "long": HARD}, "turns": {"only": TURNING}}
FEW = {
    "UCB1": PRACTICAL["UCB1"],
    "Thompson sampling": PRACTICAL["Thompson sampling"],
    "MetaBIO-mean": Practical("metabio-mean", {}, {"scale": (1.0, 3.0)}),
    "my own": jb.HindsightTsallis(),
}
SMALL: dict[str, Any] = {"horizon": 300, "runs": 16, "training": 8, "progress": False, "seed": 3}


@pytest.fixture(scope="module")
def played() -> xr.Dataset:
    return contest(OWN, FEW, **SMALL)


def mean_of(env: Any, learner: Any) -> float:
    """In the worlds of training."""
    result = jb.simulate(env, learner, horizon=300, runs=8, seed=training_seed(3, 0), rounds=1,
                         progress=False)  # fmt: skip
    return float(result.final_regret.mean())


def test_the_table_by_hand(played: xr.Dataset) -> None:
    """From `simulate` in the worlds of training, and final_regret: in plain NumPy, cell by cell."""
    known = {label: one if isinstance(one, Practical) else alone(label, one)
             for label, one in FEW.items()}  # fmt: skip
    games = [("stays", PLAIN), ("stays", HARD), ("turns", TURNING)]
    trained = [
        {label: [mean_of(env, one.made(own)) for own in one.settings]
         for label, one in known.items()}
        for _, env in games
    ]  # fmt: skip
    uniform = guessing()[UNIFORM].made({})
    finals = played.final_regret
    shares: dict[tuple[str, str], list[np.ndarray]] = {}
    for number, (cls, env) in enumerate(games):
        best = min(known, key=lambda label: min(trained[number][label]))
        least = min(trained[number][best])
        scale = mean_of(env, uniform) - min(least, 0.0)
        assert str(played.best[number].values) == best
        assert played.scale[number].item() == pytest.approx(scale)
        reference = finals.sel(form="tuned", learner=best).isel(problem=number)
        for label, one in known.items():
            chosen = one.settings[int(np.argmin(trained[number][label]))]
            said = played.setting.sel(form="tuned", learner=label).isel(problem=number).item()
            assert said == one.written(chosen)
            assert "lambda" not in said, "a learner without settings is called by its label"
            own = finals.sel(form="tuned", learner=label).isel(problem=number)
            again = jb.simulate(env, one.made(chosen), horizon=300, runs=16, seed=3, rounds=1,
                                progress=False)  # fmt: skip
            np.testing.assert_array_equal(own, again.final_regret)
            shares.setdefault((cls, label), []).append((own.values - reference.values) / scale)
    for (cls, label), parts in shares.items():
        runs = np.mean(parts, axis=0)
        cell = played.sel({"class": cls, "learner": label, "form": "tuned"})
        reach = stats.t.ppf(0.975, 15) * runs.std(ddof=1) / 4
        assert cell.behind.item() == pytest.approx(runs.mean(), abs=1e-12)
        assert cell.behind_low.item() == pytest.approx(runs.mean() - reach, abs=1e-12)
        assert cell.behind_high.item() == pytest.approx(runs.mean() + reach, abs=1e-12)
    worst = played.behind.max("class")
    np.testing.assert_allclose(played.worst, worst)


def test_forms_and_their_settings(played: xr.Dataset) -> None:
    assert played.form.values.tolist() == list(FORMS)
    words = played.setting.sel(form="theorem", learner="MetaBIO-mean").values
    assert set(words.tolist()) == {"metabio-mean"}
    for label in FEW:
        fixed = played.setting.sel(form="fixed", learner=label).values.tolist()
        assert len(set(fixed)) == 1
        for number, said in enumerate(fixed):
            for form in ("theorem", "tuned"):
                own = played.sel(form=form, learner=label).isel(problem=number)
                same = said == str(own.setting.values)
                other = played.final_regret.sel(form="fixed", learner=label).isel(problem=number)
                assert same == np.array_equal(own.final_regret, other)


def test_what_states_save_is_between_those_that_the_training_chose(played: xr.Dataset) -> None:
    looks = played.looks_at_states.sel(learner=list(FEW)).values.tolist()
    assert looks == [False, False, True, True]
    for form in FORMS:
        for cls in ("stays", "turns"):
            own = played.sel({"form": form, "class": cls})
            with_states, without = str(own.with_states.values), str(own.without.values)
            assert with_states in ("MetaBIO-mean", "my own")
            assert without in ("UCB1", "Thompson sampling")
            both = [own.behind.sel(learner=label).item() for label in (without, with_states)]
            assert own.saved.item() == pytest.approx(both[0] - both[1])
            assert own.saved_low < own.saved < own.saved_high


def test_surely_worse_is_what_compare_says(played: xr.Dataset) -> None:
    """At a level of 5 % for all classes together, which is stricter than for each: who is surely
    worse here is so there too; the least mean may always be the best.
    """
    for form in FORMS:
        for cls in ("stays", "turns"):
            own = played.sel({"form": form, "class": cls})
            assert own.may_be_best.sel(learner=str(own.behind.idxmin().values))
            where = played.of == cls
            finals = played.final_regret.sel(form=form).isel(problem=where.values)
            runs = (finals / played.scale.isel(problem=where.values)).mean("problem")
            alone = jb.compare({name: runs.sel(learner=name).values for name in FEW}, resamples=1)
            sure = {str(n) for n in own.learner.values if not own.may_be_best.sel(learner=n)}
            assert sure <= set(FEW) - set(alone.contenders)
    assert not played.may_be_best.all()


def test_an_interrupted_contest_goes_on(
    played: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted when it has tuned, it plays the rest; and the third time nothing."""
    study = importlib.import_module("jaxbio.studies.contest.study")
    execute = importlib.import_module("jaxbio.sweeps.execute")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(study, "judge", interrupted)
        with pytest.raises(KeyboardInterrupt):
            contest(OWN, FEW, **SMALL, store=tmp_path)
    trained = {path.parent for path in tmp_path.glob("*/training-*/blocks")}
    assert {path.parent.name for path in trained} == {"stays", "turns"}
    with monkeypatch.context() as patched:
        patched.setattr(study, "train_all", lambda *a, **k: _without_play(patched, execute, a, k))
        xr.testing.assert_identical(contest(OWN, FEW, **SMALL, store=tmp_path), played)
    monkeypatch.setattr(execute, "play_block", None)
    xr.testing.assert_identical(contest(OWN, FEW, **SMALL, store=tmp_path), played)


def _without_play(patched: Any, execute: Any, given: Any, named: Any) -> Any:
    """The training, where whatever is not finished raises."""

    play = execute.play_block
    patched.setattr(execute, "play_block", None)
    try:
        return train_all(*given, **named)
    finally:
        patched.setattr(execute, "play_block", play)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": "huge"}, "size must be one of 'full', 'small', but got 'huge'"),
        ({"classes": ["odd"]}, "classes must be one of 'stochastic', .* but got 'odd'"),
        ({"classes": "random"}, "classes must be a list of names, but got 'random'"),
        ({"classes": ["random"] * 2}, "classes must be one or more different names"),
        ({"classes": []}, "classes must be one or more different names"),
        ({"classes": {}}, "classes must have at least one, but it is empty"),
        ({"classes": {"a": {}}}, r"classes\['a'\] must have at least one problem"),
        ({"classes": {"a": [PLAIN]}}, r"classes\['a'\] must map labels to environments"),
        ({"classes": {"a": {"b": 3}}}, "env must be an Environment, but got 3"),
        ({"horizon": 500}, "horizon must be at least 1,000 for these classes, but got 500"),
        ({"horizon": 2**29}, "tables of 536,870,912 rounds"),
        ({"runs": 1}, "runs must be at least 2, but got 1"),
        ({"training": 0}, "training must be at least 1, but got 0"),
        ({"entrants": ["odd", "UCB1"]}, "entrants must be one of 'DAda-Exp3', .* but got 'odd'"),
        ({"entrants": ["UCB1"]}, "entrants must be two or more"),
        ({"entrants": ["UCB1", "UCB1"]}, "entrants must be different"),
        ({"entrants": {"a": 3, "b": jb.UCB1()}}, r"entrants\['a'\] must be a learner"),
        ({"entrants": {UNIFORM: jb.UCB1()}}, "entrants cannot have one called 'uniform play'"),
        ({"entrants": {"a": Practical("odd", {}, {})}}, "learner name must be one of"),
        ({"entrants": {"a": Practical("ucb1", {}, {"exploration": ()})}}, "must have a value"),
        ({"progress": 3}, "progress must be True or False"),
        ({"store": 3}, "store must be the path of a folder, but got 3"),
    ],
)
def test_bad_input_is_refused_before_anything_is_played(
    given: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("jaxbio.sweeps.execute"), "play_block", None)
    with pytest.raises((TypeError, ValueError), match=message):
        contest(**{"progress": False, **given})


# --- printed


def test_what_is_printed(played: xr.Dataset) -> None:
    found = {"files": ["a.nc"], "forms": summary(played)}
    json.dumps(found)
    own = found["forms"]["tuned"]["classes"]["stays"]["UCB1"]
    cell = played.sel({"form": "tuned", "class": "stays", "learner": "UCB1"})
    assert own["behind"] == [cell[n].item() for n in ("behind", "behind_low", "behind_high")]
    text = as_text(found)
    order = list(found["forms"]["fixed"]["worst"])
    values = [found["forms"]["fixed"]["worst"][name]["worst"][0] for name in order]
    assert values == sorted(values)
    assert f"If nothing is known: {found['forms']['fixed']['worst'][order[0]]['settings'][0]}." in (
        text
    )
    table = text.split("Every learner with one setting for all problems\n")[1].splitlines()
    assert [line[:24].strip() for line in table[1:5]] == order
    assert percent(cell.behind.item()) in text


def test_percent() -> None:
    assert [percent(x) for x in (0.0, -0.0001, 0.0123, 0.0996, 0.5, 1.234, -0.02)] == [
        "0.0", "0.0", "1.2", "10", "50", "123", "-2.0"
    ]  # fmt: skip


def test_the_command(
    played: xr.Dataset,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It hands on its options, names files by them, and says what it found."""
    command = importlib.import_module("jaxbio.studies.contest.command")
    asked: dict[str, Any] = {}

    @functools.wraps(contest)
    def play(**given: Any) -> xr.Dataset:
        asked.update(given)
        return played

    monkeypatch.setattr(command, "contest", play)
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    monkeypatch.setattr(outputs, "number_of_workers", lambda: 1)
    words = ["contest", "--classes", "random", "--runs", "9", "--quiet", "--json"]
    assert cli.main([*words, "--folder", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert asked["classes"] == ["random"]
    assert (asked["runs"], asked["training"], asked["size"]) == (9, None, "full")
    assert asked["store"] == tmp_path / "store" / "full_random_runs=9_seed=0"
    assert asked["client"] is None
    assert f"{tmp_path / 'full_random_runs=9_seed=0'}.nc" in found["files"]
    shown = [file for file in found["files"] if file.endswith("-light.png")]
    assert [Path(file).name.split("-")[1] for file in shown] == list(FORMS)
    assert all(Path(file).exists() for file in found["files"])
    with xr.open_dataset(found["files"][0], engine="scipy") as data:
        np.testing.assert_array_equal(data.final_regret, played.final_regret)
        assert data.attrs["training"] == 8
