"""Random numbers: jax's threefry bit for bit, uniform, and another stream for each purpose."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy import stats

from jaxbio import rng

FALSE_ALARM = 1e-5  # of each statistical test below, were the seeds drawn anew
ROUNDS = jnp.arange(1, 40_001, dtype=jnp.int32)
KEY = rng.run_key(3, 5)


@partial(jax.jit, static_argnums=1)
def all_words(key: Any, purpose: int, index: Any) -> Any:
    return jnp.stack(rng.block(key, ROUNDS, purpose, index))


def words(key: Any, purpose: int, index: int = 0) -> np.ndarray:
    """Both words of every round: [2, rounds]."""
    return np.asarray(all_words(key, purpose, index))


def own_words(given: np.ndarray, index: int) -> np.ndarray:
    return np.asarray(rng.own_word(jnp.asarray(given), jnp.int32(index)))


STREAMS: dict[str, Callable[[Any], Any]] = {
    "learner": lambda t: rng.round_uniforms(KEY, t)[0],
    "loss": lambda t: rng.round_uniforms(KEY, t)[1],
    "state": lambda t: rng.state_uniform(KEY, t, jnp.int32(0)),
    "another action's state": lambda t: rng.state_uniform(KEY, t, jnp.int32(1)),
    "a far action's state": lambda t: rng.state_uniform(KEY, t, jnp.int32(1000)),
    "delay": lambda t: rng.unit(rng.delay_word(KEY, t)),
    "state's loss": lambda t: rng.loss_uniform(KEY, t, jnp.int32(0)),
    "draws": lambda t: rng.draws(KEY, t, 5),
}


@cache
def uniforms(name: str) -> np.ndarray:
    """[rounds], or more where a round has several."""
    return np.asarray(jax.jit(jax.vmap(STREAMS[name]))(ROUNDS), np.float64).ravel()


def correlation_pvalue(u: np.ndarray) -> float:
    """Of the correlation between neighbours."""
    result: Any = stats.pearsonr(u[:-1], u[1:])
    return result.pvalue


def test_threefry_is_that_of_jax() -> None:
    numbers = np.random.default_rng(0).integers(0, 2**32, size=(4, 500), dtype=np.uint32)
    numbers[:, 0], numbers[:, 1] = 0, 2**32 - 1
    keys, counters = jnp.asarray(numbers[:2].T), jnp.asarray(numbers[2:].T)
    got = jax.jit(jax.vmap(lambda k, c: jnp.stack(rng.threefry(k, c[0], c[1]))))(keys, counters)
    np.testing.assert_array_equal(got, jax.vmap(threefry_2x32)(keys, counters))


def test_threefry_by_the_published_vectors() -> None:
    """Known answers of the Random123 distribution."""
    full = np.uint32(2**32 - 1)
    cases = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((full, full), (full, full), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]
    for key, counter, expected in cases:
        got = rng.threefry(jnp.array(key, jnp.uint32), *(jnp.uint32(c) for c in counter))
        assert tuple(int(word) for word in got) == expected


@pytest.mark.parametrize("seed", [0, 11, 2**31 - 1, 2**31, 2**32 - 1])
def test_run_keys_are_folded_from_the_seed(seed: int) -> None:
    """On the host, from a number or a key, they are what jax.random makes of it."""
    runs = np.array([0, 1, 7, 1_000_000, 2**31 - 1])
    root = jax.random.key(np.uint32(seed), impl="threefry2x32")
    expected = jax.vmap(lambda run: jax.random.key_data(jax.random.fold_in(root, run)))(runs)
    for given in (seed, root):
        keys = rng.run_keys(given, runs)
        assert isinstance(keys, np.ndarray)
        np.testing.assert_array_equal(keys.T, expected)
        np.testing.assert_array_equal(rng.run_key(given, 7), expected[2])


def test_the_seed_of_a_stream() -> None:
    runs = np.arange(5)
    assert np.array_equal(rng.run_keys(rng.stream_key(3, 7), runs), rng.run_keys(3, runs, 7))


def test_streams_are_other_families_of_runs() -> None:
    """A folded key, one word further: no run of one stream is a run of another."""
    families = [rng.run_keys(3, np.arange(1000), stream) for stream in (None, 0, 1, 2)]
    assert len({tuple(column) for keys in families for column in keys.T.tolist()}) == 4000


def test_words_differ_by_run_round_purpose_and_index() -> None:
    streams = [words(rng.run_key(seed, run), rng.ROUND) for seed, run in [(0, 0), (0, 1), (1, 0)]]
    streams += [words(KEY, purpose) for purpose in range(4)]
    streams += [words(KEY, rng.LOSS, index) for index in (1, 2, 3)]
    streams += [own_words(words(KEY, rng.OUTCOME), index) for index in (0, 1, 2, 3)]
    flat = np.stack([stream.ravel() for stream in streams])
    for i in range(len(flat)):
        for j in range(i):
            # Independent streams agree at a given place with probability 2**-32: 4e-5 in all pairs.
            assert np.mean(flat[i] == flat[j]) < 1e-4
    assert all(len(np.unique(stream)) > 0.999 * stream.size for stream in flat)


def test_purposes_have_their_own_numbers() -> None:
    assert len({rng.ROUND, rng.OUTCOME, rng.LOSS, rng.DRAW}) == 4


@pytest.mark.parametrize("name", STREAMS)
def test_uniform_on_the_unit_interval(name: str) -> None:
    u = uniforms(name)
    assert u.min() >= 0
    assert u.max() < 1
    counts = np.bincount((u * 64).astype(int), minlength=64)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    assert stats.kstest(u, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", STREAMS)
def test_no_correlation_from_round_to_round(name: str) -> None:
    u = uniforms(name)
    pairs = np.bincount((u[:-1] * 8).astype(int) * 8 + (u[1:] * 8).astype(int), minlength=64)
    assert stats.chisquare(pairs).pvalue > FALSE_ALARM
    assert correlation_pvalue(u) > FALSE_ALARM


def test_streams_of_one_round_are_independent() -> None:
    columns = [uniforms(name)[:30_000] for name in STREAMS if name != "draws"]
    columns += [np.asarray(rng.unit(jnp.asarray(words(KEY, rng.OUTCOME)[0])))[:30_000]]
    cells = [(column * 6).astype(int) for column in columns]
    for i in range(len(cells)):
        for j in range(i):
            counts = np.bincount(cells[i] * 6 + cells[j], minlength=36)
            assert stats.chisquare(counts).pvalue > FALSE_ALARM / 28


def test_every_index_has_a_word_of_its_own_for_every_word() -> None:
    """No word comes twice, so where the one word is uniform, so is that of any index: the word can
    be had back.
    """

    def unmixed(word: np.ndarray, index: int) -> np.ndarray:
        for shift, factor in ((16, 0x846CA68B), (15, 0x7FEB352D), (16, 1)):
            high = word ^ (word >> np.uint32(shift))  # all bits but the lowest two are right
            word = word ^ (high >> np.uint32(shift))
            word = word * np.uint32(pow(factor, -1, 2**32))
        return word - np.uint32(index * 0x9E3779B9 % 2**32)

    given = words(KEY, rng.OUTCOME)
    for index in (0, 1, 7, 2**20):
        np.testing.assert_array_equal(unmixed(own_words(given, index), index), given)


def test_words_of_two_indices_share_no_bit() -> None:
    """Every bit of one agrees with every bit of the other in half of all rounds: 1,024 pairs of
    bits for each pair of indices, normal limit at the false-alarm rate of all 10,240.
    """
    given, limit = words(KEY, rng.OUTCOME)[0], stats.norm.isf(FALSE_ALARM / 2 / 10_240)
    indices = np.array([[0, 1], [0, 2], [1, 2], [3, 4], [5, 6], [0, 7], [0, 8], [0, 64], [2, 130]])
    for first, second in [*indices.tolist(), (9, 900)]:
        bits = [
            2.0 * ((own_words(given, index)[:, None] >> np.arange(32, dtype=np.uint32)) & 1) - 1
            for index in (first, second)
        ]
        z = bits[0].T @ bits[1] / np.sqrt(len(given))
        assert np.abs(z).max() < limit


def test_states_of_many_actions_are_independent_together() -> None:
    """The sum of twelve uniforms of one round has the variance that independent ones have, and the
    largest of eight their law.
    """
    of_round = jax.vmap(lambda t: jax.vmap(lambda a: rng.state_uniform(KEY, t, a))(jnp.arange(12)))
    u = np.asarray(jax.jit(of_round)(ROUNDS), np.float64)
    assert stats.kstest(u[:, :8].max(axis=1) ** 8, "uniform").pvalue > FALSE_ALARM
    assert stats.kstest(u[:, :8].min(axis=1), lambda x: 1 - (1 - x) ** 8).pvalue > FALSE_ALARM
    squared = (u.sum(axis=1) - 6.0) ** 2  # mean 1, variance 2 - 0.1
    z = (squared.mean() - 1) / np.sqrt(1.9 / len(squared))
    assert abs(z) < stats.norm.isf(FALSE_ALARM / 2)


def test_runs_are_independent_at_the_same_round() -> None:
    keys = rng.run_keys(0, np.arange(20_000))
    u = np.asarray(jax.vmap(lambda k: rng.round_uniforms(k, jnp.int32(1))[0], in_axes=-1)(keys))
    assert stats.kstest(u, "uniform").pvalue > FALSE_ALARM
    assert correlation_pvalue(u) > FALSE_ALARM


def test_ends_of_the_unit_intervals() -> None:
    extreme = jnp.array([0, 2**32 - 1], jnp.uint32)
    closed, opened = np.asarray(rng.unit(extreme)), np.asarray(rng.open_unit(extreme))
    assert closed[0] == 0
    assert 0.9999 < closed[1] < 1
    assert 0 < opened[0] < 1e-6
    assert 0.9999 < opened[1] < 1


def test_a_state_does_not_depend_on_which_others_are_asked_for() -> None:
    every = jax.vmap(lambda a: rng.state_uniform(KEY, jnp.int32(9), a))(jnp.arange(6))
    one = rng.state_uniform(KEY, jnp.int32(9), jnp.int32(4))
    assert every[4] == one


@pytest.mark.parametrize("shape", [1.0, 1.5, 4.0, 60.0])
def test_gamma_follows_its_law(shape: float) -> None:
    """The law of rng.gamma against scipy's; 20,000 draws."""
    u = np.random.default_rng(1).uniform(1e-7, 1 - 1e-7, size=(2, 6, 20_000)).astype(np.float32)
    got = rng.gamma(jnp.full(20_000, shape), jnp.asarray(u[0]), jnp.asarray(u[1]))
    assert stats.kstest(np.asarray(got), "gamma", args=(shape,)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("shape", [0.002, 0.3, 40.0])
def test_the_logarithm_of_gamma_follows_its_law(shape: float) -> None:
    """Of shapes below 1 too, where most variables of the first are below 1e-100."""
    u = np.random.default_rng(2).uniform(1e-7, 1 - 1e-7, size=(2, 6, 20_000)).astype(np.float32)
    boost = np.random.default_rng(3).uniform(1e-7, 1, 20_000).astype(np.float32)
    given = (jnp.asarray(u[0]), jnp.asarray(u[1]), jnp.asarray(boost))
    got = rng.log_gamma(jnp.full(20_000, shape), *given)
    assert stats.kstest(np.asarray(got), "loggamma", args=(shape,)).pvalue > FALSE_ALARM


def test_below_is_the_exact_share_of_a_word() -> None:
    """Against Python's integers, at the ends of words and sizes."""
    drawn = np.random.default_rng(4).integers(2**32, size=(2, 200), dtype=np.uint32)
    ends = np.array([0, 1, 2**16 - 1, 2**16, 2**31 - 1, 2**32 - 1], np.uint32)
    pairs = [*drawn.T, *((word, size) for word in ends for size in ends[1:-1])]
    for word, size in pairs:
        size = int(size) % 2**31 + 1
        got = rng.below(jnp.uint32(word), jnp.uint32(size))
        assert int(got) == int(word) * size // 2**32


@jax.jit
def moved(keys: Any, pile: Any, size: Any, places: Any) -> Any:
    """[runs, places]: where these places go, in every run."""
    one = lambda key: jax.vmap(lambda x: rng.shuffled(key, pile, x, size))(places)  # noqa: E731
    return jax.vmap(one, -1)(keys)


def orders(keys: Any, pile: int, size: int, places: Any = None) -> np.ndarray:
    wanted = np.arange(size) if places is None else np.asarray(places)
    return np.asarray(moved(keys, jnp.int32(pile), jnp.int32(size), wanted.astype(np.int32)))


@pytest.mark.parametrize("size", [1, 2, 3, 97, 256, 1000])
def test_a_shuffle_is_an_order(size: int) -> None:
    found = orders(rng.run_keys(0, np.arange(50)), 3, size)
    assert (np.sort(found, axis=1) == np.arange(size)).all()


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_all_orders_of_few_are_as_frequent(size: int) -> None:
    """20,000 runs, by a chi-squared test."""
    found = orders(rng.run_keys(1, np.arange(20_000)), 0, size)
    codes = (found * size ** np.arange(size)).sum(axis=1)
    counts = np.unique(codes, return_counts=True)[1]
    assert len(counts) == np.prod(np.arange(1, size + 1))
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.parametrize("size", [97, 1024])
def test_places_of_a_shuffle_are_independent(size: int) -> None:
    """Of neighbours, ends, piles and runs that follow each other: in eighths of the order."""
    runs = rng.run_keys(2, np.arange(8001))
    places = [0, 1, 5, size // 2, size - 1]
    one, other = (orders(runs, pile, size, places) * 8 // size for pile in (0, 1))
    pairs = [(one[:, 0], one[:, 1]), (one[:, 0], one[:, 4]), (one[:, 2], one[:, 3]),
             (one[:, 0], other[:, 0]), (one[:-1, 0], one[1:, 0])]  # fmt: skip
    for a, b in pairs:
        table = np.zeros((8, 8))
        np.add.at(table, (a, b), 1)
        assert stats.chi2_contingency(table).pvalue > FALSE_ALARM  # type: ignore[attr-defined]
