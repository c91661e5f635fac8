"""What `jb.fit` finds in a log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jaxbio import checks
from jaxbio.data import fit_text
from jaxbio.data.betas import Posterior, Table
from jaxbio.data.delays import DelayFit, law_by_state
from jaxbio.data.kinds import CONVERSIONS
from jaxbio.data.log import Log
from jaxbio.environment.delays import NEVER, FixedDelay
from jaxbio.environment.environment import Environment
from jaxbio.environment.losses import BernoulliLosses, BetaLosses, ConstantLosses
from jaxbio.environment.mappings import StochasticMapping
from jaxbio.environment.windowed import WindowedDelay


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """The problem behind a log."""

    log: Log
    kind: str
    level: float
    width: int
    window: int | None
    delays: tuple[DelayFit, ...]
    rows: np.ndarray
    values: Posterior
    event: float
    absent: float
    concentration: float | None

    @cached_property
    def mapping(self) -> Table:
        """[K, S]: the probabilities of states, by action."""
        counts = self.log.counts
        every = counts.sum(axis=1, keepdims=True)
        guess = counts.sum(axis=0) / len(self.log)
        return Posterior.of_counts(counts, every - counts, guess).table(self.level)

    @cached_property
    def losses(self) -> Table:
        """[S]: mean losses."""
        found = self.values.table(self.level)
        mean, low, high = (self.absent + (self.event - self.absent) * one for one in found)
        return Table(mean, np.minimum(low, high), np.maximum(low, high))

    def environment(self, window: int | None = None) -> Environment:
        """The problem at the posterior's means."""
        return self._environment(self.mapping.mean, self.values.middle.mean, self.delays, window)

    def sample(self, seed: int, window: int | None = None) -> Environment:
        """A problem drawn from the posterior."""
        generator = np.random.default_rng(checks.integer("seed", seed, 0))
        drawn = generator.standard_gamma(self.rows)
        values = self.values.middle.draw(generator)
        return self._environment(
            drawn / drawn.sum(axis=1, keepdims=True), values, self.delays, window
        )

    def _environment(
        self, P: np.ndarray, values: np.ndarray, delays: tuple[DelayFit, ...], window: int | None
    ) -> Environment:
        theta = np.clip(self.absent + (self.event - self.absent) * values, 0, 1)
        return Environment(StochasticMapping(P), self._losses(theta), self._delays(delays, window))

    def _losses(self, theta: np.ndarray) -> Any:
        if self.concentration is None:
            return BernoulliLosses(theta)
        if np.isinf(self.concentration):
            return ConstantLosses(theta)
        return BetaLosses(theta, self.concentration)

    def _delays(self, delays: tuple[DelayFit, ...], window: int | None) -> Any:
        late = self.kind == CONVERSIONS
        if not late and window is not None:
            raise ValueError(
                "window is for a log of conversions, but this one has outcomes of every round: "
                f"leave it out, but got {checks.shown(window)}"
            )
        law = self._law(delays)
        if not late:
            return law
        given = self.window if window is None else checks.integer("window", window, 0, NEVER)
        return WindowedDelay(law, given, self.absent)

    def _law(self, delays: tuple[DelayFit, ...]) -> Any:
        late = self.kind == CONVERSIONS
        first = delays[0]
        if len(delays) > 1:
            return law_by_state(delays, conversions=late)
        if len(first.rounds) == 1 and (late or first.never == 0):
            return FixedDelay(int(first.rounds[0]))
        return first.law(conversions=late)

    def summary(self) -> str:
        """What is found, in words and tables."""
        return fit_text.as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return fit_text.as_dict(self)

    def __repr__(self) -> str:
        return fit_text.in_short(self)
