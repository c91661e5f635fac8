"""Replays of a log, round by round: the same decisions as plain Python's, on the same rows."""

from __future__ import annotations

from typing import Any

import helpers
import jax.numpy as jnp
import numpy as np
import pytest
import replay_by_hand as by_hand
import replay_logs
from helpers import Pair, float_bits, pair
from replay_logs import K, S

import jaxbio as jb
from jaxbio import rng
from jaxbio.data.chances import chances
from jaxbio.data.replaying.game import Laid, lay_out
from jaxbio.data.replaying.rows import Rows, usable_rows, waited

ROWS = 700

LEARNERS = {
    "ucb1": pair("ucb1"),
    "thompson": pair("thompson"),
    "dada-exp3": pair("dada-exp3", delta=0.05),
    "metabio-mean": pair("metabio", base=pair("dada-exp3", delta=0.05), estimator="mean"),
    "nsd-ucrl2": pair("nsd-ucrl2"),
}


def table(rows: int = ROWS, **columns: Any) -> dict[str, Any]:
    """Rows are rounds, and an outcome in sixteen is lost."""
    made = replay_logs.table(rows, 0, 12, graded=True)
    generator = np.random.default_rng(1)
    late = generator.geometric(1 / 13, rows) - 1.0
    lost = generator.random(rows) < 1 / 16
    made["late"], made["cost"] = (
        np.where(lost, np.nan, one) for one in (late, np.nan_to_num(made["cost"], nan=0.5))
    )
    return made | columns


def read(source: Any) -> jb.Log:
    return replay_logs.read(source, time=None, arrived=None, delay="late", time_unit=None)


def rows_of(log: jb.Log) -> Rows:
    return usable_rows(log, "outcomes", waited(log), 0)


def plain(rows: Rows) -> list[by_hand.Row]:
    """Rows for the oracle."""
    return [
        by_hand.Row(int(a), int(s), float(loss), None if d == 2**30 else int(d))
        for a, s, loss, d in zip(rows.action, rows.state, rows.loss, rows.delay, strict=True)
    ]


def by_oracle(ours: Pair, log: jb.Log, laid: Laid, seed: int, run: int) -> by_hand.Replayed:
    words = tuple(int(word) for word in np.asarray(rng.run_key(seed, run)))
    sizes = np.asarray(laid.env.mapping.size)
    orders = [by_hand.order_of(words, a, int(size)) for a, size in enumerate(sizes)]
    rows = by_hand.laid_out(plain(rows_of(log)), K, laid.length, orders)
    given = helpers.uniforms_for(ours.learner, K, seed, run, laid.length)
    return by_hand.replay(ours.spec, rows, K, S, laid.length, given)


@pytest.mark.parametrize("name", LEARNERS)
def test_decisions_are_those_of_a_loop_over_rows(name: str) -> None:
    """In float64: one decision that differs would change everything after it."""
    log, ours = read(table()), LEARNERS[name]
    laid = lay_out(rows_of(log), log, "random")
    assert laid.length == np.bincount(log.action).min()
    for run in (0, 3):
        with float_bits(64):
            played = jb.trajectory(laid.env, laid.view(ours.learner), 7, laid.length, run=run)
            found = by_oracle(ours, log, laid, 7, run)
        assert np.asarray(played.action).tolist() == found.actions
        assert len(set(found.actions)) == K
        np.testing.assert_allclose(np.asarray(played.loss), found.losses, rtol=1e-12)
        assert found.skipped == (K - 1) * laid.length


def test_replay_adds_up_what_the_loop_over_rows_has_lost() -> None:
    """As users run it, in single precision: indices of these runs are never as close as that."""
    log, ours = read(table()), LEARNERS["ucb1"]
    laid = lay_out(rows_of(log), log, "random")
    found = jb.replay(
        log, ours.learner, runs=3, resamples=32, rounds=laid.length, seed=7, progress=False
    )
    np.testing.assert_array_equal(found.rounds, np.arange(1, laid.length + 1))
    for run in range(3):
        wanted = by_oracle(ours, log, laid, 7, run)
        means = np.cumsum(wanted.losses) / found.rounds
        np.testing.assert_allclose(found.loss[run], means, rtol=1e-6)
        shares = np.bincount(wanted.actions, minlength=K) / laid.length
        np.testing.assert_allclose(found.plays[run], shares, rtol=1e-12)
    assert len(log) == ROWS
    assert found.used.usable == ROWS
    assert found.used.unknown == int((~log.come).sum()) > 20


def test_a_fixed_action_loses_what_its_rows_have_in_the_order_of_the_run() -> None:
    log = read(table())
    found = jb.replay(log, Always(2), runs=3, resamples=32, seed=7, progress=False)
    laid = lay_out(rows_of(log), log, "random")
    for run in range(3):
        words = tuple(int(word) for word in np.asarray(rng.run_key(7, run)))
        order = by_hand.order_of(words, 2, int(laid.env.mapping.size[2]))
        mine = rows_of(log).loss[log.action == 2][order[: laid.length]]
        assert found.loss[run, -1] == pytest.approx(mine.mean(), rel=1e-6)
        assert found.every[run, 2] == pytest.approx(mine.mean(), rel=1e-6)
    np.testing.assert_array_equal(found.plays, np.eye(K)[[2, 2, 2]])


