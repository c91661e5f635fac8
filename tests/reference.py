"""The independent oracle: every learner in plain Python, lists and loops over rounds.

Written from the papers, read as docs/pages/algorithms.md and docs/pages/contestants.md say, and not
from the package: nothing here imports jaxbio or JAX. Rounds are 1..T; actions and states are
0-based.

    trace = play({"name": "metabio", "base": {"name": "dada-exp3"}}, world, uniforms)

Every learner speaks one small protocol, in each round t of its own clock:

    act(t, u, forced)          choose (or be forced) and say how the choice came about
    played(t, action, state)   be told of the play
    feed(t, feedback)          end of round t: everything that arrives, in increasing round

`MetaBIO`, `MetaAdaBIO`, `Doubling` are learners around learners.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple

Spec = dict[str, Any]
Scale = float | Callable[[int], float]


# --- what goes in and what comes out ---------------------------------------------------------


@dataclass
class World:
    """One oblivious world. The loss of round j is seen at the end of round j + d_j,
    never if that lies beyond T."""

    states: Sequence[Sequence[int]]  # [T][K]: s_t(a)
    losses: Sequence[Sequence[float]]  # [T][S]: l_t(s)
    delays: Sequence[Any]  # [T]: d_t >= 0, or [T][S]: that of each state
    num_states: int  # S
    shown: Sequence[Sequence[float]] | None = None  # [T][S]: what is seen of l_t(s), if not all


@dataclass
class Trace:
    """What happened, one entry per round (index t - 1), and the totals in `facts`."""

    actions: list[int] = field(default_factory=list)
    choices: list[int] = field(default_factory=list)  # the learner's own choice
    margins: list[float] = field(default_factory=list)  # how far the action is from being chosen
    policies: list[list[float]] = field(default_factory=list)  # probabilities, indices or samples
    states: list[int] = field(default_factory=list)
    waits: list[bool] = field(default_factory=list)  # wait_t of the outermost MetaBIO
    fed_at: list[int | None] = field(default_factory=list)  # when the base got the feedback of t
    samples_used: list[int | None] = field(default_factory=list)  # N' behind the estimate
    estimates: list[float | None] = field(default_factory=list)  # the value fed
    rates: list[float | None] = field(default_factory=list)  # eta_t, or b_t for Tsallis-INF
    begin_counts: list[int] = field(default_factory=list)  # outstanding for the base, before A_t
    end_counts: list[int] = field(default_factory=list)  # sigma_t of the environment, incl. t
    visits: list[int] = field(default_factory=list)  # M_t(S_t)
    facts: dict[str, int] = field(default_factory=dict)


class Decision(NamedTuple):
    """One act: the action played, the own choice, and how it came about."""

    action: int
    choice: int
    margin: float
    policy: list[float]
    rate: float | None
    begin_count: int


class Feedback(NamedTuple):
    """What a learner is told about an earlier (or the current) round."""

    round: int
    action: int
    state: int
    value: float


class Fed(NamedTuple):
    """What a base was fed; `samples` is N', or None for a realised loss."""

    round: int
    value: float
    samples: int | None


class Report(NamedTuple):
    """What the end of a round did: wait_t and everything that the base was fed."""

    wait: bool
    fed: list[Fed]


# --- choosing --------------------------------------------------------------------------------


def cumulative(probabilities: Sequence[float]) -> list[float]:
    """Running sums, in order."""
    total, sums = 0.0, []
    for p in probabilities:
        total += p
        sums.append(total)
    return sums


def pick(probabilities: Sequence[float], u: float) -> int:
    """Inverse cdf: the number of k < K - 1 with u >= cdf_k."""
    return sum(1 for c in cumulative(probabilities)[:-1] if u >= c)


def distance_to_interval(probabilities: Sequence[float], u: float, k: int) -> float:
    """How far u is from [cdf_{k-1}, cdf_k], 0 inside; the last interval ends at 1."""
    cdf = cumulative(probabilities)
    low = cdf[k - 1] if k > 0 else 0.0
    high = cdf[k] if k < len(cdf) - 1 else 1.0
    return max(0.0, low - u, u - high)


def pick_smallest(indices: Sequence[float], u: float) -> int:
    """The floor(u n)-th of the n exact ties of the smallest index, in increasing order."""
    best = min(indices)
    ties = [k for k, index in enumerate(indices) if index == best]
    return ties[min(math.floor(u * len(ties)), len(ties) - 1)]


def excess_over_smallest(indices: Sequence[float], k: int) -> float:
    """How far index k is from the best (smallest) one."""
    best = min(indices)
    return 0.0 if indices[k] == best else indices[k] - best


# --- the protocol ----------------------------------------------------------------------------


class Learner:
    """The protocol. `pending` holds the rounds that were played and not yet fed to this learner;
    what is stored with each is the learner's own business."""

    defaults: ClassVar[Spec] = {}

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        unknown = set(spec) - set(self.defaults) - {"name"}
        if unknown:
            raise ValueError(f"{spec['name']} has no options {sorted(unknown)}")
        self.spec = {**self.defaults, **spec}
        self.num_actions = num_actions
        self.num_states = num_states
        self.horizon = horizon
        self.pending: dict[int, Any] = {}
        self.switch_round: int | None = None  # own clock

    def act(self, t: int, u: Any, forced: int | None) -> Decision:
        raise NotImplementedError

    def played(self, t: int, action: int, state: int) -> None:
        raise NotImplementedError

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        raise NotImplementedError


class Plain(Learner):
    """A learner without a wrapper: it is fed realised losses, and is its own base."""

    rate: float | None = None
    ticket: Any = None  # kept by `act` for the round, handed back to `learn` with the loss

    def act(self, t: int, u: Any, forced: int | None) -> Decision:
        begin_count = len(self.pending)
        policy = self.policy(t, u)
        choice = self.choose(policy, u)
        action = choice if forced is None else forced
        margin = self.margin(policy, u, action)
        self.ticket = self.issue(policy, u, action)
        return Decision(action, choice, margin, policy, self.rate, begin_count)

    def played(self, t: int, action: int, state: int) -> None:
        self.pending[t] = self.ticket
        self.count_play(t, action, state)

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        for item in feedback:
            self.learn(item, self.pending.pop(item.round))
        return Report(True, [Fed(item.round, item.value, None) for item in feedback])

    def policy(self, t: int, u: Any) -> list[float]:
        """Probabilities, or indices of which the smallest is played."""
        raise NotImplementedError

    def choose(self, policy: list[float], u: Any) -> int:
        raise NotImplementedError

    def margin(self, policy: list[float], u: Any, action: int) -> float:
        raise NotImplementedError

    def issue(self, policy: list[float], u: Any, action: int) -> Any:
        """The ticket: what must be remembered from play time."""
        return None

    def count_play(self, t: int, action: int, state: int) -> None:
        """For learners that count plays before the loss arrives."""

    def learn(self, item: Feedback, ticket: Any) -> None:
        """Use one loss."""
        raise NotImplementedError


