"""Negative binomial delays: geometric ones with another spread, looked up in a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from jaxbio import checks
from jaxbio.checks import memory
from jaxbio.environment.alias import LONGEST, TabledDelay, alias_table
from jaxbio.trees import derived, is_concrete, pytree, set_field

BEYOND = 2.0**-34  # the probability of longer delays than the table has


@pytree
class NegativeBinomialDelay(TabledDelay):
    """The negative binomial law with this mean and the variance mean + mean**2 / dispersion.

    mean: at least 0. dispersion: greater than 0, the `size` of R and the number of successes of
    textbooks; the smaller, the wider. With 1 delays are those of `GeometricDelay(mean)`, with large
    ones Poisson's. Probabilities are rounded to multiples of 2**-32.

    The table is made of both numbers, so they must have values: laws of several numbers are other
    programs where their tables have other sizes. cells: uint32 [n], the table; last: int32, the
    longest delay.
    """

    mean: Any
    dispersion: Any
    cells: Any = derived()
    last: Any = derived()

    def __post_init__(self) -> None:
        for name in ("mean", "dispersion"):
            if not is_concrete(getattr(self, name)):
                raise TypeError(f"{name} must have a value, but got a tracer: make the law outside "
                                "of jit")  # fmt: skip
        mean = checks.number("mean", self.mean, 0, 2**20)
        dispersion = checks.number("dispersion", self.dispersion, 1e-3, 1e6)
        cells, last = alias_table(_probabilities(mean, dispersion)[None], np.zeros(1))
        set_field(self, "mean", mean)
        set_field(self, "dispersion", dispersion)
        set_field(self, "cells", cells[0])
        set_field(self, "last", last)


def _probabilities(mean: float, dispersion: float) -> np.ndarray:
    """Of 0, 1, ..., as far as a random word can tell them apart."""
    numbers = dispersion, dispersion / (dispersion + mean)
    last = int(stats.nbinom.isf(BEYOND, *numbers))
    if last > LONGEST:
        raise ValueError(
            f"mean and dispersion must make delays of at most {LONGEST:,} rounds, but with "
            f"{mean:g} and {dispersion:g} one in {1 / BEYOND:.0g} is longer than {last:,.0f}: "
            "give a smaller mean or a larger dispersion"
        )
    memory.refuse_table(f"delays of up to {last:,.0f}", 8 * last, "a smaller mean")
    return stats.nbinom.pmf(np.arange(last + 1), *numbers)
