"""A result in a few lines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from jaxbio.display import html, text

if TYPE_CHECKING:
    from jaxbio.sweeps.result import Result


def as_text(result: Result) -> str:
    """What was played, and the final regret."""
    name, *rows = _said(result)
    lines = text.aligned([[f"  {label}", said] for label, said in rows], left=2)
    return "\n".join([": ".join(name), *lines])


def as_html(result: Result) -> str:
    (name, what), *rows = _said(result)
    return html.titled(name, what) + html.table([], rows, left=2)


def _said(result: Result) -> list[tuple[str, str]]:
    """Pairs of a label and what is said of it, the first as a heading."""
    runs, points = result.regret.shape
    played = f"{runs:,} run{'s' if runs != 1 else ''} of {int(result.rounds[-1]):,} rounds"
    facts = [f"{name} {float(np.mean(fact)):,.6g}" for name, fact in result.info.items()]
    rows = [
        ("learner", result.learner),
        ("final regret", _finals(result.final_regret)),
        ("recorded", f"at {points:,} rounds: .rounds, .regret, .loss, .realized_regret"),
        ("means of .info", ", ".join(facts)),
        ("played by", result.backend),
    ]
    return [("Result", played), *((label, said) for label, said in rows if said)]


def _finals(finals: np.ndarray) -> str:
    """The mean with its standard error, and the span."""
    mean = f"mean {finals.mean():,.1f}"
    if len(finals) < 2:
        return mean
    error = finals.std(ddof=1) / math.sqrt(len(finals))
    return f"{mean}, standard error {error:,.1f}, from {finals.min():,.1f} to {finals.max():,.1f}"
