"""Mean losses by a group of rows and a state, with standard errors; and hazards of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LEAST = -800.0  # a logarithm: its exponential is 0, and differences of it are numbers
LIKE = 2.0  # rows of the state that are lent to the variance of a cell


class Cells(NamedTuple):
    """Mean losses [groups, S] of a group of rows and a state, their standard errors, and the
    weight of each group in its state's mean, `pooled` [S]. Where nothing is known of a cell it has
    the mean of its state, an error of 0 and no weight.
    """

    mean: np.ndarray
    error: np.ndarray
    weight: np.ndarray
    pooled: np.ndarray


def mean_losses(losses: np.ndarray, place: np.ndarray, shape: tuple[int, int]) -> Cells:
    """Of losses [rows] and their places among cells. A state without any has the mean of all."""
    count, total, square = (
        np.bincount(place, one, shape[0] * shape[1]).reshape(shape)
        for one in (None, losses, losses**2)
    )
    there = np.maximum(count.sum(0), 1)
    usual_mean = losses.mean() if losses.size else 0.0
    pooled = np.where(count.sum(0) > 0, total.sum(0) / there, usual_mean)
    usual = np.maximum(square.sum(0) / there - pooled**2, 0)
    mean = np.where(count > 0, total / np.maximum(count, 1), pooled)
    own = np.maximum(square - count * mean**2, 0)
    variance = (own + LIKE * usual) / (np.maximum(count - 1, 0) + LIKE)
    error = np.where(count > 0, np.sqrt(variance / np.maximum(count, 1)), 0.0)
    return Cells(mean, error, count / there, pooled)


def converted(
    waited: np.ndarray, event: np.ndarray, place: np.ndarray, state: np.ndarray,
    shape: tuple[int, int],
) -> Cells:  # fmt: skip
    """Shares of rows with an event, when all are followed as long as the last one. The events of a
    cell are held against the hazard that its rows were under.
    """
    hazard = accumulated(waited, event, state)
    survival = np.ones(shape[1])
    np.minimum.at(survival, state, surviving(waited, event, state))
    survival = np.maximum(survival, 0.5 / max(1, state.size))
    count, exposure = (
        np.bincount(place, one, shape[0] * shape[1]).reshape(shape) for one in (event, hazard)
    )
    known = exposure > 0
    safe = np.where(known, exposure, 1.0)
    left = survival ** np.where(known, count / safe, 1.0)
    error = -np.log(survival) * left * np.sqrt(np.maximum(count, 1.0)) / safe
    total = exposure.sum(0)
    weight = exposure / np.where(total > 0, total, 1.0)
    return Cells(1 - left, np.where(known, error, 0.0), weight, 1 - survival)


def accumulated(waited: np.ndarray, worth: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """[rows]: what a row of its stratum was to bring by the end of its wait (of events that are
    worth 1: the hazard of Nelson and Aalen). worth: [rows], what it brought at its end.
    """
    return _within(waited, worth, strata, lambda shares: shares)


def surviving(waited: np.ndarray, event: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """[rows]: the share of rows of the stratum that last longer (Kaplan and Meier)."""
    with np.errstate(divide="ignore"):
        found = _within(waited, event, strata, lambda shares: np.maximum(np.log1p(-shares), LEAST))
    return np.exp(found)


def _within(
    waited: np.ndarray, worth: np.ndarray, strata: np.ndarray, form: Callable[..., np.ndarray]
) -> np.ndarray:
    """[rows]: sums over the times up to the end of the wait, of what is worth there per row that
    has lasted so long, in some form.
    """
    order = np.lexsort((waited, strata))
    time, stratum = waited[order], strata[order]
    first = np.ones(order.size, bool)
    first[1:] = stratum[1:] != stratum[:-1]
    new = first.copy()
    new[1:] |= time[1:] != time[:-1]
    begins, of = np.flatnonzero(new), np.cumsum(new) - 1
    opening = np.flatnonzero(first)
    closing = np.append(opening[1:], order.size)
    own = np.cumsum(first)[begins] - 1
    brought = np.add.reduceat(worth[order].astype(np.float64), begins)
    values = form(brought / (closing[own] - begins))
    whole = np.cumsum(values)
    place = np.flatnonzero(first[begins])
    found = np.empty(order.size)
    found[order] = (whole - (whole[place] - values[place])[own])[of]
    return found
