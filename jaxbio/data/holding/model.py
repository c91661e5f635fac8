"""Does the model hold? All checks of a log."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxbio import checks
from jaxbio.data.chances import chances
from jaxbio.data.holding.assignment import chosen_at_random
from jaxbio.data.holding.beyond import loss_beyond_state
from jaxbio.data.holding.check import ModelChecks
from jaxbio.data.holding.finding import Finding, judge
from jaxbio.data.holding.lateness import delays_by_loss, delays_by_state
from jaxbio.data.holding.losses import loss_drift
from jaxbio.data.holding.mapping import mapping_drift
from jaxbio.data.holding.outcomes import Outcomes
from jaxbio.data.holding.periods import in_parts
from jaxbio.data.kinds import KINDS, OUTCOMES, kind_of
from jaxbio.data.log import Log

LEVEL = 0.05
CONFIDENCE = 0.95
CHANGING = 0.05  # p-value of shares of actions that do not change


def check_model(
    log: Log, probability: Any = None, level: float = LEVEL, seed: int = 0, *,
    kind: str | None = None,
) -> ModelChecks:  # fmt: skip
    """Does the model of jaxbio hold for a log? Tests with effect sizes, in words.

    Asked is whether the loss depends on the action beyond the state; whether what states cost, or
    what actions show, changes during the log; whether actions were chosen at random; and whether
    delays depend on the state or, if there are several losses, on the loss.

    A check fails only where its difference is no chance, after Holm's correction for the number of
    checks, and may be large enough to matter; where the log is too small to have shown a large one,
    the check says so.

    Args:
      log: of `jb.read_log`.
      probability: with which probability actions were chosen: a mapping from labels to numbers, one
        number per action, or one per row of the log; None where it is not known. Of a column of a
        DataFrame the rows are table.probability.iloc[log.row].
      level: how often at most any check fails of a log for which all of them hold.
      seed: of permutations and intervals; the same seed gives the same answer.
      kind: "outcomes" if every round has one, "conversions" if only events arrive; None finds out.
    """
    if not isinstance(log, Log):
        raise TypeError(f"log must be a Log, as read_log makes one, but got {checks.shown(log)}")
    level = checks.number("level", level, 0, 1, open_low=True, open_high=True)
    kind = kind_of(log) if kind is None else str(checks.choice("kind", kind, KINDS))
    told = chances(probability, log)
    findings = _findings(log, kind, told, checks.integer("seed", seed, 0))
    return ModelChecks(judge(findings, level), len(log), kind, level, CONFIDENCE)


def _findings(log: Log, kind: str, probability: np.ndarray | None, seed: int) -> list[Finding]:
    rng = np.random.default_rng(seed)
    parts, outcomes = in_parts(log), Outcomes(log, kind)
    assigned = chosen_at_random(log, parts, probability, CONFIDENCE, rng)
    changing = assigned.details.get("p_values", {}).get("time", 1.0) < CHANGING
    beyond = loss_beyond_state(outcomes, parts if changing else None, CONFIDENCE, rng)
    asked = kind == OUTCOMES or bool(np.ptp(log.loss[log.come]))
    stake = float(beyond.details.get("at_stake", 1.0))
    return [
        beyond,
        loss_drift(outcomes, parts, stake, CONFIDENCE, rng),
        assigned,
        *([delays_by_loss(outcomes, CONFIDENCE, rng)] if asked else []),
        mapping_drift(log, parts, CONFIDENCE, rng),
        delays_by_state(outcomes, parts, CONFIDENCE, rng),
    ]
