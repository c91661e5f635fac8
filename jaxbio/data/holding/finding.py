"""From what a test found to a verdict: significance, corrected for several checks, and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxbio.analysis.statistics import holm
from jaxbio.data.holding.check import Check
from jaxbio.data.holding.distance import Span


@dataclass(frozen=True)
class Effect:
    """How large a violation is. size: with its interval, in `unit`. small: up to this it does not
    matter. large: a log that would not have shown this tells nothing. detectable: what four of five
    such logs would have shown. none: the value if the model holds.
    """

    size: Span
    unit: str
    small: float
    large: float
    detectable: float
    none: float = 0.0


@dataclass(frozen=True)
class Finding:
    """What a check found, before the p-values of all checks are corrected.

    effect, p: None where nothing could be measured or tested; then `holds` says what is known
    nevertheless. found: a sentence on the size. cost: one on what that costs, if it is no chance.
    missed: how large an effect would have been seen. limits: what the test does not say. remedy:
    what to do if the model does not hold; allowed: is it allowed for already?
    """

    name: str
    question: str
    found: str
    remedy: str = ""
    cost: str = ""
    limits: str = ""
    missed: str = ""
    effect: Effect | None = None
    p: float | None = None
    holds: bool | None = None
    allowed: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


def judge(findings: Sequence[Finding], level: float) -> tuple[Check, ...]:
    """Checks of findings, their p-values corrected by Holm's step-down method."""
    tested = [one.p for one in findings if one.p is not None]
    adjusted = iter(holm(tested))
    return tuple(_judged(one, None if one.p is None else next(adjusted), level) for one in findings)


def _judged(one: Finding, adjusted: float | None, level: float) -> Check:
    effect = one.effect
    holds, words = _verdict(one, adjusted, level)
    size = (None, None, None) if effect is None else map(float, effect.size)
    value, low, high = size
    return Check(
        name=one.name,
        question=one.question,
        holds=holds,
        allowed=one.allowed,
        effect=value,
        low=low,
        high=high,
        unit="" if effect is None else effect.unit,
        small=None if effect is None else float(effect.small),
        none=0.0 if effect is None else effect.none,
        detectable=None if effect is None else float(effect.detectable),
        p=one.p,
        adjusted_p=adjusted,
        sentence=" ".join(word for word in words if word),
        remedy=one.remedy if holds is False else "",
        details=one.details,
    )


def _verdict(one: Finding, adjusted: float | None, level: float) -> tuple[bool | None, list[str]]:
    """Does it hold, and sentences."""
    if one.effect is None or adjusted is None:
        return one.holds, [one.found, one.limits]
    if adjusted <= level:
        little = bool(one.effect.size.high < one.effect.small)
        too = "That is too little to matter." if little else ""
        return little, [one.found, one.cost, too, one.limits]
    told = bool(one.effect.detectable <= one.effect.large)
    before = "No more was found than chance explains" if told else "The log is too small to tell"
    found = one.found[0].lower() + one.found[1:]
    return True if told else None, [f"{before}: {found}", one.missed, one.limits]
