"""The outcome of a comparison of learners: ranked rows, a verdict, a table."""

from __future__ import annotations

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
    """One learner. mean: of the final regret, with low and high, its 95 % interval.

    behind: how much larger the mean is than that of the best, with its interval; p: of no
    difference, adjusted (None for the best). probability_best: share of resamples of the runs in
    which its mean is the least; runs_won: share of single runs in which its regret is.
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
        """The best, and whoever cannot be told from it at this level."""
        return tuple(row.name for row in self.rows if row.p is None or row.p > self.level)

    @property
    def winner(self) -> str | None:
        """The one whose mean is below every other at this level; None: too close to call."""
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
            "rows": [asdict(row) for row in self.rows],
        }


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        f"{row.mean:,.1f}",
        f"{row.low:,.1f} to {row.high:,.1f}",
        *(
            ("", "", "")
            if row.p is None
            else (
                f"{row.behind:,.1f}",
                f"{row.behind_low:,.1f} to {row.behind_high:,.1f}",
                f"{row.p:.2g}",
            )
        ),
        f"{row.probability_best:.1%}",
        f"{row.runs_won:.1%}",
    )
