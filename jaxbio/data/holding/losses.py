"""Does what states cost change during a log?"""

from __future__ import annotations

import numpy as np

from jaxbio.data.holding.distance import largest
from jaxbio.data.holding.finding import Effect, Finding
from jaxbio.data.holding.outcomes import Outcomes
from jaxbio.data.holding.periods import Parts
from jaxbio.data.holding.power import reach
from jaxbio.data.holding.scores import compare_groups
from jaxbio.data.holding.words import lasting, percent, short, span

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
    rows = outcomes.in_time if outcomes.kind == "outcomes" else outcomes.even
    cell = log.action[rows].astype(np.int64) * log.num_states + log.state[rows]
    part = parts.of[rows]
    tested = compare_groups(outcomes.scores(rows, cell, outcomes.window), part, cell, rng)
    there = np.unique(part)
    if tested is None or there.size < 2:
        return Finding(NAME, QUESTION, "Too few outcomes came, or all losses of a state are alike.")
    first, last = int(there[0]), int(there[-1])
    until = min(outcomes.window, outcomes.horizon)
    cells = outcomes.cells(rows, part, parts.count, until)
    change = cells.mean[last] - cells.mean[first]
    known = np.asarray((cells.weight[[first, last]] > 0).all(0))
    error = np.where(known, np.hypot(cells.error[first], cells.error[last]), 0.0)
    if not known.any():
        return Finding(NAME, QUESTION, "No state has outcomes in two parts of the log.")
    i, size = largest(change, error, confidence)
    usual = float(np.average(error[known], weights=log.counts.sum(0)[known]))
    detectable = usual * reach(int(known.sum()))
    share = float(log.counts.sum(0)[i] / len(log))
    found = (
        f"State {log.states[i]!r}, which {percent(share)} of the rounds show, costs "
        f"{short(size.value)} {'more' if change[i] > 0 else 'less'} in the last of "
        f"{last - first + 1} parts of the log than in the first ({span(size)}), "
        f"{percent(size.value / stake)} of what lies between actions."
    )
    return Finding(
        NAME, QUESTION, found, REMEDY, _limits(outcomes, parts),
        f"In the average state {short(detectable)} would have been seen in four of five such logs.",
        Effect(size, UNIT, SMALL * stake, max(stake, float(np.ptp(cells.pooled))), detectable),
        tested.p,
        details={
            "by_state": {
                name: {"first": float(cells.mean[first, s]), "last": float(cells.mean[last, s]),
                       "change": float(change[s]), "standard_error": float(error[s])}
                for s, name in enumerate(log.states) if known[s]
            },
            "largest_for": log.states[i],
            "parts": parts.count,
            "rows": int(rows.sum()),
            "window": outcomes.window,
            "permuted": tested.permuted,
        },
    )  # fmt: skip


def _limits(outcomes: Outcomes, parts: Parts) -> str:
    texts = [parts.rhythm]
    if outcomes.window < np.inf:
        texts.append(
            f"Outcomes count that came within {lasting(outcomes.window, outcomes.unit)}, of rows "
            "that were followed as long, so that young rows compare with old ones."
        )
    return " ".join(text for text in texts if text)