class Sampled(Plain):
    """Plays action k with probability policy[k]."""

    def choose(self, policy: list[float], u: Any) -> int:
        return pick(policy, u)

    def margin(self, policy: list[float], u: Any, action: int) -> float:
        return distance_to_interval(policy, u, action)


class Indexed(Plain):
    """Plays the smallest index, exact ties at random."""

    def choose(self, policy: list[float], u: Any) -> int:
        return pick_smallest(policy, u)

    def margin(self, policy: list[float], u: Any, action: int) -> float:
        return excess_over_smallest(policy, action)


# --- sampled learners ------------------------------------------------------------------------


def scale_at(scale: Scale, t: int) -> float:
    """A constant or a schedule."""
    return float(scale(t)) if callable(scale) else float(scale)


def exponential_weights(losses: Sequence[float], rate: float) -> list[float]:
    """p(i) ~ exp(-rate (L(i) - min L))."""
    least = min(losses)
    weights = [math.exp(-rate * (loss - least)) for loss in losses]
    total = sum(weights)
    return [w / total for w in weights]


class OutstandingSum:
    """D_t: the running sum of begin counts; with `skipping` rounds that have been outstanding for
    too long are counted no more."""

    def __init__(self, skipping: bool) -> None:
        self.skipping = skipping
        self.total = 0
        self.skipped: set[int] = set()

    def add(self, pending: dict[int, Any]) -> None:
        """Count what is outstanding at the beginning of a round and not skipped."""
        self.total += sum(1 for s in pending if s not in self.skipped)

    def skip(self, t: int, pending: dict[int, Any], threshold: float) -> None:
        """After the rate of round t is fixed: skip what is older than the threshold."""
        if self.skipping:
            self.skipped.update(s for s in pending if t - s > threshold)


class DAdaExp3(Sampled):
    """DAda-Exp3, with d' = delta / 2, in all tunings, with skipping or without."""

    defaults: ClassVar[Spec] = {
        "delta": 0.1,
        "tuning": "corrected",
        "skipping": False,
        "skipped": "kept",
        "scale": 1.0,
    }

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        log_actions = math.log(num_actions)
        b = 3 * log_actions + math.log(2 / self.spec["delta"])
        self.numerator = {
            "anytime": math.sqrt(3 * log_actions) / 2,
            "corrected": math.sqrt(b) / 2,
            "printed": math.sqrt(b),
        }[self.spec["tuning"]]
        self.drop = {"kept": False, "dropped": True}[self.spec["skipped"]]
        self.delay_sum = OutstandingSum(self.spec["skipping"])
        self.losses = [0.0] * num_actions

    def policy(self, t: int, u: Any) -> list[float]:
        self.delay_sum.add(self.pending)
        total = self.delay_sum.total
        eta = self.numerator / math.sqrt(2 * self.num_actions * t + total)
        self.rate = eta * scale_at(self.spec["scale"], t)
        log_actions = math.log(self.num_actions)
        threshold = math.sqrt(total / log_actions) if log_actions > 0 else math.inf
        self.delay_sum.skip(t, self.pending, threshold)
        return exponential_weights(self.losses, self.rate)

    def issue(self, policy: list[float], u: Any, action: int) -> float:
        assert self.rate is not None
        return policy[action] + self.rate  # gamma_t = eta_t, both of play time

    def learn(self, item: Feedback, ticket: float) -> None:
        if self.drop and item.round in self.delay_sum.skipped:
            return
        self.losses[item.action] += item.value / ticket


class Exp3(Sampled):
    """Delayed Exp3 with a fixed rate: no gamma, p of play time."""

    defaults: ClassVar[Spec] = {"rate": 0.01}

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        self.rate = float(self.spec["rate"])
        self.losses = [0.0] * num_actions

    def policy(self, t: int, u: Any) -> list[float]:
        assert self.rate is not None
        return exponential_weights(self.losses, self.rate)

    def issue(self, policy: list[float], u: Any, action: int) -> float:
        return policy[action]

    def learn(self, item: Feedback, ticket: float) -> None:
        self.losses[item.action] += item.value / ticket


def tsallis_root(a: float, b: float, c: float, y: float) -> float:
    """Solves a y + 2 b ln y = c by Newton, from any y >= 1 left of the root: the left-hand side is
    concave and increasing, so the iterates only grow."""
    for _ in range(500):
        gap = c - a * y - 2 * b * math.log(y)
        step = gap / (a + 2 * b / y)
        if step <= 4e-16 * y:
            break
        y += step
    return y


def tsallis_policy(losses: Sequence[float], a: float, b: float) -> list[float]:
    """argmin over the simplex of <L, x> - 2 a sum sqrt(x) + b sum x ln x.

    With y = x^(-1/2) and mu = b - lambda, stationarity reads a y_i + 2 b ln y_i = L_i + mu (L
    shifted by its minimum). mu starts at the right end lambda = b - a and only grows."""
    least = min(losses)
    shifted = [loss - least for loss in losses]
    y = [1.0] * len(shifted)
    mu = a
    for _ in range(200):
        y = [tsallis_root(a, b, loss + mu, start) for loss, start in zip(shifted, y, strict=True)]
        surplus = sum(1 / (v * v) for v in y) - 1
        slope = sum(1 / (0.5 * a * v * v * v + b * v * v) for v in y)  # sum of 1 / F''(x_i)
        step = surplus / slope
        if step <= 4e-16 * mu:
            break
        mu += step
    x = [1 / (v * v) for v in y]
    total = sum(x)
    return [v / total for v in x]


class TsallisINF(Sampled):
    """Delayed Tsallis-INF, the hybrid FTRL of Zimmert and Seldin."""

    defaults: ClassVar[Spec] = {"tuning": "simple", "scale": 1.0}

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        self.factor = {"simple": 2.0, "skipping": 1.0}[self.spec["tuning"]]
        self.delay_sum = OutstandingSum(self.spec["tuning"] == "skipping")
        self.losses = [0.0] * num_actions

    def policy(self, t: int, u: Any) -> list[float]:
        self.delay_sum.add(self.pending)
        log_actions = math.log(self.num_actions)
        total = self.delay_sum.total  # with a single action there is nothing to choose: b = 0
        b = math.sqrt(self.factor * total / log_actions) if log_actions > 0 else 0.0
        self.rate = b
        self.delay_sum.skip(t, self.pending, b)
        scale = scale_at(self.spec["scale"], t)
        return tsallis_policy(self.losses, math.sqrt(t) / scale, b / scale)

    def issue(self, policy: list[float], u: Any, action: int) -> float:
        return policy[action]

    def learn(self, item: Feedback, ticket: float) -> None:
        self.losses[item.action] += item.value / ticket


# --- index learners --------------------------------------------------------------------------


