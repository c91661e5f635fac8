"""The rows of a log that can be replayed: their losses, and when those are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbio import checks
from jaxbio.data.delays import fit_delays
from jaxbio.data.log import Log
from jaxbio.environment.delays import NEVER

KINDS = ("outcomes", "conversions")
IN_TIME = {"outcomes": 0.99, "conversions": 0.95}  # share of what comes that a window is to catch
LARGEST = 0.5  # of the log's rounds: a window that nobody has asked for


class Rows(NamedTuple):
    """place: int64 [rows], where they are in the log, in its order. action, state: int32 [rows].
    loss: float64 [rows]. delay: int32 [rows], NEVER where the loss stays away. unknown: bool
    [rows], rows whose outcome has not come: their loss is the mean of the others of their action
    and state.
    """

    place: np.ndarray
    action: np.ndarray
    state: np.ndarray
    loss: np.ndarray
    delay: np.ndarray
    unknown: np.ndarray

    def only(self, rows: np.ndarray) -> Rows:
        """Some of them."""
        return Rows(*(column[rows] for column in self))


def kind_of(log: Log, kind: Any) -> str:
    """What a row without an outcome means; see `replay`."""
    if kind is not None:
        checks.choice("kind", kind, KINDS)
    if kind != "outcomes" and np.isnan(log.absent):
        if kind is None:
            return "outcomes"
        raise ValueError(
            "kind='conversions' needs the loss of rows in which nothing happens, but the table "
            "gives none: fill in the column of the outcome in rows without an arrival"
        )
    if kind is not None:
        return str(kind)
    came = log.loss[log.come]
    alike = bool((came == came[0]).all()) and came[0] != log.absent
    return "conversions" if alike else "outcomes"


def window_of(log: Log, kind: str, window: Any) -> int:
    """In rounds; by default the one that catches nearly all that comes."""
    if window is not None:
        return checks.size("window", window, 0, len(log) - 1)
    waited, seen = log.delays_in_rounds(), log.seen_in_rounds
    if seen.all():
        return 0
    if not seen.any():
        raise ValueError(
            f"no outcome came before the last of the {len(log):,} decisions, so that none would "
            "ever reach a learner: a replay has the log's own delays, in rounds"
        )
    fit = fit_delays(waited[seen], waited[~seen])
    never = fit.never if kind == "conversions" else 0.0
    enough = 1 - fit.survival >= IN_TIME[kind] * (1 - never)
    longest = int(fit.rounds[np.argmax(enough)] if enough.any() else fit.rounds[-1])
    return min(longest, int(LARGEST * len(log)))


def usable_rows(log: Log, kind: str, window: int) -> Rows:
    """Those that have been waited for as long as the window is: their age alone decides, so that no
    row is in or out because of its outcome.
    """
    waited = log.delays_in_rounds()
    place = np.arange(len(log) - window)
    action, state, loss = log.action[place], log.state[place], log.loss[place]
    delay = np.where(log.seen_in_rounds[place], np.minimum(waited[place], NEVER), NEVER)
    unknown = np.isnan(loss)
    if kind == "conversions":
        in_time = delay <= window
        loss, delay = np.where(in_time, loss, log.absent), np.where(in_time, delay, window)
        unknown = np.zeros(len(place), bool)
    elif unknown.any():
        loss = np.where(unknown, _expected(loss, [action, state], log), loss)
    return Rows(place, action, state, loss, delay.astype(np.int32), unknown)


def _expected(loss: np.ndarray, labels: Sequence[np.ndarray], log: Log) -> np.ndarray:
    """[rows]: the mean loss of the rows of the same action and state whose outcome has come; where
    there is none, that of the same state, else of all.
    """
    action, state = labels
    known = ~np.isnan(loss)
    if not known.any():
        raise ValueError(
            "no row that can be used has an outcome: give a shorter window, or a log that goes on "
            "for longer"
        )
    found = np.full(len(loss), loss[known].mean())
    cell = action.astype(np.int64) * log.num_states + state
    for codes, size in ((state, log.num_states), (cell, log.num_actions * log.num_states)):
        count = np.bincount(codes[known], minlength=size)
        sums = np.bincount(codes[known], loss[known], size)
        there = count[codes] > 0
        found = np.where(there, sums[codes] / np.maximum(count[codes], 1), found)
    return found
