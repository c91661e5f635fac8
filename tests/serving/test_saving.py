"""An agent that was saved goes on bit for bit, and what is no agent is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from served import ACTIONS, HORIZON, LATE, STATES, agent, played

import jaxbio as jb

HALF = HORIZON // 2
LEARNERS = {
    "state-thompson": jb.make_learner("state-thompson"),
    "metabio-skipping": jb.make_learner("metabio-skipping"),
    "bold-exp3": jb.make_learner("bold-exp3"),
}


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize("name", LEARNERS)
def test_goes_on_bit_for_bit(name: str, suffix: str, tmp_path: Path) -> None:
    learner, due, file = LEARNERS[name], {}, tmp_path / f"agent{suffix}"
    one = agent(LATE, learner)
    before = played(one, LATE, last=HALF, due=due)
    one.save(file)
    assert due  # losses that come later
    other = jb.Agent.load(file, learner)
    after = played(one, LATE, HALF + 1, due={t: [*mine] for t, mine in due.items()})
    assert played(other, LATE, HALF + 1, due=due) == after
    assert before + after == played(agent(LATE, learner), LATE)
    assert other.to_dict() == one.to_dict()
    assert repr(other) == repr(one)


def busy() -> jb.Agent:
    """With decisions and losses at every point of their way."""
    one = jb.Agent(
        jb.DAdaExp3(), ACTIONS, STATES, 100, longest=20, concurrent=True, delay=7, seed=5, run=3
    )
    tickets = [one.select()[1] for _ in range(9)]
    one.observe(tickets[8], 0.125)  # of an open one
    for ticket in tickets[2:6]:
        one.see(ticket, "cart")
    one.observe(tickets[2], 0.3)  # of an older round
    one.observe(tickets[5], 0.7)  # of the round that has ended
    return one


def went_on(one: jb.Agent) -> list[Any]:
    """What it does from there."""
    found: list[Any] = [one.open, one.outstanding]
    for ticket in one.open:
        one.see(ticket, "bounced")
    found += [one.select() for _ in range(20)]
    for ticket in one.outstanding:
        one.observe(ticket, 0.9)
    one.see(one.open[0], "cart")
    return [*found, *(one.select() for _ in range(20)), one.to_dict()]


def test_everything_on_its_way_is_saved(tmp_path: Path) -> None:
    one = busy()
    one.save(tmp_path / "agent.npz")
    text = json.dumps(one.to_dict(), allow_nan=False)
    others = [
        jb.Agent.load(tmp_path / "agent.npz", jb.DAdaExp3()),
        jb.Agent.from_dict(json.loads(text), jb.DAdaExp3()),
    ]
    expected = went_on(one)
    assert all(went_on(other) == expected for other in others)


def test_one_that_was_saved_by_machine_code_goes_on_by_jax() -> None:
    one = busy()
    other = jb.Agent.from_dict(one.to_dict(), jb.DAdaExp3(), backend="jit")
    assert (other.backend, one.backend) == ("jit", "llvm")
    assert went_on(other)[:-1] == went_on(one)[:-1]


def test_numbers_that_json_does_not_have(tmp_path: Path) -> None:
    """A state may hold infinity; NaN shows in the facts, and what was saved keeps it too."""

    @jb.pytree
    class Endless:
        def init(self, known: jb.Known) -> Any:
            return {"least": jnp.float32(jnp.inf), "nan": jnp.float32(0)}

        def act(self, state: Any, t: Any, u: Any) -> Any:
            return jnp.int32(0), None

        def learn(self, state: Any, t: Any, play: Any, arrivals: Any) -> Any:
            return {"least": state["least"], "nan": state["nan"] + jnp.float32(jnp.nan)}, None

    one = jb.Agent(Endless(), ACTIONS, STATES, 10)
    assert one.facts() == {}
    one.see(one.select()[1], "cart")
    one.select()
    one.save(tmp_path / "agent.json")
    for found in (one, jb.Agent.load(tmp_path / "agent.json", Endless())):
        with pytest.raises(RuntimeError, match="the learner's state holds NaN"):
            found.facts()


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (jb.DAdaExp3(delta=0.2), r"must be the one that was saved, but learner.delta is 0.2.*0.1"),
        (jb.DAdaExp3(tuning="anytime"), "learner.tuning is 'anytime' and was 'corrected'"),
        (jb.TsallisINF(), "learner is 'TsallisINF' and was 'DAdaExp3'"),
        (jb.DAdaExp3(skipping=True), "learner.skipping is True and was False"),
    ],
)
def test_another_learner_is_refused(learner: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jb.Agent.from_dict(busy().to_dict(), learner)


def greedy(bonus: float) -> Any:
    """A learner of the user's, whose code may change."""

    @jb.pytree
    class Greedy:
        scale: Any = 1.0

        def init(self, known: jb.Known) -> Any:
            return jnp.zeros(known.num_actions)

        def act(self, state: Any, t: Any, u: Any) -> Any:
            return jnp.argmin(state - bonus * u).astype(jnp.int32), None

        def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
            mine = arrivals.play.action[:, None] == jnp.arange(state.shape[0])
            return state + jnp.sum(jnp.where(mine, arrivals.play.loss[:, None], 0.0), axis=0), None

    return Greedy()


def test_other_code_is_worth_a_warning() -> None:
    saved = jb.Agent(greedy(0.5), ACTIONS, STATES, 10).to_dict()
    jb.Agent.from_dict(saved, greedy(0.5))
    with pytest.warns(RuntimeWarning, match=r"the code of learner \(.*Greedy.*is not what it was"):
        jb.Agent.from_dict(saved, greedy(0.25))


def test_what_is_no_agent_is_refused(tmp_path: Path) -> None:
    one = busy()
    learner, saved = jb.DAdaExp3(), one.to_dict()
    for path in ("agent.pkl", "agent"):
        with pytest.raises(ValueError, match=r"path must end in .npz or .json, but got 'agent"):
            one.save(path)
    with pytest.raises(TypeError, match="path must be a path, but got 3"):
        jb.Agent.load(3, learner)
    with pytest.raises(FileNotFoundError):
        jb.Agent.load(tmp_path / "none.json", learner)
    for name, content in [
        ("a.npz", b"no zip"),
        ("b.json", b"{"),
        ("c.json", b"{}"),
        ("d.npz", b""),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"{name} is not an agent that was saved"):
            jb.Agent.load(tmp_path / name, learner)
    np.savez(tmp_path / "e.npz", x=np.array([{}], object))
    with pytest.raises(ValueError, match=r"e.npz is not an agent that was saved"):
        jb.Agent.load(tmp_path / "e.npz", learner)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"format": "other"}, "does not say that it is one"),
        ({"version": 2}, "it has version 2 of the format, but this jaxbio"),
        ({"arrays": {}}, "it lacks arrived, arrived_rounds, ended, open"),
        ({"arrays": {"open": 3}}, "the arrays of a saved agent cannot be read"),
        ({"settings": {}}, "settings must have actions, states, horizon"),
        ({"settings": saved["settings"] | {"horizon": 0}}, "horizon must be"),
    ]
    for changed, message in wrong:
        with pytest.raises(ValueError, match=message):
            jb.Agent.from_dict(saved | changed, learner)
    with pytest.raises(TypeError, match="saved must map names to values"):
        jb.Agent.from_dict([], learner)
    with pytest.raises(TypeError, match="an Agent is not pickled: use save"):
        pickle.dumps(one)


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = busy()
    file = tmp_path / "agent.npz"
    one.save(file)
    before = file.read_bytes()
    one.see(one.select()[1], "cart")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        one.save(file)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
