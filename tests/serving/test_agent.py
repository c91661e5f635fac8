"""An agent outside of simulation decides as its learner does in it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import float_bits
from served import COSTS, ENV, HORIZON, LATE, RUN, SEED, STATES, agent, played, rounds

import jaxbio as jb


@jb.pytree
class EpsilonGreedy:
    """A user's learner: its state is a dict, it wants two uniforms, and cares about empty lanes."""

    epsilon: Any = 0.2
    draws = 2

    def init(self, known: jb.Known) -> Any:
        return {"count": jnp.zeros(known.num_actions), "sum": jnp.zeros(known.num_actions)}

    def act(self, state: Any, t: Any, u: Any) -> Any:
        greedy = jnp.argmin(state["sum"] / jnp.maximum(state["count"], 1.0)).astype(jnp.int32)
        other = jnp.floor(u[1] * state["sum"].shape[0]).astype(jnp.int32)
        action = jnp.where(u[0] < self.epsilon, other, greedy)
        return action, {"count": state["count"][action], "odd": t % 2 == 1}

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        action, due = arrivals.play.action, arrivals.due
        count = state["count"].at[action].add(jnp.where(due, 1.0, 0.0))
        return {"count": count, "sum": state["sum"].at[action].add(arrivals.play.loss)}, play.ticket


@jb.pytree
class Waving(EpsilonGreedy):
    """The same with an operation that jaxbio's own compiler does not know."""

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return super().act(state, t, jnp.sin(jnp.arcsin(u)))


@jb.pytree
class Rolling(EpsilonGreedy):
    """The same where it learns."""

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        loss = jnp.sin(jnp.arcsin(arrivals.play.loss))
        return super().learn(
            state, t, play, arrivals._replace(play=arrivals.play._replace(loss=loss))
        )


def simulated(env: jb.Environment, learner: Any) -> list[int]:
    """The actions of the run in `simulate`, read off its regret."""
    options = {"horizon": HORIZON, "seed": SEED, "rounds": HORIZON, "progress": False}
    regret = jb.simulate(env, learner, runs=RUN + 1, **options).regret[RUN]
    gaps = np.diff(regret, prepend=0)[:, None] - (COSTS - COSTS.min())
    assert (np.abs(gaps).min(axis=1) < 1e-5).all()
    return np.abs(gaps).argmin(axis=1).tolist()


@pytest.mark.alike
@pytest.mark.parametrize("name", jb.learner_names())
def test_decides_as_in_a_simulation(name: str) -> None:
    learner = jb.make_learner(name)
    one = agent(ENV, learner)
    assert one.backend == "llvm"
    chosen = played(one, ENV)
    assert len(set(chosen)) > 1
    assert chosen == simulated(ENV, learner)


@pytest.mark.parametrize("learner", [
    jb.make_learner("metabio-skipping"), jb.MetaBIO(EpsilonGreedy())
], ids=["metabio-skipping", "user's"])  # fmt: skip
def test_decides_as_in_a_simulation_with_random_delays(learner: Any) -> None:
    """Some losses come at once, and up to six between two decisions."""
    assert played(agent(LATE, learner), LATE) == simulated(LATE, learner)


@pytest.mark.parametrize("backend", ["llvm", "jit"])
def test_decides_as_a_trajectory(backend: str) -> None:
    """That is JAX's own arithmetic, so it may round otherwise: not in this run."""
    learner = jb.make_learner("dada-exp3")
    expected = jb.trajectory(LATE, learner, SEED, HORIZON, run=RUN).action
    assert played(agent(LATE, learner, backend=backend), LATE) == np.asarray(expected).tolist()


def test_another_run_decides_otherwise() -> None:
    learner = jb.make_learner("exp3")
    one, other = (played(agent(ENV, learner, run=run), ENV) for run in (RUN, RUN + 1))
    assert one != other


@pytest.mark.parametrize("kind", [Waving, Rolling])
def test_what_is_not_understood_runs_by_jax(kind: Any) -> None:
    with pytest.warns(RuntimeWarning, match=r"jax\.jit, more slowly.* does not know a?sin"):
        one = agent(LATE, kind(0.3))
    assert one.backend == "jit"
    assert played(one, LATE) == played(agent(LATE, EpsilonGreedy(0.3)), LATE)
    with pytest.raises(ValueError, match=r"backend='llvm' cannot run this: .* not know a?sin"):
        agent(LATE, kind(), backend="llvm")


def test_runs_in_double_precision() -> None:
    """A ticket of 64 bits, too."""
    with float_bits(64):
        with pytest.warns(RuntimeWarning, match="does not know numbers of type float64"):
            one = agent(LATE, jb.make_learner("exp3"))
        chosen = played(one, LATE)
        saved = one.to_dict()
    with float_bits(32):
        assert chosen == played(agent(LATE, jb.make_learner("exp3")), LATE)
        with pytest.raises(ValueError, match=r"cumulative.total is float32 .*it is float64"):
            jb.Agent.from_dict(saved, jb.make_learner("exp3"))


def test_one_state_and_labels_of_numbers() -> None:
    one = jb.Agent(jb.UCB1(), range(4), np.array([7]), 100, seed=1)
    action, ticket = one.select()
    assert type(action) is int
    one.see(ticket, 7)
    one.observe(ticket, np.float32(0.5))
    assert one.select()[0] in one.actions == (0, 1, 2, 3)


def test_states_that_are_true_or_false() -> None:
    one = jb.Agent(jb.UCB1(), [10, 20], [False, True], 100)
    ticket = one.select()[1]
    one.see(ticket, np.bool_(True))
    assert one.to_dict()["ended"] == [ticket, 1, None, False]
    assert jb.Agent.from_dict(one.to_dict(), jb.UCB1()).states == (False, True)


def test_goes_on_beyond_the_horizon_with_a_warning() -> None:
    one = jb.Agent(jb.UCB1(), ["a", "b"], STATES, 3)
    with pytest.warns(RuntimeWarning, match="round 3 is over") as warned:
        rounds(one, 6)
    assert len(warned) == 1
    assert one.rounds == 6


def test_facts_are_those_of_the_learner() -> None:
    learner = jb.make_learner("metabio")
    one = agent(ENV, learner)
    played(one, ENV)
    with pytest.warns(RuntimeWarning, match="round 60 is over"):
        one.select()  # learns from the last round
    options = {"horizon": HORIZON, "seed": SEED, "progress": False}
    info = jb.simulate(ENV, learner, runs=RUN + 1, **options).info
    assert one.facts() == {name: info[name][RUN] for name in one.facts()}
    assert one.facts()["waiting_rounds"] > 0


def test_says_what_it_is() -> None:
    one = agent(ENV, jb.make_learner("dada-exp3"), delay=3)
    one.see(one.select()[1], "cart")
    one.select()
    assert repr(one) == (
        "Agent of DAdaExp3: round 1 of 60, delay 3, back-end llvm\n"
        "  3 actions: autumn, bundle, voucher\n"
        "  2 states: bounced, cart\n"
        "  2 decisions, 1 open, 1 without a loss yet"
    )
    assert (one.decisions, one.rounds, one.open, one.outstanding) == (2, 1, (2,), (1,))
