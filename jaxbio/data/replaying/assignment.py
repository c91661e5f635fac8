"""Were the actions of a log chosen at random, and which of its rows make that fair?"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxbio.data.holding.assignment import SAME, chosen_at_random
from jaxbio.data.holding.finding import judge
from jaxbio.data.holding.periods import in_parts
from jaxbio.data.log import Log

SURELY = 1e-3  # p-value of what is no chance
CONFIDENCE = 0.95


def doubts(log: Log, probability: np.ndarray | None) -> list[str]:
    """Where the choice plainly was not random: what hung on something, and what to do about it.

    probability: [rows], or None.
    """
    rng = np.random.default_rng(0)
    finding = chosen_at_random(log, in_parts(log), probability, CONFIDENCE, rng)
    (check,) = judge([finding], SURELY)
    if check.holds is not False or check.low is None or check.small is None:
        return []
    if check.low <= check.small:
        return []
    return [f"actions were not chosen at random: {check.sentence} What to do: {check.remedy}"]


def fair(action: np.ndarray, probability: np.ndarray | None, words: Any) -> np.ndarray:
    """bool [rows]: rows of which each action has a fair share, whatever its probability hung on.

    A row is kept with probability (the least of all) / (its own). Where an action's probability is
    the same in all of its rows nothing is left out: that some actions have more rows than others
    does no harm.

    probability: [rows], or None; words: a seed.
    """
    everything = np.ones(len(action), bool)
    if probability is None:
        return everything
    order = np.argsort(action, kind="stable")
    ends = np.flatnonzero(np.diff(action[order], prepend=-1))
    own = probability[order]
    least, most = np.minimum.reduceat(own, ends), np.maximum.reduceat(own, ends)
    if (most - least).max() < SAME:
        return everything
    drawn = np.random.default_rng(words).random(len(action))
    return drawn * probability < probability.min()
