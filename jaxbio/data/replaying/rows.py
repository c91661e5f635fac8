"""The rows of a log that can be replayed: their losses, and when those are known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxbio import checks
from jaxbio.data.kinds import CONVERSIONS, absent_loss
from jaxbio.data.log import Log
from jaxbio.data.survival import curve
from jaxbio.data.waits import in_rounds
from jaxbio.environment.delays import NEVER

IN_TIME = {"outcomes": 0.99, "conversions": 0.95}  # share of what comes that a window is to catch
LARGEST = 0.5  # of the log's rounds: a window that nobody has asked for


class Rows(NamedTuple):
    """place: int64 [rows], where they are in the log, in its order. action, state: int32 [rows].
    loss: float64 [rows]. delay: int32 [rows], NEVER where the loss stays away. unknown: bool
    [rows], rows whose loss is not known, but what is to be expected.
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

    def at_traffic(self, share: float) -> Rows:
        """As they are for a learner that makes this share of the decisions: in the same time it has
        fewer rounds.
        """
        delay = np.where(self.delay < NEVER, np.rint(self.delay * share), NEVER)
        return self._replace(delay=delay.astype(np.int32))


class Waited(NamedTuple):
    """What is known of a log's outcomes, in rounds. rounds: int64 [rows], after how many each came,
    or for how many it has been waited for; come: bool [rows]. older: int64 [rows] or None: how many
    rounds before the end of the log each decision was made; None where that says nothing, as rows
    were not followed until the end of the log, but each for a time of its own.
    """

    rounds: np.ndarray
    come: np.ndarray
    older: np.ndarray | None


def waited(log: Log) -> Waited:
    rounds, come = in_rounds(log, 1)
    if not come.any():
        raise ValueError(
            f"no outcome came by the last of the {len(log):,} decisions, so that none would ever "
            "reach a learner: a replay has the log's own delays, in rounds"
        )
    if log.watched is not None or not log.timed or come.all():
        return Waited(rounds, come, None)
    place = np.arange(len(log))
    beyond = rounds[~come][-1] + place[~come][-1]  # the last round, were there decisions until end
    return Waited(rounds, come, beyond - place)


def window_of(log: Log, kind: str, found: Waited, window: Any) -> int:
    """In rounds; by default the one that catches nearly all that comes."""
    if window is not None:
        most = NEVER - 1 if found.older is None else int(found.older.max())
        return checks.size("window", window, 0, most)
    if found.come.all():
        return 0
    seen = curve(found.rounds[found.come], found.rounds[~found.come])
    longest = int(seen.at[np.searchsorted(seen.came_by(seen.at), IN_TIME[kind])])
    return min(longest, int(LARGEST * len(log)))


def usable_rows(log: Log, kind: str, found: Waited, window: int) -> Rows:
    """Those that are as old as the window is long: their age alone decides, so that no row is in or
    out because of its outcome. Where ages say nothing, all.
    """
    old = np.ones(len(log), bool) if found.older is None else found.older >= window
    place = np.flatnonzero(old)
    rounds, come = found.rounds[place], found.come[place]
    rows = Rows(
        place,
        log.action[place],
        log.state[place],
        np.where(come, log.loss[place], np.nan),
        np.where(come, np.minimum(rounds, NEVER), NEVER).astype(np.int32),
        ~come,
    )
    if kind == CONVERSIONS:
        return _of_conversions(rows, rounds, window, absent_loss(log))
    if not come.any():
        raise ValueError(
            f"no row that can be used has an outcome: give a shorter window than {window:,}, or a "
            "log that goes on for longer"
        )
    return rows._replace(loss=_of_others(rows, log)) if rows.unknown.any() else rows


def _of_conversions(rows: Rows, rounds: np.ndarray, window: int, absent: float) -> Rows:
    """What is known when the window ends. rounds: [rows], as in `Waited`."""
    in_time = ~rows.unknown & (rounds <= window)
    loss, delay = np.where(in_time, rows.loss, absent), np.where(in_time, rounds, window)
    lost = rows.unknown & (rounds < window)  # not followed until then
    if lost.any():
        loss[lost] = _still_to_be_expected(rows, rounds, window, absent, lost)
    return rows._replace(loss=loss, delay=delay.astype(np.int32), unknown=lost)


def _still_to_be_expected(
    rows: Rows, rounds: np.ndarray, window: int, absent: float, lost: np.ndarray
) -> np.ndarray:
    """The mean loss of rows that nothing had come for, by the Kaplan-Meier estimate of their state:
    of such rows a part converts within the window nevertheless.
    """
    found = np.full(len(rounds), absent)
    for state in np.unique(rows.state[lost]):
        mine = rows.state == state
        came = mine & ~rows.unknown
        if not came.any():
            continue
        law = curve(rounds[came], rounds[mine & rows.unknown])
        left = np.append(1.0, law.survival)
        now, then = (left[np.searchsorted(law.at, at, "right")] for at in (rounds, window))
        share = 1 - np.divide(then, now, out=np.ones(len(rounds)), where=now > 0)
        gain = np.average(rows.loss[came], weights=law.weights(rounds[came])) - absent
        found = np.where(mine, absent + share * gain, found)
    return found[lost]


def _of_others(rows: Rows, log: Log) -> np.ndarray:
    """[rows]: the losses that are known; of the others the mean of those with the same action and
    state, or where there is none with the same state, or of all.
    """
    known, loss = ~rows.unknown, rows.loss
    found = np.full(len(loss), loss[known].mean())
    cell = rows.action.astype(np.int64) * log.num_states + rows.state
    for codes, size in ((rows.state, log.num_states), (cell, log.num_actions * log.num_states)):
        count = np.bincount(codes[known], minlength=size)[codes]
        sums = np.bincount(codes[known], loss[known], size)[codes]
        found = np.where(count > 0, sums / np.maximum(count, 1), found)
    return np.where(known, loss, found)
