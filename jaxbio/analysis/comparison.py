"""The outcome of a comparison of learners: ranked rows, a verdict, a table."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from jaxbio import checks

HEAD = (
    "learner",
    "regret",
    "95 % interval",
    "behind",
    "95 % interval",
    "adjusted p",
    "P(best)",
    "runs won",
)


@dataclass(frozen=True)
class Row:
    """One learner. mean: of the final regret, with low and high, its 95 % interval (Student's).

    behind: how much larger the mean is than that of the best, with an interval that is of 95 % for
    all pairs of learners together; p: of having the least true mean, adjusted (None for the best).
    probability_best: share of resamples of the runs in which its mean is the least; runs_won: share
    of single runs in which its regret is. One run has no intervals: their ends are NaN.
    """

    name: str
    mean: float
    low: float
    high: float
    behind: float
    behind_low: float
    behind_high: float
    p: float | None
    probability_best: float
    runs_won: float


@dataclass(frozen=True)
class Comparison:
    """Learners in the order of their mean final regret, the best first.

    runs: the fewest of any learner. point: where on a sweep's grid, axis -> value.
    """

    rows: tuple[Row, ...]
    runs: int
    paired: bool
    level: float
    point: dict[str, Any] = field(default_factory=dict)

    @property
    def best(self) -> str:
        """The least mean, whether or not that says much."""
        return self.rows[0].name

    @property
    def contenders(self) -> tuple[str, ...]:
        """Who may have the least true mean: all but those that some other is surely better than.

        All that do have it are among them with a probability of at least 1 - level.
        """
        return tuple(row.name for row in self.rows if row.p is None or row.p > self.level)

    @property
    def winner(self) -> str | None:
        """The only contender; None: too close to call."""
        return self.best if len(self.contenders) == 1 else None

    @property
    def verdict(self) -> str:
        """In words."""
        how = f"{self.runs:,} {'paired' if self.paired else 'independent'} runs"
        if self.winner is None:
            return f"too close to call between {', '.join(self.contenders)} ({how})"
        return f"{self.winner} has the least mean regret ({how}, level {self.level:.2g})"

    def __getitem__(self, name: str) -> Row:
        """The row of a learner."""
        found = {row.name: row for row in self.rows}
        return found[checks.choice("learner", name, tuple(found))]

    def table(self) -> str:
        """Aligned text, a line for each learner, and the verdict."""
        lines = [HEAD, *(_cells(row) for row in self.rows)]
        widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
        place = ", ".join(f"{name} {value}" for name, value in self.point.items())
        shown = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
            for line in lines
        ]
        return "\n".join([*([place] if place else []), *shown, self.verdict])

    __str__ = table

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "winner": self.winner,
            "verdict": self.verdict,
            "contenders": list(self.contenders),
            "runs": self.runs,
            "paired": self.paired,
            "level": self.level,
            "point": self.point,
            "rows": [
                {name: None if value != value else value for name, value in asdict(row).items()}
                for row in self.rows
            ],  # JSON has no NaN
        }


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        f"{row.mean:,.1f}",
        _span(row.low, row.high),
        *(
            ("", "", "")
            if row.p is None
            else (
                f"{row.behind:,.1f}",
                _span(row.behind_low, row.behind_high),
                f"{row.p:.2g}",
            )
        ),
        f"{row.probability_best:.1%}",
        f"{row.runs_won:.1%}",
    )


def _span(low: float, high: float) -> str:
    return "unknown" if math.isnan(low) else f"{low:,.1f} to {high:,.1f}"
