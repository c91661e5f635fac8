"""Environments, samplers and the Tsallis solver against the oracle and against SciPy.

The oracle gets the package's random bits and computes in float64. In float64 both must agree
everywhere. In float32 a difference counts as rounding only where the oracle's unrounded value lies
within a stated tolerance of the point where the answer changes; everywhere else both must agree.
`EPS` = 2**-24 is half a unit in the last place of a float32 of size 1:

- states and Bernoulli losses compare a uniform of exactly 24 bits with a table entry that float32
  rounds by at most EPS / 2, so they can differ only if the two are within EPS;
- Laplace and geometric delays round a value of size m from a logarithm, with an error of a few EPS
  in each of its parts; the tolerances are 4 EPS m and 8 EPS m, and answers then differ by 1;
- log-normal and Pareto delays round a value of size m from an exponential; its exponent x errs by a
  few EPS (1 + |x|), and m by that many times m: the tolerance is 8 EPS m (1 + |x|), and answers
  differ by 1 and the tolerance;
- uniform, empirical and negative binomial delays are made with integers only and always agree.
"""

from __future__ import annotations

import math
from typing import Any

import helpers
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
import scipy.stats
from helpers import float_bits

import jaxbio as jb
from jaxbio import rng
from jaxbio.environment.mappings import SMALL, invert
from jaxbio.learners.tsallis import hybrid_minimiser
from jaxbio.ops import argmin_fair, cumulative, pick
from jaxbio.trees import as_arrays

EPS = 2.0**-24
HORIZON = 4000
FALSE_ALARM = 1e-4  # of one Kolmogorov-Smirnov test; with fixed seeds it alarms always or never

both_precisions = pytest.mark.parametrize("bits", [32, 64])


def rounds(horizon: int = HORIZON) -> jax.Array:
    return jnp.arange(1, horizon + 1, dtype=jnp.int32)


def state_uniforms(seed: int, run: int, num_actions: int) -> np.ndarray:
    """[T, K]: the uniforms behind s_t(a)."""
    key = rng.run_key(seed, run)
    actions = jnp.arange(num_actions, dtype=jnp.int32)
    of_round = jax.vmap(lambda t: jax.vmap(lambda a: rng.state_uniform(key, t, a))(actions))
    return np.asarray(of_round(rounds()), np.float64)


def agree(ours: np.ndarray, theirs: np.ndarray, doubt: np.ndarray, bits: int) -> None:
    """Equal, except in float32 where the oracle's value is in doubt. All of one shape."""
    differ = ours != theirs
    allowed = doubt if bits == 32 else np.zeros_like(doubt)
    assert not np.any(differ & ~allowed), np.argwhere(differ & ~allowed)[0]


# --- states


def near_boundary(P: np.ndarray, u: np.ndarray) -> np.ndarray:
    """bool [T, K]: is u within EPS of a cumulative probability? P: [T, K, S]; u: [T, K]."""
    return np.any(np.abs(np.cumsum(P, axis=2) - u[:, :, None]) <= EPS, axis=2)


def check_states(env: jb.Environment, P: np.ndarray, bits: int) -> None:
    """P: [T, K, S], the mapping in force in each round."""
    with float_bits(bits):
        ours = jb.sample_world(env, 3, 1, HORIZON)["states"]
        u = state_uniforms(3, 1, P.shape[1])
    theirs = reference.states_from_uniforms(P.tolist(), u.tolist())
    agree(ours, np.array(theirs), near_boundary(P, u), bits)


@both_precisions
@pytest.mark.parametrize("padding", [0, 5])
def test_stochastic_states(bits: int, padding: int) -> None:
    env = jb.make_environment("paper-stochastic").padded(3 + padding)
    check_states(env, np.broadcast_to(helpers.P, (HORIZON, *helpers.P.shape)), bits)


@both_precisions
def test_states_on_the_boundary(bits: int) -> None:
    """Probabilities that float32 holds exactly: u equal to a boundary belongs to what follows."""
    mapping = jb.StochasticMapping([[0.25, 0.5, 0.25], [0.0, 0.5, 0.5]])
    with float_bits(bits):
        dtype = jnp.result_type(float)
        u = np.array([0.0, 0.25, 0.25 - 2.0**-24, 0.5, 0.75, 1 - 2.0**-24])
        cumulative = jnp.asarray(mapping.cumulative, dtype)
        for action in range(2):
            pick = jax.vmap(
                lambda x, action=action: invert(cumulative, jnp.int32(action), x, jnp.int32(3))
            )
            theirs = [reference.pick(mapping.P[action].tolist(), x) for x in u.tolist()]
            assert pick(jnp.asarray(u, dtype)).tolist() == theirs


