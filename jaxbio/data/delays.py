"""How late outcomes come, from a log that ends before all of them have.

A round of a log has an outcome that came after so many rounds, or one that has not come yet. The
second kind is censored: it is only known that the delay is longer than the rounds waited so far.
Leaving those rounds out makes delays look short, and counting them as "never" makes conversions
look rare; the Kaplan-Meier estimate does neither.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from jaxbio import checks
from jaxbio.checks import memory
from jaxbio.data.survival import curve
from jaxbio.environment.alias import LONGEST
from jaxbio.environment.delays import NEVER
from jaxbio.environment.empirical import EmpiricalDelay


@dataclass(frozen=True, eq=False, repr=False)
class DelayFit:
    """The distribution of delays that a log tells of, up to the longest delay that it has.

    rounds: int [points], the different delays after which outcomes came. survival: [points], the
    share of outcomes that takes longer (or never comes); low, high: [points], its interval at
    `level`, for each point alone. events: int64 [points], how many came then; risk: int64 [points],
    how many had been waited for as long. came, waiting: numbers of outcomes.

    never: the share that never comes; never_low, never_high: its interval at `level`. This is where
    the survival curve ends, and right only if what has not come after the longest delay of the log
    never comes. A log cannot tell that from outcomes that take longer than any that it has: without
    the assumption the share is anywhere from 0 to never_high. beyond: how many have been waited for
    longer than the longest delay; where it is small there is little behind the assumption.

    expected: of those that are waited for, how many are to be expected to come, under the same
    assumption; the others are those that never will.
    """

    rounds: np.ndarray
    survival: np.ndarray
    low: np.ndarray
    high: np.ndarray
    events: np.ndarray
    risk: np.ndarray
    level: float
    came: int
    waiting: int
    beyond: int
    expected: float

    @property
    def never(self) -> float:
        return float(self.survival[-1])

    @property
    def never_low(self) -> float:
        return float(self.low[-1])

    @property
    def never_high(self) -> float:
        return float(self.high[-1])

    def __repr__(self) -> str:
        never = f"never {self.never:.3g} ({self.never_low:.3g} to {self.never_high:.3g})"
        return (
            f"DelayFit({self.came:,} came after {self.rounds[0]:,} to {self.rounds[-1]:,} rounds, "
            f"{self.waiting:,} wait, {never})"
        )

    def survival_at(self, rounds: Any) -> np.ndarray:
        """The share that takes longer than so many rounds."""
        return _survival_at(rounds, self.rounds, self.survival)

    def law(self, *, conversions: bool = False, later: float = 0.0) -> EmpiricalDelay:
        """For simulation: every loss comes with these delays, or never.

        conversions: of those that come, for a `WindowedDelay`, where the loss says whether anything
        comes at all: theta is then `never` (with absent=1.0), or 1 - `never` (with absent=0.0).
        later: of conversions, the share that takes longer than the longest delay here.
        """
        return EmpiricalDelay.from_survival(_curves([self], conversions, [later])[0])

    def drawn(self, generator: np.random.Generator) -> DelayFit:
        """The same with `survival` drawn from its posterior: the share of those still waited for
        that comes after a delay, n of m, is drawn from Beta(n, m - n). If nothing waits this is the
        Bayesian bootstrap. Intervals stay as they are.
        """
        left = self.risk - self.events
        stay = generator.beta(np.maximum(left, 1), self.events)
        return replace(self, survival=np.cumprod(np.where(left > 0, stay, 0.0)))


def fit_delays(came: Any, waiting: Any = (), *, level: float = 0.95) -> DelayFit:
    """The Kaplan-Meier estimate of delays, with log-log intervals (Greenwood's variance).

    It supposes that when an outcome comes does not depend on when its round was played: neither on
    how old the log is at its end, nor on what else comes.

    Args:
      came: int [n], after how many rounds outcomes came, 0 for the same round. Of a `Log` that is
        delays_in_rounds()[seen_in_rounds]; the others, which came after its last decision or have
        not come, are those that wait.
      waiting: int [m], for how many rounds the others have been waited for until now: an outcome
        with 0 did not come in its own round, of later rounds nothing is known.
      level: of the intervals.
    """
    came = _waits("came", came)
    waiting = np.zeros(0, np.int32) if _is_empty(waiting) else _waits("waiting", waiting)
    level = checks.number("level", level, 0, 1, open_low=True, open_high=True)
    found = stats.ecdf(stats.CensoredData(uncensored=came, right=waiting)).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a survival of 0, see below
        ends = found.confidence_interval(level, method="log-log")
    at, events, risk = curve(came, waiting)
    place = np.searchsorted(found.quantiles, at)
    survival = found.probabilities[place]
    low, high = (side.probabilities[place] for side in (ends.low, ends.high))
    # Of a survival of 0 the variance is 0 / 0: nothing is left, and as much may be as just before.
    low = np.where(np.isnan(low), 0.0, low)
    high = np.minimum.accumulate(np.where(np.isnan(high), 1.0, high))
    beyond = int(np.sum(waiting > at[-1]))
    coming = float(np.sum(1 - survival[-1] / _survival_at(waiting, at, survival)))
    return DelayFit(
        at,
        survival,
        low,
        high,
        events,
        risk,
        level,
        len(came),
        len(waiting),
        beyond,
        expected=coming,
    )


def law_by_state(
    fits: Sequence[DelayFit], *, conversions: bool = False, later: Any = 0.0
) -> EmpiricalDelay:
    """One law per state, from a fit for each; conversions: as in `DelayFit.law`; later: too, or one
    share per state.
    """
    fits = checks.several("fits", fits, "DelayFits")
    for fit in fits:
        if not isinstance(fit, DelayFit):
            raise TypeError(f"fits must be DelayFits, but got {checks.shown(fit)}")
    if not fits:
        raise ValueError("fits must have at least one DelayFit, but got []")
    shares = [later] * len(fits) if checks.is_single(later) else later
    return EmpiricalDelay.from_survival(_curves(fits, conversions, shares))


def _curves(fits: Sequence[DelayFit], conversions: bool, later: Sequence[Any]) -> np.ndarray:
    """[fits, d_max + 1]: the survival of every fit at 0, 1, ...; or of what comes."""
    checks.boolean("conversions", conversions)
    after = checks.unit_interval("later", later, 1, "[S]")
    if after.shape != (len(fits),):
        raise ValueError(f"later must have shape ({len(fits)},), but its shape is {after.shape}")
    if after.any() and not conversions:
        raise ValueError("later is of conversions only: give conversions=True, or leave it out")
    longest = max(int(fit.rounds[-1]) for fit in fits)
    if longest > LONGEST:
        raise ValueError(
            f"a law has a probability for every delay up to the longest, which must be at most "
            f"{LONGEST:,} rounds, but an outcome of the fit came after {longest:,}: is it a word "
            "for what has not come? Then give it as waiting; otherwise count in wider rounds"
        )
    memory.refuse_table(
        f"a law of {len(fits)} states with delays up to {longest:,}",
        len(fits) * (longest + 1), "wider rounds",
    )  # fmt: skip
    rounds = np.arange(1 + longest)
    curves = np.stack([fit.survival_at(rounds) for fit in fits])
    if not conversions:
        return curves
    never = np.array([[fit.never] for fit in fits])
    coming = np.maximum(curves - never, 0) / (1 - never)
    return after[:, None] + (1 - after[:, None]) * coming


def _survival_at(rounds: Any, at: np.ndarray, survival: np.ndarray) -> np.ndarray:
    place = np.searchsorted(at, np.asarray(rounds), side="right")
    return np.concatenate([[1.0], survival])[place]


def _is_empty(value: Any) -> bool:
    listed = isinstance(value, list | tuple) and len(value) == 0
    return listed or getattr(value, "shape", None) == (0,)


def _waits(name: str, value: Any) -> np.ndarray:
    found = checks.integers(name, value, 1, "[n]", high=NEVER)
    if not isinstance(found, np.ndarray):
        raise TypeError(f"{name} must have values, but got a tracer")
    return found
