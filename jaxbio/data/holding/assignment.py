"""Was the action chosen at random, as far as a log can tell?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from jaxbio.data.holding.distance import Span, number_of_samples, without_noise
from jaxbio.data.holding.finding import Effect, Finding
from jaxbio.data.holding.periods import Parts
from jaxbio.data.holding.power import noncentrality
from jaxbio.data.holding.tables import Tested, compare_tables, counted, freedom
from jaxbio.data.holding.words import percent, percents
from jaxbio.data.log import Log

NAME = "random assignment"
QUESTION = "Did the choice of the action hang on anything that the log shows?"
SMALL, LARGE = 0.01, 0.1  # of the rounds, with another action than chance would give
SURELY = 0.05  # p-value of a choice at random, below which it was more even than that
MOST = 1_000_000  # numbers of a table
SAME = 1e-6  # probabilities of an action that differ by less are one
LIMITS = (
    "No log can tell whether the choice hung on something that is not in it, such as who was there."
)
EVEN = (
    "Actions took turns more evenly than chance would have it, as if they were dealt out in blocks "
    "or in rotation, which is as good as chance here."
)
UNIT = "share of rounds with another action than chance would give"
BEFORE = "action before"
VARYING = "Probabilities differ between rows of an action, so that nothing else was tested."
REMEDY = (
    "what actions show and what states cost can be learnt from this log nevertheless, if that does "
    "not hang on the time or the situation in which actions were chosen; a replay is biased: give "
    "the probabilities of the choice if they are known (probability), or rely on simulation"
)


class Tried(NamedTuple):
    """One way to look at it. name: of what the choice hung on, for `details`. said: in a sentence
    that begins with a share of the rounds. size: that share.
    """

    name: str
    said: str
    tested: Tested
    size: Span
    freedom: int


def chosen_at_random(
    log: Log, parts: Parts, probability: np.ndarray | None, confidence: float,
    rng: np.random.Generator,
) -> Finding:  # fmt: skip
    """probability: [rows], with which the action was chosen, or None."""
    fixed = probability is None or _of_actions(log, probability) is not None
    tried = [] if probability is None else [_frequencies(log, probability, confidence, rng)]
    if fixed:
        tried += _independent(log, parts, confidence, rng)
    even = [one for one in tried if _is_even(one, log)]
    left = [one for one in tried if one not in even]
    limits = LIMITS if fixed else f"{VARYING} {LIMITS}"
    details = {
        "p_values": {one.name: one.tested.p for one in tried},
        "shares": {one.name: one.size.value for one in tried},
        "probabilities_given": probability is not None,
        "more_even_than_chance": bool(even),
    }
    if not left:
        said = EVEN if even else "The log is too short to tell."
        holds = True if even else None
        return Finding(NAME, QUESTION, said, limits=limits, holds=holds, details=details)
    first = min(left, key=lambda one: one.tested.p)
    found = f"{percent(first.size.value)} of the rounds ({percents(first.size)}) {first.said}."
    detectable = min(1.0, 0.5 * float(np.sqrt(noncentrality(first.freedom) / len(log))))
    return Finding(
        NAME,
        QUESTION,
        found,
        REMEDY,
        limits=f"{EVEN} {limits}" if even else limits,
        missed=f"A share of {percent(detectable)} would have been seen in four of five such logs.",
        effect=Effect(first.size, UNIT, SMALL, LARGE, detectable),
        p=min(1.0, len(tried) * first.tested.p),
        details=details,
    )


def _of_actions(log: Log, probability: np.ndarray) -> np.ndarray | None:
    """[K], where all rows of an action have the same; 0 where there are none."""
    found = np.zeros(log.num_actions)
    found[log.action] = probability
    return found if np.abs(found[log.action] - probability).max() < SAME else None


def _frequencies(
    log: Log, probability: np.ndarray, confidence: float, rng: np.random.Generator
) -> Tried:
    """Is every action as frequent as its probability says?"""
    known = _of_actions(log, probability)
    counts = log.counts.sum(1)
    if known is None or abs(known.sum() - 1) > SAME:
        return _weighted(log, probability, confidence)
    shares = known / known.sum()
    statistic = ((counts - len(log) * shares) ** 2 / (len(log) * shares)).sum()
    drawn = rng.multinomial(len(log), shares, number_of_samples(counts.size))
    if len(log) * shares.min() >= 5:
        tested = Tested(float(stats.chi2.sf(statistic, counts.size - 1)))
    else:
        again = ((drawn - len(log) * shares) ** 2 / (len(log) * shares)).sum(1)
        tested = Tested((1 + int((again >= statistic).sum())) / (1 + len(again)), permuted=True)
    own = counts / len(log)
    again = rng.multinomial(len(log), own, len(drawn)) / len(log)
    apart, still, more = (
        np.abs(one - shares).sum(-1) / 2 for one in (own, drawn / len(log), again)
    )
    size = without_noise(float(apart), still, more, confidence)
    said = "have another action than its probability says"
    return Tried("probability", said, tested, size, counts.size - 1)


def _weighted(log: Log, probability: np.ndarray, confidence: float) -> Tried:
    """1 / probability is 1 per round on average, added up over the rows of any action."""
    weights = np.zeros((log.num_actions, 2))
    for power in (1, 2):
        weights[:, power - 1] = np.bincount(log.action, probability**-power, log.num_actions)
    rows = len(log)
    mean = weights[:, 0] / rows
    covariance = (np.diag(weights[:, 1] / rows) - np.outer(mean, mean)) / rows
    off = mean - 1
    statistic = float(off @ np.linalg.pinv(covariance, hermitian=True) @ off)
    rank = int(np.linalg.matrix_rank(covariance, hermitian=True))
    share = off * log.counts.sum(1) / rows
    error = np.sqrt(np.diag(covariance)) * log.counts.sum(1) / rows
    value = float(np.abs(share).sum() / 2)
    reach = float(stats.norm.isf((1 - confidence) / 2) * np.sqrt((error**2).sum()) / 2)
    size = Span(value, max(0.0, value - reach), value + reach)
    said = "have another action than its probability says"
    return Tried("probability", said, Tested(float(stats.chi2.sf(statistic, rank))), size, rank)


def _independent(
    log: Log, parts: Parts, confidence: float, rng: np.random.Generator
) -> list[Tried]:
    """Of the time, of the action before, and of the state that was seen before."""
    actions, states = log.num_actions, log.num_states
    nothing = np.zeros(len(log), np.int64)
    looks = [
        ("time", "would have another action if its share had not changed during the log",
         counted(nothing, parts.of, log.action, (1, parts.count, actions))),
        (BEFORE, "would have another action if it did not hang on the action before",
         counted(nothing[1:], log.action[:-1], log.action[1:], (1, actions, actions))),
        ("state before", "would have another action if it did not hang on the state before",
         counted(log.action[:-1], log.state[:-1], log.action[1:], (actions, states, actions))
         if actions * states * actions <= MOST else nothing.reshape(1, 1, -1)),
    ]  # fmt: skip
    tried = []
    for name, said, tables in looks:
        tested = compare_tables(tables, rng)
        if tested is not None:
            size = _apart(tables, confidence, rng)
            tried.append(Tried(name, said, tested, size, freedom(tables)))
    return tried


def _apart(tables: np.ndarray, confidence: float, rng: np.random.Generator) -> Span:
    """How far the shares in groups are from those of their stratum, on average: [strata, groups,
    kinds].
    """
    groups = tables.sum(2)
    there = groups.reshape(-1) > 0
    rows = groups.reshape(-1)[there]
    pooled = tables.sum(1) / np.maximum(tables.sum((1, 2)), 1)[:, None]
    pooled = np.repeat(pooled, tables.shape[1], 0)[there]
    own = tables.reshape(-1, tables.shape[2])[there] / rows[:, None]
    draws = number_of_samples(own.size)

    def measured(shares: np.ndarray) -> np.ndarray:
        return (np.abs(shares - pooled).sum(-1) / 2) @ (rows / rows.sum())

    still, again = (
        measured(rng.multinomial(rows, chances, (draws, rows.size)) / rows[:, None])
        for chances in (pooled, own)
    )
    return without_noise(float(measured(own)), still, again, confidence)


def _is_even(one: Tried, log: Log) -> bool:
    """Is an action followed by itself less often than chance would have it?"""
    if one.name != BEFORE or one.tested.p >= SURELY:
        return False
    shares = log.counts.sum(1) / len(log)
    return bool((log.action[1:] == log.action[:-1]).mean() < (shares**2).sum())
