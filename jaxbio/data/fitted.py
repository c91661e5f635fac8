"""What `jb.fit` finds in a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jaxbio import checks
from jaxbio.data import fit_text
from jaxbio.data.betas import Posterior, Table
from jaxbio.data.delays import DelayFit, law_by_state
from jaxbio.data.holding.check import ModelChecks
from jaxbio.data.holding.model import check_model
from jaxbio.data.kinds import CONVERSIONS
from jaxbio.data.log import Log
from jaxbio.environment.delays import NEVER, FixedDelay
from jaxbio.environment.environment import Environment
from jaxbio.environment.losses import BernoulliLosses, BetaLosses, ConstantLosses, EventLosses
from jaxbio.environment.mappings import StochasticMapping
from jaxbio.environment.windowed import WindowedDelay


class Law(NamedTuple):
    """Delays in rounds of the states that share them. source: the states whose rows tell of them.
    unseen: the share of conversions that take longer than the log is long.
    """

    states: np.ndarray
    source: np.ndarray
    fit: DelayFit
    unseen: float


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """The problem behind a log, and what the log does not know about it; `jb.fit` makes one.

    kind: "outcomes" or "conversions". level: of intervals. width: decisions that make a round.
    window: for how many rounds conversions are waited for; None where every decision has an
    outcome.
    laws: delays in rounds, one law for all states, or several, each with its states. shares: the
    posterior [S] of mean losses, or of the shares that ever convert.
    concentration: of the Beta losses of `environment`; None if all losses are 0 or 1, infinite if
    each state has a single loss.
    Of conversions: absent, the loss of a row without one; most, by how much a conversion changes
    it, at most; gains: the posterior [S] of the mean share of that, None if all change the same.
    """

    log: Log
    kind: str
    level: float
    width: int
    window: int | None
    laws: tuple[Law, ...]
    shares: Posterior
    concentration: float | None = None
    absent: float = 0.0
    most: float = 1.0
    gains: Posterior | None = None

    @cached_property
    def mapping(self) -> Table:
        """[K, S]: probabilities of states, by action: means and intervals of Dirichlet posteriors,
        state by state. The interval of a single entry holds with at least `level`; all K S of them
        together hold less often.
        """
        counts = self.log.counts
        rows = counts.sum(axis=1, keepdims=True)
        return Posterior.of_counts(counts, rows - counts, self._states_of_all).table(self.level)

    @cached_property
    def losses(self) -> Table:
        """[S]: mean losses.

        Of outcomes: means of those that have come, each weighed by the Kaplan-Meier estimate of its
        state. Where all losses are 0 or 1 posteriors are Beta distributions; otherwise they are
        Beta distributions with the moments of the Bayesian bootstrap. A state without an outcome
        has the mean of all, and an interval from 0 to 1.

        Of conversions: absent + q (event - absent), where the posterior of q, the share of the
        state that ever converts, weighs that rows without a conversion may still get one; event is
        the loss of a conversion. Conversions that take longer than the log is long are
        extrapolated (see `unseen` of a law).
        """
        found = self.shares if self.gains is None else self.shares.times(self.gains)
        mean, low, high = (self.absent + self.most * one for one in found.table(self.level))
        return Table(mean, *((low, high) if self.most > 0 else (high, low)))

    @property
    def delays(self) -> tuple[DelayFit, ...]:
        """In rounds: one for all states, or one per state [S]."""
        return tuple(law.fit for law in self._by_state)

    @cached_property
    def checks(self) -> ModelChecks:
        """Does the model hold? The checks of `check_model`, made when they are first asked for."""
        return check_model(self.log, kind=self.kind)

    def environment(self, window: int | None = None) -> Environment:
        """The problem at the means of the posterior. window: for how many rounds conversions are
        waited for, in place of the fit's own.
        """
        gains = None if self.gains is None else self.gains.middle.mean
        return self._environment(
            self.mapping.mean, self.shares.middle.mean, gains, self._by_state, window
        )

    def sample(self, seed: int, window: int | None = None) -> Environment:
        """A problem drawn from the posterior: mapping, mean losses and delays, independently."""
        generator = np.random.default_rng(checks.integer("seed", seed, 0))
        weights = generator.standard_gamma(self.log.counts + self._states_of_all)
        shares = self.shares.middle.draw(generator)
        gains = None if self.gains is None else self.gains.middle.draw(generator)
        drawn = [law._replace(fit=law.fit.drawn(generator)) for law in self.laws]
        mapping = weights / weights.sum(axis=1, keepdims=True)
        return self._environment(mapping, shares, gains, self._spread_out(drawn), window)

    @property
    def _states_of_all(self) -> np.ndarray:
        """[S]: shares of all rows."""
        return self.log.counts.sum(axis=0) / len(self.log)

    @property
    def _by_state(self) -> list[Law]:
        return self._spread_out(self.laws)

    def _spread_out(self, laws: Sequence[Law]) -> list[Law]:
        """One law for all states, or one for each."""
        if len(laws) == 1:
            return list(laws)
        place = {int(s): law for law in laws for s in law.states}
        return [place[s] for s in range(self.log.num_states)]

    def _environment(
        self, mapping: np.ndarray, shares: np.ndarray, gains: np.ndarray | None,
        laws: list[Law], window: int | None,
    ) -> Environment:  # fmt: skip
        delays = self._law(laws)
        if self.kind == CONVERSIONS:
            given = self.window if window is None else checks.integer("window", window, 0, NEVER)
            delays = WindowedDelay(delays, given, self.absent)
        elif window is not None:
            raise ValueError(
                "window is for a log of conversions, but in this one every decision has an "
                f"outcome some time: leave it out, but got {checks.shown(window)}"
            )
        return Environment(StochasticMapping(mapping), self._losses(shares, gains), delays)

    def _losses(self, shares: np.ndarray, gains: np.ndarray | None) -> Any:
        if self.kind == CONVERSIONS:
            if gains is None and abs(self.most) == 1:
                return BernoulliLosses(self.absent + self.most * shares)
            value = self.absent + self.most * (np.ones_like(shares) if gains is None else gains)
            return EventLosses(shares, np.clip(value, 0, 1), self.absent)
        if self.concentration is None:
            return BernoulliLosses(shares)
        if np.isinf(self.concentration):
            return ConstantLosses(shares)
        return BetaLosses(shares, self.concentration)

    def _law(self, laws: list[Law]) -> Any:
        late = self.kind == CONVERSIONS
        fits, unseen = [law.fit for law in laws], [law.unseen for law in laws]
        if len(fits) > 1:
            return law_by_state(fits, conversions=late, later=unseen)
        (only,) = fits
        if len(only.rounds) == 1 and (late or only.never == 0) and unseen[0] < 2.0**-32:
            return FixedDelay(int(only.rounds[0]))
        return only.law(conversions=late, later=unseen[0])

    def summary(self) -> str:
        """What is found, in words and tables."""
        return fit_text.as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The numbers of the summary, for JSON."""
        return fit_text.as_dict(self)

    @property
    def notes(self) -> list[str]:
        """Sentences on what the log does not tell, or tells little of."""
        return fit_text.notes(self)

    def __repr__(self) -> str:
        return fit_text.in_short(self)
