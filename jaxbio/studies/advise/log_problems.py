"""The problems that a log leaves possible: draws from the posterior of what it does not tell."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np

from jaxbio.data.fitted import Fit
from jaxbio.environment.empirical import EmpiricalDelay
from jaxbio.environment.environment import Environment
from jaxbio.environment.mappings import AlternatingMapping
from jaxbio.environment.windowed import WindowedDelay
from jaxbio.studies.advise.problems import CHANGING, STATIONARY
from jaxbio.studies.advise.turns import Turns

LARGE = 1 << 12  # rounds: laws of longer delays are put into smaller tables
RANDOM, LOGGED = "choosing at random", "choosing as in the log"


class LogProblems:
    """Draws, by number. seed: of all of them; first: rounds before a mapping that changes does so.

    costs: number -> kind -> [K], what each action costs on average over the horizon, of every
    problem that was drawn.
    """

    def __init__(self, fit: Fit, turns: Turns, horizon: int, seed: int) -> None:
        self.fit, self.turns, self.horizon, self.seed = fit, turns, horizon, seed
        self.first = max(1, min(len(fit.log), horizon) // 2)
        self.costs: dict[int, dict[str, np.ndarray]] = {}
        self.law: tuple[Any, Any] | None = None  # of the first draw: as it is, and in a small table

    @property
    def kinds(self) -> tuple[str, ...]:
        return (STATIONARY, CHANGING) if self.turns.any else (STATIONARY,)

    def draw(self, number: int) -> dict[str, Environment]:
        """kind -> problem; mappings have arrays of one form, so that one program plays both."""
        words = np.random.SeedSequence([self.seed, number]).generate_state(1)
        drawn = self.fit.sample(int(words[0] >> 1))
        P, losses, delays = drawn.mapping.P, drawn.losses, self._delays(drawn.delays)
        if self.turns.any:
            made = {STATIONARY: [P, P], CHANGING: self.turns.applied(P)}
            mappings = {kind: AlternatingMapping(one, first=self.first)
                        for kind, one in made.items()}  # fmt: skip
        else:
            mappings = {STATIONARY: drawn.mapping}
        found = {kind: Environment(one, losses, delays) for kind, one in mappings.items()}
        self.costs[number] = {kind: self._costs(env) for kind, env in found.items()}
        return found

    def _costs(self, env: Environment) -> np.ndarray:
        totals = np.asarray(env.mapping.totals(np.asarray(env.losses.theta), self.horizon))
        return totals if isinstance(env.mapping, AlternatingMapping) else totals * self.horizon

    def _delays(self, law: Any) -> Any:
        """The same law in a small table. Draws that have that of the first one share it."""
        inner = law.law if isinstance(law, WindowedDelay) else law
        if not isinstance(inner, EmpiricalDelay) or inner.longest() < LARGE:
            return law
        if self.law is not None and np.array_equal(self.law[0].cells, inner.cells):
            return self.law[1]
        windowed = isinstance(law, WindowedDelay)
        rough = inner.coarser(edges=[min(law.window, inner.longest())] if windowed else [])
        made = dataclasses.replace(law, law=rough) if windowed else rough
        self.law = self.law or (inner, made)
        return made

    @cached_property
    def best_looking(self) -> int:
        """The action with the least mean loss by the log."""
        return int(np.argmin(self.fit.mapping.mean @ self.fit.losses.mean))

    @cached_property
    def always(self) -> str:
        """What playing it all the time is called."""
        return f"always {self.fit.log.actions[self.best_looking]}"

    def yardsticks(self, kind: str, numbers: list[int]) -> dict[str, np.ndarray]:
        """name -> expected regret [numbers] of whoever does not learn, on these problems."""
        costs = np.stack([self.costs[number][kind] for number in numbers])
        ahead = costs - costs.min(axis=1, keepdims=True)
        shares = self.fit.log.counts.sum(axis=1) / len(self.fit.log)
        return {
            RANDOM: ahead.mean(axis=1),
            LOGGED: ahead @ shares,
            self.always: ahead[:, self.best_looking],
        }
