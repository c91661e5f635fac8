"""What a check of the model says: an effect with its interval, a p-value, and words."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from jaxbio import checks

WIDE = 96  # letters of a line
HOLDS, FAILS, UNKNOWN = "holds", "DOES NOT HOLD", "cannot be told"


@dataclass(frozen=True)
class Check:
    """One thing that the model supposes of a log.

    name: of the check. question: what was asked; the model supposes that the answer is no.
    holds: True where nothing speaks against the model, or too little to matter; False where
    something surely does (adjusted_p is at most the level, and the effect may be as large as
    `small` or larger); None where the log cannot tell.
    effect: how large the violation is, in `unit`, with low and high, its interval; all are None
    where there is nothing to measure. small: an effect up to this does not matter.
    detectable: the effect that four of five such logs would have shown; a larger one would hardly
    have been missed.
    p: probability of a difference as large as that of the log if the model holds; adjusted_p: after
    Holm's correction for the number of checks. None where nothing could be tested.
    sentence: the answer, its size, its limits. remedy: what to do about it, or "".
    details: further numbers, by name.
    """

    name: str
    question: str
    holds: bool | None
    effect: float | None
    low: float | None
    high: float | None
    unit: str
    small: float
    detectable: float | None
    p: float | None
    adjusted_p: float | None
    sentence: str
    remedy: str
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """In a word or three."""
        return {True: HOLDS, False: FAILS, None: UNKNOWN}[self.holds]

    @property
    def severity(self) -> float:
        """The effect in multiples of what does not matter; 0 where there is none."""
        return 0.0 if self.effect is None else self.effect / self.small

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = {**asdict(self), "details": dict(self.details)}
        return {name: _without_nan(value) for name, value in found.items()}

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}. {self.sentence}"


@dataclass(frozen=True, repr=False)
class ModelChecks:
    """All checks of a log, in the order in which they matter; `jb.check_model` makes it.

    rows: of the log. kind: of its outcomes, "outcomes" or "conversions". level: how often at most
    any check says "does not hold" of a log for which all of them do. confidence: of intervals.
    """

    checks: tuple[Check, ...]
    rows: int
    kind: str
    level: float
    confidence: float

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    def __len__(self) -> int:
        return len(self.checks)

    def __getitem__(self, name: str) -> Check:
        """A check by its name."""
        found = {one.name: one for one in self.checks}
        return found[checks.choice("name", name, tuple(found))]

    @property
    def failing(self) -> tuple[Check, ...]:
        """What does not hold, the worst first."""
        found = (one for one in self.checks if one.holds is False)
        return tuple(sorted(found, key=lambda one: -one.severity))

    @property
    def unknown(self) -> tuple[Check, ...]:
        """What the log cannot tell."""
        return tuple(one for one in self.checks if one.holds is None)

    @property
    def worst(self) -> Check | None:
        """The violation that is the largest compared with what does not matter; None: none."""
        return self.failing[0] if self.failing else None

    @property
    def holds(self) -> bool | None:
        """Does the model hold? None: nothing speaks against it, but not all of it can be told."""
        if self.failing:
            return False
        return None if self.unknown else True

    @property
    def verdict(self) -> str:
        """In a sentence."""
        if self.worst is None:
            left = f", and {_names(self.unknown)} cannot be told" if self.unknown else ""
            return f"Nothing in this log speaks against the model{left}."
        return f"The model does not hold in this log: {_names(self.failing)}."

    def summary(self) -> str:
        """What was asked, what was found, and what to do."""
        head = (
            f"Does the model hold? {self.verdict} ({self.rows:,} rows; at most {self.level:.0%} of "
            "the logs for which everything holds are told otherwise)"
        )
        return "\n\n".join([textwrap.fill(head, WIDE), *(_paragraph(one) for one in self.checks)])

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "holds": self.holds,
            "verdict": self.verdict,
            "rows": self.rows,
            "kind": self.kind,
            "level": self.level,
            "confidence": self.confidence,
            "failing": [one.name for one in self.failing],
            "unknown": [one.name for one in self.unknown],
            "checks": [one.to_dict() for one in self.checks],
        }

    def __repr__(self) -> str:
        width = max(len(one.name) for one in self.checks)
        lines = [f"  {one.name.ljust(width)}  {one.verdict}" for one in self.checks]
        return "\n".join([f"Checks of the model on {self.rows:,} rows", *lines])

    __str__ = summary


def _paragraph(one: Check) -> str:
    said = [one.sentence, _numbers(one), *([f"What to do: {one.remedy}"] if one.remedy else [])]
    body = [
        textwrap.fill(text, WIDE, initial_indent="  ", subsequent_indent="  ")
        for text in said
        if text
    ]
    return "\n".join([textwrap.fill(f"{one.verdict.upper()}: {one.question}", WIDE), *body])


def _numbers(one: Check) -> str:
    if one.p is None or one.effect is None:
        return ""
    span = "" if one.low is None else f" ({one.low:.3g} to {one.high:.3g})"
    return f"[{one.unit}: {one.effect:.3g}{span}; {p_text(one.p)}, adjusted {one.adjusted_p:.2g}]"


def p_text(p: float) -> str:
    return "p < 1e-12" if p < 1e-12 else f"p = {p:.2g}"


def _names(found: tuple[Check, ...]) -> str:
    return ", ".join(one.name for one in found)


def _without_nan(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {name: _without_nan(one) for name, one in value.items()}
    return [_without_nan(one) for one in value] if isinstance(value, list | tuple) else value
