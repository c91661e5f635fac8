"""NumPy over all runs at once: a Python loop over rounds, arrays with the runs as the last axis.

Plays DAda-Exp3 (corrected tuning) or MetaBIO over DAda-Exp3 (outstanding threshold, lower
confidence estimates from all losses that have arrived), Bernoulli losses, stochastic mapping.

What a determined user finds: with the runs last, sums over K or S are sums of long rows; random
numbers come for many rounds in one call, in single precision; look-ups go through flat positions;
a fixed delay needs a ring of plays and no scatter; with random delays everything is filed under its
round of arrival, and rounds that wait, which are rare, are handled apart.
"""

import math

import numpy as np

from benchmarks.baselines.numpy_loop import constants

F = np.float32
ROUNDS_DRAWN = 64  # rounds whose random numbers are drawn in one call
TAIL = 40  # a Laplace draw beyond location + 40 scales has probability e**-40


class _DAdaExp3:
    """DAda-Exp3 for all runs. losses: float32 [K, runs], relative to the least."""

    def __init__(self, num_actions, runs, scale):
        self.scale, self.runs = F(scale), np.arange(runs)
        self.losses = np.zeros((num_actions, runs), F)
        self.budget = np.zeros(runs, np.int64)  # 2 K t + D
        self.pending = np.zeros(runs, np.int64)

    def act(self, u):
        """Actions, their flat positions in [K, runs], and the tickets 1 / (p + gamma), [runs] each.

        u: uniforms [runs].
        """
        self.budget += self.pending + 2 * len(self.losses)
        eta = self.scale / np.sqrt(self.budget.astype(F))
        self.losses -= self.losses.min(axis=0)
        weights = np.exp(self.losses * -eta)
        cdf = np.add.accumulate(weights, axis=0)
        total = cdf[-1]
        action = _index(u * total, cdf[:-1])
        at = action * len(self.runs) + self.runs
        return action, at, total / (weights.take(at) + eta * total)

    def feed(self, at, values):
        """Add values [n] at flat positions [n], no position twice."""
        self.losses.reshape(-1)[at] += values


def _index(u, cdf):
    """How many entries of a column [n, runs] are at most u [runs]: a draw by inverse cdf."""
    return np.add.reduce(u >= cdf, axis=0, dtype=np.intp)


class _World:
    """Draws states, losses and delays. cdf: [S - 1, K]; theta: [S]."""

    def __init__(self, rng, P, theta, runs, delay, laplace):
        self.rng, self.runs, self.delay, self.laplace = rng, runs, delay, laplace
        self.cdf = np.cumsum(P, axis=1)[:, :-1].T.astype(F)
        self.theta = theta.astype(F)

    def rounds(self, number):
        """Uniforms [3, runs] and delays [runs] (an integer if fixed) of that many rounds."""
        uniforms = self.rng.random((number, 3, self.runs), F)
        if self.laplace is None:
            return zip(uniforms, [self.delay] * number, strict=True)
        delays = np.rint(self.rng.laplace(*self.laplace, (number, self.runs)))
        return zip(uniforms, np.maximum(delays, 0).astype(np.intp), strict=True)

    def observe(self, action, u, v):
        """States and losses [runs]."""
        state = _index(u, self.cdf.take(action, axis=1))
        return state, v < self.theta.take(state)


class _FixedRing:
    """What was filed d rounds ago, for a fixed delay d >= 1."""

    def __init__(self, delay):
        self.delay, self.plays = delay, [None] * delay

    def swap(self, t, play):
        """File the play of round t (from 1) and return the one that arrives now, None at first."""
        slot = t % self.delay
        old, self.plays[slot] = self.plays[slot], play
        return old


class _DAdaFixed:
    """DAda-Exp3 alone, fixed delay."""

    def __init__(self, base, ring):
        self.base, self.ring = base, ring

    def learn(self, t, at, ticket, state, loss, delay):
        arrived = self.ring.swap(t, (at, ticket * loss))
        if arrived is None:
            self.base.pending += 1
        else:
            self.base.feed(*arrived)


class _DAdaRandom:
    """DAda-Exp3 alone, any delays: sums [slots, K, runs] and numbers of losses by arrival."""

    def __init__(self, base, slots):
        self.base = base
        self.losses = np.zeros((slots, *base.losses.shape), F)
        self.number = np.zeros((slots, len(base.runs)), np.int32)

    def learn(self, t, at, ticket, state, loss, delay):
        base, slots, now = self.base, len(self.number), t % len(self.number)
        due = (t + np.minimum(delay, slots - 1)) % slots
        self.losses.reshape(-1)[due * base.losses.size + at] += ticket * loss
        self.number.reshape(-1)[due * len(base.runs) + base.runs] += 1
        base.losses += self.losses[now]
        base.pending += 1 - self.number[now]
        self.losses[now] = self.number[now] = 0


class _Estimates:
    """Losses that have arrived, per state: how many and how many were 1, [S, runs] each."""

    def __init__(self, num_states, runs, radius):
        self.radius = F(radius)
        self.count, self.ones = np.zeros((2, num_states, runs), F)

    def lower(self, at):
        """Lower confidence bounds on the mean losses at flat positions of any shape, at least 0."""
        inverse = 1 / np.maximum(self.count.take(at), 1)
        return np.maximum(self.ones.take(at) * inverse - np.sqrt(self.radius * inverse), 0)


