"""Laws of delays in which a few losses are late by far: log-normal and Pareto.

Delays are quantiles of 32 random bits, in closed form, so their numbers can be axes of a sweep. No
delay is cut at the horizon: a loss that would come after the last round never comes, and takes no
room. The longest delay has a probability of about 2**-32 per round; delays of 2**30 rounds and more
count as 2**30, which is longer than any game.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbio import checks, rng
from jaxbio.core import Array
from jaxbio.environment.delays import NEVER, TAIL, VaryingDelay
from jaxbio.trees import float_dtype, host, pytree, set_field

FURTHEST = 6.339  # standard deviations: the normal quantile at 1 - 2**-33 is 6.33796
LARGEST = 1e38  # of a factor that float32 can hold, so that no product is NaN
ROUNDING = 1e-5  # of a quantile, relatively, at most

# Wichura (1988), algorithm AS 241: numerator and denominator of the normal quantile, the highest
# power first, in q around the middle and in the square root of -ln p in the tails.
MIDDLE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0),
)  # fmt: skip
TAILS = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550,
     4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940,
     2.05319162663775882187, 1.0),
)  # fmt: skip


@pytree
class LogNormalDelay(VaryingDelay):
    """exp of a normal variable, rounded to the nearest integer.

    median: half of the delays are below it, half above. spread: the standard
    deviation of ln d: with 1, one delay in six is more than 2.7 times the median, one in 44 more
    than 7.4 times. Before rounding the mean is median exp(spread**2 / 2).
    """

    median: Any
    spread: Any

    def __post_init__(self) -> None:
        set_field(self, "median", checks.number("median", self.median, 1e-6, 2**24))
        set_field(self, "spread", checks.number("spread", self.spread, 0, 100))

    def delay(self, key: Array, t: Array) -> Array:
        factor = jnp.exp(self.spread * _normal(rng.delay_word(key, t)))
        return _whole(jnp.round(self.median * jnp.minimum(factor, LARGEST)))

    def longest(self) -> int:
        return _longest(host(self.median) * np.exp(host(self.spread) * FURTHEST))


@pytree
class ParetoDelay(VaryingDelay):
    """P(d >= k) = (minimum / k)**tail for k >= minimum: a few losses take as long as all others.

    minimum: no delay is shorter than it, rounded down. tail: from 0.01 to 1000; the
    smaller, the heavier: with 1 or less delays have no mean, with 2 or less no variance. The median
    is minimum 2**(1 / tail) and the mean, where there is one, minimum tail / (tail - 1), both
    before rounding down.
    """

    minimum: Any
    tail: Any

    def __post_init__(self) -> None:
        set_field(self, "minimum", checks.number("minimum", self.minimum, 1e-6, 2**24))
        set_field(self, "tail", checks.number("tail", self.tail, 0.01, 1000))

    def delay(self, key: Array, t: Array) -> Array:
        word = rng.delay_word(key, t)
        log_u = jnp.log((word.astype(float_dtype()) + 0.5) * 2.0**-32)
        factor = jnp.exp(jnp.maximum(-log_u, 0) / self.tail)
        factor = jnp.clip(factor, 1, LARGEST)  # exp may round to just below 1
        return _whole(jnp.floor(self.minimum * factor))

    def longest(self) -> int:
        furthest = (TAIL + math.log(2)) / host(self.tail)
        return _longest(host(self.minimum) * np.exp(np.minimum(furthest, 100)))


def _whole(delay: Array) -> Array:
    return jnp.minimum(delay, NEVER).astype(jnp.int32)


def _longest(delay: np.ndarray) -> int:
    """Of the quantiles at the last random bits: room for how programs round them."""
    return math.ceil(min(float(np.max(delay)) * (1 + ROUNDING) + 1, NEVER))


def _normal(word: Array) -> Array:
    """The quantile of the standard normal distribution at (word + 1/2) / 2**32."""
    upper = word >= np.uint32(1 << 31)
    tail = jnp.minimum(word, ~word).astype(float_dtype()) + 0.5  # 2**32 times the tail mass
    q = (2.0**31 - tail) * 2.0**-32
    inside, outside = 0.180625 - q * q, jnp.sqrt(-jnp.log(tail * 2.0**-32)) - 1.6
    (above, below), (above_far, below_far) = (
        tuple(_polynomial(coefficients, x) for coefficients in pair)
        for pair, x in ((MIDDLE, inside), (TAILS, outside))
    )
    near = q <= 0.425
    size = jnp.where(near, q * above, above_far) / jnp.where(near, below, below_far)
    return jnp.where(upper, size, -size)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Horner's form, the highest power first."""
    total = coefficients[0] * x + coefficients[1]
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total