@both_precisions
@pytest.mark.parametrize("shape", [(3, 90), (40, 7)])
def test_states_of_a_large_table(bits: int, shape: tuple[int, int]) -> None:
    """Searched, not compared entry by entry. Some states have probability 0."""
    generator = np.random.default_rng(5)
    P = generator.exponential(size=shape) * (generator.random(shape) < 0.7)
    P /= P.sum(axis=1, keepdims=True)
    assert P.size > SMALL
    losses = jb.BernoulliLosses(np.linspace(0, 1, shape[1]))
    env = jb.Environment(jb.StochasticMapping(P), losses, jb.FixedDelay(1))
    check_states(env.padded(shape[1] + 3), np.broadcast_to(P, (HORIZON, *shape)), bits)


@pytest.mark.parametrize("size", [1, 2, 32, 33, 200])
def test_draws_on_short_and_long_axes(size: int) -> None:
    """In proportion to weights, and among the least. In float64 both agree everywhere."""
    generator = np.random.default_rng(size)
    weights = generator.exponential(size=(50, size))
    ties = generator.integers(0, 3, size=(50, size)).astype(float)
    u = generator.random(50)
    with float_bits(64):
        drawn = jax.vmap(pick)(jnp.asarray(weights), jnp.asarray(u)).tolist()
        least = jax.vmap(argmin_fair)(jnp.asarray(ties), jnp.asarray(u)).tolist()
        sums = jax.vmap(cumulative)(jnp.asarray(weights))
    scaled = [[x / sum(row) for x in row] for row in weights.tolist()]
    assert drawn == [reference.pick(*pair) for pair in zip(scaled, u.tolist(), strict=True)]
    assert least == [
        reference.pick_smallest(*pair) for pair in zip(ties.tolist(), u.tolist(), strict=True)
    ]
    assert np.array_equal(sums, np.cumsum(weights, axis=1)), "added one after the other"


PHASES = {
    "ceil": ({"reading": "ceil"}, reference.phase_index_ceil),
    "log": ({"reading": "log"}, reference.phase_index_log),
    "ceil, 1.1 from 7": (
        {"reading": "ceil", "growth": 1.1, "first": 7},
        lambda t: reference.phase_index_ceil(t, 1.1, 7),
    ),
    "log, doubling, other first": (
        {"reading": "log", "growth": 2.0, "start": 1},
        lambda t: reference.phase_index_log(t, 2, 1) + 1,
    ),
}


@pytest.mark.parametrize("name", PHASES)
def test_phases(name: str) -> None:
    """Which environment is in force: all early rounds, and some up to 2**30."""
    options, phase = PHASES[name]
    mapping = jb.make_environment("paper-adversarial", **options).mapping
    late = np.random.default_rng(0).integers(1, 2**30, 200)
    t = np.concatenate([np.arange(1, 3001), late]).astype(np.int32)
    ours = jax.vmap(mapping.environment)(jnp.asarray(t))
    assert ours.tolist() == [phase(int(x)) % 2 for x in t]


@both_precisions
@pytest.mark.parametrize("name", ["ceil", "log"])
def test_alternating_states(name: str, bits: int) -> None:
    options, phase = PHASES[name]
    env = jb.make_environment("paper-adversarial", **options)
    tables = np.asarray(env.mapping.P_phases)
    in_force = np.array([phase(t) % 2 for t in range(1, HORIZON + 1)])
    check_states(env, tables[in_force], bits)


# --- losses


@both_precisions
@pytest.mark.parametrize("coupling", ["shared", "independent"])
def test_bernoulli_losses(coupling: str, bits: int) -> None:
    theta = np.array([0.0, 0.2, 0.4, 0.8, 1.0])
    mapping = jb.StochasticMapping(np.full((2, 5), 0.2))
    env = jb.Environment(mapping, jb.BernoulliLosses(theta, coupling), jb.FixedDelay(0))
    with float_bits(bits):
        ours = jb.sample_world(env, 5, 2, HORIZON)["losses"]
        key = rng.run_key(5, 2)
        slots = jnp.arange(5, dtype=jnp.int32)
        if coupling == "shared":
            drawn = jax.vmap(lambda t: rng.round_uniforms(key, t)[1])(rounds())
        else:
            drawn = jax.vmap(lambda t: jax.vmap(lambda s: rng.loss_uniform(key, t, s))(slots))(
                rounds()
            )
    u = np.asarray(drawn, np.float64)
    if coupling == "shared":
        theirs = np.array(reference.bernoulli_losses(theta.tolist(), u.tolist()))
        u = np.repeat(u[:, None], 5, axis=1)
    else:
        theirs = (u < theta).astype(float)
    agree(ours, theirs, np.abs(u - theta) <= EPS, bits)


