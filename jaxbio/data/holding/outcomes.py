"""Losses and delays of a log, such that rows that were waited for differently long compare."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from jaxbio.data.holding.cells import Cells, accumulated, converted, mean_losses
from jaxbio.data.kinds import OUTCOMES, absent_loss
from jaxbio.data.log import Log

FOLLOWED = 0.05  # of the rows without an outcome: how many were followed to the horizon
NEARLY = 0.95  # of the outcomes that came
SOME = 20  # rows without an outcome, from which on there is a horizon


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

    @cached_property
    def worth(self) -> np.ndarray:
        """[rows]: of conversions, by how much the loss is above that of nothing."""
        absent = absent_loss(self.log)
        return np.where(self.log.come, self.log.loss - absent, 0.0)

    def scores(self, rows: np.ndarray, strata: np.ndarray, until: float) -> np.ndarray:
        """Of rows (bool), to be compared within strata [rows]: losses; or, of conversions, log-rank
        scores of the time to them, up to `until`, in which each counts with its worth. For
        "outcomes" rows must have one.
        """
        if self.kind == OUTCOMES:
            return self.log.loss[rows]
        event = self.log.come[rows] & (self.waited[rows] <= until)
        worth = np.where(event, self.worth[rows], 0.0)
        return worth - accumulated(np.minimum(self.waited[rows], until), worth, strata)

    def cells(self, rows: np.ndarray, groups: np.ndarray, number: int, until: float) -> Cells:
        """Of rows (bool) and their groups, below `number`. Of conversions, the loss is the mean one
        when a row is followed up to `until`: they are held against the hazard that rows of their
        state had in the time that they were followed, so that rows compare whatever that time.
        """
        log, state = self.log, self.log.state[rows]
        shape = (number, log.num_states)
        place = groups.astype(np.int64) * log.num_states + state
        if self.kind == OUTCOMES:
            return mean_losses(log.loss[rows], place, shape)
        waited = np.minimum(self.waited[rows], until)
        event = log.come[rows] & (self.waited[rows] <= until)
        shares = converted(waited, event, place, state, shape)
        worth = mean_losses(self.worth[rows][event], place[event], shape)
        mean = shares.mean * worth.mean
        error = np.hypot(shares.error * worth.mean, shares.mean * worth.error)
        absent = absent_loss(log)
        return Cells(absent + mean, error, shares.weight, absent + shares.pooled * worth.pooled)