class UCB1(Indexed):
    """UCB1 on arrived losses, or discounted UCB. While some arm has no arrived loss (or none that
    counts), the index of such an arm is its number of pulls and that of every other arm is
    infinite."""

    defaults: ClassVar[Spec] = {"exploration": 2.0, "discount": 1.0}

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        self.pulls = [0] * num_actions
        self.arrived = [0.0] * num_actions  # weights: discount to the power of the rounds since
        self.totals = [0.0] * num_actions

    def policy(self, t: int, u: Any) -> list[float]:
        unseen = [n < 1e-30 for n in self.arrived]
        if any(unseen):
            return [float(p) if none else math.inf
                    for p, none in zip(self.pulls, unseen, strict=True)]  # fmt: skip
        discount = self.spec["discount"]
        rounds = t if discount == 1 else (1 - discount**t) / (1 - discount)
        width = self.spec["exploration"] * math.log(rounds)
        return [
            total / n - math.sqrt(width / n)
            for total, n in zip(self.totals, self.arrived, strict=True)
        ]

    def count_play(self, t: int, action: int, state: int) -> None:
        self.pulls[action] += 1

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        discount = self.spec["discount"]
        for sums in (self.arrived, self.totals):
            sums[:] = [discount * x for x in sums]
        for item in feedback:
            weight = discount ** (t - item.round)
            self.arrived[item.action] += weight
            self.totals[item.action] += weight * item.value
        return super().feed(t, feedback)

    def learn(self, item: Feedback, ticket: None) -> None:
        """Taken in by `feed`, which knows the round."""


class SuccessiveElimination(Indexed):
    """Successive elimination on arrived losses. The index of an active arm is how many turns it is
    away in the round robin; the first arm of all is drawn by u."""

    defaults: ClassVar[Spec] = {"scale": 1.0}

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        self.arrived = [0] * num_actions
        self.totals = [0.0] * num_actions
        self.active = [True] * num_actions
        self.last: int | None = None

    def policy(self, t: int, u: Any) -> list[float]:
        K = self.num_actions
        before = math.floor(u * K) - 1 if self.last is None else self.last
        return [float((a - before - 1) % K) if self.active[a] else math.inf for a in range(K)]

    def count_play(self, t: int, action: int, state: int) -> None:
        self.last = action

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        report = super().feed(t, feedback)
        bounds = [self.bounds(a) for a in range(self.num_actions)]
        least = min(high for a, (_, high) in enumerate(bounds) if self.active[a])
        self.active = [
            active and low <= least for active, (low, _) in zip(self.active, bounds, strict=True)
        ]
        return report

    def bounds(self, a: int) -> tuple[float, float]:
        """mean - r and mean + r of an arm; r is infinite without a loss."""
        n = self.arrived[a]
        if n == 0:
            return -math.inf, math.inf
        radius = self.spec["scale"] * math.sqrt(2 * math.log(self.horizon) / n)
        return self.totals[a] / n - radius, self.totals[a] / n + radius

    def learn(self, item: Feedback, ticket: None) -> None:
        self.arrived[item.action] += 1
        self.totals[item.action] += item.value


def optimistic_value(estimate: Sequence[float], width: float, values: Sequence[float]) -> float:
    """max <q, values> over the simplex with |q - estimate|_1 <= width.

    Half of the width goes to the best state and is taken from the worst ones upward. The result is
    written as values[top] - sum q (values[top] - values), so that equal values give exact ties."""
    order = sorted(range(len(values)), key=lambda s: (values[s], s))
    top = order[-1]
    if estimate[top] + width / 2 >= 1:
        return values[top]
    q = list(estimate)
    excess = width / 2
    q[top] += excess
    for s in order[:-1]:
        removed = min(excess, q[s])
        q[s] -= removed
        excess -= removed
    return values[top] - sum(q[s] * (values[top] - values[s]) for s in order[:-1])


