"""Experiment 3: the fewer the states, the more intermediate observations help."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.instances import make_environment
from jaxbio.studies.paper.experiment import Experiment, Options, final, lower, with_and_without
from jaxbio.studies.paper.verdicts import MeanClaim

STATES = (4, 6, 8, 10, 12)


def environment(options: Options) -> Any:
    return lambda states: make_environment("paper-utility", states=states, delays=FixedDelay(100))


def gap(data: xr.Dataset, states: int) -> np.ndarray:
    """[runs]: what MetaBIO saves against DAda-Exp3."""
    return final(data, "DAda-Exp3", states=states) - final(data, "MetaBIO", states=states)


def shrinks(fewer: int, more: int) -> MeanClaim:
    return MeanClaim(
        f"the gap between MetaBIO and DAda-Exp3 is smaller at S = {more} than at S = {fewer}",
        lambda data: gap(data, fewer) - gap(data, more),
    )


def claims(options: Options) -> list[Any]:
    return [
        lower("MetaBIO", "DAda-Exp3", states=STATES[0]),
        *(shrinks(fewer, more) for fewer, more in pairwise(STATES)),
    ]


EXPERIMENT = Experiment(
    number=3,
    name="utility",
    title="Utility of intermediate observations",
    about="K = 8, d = 100; the gap between MetaBIO and DAda-Exp3 shrinks as S grows",
    environment=environment,
    learners=with_and_without,
    axes={"states": list(STATES)},
    panels=None,
    claims=claims,
)
