"""Do actions show other states at the end of a log than at its beginning?"""

from __future__ import annotations

import numpy as np

from jaxbio.data.holding.distance import Span, number_of_samples, without_noise
from jaxbio.data.holding.finding import Effect, Finding
from jaxbio.data.holding.periods import Parts
from jaxbio.data.holding.power import noncentrality
from jaxbio.data.holding.tables import compare_tables, counted, freedom
from jaxbio.data.holding.words import percent, percents
from jaxbio.data.log import Log

NAME = "mapping over time"
QUESTION = "Do actions show other states at the end of the log than at its beginning?"
SMALL, LARGE = 0.02, 0.3  # of the rounds
REMEDY = (
    "states are seen at once, so that this is no reason to do without them; prefer a learner that "
    "forgets (StateThompson or HindsightExp3 with discount=0.999), and fit to recent rows only"
)


def mapping_drift(log: Log, parts: Parts, confidence: float, rng: np.random.Generator) -> Finding:
    """Chi-square of state by part within actions; the effect is from the first part to the last."""
    shape = (log.num_actions, parts.count, log.num_states)
    tables = counted(log.action, parts.of, log.state, shape)
    tested = compare_tables(tables, rng)
    ends = tables[:, [0, parts.last]]
    both = ends.sum(2).min(1) > 0
    if tested is None or not both.any():
        if log.num_states == 1:
            return Finding(NAME, QUESTION, "There is a single state.", holds=True)
        said = "No action was shown in the first part of the log and in the last one."
        return Finding(NAME, QUESTION, said)
    size, each = moved(ends[both], log.counts.sum(1)[both], confidence, rng)
    names = [log.actions[i] for i in np.flatnonzero(both)]
    most = int(np.argmax(each))
    named = f", most of all {names[most]!r} ({percent(each[most])})" if each[most] > 0 else ""
    detectable = _detectable(freedom(tables), log.counts[both], parts.count)
    found = (
        f"{percent(size.value)} of the rounds ({percents(size)}) show another state in the last of "
        f"{parts.count} parts of the log than in the first{named}."
    )
    effect = Effect(size, "share of rounds with another state", SMALL, LARGE, detectable)
    return Finding(
        NAME, QUESTION, found, REMEDY, limits=parts.rhythm,
        missed=f"A change of {percent(detectable)} would have been seen in four of five such logs.",
        effect=effect, p=tested.p,
        details={"parts": parts.count, "permuted": tested.permuted,
                 "by_action": {one: float(own) for one, own in zip(names, each, strict=True)}},
    )  # fmt: skip


def moved(
    ends: np.ndarray, weights: np.ndarray, confidence: float, rng: np.random.Generator
) -> tuple[Span, np.ndarray]:
    """The share of rounds that show another state in one part than in another, over all actions and
    of each [K], less what noise makes of it. ends: int [K, 2, S], counts. weights [K]: of actions.
    """
    weights, rows = weights / weights.sum(), ends.sum(2)
    own = ends / rows[:, :, None]
    pooled = np.repeat((ends.sum(1) / rows.sum(1)[:, None])[:, None], 2, axis=1)
    size = (number_of_samples(ends.size), *rows.shape)
    still, again = (
        half_l1(rng.multinomial(rows, chances, size) / rows[:, :, None])
        for chances in (pooled, own)
    )
    whole = without_noise(
        float(half_l1(own) @ weights), still @ weights, again @ weights, confidence
    )
    return whole, np.sqrt(np.maximum(half_l1(own) ** 2 - np.mean(still**2, 0), 0))


def half_l1(shares: np.ndarray) -> np.ndarray:
    """[...]: the distance between the two distributions in [..., 2, S]."""
    return np.abs(shares[..., 0, :] - shares[..., 1, :]).sum(-1) / 2


def _detectable(degrees: int, counts: np.ndarray, parts: int) -> float:
    """The share that moves from the first part to the last, in a straight line, if four of five
    logs show it. counts: int [K, S].
    """
    shares = counts / counts.sum(1, keepdims=True)
    states = np.maximum((shares > 0).sum(1), 1)
    width = (np.sqrt(shares).sum(1) ** 2 / states) @ (counts.sum(1) / counts.sum())
    places = np.linspace(-0.5, 0.5, parts)  # of parts, from the first to the last
    ratio = noncentrality(degrees) / (counts.sum() * np.mean(places**2))
    return float(min(1.0, 0.5 * np.sqrt(width * ratio)))
