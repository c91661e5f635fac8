"""Facts that the paper's analysis rests on, searched for exceptions.

Hypothesis invents delays, states, losses and options; every prefix of every run is checked against
counts made here in NumPy from nothing but the delays and the states that were played. Shapes are
fixed (24 rounds, 5 state slots) and all tables are traced, so few programs are compiled.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jaxbio as jb
from jaxbio import rng
from jaxbio.engine.round import as_numbers, begin, make_game, step, summary
from jaxbio.ops import one_hot

ROUNDS = 24
SLOTS = 5
RING = {"ring_depth": 64, "lanes": ROUNDS}
EXAMPLES = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


# --- a base that keeps count of what it is fed


class WitnessTicket(NamedTuple):
    base: Any
    round: Any


class WitnessState(NamedTuple):
    """fed: int32 [ROUNDS], how often each round was fed."""

    base: Any
    fed: Any


@jb.pytree
class Witness:
    """Any base, and how often it is fed the loss of each round."""

    base: Any

    def init(self, known: jb.Known) -> WitnessState:
        return WitnessState(self.base.init(known), jnp.zeros(ROUNDS, jnp.int32))

    def act(self, state: WitnessState, t: Any, u: Any) -> tuple[Any, WitnessTicket]:
        action, ticket = self.base.act(state.base, t, u)
        return action, WitnessTicket(ticket, t)

    def learn(self, state: WitnessState, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        ticket = arrivals.play.ticket
        hits = one_hot(ticket.round - 1, ROUNDS) & arrivals.due
        own = play._replace(ticket=play.ticket.base)
        lanes = arrivals._replace(play=arrivals.play._replace(ticket=ticket.base))
        base, base_ticket = self.base.learn(state.base, t, own, lanes)
        fed = state.fed + jnp.sum(hits, axis=1, dtype=jnp.int32)
        return WitnessState(base, fed), WitnessTicket(base_ticket, t)


# --- every round of a run


class Seen(NamedTuple):
    """Leaves [ROUNDS, ...]: each round, and what was true at its end (the rate: in it)."""

    played: jb.Round
    info: dict[str, Any]
    fed: Any
    rate: Any


def dada(learner: Any, state: Any) -> tuple[Any, Any, Any]:
    """(DAda-Exp3 inside, its state, the witness's counts or None)."""
    fed = None
    while not isinstance(learner, jb.DAdaExp3):
        fed = state.fed if isinstance(state, WitnessState) else fed
        learner, state = learner.base, (state if hasattr(state, "base") else state.fed).base
    return learner, state, fed


@cache
def watcher(depth: int, lanes: int) -> Any:
    @jax.jit
    def watch(env: jb.Environment, learner: Any, seed: Any) -> Seen:
        game = make_game(env, learner, ROUNDS, depth, lanes)
        key = rng.run_key(seed, 0)

        def one(carry: Any, t: Any) -> tuple[Any, Seen]:
            inner, state, _ = dada(game.learner, carry.learner)
            rate = inner.rate(state, t)
            carry, played = step(game, key, t, carry)
            fed = dada(game.learner, carry.learner)[2]
            return carry, Seen(played, as_numbers(summary(game, carry)), fed, rate)

        return jax.lax.scan(one, begin(game), jnp.arange(1, ROUNDS + 1, dtype=jnp.int32))[1]

    return watch


def watch(env: jb.Environment, learner: Any, seed: int, lanes: int = ROUNDS) -> Seen:
    arrays = jax.tree.map(lambda x: np.asarray(x) if np.ndim(x) else jnp.asarray(x), (env, learner))
    seen = jax.tree.map(np.asarray, watcher(64, lanes)(*arrays, np.uint32(seed)))
    assert not seen.info["overflow"].any()
    return seen


# --- the same counts, made here


def counts(delays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """begin and end counts of outstanding rounds, [ROUNDS] each, round by round."""
    j = np.arange(1, ROUNDS + 1)
    begins = [np.sum((j < t) & (j + delays >= t)) for t in j]
    ends = [np.sum((j <= t) & (j + delays > t)) for t in j]
    return np.array(begins), np.array(ends)


def visits(states: np.ndarray, delays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M_t(S_t): rounds up to t in the state of round t; N_t(S_t): of them those arrived by t."""
    j = np.arange(1, ROUNDS + 1)
    same = [(states == states[t - 1]) & (j <= t) for t in j]
    arrived = [s & (j + delays <= t) for t, s in zip(j, same, strict=True)]
    return np.sum(same, axis=1), np.sum(arrived, axis=1)


def clipped(delays: np.ndarray, horizon: int) -> np.ndarray:
    return np.minimum(delays[:horizon], horizon - np.arange(1, horizon + 1))


# --- problems


class Problem(NamedTuple):
    env: jb.Environment
    delays: np.ndarray
    states: int
    delta: float
    seed: int


delay_tables = st.one_of(
    st.lists(st.integers(0, 30), min_size=ROUNDS, max_size=ROUNDS),
    st.lists(st.sampled_from([0, 1, 2, 9]), min_size=ROUNDS, max_size=ROUNDS),
    st.integers(1, ROUNDS).map(lambda end: [max(0, end - t) for t in range(1, ROUNDS + 1)]),
    st.integers(0, 30).map(lambda d: [d] * ROUNDS),
)


@st.composite
def problems(draw: st.DrawFn, actions: int) -> Problem:
    """Any table of states, losses and delays."""
    states = draw(st.integers(2, SLOTS))
    seed = draw(st.integers(0, 2**31))
    source = np.random.default_rng(seed)
    period = draw(st.integers(1, ROUNDS))
    rows = source.integers(0, states, size=(period, actions))
    table = np.resize(rows, (ROUNDS, actions))
    values = source.random((ROUNDS, SLOTS)) ** draw(st.sampled_from([1.0, 0.1, 10.0]))
    delays = np.array(draw(delay_tables))
    env = jb.Environment(
        jb.TableMapping(table, SLOTS), jb.TableLosses(values), jb.TableDelay(delays), states
    )
    return Problem(env, delays, states, draw(st.floats(1e-6, 0.9)), seed)


def wrapped(delta: float) -> jb.MetaBIO:
    return jb.MetaBIO(Witness(jb.DAdaExp3(delta / 2)), delta)


# --- the facts


def check_runner(problem: Problem, seen: Seen) -> None:
    """What the runner counts: begin counts add up to the clipped delays at every horizon."""
    begins, ends = counts(problem.delays)
    assert np.array_equal(seen.played.delay, problem.delays)
    assert np.array_equal(seen.info["total_delay"], np.cumsum(begins))
    assert np.array_equal(seen.info["sigma_max"], np.maximum.accumulate(ends))
    assert np.array_equal(seen.info["arrived"], np.arange(1, ROUNDS + 1) - ends)
    for horizon in range(1, ROUNDS + 1):
        assert seen.info["total_delay"][horizon - 1] == clipped(problem.delays, horizon).sum()


def check_rates(seen: Seen, actions: int, delta: float, begins: np.ndarray) -> None:
    """eta_t = sqrt(3 ln K + ln(2/delta)) / 2 / sqrt(2 K t + sum of begin counts), never rising."""
    budget = 2 * actions * np.arange(1, ROUNDS + 1) + np.cumsum(begins)
    expected = np.sqrt(3 * np.log(actions) + np.log(2 / delta)) / 2 / np.sqrt(budget)
    np.testing.assert_allclose(seen.rate, expected, rtol=1e-5)
    assert (np.diff(seen.rate) <= 0).all()


def check_waiting(problem: Problem, seen: Seen) -> np.ndarray:
    """The waiting rule, and what it implies; returns the perceived delays."""
    _, ends = counts(problem.delays)
    played, arrived = visits(np.asarray(seen.played.state), problem.delays)
    waits = seen.played.ticket.wait
    assert np.array_equal(waits, arrived < ends)
    assert (2 * arrived[~waits] >= played[~waits]).all()  # N' >= M / 2 when fed at once
    assert (np.maximum(arrived, 1)[~waits] == arrived[~waits]).all()  # N' >= 1
    total = np.cumsum(waits)
    assert (total <= 2 * problem.states * np.maximum.accumulate(ends)).all()
    assert np.array_equal(seen.info["waiting_rounds"], total)
    return np.where(waits, problem.delays, 0)


def check_feeding(problem: Problem, seen: Seen, perceived: np.ndarray) -> None:
    """Each round is fed exactly once, when its perceived delay is over, or is outstanding."""
    t = np.arange(1, ROUNDS + 1)
    expected = (t[None, :] + perceived[None, :] <= t[:, None]) & (t[None, :] <= t[:, None])
    assert np.array_equal(seen.fed, expected.astype(int))
    assert np.array_equal(seen.info["rounds_fed"], expected.sum(axis=1))
    begins, _ = counts(perceived)
    assert np.array_equal(seen.info["total_perceived_delay"], np.cumsum(begins))
    for horizon in range(1, ROUNDS + 1):
        total = seen.info["total_perceived_delay"][horizon - 1]
        delays = problem.delays[:horizon]
        limit = jb.theory.phi_delay(delays, num_states=problem.states, horizon=horizon)
        assert total == clipped(perceived, horizon).sum()
        assert total <= limit


@EXAMPLES
@given(problem=problems(actions=3))
def test_dada_counts_and_rates(problem: Problem) -> None:
    seen = watch(problem.env, jb.DAdaExp3(problem.delta), problem.seed)
    check_runner(problem, seen)
    check_rates(seen, 3, problem.delta, counts(problem.delays)[0])


@EXAMPLES
@given(problem=problems(actions=3), scale=st.floats(0.01, 100))
def test_rates_never_rise_with_skipping(problem: Problem, scale: float) -> None:
    learner = jb.DAdaExp3(problem.delta, skipping=True, scale=scale)
    seen = watch(problem.env, learner, problem.seed)
    check_runner(problem, seen)
    assert (np.diff(seen.rate) <= 0).all()
    plain = np.sqrt(3 * np.log(3) + np.log(2 / problem.delta)) / 2 * scale
    budget = 2 * 3 * np.arange(1, ROUNDS + 1)
    with_all = budget + np.cumsum(counts(problem.delays)[0])
    assert (seen.rate <= plain / np.sqrt(budget) * (1 + 1e-5)).all()
    assert (seen.rate >= plain / np.sqrt(with_all) * (1 - 1e-5)).all()


@pytest.mark.parametrize("actions", [2, 5])
def test_metabio_waits_and_feeds_as_the_analysis_says(actions: int) -> None:
    @EXAMPLES
    @given(problem=problems(actions=actions))
    def search(problem: Problem) -> None:
        seen = watch(problem.env, wrapped(problem.delta), problem.seed)
        check_runner(problem, seen)
        perceived = check_waiting(problem, seen)
        check_feeding(problem, seen, perceived)
        check_rates(seen, actions, problem.delta / 2, counts(perceived)[0])

    search()


@EXAMPLES
@given(problem=problems(actions=3), delay=st.integers(0, 30))
def test_both_thresholds_are_one_rule_under_a_fixed_delay(problem: Problem, delay: int) -> None:
    env = jb.Environment(
        problem.env.mapping, problem.env.losses, jb.FixedDelay(delay), problem.states
    )
    base = jb.DAdaExp3(problem.delta / 2)
    runs = [
        watch(env, jb.MetaBIO(base, problem.delta, threshold=rule), problem.seed, lanes=1)
        for rule in ("outstanding", "delay")
    ]
    for ours, theirs in zip(*map(jax.tree.leaves, runs), strict=True):
        assert np.array_equal(ours, theirs)


def test_trajectory_is_what_is_watched() -> None:
    source = np.random.default_rng(5)
    table, values = source.integers(0, 3, (ROUNDS, 3)), source.random((ROUNDS, SLOTS))
    delays = source.integers(0, 9, ROUNDS)
    env = jb.Environment(
        jb.TableMapping(table, SLOTS), jb.TableLosses(values), jb.TableDelay(delays), 3
    )
    seen = watch(env, jb.DAdaExp3(0.1), 7)
    rounds = jb.trajectory(env, jb.DAdaExp3(0.1), 7, ROUNDS, **RING)
    for ours, theirs in zip(*map(jax.tree.leaves, (seen.played, rounds)), strict=True):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(rounds.state, table[np.arange(ROUNDS), rounds.action])
    assert np.array_equal(rounds.loss, values.astype(np.float32)[np.arange(ROUNDS), rounds.state])
