"""Does the loss depend on the action beyond the state? The assumption behind everything."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from jaxbio.data.holding.distance import CELLS, DRAWS, Span, largest, number_of_samples
from jaxbio.data.holding.finding import Effect, Finding
from jaxbio.data.holding.outcomes import Cells, Outcomes
from jaxbio.data.holding.periods import Parts
from jaxbio.data.holding.power import reach
from jaxbio.data.holding.scores import compare_groups
from jaxbio.data.holding.words import percent, short, span
from jaxbio.data.log import Log

NAME = "action beyond state"
QUESTION = "Does the loss depend on the action beyond the state?"
SMALL = 0.1  # of what is at stake: how far actions are apart
LIFT = 0.1  # of the mean loss (or of what is missing to 1): at least that is at stake


def loss_beyond_state(
    outcomes: Outcomes, parts: Parts | None, confidence: float, rng: np.random.Generator
) -> Finding:
    """Do losses differ between actions within states? parts: rows of different parts of the log
    are not compared either; None if they may be, as shares of actions do not change.
    """
    log = outcomes.log
    rows = log.come if outcomes.kind == "outcomes" else np.ones(len(log), bool)
    strata = log.state if parts is None else log.state.astype(np.int64) * parts.count + parts.of
    tested = compare_groups(
        outcomes.scores(rows, strata[rows], np.inf), log.action[rows], strata[rows], rng
    )
    if tested is None:
        return Finding(NAME, QUESTION, "No state has losses that differ.", holds=None)
    found = Beyond(log, outcomes, rows, confidence, rng)
    return Finding(
        NAME, QUESTION, found.sentence(), found.remedy(), _limits(outcomes, parts, log),
        f"A difference of {short(found.detectable)} would have been seen in four of five such logs.",
        Effect(*found.largest, "loss per round that states do not explain, at most over actions",
               SMALL * found.stake, found.stake, found.detectable),
        tested.p, details={**found.details(), "permuted": tested.permuted},
    )  # fmt: skip


def _limits(outcomes: Outcomes, parts: Parts | None, log: Log) -> str:
    texts = []
    if parts is not None:
        texts.append(
            "Shares of actions changed during the log, so that only rows of the same part of it "
            "are compared."
        )
    if outcomes.kind == "outcomes" and not log.come.all():
        texts.append("Outcomes that have not come are taken to be like those that have.")
    return " ".join(texts)


class Beyond:
    """What states leave unexplained, in losses per round.

    direct [K]: mean losses of actions. prices [K]: what their states make of them. bias [K]: the
    difference. stake: how far apart actions are. error [K]: of the bias, by the delta method.
    """

    def __init__(
        self, log: Log, outcomes: Outcomes, rows: np.ndarray, confidence: float,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.actions, self.counts, self.confidence, self.rng = log.actions, log.counts, confidence, rng
        self.cells = outcomes.cells(rows, log.action[rows], log.num_actions, outcomes.horizon)
        self.shares = self.counts / self.counts.sum(1, keepdims=True)
        excess = self.cells.mean - self.cells.pooled
        self.bias = (self.shares * excess).sum(1)
        self.direct = (self.shares * self.cells.mean).sum(1)
        self.prices = self.shares @ self.cells.pooled
        self.error = np.sqrt(_variance(self.shares, self.cells, self.counts, excess))
        self.worst, self.largest = largest(self.bias, self.error, confidence)
        middle = float(self.direct @ self.counts.sum(1)) / len(log)
        self.apart = max(float(np.ptp(self.direct)), float(np.ptp(self.prices)))
        self.stake = max(self.apart, LIFT * min(middle, 1 - middle), 1e-12)
        weights = self.counts.sum(1) / len(log)
        self.detectable = float(weights @ self.error) * reach(log.num_actions)

    @cached_property
    def regret(self) -> Span:
        """Per round, of the action with the least price; the interval is of what the log may be
        true of: losses of cells and mappings that are drawn around the observed ones.
        """
        drawn = np.concatenate(list(self._drawn_regrets()))
        tail = (1 - self.confidence) / 2
        low, high = (float(one) for one in np.quantile(drawn, [tail, 1 - tail]))
        value = float(self.direct[self.trusted] - self.direct[self.best])
        return Span(value, min(low, value), max(high, value))

    def _drawn_regrets(self) -> Any:
        left = number_of_samples(self.counts.size)
        piece = max(1, CELLS // (10 * self.counts.size))
        while left > 0:
            size = (min(left, piece), *self.counts.shape)
            left -= piece
            shares = self.rng.standard_gamma(self.counts + 1 / self.counts.shape[1], size)
            shares /= shares.sum(2, keepdims=True)
            noise = self.cells.error * self.rng.standard_normal(size)
            means = np.clip(self.cells.mean + noise, 0, 1)
            direct = (shares * means).sum(2)
            prices = (shares * (self.cells.weight * means).sum(1, keepdims=True)).sum(2)
            chosen = np.take_along_axis(direct, prices.argmin(1)[:, None], 1)[:, 0]
            yield chosen - direct.min(1)

    @property
    def best(self) -> int:
        return int(np.argmin(self.direct))

    @property
    def trusted(self) -> int:
        """The action that is the best one by its states."""
        return int(np.argmin(self.prices))

    def sentence(self) -> str:
        name, sign = self.actions[self.worst], "more" if self.bias[self.worst] > 0 else "less"
        part = f", {percent(self.largest.value / self.apart)} of the gap between the best and the " \
               f"worst action ({short(self.apart)})" if self.apart else ""  # fmt: skip
        return (
            f"{name!r} costs {short(self.largest.value)} {sign} per round than its states say "
            f"({span(self.largest)}){part}. {self._cost()}"
        )

    def _cost(self) -> str:
        best, trusted = self.actions[self.best], self.actions[self.trusted]
        if self.best == self.trusted:
            return (
                f"By their states and by their own mean losses the best action is the same, "
                f"{best!r}: trusting states costs nothing in the long run (at most "
                f"{short(self.regret.high)} per round)."
            )
        return (
            f"By states the best action is {trusted!r}, by mean losses {best!r}: trusting states "
            f"costs {short(self.regret.value)} per round in the long run ({span(self.regret)})."
        )

    def remedy(self) -> str:
        finer = (
            "make what was shown a part of the state (state=[action column, state column]), or look "
            "for states that tell more"
        )
        if self.best == self.trusted and self.regret.high < SMALL * self.stake:
            return f"states still point at the best action, and may be used; to be exact, {finer}"
        return f"do without states (Thompson sampling, UCB1, DAda-Exp3, Tsallis-INF), or {finer}"

    def details(self) -> dict[str, Any]:
        return {
            "by_action": {
                name: {"mean_loss": float(own), "by_states": float(price), "difference": float(bias),
                       "standard_error": float(error)}
                for name, own, price, bias, error in zip(
                    self.actions, self.direct, self.prices, self.bias, self.error, strict=True)
            },
            "largest_for": self.actions[self.worst],
            "best": self.actions[self.best],
            "best_by_states": self.actions[self.trusted],
            "regret_of_trusting_states": dict(self.regret._asdict()),
            "gap": self.apart,
            "at_stake": self.stake,
        }  # fmt: skip


def _variance(
    shares: np.ndarray, cells: Cells, counts: np.ndarray, excess: np.ndarray
) -> np.ndarray:
    """[K]: of shares . (means - pooled means), by the delta method; all [K, S].

    A mean of action k counts with 1 - weight for k itself, and with -weight for the others.
    """
    square = cells.error**2
    others = (cells.weight**2 * square).sum(0)
    of_means = (shares**2 * (square * (1 - 2 * cells.weight) + others)).sum(1)
    of_shares = (shares * excess**2).sum(1) - (shares * excess).sum(1) ** 2
    return of_means + np.maximum(of_shares, 0) / counts.sum(1)
