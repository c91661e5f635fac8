"""Does what states cost change during a log?"""

from __future__ import annotations

import numpy as np

from jaxbio.data.holding.cells import Cells
from jaxbio.data.holding.distance import largest
from jaxbio.data.holding.finding import Effect, Finding
from jaxbio.data.holding.outcomes import Outcomes
from jaxbio.data.holding.periods import Parts
from jaxbio.data.holding.power import reach
from jaxbio.data.holding.scores import compare_groups
from jaxbio.data.holding.words import lasting, percent, short, span
from jaxbio.data.kinds import OUTCOMES

NAME = "losses over time"
QUESTION = "Do states cost something else at the end of the log than at its beginning?"
UNIT = "change of the mean loss from the first part to the last, at most over states"
SMALL = 0.1  # of the loss by which actions are apart
REMEDY = (
    "fit to recent rows only, and prefer HindsightExp3 or HindsightTsallis: they price past rounds "
    "anew, while others keep what they once fed to their base"
)


def loss_drift(
    outcomes: Outcomes, parts: Parts, stake: float, confidence: float, rng: np.random.Generator
) -> Finding:
    """Do losses differ between parts, within actions and states? stake: the loss by which actions
    are apart. Rows are those that were followed for as long as all others.
    """
    log = outcomes.log
    rows = outcomes.in_time if outcomes.kind == OUTCOMES else outcomes.even
    cell = log.action[rows].astype(np.int64) * log.num_states + log.state[rows]
    part = parts.of[rows]
    tested = compare_groups(outcomes.scores(rows, cell, outcomes.window), part, cell, rng)
    if tested is None:
        return Finding(NAME, QUESTION, "Too few outcomes came, or all losses of a state are alike.")
    cells = outcomes.cells(rows, part, parts.count, min(outcomes.window, outcomes.horizon))
    there = np.unique(part)
    change = Change(cells, int(there[0]), int(there[-1]))
    if not change.known.any():
        return Finding(NAME, QUESTION, "No state has outcomes in two parts of the log.")
    counts = log.counts.sum(0)
    i, size = largest(change.value, change.error, confidence)
    detectable = change.detectable(counts)
    found = (
        f"{percent(counts[i] / len(log))} of the rounds show state {log.states[i]!r}, which costs "
        f"{short(size.value)} {'more' if change.value[i] > 0 else 'less'} in the last of "
        f"{there.size} parts of the log than in the first ({span(size)}), "
        f"{percent(size.value / stake)} of what lies between actions."
    )
    large = max(stake, float(np.ptp(cells.pooled)))
    return Finding(
        NAME,
        QUESTION,
        found,
        REMEDY,
        limits=_limits(outcomes, parts),
        missed=f"In the average state {short(detectable)} would have been seen in four of five "
        "such logs.",
        effect=Effect(size, UNIT, SMALL * stake, large, detectable),
        p=tested.p,
        details={
            "by_state": change.by_state(log.states),
            "largest_for": log.states[i],
            "parts": there.size,
            "rows": int(rows.sum()),
            "window": outcomes.window,
            "permuted": tested.permuted,
        },
    )


class Change:
    """Of the mean losses of states [S], from one part of a log to another, with standard errors;
    known: bool [S], states with outcomes in both.
    """

    def __init__(self, cells: Cells, first: int, last: int) -> None:
        self.ends = cells.mean[[first, last]]
        self.value = self.ends[1] - self.ends[0]
        self.known = np.asarray((cells.weight[[first, last]] > 0).all(0))
        self.error = np.where(self.known, np.hypot(cells.error[first], cells.error[last]), 0.0)

    def detectable(self, counts: np.ndarray) -> float:
        """In the average state. counts: int [S], rows of states."""
        error = float(np.average(self.error[self.known], weights=counts[self.known]))
        return error * reach(int(self.known.sum()))

    def by_state(self, names: tuple[str, ...]) -> dict[str, dict[str, float]]:
        columns = {"first": self.ends[0], "last": self.ends[1], "change": self.value,
                   "standard_error": self.error}  # fmt: skip
        return {
            names[s]: {about: float(values[s]) for about, values in columns.items()}
            for s in np.flatnonzero(self.known)
        }


def _limits(outcomes: Outcomes, parts: Parts) -> str:
    texts = [parts.rhythm]
    if (outcomes.log.come & ~outcomes.in_time).any():
        texts.append(
            f"Outcomes count that came within {lasting(outcomes.window, outcomes.unit)}, of rows "
            "that were followed as long, so that young rows compare with old ones."
        )
    return " ".join(text for text in texts if text)
