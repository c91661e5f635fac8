"""HindsightExp3's regret term by term: the terms themselves, and whether what is broken shows."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxbio as jb
from jaxbio.analysis.intervals import NO, YES
from jaxbio.learners.exp3 import ExponentialTicket
from jaxbio.learners.hindsight import HindsightExp3
from jaxbio.ops import select, sum_scale
from jaxbio.studies.guarantees import lemmas
from jaxbio.studies.guarantees.informed import Informed
from jaxbio.studies.guarantees.study import check_guarantees, checked
from jaxbio.studies.guarantees.theorems import GUARANTEES, HINDSIGHT
from jaxbio.studies.guarantees.watched import watched

ENV = jb.make_environment("paper-utility", delays=jb.UniformDelay(0, 30))
CHANGING = jb.make_environment("paper-adversarial", delays=jb.FixedDelay(7))
LEARNER = HindsightExp3(delta=0.2)
(CLAIM,) = (one for one in GUARANTEES if one.name == HINDSIGHT)
OURS = {one.name: one for one in lemmas.LEMMAS if one.about == HINDSIGHT}
FACTS = (
    "informed_regret informed_limit price_gap price_error price_limit exploration overestimate "
    "chance worst_price"
).split()


def costs(env: jb.Environment, horizon: int) -> np.ndarray:
    """[T, K]: what actions cost on average."""
    theta, t = np.asarray(env.losses.theta), np.arange(1, horizon + 1)
    if isinstance(env.mapping, jb.StochasticMapping):
        return np.tile(env.mapping.P @ theta, (horizon, 1))
    phase = np.searchsorted(env.mapping.starts, t, side="right") - 1
    return (env.mapping.P_phases @ theta)[phase % len(env.mapping.P_phases)]


def by_hand(env: jb.Environment, played: jb.Round, delta: float) -> dict[str, float]:
    """The facts of a run from what was played: float64, loops, and none of the package."""
    theta, horizon = np.asarray(env.losses.theta, float), len(played.action)
    K, S, mu = env.num_actions, len(theta), costs(env, horizon)
    best = mu.sum(0).argmin()
    W, count, total = np.zeros((K, S)), np.zeros(S), np.zeros(S)
    found: dict[str, Any] = dict.fromkeys(FACTS, 0.0)
    arrived = np.arange(1, horizon + 1) + np.asarray(played.delay)
    eta, stability = 0.0, 0.0
    for t in range(1, horizon + 1):
        eta = np.sqrt((3 * np.log(K) + np.log(2 / delta)) / (8 * K * t))
        mean = total / np.maximum(count, 1)
        prices = np.where(count > 0, mean, 0.5)
        p, q = (np.exp(-eta * (W @ x - (W @ x).min())) for x in (prices, theta))
        a, s = int(played.action[t - 1]), int(played.state[t - 1])
        p, q = p[a] / p.sum(), q[a] / q.sum()
        loss = theta[s] / (p + eta)
        radius = np.sqrt(np.log(4 * S * horizon / delta) / (2 * np.maximum(count, 1)))
        worst = np.max(np.where(count > 0, np.abs(mean - theta) / radius, 0))
        apart = np.sum((W.max(0) - W.min(0)) * np.abs(prices - theta))
        found["worst_price"] = max(found["worst_price"], worst)
        found["informed_regret"] += q * loss
        stability += eta * q * loss**2 / 2
        found["price_gap"] += (p - q) * loss
        found["price_error"] += (p - q) * (loss - eta * loss**2 / 2)
        found["price_limit"] += max(p, q) * (1 - np.exp(-eta * apart)) * loss
        found["exploration"] += eta * loss
        found["overestimate"] -= mu[t - 1, best]
        found["chance"] += mu[t - 1, a] - theta[s]
        W[a, s] += 1 / (p + eta)
        for j in np.flatnonzero(arrived[:t] == t):
            count[played.state[j]] += 1
            total[played.state[j]] += played.loss[j]
    weighted = (W @ theta)[best]
    found["informed_regret"] -= weighted
    found["overestimate"] += weighted
    found["informed_limit"] = np.log(K) / eta + stability
    return found


@pytest.mark.parametrize("env", [ENV, CHANGING], ids=["utility", "changing"])
def test_the_terms_are_those_of_a_direct_computation(env: jb.Environment) -> None:
    """And HindsightExp3 under observation plays as it does alone."""
    horizon = 400
    learner = watched(LEARNER, env, horizon)
    assert isinstance(learner, Informed)
    result = jb.simulate(env, learner, horizon=horizon, runs=2, seed=3, progress=False)
    alone = jb.simulate(env, LEARNER, horizon=horizon, runs=2, seed=3, progress=False)
    np.testing.assert_array_equal(result.final_regret, alone.final_regret)
    expected = by_hand(env, jb.trajectory(env, LEARNER, 3, horizon, run=1), 0.2)
    found = {name: float(result.info[name][1]) for name in FACTS}
    assert found == pytest.approx(expected, rel=1e-3, abs=0.02)
    assert expected["price_error"] != 0
    parts = ("informed_regret", "price_gap", "exploration", "overestimate", "chance")
    total = sum(expected[name] for name in parts)
    assert total == pytest.approx(float(result.final_regret[1]), abs=0.01)


small = partial(
    check_guarantees,
    ENV,
    horizons=[300],
    deltas=[0.2],
    runs=60,
    guarantees=[CLAIM],
    expectations=(),
    progress=False,
)


def verdicts(found: xr.Dataset) -> dict[str, str]:
    return {str(n): str(v) for n, v in found.lemma_verdict.squeeze().to_series().items()}


def test_every_term_is_within_its_limit_and_so_is_the_rest_of_regret() -> None:
    found = small()
    assert verdicts(found) == dict.fromkeys(OURS, YES)
    cell = found.squeeze()
    bound = jb.theory.hindsight_bound(horizon=300, num_actions=8, delta=0.2)
    assert float(cell.bound) == bound.total
    assert str(cell.verdict.values) == YES
    learner = watched(CLAIM.learner(0.2), ENV, 300)
    played = jb.simulate(
        jb.Environment(ENV.mapping, ENV.losses, delays_of_run_0()),
        learner, horizon=300, runs=60, rounds=1, progress=False,
    )  # fmt: skip
    rest = np.sort(played.final_regret - played.info["price_error"])
    assert float(cell.regret_quantile) == pytest.approx(rest[47])  # 48 of 60 are at most that
    assert np.ptp(played.info["price_error"]) > 0


def delays_of_run_0() -> jb.TableDelay:
    return jb.TableDelay(jb.sample_world(ENV, 0, 0, 300)["delays"])


@jb.pytree
class Careless(HindsightExp3):
    """Forgets to explore where it divides."""

    ignores_empty_lanes = True

    def act(self, state: Any, t: Any, u: Any) -> Any:
        action, ticket = super().act(state, t, u)
        weight = 1 / (1 / ticket.weight - self.rate(state, t))
        return action, ExponentialTicket(weight, None)


@jb.pytree
class Fourfold(HindsightExp3):
    """Counts every round four times."""

    ignores_empty_lanes = True

    def act(self, state: Any, t: Any, u: Any) -> Any:
        action, ticket = super().act(state, t, u)
        return action, ExponentialTicket(4 * ticket.weight, None)


@jb.pytree
class Forgetful(HindsightExp3):
    """Loses half of what it has seen in every round."""

    ignores_empty_lanes = True

    def learn(self, state: Any, t: Any, play: Any, arrivals: Any) -> Any:
        return super().learn(
            state._replace(shown=sum_scale(state.shown, jnp.float32(0.5))), t, play, arrivals
        )


@jb.pytree
class Lying(jb.BernoulliLosses):
    """Half as large as they say."""

    def loss(self, key: Any, t: Any, state: Any, u: Any) -> Any:
        return (u < select(self.theta, state) / 2).astype(jnp.float32)


BROKEN = {
    "terms add up to the regret": lambda delta: Careless(2 * delta / 3),
    "weights at true prices": lambda delta: Forgetful(2 * delta / 3),
    "exploration": lambda delta: Fourfold(2 * delta / 3),
    "weighted losses of the best": lambda delta: Fourfold(2 * delta / 3),
}


@pytest.mark.parametrize("lemma", BROKEN)
def test_a_broken_learner_is_reported(lemma: str) -> None:
    found = small(guarantees=[dataclasses.replace(CLAIM, learner=BROKEN[lemma])])
    assert verdicts(found)[lemma] == NO
    assert verdicts(found)["error of prices"] == YES


def test_losses_that_are_not_what_they_say_are_reported() -> None:
    env = jb.Environment(ENV.mapping, Lying(ENV.losses.theta), ENV.delays)
    found = check_guarantees(
        env, horizons=[300], deltas=[0.2], runs=60, guarantees=[CLAIM], expectations=(),
        progress=False,
    )  # fmt: skip
    assert verdicts(found)["prices within their radius"] == NO
    assert verdicts(found)["weights at true prices"] == YES


def test_limits_by_hand() -> None:
    """Each in runs that are just within, and just beyond."""
    terms = {"horizon": 2, "num_actions": 2, "delta": 0.3}
    log = np.log(10)
    eta = np.sqrt((3 * np.log(2) + log) / 16 / np.array([1, 2]))
    limits = {
        "exploration": 2 * eta.sum() + log / 2,
        "weighted losses of the best": log / eta[1] / 2,
        "chance of states": np.sqrt(log),
        "prices within their radius": 1.0,
    }
    names = ("exploration", "overestimate", "chance", "worst_price")
    for (lemma, limit), name in zip(limits.items(), names, strict=True):
        facts = xr.Dataset({name: ("run", limit * np.array([0.999, 1.001, 1.001]))})
        assert checked(OURS[lemma], facts, terms).failures == 2
        assert OURS[lemma].allowed(0.3) == pytest.approx(0.1)


def test_what_is_certain_may_be_off_by_rounding_only() -> None:
    """A ten-thousandth in the hundred rounds of a game."""
    terms = {"horizon": 100, "num_actions": 2, "delta": 0.3}
    facts = {"informed_limit": [10.0] * 3, "informed_regret": [9.9, 10.00009, 10.00011]}
    facts |= {"price_limit": [1.0] * 3, "price_error": [-1.00009, -1.00011, 1.00011]}
    facts |= {"price_gap": [0.0] * 3, "exploration": [0.0] * 3, "overestimate": [0.0] * 3}
    facts |= {"chance": [1.0] * 3, "final_regret": [10.9, 11.00018, 11.0]}
    made = xr.Dataset({name: ("run", values) for name, values in facts.items()})
    failures = {name: checked(OURS[name], made, terms).failures for name in OURS
                if OURS[name].allowed(0.3) == 0}  # fmt: skip
    expected = {"terms add up to the regret": 1, "weights at true prices": 1, "error of prices": 2}
    assert failures == expected
    assert OURS["error of prices"].allowed(0.3) == 0


@pytest.mark.parametrize(
    "learner",
    [jb.HindsightTsallis(), HindsightExp3(discount=0.99), HindsightExp3(scale=lambda t: 1.0 / t)],
    ids=["tsallis", "discount", "schedule"],
)
def test_what_the_statement_is_not_about_is_refused(learner: Any) -> None:
    with pytest.raises(TypeError, match="learner must be HindsightExp3 with a number as its scale"):
        Informed(learner, ENV, 0)
    with pytest.raises(ValueError, match="best must be in"):
        Informed(LEARNER, ENV, 8)


def test_another_environment_is_refused() -> None:
    other = jb.make_environment("paper-utility", states=9, delays=jb.FixedDelay(3))
    with pytest.raises(ValueError, match="theta must have"):
        jb.simulate(other, Informed(LEARNER, ENV, 0), horizon=10, runs=1, progress=False)
