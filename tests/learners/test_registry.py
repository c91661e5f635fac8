"""Learners by name: classes inside each other, each with its share of delta."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

import jaxbio as jb
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
