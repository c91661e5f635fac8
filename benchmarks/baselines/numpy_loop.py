"""Plain NumPy: a loop over runs and rounds, as papers ship it.

Plays DAda-Exp3 (corrected tuning) or MetaBIO over DAda-Exp3 (outstanding threshold, lower
confidence estimates from all losses that have arrived), Bernoulli losses, stochastic mapping.
"""

import math
from collections import defaultdict

import numpy as np


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


def _draw(rng, cdf):
    """Index by inverse cdf: several times faster than rng.choice, which checks its argument."""
    return min(cdf.searchsorted(rng.random(), side="right"), len(cdf) - 1)


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
        action = _draw(rng, p.cumsum())
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
    due, outstanding, cdf = defaultdict(list), 0, P.cumsum(axis=1)
    for t, d in enumerate(delays):
        action, q = base.act(rng)
        plays[action] += 1
        state = _draw(rng, cdf[action])
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


def play(learner, P, theta, horizon, runs, seed, delta=0.1, delay=50, laplace=None):
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
