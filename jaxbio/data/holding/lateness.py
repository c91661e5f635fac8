"""Do delays depend on the state, or on the loss?"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from jaxbio.data.holding.cells import accumulated
from jaxbio.data.holding.distance import Span
from jaxbio.data.holding.finding import Effect, Finding
from jaxbio.data.holding.outcomes import Outcomes
from jaxbio.data.holding.periods import Parts
from jaxbio.data.holding.scores import compare_groups
from jaxbio.data.holding.words import lasting, short, span
from jaxbio.data.kinds import OUTCOMES

BY_STATE, BY_LOSS = "delays by state", "delays by loss"
QUESTIONS = {
    BY_STATE: "Do outcomes of some states come later than those of others?",
    BY_LOSS: "Do large losses come later than small ones?",
}
SMALL, LARGE = 1.1, 2.0  # times as long
FEWEST = 10  # delays of a median
GROUPS = 4  # of losses, where they have many values
REMEDIES = {
    BY_STATE: "nothing, if you go on with jaxbio.fit, which has a law of delays for each state; in "
    "counts of your own, do not judge a state by the outcomes that came first",
    BY_LOSS: "do not judge by the outcomes that came first, as they are not like the others: wait "
    "until nearly all have come, or play with a law of delays that looks at the loss",
}


def delays_by_state(
    outcomes: Outcomes, parts: Parts, confidence: float, rng: np.random.Generator
) -> Finding:
    """A log-rank test within parts of the log. Of conversions only those count that came: whether
    one comes at all is another question.
    """
    log = outcomes.log
    trivial = _trivial(outcomes, BY_STATE)
    if trivial is not None:
        return trivial
    if outcomes.kind == OUTCOMES:
        hazard = accumulated(outcomes.waited, log.come, parts.of)
        tested = compare_groups(log.come - hazard, log.state, parts.of, rng)
    else:
        state, part = log.state[log.come], parts.of[log.come]
        tested = compare_groups(_scores(outcomes, part), state, part, rng)
    seen = _mature(outcomes)
    medians = Medians(outcomes.waited[seen], log.state[seen], log.num_states, confidence)
    return _finding(BY_STATE, outcomes, tested, medians, [f"state {one!r}" for one in log.states])


def delays_by_loss(outcomes: Outcomes, confidence: float, rng: np.random.Generator) -> Finding:
    """A log-rank test between losses of outcomes that came, within states."""
    log = outcomes.log
    trivial = _trivial(outcomes, BY_LOSS)
    if trivial is not None:
        return trivial
    groups, names = in_groups(log.loss[log.come])
    state = log.state[log.come]
    tested = compare_groups(_scores(outcomes, state), groups, state, rng)
    seen = _mature(outcomes)[log.come]
    waited, state, groups = outcomes.waited[log.come][seen], state[seen], groups[seen]
    usual = _medians(waited, state, log.num_states)
    fine = usual[state] > 0
    medians = Medians(waited[fine] / usual[state[fine]], groups[fine], len(names), confidence)
    return _finding(BY_LOSS, outcomes, tested, medians, names)


def _mature(outcomes: Outcomes) -> np.ndarray:
    """bool [rows]: outcomes that came soon enough, of rows that were followed for long enough."""
    soon = outcomes.waited <= outcomes.long
    return (
        outcomes.log.come
        & soon
        & ((outcomes.followed >= outcomes.long) | (outcomes.long == np.inf))
    )


def _scores(outcomes: Outcomes, strata: np.ndarray) -> np.ndarray:
    """Of outcomes that came, and their strata: log-rank scores. Where others may still come, those
    of young rows are the fast ones: then scores are those of truncated delays.
    """
    come = outcomes.log.come
    waited = outcomes.waited[come]
    if outcomes.long == np.inf:
        return 1 - accumulated(waited, np.ones(waited.size), strata)
    return truncated_scores(waited, outcomes.followed[come], strata)


def truncated_scores(waited: np.ndarray, limit: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """Log-rank scores in reversed time, of delays that were seen as they are not above a limit of
    their own (Lagakos, Barraj and De Gruttola): 1 less the hazard, going back in time from the
    limit to the delay, of an outcome at that very delay among all outcomes that could have been
    seen there.
    """
    scores = np.empty(waited.size)
    for stratum in np.unique(strata):
        own = strata == stratum
        at, events = np.unique(waited[own], return_counts=True)
        gone = np.searchsorted(np.sort(limit[own]), at, "left")
        hazard = np.append(0.0, np.cumsum(events / (np.cumsum(events) - gone)))
        passed = hazard[np.searchsorted(at, limit[own], "right")]
        scores[own] = 1 - passed + hazard[np.searchsorted(at, waited[own], "left")]
    return scores


def _trivial(outcomes: Outcomes, name: str) -> Finding | None:
    waited = outcomes.waited[outcomes.log.come]
    if np.ptp(waited):
        return None
    said = "All outcomes come after the same time." if waited[0] else "All outcomes come at once."
    return Finding(name, QUESTIONS[name], said, holds=True)


def in_groups(losses: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Codes [rows] of losses by size, and what they are."""
    values = np.unique(losses)
    if values.size <= GROUPS:
        return np.searchsorted(values, losses), [f"loss {one:.3g}" for one in values]
    edges = np.unique(np.quantile(losses, np.arange(1, GROUPS) / GROUPS))
    edges = edges[edges > values[0]] if edges[-1] > values[0] else values[1:2]
    ends = [f"{one:.3g}" for one in (values[0], *edges, values[-1])]
    names = [f"losses from {ends[i]} to {ends[i + 1]}" for i in range(edges.size + 1)]
    return np.searchsorted(edges, losses, "right"), names


