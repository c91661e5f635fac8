"""NumPy baselines: a plain loop over one run at a time, and arrays [runs, K] stepped together.

Both play DAda-Exp3 (corrected tuning) or MetaBIO over DAda-Exp3 (outstanding threshold, lower
confidence estimates from all losses that have arrived), Bernoulli losses, stochastic mapping.
"""

import math
from collections import defaultdict

import numpy as np

TAIL = 40  # a Laplace draw beyond location + 40 scales has probability e**-40


def constants(learner, num_actions, num_states, horizon, delta):
    """Scale of eta_t, and ln(4ST/delta) / 2 for the squared radius (None without estimates)."""
    if learner not in ("dada-exp3", "metabio"):
        raise ValueError(f"learner must be 'dada-exp3' or 'metabio', got {learner!r}")
    meta = learner == "metabio"
    confidence = delta / 4 if meta else delta / 2
    scale = 0.5 * math.sqrt(3 * math.log(num_actions) + math.log(1 / confidence))
    return scale, 0.5 * math.log(4 * num_states * horizon / delta) if meta else None


def _delays(rng, size, delay, laplace):
    """Integer delays: fixed, or Laplace rounded to nearest and clipped at 0."""
    if laplace is None:
        return np.full(size, delay)
    return np.maximum(np.rint(rng.laplace(*laplace, size)), 0).astype(int)


class _DAdaExp3:
    """DAda-Exp3 for one run: the current rate on the whole sum of loss estimates."""

    def __init__(self, num_actions, scale):
        self.scale = scale
        self.losses = np.zeros(num_actions)
        self.rounds = self.delays = self.pending = 0

    def act(self, rng):
        """Draw an action; return it with p + gamma of play time."""
        self.rounds += 1
        self.delays += self.pending
        eta = self.scale / math.sqrt(2 * len(self.losses) * self.rounds + self.delays)
        p = np.exp(-eta * (self.losses - self.losses.min()))
        p /= p.sum()
        action = rng.choice(len(p), p=p)
        self.pending += 1
        return action, p[action] + eta

    def feed(self, action, q, loss):
        """Add one importance-weighted loss."""
        self.losses[action] += loss / q
        self.pending -= 1


class _Estimates:
    """MetaBIO's record of the losses that have arrived, per state."""

    def __init__(self, num_states, radius):
        self.radius = radius
        self.count = np.zeros(num_states, int)
        self.total = np.zeros(num_states)

    def add(self, state, loss):
        self.count[state] += 1
        self.total[state] += loss

    def lower(self, state):
        """Lower confidence bound on the state's mean loss, at least 0."""
        n = max(self.count[state], 1)
        return max(0.0, self.total[state] / n - math.sqrt(self.radius / n))


def _one_run(rng, P, theta, horizon, scale, radius, delays):
    """Counts of plays [K] of one run; radius None means DAda-Exp3 alone."""
    num_actions, num_states = P.shape
    base, plays = _DAdaExp3(num_actions, scale), np.zeros(num_actions)
    estimates = None if radius is None else _Estimates(num_states, radius)
    due, outstanding = defaultdict(list), 0
    for t, d in enumerate(delays):
        action, q = base.act(rng)
        plays[action] += 1
        state = rng.choice(num_states, p=P[action])
        play = {"action": action, "q": q, "state": state, "wait": True}
        play["loss"] = float(rng.random() < theta[state])
        due[t + d].append(play)
        arrived = due.pop(t, [])
        outstanding += 1 - len(arrived)
        if estimates is None:
            _feed_losses(base, arrived)
        else:
            _feed_estimates(base, estimates, arrived, play, outstanding, d)
    return plays


def _feed_losses(base, arrived):
    """Plain delayed feedback: every arrived loss goes to the base bandit."""
    for play in arrived:
        base.feed(play["action"], play["q"], play["loss"])


def _feed_estimates(base, estimates, arrived, play, outstanding, delay):
    """MetaBIO's round: record arrivals, decide whether the new play waits, feed estimates."""
    for old in arrived:
        estimates.add(old["state"], old["loss"])
    fed = [old for old in arrived if old["wait"]]
    if delay > 0 and estimates.count[play["state"]] >= outstanding:
        play["wait"] = False
        fed.append(play)
    for old in fed:
        base.feed(old["action"], old["q"], estimates.lower(old["state"]))


def play_loop(learner, P, theta, horizon, runs, seed, delta=0.1, delay=50, laplace=None):
    """Final pseudo-regret [runs], one run after the other in plain Python and NumPy.

    `delay` is the fixed delay; `laplace=(location, scale)` takes its place when given.
    """
    P, theta = np.asarray(P, float), np.asarray(theta, float)
    num_actions, num_states = P.shape
    scale, radius = constants(learner, num_actions, num_states, horizon, delta)
    means = P @ theta
    regret = np.empty(runs)
    for run, child in enumerate(np.random.SeedSequence(seed).spawn(runs)):
        rng = np.random.default_rng(child)
        delays = _delays(rng, horizon, delay, laplace)
        plays = _one_run(rng, P, theta, horizon, scale, radius, delays)
        regret[run] = plays @ (means - means.min())
    return regret


