"""Laws of delays that a few numbers describe, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxbio.environment.delays import FixedDelay, GeometricDelay, LaplaceDelay, UniformDelay
from jaxbio.environment.heavy_tails import LogNormalDelay, ParetoDelay
from jaxbio.environment.negative_binomial import NegativeBinomialDelay

DELAYS: dict[str, Callable[..., Any]] = {
    "fixed": FixedDelay,
    "laplace": LaplaceDelay,
    "geometric": GeometricDelay,
    "uniform": UniformDelay,
    "lognormal": LogNormalDelay,
    "pareto": ParetoDelay,
    "negbinomial": NegativeBinomialDelay,
}
