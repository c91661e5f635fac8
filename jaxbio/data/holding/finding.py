"""From what a test found to a verdict: significance, corrected for several checks, and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxbio.analysis.statistics import holm
from jaxbio.data.holding.check import Check


@dataclass(frozen=True)
class Effect:
    """How large a violation is. value, with its interval low, high, in `unit`. small: up to this it
    does not matter. large: a log that would not have shown this tells nothing. detectable: what
    four of five such logs would have shown.
    """

    value: float
    low: float
    high: float
    unit: str
    small: float
    large: float
    detectable: float


@dataclass(frozen=True)
class Finding:
    """What a check found, before the p-values of all checks are corrected.

    effect, p: None where nothing could be measured or tested; then `holds` says what is known
    nevertheless. found: a sentence on the size. missed: how large an effect would have been seen.
    limits: what the test does not say. remedy: what to do if the model does not hold.
    """

    name: str
    question: str
    found: str
    remedy: str = ""
    limits: str = ""
    missed: str = ""
    effect: Effect | None = None
    p: float | None = None
    holds: bool | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


def judge(findings: Sequence[Finding], level: float) -> tuple[Check, ...]:
    """Checks of findings, their p-values corrected by Holm's step-down method."""
    tested = [one.p for one in findings if one.p is not None]
    adjusted = iter(holm(tested))
    return tuple(_judged(one, None if one.p is None else next(adjusted), level) for one in findings)


def _judged(one: Finding, adjusted: float | None, level: float) -> Check:
    effect = one.effect
    if effect is None or adjusted is None:
        holds, words = one.holds, [one.found, one.limits]
    elif adjusted <= level:
        holds = effect.high < effect.small
        before = "Too little to matter: " if holds else ""
        words = [before + one.found, one.limits]
    else:
        holds = True if effect.detectable <= effect.large else None
        before = "Nothing was found" if holds else "The log is too small to tell"
        words = [f"{before}: {one.found}", one.missed, one.limits]
    return Check(
        name=one.name,
        question=one.question,
        holds=holds,
        effect=None if effect is None else effect.value,
        low=None if effect is None else effect.low,
        high=None if effect is None else effect.high,
        unit="" if effect is None else effect.unit,
        small=1.0 if effect is None else effect.small,
        detectable=None if effect is None else effect.detectable,
        p=one.p,
        adjusted_p=adjusted,
        sentence=" ".join(word for word in words if word),
        remedy=one.remedy if holds is False else "",
        details=one.details,
    )