class NSDUCRL2(Indexed):
    """NSD-UCRL2 with the certified radii; the index is minus the optimistic reward."""

    defaults: ClassVar[Spec] = {"delta": 0.1, "window": None}

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        delta = self.spec["delta"]
        self.theta_log = math.log(4 * num_states * horizon / delta)
        subsets = 2**num_states - 2
        self.map_log = (  # one state: the simplex is a point and the ball does not matter
            math.log(subsets) + math.log(2 * num_actions * horizon / delta) if subsets else 0.0
        )
        self.plays: list[tuple[int, int]] = []  # (action, state) of rounds 1, 2, ...
        self.counts = [[0] * num_states for _ in range(num_actions)]  # N(a, s) in the window
        self.arrived = [0] * num_states
        self.rewards = [0.0] * num_states

    def policy(self, t: int, u: Any) -> list[float]:
        upper = [self.upper_reward(s) for s in range(self.num_states)]
        indices = []
        for row in self.counts:
            n = sum(row)
            estimate = [count / max(1, n) for count in row]
            width = math.sqrt(2 / n * self.map_log) if n > 0 else math.inf
            indices.append(-optimistic_value(estimate, width, upper))
        return indices

    def upper_reward(self, s: int) -> float:
        """U(s): 1 before any reward of the state has arrived."""
        n = self.arrived[s]
        return min(1.0, self.rewards[s] / n + math.sqrt(self.theta_log / (2 * n))) if n else 1.0

    def count_play(self, t: int, action: int, state: int) -> None:
        """After round t the window covers rounds t - W + 1 .. t, for use in round t + 1."""
        self.plays.append((action, state))
        self.counts[action][state] += 1
        window = self.spec["window"]
        if window is not None and len(self.plays) > window:
            old_action, old_state = self.plays[len(self.plays) - window - 1]
            self.counts[old_action][old_state] -= 1

    def learn(self, item: Feedback, ticket: None) -> None:
        self.arrived[item.state] += 1
        self.rewards[item.state] += 1 - item.value


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011)."""
    keys = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = (counter[0] + keys[0]) % 2**32, (counter[1] + keys[1]) % 2**32
    for i in range(5):
        for by in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
            x = (x + y) % 2**32
            y = ((y << by) | (y >> (32 - by))) % 2**32 ^ x
        x = (x + keys[(i + 1) % 3]) % 2**32
        y = (y + keys[(i + 2) % 3] + i + 1) % 2**32
    return x, y


def derived(u: Any, t: int, index: int, count: int | None = None) -> Any:
    """Further uniforms, `count` of them or like the round's own u, a float or a list: words of
    threefry with the key (24 bits of u, t), at the counters (index, 0), (index, 1), ...; of a list,
    first the left words of them all, then the right ones. A float has 24 bits, an entry of a list
    lies inside (0, 1)."""
    several = isinstance(u, list)
    key = (int((u[0] if several else u) * 2**24), t)
    count = len(u) if several and count is None else count
    if count is None:
        return (threefry(key, (index, 0))[0] >> 8) / 2**24
    words = [threefry(key, (index, i)) for i in range((count + 1) // 2)]
    left, right = ([pair[side] for pair in words] for side in range(2))
    return [((word >> 9) + 0.5) / 2**23 for word in left + right][:count]


def gamma_sample(shape: float, proposals: Sequence[Sequence[float]]) -> float:
    """Gamma(shape >= 1) by Marsaglia and Tsang: the first accepted of a fixed number of proposals,
    each a pair (uniform for the normal, uniform for the test); d if none is accepted."""
    d = shape - 1 / 3
    c = 1 / math.sqrt(9 * d)
    for u0, u1 in proposals:
        x = NormalDist().inv_cdf(u0)
        w = (1 + c * x) ** 3
        if w > 0 and math.log(u1) < x * x / 2 + d - d * w + d * math.log(w):
            return d * w
    return d


class Thompson(Plain):
    """Delayed Thompson sampling with Beta(1, 1) priors and Bernoulli coins.

    A round's uniforms: [arm][0 for a, 1 for b][proposal][0 normal, 1 test] in C order, then the
    coin v of the round: when its loss l arrives, the outcome is 1 iff v < l, and counts discount to
    the power of the rounds since the play."""

    defaults: ClassVar[Spec] = {"proposals": 6, "discount": 1.0}

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        self.ones = [0.0] * num_actions
        self.zeros = [0.0] * num_actions
        self.now = 0  # the round whose losses are being learnt

    def policy(self, t: int, u: Any) -> list[float]:
        n = self.spec["proposals"]
        if len(u) != self.num_actions * 2 * n * 2 + 1:
            raise ValueError(f"thompson needs {self.num_actions * 4 * n + 1} uniforms a round")
        samples = []
        for arm in range(self.num_actions):
            gammas = []
            for which, shape in enumerate((1 + self.ones[arm], 1 + self.zeros[arm])):
                start = (arm * 2 + which) * n * 2
                pairs = [(u[start + 2 * i], u[start + 2 * i + 1]) for i in range(n)]
                gammas.append(gamma_sample(shape, pairs))
            samples.append(gammas[0] / (gammas[0] + gammas[1]))
        return samples

    def choose(self, policy: list[float], u: Any) -> int:
        return policy.index(min(policy))

    def margin(self, policy: list[float], u: Any, action: int) -> float:
        return excess_over_smallest(policy, action)

    def issue(self, policy: list[float], u: Any, action: int) -> float:
        return float(u[-1])

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        self.now = t
        for counts in (self.ones, self.zeros):
            counts[:] = [self.spec["discount"] * n for n in counts]
        return super().feed(t, feedback)

    def learn(self, item: Feedback, ticket: float) -> None:
        counts = self.ones if ticket < item.value else self.zeros
        counts[item.action] += self.spec["discount"] ** (self.now - item.round)


# --- learners with estimates of states -------------------------------------------------------


class Samples:
    """L: the losses of each state that have arrived, as counts and sums."""

    def __init__(self, num_states: int) -> None:
        self.counts = [0] * num_states
        self.totals = [0.0] * num_states

    def add(self, item: Feedback) -> None:
        self.counts[item.state] += 1
        self.totals[item.state] += item.value


class HindsightExp3(Sampled):
    """Exponential weights on what past rounds showed, at today's estimates of the states' losses.

    Options as of MetaBIO; `prior` is the price of a state without losses where means are used."""

    defaults: ClassVar[Spec] = {
        "delta": 0.1,
        "scale": 1.0,
        "estimator": "mean",
        "radius_scale": 1.0,
        "prior": 0.5,
        "discount": 1.0,
    }

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        self.samples = Samples(num_states)
        self.weights = [[0.0] * num_states for _ in range(num_actions)]  # W
        self.counted = 0.0  # rounds played, with the discounts since

    def price(self, s: int) -> float:
        """Of a round that showed state s."""
        n = self.samples.counts[s]
        if self.spec["estimator"] == "mean":
            return self.samples.totals[s] / n if n > 0 else self.spec["prior"]
        if n == 0:
            return 0.0
        log = math.log(4 * self.num_states * self.horizon / self.spec["delta"])
        radius = self.spec["radius_scale"] * math.sqrt(log / (2 * n))
        return max(0.0, self.samples.totals[s] / n - radius)

    def losses(self) -> list[float]:
        prices = [self.price(s) for s in range(self.num_states)]
        return [sum(w * price for w, price in zip(r, prices, strict=True)) for r in self.weights]

    def effective_rounds(self) -> float:
        """t, or with a discount what it tends to: 1 + discount + discount^2 + ..."""
        return 1 + self.spec["discount"] * self.counted

    def policy(self, t: int, u: Any) -> list[float]:
        c = math.sqrt(3 * math.log(self.num_actions) + math.log(2 / self.spec["delta"])) / 2
        eta = c / math.sqrt(2 * self.num_actions * self.effective_rounds())
        self.rate = eta * scale_at(self.spec["scale"], t)
        return exponential_weights(self.losses(), self.rate)

    def issue(self, policy: list[float], u: Any, action: int) -> float:
        assert self.rate is not None
        return policy[action] + self.rate

    def count_play(self, t: int, action: int, state: int) -> None:
        discount = self.spec["discount"]
        self.weights = [[discount * w for w in row] for row in self.weights]
        self.weights[action][state] += 1 / self.ticket
        self.counted = discount * self.counted + 1

    def learn(self, item: Feedback, ticket: float) -> None:
        self.samples.add(item)


class HindsightTsallis(HindsightExp3):
    """The same with the Tsallis regulariser, of which nothing is there for delay."""

    def policy(self, t: int, u: Any) -> list[float]:
        self.rate = 0.0
        strength = math.sqrt(self.effective_rounds()) / scale_at(self.spec["scale"], t)
        return tsallis_policy(self.losses(), strength, 0.0)

    def issue(self, policy: list[float], u: Any, action: int) -> float:
        return policy[action]


class StateThompson(Indexed):
    """Thompson sampling over the states' losses and the mapping to them.

    All uniforms are derived from that of the round: request 0 has a normal for each action, and
    last the one that breaks ties; request 1 + s (K + 1) is for theta of state s, as of an arm of
    `Thompson`, but [proposal][0 for a, 1 for b], first all normals, then all tests; the next K
    requests are for the gamma variables of P(s | a): all normals, all tests, and the boost. A loss
    counts `loss_discount` to the power of the rounds since its play."""

    defaults: ClassVar[Spec] = {
        "sampler": "moments",
        "discount": 1.0,
        "proposals": 6,
        "loss_discount": 1.0,
    }

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        self.ones = [0.0] * num_states
        self.zeros = [0.0] * num_states
        self.now = 0  # the round whose losses are being learnt
        self.visits = [[0.0] * num_states for _ in range(num_actions)]

    def policy(self, t: int, u: float) -> list[float]:
        sizes = range(self.num_states)
        thetas = [self.theta(s, derived(u, t, self.place(s), 4 * self.proposals)) for s in sizes]
        *self.drawn, self.tie = derived(u, t, 0, self.num_actions + 1)
        sample = {"moments": self.by_moments, "exact": self.exact}[self.spec["sampler"]]
        return [sample(a, thetas, t, u) for a in range(self.num_actions)]

    @property
    def proposals(self) -> int:
        return self.spec["proposals"]

    def place(self, s: int) -> int:
        return 1 + s * (self.num_actions + 1)

    def theta(self, s: int, drawn: list[float]) -> float:
        half = 2 * self.proposals
        a, b = (
            gamma_sample(shape, list(zip(drawn[i:half:2], drawn[half + i :: 2], strict=True)))
            for i, shape in enumerate((1 + self.ones[s], 1 + self.zeros[s]))
        )
        return a / (a + b)

    def dirichlet(self, a: int) -> list[float]:
        return [1 / self.num_states + n for n in self.visits[a]]

    def by_moments(self, a: int, thetas: list[float], t: int, u: float) -> float:
        alpha = self.dirichlet(a)
        total = 1 + sum(self.visits[a])
        m = sum(x / total * theta for x, theta in zip(alpha, thetas, strict=True))
        # The second moment less m^2, written as what cannot be negative.
        v = sum(x / total * (theta - m) ** 2 for x, theta in zip(alpha, thetas, strict=True))
        return m + math.sqrt(v / (total + 1)) * NormalDist().inv_cdf(self.drawn[a])

    def exact(self, a: int, thetas: list[float], t: int, u: float) -> float:
        logs = []
        for s, x in enumerate(self.dirichlet(a)):
            drawn = derived(u, t, self.place(s) + 1 + a, 2 * self.proposals + 1)
            pairs = list(zip(drawn[: self.proposals], drawn[self.proposals : -1], strict=True))
            logs.append(math.log(gamma_sample(x + 1, pairs)) + math.log(drawn[-1]) / x)
        weights = [math.exp(log - max(logs)) for log in logs]
        return sum(w * theta for w, theta in zip(weights, thetas, strict=True)) / sum(weights)

    def choose(self, policy: list[float], u: Any) -> int:
        return pick_smallest(policy, self.tie)

    def count_play(self, t: int, action: int, state: int) -> None:
        self.visits = [[self.spec["discount"] * n for n in row] for row in self.visits]
        self.visits[action][state] += 1

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        self.now = t
        for sums in (self.ones, self.zeros):
            sums[:] = [self.spec["loss_discount"] * x for x in sums]
        return super().feed(t, feedback)

    def learn(self, item: Feedback, ticket: None) -> None:
        weight = self.spec["loss_discount"] ** (self.now - item.round)
        self.ones[item.state] += weight * item.value
        self.zeros[item.state] += weight * (1 - item.value)


# --- learners around learners ----------------------------------------------------------------


WAITING = "waiting"  # will be fed an estimate when its loss arrives
AT_ONCE = "at once"  # was fed an estimate in its own round
REALISED = "realised"  # played before a switch: will be fed its realised loss


class MetaBIO(Learner):
    """MetaBIO around any base (the paper's Algorithm 1).

    `pending` maps every round whose loss has not arrived to how its base gets, or got, to know."""

    defaults: ClassVar[Spec] = {
        "base": None,
        "delta": 0.1,
        "estimator": "lcb",
        "threshold": "outstanding",
        "delay": None,
        "ordering": "together",
        "radius": "horizon",
        "radius_scale": 1.0,
    }

    def __init__(
        self,
        spec: Spec,
        num_actions: int,
        num_states: int,
        horizon: int,
        base: Learner | None = None,
        samples: Samples | None = None,
        in_flight: Sequence[int] = (),
    ) -> None:
        """After a switch the wrapper takes over a running `base`, the `samples` collected before,
        and the rounds `in_flight`, of which the base expects the realised loss."""
        super().__init__(spec, num_actions, num_states, horizon)
        self.base = base or build(self.spec["base"], num_actions, num_states, horizon)
        self.samples = samples or Samples(num_states)
        self.pending = dict.fromkeys(in_flight, REALISED)
        self.current = (0, 0)  # (action, state) of the round being played
        for option, values in (
            ("estimator", ("lcb", "mean")),
            ("threshold", ("outstanding", "delay")),
            ("ordering", ("together", "sequential")),
            ("radius", ("horizon", "anytime")),
        ):
            if self.spec[option] not in values:
                raise ValueError(f"{option} must be one of {values}, got {self.spec[option]!r}")

    def act(self, t: int, u: Any, forced: int | None) -> Decision:
        begin_count = len(self.base.pending)
        return self.base.act(t, u, forced)._replace(begin_count=begin_count)

    def played(self, t: int, action: int, state: int) -> None:
        self.base.played(t, action, state)
        self.pending[t] = None  # decided at the end of the round
        self.current = (action, state)

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        action, state = self.current
        sequential = self.spec["ordering"] == "sequential"

        # wait_t: decided once, from N_t with all arrivals of the round and the end count sigma_t
        sigma = len(self.pending) - len(feedback)
        needed = self.spec["delay"] if self.spec["threshold"] == "delay" else sigma
        count = self.samples.counts[state] + sum(1 for item in feedback if item.state == state)
        wait = count < needed
        self.pending[t] = WAITING if wait else AT_ONCE

        arrivals = [(item, self.pending.pop(item.round)) for item in feedback]
        for item, how in arrivals:
            last_class = item.round == t and how == AT_ONCE
            if not sequential or (how != WAITING and not last_class):
                self.samples.add(item)

        messages: list[Feedback] = []
        fed: list[Fed] = []
        for item, how in arrivals:
            if how == REALISED:
                messages.append(item)
                fed.append(Fed(item.round, item.value, None))
            if how == WAITING:
                if sequential:
                    self.samples.add(item)
                value, n = self.estimate(item.state)
                messages.append(item._replace(value=value))
                fed.append(Fed(item.round, value, n))
        if not wait:
            if sequential:
                for item, _ in arrivals:
                    if item.round == t:
                        self.samples.add(item)
            value, n = self.estimate(state)
            messages.append(Feedback(t, action, state, value))
            fed.append(Fed(t, value, n))
        self.base.feed(t, messages)
        return Report(wait, fed)

    def estimate(self, state: int) -> tuple[float, int]:
        """theta~(state) and N', the number of losses behind it."""
        n = self.samples.counts[state]
        if n == 0:
            return 0.0, 0
        mean = self.samples.totals[state] / n
        if self.spec["estimator"] == "mean":
            return mean, n
        delta = self.spec["delta"]
        if self.spec["radius"] == "horizon":
            log = math.log(4 * self.num_states * self.horizon / delta)
        else:
            log = math.log(6.58 * self.num_states * n**2 / delta)
        radius = math.sqrt(log / (2 * n))
        return max(0.0, mean - self.spec["radius_scale"] * radius), n


class Shifted(Learner):
    """A learner that starts afresh after round `offset`: its round 1 is offset + 1, and arrivals of
    rounds up to `offset` are ignored."""

    def __init__(self, offset: int, inner: Learner) -> None:
        self.offset = offset
        self.inner = inner

    def act(self, t: int, u: Any, forced: int | None) -> Decision:
        return self.inner.act(t - self.offset, u, forced)

    def played(self, t: int, action: int, state: int) -> None:
        self.inner.played(t - self.offset, action, state)

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        own = [
            item._replace(round=item.round - self.offset)
            for item in feedback
            if item.round > self.offset
        ]
        report = self.inner.feed(t - self.offset, own)
        fed = [item._replace(round=item.round + self.offset) for item in report.fed]
        return report._replace(fed=fed)


class MetaAdaBIO(Learner):
    """MetaAdaBIO (the paper's Algorithm 2): the base on realised losses until the rule
    triggers at the end of a round, then MetaBIO(delta / 2)."""

    defaults: ClassVar[Spec] = {
        "base": None,
        "after": None,
        "delta": 0.1,
        "rule": "theory",
        "at_switch": "learner",
        "estimator": "lcb",
        "ordering": "together",
        "radius": "horizon",
        "radius_scale": 1.0,
        "literal": False,
        "doubling": None,
    }

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        if self.spec["at_switch"] not in ("learner", "fresh", "all"):
            raise ValueError(f"unknown at_switch {self.spec['at_switch']!r}")
        self.base = build(self.spec["base"], num_actions, num_states, horizon)
        self.active: Learner = self.base  # who plays: the base, later MetaBIO
        self.samples = Samples(num_states)
        self.incurred = 0  # frakD_t

    def act(self, t: int, u: Any, forced: int | None) -> Decision:
        begin_count = len(self.base.pending)
        decision = self.active.act(t, u, forced)
        return decision._replace(begin_count=begin_count) if self.active is self.base else decision

    def played(self, t: int, action: int, state: int) -> None:
        self.pending[t] = None
        self.active.played(t, action, state)

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        for item in feedback:
            del self.pending[item.round]
        if self.switch_round is not None:
            return self.active.feed(t, feedback)
        self.base.feed(t, feedback)
        for item in feedback:
            self.samples.add(item)
        self.incurred += len(self.pending)
        if self.spec["literal"] and t in self.pending:
            self.incurred -= 1
        if t != self.horizon and self.triggered():  # there is a round to be played after it
            self.switch_round = t
            self.active = self.switched(t)
        return Report(True, [Fed(item.round, item.value, None) for item in feedback])

    def triggered(self) -> bool:
        """The switching rule."""
        delta, cells = self.spec["delta"], self.num_states * self.horizon
        log_actions = math.log(self.num_actions)
        weighted = self.incurred * (3 * log_actions + math.log(6 / delta))
        rule = self.spec["rule"]
        if rule == "theory":
            return weighted > 49 * cells * math.log(8 * cells / delta)
        if rule == "practical":
            return self.incurred > cells
        if rule == "footnote":
            return weighted > cells
        if rule == "expected":
            left = math.sqrt(8 * self.incurred * log_actions)
            return left > 6 * math.sqrt(cells * math.log(2 * cells))
        raise ValueError(f"unknown rule {rule!r}")

    def switched(self, t: int) -> Learner:
        """MetaBIO(delta / 2) from round t + 1 on."""
        spec = {
            "name": "metabio",
            "base": self.spec["after"] or self.spec["base"],
            "delta": self.spec["delta"] / 2,
            "threshold": "outstanding",
            **{k: self.spec[k] for k in ("estimator", "ordering", "radius", "radius_scale")},
        }
        sizes = (self.num_actions, self.num_states, self.horizon)
        if self.spec["at_switch"] == "fresh":
            return Shifted(t, MetaBIO(spec, *sizes))
        samples = self.samples if self.spec["at_switch"] == "all" else None
        return MetaBIO(spec, *sizes, base=self.base, samples=samples, in_flight=list(self.pending))


class Doubling(Learner):
    """MetaAdaBIO restarted in epochs of H0, 2 H0, 4 H0, ... rounds, each with its own length as
    the horizon and blind to the rounds of earlier epochs."""

    defaults: ClassVar[Spec] = MetaAdaBIO.defaults

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        self.length = self.spec["doubling"]
        self.start_epoch(0)

    def start_epoch(self, offset: int) -> None:
        """An epoch of `self.length` rounds that begins with round offset + 1."""
        self.offset = offset
        spec = {**self.spec, "doubling": None}
        self.inner = MetaAdaBIO(spec, self.num_actions, self.num_states, self.length)
        self.epoch = Shifted(offset, self.inner)

    def act(self, t: int, u: Any, forced: int | None) -> Decision:
        if t > self.offset + self.length:
            offset = self.offset + self.length
            self.length *= 2
            self.start_epoch(offset)
        return self.epoch.act(t, u, forced)

    def played(self, t: int, action: int, state: int) -> None:
        self.pending[t] = None
        self.epoch.played(t, action, state)

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        for item in feedback:
            del self.pending[item.round]
        report = self.epoch.feed(t, feedback)
        if self.switch_round is None and self.inner.switch_round is not None:
            self.switch_round = self.offset + self.inner.switch_round
        return report


class Restarting(Learner):
    """A base that begins anew every `period` rounds, each time told the period as its horizon;
    arrivals of rounds from before the last restart are ignored."""

    defaults: ClassVar[Spec] = {"base": None, "period": None}

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        self.begin(0)

    def begin(self, offset: int) -> None:
        told = min(self.spec["period"], self.horizon)
        base = build(self.spec["base"], self.num_actions, self.num_states, told)
        self.epoch = Shifted(offset, base)

    def act(self, t: int, u: Any, forced: int | None) -> Decision:
        if t > 1 and (t - 1) % self.spec["period"] == 0:
            self.begin(t - 1)
        return self.epoch.act(t, u, forced)._replace(begin_count=len(self.pending))

    def played(self, t: int, action: int, state: int) -> None:
        self.pending[t] = None
        self.epoch.played(t, action, state)

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        for item in feedback:
            del self.pending[item.round]
        self.epoch.feed(t, feedback)
        return Report(True, [Fed(item.round, item.value, None) for item in feedback])


class KnownLosses(Learner):
    """A base that is fed theta of the state in every round, at once; losses are ignored."""

    defaults: ClassVar[Spec] = {"base": None, "theta": None}

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        self.base = build(self.spec["base"], num_actions, num_states, horizon)
        self.current = (0, 0)

    def act(self, t: int, u: Any, forced: int | None) -> Decision:
        return self.base.act(t, u, forced)

    def played(self, t: int, action: int, state: int) -> None:
        self.base.played(t, action, state)
        self.current = (action, state)

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        action, state = self.current
        value = float(self.spec["theta"][state])
        self.base.feed(t, [Feedback(t, action, state, value)])
        return Report(False, [Fed(t, value, None)])


class QPMD(Learner):
    """QPM-D: a queue of losses per arm around a base that never sees a delay.

    The base's request stands until it has got a loss for it. It is asked again when the answer
    matters: at once where any loss is stored, else at the beginning of the next round."""

    defaults: ClassVar[Spec] = {"base": None}

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        self.base = build(self.spec["base"], num_actions, num_states, horizon)
        self.queues: list[list[Feedback]] = [[] for _ in range(num_actions)]
        self.clock = 1  # of the base
        self.request: Decision | None = None
        self.u: Any = None

    def act(self, t: int, u: Any, forced: int | None) -> Decision:
        assert forced is None, "a request of the base cannot be forced"
        self.u = u
        if self.request is None:
            self.request = self.base.act(self.clock, u, None)
        return self.request._replace(begin_count=len(self.pending))

    def played(self, t: int, action: int, state: int) -> None:
        self.pending[t] = None

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        for item in feedback:
            del self.pending[item.round]
            self.queues[item.action].append(item)
        asked = 0
        while self.request is not None and self.queues[self.request.action]:
            item = self.queues[self.request.action].pop(0)
            self.base.played(self.clock, item.action, item.state)
            self.base.feed(self.clock, [item._replace(round=self.clock)])
            self.clock += 1
            self.request = None
            if any(self.queues):
                self.request = self.base.act(self.clock, derived(self.u, t, asked), None)
            asked += 1
        return Report(True, [Fed(item.round, item.value, None) for item in feedback])


class BOLD(Learner):
    """BOLD: the first copy of the base that waits for nothing plays, a new one if all
    wait; `pending` maps a round to the copy that waits for its loss."""

    defaults: ClassVar[Spec] = {"base": None, "copies": None, "horizon": None}

    def __init__(self, spec: Spec, num_actions: int, num_states: int, horizon: int) -> None:
        super().__init__(spec, num_actions, num_states, horizon)
        self.copies: list[Learner] = []
        self.clocks: list[int] = []
        self.playing = 0

    def act(self, t: int, u: Any, forced: int | None) -> Decision:
        waiting = set(self.pending.values())
        idle = [c for c in range(len(self.copies)) if c not in waiting]
        self.playing = idle[0] if idle else self.open()
        copy, clock = self.copies[self.playing], self.clocks[self.playing]
        return copy.act(clock, u, forced)._replace(begin_count=len(self.pending))

    def open(self) -> int:
        rounds = self.spec["horizon"] or self.horizon
        self.copies.append(build(self.spec["base"], self.num_actions, self.num_states, rounds))
        self.clocks.append(1)
        return len(self.copies) - 1

    def played(self, t: int, action: int, state: int) -> None:
        self.pending[t] = self.playing
        self.copies[self.playing].played(self.clocks[self.playing], action, state)

    def feed(self, t: int, feedback: list[Feedback]) -> Report:
        for item in feedback:
            owner = self.pending.pop(item.round)
            self.copies[owner].feed(self.clocks[owner], [item._replace(round=self.clocks[owner])])
            self.clocks[owner] += 1
        return Report(True, [Fed(item.round, item.value, None) for item in feedback])


LEARNERS: dict[str, type[Learner]] = {
    "dada-exp3": DAdaExp3,
    "tsallis-inf": TsallisINF,
    "ucb1": UCB1,
    "nsd-ucrl2": NSDUCRL2,
    "thompson": Thompson,
    "hindsight-exp3": HindsightExp3,
    "hindsight-tsallis": HindsightTsallis,
    "state-thompson": StateThompson,
    "exp3": Exp3,
    "metabio": MetaBIO,
    "metaadabio": MetaAdaBIO,
    "successive-elimination": SuccessiveElimination,
    "restarting": Restarting,
    "known-losses": KnownLosses,
    "qpmd": QPMD,
    "bold": BOLD,
}


def build(spec: Spec, num_actions: int, num_states: int, horizon: int) -> Learner:
    """The learner that a spec describes."""
    kind = Doubling if spec.get("doubling") is not None else LEARNERS[spec["name"]]
    return kind(spec, num_actions, num_states, horizon)


# --- the game --------------------------------------------------------------------------------


def play(
    spec: Spec, world: World, uniforms: Sequence[Any], forced: Sequence[int] | None = None
) -> Trace:
    """Plays rounds 1..T. With `forced`, the learner is made to play those actions (teacher
    forcing); its own choices and the margins are kept beside them."""
    horizon = len(world.delays)
    num_actions = len(world.states[0])
    learner = build(spec, num_actions, world.num_states, horizon)

    due: dict[int, list[int]] = {}  # round -> the rounds whose losses arrive at its end
    shown = world.losses if world.shown is None else world.shown
    trace = Trace(
        fed_at=[None] * horizon, samples_used=[None] * horizon, estimates=[None] * horizon
    )
    visits = [0] * world.num_states
    outstanding = 0
    for t in range(1, horizon + 1):
        u = uniforms[t - 1]
        decision = learner.act(t, u, None if forced is None else int(forced[t - 1]))
        action = decision.action
        state = int(world.states[t - 1][action])
        learner.played(t, action, state)
        trace.actions.append(action)
        trace.choices.append(decision.choice)
        trace.margins.append(decision.margin)
        trace.policies.append(decision.policy)
        trace.rates.append(decision.rate)
        trace.begin_counts.append(decision.begin_count)
        trace.states.append(state)
        late = world.delays[t - 1]
        due.setdefault(t + int(late[state] if hasattr(late, "__len__") else late), []).append(t)

        feedback = []
        for j in due.get(t, []):
            seen = trace.states[j - 1]
            loss = float(shown[j - 1][seen])
            feedback.append(Feedback(j, trace.actions[j - 1], seen, loss))
        report = learner.feed(t, feedback)
        trace.waits.append(report.wait)
        for fed in report.fed:
            if trace.fed_at[fed.round - 1] is not None:
                raise AssertionError(f"round {fed.round} was fed twice")
            trace.fed_at[fed.round - 1] = t
            trace.samples_used[fed.round - 1] = fed.samples
            trace.estimates[fed.round - 1] = fed.value

        outstanding += 1 - len(feedback)
        trace.end_counts.append(outstanding)
        visits[state] += 1
        trace.visits.append(visits[state])

    switch = learner.switch_round
    trace.facts = {
        "waiting_rounds": sum(trace.waits),
        "total_perceived_delay": sum(trace.begin_counts),
        "switch_round": switch if switch is not None and switch < horizon else horizon + 1,
        "sigma_max": max(trace.end_counts),
        "rounds_fed": sum(1 for at in trace.fed_at if at is not None),
    }
    return trace


# --- environments ----------------------------------------------------------------------------


def table_at(table: Sequence[Any], t: int) -> Sequence[Sequence[float]]:
    """P_t[K][S] of round t, from P[K][S] or from one such table per round, P[T][K][S]."""
    return table[t - 1] if hasattr(table[0][0], "__len__") else table


def states_from_uniforms(P: Sequence[Any], u: Sequence[Sequence[float]]) -> list[list[int]]:
    """s_t(a): the number of s < S - 1 with u[t][a] at or above the cumulative P(.|a). P is [K][S],
    or [T][K][S] if the map changes over time."""
    return [
        [pick(row, x) for row, x in zip(table_at(P, t), line, strict=True)]
        for t, line in enumerate(u, start=1)
    ]


def phase_index_ceil(t: int, growth: float | Fraction = 1.6, first: int = 1) -> int:
    """0-based phase of round t, lengths first, ceil(growth first) and so on. The growth is
    read as the decimal that it prints as, so that the ceiling is exact."""
    factor = Fraction(str(growth))
    index, length, end = 0, first, first
    while t > end:
        length = math.ceil(factor * length)
        end += length
        index += 1
    return index


def phase_index_log(t: int, base: float | Fraction = 1.1, steps: int = 5) -> int:
    """0-based phase of round t: floor(floor(ln t / ln base) / steps), in exact arithmetic (section
    2.4 (b)); with the defaults it is even iff floor(ln t / ln 1.1) mod 10 < 5."""
    factor = Fraction(str(base)) ** steps
    index, boundary = 0, factor
    while boundary <= t:
        boundary *= factor
        index += 1
    return index


def bernoulli_losses(theta: Sequence[float], u: Sequence[float]) -> list[list[float]]:
    """l_t(s) = 1[u_t < theta(s)], one uniform per round."""
    return [[1.0 if x < mean else 0.0 for mean in theta] for x in u]


def open_uniform(bits: int) -> float:
    """(bits + 1/2) / 2^32: strictly inside (0, 1)."""
    return (int(bits) + 0.5) / 2**32


def laplace_delays(location: float, scale: float, bits: Sequence[int]) -> list[int]:
    """Laplace by inverse cdf, rounded to nearest (half to even), clipped at 0."""
    delays = []
    for b in bits:
        v = open_uniform(b)
        sign = -1 if v < 0.5 else 1
        delays.append(max(0, round(location + scale * sign * -math.log(2 * min(v, 1 - v)))))
    return delays


def geometric_delays(mean: float, bits: Sequence[int]) -> list[int]:
    """Geometric on 0, 1, ... with success probability 1 / (1 + mean), by inverse cdf."""
    if mean == 0:
        return [0 for _ in bits]
    p = 1 / (1 + mean)
    return [math.floor(math.log(open_uniform(b)) / math.log(1 - p)) for b in bits]


def lognormal_delays(median: float, spread: float, bits: Sequence[int]) -> list[int]:
    """exp of a normal variable by inverse cdf, rounded to nearest (half to even)."""
    quantile = NormalDist().inv_cdf
    return [round(median * math.exp(spread * quantile(open_uniform(b)))) for b in bits]


def pareto_delays(minimum: float, tail: float, bits: Sequence[int]) -> list[int]:
    """minimum U^(-1/tail), rounded down: by inverse survival. 2^30 rounds are the most."""
    return [min(2**30, math.floor(minimum * open_uniform(b) ** (-1 / tail))) for b in bits]


def negative_binomial(mean: float, dispersion: float, most: int) -> list[float]:
    """The probabilities of 0..most, each from the one before."""
    fail = mean / (dispersion + mean)
    found = [math.exp(-dispersion * math.log1p(mean / dispersion))]
    for k in range(most):
        found.append(found[-1] * fail * (k + dispersion) / (k + 1))
    return found


def uniform_delays(low: int, high: int, bits: Sequence[int]) -> list[int]:
    """Uniform on low..high: the high word of bits times the number of values."""
    return [low + ((int(b) * (high - low + 1)) >> 32) for b in bits]


def units(probabilities: Sequence[float]) -> list[int]:
    """How many of the 2^32 words of 32 bits belong to each outcome: their running sums, rounded."""
    sums = cumulative(probabilities)
    ends = [round(x / sums[-1] * 2**32) for x in sums]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def alias_table(weights: Sequence[int]) -> list[tuple[int, int]]:
    """Walker's table: equal cells, a power of two of them and at least 128, each with what its own
    outcome keeps of it and the outcome that has the rest. In order: outcomes with less than a cell
    leave the rest of theirs to one with more; when that one has less than a cell left, it leaves
    the rest of its own to the next one with more."""
    size = 128
    while size < len(weights):
        size *= 2
    whole = 2**32 // size
    left = [*weights, *[0] * (size - len(weights))]
    table = [(whole, i) for i in range(size)]
    rich = [i for i in range(size) if left[i] >= whole]
    poor = [i for i in range(size) if left[i] < whole]
    while poor:
        place = poor.pop(0)
        table[place] = (left[place], rich[0])
        left[rich[0]] -= whole - left[place]
        if left[rich[0]] < whole:
            poor.insert(0, rich.pop(0))
    return table


def empirical_delays(
    probabilities: Sequence[float], never: float, bits: Sequence[int]
) -> list[int]:
    """0, 1, ... with these probabilities; 2^30 is never. The first bits of a word choose a cell."""
    weights = units([*probabilities, never])
    while len(weights) > 2 and weights[-2] == 0:
        del weights[-2]
    table = alias_table(weights)
    whole = 2**32 // len(table)
    delays = []
    for b in bits:
        cell, rest = divmod(int(b), whole)
        kept, other = table[cell]
        outcome = cell if rest < kept else other
        delays.append(2**30 if outcome == len(weights) - 1 else outcome)
    return delays


def windowed(loss: float, delay: int, window: int, absent: float) -> tuple[float, int]:
    """What is seen of a loss, and how late, if outcomes are waited for until a window ends: an
    outcome in time when it comes, everything else as `absent` at the end."""
    if loss == absent:  # nothing happens
        return absent, window
    if delay > window:  # too late
        return absent, window
    return loss, delay


# --- regret ----------------------------------------------------------------------------------


def regret_curve(actions: Sequence[int], table: Sequence[Sequence[float]]) -> list[float]:
    """Cumulative loss over rounds 1..t minus that of the best action of the whole horizon (lowest
    index among ties), from the losses table[t][a] of every action."""
    totals = [math.fsum(row[a] for row in table) for a in range(len(table[0]))]
    best = totals.index(min(totals))
    return cumulative([row[a] - row[best] for a, row in zip(actions, table, strict=True)])


def pseudo_regret(
    actions: Sequence[int],
    *,
    P: Sequence[Any] | None = None,
    states: Sequence[Sequence[int]] | None = None,
    theta: Sequence[float] | None = None,
    losses: Sequence[Sequence[float]] | None = None,
) -> list[float]:
    """The pseudo-regret of the regime, as a curve. The regime is what is given: `P` ([K][S] or
    [T][K][S]) for a stochastic map or `states` [T][K] for an adversarial one; `theta` [S] for
    stochastic losses or `losses` [T][S] for adversarial ones."""
    if (P is None) == (states is None) or (theta is None) == (losses is None):
        raise ValueError("give either P or states, and either theta or losses")
    table = []
    for t in range(1, len(actions) + 1):
        means = theta if theta is not None else losses[t - 1]  # type: ignore[index]
        if states is not None:
            table.append([means[s] for s in states[t - 1]])
        else:
            rows = table_at(P, t)  # type: ignore[arg-type]
            table.append([sum(m * p for m, p in zip(means, row, strict=True)) for row in rows])
    return regret_curve(actions, table)


def realized_regret(
    actions: Sequence[int], states: Sequence[Sequence[int]], losses: Sequence[Sequence[float]]
) -> list[float]:
    """sum l_t(S_t) - min_a sum l_t(s_t(a)), as a curve."""
    return pseudo_regret(actions, states=states, losses=losses)
