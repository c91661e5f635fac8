"""Does the model hold? All checks of a log."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxbio import checks
from jaxbio.data.holding.check import ModelChecks
from jaxbio.data.holding.finding import judge
from jaxbio.data.holding.mapping import mapping_drift
from jaxbio.data.holding.periods import in_parts
from jaxbio.data.log import Log

LEVEL = 0.05
CONFIDENCE = 0.95


def check_model(
    log: Log, probability: Any = None, level: float = LEVEL, seed: int = 0
) -> ModelChecks:
    """Does the model of jaxbio hold for a log? Tests with effect sizes, in words.

    log: of `jb.read_log`. level: how often at most any check says "does not hold" of a log for
    which all of them do. seed: of permutations and intervals; the same seed gives the same answer.
    """
    if not isinstance(log, Log):
        raise TypeError(f"log must be a Log, as read_log makes one, but got {checks.shown(log)}")
    level = checks.number("level", level, 0, 1, open_low=True, open_high=True)
    rng = np.random.default_rng(checks.integer("seed", seed, 0))
    parts = in_parts(log)
    findings = [mapping_drift(log, parts, CONFIDENCE, rng)]
    return ModelChecks(judge(findings, level), len(log), "outcomes", level, CONFIDENCE)
