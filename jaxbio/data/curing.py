"""What share of rows ever converts, where nobody sees that a row never will.

A row converts with probability q, which is asked for, and a conversion has come after w with
probability F(w). A row that has waited for w without one will have none, or has not had it yet:
together that has probability 1 - q F(w). Given F the posterior of q is therefore

    prior(q)  q^conversions  product over waiting rows of (1 - q F(w)),

which is computed on a grid. F is the Kaplan-Meier estimate from all rows that share it. What is not
known of F counts too: the posterior of q is the mean over draws of F from its own posterior.

No log shows conversions that take longer than it is long. Their share is extrapolated: the slowest
fifth of conversions is taken to fade out exponentially. As that is a guess, draws have from nothing
to twice as much, evenly spread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from jaxbio.data.betas import Betas, Posterior
from jaxbio.data.survival import Curve, curve
from jaxbio.data.waits import Waits

POINTS = 100  # of F: it rises by 1 % from one to the next
DRAWS = 64  # of F
NODES = 128  # of q
WIDER = 0.25  # of the data's weight: nodes are spread twice as far as the posterior
STEP = 1e-3  # of a difference quotient
FADING = 0.8  # share of conversions before those that fade out
SEED = 0
# Of an exponential distribution that is cut off at 1, by its rate: the mean. No slower one than
# the first: of it as much is beyond 1 as there is a half more before.
RATES = np.geomspace(0.5, 700, 1000)
MEANS = 1 / RATES - 1 / np.expm1(RATES)


class Law(NamedTuple):
    """F in few points. at [points]: delays. drawn [draws, points]: F there, in draws. curve: its
    estimate, in all points. unseen: the share of conversions that take longer than the log is long.
    """

    at: np.ndarray
    drawn: np.ndarray
    curve: Curve
    unseen: float


def law(waits: Waits) -> Law:
    """Of rows that share F. At every delay d at which n of m rows convert, the share that does not
    is drawn from Beta(m - n, n): this is the Bayesian bootstrap, if no rows wait.
    """
    found = curve(*waits)
    place = _places(found)
    generator = np.random.default_rng(SEED)
    factors = _factors(found, place)
    gone = 1 - np.cumprod([factors.draw(generator) for _ in range(DRAWS)], axis=1)
    drawn = gone / gone[:, -1:]
    end = max(found.at[-1], waits.waiting.max(initial=0))
    spread = generator.permutation(2 * (np.arange(DRAWS) + 0.5) / DRAWS)
    unseen = spread * _fading(found, place, drawn, end)
    drawn /= 1 + unseen[:, None]
    return Law(found.at[place], drawn, found, float((unseen / (1 + unseen)).mean()))


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


def _fading(found: Curve, place: np.ndarray, drawn: np.ndarray, end: float) -> np.ndarray:
    """[draws]: how many conversions take longer than `end`, in units of those that do not.

    drawn: F at the points that are kept, 1 at the last. Of conversions beyond `begin` the mean
    delay tells how fast they become fewer, in units of the time from there to the end.
    """
    begin = found.at[np.searchsorted(found.came_by(found.at), FADING)]
    late = found.at[place] > begin
    mass = np.diff(drawn, prepend=0.0)[:, late]
    rest = mass.sum(axis=1)
    beyond = (found.at[place][late] - begin) / max(end - begin, 1e-300)
    mean = mass @ beyond / np.maximum(rest, 1e-300)
    rate = np.interp(mean, MEANS[::-1], RATES[::-1])
    return rest / np.expm1(rate)


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
    ends = np.concatenate([[0.0], law.curve.came_by(law.at), [2.0]])
    grown = np.bincount(cell, law.curve.came_by(waiting), size) / np.maximum(count, 1)
    part = np.where(count > 0, (grown - ends[:-1]) / np.diff(ends), 0.0)
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
