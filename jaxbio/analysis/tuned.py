"""The outcome of a tuning: what was found, how it was found, and what it is worth elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxbio.analysis.comparison import Comparison

TUNED, START = "tuned", "start"


class Step(NamedTuple):
    """A step of the search.

    parameters: where it stands; training_score: of the points around it, on the runs of this step
    (relative to the start values on the same runs, or mean regret); gradient_norm: of that score
    in the logarithms of the parameters.
    """

    parameters: dict[str, float]
    training_score: float
    gradient_norm: float


class Gain(NamedTuple):
    """Mean held-out regret of the start values minus that of the tuned ones.

    low, high: its 95 % interval; share: of the regret of the start values.
    """

    mean: float
    low: float
    high: float
    share: float


@dataclass(frozen=True, eq=False)
class Tuned:
    """A tuned learner.

    held_out: "tuned" against "start" on runs that the search never saw; this is the result. curve:
    the search; its training scores are no estimate of anything but progress. learner, parameters:
    as found; start: where the search began; scaled: are scores relative to the start values?
    """

    learner: Any
    parameters: dict[str, float]
    start: dict[str, float]
    curve: tuple[Step, ...]
    held_out: Comparison
    scaled: bool = True

    @property
    def gain(self) -> Gain:
        """What tuning saves on held-out runs; below 0 where it does harm."""
        start, tuned = self.held_out[START], self.held_out[TUNED]
        if self.held_out.best == TUNED:
            mean, low, high = start.behind, start.behind_low, start.behind_high
        else:
            mean, low, high = -tuned.behind, -tuned.behind_high, -tuned.behind_low
        return Gain(mean, low, high, mean / start.mean if start.mean else 0.0)

    def summary(self) -> str:
        """A line about the held-out runs."""
        start, tuned, gain = self.held_out[START], self.held_out[TUNED], self.gain
        verdict = "" if self.held_out.winner else "; too close to call"
        return (
            f"held-out regret {tuned.mean:,.1f} instead of {start.mean:,.1f}: saves "
            f"{gain.mean:,.1f} (95 % interval {gain.low:,.1f} to {gain.high:,.1f}), "
            f"{gain.share:.1%}, {self.held_out.runs:,} paired runs{verdict}"
        )

    def __str__(self) -> str:
        found = ", ".join(
            f"{name} {value:.4g} (start {self.start[name]:.4g})"
            for name, value in self.parameters.items()
        )
        return f"{found}, after {len(self.curve)} steps\n{self.summary()}\n\n{self.held_out}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "parameters": self.parameters,
            "start": self.start,
            "gain": self.gain._asdict(),
            "held_out": self.held_out.to_dict(),
            "training": [step._asdict() for step in self.curve],
        }
