"""Posteriors of the mean losses of states."""

from __future__ import annotations

import numpy as np

from jaxbio.data.betas import Posterior
from jaxbio.data.log import Log
from jaxbio.data.survival import curve

Rows = list[tuple[np.ndarray, np.ndarray]]  # by state: those whose outcome has come, the others
LEAST = 1e-3  # of a concentration: of losses that are nearly always 0 or 1
CONSTANT = 1e-12  # a variance that is due to rounding


def of_outcomes(log: Log, rows: Rows, taken: np.ndarray) -> Posterior:
    """[S]: if every decision has an outcome some time, from those that have come.

    An outcome weighs as the Kaplan-Meier estimate of its state says. So the mean is right, too,
    where good news take longer than bad ones, as they do if "nothing came" is known only after a
    while. taken [rows]: delays, or how long outcomes have been waited for.
    """
    found = np.zeros((log.num_states, 3))
    for s, (come, waiting) in enumerate(rows):
        if len(come):
            weights = np.ones(len(come))
            if len(waiting):
                weights = curve(taken[come], taken[waiting]).weights(taken[come])
            found[s] = _moments(log.loss[come], weights)
    return Posterior.of_values(found, _moments_of_all(log.loss[log.come]))


def of_events(log: Log, rows: Rows, absent: float) -> tuple[float, Posterior | None]:
    """What a conversion changes, at most, and [S]: the mean share of that in each state; None where
    all conversions change the same.
    """
    gain = log.loss - absent
    most = float(gain[log.come][np.argmax(np.abs(gain[log.come]))])
    share = gain / most
    if (share[log.come] == 1).all():
        return most, None
    found = np.array([_moments(share[come], np.ones(len(come))) for come, _ in rows])
    return most, Posterior.of_values(found, _moments_of_all(share[log.come]))


def _moments(values: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    """How many values of one weight would say as much, their mean and their mean square."""
    if not len(values):
        return 0.0, 0.0, 0.0
    total = weights.sum()
    count = total**2 / (weights @ weights)
    return count, weights @ values / total, weights @ values**2 / total


def _moments_of_all(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float((values**2).mean())


def concentration_of(log: Log) -> float | None:
    """Of Beta losses that are spread around the means of states as those of the log are; None where
    all are 0 or 1, infinite where all losses of a state are the same.
    """
    losses, state = log.loss[log.come], log.state[log.come]
    if np.isin(losses, (0.0, 1.0)).all():
        return None
    count = np.bincount(state, minlength=log.num_states)
    mean = np.bincount(state, losses, log.num_states) / np.maximum(count, 1)
    squares = float(((losses - mean[state]) ** 2).sum())
    spread = squares / max(len(losses) - int((count > 0).sum()), 1)
    most = float(count @ (mean * (1 - mean))) / len(losses)
    return np.inf if spread < CONSTANT else max(most / spread - 1, LEAST)
