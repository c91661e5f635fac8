"""SIMD Numba kernels: DAda-Exp3 and MetaBIO over DAda-Exp3, fixed or Laplace delays.

The strongest competitor that we could write without jaxbio, a step beyond `numba_scalar`. `prange`
spreads blocks of `LANES` runs over the cores; inside a block every stage of a round is a loop over
the lanes, written without branches so that LLVM turns it into SIMD code. Single precision, one
xoshiro128++ generator per run, an own exponential and logarithm, no allocation after the first
round.

Sums that grow with the horizon (regret, delay total) are kept in float64 and touched once per
`CHUNK` rounds; counts are exact up to 2**24 observations per state.
"""

import math
from functools import lru_cache

import numpy as np
from numba import njit, prange

from benchmarks.baselines.numba_common import (
    I32,
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

LANES = 64
CHUNK = 1024

# rows of a block's state [rows * LANES], before those that depend on K and S
ETA, TOTAL, TICKET, BASE, DELAYS, PENDING, OUTSTANDING, REGRET = range(8)
ACTION, STATE, LOSS, WAITING = range(8, 12)  # the play of this round
OLD_ACTION, OLD_STATE, OLD_LOSS, OLD_WAITING = range(12, 16)  # the play that arrives
U_ACTION, U_OUTCOME, DELAY = range(16, 19)
CUMULATIVE = 19  # cumulative loss estimates [K], then weights [K], then per-state rows


@inlined
def _at(row, j):
    """Flat index of (row, lane): constant strides, unsigned, so that loops become SIMD."""
    return np.uint64(row * LANES + j)


@inlined
def _rotate(x, k):
    return U32(U32(x << U32(k)) | U32(x >> U32(32 - k)))


@inlined
def _bits(rng, j):
    """Next xoshiro128++ word of lane j; rng is [4 * LANES]."""
    s0, s1, s2, s3 = rng[_at(0, j)], rng[_at(1, j)], rng[_at(2, j)], rng[_at(3, j)]
    word = U32(_rotate(U32(s0 + s3), 7) + s0)
    shifted = U32(s1 << U32(9))
    s2, s3 = U32(s2 ^ s0), U32(s3 ^ s1)
    rng[_at(0, j)], rng[_at(1, j)] = U32(s0 ^ s3), U32(s1 ^ s2)
    rng[_at(2, j)], rng[_at(3, j)] = U32(s2 ^ shifted), _rotate(s3, 11)
    return word


@inlined
def _slot(st, t, mask, size, j):
    """Where the mailbox slot of lane j's arrival begins."""
    return np.uint64(((t + int(st[_at(DELAY, j)])) & mask) * size)


@compiled
def _draw(st, rng):
    """One uniform for the action and one for (state, loss), per lane."""
    for j in range(LANES):
        st[_at(U_ACTION, j)] = uniform(_bits(rng, j))
        st[_at(U_OUTCOME, j)] = uniform(_bits(rng, j))


@compiled
def _draw_delay(st, rng, location, scale):
    """Laplace delay, rounded to the nearest integer and clipped at 0, per lane."""
    for j in range(LANES):
        st[_at(DELAY, j)] = laplace_delay(_bits(rng, j), location, scale)


@compiled
def _copy(source, row, target, target_row):
    """Copy the four rows of a play."""
    for i in range(4 * LANES):
        target[_at(target_row, i)] = source[_at(row, i)]


@compiled
def _flush(st, totals, step):
    """Move the short float32 sums into float64: totals[0] regret, totals[1] 2Kt + D."""
    for j in range(LANES):
        totals[0, j] += st[_at(REGRET, j)]
        totals[1, j] += st[_at(DELAYS, j)] + step
        st[_at(REGRET, j)] = ZERO
        st[_at(DELAYS, j)] = ZERO
        st[_at(BASE, j)] = F(totals[1, j])


def _play_stages(K, S):
    """The stages that every learner shares: weigh the actions, pick one, see the outcome."""
    WEIGHT, CUTS = CUMULATIVE + K, 2 * S - 1

    @compiled
    def weigh(st, scale, step):
        """eta_t = scale / sqrt(2Kt + D) and the unnormalised weights exp(-eta Lhat)."""
        for j in range(LANES):
            delays = st[_at(DELAYS, j)] + st[_at(PENDING, j)]
            st[_at(DELAYS, j)] = delays
            eta = scale / F(math.sqrt(st[_at(BASE, j)] + step + delays))
            low = st[_at(CUMULATIVE, j)]
            for k in range(1, K):
                x = st[_at(CUMULATIVE + k, j)]
                low = min(low, x)
            total = ZERO
            for k in range(K):
                x = st[_at(CUMULATIVE + k, j)] - low
                st[_at(CUMULATIVE + k, j)] = x
                w = exp2(-eta * LOG2E * x)
                st[_at(WEIGHT + k, j)] = w
                total += w
            st[_at(ETA, j)] = eta
            st[_at(TOTAL, j)] = total

    @compiled
    def pick(st, gap):
        """Action by inverse cdf; its ticket 1 / (p + gamma); one-hot left in the weight rows."""
        for j in range(LANES):
            total = st[_at(TOTAL, j)]
            u = st[_at(U_ACTION, j)] * total
            cdf, above, action, weight, regret = ZERO, ONE, ZERO, ZERO, ZERO
            for k in range(K):
                w = st[_at(WEIGHT + k, j)]
                cdf += w
                beyond = F(u >= cdf) if k < K - 1 else ZERO
                hot = above - beyond
                above = beyond
                action += beyond
                weight += hot * w
                regret += hot * gap[k]
                st[_at(WEIGHT + k, j)] = hot
            st[_at(ACTION, j)] = action
            st[_at(TICKET, j)] = total / (weight + st[_at(ETA, j)] * total)
            st[_at(REGRET, j)] += regret

    @compiled
    def observe(st, cuts):
        """State and loss from one uniform; cuts is [K, 2S - 1], a cdf over (s, 1), (s, 0)."""
        for j in range(LANES):
            u = st[_at(U_OUTCOME, j)]
            outcome = ZERO
            for q in range(CUTS):
                cut = ZERO
                for k in range(K):
                    cut += st[_at(WEIGHT + k, j)] * cuts[k, q]
                outcome += F(u >= cut)
            state = F(I32(outcome) >> I32(1))
            st[_at(STATE, j)] = state
            st[_at(LOSS, j)] = ONE - (outcome - state - state)

    return weigh, pick, observe


def _dada_fixed(K):
    """Feedback of DAda-Exp3 under a fixed delay: one old play arrives, one is filed."""

    @compiled
    def learn(st, outstanding, radius):
        for j in range(LANES):
            fed = st[_at(OLD_WAITING, j)]
            old = st[_at(OLD_ACTION, j)]
            for k in range(K):
                st[_at(CUMULATIVE + k, j)] += fed * F(old == F(k))
            st[_at(WAITING, j)] = st[_at(TICKET, j)] * st[_at(LOSS, j)]
            st[_at(PENDING, j)] = outstanding

    return learn


def _meta_fixed(K, S):
    """Feedback of MetaBIO under a fixed delay: waiting rounds carry their ticket, others 0."""
    ESTIMATE = CUMULATIVE + 2 * K
    COUNT, SUM = ESTIMATE + S, ESTIMATE + 2 * S

    @compiled
    def arrive(st, radius):
        """Add the loss that arrives to its state; renew that state's estimate."""
        for j in range(LANES):
            old, loss = st[_at(OLD_STATE, j)], st[_at(OLD_LOSS, j)]
            count, total = ZERO, ZERO
            for s in range(S):
                hot = F(old == F(s))
                n, x = st[_at(COUNT + s, j)] + hot, st[_at(SUM + s, j)] + hot * loss
                st[_at(COUNT + s, j)] = n
                st[_at(SUM + s, j)] = x
                count += hot * n
                total += hot * x
            inverse = ONE / max(ONE, count)
            value = total * inverse - F(math.sqrt(radius * inverse))
            value = max(ZERO, value)
            for s in range(S):
                hot = F(old == F(s))
                st[_at(ESTIMATE + s, j)] += hot * (value - st[_at(ESTIMATE + s, j)])
            st[_at(OLD_LOSS, j)] = value

    @compiled
    def feed(st, outstanding):
        """Feed the old play if it waited, and the new one unless it has to wait."""
        for j in range(LANES):
            value, count = ZERO, ZERO
            for s in range(S):
                hot = F(st[_at(STATE, j)] == F(s))
                value += hot * st[_at(ESTIMATE + s, j)]
                count += hot * st[_at(COUNT + s, j)]
            wait = F(count < outstanding)
            ticket, waited = st[_at(TICKET, j)], st[_at(OLD_WAITING, j)]
            new, late = (ONE - wait) * ticket * value, waited * st[_at(OLD_LOSS, j)]
            action, old = st[_at(ACTION, j)], st[_at(OLD_ACTION, j)]
            for k in range(K):
                st[_at(CUMULATIVE + k, j)] += new * F(action == F(k)) + late * F(old == F(k))
            st[_at(WAITING, j)] = wait * ticket
            st[_at(PENDING, j)] += wait - F(waited > ZERO)

    @compiled
    def learn(st, outstanding, radius):
        arrive(st, radius)
        feed(st, outstanding)

    return learn


def _block_fixed(K, S, learn):
    """All rounds of one block of runs with a fixed delay d >= 1."""
    weigh, pick, observe = _play_stages(K, S)
    rows = CUMULATIVE + 2 * K + 3 * S

    @compiled
    def block(rng, cuts, gap, horizon, scale, radius, d, _scale):
        st = np.zeros(rows * LANES, np.float32)
        ring = np.zeros((d, 4 * LANES), np.float32)
        ring[:, : 2 * LANES] = F(-1)
        totals = np.zeros((2, LANES))
        slot, step = 0, 0
        for t in range(1, horizon + 1):
            step += 1
            _copy(ring[slot], 0, st, OLD_ACTION)
            weigh(st, scale, F(2 * K * step))
            _draw(st, rng)
            pick(st, gap)
            observe(st, cuts)
            learn(st, F(min(t, d)), radius)
            _copy(st, ACTION, ring[slot], 0)
            slot = slot + 1 if slot + 1 < d else 0
            if step == CHUNK:
                _flush(st, totals, 2.0 * K * step)
                step = 0
        _flush(st, totals, 0.0)
        return totals[0]

    return block


def _dada_random(K):
    """Feedback of DAda-Exp3 under random delays; a mailbox slot is K loss sums and a count."""
    SIZE = (K + 1) * LANES

    @compiled
    def file(st, box, t, mask):
        """Put loss / (p + gamma) into the slot of its arrival: one scalar write per lane."""
        for j in range(LANES):
            slot = _slot(st, t, mask, SIZE, j)
            box[slot + _at(int(st[_at(ACTION, j)]), j)] += st[_at(TICKET, j)] * st[_at(LOSS, j)]
            box[slot + _at(K, j)] += ONE

    @compiled
    def collect(st, mail):
        """Feed everything that arrives now and empty the slot."""
        for j in range(LANES):
            for k in range(K):
                st[_at(CUMULATIVE + k, j)] += mail[_at(k, j)]
                mail[_at(k, j)] = ZERO
            st[_at(PENDING, j)] += ONE - mail[_at(K, j)]
            mail[_at(K, j)] = ZERO

    @compiled
    def learn(st, box, t, mask, radius):
        file(st, box, t, mask)
        collect(st, box[(t & mask) * SIZE : (t & mask) * SIZE + SIZE])

    return learn, K + 1


def _meta_random(K, S):
    """Feedback of MetaBIO under random delays, estimates from all losses arrived ("together").

    A mailbox slot holds, per state, the number and the sum of the losses that arrive; the number
    of waiting rounds; and the sum of their tickets per (state, action).
    """
    ESTIMATE = CUMULATIVE + 2 * K
    COUNT, SUM = ESTIMATE + S, ESTIMATE + 2 * S
    WAITERS, TICKETS = 2 * S, 2 * S + 1
    SIZE = (TICKETS + S * K) * LANES

    @compiled
    def file(st, box, t, mask):
        """Put the loss into the slot of its arrival: one scalar write per lane."""
        for j in range(LANES):
            slot, s = _slot(st, t, mask, SIZE, j), int(st[_at(STATE, j)])
            box[slot + _at(s, j)] += ONE
            box[slot + _at(S + s, j)] += st[_at(LOSS, j)]

    @compiled
    def collect(st, mail, radius):
        """Move the arrivals of this round into the counts, sums and estimates."""
        for j in range(LANES):
            arrived = ZERO
            for s in range(S):
                new = mail[_at(s, j)]
                n, x = st[_at(COUNT + s, j)] + new, st[_at(SUM + s, j)] + mail[_at(S + s, j)]
                mail[_at(s, j)] = ZERO
                mail[_at(S + s, j)] = ZERO
                st[_at(COUNT + s, j)] = n
                st[_at(SUM + s, j)] = x
                inverse = ONE / max(ONE, n)
                value = x * inverse - F(math.sqrt(radius * inverse))
                st[_at(ESTIMATE + s, j)] = max(ZERO, value)
                arrived += new
            st[_at(OUTSTANDING, j)] += ONE - arrived

    @compiled
    def feed(st, mail):
        """Feed the round just played unless it has to wait; returns how many lanes wait."""
        waiters = ZERO
        for j in range(LANES):
            value, count = ZERO, ZERO
            for s in range(S):
                hot = F(st[_at(STATE, j)] == F(s))
                value += hot * st[_at(ESTIMATE + s, j)]
                count += hot * st[_at(COUNT + s, j)]
            wait = F(count < st[_at(OUTSTANDING, j)]) * F(st[_at(DELAY, j)] > ZERO)
            new = (ONE - wait) * st[_at(TICKET, j)] * value
            for k in range(K):
                st[_at(CUMULATIVE + k, j)] += new * F(st[_at(ACTION, j)] == F(k))
            st[_at(WAITING, j)] = wait
            st[_at(PENDING, j)] += wait
            waiters += wait
        return waiters

    @compiled
    def file_waiting(st, box, t, mask):
        """File the tickets of the lanes that wait."""
        for j in range(LANES):
            if st[_at(WAITING, j)] > ZERO:
                slot = _slot(st, t, mask, SIZE, j)
                box[slot + _at(WAITERS, j)] += ONE
                box[
                    slot + _at(TICKETS + int(st[_at(STATE, j)]) * K + int(st[_at(ACTION, j)]), j)
                ] += st[_at(TICKET, j)]

    @compiled
    def feed_waiting(st, mail):
        """Feed the waiting rounds that arrive now, if any lane has one."""
        late = ZERO
        for j in range(LANES):
            late += mail[_at(WAITERS, j)]
        if late == ZERO:
            return
        for j in range(LANES):
            st[_at(PENDING, j)] -= mail[_at(WAITERS, j)]
            mail[_at(WAITERS, j)] = ZERO
            for s in range(S):
                for k in range(K):
                    x = mail[_at(TICKETS + s * K + k, j)]
                    st[_at(CUMULATIVE + k, j)] += st[_at(ESTIMATE + s, j)] * x
                    mail[_at(TICKETS + s * K + k, j)] = ZERO

    @compiled
    def learn(st, box, t, mask, radius):
        mail = box[(t & mask) * SIZE : (t & mask) * SIZE + SIZE]
        file(st, box, t, mask)
        collect(st, mail, radius)
        feed_waiting(st, mail)
        if feed(st, mail) > ZERO:
            file_waiting(st, box, t, mask)

    return learn, TICKETS + S * K


def _block_random(K, S, learn, fields):
    """All rounds of one block of runs with Laplace delays, exact for any number of arrivals."""
    weigh, pick, observe = _play_stages(K, S)
    rows = CUMULATIVE + 2 * K + 3 * S

    @compiled
    def block(rng, cuts, gap, horizon, scale, radius, location, spread):
        st = np.zeros(rows * LANES, np.float32)
        slots = slots_for(location + TAIL * spread)
        box = np.zeros(slots * fields * LANES, np.float32)
        totals = np.zeros((2, LANES))
        step = 0
        for t in range(1, horizon + 1):
            step += 1
            weigh(st, scale, F(2 * K * step))
            _draw(st, rng)
            _draw_delay(st, rng, F(location), F(spread))
            pick(st, gap)
            observe(st, cuts)
            learn(st, box, t, slots - 1, radius)
            if step == CHUNK:
                _flush(st, totals, 2.0 * K * step)
                step = 0
        _flush(st, totals, 0.0)
        return totals[0]

    return block


@lru_cache
def _kernel(K, S, meta, random):
    """Compiled kernel for K actions and S states, both compile-time constants."""
    if random:
        block = _block_random(K, S, *(_meta_random(K, S) if meta else _dada_random(K)))
    else:
        block = _block_fixed(K, S, _meta_fixed(K, S) if meta else _dada_fixed(K))

    @njit(parallel=True, fastmath=True)
    def kernel(rng, cuts, gap, horizon, scale, radius, first, second):
        regret = np.empty((len(rng), LANES))
        for b in prange(len(rng)):
            regret[b] = block(rng[b], cuts, gap, horizon, scale, radius, first, second)
        return regret

    return kernel


def _generators(seed, runs):
    """xoshiro128++ states [blocks, 4 * LANES]; the last block may have idle lanes."""
    blocks = -(-runs // LANES)
    words = np.random.SeedSequence(seed).generate_state(blocks * LANES * 4)
    return np.ascontiguousarray(words.reshape(blocks, LANES, 4).transpose(0, 2, 1)).reshape(
        blocks, -1
    )


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
    first, second = (delay, 0) if laplace is None else map(float, laplace)
    kernel = _kernel(K, S, radius is not None, laplace is not None)
    rng = _generators(seed, runs)
    regret = kernel(rng, cuts, gap, horizon, F(scale), F(radius or 0), first, second)
    return regret.ravel()[:runs]
