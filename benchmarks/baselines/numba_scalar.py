"""Scalar Numba kernels: DAda-Exp3 and MetaBIO over DAda-Exp3, fixed or Laplace delays.

What a determined user writes first: the whole game of one run fused into one compiled loop,
`prange` over the runs, both learners by hand, single precision with an own exponential, a
splitmix64 generator per run, and no allocation inside the loop. `numba_simd` plays 64 runs at once
and is faster.

Counts and the delay total are integers and the regret is a float64, so any horizon is exact.
"""

import math
from functools import lru_cache

import numpy as np
from numba import njit, prange

from benchmarks.baselines.numba_common import (
    LOG2E,
    ONE,
    TAIL,
    U32,
    ZERO,
    F,
    compiled,
    exp2,
    inlined,
    laplace_delay,
    slots_for,
    tables,
    uniform,
)
from benchmarks.baselines.numpy_loop import constants

I64, U64 = np.int64, np.uint64
GOLDEN = U64(0x9E3779B97F4A7C15)
ACTION_BITS = 16  # a filed play is outcome << ACTION_BITS | action


@inlined
def _mix(key):
    """The output function of splitmix64."""
    z = (key ^ (key >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
    return z ^ (z >> U64(31))


@inlined
def _add(cumulative, action, value):
    """cumulative[action] += value as selects: faster than an indexed write."""
    for k in range(len(cumulative)):
        cumulative[k] += value if k == action else ZERO


@inlined
def _lower(seen, ones, state, radius):
    """MetaBIO's estimate: lower confidence bound on a state's mean loss, at least 0."""
    inverse = ONE / F(max(seen[state], 1))
    return max(ZERO, F(ones[state]) * inverse - F(math.sqrt(radius * inverse)))


def _stages(K, S):
    """The parts of a round before the feedback."""

    @inlined
    def weigh(cumulative, weight, cdf, eta):
        """Unnormalised weights exp(-eta Lhat) and their running sums; Lhat relative to its min."""
        low = cumulative[0]
        for k in range(1, K):
            low = min(low, cumulative[k])
        for k in range(K):
            x = cumulative[k] - low
            cumulative[k] = x
            weight[k] = exp2(-eta * LOG2E * x)
        total = ZERO
        for k in range(K):
            total += weight[k]
            cdf[k] = total
        return total

    @inlined
    def pick(cdf, u):
        action = I64(0)
        for k in range(K - 1):
            action += I64(u >= cdf[k])
        return action

    @inlined
    def observe(cuts, action, u):
        """2s + 1 - loss, by inverse cdf."""
        outcome = I64(0)
        for q in range(2 * S - 1):
            outcome += I64(u >= cuts[action, q])
        return outcome

    return weigh, pick, observe


def _dada_fixed(K, S):
    """DAda-Exp3, fixed delay d >= 1. A slot of the ring is one play: its action and estimate."""

    @inlined
    def make(slots):
        return np.zeros(slots, np.int32), np.zeros(slots, np.float32)

    @inlined
    def learn(box, cumulative, seen, ones, t, d, action, outcome, ticket, radius, pending):
        actions, estimates = box
        mask = len(actions) - 1
        actions[t & mask] = action
        estimates[t & mask] = ticket * F(1 - (outcome & 1))
        due = (t - d) & mask
        _add(cumulative, actions[due], estimates[due])
        return min(t, d)

    return make, learn


def _dada_random(K, S):
    """DAda-Exp3, any delays. A slot of the mailbox is the sum of what arrives, and its number."""

    @inlined
    def make(slots):
        return np.zeros((slots, K), np.float32), np.zeros(slots, np.int32)

    @inlined
    def learn(box, cumulative, seen, ones, t, d, action, outcome, ticket, radius, pending):
        sums, number = box
        mask = len(number) - 1
        due, now = (t + d) & mask, t & mask
        sums[due, action] += ticket * F(1 - (outcome & 1))
        number[due] += 1
        pending += 1 - number[now]
        number[now] = 0
        for k in range(K):
            cumulative[k] += sums[now, k]
            sums[now, k] = ZERO
        return pending

    return make, learn


def _meta_fixed(K, S):
    """MetaBIO, fixed delay d >= 1. A slot is one play, with its ticket if it waits, else 0."""

    @inlined
    def make(slots):
        return np.zeros(slots, np.int32), np.zeros(slots, np.float32)

    @inlined
    def learn(box, cumulative, seen, ones, t, d, action, outcome, ticket, radius, pending):
        plays, tickets = box
        mask = len(plays) - 1
        plays[t & mask] = (outcome << ACTION_BITS) | action
        if t > d:
            due = (t - d) & mask
            old = plays[due] >> ACTION_BITS
            seen[old >> 1] += 1
            ones[old >> 1] += 1 - (old & 1)
            if tickets[due] > ZERO:
                value = tickets[due] * _lower(seen, ones, old >> 1, radius)
                _add(cumulative, plays[due] & ((1 << ACTION_BITS) - 1), value)
                pending -= 1
        state = outcome >> 1
        if seen[state] >= min(t, d):
            _add(cumulative, action, ticket * _lower(seen, ones, state, radius))
            tickets[t & mask] = ZERO
        else:
            tickets[t & mask] = ticket
            pending += 1
        return pending

    return make, learn


def _meta_random(K, S):
    """MetaBIO, any delays. A slot is, per state, how many losses arrive and how many are 1, and
    the tickets of the rounds that wait: their sum per state and action, and their number.
    """

    @inlined
    def make(slots):
        return (
            np.zeros((slots, 2 * S), np.int32),
            np.zeros((slots, S, K), np.float32),
            np.zeros(slots, np.int32),
        )

    @inlined
    def feed_waiting(cumulative, seen, ones, tickets, radius):
        for s in range(S):
            value = _lower(seen, ones, s, radius)
            for k in range(K):
                cumulative[k] += value * tickets[s, k]
                tickets[s, k] = ZERO

    @inlined
    def learn(box, cumulative, seen, ones, t, d, action, outcome, ticket, radius, pending):
        losses, tickets, waiters = box
        mask = len(waiters) - 1
        due, now, state = (t + d) & mask, t & mask, outcome >> 1
        losses[due, state] += 1
        losses[due, S + state] += 1 - (outcome & 1)
        arrived = I64(0)
        for s in range(S):
            seen[s] += losses[now, s]
            ones[s] += losses[now, S + s]
            losses[now, s] = losses[now, S + s] = 0
            arrived += seen[s]
        if waiters[now] > 0:
            feed_waiting(cumulative, seen, ones, tickets[now], radius)
            pending -= waiters[now]
            waiters[now] = 0
        if d == 0 or seen[state] >= t - arrived:
            _add(cumulative, action, ticket * _lower(seen, ones, state, radius))
        else:
            tickets[due, state, action] += ticket
            waiters[due] += 1
            pending += 1
        return pending

    return make, learn


@lru_cache
def _kernel(K, S, meta, random):
    """Compiled kernel for K actions and S states, both compile-time constants."""
    weigh, pick, observe = _stages(K, S)
    if meta:
        make, learn = (_meta_random if random else _meta_fixed)(K, S)
    else:
        make, learn = (_dada_random if random else _dada_fixed)(K, S)

    @compiled
    def game(key, cuts, gap, horizon, scale, radius, location, spread):
        """Final pseudo-regret of one run."""
        cumulative, weight, cdf = np.zeros(K, F), np.zeros(K, F), np.zeros(K, F)
        seen, ones = np.zeros(S, np.int32), np.zeros(S, np.int32)
        box = make(slots_for(location + TAIL * spread))
        delay, delays, pending, regret = I64(location), I64(0), I64(0), 0.0
        for t in range(1, horizon + 1):
            delays += pending
            eta = scale / F(math.sqrt(F(2 * K * t + delays)))
            total = weigh(cumulative, weight, cdf, eta)
            key += GOLDEN
            word = _mix(key)
            action = pick(cdf, uniform(U32(word >> U64(32))) * total)
            outcome = observe(cuts, action, uniform(U32(word)))
            ticket = total / (weight[action] + eta * total)
            regret += gap[action]
            if random:
                key += GOLDEN
                delay = I64(laplace_delay(U32(_mix(key) >> U64(32)), F(location), F(spread)))
            pending = learn(
                box, cumulative, seen, ones, t, delay, action, outcome, ticket, radius, pending
            )
        return regret

    @njit(parallel=True, fastmath=True, error_model="numpy")
    def kernel(keys, cuts, gap, horizon, scale, radius, location, spread):
        regret = np.empty(len(keys))
        for run in prange(len(keys)):
            regret[run] = game(keys[run], cuts, gap, horizon, scale, radius, location, spread)
        return regret

    return kernel


def play(learner, P, theta, horizon, runs, seed, delta=0.1, delay=50, laplace=None):
    """Final pseudo-regret [runs] of "dada-exp3" or "metabio" (corrected tuning).

    `delay` is the fixed delay; `laplace=(location, scale)` takes its place when given.
    """
    P, theta = np.asarray(P, float), np.asarray(theta, float)
    K, S = P.shape
    scale, radius = constants(learner, K, S, horizon, delta)
    cuts, gap = tables(P, theta)
    if laplace is None and delay == 0:
        laplace = (0, 0)
    location, spread = map(float, (delay, 0) if laplace is None else laplace)
    kernel = _kernel(K, S, radius is not None, laplace is not None)
    keys = np.random.SeedSequence(seed).generate_state(runs, np.uint64)
    return kernel(keys, cuts, gap, horizon, F(scale), F(radius or 0), location, spread)
