"""What both Numba kernels use: decorators, elementary functions, tables of the instance.

Single precision throughout; uniforms have 24 bits. A round's state and Bernoulli loss come from
one uniform, over the 2S outcomes (state, loss).
"""

import numpy as np
from numba import njit

F, I32, U32 = np.float32, np.int32, np.uint32
ZERO, HALF, ONE = F(0), F(0.5), F(1)
LOG2E, LN2, TINY = F(1.4426950408889634), F(0.6931471805599453), F(2.0**-24)
E1, E2, E3 = F(0.693146978), F(0.240222421), F(0.055507338)
E4, E5 = F(0.0096715136), F(0.00132647206)
TAIL = 17.4  # -ln of the smallest 24-bit uniform: bounds a Laplace draw

inlined = njit(fastmath=True, error_model="numpy", forceinline=True)
compiled = njit(fastmath=True, error_model="numpy")


@inlined
def exp2(x):
    """2**x for x <= 0, to single precision."""
    x = max(F(-126), x)
    whole = I32(x - HALF)
    f = x - F(whole)
    series = ONE + f * (E1 + f * (E2 + f * (E3 + f * (E4 + f * E5))))
    return series * I32((whole + I32(127)) << I32(23)).view(np.float32)


@inlined
def log(x):
    """ln(x) for normal x > 0, by the series of atanh around 1."""
    bits = F(x).view(np.int32)
    power = (bits - I32(0x3F400000)) >> I32(23)
    m = I32(bits - (power << I32(23))).view(np.float32)
    s = (m - ONE) / (m + ONE)
    q = s * s
    series = ONE + q * (F(1 / 3) + q * (F(1 / 5) + q * (F(1 / 7) + q * F(1 / 9))))
    return F(power) * LN2 + F(2) * s * series


@inlined
def uniform(word):
    """The high 24 bits of a 32-bit word as a number in [0, 1)."""
    return F(I32(word >> U32(8))) * TINY


@inlined
def laplace_delay(word, location, scale):
    """Laplace variate from a 32-bit word, rounded to nearest and clipped at 0; a whole float32."""
    size = -log((F(I32(word >> U32(8))) + HALF) * TINY)
    sign = F(I32(word & U32(1)) * I32(2) - I32(1))
    x = location + sign * scale * size + HALF
    return F(I32(max(ZERO, x)))


@compiled
def slots_for(longest):
    """A power of two beyond the longest delay, so that a slot is a round modulo a mask."""
    slots = 2
    while slots < longest + 2:
        slots *= 2
    return slots


def tables(P, theta):
    """Cut points over (state, loss) outcomes [K, 2S - 1] and gaps [K].

    Outcome 2s is state s with loss 1, outcome 2s + 1 the same state with loss 0.
    """
    joint = np.stack([P * theta, P * (1 - theta)], axis=-1).reshape(len(P), -1)
    mean = P @ theta
    return np.cumsum(joint, axis=1)[:, :-1].astype(F), (mean - mean.min()).astype(F)
