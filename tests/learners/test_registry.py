"""Learners by name: classes inside each other, each with its share of delta."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import jaxbio as jb
from jaxbio.cli import main as cli
from jaxbio.cli.listing import everything
from jaxbio.environment.instances import ENVIRONMENTS
from jaxbio.learners import registry
from jaxbio.learners.registry import LEARNERS, pairing

DELTA = 0.12


def built(name: str, **options: Any) -> Any:
    return jb.make_learner(name, **options)


@pytest.mark.parametrize(
    ("name", "share"),
    [("metabio", 2), ("metabio-skipping", 2), ("surrogate-exp3", 2), ("metaadabio", 3)],
)
def test_the_base_has_its_share_of_delta(name: str, share: int) -> None:
    made = built(name, delta=DELTA)
    assert (made.delta, made.base.delta) == (DELTA, DELTA / share)
    usual = built(name)
    assert (usual.delta, usual.base.delta) == (0.1, 0.1 / share)


def test_after_a_fresh_switch_the_base_has_another_share() -> None:
    made = built("metaadabio", delta=DELTA, at_switch="fresh", scale=2.0)
    assert made.after.delta == DELTA / 4
    assert dataclasses.replace(made.after, delta=DELTA / 3).__dict__ == made.base.__dict__
    assert built("metaadabio", at_switch="all").after is None
    assert built("metaadabio-tsallis", at_switch="fresh").after is None


def test_a_surrogate_index_waits_for_nothing() -> None:
    """And is fed with plain means, whatever the law of the delays."""
    made = built("surrogate-exp3")
    assert (made.threshold, made.delay, made.estimator) == ("delay", 0, "mean")
    env = jb.make_environment("paper-stochastic", delays=jb.LaplaceDelay(20, 5))
    info = jb.simulate(env, made, horizon=100, runs=3, progress=False).info
    assert info["rounds_fed"].tolist() == [100] * 3
    assert info["waiting_rounds"].tolist() == [0] * 3


def test_three_classes_inside_each_other() -> None:
    made = built("metabio-restarting", period=7, delta=DELTA, tuning="anytime")
    assert isinstance(made, jb.MetaBIO)
    assert isinstance(made.base, jb.Restarting)
    assert (made.base.period, made.base.base.delta, made.base.base.tuning) == (7, 0.06, "anytime")


@pytest.mark.parametrize("name", LEARNERS)
def test_options_are_the_fields_of_the_classes(name: str) -> None:
    """All of them, with the defaults that are used, and none of two classes but delta."""
    made, fields = built(name), []
    options = inspect.signature(LEARNERS[name]).parameters
    while made is not None:
        own = {field.name for field in dataclasses.fields(made)} - {"base", "after"}
        fields += sorted(own)
        for option in own & options.keys() - {"delta"}:
            assert getattr(made, option) == options[option].default
        made = getattr(made, "base", None)
    fixed = {"threshold", "delay"} if name.startswith("surrogate") else set()
    fixed |= {"skipping"} if name.endswith("skipping") else set()
    assert set(fields) - fixed == options.keys()
    assert [field for field in fields if fields.count(field) > 1] in ([], ["delta", "delta"])


def test_what_is_fixed_is_no_option() -> None:
    build = pairing("Always.", {jb.DAdaExp3: 1}, fixed={"skipping": True}, scale=3.0)
    assert (build().skipping, build().scale, build(scale=2.0).scale) == (True, 3.0, 2.0)
    assert build.__doc__ == "Always."
    assert "skipping" not in inspect.signature(build).parameters


# --- names that are added


@pytest.fixture
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of names are those of jaxbio again, whatever a test adds."""
    monkeypatch.setattr(registry, "LEARNERS", dict(LEARNERS))
    monkeypatch.setattr("jaxbio.environment.instances.ENVIRONMENTS", dict(ENVIRONMENTS))


def bold(exploration: float = 0.1) -> jb.UCB1:
    """UCB1 that explores little."""
    return jb.UCB1(exploration)


@pytest.mark.usefixtures("as_before")
def test_a_name_that_is_added_is_known_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    jb.register_learner("ucb1-bold", bold)
    jb.register_environment("two-actions", lambda delays=None: jb.make_environment(
        "paper-utility", actions=2, states=3, **({} if delays is None else {"delays": delays})
    ))  # fmt: skip
    assert jb.learner_names()[-1] == "ucb1-bold"
    assert jb.environment_names()[-1] == "two-actions"
    assert built("UCB1-Bold").exploration == 0.1
    assert built("ucb1-bold", exploration=3).exploration == 3
    with pytest.raises(TypeError, match="'ucb1-bold' has no option 'explore'; it has exploration"):
        jb.make_learner("ucb1-bold", explore=3)
    assert cli.main(["list"]) == 0
    assert "UCB1 that explores little." in capsys.readouterr().out
    words = ["run", "two-actions", "ucb1-bold:exploration=2", "ucb1", "--delay", "3", "--json"]
    assert cli.main([*words, "--horizon", "50", "--runs", "3", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ucb1-bold:exploration=2"] == found["ucb1"]


@pytest.mark.usefixtures("as_before")
def test_names_that_cannot_be_added() -> None:
    jb.register_learner("mine", bold)
    cases: list[tuple[str, Any, str]] = [
        ("ucb1", bold, "learner name 'ucb1' is one of jaxbio's own"),
        ("mine", bold, "learner name 'mine' is taken: choose another one, or say replace=True"),
        ("My Learner", bold, "learner name must be of small letters, digits and"),
        ("a:b", bold, "learner name must be of small letters, digits and"),
        ("other", jb.UCB1(), "make must be a class or a function, but got UCB1"),
    ]
    for name, make, message in cases:
        with pytest.raises((ValueError, TypeError), match=re.escape(message)):
            jb.register_learner(name, make)
    with pytest.raises(ValueError, match="'ucb1' is one of jaxbio's own"):
        jb.register_learner("ucb1", bold, replace=True)
    jb.register_learner("mine", lambda: 5, replace=True)
    with pytest.raises(TypeError, match="what 'mine' makes must be a learner with init, act"):
        jb.make_learner("mine")
    jb.register_environment("wrong", lambda: 5)
    with pytest.raises(TypeError, match="what 'wrong' makes must be an Environment, but got 5"):
        jb.make_environment("wrong")


@pytest.mark.usefixtures("as_before")
def test_learners_of_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package is imported when its learner is asked for; one that is broken says so."""
    about = tmp_path / "plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[jaxbio.learners]\nplugged = plugin_of_a_test:Plugged\nbroken = nowhere_at_all:Learner\n"
    )
    (tmp_path / "plugin_of_a_test.py").write_text(
        "import jaxbio as jb\n\ndef Plugged(exploration=7):\n    return jb.UCB1(exploration)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._installed.cache_clear()
    try:
        assert {"plugged", "broken"} <= set(jb.learner_names())
        assert "plugin_of_a_test" not in sys.modules
        assert built("plugged").exploration == 7
        assert built("plugged", exploration=2).exploration == 2
        with pytest.raises(ValueError, match="learner 'broken': nowhere_at_all:Learner cannot be"):
            jb.make_learner("broken")
        assert "nowhere_at_all:Learner cannot be used" in everything()["learners"]["broken"]
    finally:
        monkeypatch.undo()
        registry._installed.cache_clear()
