"""The studies as commands: what they print and leave, and that an interrupt loses nothing."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import jaxbio as jb
from jaxbio.cli import main as cli
from jaxbio.storage.store import Store
from jaxbio.studies import adversaries, outputs, specs
from jaxbio.studies.advise.advice import Advice
from jaxbio.studies.advise.text import as_text
from jaxbio.studies.advise.tournament import Outcome, Worth
from jaxbio.studies.beyond import command as beyond
from jaxbio.studies.phase import command as phase
from jaxbio.studies.regimes import command as regimes
from jaxbio.studies.regimes import study as lab_regimes
from jaxbio.studies.regimes.study import DIFFERENCES

lab_phase = importlib.import_module("jaxbio.studies.phase.study")
FAMILY = """
import jaxbio as jb

def family(actions, states, delays):
    delays = jb.GeometricDelay(delays.d)
    return jb.make_environment("paper-utility", actions=actions, states=states, delays=delays)
"""


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A small grid, few learners, one process for the figures, a folder for what is written."""
    few = {"DAda-Exp3": jb.DAdaExp3(), "UCB1": jb.UCB1()}
    monkeypatch.setattr(lab_phase, "wrappers", lambda: {"MetaBIO": jb.MetaBIO(jb.UCB1())})
    monkeypatch.setattr(lab_regimes, "contestants", lambda: few)
    monkeypatch.setattr(lab_regimes, "robust", lambda: few)
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    monkeypatch.setattr(outputs, "number_of_workers", lambda: 1)
    monkeypatch.setitem(phase.GRIDS, "small", ([2, 9], [2, 8]))
    monkeypatch.chdir(tmp_path)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert cli.main([*words, "--quiet", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


PHASE = ("phase", "--runs", "8", "--horizon", "60", "--actions", "3")


def test_phase_goes_on_where_it_was_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The two numbers of states are two parts; the second one is interrupted."""
    sweep, played = lab_phase.sweep, []

    def interrupted(*args: Any, **options: Any) -> Any:
        if played:
            interrupt = KeyboardInterrupt()
            interrupt.add_note("finished blocks are kept")
            raise interrupt
        played.append(options["store"])
        return sweep(*args, **options)

    monkeypatch.setattr(lab_phase, "sweep", interrupted)
    assert cli.main([*PHASE, "--quiet", "--folder", "there"]) == 130
    assert "resume with: jaxbio phase --runs 8" in capsys.readouterr().err
    kept = list(Path(played[0]).glob("blocks/*.npz"))
    times = [file.stat().st_mtime_ns for file in kept]
    assert kept
    monkeypatch.setattr(lab_phase, "sweep", sweep)
    found = printed(capsys, *PHASE, "--folder", "there")
    assert [file.stat().st_mtime_ns for file in kept] == times, "played again"
    whole = printed(capsys, *PHASE, "--folder", "elsewhere")
    assert found["ranges"] == whole["ranges"]
    assert {Path(file).suffix for file in found["files"]} == {".nc", ".png", ".pdf"}
    assert all(Path(file).exists() for file in found["files"])
    same, other = (xr.load_dataset(data["files"][0]) for data in (found, whole))
    xr.testing.assert_equal(same.final_regret, other.final_regret)


def test_phase_of_a_family_of_the_users(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("jaxbio.figures.saving.save_all", lambda *_: [{}])  # no pictures
    Path("my_problems.py").write_text(FAMILY)
    found = printed(capsys, *PHASE, "--family", "my_problems:family", "--folder", "f")
    usual = printed(capsys, *PHASE, "--folder", "f")
    same, other = (xr.load_dataset(data["files"][0]) for data in (found, usual))
    assert (same.final_regret != other.final_regret).any(), "the delays are other ones"
    for name, words in (
        ("my_problems", "must be utility, random or module:name"),
        ("nowhere:family", "No module named 'nowhere'"),
        ("my_problems:other", "has no 'other'"),
    ):
        assert cli.main([*PHASE, "--family", name]) == 2
        assert words in capsys.readouterr().err


def test_a_family_of_the_users_has_another_name_when_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else its finished parts would be those of another problem, and be refused."""
    names = []
    for text in (FAMILY, FAMILY + "# no change\n", FAMILY.replace("delays.d)", "delays.d + 1)")):
        Path("changing_family.py").write_text(text)
        names.append(specs.family_name("changing_family:family"))
        monkeypatch.delitem(sys.modules, "changing_family")
        importlib.invalidate_caches()
    assert names[0] == names[1] != names[2]
    assert all(name.startswith("changing_family-family-") for name in names)
    asked: Any = cli.parser().parse_args([*PHASE, "--family", "changing_family:family"])
    assert names[2] in phase._name(asked)
    assert specs.family_name("random") == "random"


def test_an_interrupt_between_two_parts_tells_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(lab_phase, "ratios", interrupted)
    assert cli.main([*PHASE, "--quiet", "--folder", "there"]) == 130
    said = capsys.readouterr().err
    assert "finished parts are in there; resume with: jaxbio phase --runs 8" in said


def test_phase_of_random_problems_and_of_several_sizes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = []
    monkeypatch.setattr(
        "jaxbio.figures.saving.save_all", lambda drawings, *_: made.append(drawings) or [{}]
    )
    words = ("phase", "--runs", "4", "--horizon", "60", "80", "--actions", "3", "--folder", "f")
    found = printed(capsys, *words, "--family", "random")
    assert [one.name for drawings in made for one in drawings] == ["phase-MetaBIO"]
    (data,) = (xr.load_dataset(file) for file in found["files"])
    assert data.attrs["problems"] == 8
    assert {row["horizon"] for row in found["ranges"]} == {60, 80}
    assert {"helps", "surely", "perhaps"} <= set(found["ranges"][0])


REGIMES = ("regimes", "--runs", "4", "--horizon", "200", "--delay", "9", "--delays", "5", "20")


def test_regimes(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, *REGIMES, "--folder", "r")
    rounds, delays = (
        xr.load_dataset(file) for file in found["files"] if file.endswith(".nc")
    )  # fmt: skip
    assert rounds.sizes["regime"] == delays.sizes["regime"] == 4
    name = "adversarial mapping, adversarial losses"
    final = rounds.final_regret.sel(regime=name, learner="UCB1")
    assert found["regret"][name]["UCB1"]["mean"] == pytest.approx(float(final.mean()))
    mean = delays.regret_mean.sel(regime=name, learner="UCB1", delay=20)
    assert found["by delay"][name]["UCB1"]["20"][0] == pytest.approx(float(mean))
    text = regimes.as_text(found)
    assert f"{float(mean):,.1f} ±" in text
    own = delays.sel(regime=name, learner="UCB1", delay=20)
    difference = [float(own[part]) for part in DIFFERENCES]
    assert found["differences"][name]["UCB1"]["20"] == pytest.approx(difference)
    alone = float(delays.regret_mean.sel(regime=name, learner="DAda-Exp3", delay=20))
    low, high = (f"{100 * end / alone:+.1f}" for end in difference[1:])
    assert found["reference"] == "DAda-Exp3"
    assert f"{difference[0]:,.1f} ±" in text
    assert f"{low} to {high}\n" in text
    found["by delay"][name]["DAda-Exp3"]["20"][0] = 0.0
    assert regimes.as_text(found).endswith("\n".join(["-", "", *found["files"]]))  # of nothing
    assert sum("delays-light.png" in file for file in found["files"]) == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [("--runs", "1"), ("--delays", "0"), ("--delays", "200"), ("--delay", "200")],
)
def test_regimes_refuses_before_anything_is_played(
    option: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*_: Any, **__: Any) -> None:
        pytest.fail("played")

    monkeypatch.setattr(lab_regimes, "sweep", never)
    monkeypatch.setattr(adversaries, "sweep", never)
    assert cli.main([*REGIMES, option, value, "--quiet"]) == 2
    assert f"{option[2:]} must be" in capsys.readouterr().err


def test_studies_with_other_options_do_not_meet(capsys: pytest.CaptureFixture[str]) -> None:
    one = printed(capsys, *REGIMES, "--folder", "r")
    other = printed(capsys, *REGIMES, "--seed", "1", "--folder", "r")
    assert not set(one["files"]) & set(other["files"])
    assert one["regret"] != other["regret"]
    assert printed(capsys, *REGIMES, "--folder", "r") == one


def test_names_of_files() -> None:
    assert outputs.named([1, 2], None, "a:b/c", 0.5) == "1-2_a-b-c_0.5"
    assert outputs.named([1, 2], 3) != outputs.named([1], [2, 3])
    many = outputs.named(list(range(200)), 7)
    assert len(many) < 120
    assert many != outputs.named(list(range(200)), 8)


def test_beyond(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("beyond", "--runs", "4", "--horizon", "200", "--delay", "5", "--folder", "b")
    found = printed(capsys, *words, "--changes", "1", "--memories", "0.4", "0.7")
    changes, unknowns = (
        xr.load_dataset(file) for file in found["files"] if file.endswith(".nc")
    )  # fmt: skip
    dynamic = changes.dynamic_regret.sel(changes=1).mean("run")
    for name in ("MetaBIO, restarting", "NSD-UCRL2, window"):
        own = dynamic.sel(learner=name)
        rows = found["dynamic regret by memory in phases, changes: 1"][name]
        assert [rows[memory]["mean"] for memory in ("0.4", "0.7")] == pytest.approx(own, abs=0.06)
        best = found["dynamic regret by changes"][name]["1"]
        assert best["mean"] == pytest.approx(float(own.min()), abs=0.06)
        assert best["low"] < best["mean"] < best["high"]
    games = [changes.dynamic_regret.sel(learner=name).values for name in changes.learner.values]
    assert all((one != other).any() for one, other in itertools.combinations(games, 2))
    assert unknowns.learner.values.tolist() == list(found["regret by allowed states / states"])
    assert found["uniform play"] == pytest.approx(0.75 * 0.28 * 200)
    text = beyond.as_text(found)
    assert f"{best['mean']:,.1f} ± {best['high'] - best['mean']:>4.1f}" in text


def test_tune_keeps_its_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a --store: interrupted after a step, the same command goes on."""
    words = ["tune", "paper-utility", "ucb1", "--param", "exploration=2", "--delay", "9"]
    words += ["--runs", "8", "--horizon", "60", "--steps", "2", "--held-out", "8"]
    save = Store.save

    def interrupted(store: Store, *block: Any) -> None:
        save(store, *block)
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "save", interrupted)
    assert cli.main([*words, "--quiet"]) == 130
    assert "resume with: jaxbio tune" in capsys.readouterr().err
    (step,) = Path("results/tune/store").glob("*/blocks/*.npz")
    time = step.stat().st_mtime_ns
    monkeypatch.setattr(Store, "save", save)
    printed(capsys, *words)
    assert step.stat().st_mtime_ns == time, "played again"
    assert len(list(step.parent.glob("*.npz"))) == 3  # two steps and the held-out runs


def test_advice_is_kept_without_being_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second wave is interrupted; the same command then goes on, and others keep apart."""
    hall = importlib.import_module("jaxbio.studies.advise.hall")
    sweep, stores = hall.sweep, []

    def interrupted(*args: Any, **options: Any) -> Any:
        stores.append(options["store"])
        if len(stores) == 2:
            interrupt = KeyboardInterrupt()
            interrupt.add_note("finished blocks are kept")
            raise interrupt
        return sweep(*args, **options)

    words = ["advise", "--actions", "2", "--states", "2", "--horizon", "60", "--delay", "5"]
    words += ["--learners", "ucb1", "ucb1:exploration=2.0", "--quiet"]
    monkeypatch.setattr(hall, "sweep", interrupted)
    assert cli.main(words) == 130
    assert "resume with: jaxbio advise" in capsys.readouterr().err
    kept = list(Path(stores[0]).glob("blocks/*.npz"))
    times = [file.stat().st_mtime_ns for file in kept]
    assert kept
    assert Path("results/advise/store") in Path(stores[0]).parents
    monkeypatch.setattr("jaxbio.studies.advise.tournament.fits", lambda *_: False)  # one look
    assert cli.main(words) == 0
    assert stores[2] == stores[0]
    assert [file.stat().st_mtime_ns for file in kept] == times, "played again"
    assert cli.main([*words, "--seed", "1"]) == 0
    assert stores[-1] != stores[0]


def test_advice(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("jaxbio.studies.advise.tournament.fits", lambda *_: False)  # one look
    words = ["advise", "--actions", "2", "--states", "2", "--horizon", "200", "--delay", "5"]
    words += ["--figure", "advice.svg", "--learners", "ucb1", "metabio"]
    found = printed(capsys, *words, "dada-exp3")
    assert found["runs"] == 32
    assert found["best with a guarantee"] in ("metabio", "dada-exp3")
    for kind in ("stationary mapping", "changing mapping"):
        one = found[kind]
        names = [row["name"] for row in one["rows"]] + [row["name"] for row in one["left early"]]
        assert sorted(names) == ["dada-exp3", "metabio", "ucb1"]
        assert one["worth of states"]["with_states"] == "metabio"
        assert one["uniform play"] == pytest.approx(0.5 * 200 * 0.32, rel=0.05)
    assert Path("advice.svg").read_text().startswith("<?xml")


def test_advice_on_a_problem_of_the_users_assumes_nothing_about_it() -> None:
    compared = jb.compare({"a": [1.0, 2.0, 3.0], "b": [5.0, 6.0, 8.0]})
    worth = Worth("a", "b", 0.3, 0.2, 1.4, 3, True)
    found = Advice(Outcome(compared, (), worth, 6.5), None, "b", 3, 1.0)
    usual, own = as_text(found, "random"), as_text(found, "mine:problem")
    assert usual.startswith("If the mapping never changes: run a.\n")
    assert own.startswith("On this problem: run a.\n")
    assert "never changes" not in own
    assert "; playing at random has 6.5." in own
    assert "No better than playing at random, or hardly: b." in own
    open_ = "with them regret is 0.20 to 1.40 times what it is without (a against b)."
    assert f"It is open whether states help: {open_}" in own
    assert (
        "Of the learners whose regret is bounded whatever the mapping does, b had the least" in own
    )
    assert "worse ways" not in own