def _medians(values: np.ndarray, groups: np.ndarray, number: int) -> np.ndarray:
    """[number]; 0 where there is none."""
    order = np.lexsort((values, groups))
    count = np.bincount(groups, minlength=number)
    middle = np.cumsum(count) - count + count // 2
    return np.where(count > 0, values[order][np.minimum(middle, max(0, values.size - 1))], 0.0)


class Medians:
    """Of groups with enough delays: middle, low, high [groups], the interval from order statistics.
    Intervals of all groups hold together. slow, fast: the groups that are the most surely apart;
    ratio: how many times as long the delays of slow are.
    """

    def __init__(
        self, waited: np.ndarray, groups: np.ndarray, number: int, confidence: float
    ) -> None:
        count = np.bincount(groups, minlength=number)
        self.groups = np.flatnonzero(count >= FEWEST)
        tail = (1 - confidence) / (2 * max(1, self.groups.size))
        order = np.lexsort((waited, groups))
        begins = np.cumsum(count) - count
        found = [
            _ordered(waited[order[begins[g] : begins[g] + count[g]]], tail) for g in self.groups
        ]
        self.low, self.middle, self.high = np.array(found).reshape(-1, 3).T
        self.fine = self.groups.size > 1 and bool(self.middle.min() > 0)
        if self.fine:
            self._compare(count[self.groups])

    def _compare(self, count: np.ndarray) -> None:
        slow, fast = int(np.argmax(self.low)), int(np.argmin(self.high))
        if slow == fast or self.low[slow] <= self.high[fast]:
            slow, fast = int(np.argmax(self.middle)), int(np.argmin(self.middle))
        self.slow, self.fast = slow, fast
        with np.errstate(divide="ignore"):
            low, high = self.low[slow] / self.high[fast], self.high[slow] / self.low[fast]
            widths = np.log(self.high / self.low)
        ratio = self.middle[slow] / self.middle[fast]
        self.ratio = Span(float(ratio), float(max(1.0, low)), float(high))
        self.detectable = float(np.exp(np.average(widths, weights=count)))


def _ordered(values: np.ndarray, tail: float) -> tuple[float, float, float]:
    """Low end, median and high end, of sorted values. An end that would be beyond is the last."""
    size = values.size
    reach = int(stats.binom.ppf(tail, size, 0.5))
    return values[max(0, reach - 1)], float(np.median(values)), values[min(size - 1, size - reach)]


def _finding(
    name: str, outcomes: Outcomes, tested: Any, medians: Medians, names: list[str]
) -> Finding:
    if tested is None or not medians.fine:
        said = "Too few outcomes came, or most of them at once."
        return Finding(name, QUESTIONS[name], said, holds=None)
    slow, fast = (names[medians.groups[i]] for i in (medians.slow, medians.fast))
    size = medians.ratio
    if name == BY_STATE:
        middle = [lasting(medians.middle[i], outcomes.unit) for i in (medians.slow, medians.fast)]
        said = f"The median delay of {slow} is {middle[0]}, that of {fast} {middle[1]}: "
    else:
        said = f"In states alike, delays of {slow} are longer than those of {fast}: "
    effect = Effect(size, "times as long, of the median delays that are farthest apart",
                    SMALL, LARGE, medians.detectable, 1.0)  # fmt: skip
    limits = ""
    if (outcomes.log.come & ~_mature(outcomes)).any():
        within = lasting(outcomes.long, outcomes.unit)
        limits = f"Medians are of outcomes that came within {within}, of rows followed as long."
    return Finding(
        name, QUESTIONS[name], f"{said}{short(size.value)} times as long ({span(size)}).",
        REMEDIES[name], limits=limits,
        missed=f"Medians that are {short(medians.detectable)} times as long would have been seen.",
        effect=effect, p=tested.p, allowed=name == BY_STATE,
        details={"medians": {names[g]: float(middle)
                             for g, middle in zip(medians.groups, medians.middle, strict=True)},
                 "medians_in": outcomes.unit if name == BY_STATE else "medians of the state",
                 "permuted": tested.permuted},
    )  # fmt: skip
