"""Rows of a log as an environment: which row is laid out when, and logs that are redrawn."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbio as jb
from jaxbio import rng
from jaxbio.environment.delays import LANES, NEVER
from jaxbio.environment.empirical import surely
from jaxbio.environment.rows import RowDelay, RowEnvironment, RowLosses, RowMapping
from jaxbio.trees import as_arrays

SIZE = np.array([6, 9, 150], np.int32)
ROWS = int(SIZE.sum())
FIRST = np.cumsum(SIZE) - SIZE
FALSE_ALARM = 1e-6


def mapping(**options: Any) -> RowMapping:
    return RowMapping(FIRST.astype(np.int32), SIZE, num_states=ROWS, **options)


def laid_out(rows: RowMapping, runs: int, action: int) -> np.ndarray:
    """int [runs, rounds]: the places of an action's rows in its pile."""
    rows = as_arrays(rows)
    rounds = jnp.arange(1, SIZE[action] + 1, dtype=jnp.int32)
    one = lambda key, t: rows.row(key, t, jnp.int32(action))  # noqa: E731
    play = jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (-1, None)))
    return np.asarray(play(rng.run_keys(0, np.arange(runs)), rounds)) - FIRST[action]


def test_every_row_of_an_action_is_laid_out_once() -> None:
    for action, size in enumerate(SIZE):
        found = laid_out(mapping(), 40, action)
        assert (np.sort(found, axis=1) == np.arange(size)).all()
        assert len({tuple(one) for one in found.tolist()}) > 30  # orders of runs
        kept = laid_out(mapping(shuffled=False), 3, action)
        assert (kept == np.arange(size)).all()


def test_redrawn_logs_have_rows_with_replacement_and_runs_share_them() -> None:
    """Runs on one log have the same rows in another order; on a log of 150 rows there are as many
    different ones as of 150 draws with replacement, 95 on average; all are as frequent."""
    logs, size = 20, int(SIZE[2])
    rows = mapping(reach=ROWS, logs=logs, words=(3, 4))
    found = laid_out(rows, 400, 2)
    keys = jnp.asarray(rng.run_keys(0, np.arange(400)))
    on = np.asarray(rows.log_of(keys))
    assert stats.chisquare(np.bincount(on, minlength=logs)).pvalue > FALSE_ALARM
    different = []
    for log in range(logs):
        mine = np.sort(found[on == log], axis=1)
        assert (mine == mine[0]).all()
        assert len({tuple(one) for one in found[on == log].tolist()}) == len(mine)
        different.append(len(set(mine[0].tolist())))
    # The standard deviation of the number of different ones is 3.8.
    assert np.mean(different) == pytest.approx(size * (1 - np.exp(-1)), abs=5 * 3.8 / logs**0.5)
    first = [found[on == log][0] for log in range(logs)]
    counts = np.bincount(np.concatenate(first), minlength=size)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    others = laid_out(dataclasses.replace(rows, words=np.array([3, 5], np.uint32)), 400, 2)
    assert (np.sort(others[0]) != np.sort(found[0])).any()


def test_rows_are_redrawn_from_nearby_where_their_order_is_kept() -> None:
    found = laid_out(mapping(shuffled=False, reach=4, logs=30, words=(1, 2)), 60, 2)
    away = found - np.arange(SIZE[2])
    assert away.min() == -4
    assert away.max() == 4
    inside = away[:, 4:-4]
    assert stats.chisquare(np.bincount((inside + 4).ravel()) / 2).pvalue > FALSE_ALARM
    assert found.min() == 0
    assert found.max() == SIZE[2] - 1


def test_costs_are_means_of_an_actions_rows() -> None:
    losses = np.random.default_rng(0).random(ROWS)
    env = RowEnvironment(mapping(), RowLosses(losses), jb.FixedDelay(0))
    wanted = [part.mean() for part in np.split(losses, FIRST[1:])]
    np.testing.assert_allclose(env.mapping.costs(losses)[0], wanted)
    assert env.best_action(np.int32(5)) == np.argmin(wanted)
    assert env.mapping.average(1, 2, losses) == pytest.approx(wanted[2])
    np.testing.assert_allclose(jax.jit(env.mapping.costs)(losses)[0], wanted, rtol=1e-5)


def test_without_a_key_rows_are_drawn() -> None:
    rows = mapping()
    u = jnp.asarray(np.random.default_rng(1).random(4000), jnp.float32)
    found = np.asarray(jax.vmap(lambda x: rows.state(jnp.int32(1), jnp.int32(1), x, ROWS))(u))
    counts = np.bincount(found, minlength=ROWS)
    assert counts[: FIRST[1]].sum() == counts[FIRST[2] :].sum() == 0
    assert stats.chisquare(counts[FIRST[1] : FIRST[2]]).pvalue > FALSE_ALARM


def test_a_game_is_not_longer_than_the_rarest_action_has_rows() -> None:
    env = RowEnvironment(mapping(), RowLosses(np.zeros(ROWS)), jb.FixedDelay(0))
    env.check(6)
    with pytest.raises(ValueError, match="the rarest action has 6 rows, but the horizon is 7"):
        env.check(7)


def test_delays_are_looked_up_and_room_is_made_for_them() -> None:
    delays = np.full(ROWS, NEVER, np.int32)
    delays[FIRST[1] : FIRST[2]] = 3
    delays[FIRST[2] :] = np.arange(SIZE[2]) % 40
    law = RowDelay(delays, SIZE)
    assert law.longest() == 39
    # Of older rounds: 3 always by action 1; by action 2 all but 0, which 4 of its rows have, and 3.
    assert law.together(100) == surely(1 + (150 - 4 - 4) / 150) > LANES
    loss, delay = law.reveal(jnp.zeros(2), jnp.int32(1), jnp.int32(FIRST[2] + 5), jnp.float32(0.5))
    assert (float(loss), int(delay)) == (0.5, 5)