def uniform_pvalue(sample: np.ndarray, distribution: Any) -> float:
    return scipy.stats.kstest(np.asarray(sample, np.float64), distribution.cdf).pvalue


def test_beta_losses_have_their_distribution() -> None:
    """KS tests in float32: 9 of them, so a false alarm has probability 9e-4.

    Not for c theta or c (1 - theta) below 1/2: there the law has a mass of 1e-3 and more so close
    to 0 or 1 that float32 rounds it to the end point.
    """
    theta = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    mapping = jb.StochasticMapping(np.full((2, 5), 0.2))
    for concentration in (5.0, 30.0, 400.0):
        env = jb.Environment(mapping, jb.BetaLosses(theta, concentration), jb.FixedDelay(0))
        losses = jb.sample_world(env, 7, 0, 20_000)["losses"]
        assert np.all(losses[:, 0] == 0)
        assert np.all(losses[:, 4] == 1)
        for state in (1, 2, 3):
            a = concentration * theta[state]
            law = scipy.stats.beta(a, concentration - a)
            assert uniform_pvalue(losses[:, state], law) > FALSE_ALARM, (concentration, state)
        across = np.corrcoef(losses[:, 1:4].T)[np.triu_indices(3, 1)]
        assert np.all(np.abs(across) < 4 / math.sqrt(20_000)), "states and rounds are independent"


@pytest.mark.parametrize("bits", [32, 64])
def test_beta_losses_have_their_mean_where_they_are_nearly_coins(bits: int) -> None:
    """Parameters c theta and c (1 - theta) down to 1e-44. Of a concentration this small, losses
    between 1e-3 and 0.999 are rarer than one in 100, so that a sum of losses is one of coins: exact
    binomial tests, 12 of them in each precision, so a false alarm has probability 1.2e-3.
    """
    theta = np.array([0.0, 1e-4, 1e-2, 0.3, 1 - 1e-4, 1.0])
    mapping, rounds = jb.StochasticMapping(np.full((2, 6), 1 / 6)), 100_000
    with float_bits(bits):
        for concentration in (1e-3, 1e-6, 1e-40):
            env = jb.Environment(mapping, jb.BetaLosses(theta, concentration), jb.FixedDelay(0))
            losses = np.asarray(jb.sample_world(env, 8, 0, rounds)["losses"], np.float64)
            assert np.all(losses[:, 0] == 0)
            assert np.all(losses[:, 5] == 1)
            for state in range(1, 5):
                ones = round(losses[:, state].sum())
                p = scipy.stats.binomtest(ones, rounds, theta[state]).pvalue
                assert p > FALSE_ALARM, (concentration, theta[state], ones)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # 1e39 in float32
@pytest.mark.parametrize("concentration", [1.0, 1e4, 1e9, 1e20, 1e39])
def test_beta_losses_have_their_mean(concentration: float) -> None:
    """To 4.5 standard errors (a false alarm in 15 tests has probability 1e-4), and to the 1e-7 that
    float32 is worth.
    """
    theta, rounds = np.array([1e-2, 0.5, 0.99]), 100_000
    mapping = jb.StochasticMapping(np.full((2, 3), 1 / 3))
    env = jb.Environment(mapping, jb.BetaLosses(theta, concentration), jb.FixedDelay(0))
    losses = np.asarray(jb.sample_world(env, 9, 0, rounds)["losses"], np.float64)
    errors = np.sqrt(theta * (1 - theta) / (1 + concentration) / rounds)
    assert np.all(np.abs(losses.mean(axis=0) - theta) < 4.5 * errors + 1e-7)


# --- the gamma sampler of Thompson sampling and Beta losses


