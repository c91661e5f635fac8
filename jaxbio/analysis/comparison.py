"""The outcome of a comparison of learners: ranked rows, a verdict, a table."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from jaxbio import checks
from jaxbio.display import html, text

if TYPE_CHECKING:
    import pandas as pd

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


@dataclass(frozen=True, repr=False)
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
        return "\n".join([*self._place(), *text.aligned(lines), self.verdict])

    __str__ = __repr__ = table

    def _place(self) -> list[str]:
        """Where on the grid of a sweep, if anywhere."""
        said = ", ".join(f"{name} {value}" for name, value in self.point.items())
        return [said] if said else []

    def _repr_html_(self) -> str:
        said = ". ".join([*self._place(), self.verdict])
        return html.titled("Comparison", said) + html.table(
            HEAD, [_cells(row) for row in self.rows]
        )

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each learner, the best first: the fields of `Row`, and `point`."""
        import pandas as pd  # takes a quarter of a second

        return pd.DataFrame([{**self.point, **asdict(row)} for row in self.rows])

    def to_latex(self) -> str:
        """A table for a paper, with nothing but LaTeX's own commands; the contenders are bold."""
        head = ["learner", "regret", "95\\,\\% interval", "behind", "95\\,\\% interval", "$p$"]
        lines = [r"\begin{tabular}{lrrrrr}", r"\hline", _latex_line(head), r"\hline"]
        for row in self.rows:
            name, *cells = map(text.escaped_for_latex, _cells(row)[: len(head)])
            name = rf"\textbf{{{name}}}" if row.name in self.contenders else name
            lines.append(_latex_line([name, *cells]))
        return "\n".join([*lines, r"\hline", r"\end{tabular}"])

    def plot(self, **options: Any) -> Any:
        """Draw mean regret with intervals: `jaxbio.plot.final_regret`, and its options."""
        # Figures are built on comparisons, and found when they are asked for.
        return importlib.import_module("jaxbio.plot").final_regret(self, **options)

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


def _latex_line(cells: Sequence[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _span(low: float, high: float) -> str:
    return "unknown" if math.isnan(low) else f"{low:,.1f} to {high:,.1f}"
