"""Learners that forget losses: what a loss counts, when, and that 1 forgets nothing.

The oracle (tests/properties/test_oracle.py) plays whole games; here are single rounds by hand.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxbio as jb
from jaxbio.learners.forgetting import faded_add, faded_zero
from jaxbio.studies.violations.problems import drifting, turning
from jaxbio.trees import with_fields

FIELDS = {"ucb1": "discount", "thompson": "discount", "state-thompson": "loss_discount"}
KNOWN = jb.Known(
    jnp.int32(1), jnp.int32(9), jnp.int32(-1), num_actions=2, state_slots=1, ring_depth=64
)


def finals(learner: Any, env: Any = None, **options: Any) -> np.ndarray:
    env = env or jb.make_environment("paper-stochastic", delays=jb.LaplaceDelay(20, 10))
    options = {"horizon": 400, "runs": 16, "rounds": 1, "progress": False} | options
    return jb.simulate(env, learner, **options).final_regret


@pytest.mark.parametrize("name", FIELDS)
def test_one_is_no_discount(name: str) -> None:
    """It needs no code; and code that is told 1 as a number plays the same games, bit for bit."""
    field, plain = FIELDS[name], jb.make_learner(name)

    def made(discount: Any) -> Any:
        return jb.make_learner(name, **{field: discount})

    for one in (1, 1.0, np.float32(1), None):
        assert getattr(made(one), field) is None
    assert getattr(dataclasses.replace(made(0.5), **{field: 1.0}), field) is None
    assert getattr(made(0.5), field) == 0.5
    assert jax.tree.structure(made(1)) == jax.tree.structure(plain)
    told = with_fields(made(0.5), **{field: 1.0})
    np.testing.assert_array_equal(finals(told), finals(plain))
    assert not np.array_equal(finals(made(0.99)), finals(plain))


def lanes(*plays: tuple[int, float, Any, bool]) -> jb.Arrivals:
    """Plays of one state: action, loss, ticket, due."""
    action, loss, ticket, due = zip(*plays, strict=True)
    both = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *ticket)
    zeros = jnp.zeros(len(plays), jnp.int32)
    return jb.Arrivals(
        jb.Play(jnp.array(action, jnp.int32), zeros, jnp.array(loss, jnp.float32), both),
        jnp.array(due),
    )


def test_a_loss_is_as_old_as_its_play() -> None:
    """With a discount of 1/2. Round 3 brings the loss 0.5 of round 1, and its own, 0.25; in round 4
    all of that counts half, and a loss of round 2 a quarter.
    """
    learner = jb.UCB1(exploration=0.5, discount=0.5)
    play = jb.Play(jnp.int32(1), jnp.int32(0), jnp.float32(0), jnp.int32(0))
    one, two, three, four = (jnp.int32(t) for t in (1, 2, 3, 4))
    state: Any = learner.init(KNOWN)
    for t in (one, two):
        state, _ = learner.learn(state, t, play, lanes((0, 0.0, two, False)))
    arrivals = lanes((0, 0.5, one, True), (1, 1.0, two, False), (1, 0.25, three, True))
    state, _ = learner.learn(state, three, play, arrivals)
    assert state.seen.count.total.tolist() == [0.25, 1.0]
    assert state.seen.total.total.tolist() == [0.125, 0.25]
    assert float(state.seen.rounds.total) == 1.875  # 1 + 1/2 + 1/4 + 1/8
    state, _ = learner.learn(state, four, play, lanes((0, 1.0, two, True)))
    assert state.seen.count.total.tolist() == [0.375, 0.5]
    assert state.seen.total.total.tolist() == [0.3125, 0.125]
    assert state.pulls.tolist() == [0, 4]
    # The means are 5/6 and 1/4; the second is explored less.
    index = [5 / 6 - np.sqrt(0.5 * np.log(1.9375) / 0.375), 1 / 4 - np.sqrt(np.log(1.9375))]
    action, ticket = learner.act(state, jnp.int32(5), jnp.float32(0.5))
    assert (action.item(), ticket) == (np.argmin(index), 5)


def test_a_flip_is_as_old_as_its_play() -> None:
    learner = jb.ThompsonSampling(discount=0.5)
    ticket = type(learner.act(learner.init(KNOWN), jnp.int32(1), jnp.full(49, 0.5))[1])
    flips = [ticket(jnp.float32(0.4), jnp.int32(t)) for t in (1, 2, 3)]
    play = jb.Play(jnp.int32(0), jnp.int32(0), jnp.float32(0.5), flips[2])
    # Coins of 0.4: a loss of 0.5 is a one, a loss of 0.3 none.
    arrivals = lanes((0, 0.5, flips[0], True), (0, 0.3, flips[1], True), (1, 0.3, flips[2], True))
    state: Any
    state, kept = learner.learn(learner.init(KNOWN), jnp.int32(3), play, arrivals)
    assert state.total.total.tolist() == [0.25, 0.0]
    assert state.count.total.tolist() == [0.75, 1.0]
    assert kept.round == 3


def test_the_losses_of_a_state_are_as_old_as_their_plays() -> None:
    """In round 3 the loss 0.5 of round 1 comes, and its own, 1, of the other state."""
    learner, three = jb.StateThompson(loss_discount=0.5), jnp.int32(3)
    known = dataclasses.replace(KNOWN, num_states=jnp.int32(2), state_slots=2)
    arrivals = lanes((0, 0.5, jnp.int32(1), True), (0, 1.0, three, True))
    shown = arrivals.play._replace(state=jnp.array([1, 0], jnp.int32))
    play = jb.Play(jnp.int32(0), jnp.int32(0), jnp.float32(1), three)
    state: Any
    state, ticket = learner.learn(learner.init(known), three, play, arrivals._replace(play=shown))
    assert state.seen.count.total.tolist() == [1.0, 0.25]
    assert state.seen.total.total.tolist() == [1.0, 0.125]
    assert state.visits.total.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert ticket == 3


def test_forgetting_what_states_cost_pays_where_that_changes() -> None:
    """Paired: less regret by more than ten standard errors."""
    env = turning(1, 50, 2000)
    keeps, forgets = (
        finals(jb.StateThompson(loss_discount=d), env=env, horizon=2000) for d in (1.0, 0.99)
    )
    saved = keeps - forgets
    assert saved.mean() > 10 * saved.std(ddof=1) / np.sqrt(len(saved))


@pytest.mark.parametrize("discount", [0.9998, 0.99])
def test_counts_after_a_million_rounds(discount: float) -> None:
    """Two losses in each round, one of them 300 rounds late, against the geometric sum in float64
    of the discount that float32 holds.
    """
    rounds, late = 1_000_000, 300
    plays = jb.Play(
        jnp.array([0, 1], jnp.int32), jnp.zeros(2, jnp.int32), jnp.full(2, 0.3, jnp.float32), None
    )
    arrivals, single = jb.Arrivals(plays, jnp.array([True, True])), np.float32(discount)

    def one(t: Any, faded: Any) -> Any:
        played = jnp.stack([t - late, t])
        return faded_add(faded, single, t, played, plays.action, plays.loss, arrivals.due)

    found = jax.jit(lambda: lax.fori_loop(1, rounds + 1, one, faded_zero(2, single)))()
    exact = 1 / (1 - float(single))
    expected = np.array([float(single) ** late * exact, exact])
    np.testing.assert_allclose(found.count.total, expected, rtol=2e-6)
    np.testing.assert_allclose(found.total.total, expected * np.float32(0.3), rtol=2e-6)
    np.testing.assert_allclose(found.rounds.total, exact, rtol=2e-6)


@pytest.mark.parametrize("name", ["ucb1", "thompson"])
def test_forgetting_pays_where_the_best_action_changes(name: str) -> None:
    """Dynamic regret on a mapping that drifts, paired: less by more than ten standard errors, so
    that a false alarm has no probability worth naming.
    """
    env = drifting(0.4, 50, 4000)
    bold = {"exploration": 0.05} if name == "ucb1" else {}
    made = [jb.make_learner(name, discount=d, **bold) for d in (1.0, 0.998)]
    keeps, forgets = (finals(one, env=env, horizon=4000, runs=32) for one in made)
    saved = keeps - forgets
    assert saved.mean() > 10 * saved.std(ddof=1) / np.sqrt(len(saved))


def test_a_sweep_over_discounts_plays_what_simulate_does() -> None:
    """1 among them, which is another program."""
    discounts = [1.0, 0.99, 0.9]
    env = jb.make_environment("paper-stochastic", delays=jb.LaplaceDelay(20, 10))
    data = jb.sweep(
        env,
        {"UCB1": lambda discount: jb.make_learner("ucb1", discount=discount)},
        {"discount": discounts},
        horizon=400,
        runs=16,
        rounds=1,
        progress=False,
    )
    for discount in discounts:
        own = data.final_regret.sel(learner="UCB1", discount=discount)
        np.testing.assert_array_equal(own, finals(jb.UCB1(discount=discount)))