@pytest.mark.parametrize("shape", [1.0, 1.5, 4.0, 100.0, 3000.0])
def test_gamma_has_its_distribution(shape: float) -> None:
    """KS tests in float32: 5 of them, so a false alarm has probability 5e-4."""
    u = np.random.default_rng(int(shape)).random((2, 6, 50_000))
    u = jnp.asarray(np.clip(u, 2.0**-24, 1 - 2.0**-24), jnp.float32)
    sample = jax.jit(rng.gamma)(jnp.full(50_000, shape, jnp.float32), u[0], u[1])
    assert uniform_pvalue(np.asarray(sample), scipy.stats.gamma(shape)) > FALSE_ALARM


def test_gamma_takes_the_first_accepted_proposal() -> None:
    """Against the oracle in float64, also where few or no proposals are accepted (u1 near 1)."""
    generator = np.random.default_rng(1)
    shapes = np.exp(generator.uniform(0, 8, 3000))
    normals = generator.uniform(1e-6, 1 - 1e-6, (6, 3000))
    accepts = 1 - 10 ** generator.uniform(-8, 0, (6, 3000))
    with float_bits(64):
        ours = np.asarray(
            rng.gamma(jnp.asarray(shapes), jnp.asarray(normals), jnp.asarray(accepts))
        )
    pairs = np.stack([normals, accepts], axis=-1).transpose(1, 0, 2).tolist()
    theirs = np.array([reference.gamma_sample(a, p) for a, p in zip(shapes, pairs, strict=True)])
    np.testing.assert_allclose(ours, theirs, rtol=1e-11)
    modes = shapes - 1 / 3
    assert 0 < np.sum(theirs == modes) < 3000, "both ends of the rule occur"


# --- delays


def delay_words(seed: int, run: int) -> np.ndarray:
    key = rng.run_key(seed, run)
    return np.asarray(jax.vmap(lambda t: rng.delay_word(key, t))(rounds()))


EDGES = np.array([0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1], np.uint32)


def laplace_values(location: float, scale: float, words: np.ndarray) -> tuple[np.ndarray, float]:
    """Values before rounding, and their largest size."""
    v = (words.astype(np.float64) + 0.5) / 2**32
    size = abs(location) + scale * 32 * math.log(2)
    return scipy.stats.laplace(location, scale).ppf(v) + 0.5, size


