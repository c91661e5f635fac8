"""What a check of the model says: an effect with its interval, a p-value, and words."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from jaxbio import checks

WIDE = 96  # letters of a line
TINY = 1e-12  # p-values below it are said to be below it


@dataclass(frozen=True)
class Check:
    """One thing that the model supposes of a log.

    name: of the check. question: what was asked; the model supposes that the answer is no.
    holds: True where nothing speaks against the model, or too little to matter; False where
    something surely does (adjusted_p is at most the level) and may be large enough to matter (high
    is at least `small`); None where the log cannot tell. allowed: does `jb.fit` allow for it, so
    that nothing is lost where it does not hold?
    effect: how large the violation is, in `unit`, with low and high, its interval; all are None
    where there is nothing to measure. small: an effect up to this does not matter. none: the effect
    if the model holds: 0, or 1 if it says how many times as much. detectable: the effect that four
    of five such logs would have shown; a larger one would hardly have been missed.
    p: probability of a difference as large as that of the log if the model holds; adjusted_p: after
    Holm's correction for the number of checks. None where nothing could be tested.
    sentence: what was found, how large it is, and the limits of that. remedy: what to do about it,
    or "". details: further numbers, by name.
    """

    name: str
    question: str
    holds: bool | None
    allowed: bool
    effect: float | None
    low: float | None
    high: float | None
    unit: str
    small: float | None
    none: float
    detectable: float | None
    p: float | None
    adjusted_p: float | None
    sentence: str
    remedy: str
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answer(self) -> str:
        """To the question."""
        if self.holds is False:
            return "YES, and it is allowed for" if self.allowed else "YES"
        return "cannot be told" if self.holds is None else "no"

    @property
    def severity(self) -> float:
        """The effect in multiples of the one that does not matter; 0 where there is none."""
        if self.effect is None or self.small is None:
            return 0.0
        return (self.effect - self.none) / (self.small - self.none)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return _without_nan({**asdict(self), "answer": self.answer, "severity": self.severity})

    def __str__(self) -> str:
        return f"{self.question} {self.answer}. {self.sentence}"


@dataclass(frozen=True, repr=False)
class ModelChecks:
    """All checks of a log, those first that matter most; `jb.check_model` makes it.

    rows: of the log. kind: of its outcomes, "outcomes" or "conversions". level: how often at most
    any check fails of a log for which all of them hold. confidence: of intervals.
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
        """What does not hold and is not allowed for, in the order in which it matters."""
        return tuple(one for one in self.checks if one.holds is False and not one.allowed)

    @property
    def worst(self) -> Check | None:
        """The first of what fails; None: nothing does."""
        return self.failing[0] if self.failing else None

    @property
    def allowed(self) -> tuple[Check, ...]:
        """What does not hold, and `jb.fit` allows for."""
        return tuple(one for one in self.checks if one.holds is False and one.allowed)

    @property
    def unknown(self) -> tuple[Check, ...]:
        """What the log cannot tell."""
        return tuple(one for one in self.checks if one.holds is None)

    @property
    def holds(self) -> bool | None:
        """Does the model hold? None: nothing speaks against it, but not all of it can be told."""
        if self.failing:
            return False
        return None if self.unknown else True

    @property
    def verdict(self) -> str:
        """In a sentence or two."""
        if self.failing:
            said = f"The model does not hold in this log: see {_names(self.failing)}."
        else:
            said = "Nothing in this log speaks against the model."
        if self.unknown:
            said += f" The log cannot tell: {_names(self.unknown)}."
        return said

    def summary(self) -> str:
        """What was asked, what was found, and what to do."""
        head = (
            f"Does the model hold? {self.verdict} ({self.rows:,} rows. Where all holds, at most "
            f"{self.level:.0%} of logs are told otherwise.)"
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
            "allowed": [one.name for one in self.allowed],
            "checks": [one.to_dict() for one in self.checks],
        }

    def __repr__(self) -> str:
        lines = [f"  {one.question} {one.answer}" for one in self.checks]
        return "\n".join([f"Checks of the model on {self.rows:,} rows", *lines])

    __str__ = summary


def _paragraph(one: Check) -> str:
    said = [one.sentence, _numbers(one), *([f"What to do: {one.remedy}."] if one.remedy else [])]
    body = [
        textwrap.fill(text, WIDE, initial_indent="  ", subsequent_indent="  ")
        for text in said
        if text
    ]
    head = textwrap.fill(f"{one.question} {one.answer[0].upper()}{one.answer[1:]}.", WIDE)
    return "\n".join([head, *body])


def _numbers(one: Check) -> str:
    if one.p is None or one.adjusted_p is None or one.effect is None:
        return ""
    span = f"{one.effect:.3g} ({one.low:.3g} to {one.high:.3g})"
    return f"[{one.unit}: {span}; {_p('p', one.p)}, {_p('adjusted', one.adjusted_p)}]"


def _p(name: str, value: float) -> str:
    return f"{name} < {TINY:g}" if value < TINY else f"{name} = {value:.2g}"


def _names(found: tuple[Check, ...]) -> str:
    return ", ".join(one.name for one in found)


def _without_nan(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {name: _without_nan(one) for name, one in value.items()}
    return [_without_nan(one) for one in value] if isinstance(value, list | tuple) else value
