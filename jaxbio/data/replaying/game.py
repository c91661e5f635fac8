"""The rows of a log as a game: an environment, and a learner that sees their states."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from jaxbio import checks
from jaxbio.core import check_learner
from jaxbio.data.log import Log
from jaxbio.data.replaying.rows import Rows
from jaxbio.environment.delays import NEVER, FixedDelay
from jaxbio.environment.environment import Environment
from jaxbio.environment.losses import ConstantLosses
from jaxbio.environment.mappings import StochasticMapping
from jaxbio.environment.rows import RowDelay, RowEnvironment, RowLosses, RowMapping
from jaxbio.learners.row_view import RowView

ORDERS = ("random", "log")
SMALLEST = 128  # rows: a small table would be taken apart
NEARBY = 0.05  # of an action's rows: those that may take a row's place where the order is kept


class Laid(NamedTuple):
    """Rows as they are played. env: the environment of the rows; states: int32 [rows], what they
    show; length: rounds that can be played.
    """

    env: RowEnvironment
    states: np.ndarray
    num_states: int
    length: int

    def redrawn(self, logs: int, words: np.ndarray) -> RowEnvironment:
        """The same on so many logs that are redrawn from this one: each row becomes one of the same
        action, or one of those nearby where the order of the log is kept. words: see `RowMapping`.
        """
        mapping = self.env.mapping
        reach = mapping.num_states if mapping.shuffled else max(1, int(NEARBY * self.length / 2))
        mapping = dataclasses.replace(mapping, reach=reach, logs=logs, words=words)
        return dataclasses.replace(self.env, mapping=mapping)

    def view(self, learner: Any) -> RowView:
        return RowView(learner, self.states, self.num_states)


def lay_out(rows: Rows, log: Log, order: str) -> Laid:
    """Every action has as many rounds as the rarest one has rows."""
    size = _sizes(rows, log)
    length = int(size.min())
    place = np.argsort(rows.action, kind="stable")
    if order == "log":
        place = place[_evenly(size, length)]
        size = np.full_like(size, length)
    loss, delay, state = (_filled(column[place]) for column in (rows.loss, rows.delay, rows.state))
    first = np.cumsum(size) - size
    mapping = RowMapping(
        first.astype(np.int32), size.astype(np.int32), num_states=len(loss),
        shuffled=order == "random",
    )  # fmt: skip
    losses = RowLosses(loss, bool(np.isin(rows.loss, (0.0, 1.0)).all()))
    env = RowEnvironment(mapping, losses, _delays(rows.delay, delay, size))
    return Laid(env, state, log.num_states, length)


def _filled(column: np.ndarray) -> np.ndarray:
    """With zeros behind, which no action has: few lengths, so that few programs are compiled."""
    step = max(SMALLEST, 1 << max(0, (len(column) - 1).bit_length() - 3))
    return np.pad(column, (0, -len(column) % step))


def _sizes(rows: Rows, log: Log) -> np.ndarray:
    """int64 [K]: rows of each action, of which there must be some."""
    size = np.bincount(rows.action, minlength=log.num_actions)
    if size.min() == 0:
        label = log.actions[int(np.argmin(size))]
        raise ValueError(
            f"action {label!r} has no row that can be replayed: give a shorter window, or read the "
            "table without its rows"
        )
    return size


def _evenly(size: np.ndarray, length: int) -> np.ndarray:
    """int64 [K * length]: so many rows of each action, spread evenly over those that it has, so
    that the actions' rows of one round are of about the same time.
    """
    steps = np.arange(length) * 2 + 1
    first = np.cumsum(size) - size
    return np.concatenate(
        [at + steps * n // (2 * length) for at, n in zip(first, size, strict=True)]
    )


def _delays(delay: np.ndarray, filled: np.ndarray, size: np.ndarray) -> FixedDelay | RowDelay:
    if (delay == delay[0]).all() and delay[0] < NEVER:
        return FixedDelay(int(delay[0]))
    return RowDelay(filled, size.astype(np.int32))


def check(learner: Any, rows: Rows, log: Log, laid: Laid) -> None:
    """Let the learner say whether it can play in an environment of this log's actions, states and
    delays. It is never shown the one that is played, whose states are rows.
    """
    checks.learner("learner", learner)
    counts = np.zeros((log.num_actions, log.num_states))
    np.add.at(counts, (rows.action, rows.state), 1)
    seen = np.maximum(counts.sum(axis=0), 1)
    theta = np.bincount(rows.state, rows.loss, log.num_states) / seen
    mapping = StochasticMapping(counts / counts.sum(axis=1, keepdims=True))
    check_learner(learner, Environment(mapping, ConstantLosses(theta), laid.env.delays))