def geometric_values(mean: float, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    v = (words.astype(np.float64) + 0.5) / 2**32
    values = np.log(v) / -math.log1p(1 / mean)
    return values, 2 * (1 + mean + values)  # the uniform errs by EPS, its logarithm times the mean


def lognormal_values(median: float, spread: float, words: np.ndarray) -> tuple[np.ndarray, Any]:
    exponent = spread * scipy.stats.norm.ppf((words.astype(np.float64) + 0.5) / 2**32)
    values = median * np.exp(exponent)
    return values + 0.5, 2 * values * (1 + np.abs(exponent))


def pareto_values(minimum: float, tail: float, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    exponent = -np.log((words.astype(np.float64) + 0.5) / 2**32) / tail
    values = minimum * np.exp(exponent)
    return values, 2 * values * (1 + exponent)


def lognormal(median: float, spread: float) -> Any:
    return (
        jb.LogNormalDelay(median, spread),
        lambda w: reference.lognormal_delays(median, spread, w),
        lambda w: lognormal_values(median, spread, w),
    )


def pareto(minimum: float, tail: float) -> Any:
    return (
        jb.ParetoDelay(minimum, tail),
        lambda w: reference.pareto_delays(minimum, tail, w),
        lambda w: pareto_values(minimum, tail, w),
    )


def negative_binomial(mean: float, dispersion: float, most: int) -> Any:
    probabilities = reference.negative_binomial(mean, dispersion, most)
    return (
        jb.NegativeBinomialDelay(mean, dispersion),
        lambda w: reference.empirical_delays(probabilities, 0.0, w),
        None,
    )


def empirical(probabilities: np.ndarray) -> Any:
    return (
        jb.EmpiricalDelay(probabilities),
        lambda w: reference.empirical_delays(probabilities.tolist(), 0.0, w),
        None,
    )


DELAYS = {
    "empirical, one of them": empirical(np.array([0, 0, 0, 1.0, 0])),
    "empirical, 127 of them": empirical(np.random.default_rng(0).dirichlet(np.ones(127))),
    "empirical, 3,000 of them": empirical(np.random.default_rng(1).dirichlet(np.full(3000, 0.1))),
    "laplace": (
        jb.LaplaceDelay(50, 25),
        lambda w: reference.laplace_delays(50, 25, w),
        lambda w: laplace_values(50, 25, w),
    ),
    "laplace, mostly cut at 0": (
        jb.LaplaceDelay(-3, 7.5),
        lambda w: reference.laplace_delays(-3, 7.5, w),
        lambda w: laplace_values(-3, 7.5, w),
    ),
    "geometric": (
        jb.GeometricDelay(10),
        lambda w: reference.geometric_delays(10, w),
        lambda w: geometric_values(10, w),
    ),
    "geometric, short": (
        jb.GeometricDelay(0.3),
        lambda w: reference.geometric_delays(0.3, w),
        lambda w: geometric_values(0.3, w),
    ),
    "log-normal": lognormal(50, 1),
    "log-normal, short": lognormal(0.7, 0.4),
    "pareto": pareto(25, 1.2),
    "pareto, without a mean": pareto(2.5, 0.6),
    "negative binomial": negative_binomial(50, 2, 1500),
    "negative binomial, wide": negative_binomial(7, 0.3, 2000),
    "uniform": (jb.UniformDelay(5, 104), lambda w: reference.uniform_delays(5, 104, w), None),
    "uniform, wide": (
        jb.UniformDelay(0, 2**30),
        lambda w: reference.uniform_delays(0, 2**30, w),
        None,
    ),
}


@both_precisions
@pytest.mark.parametrize("name", DELAYS)
def test_delays(name: str, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The delays of a run, and those of the smallest and largest random bits there are."""
    delays, oracle, values = DELAYS[name]
    with float_bits(bits):
        words = np.concatenate([delay_words(9, 4), EDGES])
        table = jnp.asarray(words)
        monkeypatch.setattr(rng, "delay_word", lambda key, t: table[t - 1])
        draw = jax.vmap(lambda t: as_arrays(delays).delay(jnp.zeros(2, jnp.uint32), t))
        ours = np.asarray(draw(rounds(len(words))))
    theirs = np.array(oracle(words.tolist()))
    doubt, size = np.zeros(len(words), bool), np.zeros(len(words))
    if values is not None:
        value, size = values(words)
        doubt = np.abs(value - np.round(value)) <= 4 * EPS * size
    agree(ours, theirs, doubt, bits)
    assert np.all(np.abs(ours - theirs) <= 1 + 4 * EPS * size)
    assert 0 <= ours.min() <= ours.max() <= delays.longest()
    assert np.mean(doubt) < 0.01, "the excuse is rare"


# --- the solver of Tsallis-INF


def solver_cases(num_actions: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """losses [n, K] with minimum 0, sqrt(t) [n], b [n]: many scales, and the corners."""
    generator = np.random.default_rng(num_actions)
    t = 10 ** generator.uniform(0, 7, count)
    b = np.where(generator.random(count) < 0.2, 0, 10 ** generator.uniform(-2, 4, count))
    size = 10 ** generator.uniform(-1, 4, count)
    corners = np.array([(t, b, s) for t in (1, 1e7) for b in (0, 1e-2, 1e4) for s in (1e-3, 1e4)])
    t, b, size = (np.concatenate(x) for x in zip((t, b, size), corners.T, strict=True))
    losses = (generator.random((len(t), num_actions)) * size[:, None]).astype(np.float32)
    losses -= losses.min(axis=1, keepdims=True)
    return losses, np.sqrt(t).astype(np.float32), b.astype(np.float32)


@pytest.mark.parametrize("num_actions", [3, 64])
def test_tsallis_solver_in_float32(num_actions: int) -> None:
    """Reached: 2e-7 (3 EPS) in every probability and in their cumulative sums, and a relative 4e-6
    in the probabilities themselves, however small, for the weights 1 / x.

    K to 64, t to 1e7, b = 0 and 1e-2 .. 1e4, losses to 1e4.
    """
    losses, tsallis, entropy = solver_cases(num_actions, 400)
    x = np.asarray(jax.jit(jax.vmap(hybrid_minimiser))(losses, tsallis, entropy), np.float64)
    exact = np.array(
        [
            reference.tsallis_policy(row.tolist(), float(a), float(b))
            for row, a, b in zip(losses.astype(np.float64), tsallis, entropy, strict=True)
        ]
    )
    assert np.max(np.abs(x - exact)) <= 2e-7
    assert np.max(np.abs(np.cumsum(x, axis=1) - np.cumsum(exact, axis=1))) <= 2e-7
    assert np.max(np.abs(x / exact - 1)) <= 4e-6