class _MetaFixed:
    """MetaBIO, fixed delay: the ring also holds whether a play waits, bool [runs]."""

    def __init__(self, base, ring, estimates):
        self.base, self.ring, self.estimates = base, ring, estimates

    def _collect(self, at, seen, loss, ticket, wait):
        """Losses that arrive now: record them, feed those that waited."""
        self.estimates.count.reshape(-1)[seen] += 1
        self.estimates.ones.reshape(-1)[seen] += loss
        if wait.any():
            self.base.feed(at, ticket * wait * self.estimates.lower(seen))
            self.base.pending -= wait

    def learn(self, t, at, ticket, state, loss, delay):
        seen = state * len(self.base.runs) + self.base.runs
        wait = np.empty(len(seen), bool)  # filled in below, after the arrivals
        arrived = self.ring.swap(t, (at, seen, loss, ticket, wait))
        if arrived is not None:
            self._collect(*arrived)
        np.less(self.estimates.count.take(seen), min(t, delay), out=wait)
        self.base.feed(at, ticket * ~wait * self.estimates.lower(seen))
        self.base.pending += wait


class _MetaRandom:
    """MetaBIO, any delays. By arrival: numbers of losses and of losses 1, [slots, S, runs] each,
    and of the rounds that wait their number [slots, runs] and tickets [slots, S, K, runs].
    """

    def __init__(self, base, slots, estimates):
        self.base, self.slots, self.estimates = base, slots, estimates
        self.number = np.zeros((slots, *estimates.count.shape), F)
        self.ones = np.zeros_like(self.number)
        self.waiters = np.zeros((slots, len(base.runs)), np.int32)
        self.tickets = np.zeros((slots, len(estimates.count), *base.losses.shape), F)
        self.outstanding = np.zeros(len(base.runs), F)

    def _collect(self, now):
        """Record the losses that arrive now, and feed the rounds that waited for them."""
        self.estimates.count += self.number[now]
        self.estimates.ones += self.ones[now]
        self.outstanding += 1 - self.number[now].sum(axis=0)
        self.number[now] = self.ones[now] = 0
        if self.waiters[now].any():
            every = np.arange(self.estimates.count.size).reshape(self.estimates.count.shape)
            value = self.estimates.lower(every)
            self.base.losses += (value[:, None] * self.tickets[now]).sum(axis=0)
            self.base.pending -= self.waiters[now]
            self.waiters[now] = self.tickets[now] = 0

    def _file_waiting(self, wait, due, at, state, ticket):
        """The plays of the runs in `wait` [runs] will be fed when their losses arrive."""
        size = self.base.losses.size
        slot = due[wait] * len(self.estimates.count) + state[wait]
        self.tickets.reshape(-1)[slot * size + at[wait]] += ticket[wait]
        self.waiters[due[wait], np.flatnonzero(wait)] += 1

    def learn(self, t, at, ticket, state, loss, delay):
        base = self.base
        seen = state * len(base.runs) + base.runs
        due = (t + np.minimum(delay, self.slots - 1)) % self.slots
        filed = due * self.estimates.count.size + seen
        self.number.reshape(-1)[filed] += 1
        self.ones.reshape(-1)[filed] += loss
        self._collect(t % self.slots)
        wait = (self.estimates.count.take(seen) < self.outstanding) & (delay > 0)
        base.feed(at, ticket * ~wait * self.estimates.lower(seen))
        base.pending += wait
        if wait.any():
            self._file_waiting(wait, due, at, state, ticket)


def _player(base, num_states, radius, delay, laplace):
    """The part that gets the feedback; radius None means DAda-Exp3 alone."""
    estimates = None if radius is None else _Estimates(num_states, len(base.runs), radius)
    if laplace is None:
        ring = _FixedRing(delay)
        return _DAdaFixed(base, ring) if estimates is None else _MetaFixed(base, ring, estimates)
    slots = math.ceil(laplace[0] + TAIL * laplace[1]) + 2
    return _DAdaRandom(base, slots) if estimates is None else _MetaRandom(base, slots, estimates)


def play(learner, P, theta, horizon, runs, seed, delta=0.1, delay=50, laplace=None):
    """Final pseudo-regret [runs], all runs stepped together.

    `delay` is the fixed delay; `laplace=(location, scale)` takes its place when given.
    """
    P, theta = np.asarray(P, float), np.asarray(theta, float)
    laplace = (0, 0) if laplace is None and delay == 0 else laplace
    scale, radius = constants(learner, len(P), len(theta), horizon, delta)
    world = _World(np.random.default_rng(seed), P, theta, runs, delay, laplace)
    base = _DAdaExp3(len(P), runs, scale)
    player = _player(base, P.shape[1], radius, delay, laplace)
    gaps, regret = P @ theta - (P @ theta).min(), np.zeros(runs)
    for before in range(0, horizon, ROUNDS_DRAWN):
        drawn = world.rounds(min(ROUNDS_DRAWN, horizon - before))
        for t, ((u, v, w), delays) in enumerate(drawn, before + 1):
            action, at, ticket = base.act(u)
            state, loss = world.observe(action, v, w)
            player.learn(t, at, ticket, state, loss, delays)
            regret += gaps.take(action)
    return regret
