"""What share of rows ever converts, where it is not seen that a row never will.

A row converts with probability q, which is what is asked for, and a conversion takes longer than w
with probability 1 - F(w). A row that has waited for w without one was not going to convert, or has
not yet: that has probability 1 - q F(w). So given F the posterior of q is

    p(q)  q^conversions  product over waiting rows of (1 - q F(w)),

computed on a grid. F is the Kaplan-Meier estimate of rows that share it; what is not known of it
is in the posterior, too, as the mean over draws of F from its own posterior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from jaxbio.data.betas import Betas, Posterior
from jaxbio.data.survival import Curve, curve
from jaxbio.data.waits import Waits

POINTS = 100  # of F, which changes by 1 % between two of them
DRAWS = 32  # of F
NODES = 128  # of q
WIDER = 0.25  # of the data's weight: nodes are spread twice as far as the posterior
SEED = 0


class Steps(NamedTuple):
    """F in few steps. at [points]: where they end. drawn: float64 [draws, points], F there in draws
    from its posterior. curve: the estimate itself.
    """

    at: np.ndarray
    drawn: np.ndarray
    curve: Curve


def posterior(moments: np.ndarray, guess: float) -> Posterior:
    """[S]: of mean and variance [S, 2] of the share that ever converts. guess: of all rows."""
    found = Betas.of_moments(*moments.T)
    ones = np.maximum(found.mean * found.total - guess, 0.0)
    zeros = np.maximum((1 - found.mean) * found.total - (1 - guess), 0.0)
    return Posterior.of_counts(ones, zeros, guess)


def steps(waits: Waits) -> Steps:
    """Of rows that share F. Every factor 1 - h of survival, for an event at which `events` of
    `risk` rows come, is drawn from Beta(risk - events, events): without waiting rows this is the
    Bayesian bootstrap.
    """
    found = curve(*waits)
    place = _places(found)
    survival = np.concatenate([[1.0], found.survival[place]])
    left = found.risk - found.events
    with np.errstate(divide="ignore"):
        spread = np.cumsum(found.events / (left * (found.risk + 1.0)))
    more = np.diff(np.concatenate([[0.0], spread[place]]))
    ratio = survival[1:] / survival[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.where(np.isfinite(more) & (ratio > 0), (1 / ratio - 1) / more - 1, np.inf)
    generator = np.random.default_rng(SEED)
    factors = Betas(*np.broadcast_arrays(ratio, np.maximum(total, 0)))
    every = np.stack([factors.draw(generator) for _ in range(DRAWS)])
    gone = 1 - np.cumprod(every, axis=1)
    return Steps(found.at[place], gone / gone[:, -1:], found)


def _places(found: Curve) -> np.ndarray:
    """Indices of the points at which F is kept; the last is among them."""
    last = len(found.at) - 1
    if last < POINTS:
        return np.arange(last + 1)
    wanted = np.arange(1, POINTS + 1) / POINTS
    came = found.came_by(found.at)
    return np.unique(np.minimum(np.searchsorted(came, wanted), last))


def share(waits: Waits, steps: Steps, guess: float) -> tuple[float, float]:
    """Mean and variance of q. guess: the mean of its prior."""
    came = len(waits.came)
    count, known = _cells(waits.waiting, steps)
    grown = np.pad(steps.drawn, ((0, 0), (1, 0)))
    # Inside of a step F rises as in the estimate.
    share = grown + known * np.diff(grown, axis=1, append=1.0)
    mature = float(share.mean(axis=0) @ count)
    kept = count > 0
    nodes = special.betaincinv(
        guess + WIDER * came, 1 - guess + WIDER * mature, (np.arange(NODES) + 0.5) / NODES
    )
    nodes = np.clip(nodes, 1e-300, 1 - 1e-15)
    ones, zeros = (1 - WIDER) * came, -WIDER * mature
    fixed = ones * np.log(nodes) + zeros * np.log1p(-nodes)
    logs = np.log1p(-nodes[:, None, None] * share[None, :, kept]) @ count[kept]
    weights = special.softmax(fixed[:, None] + logs, axis=0)  # [nodes, draws]
    mean = nodes @ weights
    square = nodes**2 @ weights
    return float(mean.mean()), float(square.mean() - mean.mean() ** 2)


def _cells(waiting: np.ndarray, steps: Steps) -> tuple[np.ndarray, np.ndarray]:
    """[points + 1]: how many have waited for so many steps of F, and how much of the next step they
    have seen on average.
    """
    cell = np.searchsorted(steps.at, waiting, "right")
    size = len(steps.at) + 1
    count = np.bincount(cell, minlength=size)
    sums = np.bincount(cell, steps.curve.came_by(waiting), size)
    ends = np.concatenate([[0.0], steps.curve.came_by(steps.at), [2.0]])
    part = (sums / np.maximum(count, 1) - ends[:-1]) / np.diff(ends)
    return count, np.where(count > 0, np.clip(part, 0, 1), 0.0)
