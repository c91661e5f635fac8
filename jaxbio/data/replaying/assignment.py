"""Were the actions of a log chosen at random, and with which probabilities?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from jaxbio import checks
from jaxbio.data.log import Log

SURELY = 1e-6  # p-values below it are no chance
STRONG = 0.1  # Cramer's V, or by how much too often: what is weaker does little harm
BLOCKS, FEWEST = 10, 5  # parts of a log; rows of the rarest action in each, at least


def probabilities(given: Any, log: Log) -> np.ndarray | None:
    """[rows] of the log: with which probability each row's action was chosen; None: not known.

    given: None, a mapping from labels of actions to numbers, [K], or [rows].
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        missing = [label for label in log.actions if label not in given]
        if missing:
            raise ValueError(
                f"probability must have a number for every action, but {missing[0]!r} is missing"
            )
        given = [given[label] for label in log.actions]
    found = checks.unit_interval("probability", given, 1, "[K] or [rows]")
    if found.min() <= 0:
        raise ValueError(
            f"probability must be above 0, as every row's action was chosen, but entry "
            f"{int(np.argmin(found))} is 0"
        )
    if len(found) == log.num_actions:
        if abs(found.sum() - 1) > SURELY:
            raise ValueError(
                f"probability must sum to 1 over actions, but it sums to {found.sum():.6g}"
            )
        return found[log.action]
    if len(found) != len(log):
        raise ValueError(
            f"probability must have one number per action ({log.num_actions}) or per row of the "
            f"log ({len(log):,}), but it has {len(found):,} (of a column of the table, those in "
            "log.row)"
        )
    return found


def kept(action: np.ndarray, probability: np.ndarray | None, words: Any) -> np.ndarray:
    """bool [rows]: rows of which each action has a fair share, whatever its probability hung on.

    A row is kept with probability (least of all) / (its own). Where the probability is the same in
    all rows of an action nothing is left out: actions take turns in a replay anyway.
    """
    everything = np.ones(len(action), bool)
    if probability is None:
        return everything
    least, most = (find(action, probability) for find in (_least_of, _most_of))
    if np.allclose(least, most, rtol=1e-6):
        return everything
    drawn = np.random.default_rng(words).random(len(action))
    return drawn * probability < probability.min()


def _least_of(action: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = np.full(action.max() + 1, np.inf)
    np.minimum.at(found, action, values)
    return found


def _most_of(action: np.ndarray, values: np.ndarray) -> np.ndarray:
    return -_least_of(action, -values)


def doubts(action: np.ndarray, probability: np.ndarray | None, log: Log) -> list[str]:
    """Sentences where the choice plainly was not random with these probabilities.

    action, probability: of rows in the order of the log. Only what rows tell of each other is
    looked at: a choice that hung on something outside of the table cannot be seen.
    """
    if probability is not None:
        return _off(action, probability, log)
    return [*_drifting(action, log), *_repeated(action)]


def _off(action: np.ndarray, probability: np.ndarray, log: Log) -> list[str]:
    """1 / probability, summed over an action's rows, is the number of all rows on average."""
    rows, actions = len(action), log.num_actions
    sums = np.bincount(action, 1 / probability, actions)
    spread = np.bincount(action, (1 - probability) / probability**2, actions)
    z = (sums - rows) / np.sqrt(np.maximum(spread, 1e-12))
    worst = int(np.argmax(np.abs(z)))
    p, ratio = 2 * stats.norm.sf(abs(z[worst])) * actions, sums[worst] / rows
    if p > SURELY or abs(ratio - 1) < STRONG:
        return []
    return [
        f"action {log.actions[worst]!r} was chosen {ratio:.2g} times as often as probability says: "
        "these are not the probabilities of this log, and what is replayed may be far off"
    ]


def _drifting(action: np.ndarray, log: Log) -> list[str]:
    shares = np.bincount(action, minlength=log.num_actions)
    blocks = min(BLOCKS, int(shares[shares > 0].min()) // FEWEST)
    if blocks < 2:
        return []
    block = np.arange(len(action)) * blocks // len(action)
    table = np.zeros((blocks, log.num_actions))
    np.add.at(table, (block, action), 1)
    table = table[:, shares > 0]
    if table.shape[1] < 2:
        return []
    found = stats.chi2_contingency(table, correction=False)
    strength = np.sqrt(found.statistic / (len(action) * (min(table.shape) - 1)))
    if found.pvalue > SURELY or strength < STRONG:
        return []
    moved = np.ptp(table / table.sum(axis=1, keepdims=True), axis=0)
    most = int(np.argmax(moved))
    label = [one for one, share in zip(log.actions, shares, strict=True) if share][most]
    return [
        f"the shares of actions change during the log (that of {label!r} by {moved[most]:.0%}), so "
        "that actions were not chosen at random with fixed probabilities: if what was chosen hung "
        "on what had been seen, a replay is biased; give probability=, one per row, if it is known"
    ]


def _repeated(action: np.ndarray) -> list[str]:
    """Is the same action chosen again more often than chance has it?"""
    pairs = len(action) - 1
    shares = np.bincount(action) / len(action)
    chance = float((shares**2).sum())
    again = int((action[1:] == action[:-1]).sum())
    often = again / max(1, pairs)
    surely = stats.binom.sf(again - 1, pairs, chance) < SURELY
    if not surely or often < (1 + STRONG) * chance:
        return []
    return [
        f"the action of the row before is chosen again in {often:.0%} of rows, where chance has "
        f"{chance:.0%}: were actions chosen for periods or for persons, not row by row? Then rows "
        "are not independent, and intervals are too narrow"
    ]
