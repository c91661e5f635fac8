"""The Kaplan-Meier estimate in the form that posteriors are made of: outcomes and rows at risk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Curve(NamedTuple):
    """at [points], increasing: after how long outcomes came. events: how many. risk: how many rows
    had waited for as long, without an outcome before.
    """

    at: np.ndarray
    events: np.ndarray
    risk: np.ndarray

    @property
    def survival(self) -> np.ndarray:
        """[points]: the share that takes longer, or never comes."""
        return np.cumprod(1 - self.events / self.risk)

    def came_by(self, waited: np.ndarray) -> np.ndarray:
        """Of outcomes that come, by the last point: the share that has come after so long."""
        gone = 1 - self.survival
        return np.append(0.0, gone / gone[-1])[np.searchsorted(self.at, waited, "right")]

    def weights(self, came: np.ndarray) -> np.ndarray:
        """What an outcome that came after so long weighs. It speaks for rows, too, that are too
        young to have been seen for so long; together weights are the share that comes.
        """
        before = np.append(1.0, self.survival[:-1])
        return (before / self.risk)[np.searchsorted(self.at, came)]


def curve(came: np.ndarray, waiting: np.ndarray) -> Curve:
    """came [n]: after how long outcomes came, at least one. waiting [m]: how long the others have
    been waited for; they take longer.
    """
    at, events = np.unique(came, return_counts=True)
    passed = np.searchsorted(at, waiting, "right")  # points
    left = events + np.bincount(passed, minlength=len(at) + 1)[1:]
    return Curve(at, events, np.cumsum(left[::-1])[::-1])