def _pick(rng, weights):
    """Index along the last axis by inverse cdf, for unnormalised weights [runs, n]."""
    cdf = np.cumsum(weights, axis=1)
    return (rng.random((len(cdf), 1)) * cdf[:, -1:] >= cdf[:, :-1]).sum(axis=1)


class _DAdaBatch:
    """DAda-Exp3 for all runs at once; the caller says what is pending."""

    def __init__(self, runs, num_actions, scale):
        self.scale, self.rows = scale, np.arange(runs)
        self.losses = np.zeros((runs, num_actions))
        self.delays, self.pending, self.rounds = np.zeros(runs), np.zeros(runs), 0

    def act(self, rng):
        """Draw the actions; return them with their tickets 1 / (p + gamma)."""
        self.rounds += 1
        self.delays += self.pending
        eta = self.scale / np.sqrt(2 * self.losses.shape[1] * self.rounds + self.delays)
        self.losses -= self.losses.min(axis=1, keepdims=True)
        weights = np.exp(-eta[:, None] * self.losses)
        action = _pick(rng, weights)
        return action, 1 / (weights[self.rows, action] / weights.sum(axis=1) + eta)


class _DAdaMail:
    """Mailbox of DAda-Exp3: importance-weighted losses and their number, by arrival."""

    def __init__(self, base, slots, num_actions):
        self.base, self.slots = base, slots
        self.losses = np.zeros((slots, len(base.rows), num_actions))
        self.number = np.zeros((slots, len(base.rows)))

    def learn(self, t, action, state, loss, ticket, delay):
        base, due, now = self.base, (t + delay) % self.slots, t % self.slots
        self.losses[due, base.rows, action] += loss * ticket
        self.number[due, base.rows] += 1
        base.losses += self.losses[now]
        base.pending += 1 - self.number[now]
        self.losses[now] = self.number[now] = 0


class _MetaMail:
    """Mailbox of MetaBIO: losses per state and tickets of waiting rounds, by arrival."""

    def __init__(self, base, slots, num_actions, num_states, radius):
        runs = len(base.rows)
        self.base, self.slots, self.radius = base, slots, radius
        self.number = np.zeros((slots, runs, num_states))
        self.losses = np.zeros((slots, runs, num_states))
        self.tickets = np.zeros((slots, runs, num_states, num_actions), np.float32)
        self.waiters = np.zeros((slots, runs))
        self.count, self.total = np.zeros((2, runs, num_states))
        self.outstanding = np.zeros(runs)

    def _collect(self, now):
        """Record the losses that arrive now; return the estimates [runs, S]."""
        self.count += self.number[now]
        self.total += self.losses[now]
        self.outstanding += 1 - self.number[now].sum(axis=1)
        self.number[now] = self.losses[now] = 0
        n = np.maximum(self.count, 1)
        return np.maximum(self.total / n - np.sqrt(self.radius / n), 0)

    def _feed_waiting(self, now, estimate):
        """Feed the waiting rounds that arrive now, if there are any."""
        if self.waiters[now].any():
            self.base.losses += np.einsum("rs,rsk->rk", estimate, self.tickets[now])
            self.base.pending -= self.waiters[now]
            self.waiters[now] = self.tickets[now] = 0

    def learn(self, t, action, state, loss, ticket, delay):
        base, rows = self.base, self.base.rows
        due, now = (t + delay) % self.slots, t % self.slots
        self.number[due, rows, state] += 1
        self.losses[due, rows, state] += loss
        estimate = self._collect(now)
        self._feed_waiting(now, estimate)
        wait = (self.count[rows, state] < self.outstanding) & (delay > 0)
        base.losses[rows, action] += np.where(wait, 0, ticket * estimate[rows, state])
        base.pending += wait
        if wait.any():
            self.waiters[due, rows] += wait
            self.tickets[due, rows, state, action] += np.where(wait, ticket, 0)


def play_vectorised(learner, P, theta, horizon, runs, seed, delta=0.1, delay=50, laplace=None):
    """Final pseudo-regret [runs], all runs stepped together with arrays [runs, K].

    `delay` is the fixed delay; `laplace=(location, scale)` takes its place when given.
    """
    P, theta = np.asarray(P, float), np.asarray(theta, float)
    num_actions, num_states = P.shape
    scale, radius = constants(learner, num_actions, num_states, horizon, delta)
    rng = np.random.default_rng(seed)
    location, spread = (delay, 0) if laplace is None else laplace
    slots = math.ceil(location + TAIL * spread) + 2
    base = _DAdaBatch(runs, num_actions, scale)
    mail = _DAdaMail(base, slots, num_actions)
    if radius is not None:
        mail = _MetaMail(base, slots, num_actions, num_states, radius)
    gaps, regret = P @ theta - (P @ theta).min(), np.zeros(runs)
    for t in range(horizon):
        action, ticket = base.act(rng)
        state = _pick(rng, P[action])
        loss = rng.random(runs) < theta[state]
        delays = np.minimum(_delays(rng, runs, delay, laplace), slots - 1)
        mail.learn(t, action, state, loss, ticket, delays)
        regret += gaps[action]
    return regret
