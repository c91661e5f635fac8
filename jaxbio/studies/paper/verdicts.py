"""Claims about a sweep, and what the runs say about them.

A claim about means is a number per run (a paired difference: all learners meet the same worlds)
that should be positive on average. Its interval is Student's, its p-value that of the one-sample
t-test against zero, corrected by Holm's method over all such claims of an experiment in both
directions. A claim about facts holds in every run or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from jaxbio.analysis.intervals import NO, UNDECIDED, YES
from jaxbio.analysis.statistics import LEVEL, Estimate, holm, of_margin


@dataclass(frozen=True)
class MeanClaim:
    """statement: in words; margin: dataset -> [runs], positive on average if the claim is true."""

    statement: str
    margin: Callable[[xr.Dataset], np.ndarray]


@dataclass(frozen=True)
class FactClaim:
    """statement: in words; holds: dataset -> bool [runs]; figure: what to show of the facts."""

    statement: str
    holds: Callable[[xr.Dataset], np.ndarray]
    figure: Callable[[xr.Dataset], str]


@dataclass(frozen=True)
class Verdict:
    """outcome: "yes", "no" or "undecided". low, high: 95 % interval of the mean margin, None where
    there is but one run.
    """

    statement: str
    outcome: str
    detail: str
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


def judge(claims: Sequence[Any], data: xr.Dataset) -> list[Verdict]:
    """A verdict for each claim, in their order."""
    margins = {
        i: of_margin(np.asarray(claim.margin(data), np.float64))
        for i, claim in enumerate(claims)
        if isinstance(claim, MeanClaim)
    }
    adjusted = dict(zip(margins, holm([m.two_sided() for m in margins.values()]), strict=True))
    return [
        _about_mean(claim, margins[i], adjusted[i]) if i in margins else _fact(claim, data)
        for i, claim in enumerate(claims)
    ]


def _about_mean(claim: MeanClaim, margin: Estimate, p: float) -> Verdict:
    mean, (low, high) = margin.mean, margin.interval()
    outcome = UNDECIDED if p > LEVEL else (YES if mean > 0 else NO)
    if math.isnan(low):
        return Verdict(claim.statement, outcome, f"margin {mean:,.1f} in the only run", mean, p=p)
    detail = f"margin {mean:,.1f}, 95 % interval {low:,.1f} to {high:,.1f}, adjusted p {p:.2g}"
    return Verdict(claim.statement, outcome, detail, mean, low, high, p)


def _fact(claim: FactClaim, data: xr.Dataset) -> Verdict:
    holds = np.asarray(claim.holds(data), bool)
    detail = f"{claim.figure(data)}; in {holds.sum()} of {holds.size} runs"
    return Verdict(claim.statement, YES if holds.all() else NO, detail)