@jb.pytree
class Always:
    """Plays one action, and counts in its state what it is shown."""

    action: Any

    def init(self, known: jb.Known) -> Any:
        zeros = jnp.zeros(known.state_slots, jnp.int32)
        return {"seen": zeros, "due": zeros, "rounds": jnp.asarray(known.horizon, jnp.int32),
                "states": jnp.asarray(known.num_states, jnp.int32)}  # fmt: skip

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return jnp.asarray(self.action, jnp.int32), ()

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        places = jnp.arange(state["seen"].shape[0], dtype=jnp.int32)
        seen = state["seen"] + (places == play.state).astype(jnp.int32)
        came = (places[:, None] == arrivals.play.state) & arrivals.due
        due = state["due"] + came.sum(axis=1, dtype=jnp.int32)
        return state | {"seen": seen, "due": due}, ()

    def facts(self, state: Any) -> dict[str, Any]:
        return dict(state)


def test_states_are_seen_at_once_and_outcomes_only_when_and_if_they_come() -> None:
    """All rows of the action are accepted: it is the rarest."""
    log = read(table())
    rare = int(np.argmin(np.bincount(log.action)))
    found = jb.replay(log, Always(rare), runs=2, resamples=32, seed=1, progress=False)
    rows = rows_of(log)
    mine = rows.action == rare
    wanted = np.bincount(rows.state[mine], minlength=S)
    assert (found.info["seen"] == wanted).all()
    assert (found.info["rounds"] == mine.sum()).all()
    assert (found.info["states"] == S).all()
    known = np.bincount(rows.state[mine & ~rows.unknown], minlength=S)
    assert (found.info["due"] <= known).all()
    assert (found.info["due"].sum(axis=1) >= known.sum() - 40).all()  # some come after the end
    assert known.sum() < wanted.sum()


def test_delays_are_those_of_the_log_at_the_traffic_of_the_learner() -> None:
    """With a delay of 40 for all, what comes is all but the last 40 rounds; with a fifth of the
    traffic all but the last 8."""
    log = read(table(late=np.full(ROWS, 40.0), cost=np.tile([0.0, 1.0], ROWS // 2)))
    for traffic, rounds in ((1.0, 40), (0.2, 8)):
        found = jb.replay(
            log, Always(0), runs=2, resamples=32, traffic=traffic, seed=1, progress=False
        )
        assert (found.info["due"].sum(axis=1) == found.accepted - rounds).all()
        assert found.used.late == (rounds, rounds)


def test_rows_stay_in_their_order_if_asked() -> None:
    """The loss of an action's i-th row says when it was: a curve of losses is that of time."""
    rows = 600
    arm = np.tile([0, 1, 1], rows // 3)
    when = np.linspace(0, 1, rows)
    log = read(table(rows, arm=arm, cost=when, late=np.zeros(rows)))
    found = jb.replay(log, Always(1), order="log", runs=2, resamples=64, rounds=200, progress=False)
    assert found.accepted == 200
    lost = np.diff(found.loss * found.rounds, prepend=0, axis=1)
    assert (lost[0] == lost[1]).all()
    np.testing.assert_allclose(lost[0], (np.arange(200) + 0.5) / 200, atol=2 / 200)
    nearby = np.diff(found.redrawn * found.rounds, prepend=0, axis=1)
    assert np.abs(nearby - lost[0]).max() < 0.05
    assert np.abs(nearby - lost[0]).max() > 0.01
    for log_number in np.unique(found.logs)[:3]:  # one log is the same in all its runs
        own = nearby[found.logs == log_number]
        assert len(own) > 1
        assert np.abs(own - own[0]).max() < 1e-5


def test_rows_are_left_out_for_a_fair_share() -> None:
    """Action 0 is chosen with 0.8 in the first half and 0.2 in the second, where it costs more."""
    rows, generator = 20_000, np.random.default_rng(3)
    early = np.arange(rows) < rows / 2
    first = np.where(early, 0.8, 0.2)
    action = (generator.random(rows) >= first).astype(int)
    probability = np.where(action == 0, first, 1 - first)
    cost = np.where(early, 0.0, 1.0)
    log = read(table(rows, arm=action, cost=cost, late=np.zeros(rows)))
    fair = jb.replay(log, Always(0), probability=probability, runs=2, resamples=32, progress=False)
    assert fair.final.mean == pytest.approx(0.5, abs=0.02)  # 2,000 rows a half: 5.6 deviations
    assert fair.used.usable == pytest.approx(rows * 0.4, rel=0.06)
    assert fair.used.left_out == {"for a fair share of every action (probability)": rows
                                  - fair.used.usable}  # fmt: skip
    with pytest.warns(jb.LogWarning, match="not chosen at random"):
        unfair = jb.replay(log, Always(0), runs=2, resamples=32, progress=False)
    assert unfair.final.mean == pytest.approx(0.2, abs=0.02)
    assert len(unfair.warnings) == 1
    assert fair.warnings == ()
    by_action = chances({"0": 0.5, "1": 0.5}, log)
    with pytest.warns(jb.LogWarning, match="not chosen at random"):
        same = jb.replay(
            log, Always(0), probability=by_action, runs=2, resamples=32, progress=False
        )
    assert same.used.usable == rows
