"""Conversions that take longer than any that a log has seen: how many, and how much longer.

No log shows them, so something must be supposed: the slowest fifth of conversions fades out
exponentially, and goes on to do so after the last one that was seen, though perhaps at another
level: V times as high, with V anywhere from 0 to 2.

- The rate is told by the slowest fifth: a conversion that has been seen to take d took less than
  the age a of its row, so its density is rate exp(-rate d) / (1 - exp(-rate a)), d and a counted
  from where the fifth begins. The prior is flat in the logarithm of the rate.
- V is told by rows that have waited for longer than the last conversion took. If M more conversions
  were to be expected of them with V = 1, the last one was the last with density V exp(-V M). The
  prior of V is flat.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from jaxbio.data.survival import Curve
from jaxbio.data.waits import Waits

SEEN = 0.8  # share of conversions before those that fade out
MOST = 2000  # of these are looked at: the rate is known well enough
RATES = np.geomspace(0.5, 200, 400)  # times the time from the first of these to the last
HIGHEST = 2.0  # of V
BINS = 50  # of ages


class Fading(NamedTuple):
    """rate [draws]; later [draws]: conversions after the last one that was seen, in units of those
    up to it.
    """

    rate: np.ndarray
    later: np.ndarray


def begin_of(found: Curve) -> float:
    """The delay within which four fifths of the conversions came."""
    return found.at[np.searchsorted(found.came_by(found.at), SEEN)]


def fading(waits: Waits, found: Curve, rest: np.ndarray, generator: np.random.Generator) -> Fading:
    """rest [draws]: the share of conversions, up to the last, that came after `begin_of`, drawn."""
    begin, last = begin_of(found), found.at[-1]
    late = np.flatnonzero(waits.came > begin)
    if not late.size:
        return Fading(np.ones(len(rest)), np.zeros(len(rest)))
    rates = RATES / (last - begin)
    some = late[np.linspace(0, late.size - 1, min(late.size, MOST)).astype(int)]
    weights = _log_likelihood(waits.came[some] - begin, waits.age[some] - begin, rates)
    rows = len(waits.came) + len(waits.waiting)
    converted = rows * (1 - found.survival[-1])
    expected = converted * _seen_later(waits, last, rates) / np.expm1(RATES)  # for rest 1
    usual = expected * rest.mean()
    weights += np.log(special.gammainc(2, HIGHEST * usual) / usual**2)
    place = _drawn(special.softmax(weights), generator, len(rest))
    missed = expected[place] * rest
    least = generator.random(len(rest)) * special.gammainc(2, HIGHEST * missed)
    level = special.gammaincinv(2, least) / missed
    return Fading(rates[place], level * rest / np.expm1(RATES[place]))


def _log_likelihood(delay: np.ndarray, age: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """[rates]"""
    seen = np.log(-np.expm1(-np.outer(rates, age))).sum(axis=1)
    return len(delay) * np.log(rates) - rates * delay.sum() - seen


def _seen_later(waits: Waits, last: float, rates: np.ndarray) -> np.ndarray:
    """[rates]: of conversions that come after `last`, the share that would have been seen, if they
    came of all rows alike.
    """
    ages = np.concatenate([waits.age, waits.waiting])
    beyond = ages[ages > last] - last
    if not beyond.size:
        return np.full(len(rates), 1e-6)
    count, edges = np.histogram(beyond, BINS)
    middle = (edges[1:] + edges[:-1]) / 2
    return -np.expm1(-np.outer(rates, middle)) @ count / len(ages)


def _drawn(weights: np.ndarray, generator: np.random.Generator, draws: int) -> np.ndarray:
    """[draws]: places, as evenly spread as can be, in random order."""
    wanted = generator.permutation((np.arange(draws) + 0.5) / draws)
    return np.minimum(np.searchsorted(np.cumsum(weights), wanted), len(weights) - 1)
