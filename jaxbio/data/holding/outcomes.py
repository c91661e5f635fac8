"""Losses and delays of a log, such that rows that were waited for differently long compare."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from jaxbio.data.kinds import OUTCOMES, two_losses
from jaxbio.data.log import Log

FOLLOWED = 0.05  # of the rows without an outcome: how many were followed to the horizon
NEARLY = 0.95  # of the outcomes that came
SOME = 20  # rows without an outcome, from which on there is a horizon
LIKE = 2.0  # rows of the other actions that are lent to the variance of a cell


class Cells(NamedTuple):
    """Mean losses [groups, S] of a group of rows and a state, their standard errors, and the
    weight of each group in its state's mean, `pooled` [S]. Where nothing is known of a cell it has
    the mean of its state, an error of 0 and no weight.
    """

    mean: np.ndarray
    error: np.ndarray
    weight: np.ndarray
    pooled: np.ndarray


class Outcomes:
    """kind: "outcomes" or "conversions". waited: [rows], to the outcome, or as long as rows were
    followed.

    even: bool [rows], rows that compare although outcomes come late: those that were followed for
    `window` at least, which is as long as leaves the most outcomes that came in so short a time. An
    outcome that came later counts as not come in these. Where nothing is missing, and where the log
    says for each row how long it was followed, `window` is endless and all rows are even. in_time:
    bool [rows], even rows whose outcome came so soon. long: another window, in which nearly all
    outcomes come. followed: [rows], from the decision to the end of the log.
    """

    def __init__(self, log: Log, kind: str) -> None:
        self.log, self.kind = log, kind
        self.waited = log.delays()
        self.followed = self._followed()
        self.window = self._window()
        self.even = np.ones(len(log), bool)
        if self.window < np.inf:
            self.even = self.followed >= self.window
        self.in_time = self.even & log.come & (self.waited <= self.window)
        self.long = self._long_window()

    @property
    def unit(self) -> str:
        """In which `waited` is counted."""
        return "seconds" if self.log.dated else "units of time" if self.log.timed else "rounds"

    def _followed(self) -> np.ndarray:
        """[rows]: from the decision to the end of the log."""
        found = self.log.end - self.log.time
        return found / np.timedelta64(1, "s") if self.log.dated else found

    def _window(self) -> float:
        come = self.log.come
        if come.all() or self.log.at_once or self.log.watched is not None:
            return np.inf
        begins, ends = np.sort(self.waited[come]), np.sort(self.followed[come])
        inside = np.searchsorted(begins, begins, "right") - np.searchsorted(ends, begins, "left")
        return float(begins[np.argmax(inside)])

    def _long_window(self) -> float:
        """For medians: nearly all outcomes come in it; so long half of the rows were followed."""
        if self.window == np.inf:
            return np.inf
        usual = np.quantile(self.waited[self.log.come], NEARLY)
        return float(min(usual, np.median(self.followed)))

    @cached_property
    def horizon(self) -> float:
        """As long as enough rows without an outcome were followed."""
        waiting = self.waited[~self.log.come]
        if waiting.size < SOME:
            return float(self.waited.max())
        return float(np.quantile(waiting, 1 - FOLLOWED))

    def scores(self, rows: np.ndarray, strata: np.ndarray, until: float) -> np.ndarray:
        """Of rows (bool), to be compared within strata [rows]: losses, or log-rank scores of the
        time to the event, up to `until`. For "outcomes" rows must have one.
        """
        if self.kind == OUTCOMES:
            return self.log.loss[rows]
        event = self.log.come[rows] & (self.waited[rows] <= until)
        hazard, _ = accumulated(np.minimum(self.waited[rows], until), event, strata)
        return event - hazard

    def cells(self, rows: np.ndarray, groups: np.ndarray, number: int, until: float) -> Cells:
        """Of rows (bool) and their groups, below `number`. Of conversions, the loss is the mean one
        when a row is followed up to `until`: events are held against the hazard that rows of their
        state had in the time that they were followed, so that rows compare whatever that time.
        """
        log, state = self.log, self.log.state[rows]
        shape = (number, log.num_states)
        place = groups.astype(np.int64) * log.num_states + state
        if self.kind == OUTCOMES:
            return _of_losses(log.loss[rows], place, shape)
        event = log.come[rows] & (self.waited[rows] <= until)
        hazard, left = accumulated(np.minimum(self.waited[rows], until), event, state)
        survival = np.ones(log.num_states)
        np.minimum.at(survival, state, left)
        count = np.bincount(place, event, shape[0] * shape[1]).reshape(shape)
        exposure = np.bincount(place, hazard, shape[0] * shape[1]).reshape(shape)
        found = _of_hazards(count, exposure, np.maximum(survival, 0.5 / max(1, state.size)))
        return self._as_losses(found)

    def _as_losses(self, shares: Cells) -> Cells:
        """Of shares of rows in which the event comes."""
        event, absent = two_losses(self.log)
        mean, pooled = (absent + (event - absent) * one for one in (shares.mean, shares.pooled))
        return Cells(mean, abs(event - absent) * shares.error, shares.weight, pooled)


def _of_losses(losses: np.ndarray, place: np.ndarray, shape: tuple[int, int]) -> Cells:
    count, total, square = (
        np.bincount(place, one, shape[0] * shape[1]).reshape(shape)
        for one in (None, losses, losses**2)
    )
    there = np.maximum(count.sum(0), 1)
    pooled = np.where(count.sum(0) > 0, total.sum(0) / there, losses.mean())
    usual = np.maximum(square.sum(0) / there - pooled**2, 0)
    mean = np.where(count > 0, total / np.maximum(count, 1), pooled)
    own = np.maximum(square - count * mean**2, 0)
    variance = (own + LIKE * usual) / (np.maximum(count - 1, 0) + LIKE)
    error = np.where(count > 0, np.sqrt(variance / np.maximum(count, 1)), 0.0)
    return Cells(mean, error, count / there, pooled)


def _of_hazards(count: np.ndarray, exposure: np.ndarray, survival: np.ndarray) -> Cells:
    """Shares of rows in which the event comes. count, exposure: [groups, S], events and the
    accumulated hazards of the state; survival: [S], of the state at the end.
    """
    known = exposure > 0
    safe = np.where(known, exposure, 1.0)
    ratio = np.where(known, count / safe, 1.0)
    left = survival**ratio
    error = -np.log(survival) * left * np.sqrt(np.maximum(count, 1.0)) / safe
    total = exposure.sum(0)
    weight = exposure / np.where(total > 0, total, 1.0)
    return Cells(1 - left, np.where(known, error, 0.0), weight, 1 - survival)


def accumulated(
    waited: np.ndarray, event: np.ndarray, strata: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """[rows] each: the hazard that a row of its stratum had been under by the end of its wait (the
    estimate of Nelson and Aalen), and the share of rows that last longer (Kaplan and Meier).
    """
    order = np.lexsort((waited, strata))
    time, stratum, came = waited[order], strata[order], event[order]
    first = np.ones(order.size, bool)
    first[1:] = stratum[1:] != stratum[:-1]
    new = first.copy()
    new[1:] |= time[1:] != time[:-1]
    begins, of = np.flatnonzero(new), np.cumsum(new) - 1
    opening = np.flatnonzero(first)
    closing = np.append(opening[1:], order.size)
    own = np.cumsum(first)[begins] - 1
    share = np.add.reduceat(came.astype(np.float64), begins) / (closing[own] - begins)
    place = np.flatnonzero(first[begins])
    with np.errstate(divide="ignore"):
        lasting = np.log1p(-share)
    hazard, survival = (_summed_within(one, place, own) for one in (share, lasting))
    found = np.empty((2, order.size))
    found[:, order] = np.stack([hazard, np.exp(survival)])[:, of]
    return found[0], found[1]


def _summed_within(values: np.ndarray, opening: np.ndarray, stratum: np.ndarray) -> np.ndarray:
    """Running sums that begin anew in each stratum."""
    values = np.maximum(values, -800.0)  # exp of it is 0, and differences of it are numbers
    whole = np.cumsum(values)
    return whole - (whole[opening] - values[opening])[stratum]
