"""The Kaplan-Meier estimate in the form that posteriors are made of: events and rows at risk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Curve(NamedTuple):
    """at [points], increasing: when outcomes came. events: how many. risk: rows that had waited
    for as long, and whose outcome had not come before.
    """

    at: np.ndarray
    events: np.ndarray
    risk: np.ndarray

    @property
    def survival(self) -> np.ndarray:
        """[points]: the share that takes longer."""
        return np.cumprod(1 - self.events / self.risk)

    def came_by(self, waited: np.ndarray) -> np.ndarray:
        """Of outcomes that come at all (by the last point): the share that does so by then."""
        survival = self.survival
        shares = (1 - survival) / (1 - survival[-1])
        return np.concatenate([[0.0], shares])[np.searchsorted(self.at, waited, "right")]

    def weights(self, came: np.ndarray) -> np.ndarray:
        """What an outcome that came at so many weighs: also for those that were played too late to
        be seen after as long. Over all outcomes they sum to the share that comes.
        """
        before = np.concatenate([[1.0], self.survival[:-1]])
        return (before / self.risk)[np.searchsorted(self.at, came)]


def curve(came: np.ndarray, waiting: np.ndarray) -> Curve:
    """came [n]: after how long outcomes came. waiting [m]: how long others have been waited for;
    their true delays are longer.
    """
    at, events = np.unique(came, return_counts=True)
    waits = np.bincount(np.searchsorted(at, waiting, "right"), minlength=len(at) + 1)[1:]
    return Curve(at, events, np.cumsum((events + waits)[::-1])[::-1])
