"""What share of rows ever converts, where nobody sees that a row never will.

A row converts with probability q, which is asked for, and a conversion has come after w with
probability F(w). A row that has waited for w without one will have none, or has not had it yet:
together that has probability 1 - q F(w). Given F the posterior of q is therefore

    prior(q)  q^conversions  product over waiting rows of (1 - q F(w)),

which is computed on a grid. F is the Kaplan-Meier estimate from all rows that share it. What is not
known of F counts too: the posterior of q is the mean over draws of F from its own posterior.

Conversions that take longer than any that was seen belong to F as well (see `fading`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from jaxbio.data.betas import Betas, Posterior
from jaxbio.data.fading import begin_of, fading
from jaxbio.data.survival import Curve, curve
from jaxbio.data.waits import Waits

POINTS = 100  # of F: it rises by 1 % from one to the next
DRAWS = 64  # of F
NODES = 128  # of q
WIDER = 0.25  # of the data's weight: nodes are spread twice as far as the posterior
STEP = 1e-3  # of a difference quotient
BEYOND = 5  # points of F after the last conversion
SEED = 0


class Law(NamedTuple):
    """F in few points. at [points]: delays. drawn [draws, points]: F there, in draws. curve: the
    estimate up to the last conversion. unseen: the share of conversions that take longer.
    """

    at: np.ndarray
    drawn: np.ndarray
    curve: Curve
    unseen: float


def law(waits: Waits) -> Law:
    """Of rows that share F. At every delay d at which n of m rows convert, the share that does not
    is drawn from Beta(m - n, n): this is the Bayesian bootstrap, if no rows wait.
    """
    found = curve(waits.came, waits.waiting)
    place = _places(found)
    generator = np.random.default_rng(SEED)
    factors = _factors(found, place)
    gone = 1 - np.cumprod([factors.draw(generator) for _ in range(DRAWS)], axis=1)
    drawn, at, last = gone / gone[:, -1:], found.at[place], found.at[-1]
    rest = 1 - drawn[:, np.searchsorted(at, begin_of(found), "right") - 1]
    rate, later = fading(waits, found, rest, generator)
    beyond = np.linspace(0, max(waits.waiting.max(initial=last) - last, 0), BEYOND + 1)[1:]
    if not beyond.any():
        beyond = beyond[:0]
    unseen = (later / (1 + later))[:, None]
    more = 1 - unseen * np.exp(-np.outer(rate, beyond))
    points = np.hstack([drawn * (1 - unseen), more])
    return Law(np.append(at, last + beyond), points, found, float(unseen.mean()))


def _places(found: Curve) -> np.ndarray:
    """[points]: which points of the curve are kept; the last is one of them."""
    size = len(found.at)
    if size <= POINTS:
        return np.arange(size)
    wanted = np.arange(1, POINTS + 1) / POINTS
    return np.unique(np.minimum(np.searchsorted(found.came_by(found.at), wanted), size - 1))


def _factors(found: Curve, place: np.ndarray) -> Betas:
    """[points]: of survival, from one point that is kept to the next. Of several events in between
    the squared relative errors add up.
    """
    survival = np.append(1.0, found.survival[place])
    left = found.risk - found.events
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.cumsum(found.events / (left * (found.risk + 1.0)))[place]
        mean = survival[1:] / survival[:-1]
        total = (1 / mean - 1) / np.diff(errors, prepend=0.0) - 1
    return Betas(mean, np.where(mean > 0, np.maximum(total, 0.0), np.inf))


def posterior(states: list[Waits], laws: list[Law], guess: float) -> Posterior:
    """[S]: of the share that ever converts. laws [S]: of each state. guess: the share of all rows
    that has converted.
    """
    moments = np.array([_moments(*each, guess) for each in zip(states, laws, strict=True)])
    found = Betas.of_moments(*moments.T)
    ones = found.mean * found.total - guess  # as many rows would say as much
    zeros = (1 - found.mean) * found.total - (1 - guess)
    return Posterior.of_counts(np.maximum(ones, 0.0), np.maximum(zeros, 0.0), guess)


def _moments(waits: Waits, law: Law, guess: float) -> tuple[float, float]:
    """Mean and variance of q, with the prior Beta(guess, 1 - guess).

    Nodes are quantiles of a Beta distribution like the posterior, and wider: so the grid is fine
    where it has to be, and weights have no poles.
    """
    came, (count, share) = len(waits.came), _seen(waits.waiting, law)
    ones, zeros = _near(came, count, share.mean(axis=0), guess)
    nodes = special.betaincinv(ones, zeros, (np.arange(NODES) + 0.5) / NODES)
    nodes = np.clip(nodes, 1e-300, 1 - 1e-15)
    logs = np.log1p(-nodes[:, None, None] * share) @ count
    more = (came + guess - ones) * np.log(nodes) + (1 - guess - zeros) * np.log1p(-nodes)
    weights = special.softmax(logs + more[:, None], axis=0)  # [nodes, draws]
    mean = (nodes @ weights).mean()
    return float(mean), float((nodes**2 @ weights).mean() - mean**2)


def _seen(waiting: np.ndarray, law: Law) -> tuple[np.ndarray, np.ndarray]:
    """[cells], [draws, cells]: rows that wait, by how many points of F they have passed, and F of
    what they have waited for. Between two points it rises as in the estimate, on average.
    """
    cell, size = np.searchsorted(law.at, waiting, "right"), len(law.at) + 1
    count = np.bincount(cell, minlength=size)
    step = np.diff(law.curve.came_by(law.at), prepend=0.0, append=1.0)
    begins = np.append(0.0, law.curve.came_by(law.at))
    grown = np.bincount(cell, law.curve.came_by(waiting), size) / np.maximum(count, 1)
    part = np.where(step > 0, (grown - begins) / np.where(step > 0, step, 1.0), 0.5)
    part = np.where(count > 0, part, 0.0)
    drawn = np.pad(law.drawn, ((0, 0), (1, 0)))
    share = drawn + part * np.diff(drawn, axis=1, append=drawn[:, -1:])
    return count[count > 0], share[:, count > 0]


def _near(came: int, count: np.ndarray, share: np.ndarray, guess: float) -> tuple[float, float]:
    """Parameters of a Beta distribution like the posterior of q, but wider: at the mode of the
    logit of q it has the same slope, and a quarter of the curvature.
    """

    def slope(logit: float) -> float:
        q = special.expit(logit)
        rest = float(count @ (share / (1 - q * share)))
        return (came + guess) * (1 - q) - (1 - guess) * q - q * (1 - q) * rest

    mode = float(optimize.brentq(slope, -700, 30))  # pyright: ignore[reportArgumentType]
    q = special.expit(mode)
    total = (slope(mode - STEP) - slope(mode + STEP)) / (2 * STEP * q * (1 - q))
    total = WIDER * max(total, 0.0)
    return q * total + (1 - WIDER) * guess, (1 - q) * total + (1 - WIDER) * (1 - guess)
