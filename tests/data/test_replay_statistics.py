"""What replays say is true: of the world that a log is from, and as often as they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from replay_logs import THETA, K, P, read, table, world
from scipy import stats

import jaxbio as jb

FAR = 4.5  # standard errors: further away by chance once in 150,000 times


def mean_loss(env: jb.Environment, learner: Any, rounds: int, runs: int) -> tuple[float, float]:
    """Of a simulation: the mean loss per round, and its standard error."""
    played = jb.simulate(env, learner, horizon=rounds, runs=runs, rounds=1, progress=False)
    each = played.loss[:, -1] / rounds
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(runs))


def error_of(estimate: Any) -> float:
    """Half of a 95 % interval in standard errors."""
    return (estimate.high - estimate.low) / 2 / 1.96


@pytest.mark.parametrize(("name", "delay"), [("metabio-mean", 1500.0), ("thompson", 20.0)])
def test_a_replay_agrees_with_a_simulation_of_the_world_that_the_log_is_from(
    name: str, delay: float
) -> None:
    """Within FAR standard errors of both: false alarms once in 150,000. With long delays it does
    not agree with one in which they are a third as long, as if counted in accepted rows.
    """
    env, learner = world(delay), jb.make_learner(name)
    log = read(table(30_000, 5, delay))
    found = jb.replay(log, learner, runs=64, resamples=320, progress=False)
    assert 6_000 < found.accepted < 10_000
    truth, error = mean_loss(env, learner, found.accepted, 256)
    far = FAR * np.hypot(error, error_of(found.final))
    assert abs(found.final.mean - truth) < far
    if delay > 1000:
        shorter, _ = mean_loss(world(delay / 3), learner, found.accepted, 256)
        assert abs(found.final.mean - shorter) > far


def one_by_one(
    rows: list[tuple[int, int, float]], rounds: int, generator: np.random.Generator
) -> list[float]:
    """Rejection as it was first described: rows in a random order, and a row is a round if it has
    the action that the learner has chosen.
    """
    learner = reference.build({"name": "ucb1"}, K, len(THETA), rounds)
    losses: list[float] = []
    action = None
    for i in generator.permutation(len(rows)):
        t = len(losses) + 1
        if action is None:
            action = learner.act(t, generator.random(), None).action
        mine, state, loss = rows[i]
        if mine != action:
            continue
        learner.played(t, action, state)
        learner.feed(t, [reference.Feedback(t, action, state, loss)])
        losses.append(loss)
        action = None
        if len(losses) == rounds:
            return losses
    return []


def test_going_through_rows_one_by_one_has_the_same_law() -> None:
    """Of one log: the mean loss in the first and in the second half of the rounds, in 600 and 2,000
    runs. Within FAR standard errors: false alarms once in 70,000.
    """
    log = read(table(450, 2, 0))
    rounds = 100
    rows = list(zip(log.action.tolist(), log.state.tolist(), log.loss.tolist(), strict=True))
    generator = np.random.default_rng(1)
    loop = np.array([losses for _ in range(600) if (losses := one_by_one(rows, rounds, generator))])
    assert len(loop) > 590  # the others ran out of rows
    found = jb.replay(
        log, jb.UCB1(), horizon=rounds, runs=2000, resamples=32, rounds=[50, 100], progress=False
    )
    sums = found.loss * found.rounds
    for ours, theirs in (
        (sums[:, 0], loop[:, :50].sum(1)), (sums[:, 1] - sums[:, 0], loop[:, 50:].sum(1))
    ):  # fmt: skip
        assert abs(stats.ttest_ind(ours, theirs).statistic) < FAR
        assert 0.8 < ours.std() / theirs.std() < 1.25


def test_intervals_cover_as_often_as_they_say() -> None:
    """200 logs of 960 rows. At least 176 of 200 intervals of 95 % cover the truth, in the middle of
    the rounds, at their end, and of the differences to the log and to an action: of each, 95 %
    cover less often once in 30,000. That runs share their log is most of it: intervals of runs
    alone cover less than half as surely.
    """
    logs, rounds, learner, env = 200, 200, jb.UCB1(), world(20.0)
    played = jb.simulate(env, learner, horizon=rounds, runs=20_000, rounds=2, progress=False)
    middle, end = (played.loss / played.rounds).mean(axis=0)
    costs = P @ THETA
    covered = dict.fromkeys(("middle", "end", "log", "action", "runs alone"), 0)
    for seed in range(logs):
        log = read(table(960, seed, 20))
        found = jb.replay(
            log, learner, horizon=rounds, rounds=2, runs=25, resamples=160,
            seed=seed, progress=False,
        )  # fmt: skip
        covered["middle"] += found.low[0] <= middle <= found.high[0]
        covered["end"] += found.low[1] <= end <= found.high[1]
        log_gap, gap = found.versus_logged, found.versus_fixed["arm 2"]
        covered["log"] += log_gap.low <= end - costs.mean() <= log_gap.high
        covered["action"] += gap.low <= end - costs[2] <= gap.high
        alone = stats.t.interval(0.95, 24, found.mean[-1], stats.sem(found.loss[:, -1]))
        covered["runs alone"] += alone[0] <= end <= alone[1]
    assert min(covered[name] for name in ("middle", "end", "log", "action")) >= 176, covered
    assert covered["runs alone"] < 150, covered


def test_differences_of_learners_are_surer_than_learners() -> None:
    log = read(table(3000, 4, 20))
    one, other = (
        jb.replay(log, learner, runs=50, resamples=240, progress=False)
        for learner in (jb.UCB1(), jb.UCB1(exploration=0.2))
    )
    found = one.versus(other)
    assert found.mean == pytest.approx(one.final.mean - other.final.mean, abs=1e-9)
    assert found.low > 0  # a bolder one is better on a log with large differences
    apart = np.hypot(error_of(one.final), error_of(other.final))
    assert error_of(found) < 0.8 * apart
    back = other.versus(one)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))
    elsewhere = jb.replay(log, jb.UCB1(), runs=50, resamples=240, seed=1, progress=False)
    with pytest.raises(ValueError, match="same log with the same seed"):
        one.versus(elsewhere)
