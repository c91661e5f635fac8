"""`jaxbio doctor`: what it says about this machine, and that it sees what is wrong."""

from __future__ import annotations

import json
from typing import Any

import jax
import numpy as np
import pytest
from helpers import forget_programs

import jaxbio as jb
from jaxbio.cli import doctor
from jaxbio.cli import main as cli
from jaxbio.engine.backends import choice, native
from jaxbio.engine.flatten import CannotFlatten


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    monkeypatch.setattr(doctor, "TIMED", {"horizon": 100, "runs": 32})
    forget_programs(monkeypatch)


def told(capsys: pytest.CaptureFixture[str], *names: str) -> dict[str, Any]:
    assert cli.main(["doctor", *names, "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_learner_is_examined_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    one = {"backend": "llvm", "why": "w", "compile_seconds": 0.0, "rounds_per_second": 1.0}
    monkeypatch.setattr(doctor, "measure", lambda name: asked.append(name) or one)
    monkeypatch.setattr(doctor, "check", lambda: "ok")
    assert cli.main(["doctor", "--quiet"]) == 0
    assert tuple(asked) == jb.learner_names()


def test_what_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "ucb1", "exp3")
    assert found["packages"]["jax"] == jax.__version__
    assert len(found["devices"]) == len(jax.local_devices())
    assert found["self-check"] == "ok: 32 of 32 runs of metabio by llvm are those of vmap"
    assert list(found["learners"]) == ["ucb1", "exp3"]
    for one in found["learners"].values():
        assert (one["backend"], one["why"]) == ("llvm", "the fastest one on a CPU")
        assert one["rounds_per_second"] > 0
    text = doctor.as_text(found)
    for word in (jax.__version__, "devices: cpu", "self-check: ok", "rounds/s", "the fastest one"):
        assert word in text


def test_a_back_end_that_plays_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    play = native.Native.play

    def wrong(self: Any, numbers: Any, keys: Any, *rest: Any) -> Any:
        return play(self, numbers, np.roll(keys, 1, axis=1), *rest)

    monkeypatch.setattr(native.Native, "play", wrong)
    assert doctor.check().startswith("LOOK AT THIS: ")


def test_why_a_learner_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of the learner that the self-check has played before."""

    def refuses(*args: Any) -> Any:
        raise CannotFlatten("the primitive 'some_new_one'")

    monkeypatch.setattr(choice, "flattened", refuses)
    for said in (doctor.examine([doctor.CHECKED]), doctor.examine(["ucb1"])):
        (one,) = said["learners"].values()
        assert one["backend"] == "vmap"
        assert one["why"] == "jaxbio's compiler does not know the primitive 'some_new_one'"
