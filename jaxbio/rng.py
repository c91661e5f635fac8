"""Randomness: a function of (root seed, run, round, purpose), never of batch, learner or device.

Threefry is a keyed function of a counter. A run's key comes from (seed, run) through `jax.random`;
every number of a run comes from one word of the block at counter (round, purpose and index). So the
state that round t would show for any action is fixed beforehand (the environment is oblivious), and
only that of the action taken is ever computed.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import checks
from jaxbio.core import Array
from jaxbio.trees import float_dtype

ROUND, OUTCOME, LOSS, DRAW, ORDER = range(5)  # purposes
INDICES = 2**24  # actions, states or draws of a round that have words of their own
WRITTEN_OUT = 8  # blocks of words; more of them are made in a loop
TURNS = 24  # of a shuffle
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def root_key(seed: Any) -> Array:
    """A typed threefry key from an integer seed; a key passes through."""
    seed = checks.seed(seed)
    if jnp.issubdtype(jnp.result_type(seed), jax.dtypes.prng_key):
        return seed
    return jax.random.key(seed, impl="threefry2x32")


def run_key(seed: Any, run: Any) -> Array:
    """uint32 [2]: the key words of one run."""
    return jax.random.key_data(jax.random.fold_in(root_key(seed), run))


def root_words(seed: Any) -> np.ndarray:
    """uint32 [2]: the words of `root_key`, on the host."""
    seed = checks.seed(seed)
    if jnp.issubdtype(jnp.result_type(seed), jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(seed))
    return np.array([0, seed], np.uint32)


def run_keys(seed: Any, runs: Any, stream: int | None = None) -> np.ndarray:
    """uint32 [2, len(runs)]: the key words of several runs, runs last, computed on the host.

    stream: of several independent families of runs with the same seed; None is the one that
    `run_key` belongs to.
    """
    root = (root_words(seed) if stream is None else _stream_words(seed, stream))[:, None]
    runs = np.asarray(runs).astype(np.uint32)
    words = np.broadcast_to(root, (2, len(runs)))
    return np.stack(threefry(words, np.zeros_like(runs), runs))


def stream_key(seed: Any, stream: int) -> Array:
    """The seed of a family of runs: `run_keys` of it are those of (seed, stream)."""
    return jax.random.wrap_key_data(jnp.asarray(_stream_words(seed, stream)), impl="threefry2x32")


def _stream_words(seed: Any, stream: int) -> np.ndarray:
    """uint32 [2]: counter (1, stream); runs without a stream have (0, run)."""
    one = np.ones(1, np.uint32)
    return np.stack(threefry(root_words(seed)[:, None], one, one * np.uint32(stream)))[:, 0]


def threefry(key: Any, counter0: Any, counter1: Any) -> tuple[Any, Any]:
    """Threefry-2x32 with 20 rounds, written out so that it fuses into the loop."""

    def rotate(x: Any, by: int) -> Any:
        return (x << np.uint32(by)) | (x >> np.uint32(32 - by))

    keys = (key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    x0, x1 = counter0 + keys[0], counter1 + keys[1]
    for i in range(5):
        for by in ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = rotate(x1, by) ^ x0
        x0 = x0 + keys[(i + 1) % 3]
        x1 = x1 + (keys[(i + 2) % 3] + np.uint32(i + 1))  # of the key alone: known beforehand
    return x0, x1


def block(key: Array, t: Array, purpose: int, index: Any = 0) -> tuple[Array, Array]:
    """The two words of (round, purpose, index)."""
    place = jnp.asarray(index).astype(jnp.uint32) | np.uint32(purpose << 24)
    return threefry(key, t.astype(jnp.uint32), place)


def unit(word: Array) -> Array:
    """A uniform in [0, 1) of 24 bits."""
    return (word >> np.uint32(8)).astype(float_dtype()) * 2.0**-24


def open_unit(word: Array) -> Array:
    """A uniform strictly inside (0, 1), of 23 bits."""
    return ((word >> np.uint32(9)).astype(float_dtype()) + 0.5) * 2.0**-23


def round_uniforms(key: Array, t: Array) -> tuple[Array, Array]:
    """The learner's uniform of round t, and the one behind the losses of round t."""
    word0, word1 = block(key, t, ROUND)
    return unit(word0), unit(word1)


def draws(key: Array, t: Array, count: int) -> Array:
    """[count] uniforms strictly inside (0, 1) for a learner that wants more than one per round."""
    places = lax.iota(jnp.int32, (count + 1) // 2)
    if len(places) > WRITTEN_OUT:
        words = lax.map(lambda place: block(key, t, DRAW, place), places)
    else:
        words = block(key, t, DRAW, places)
    return open_unit(jnp.concatenate(words))[:count]


def derived(u: Array, t: Array, index: Array, count: int) -> Array:
    """Further uniforms of round t for a learner that needs a number of them that it cannot know.

    u: one of the uniforms that it was given for the round (24 bits, or 23 and a half); index: int32
    [], which of the further ones. Threefry with these bits and t as its key, at the counter
    (index, i): as independent of u as the words of other rounds. A scalar in [0, 1) where count is
    1, else [count] strictly inside (0, 1): what `act` gets.
    """
    key = ((u * 2.0**24).astype(jnp.int32).astype(jnp.uint32), t.astype(jnp.uint32))
    index = index.astype(jnp.uint32)
    if count == 1:
        return unit(threefry(key, index, jnp.zeros_like(index))[0])
    place = lax.iota(jnp.uint32, (count + 1) // 2)
    word0, word1 = threefry(key, jnp.full_like(place, index), place)
    return open_unit(jnp.concatenate([word0, word1]))[:count]


def own_word(word: Array, index: Array) -> Array:
    """A word for each index, made of one word: some instructions where a block would take seventy.

    For every index a bijection of the word, so as uniform and as independent of all other words as
    that is. Between indices the bits are scattered by two products (the mixing function "lowbias32"
    of C. Wellons): no test of ours tells the words of two indices from independent ones.
    """
    word = word + jnp.asarray(index).astype(jnp.uint32) * np.uint32(0x9E3779B9)
    word = (word ^ (word >> np.uint32(16))) * np.uint32(0x7FEB352D)
    word = (word ^ (word >> np.uint32(15))) * np.uint32(0x846CA68B)
    return word ^ (word >> np.uint32(16))


def state_uniform(key: Array, t: Array, action: Array) -> Array:
    """The uniform behind s_t(action): independent across rounds and actions."""
    return unit(own_word(block(key, t, OUTCOME)[0], action))


def loss_uniform(key: Array, t: Array, state: Array) -> Array:
    """A uniform behind l_t(state) that is independent across states too."""
    return unit(block(key, t, LOSS, state)[0])


def delay_word(key: Array, t: Array) -> Array:
    """32 random bits behind d_t."""
    return block(key, t, OUTCOME)[1]


def below(word: Array, size: Array) -> Array:
    """floor(word * size / 2**32) exactly, in 32-bit arithmetic: an int32 below size (uint32)."""
    low, high = word & np.uint32(0xFFFF), word >> np.uint32(16)
    size_low, size_high = size & np.uint32(0xFFFF), size >> np.uint32(16)
    carry = (low * size_low) >> np.uint32(16)
    middle = high * size_low + carry
    rest = low * size_high + (middle & np.uint32(0xFFFF))
    return (high * size_high + (middle >> np.uint32(16)) + (rest >> np.uint32(16))).astype(
        jnp.int32
    )


def shuffled(key: Array, pile: Array, place: Array, size: Array) -> Array:
    """Where a place of 0, ..., size - 1 goes in a run's random order of one of several piles.

    The "swap or not" shuffle (Hoang, Morris and Rogaway 2012), which needs no table: in each turn
    places are paired, x with pivot - x modulo size, and every pair is exchanged or not. A place, or
    a pair of places, that no turn has moved anywhere at random is left with probability 2**-24.
    """
    size = jnp.asarray(size, jnp.int32)
    pivots, coins = block(key, jnp.int32(0), ORDER, pile)  # there is no round 0

    def turn(i: Array, x: Array) -> Array:
        other = below(own_word(pivots, i), size.astype(jnp.uint32)) - x
        other = jnp.where(other < 0, other + size, other)
        coin = own_word(own_word(coins, i), jnp.maximum(x, other)) >> np.uint32(31)
        return jnp.where(coin == 1, other, x)

    return lax.fori_loop(0, TURNS, turn, place)


def gamma(shape: Array, normals: Array, accepts: Array) -> Array:
    """Gamma(shape >= 1) by Marsaglia and Tsang with a fixed number of proposals, no loop.

    Each proposal is accepted with probability at least 0.95; the first accepted one is the sample.
    With n proposals none is accepted with probability below 0.05**n (1.6e-8 for 6), and then the
    mode d is returned, so the total variation from the exact law is below that.

    shape: [...]; normals, accepts: uniforms in (0, 1), [proposals, ...].
    """
    d = shape - 1.0 / 3.0

    def propose(sample: Array, uniforms: tuple[Array, Array]) -> tuple[Array, None]:
        normal, accept = uniforms
        x = lax.erf_inv(2.0 * normal - 1.0) * np.sqrt(2.0)
        base = 1.0 + x / jnp.sqrt(9.0 * d)
        w = base * base * base
        positive = w > 0
        safe = jnp.where(positive, w, 1.0)
        accepted = positive & (jnp.log(accept) < x * x / 2.0 + d - d * safe + d * jnp.log(safe))
        return jnp.where(accepted, d * safe, sample), None

    return lax.scan(propose, d, (normals, accepts), reverse=True)[0]  # the first one stays


def log_gamma(shape: Array, normals: Array, accepts: Array, boost: Array) -> Array:
    """The logarithm of a Gamma(shape > 0) variable: G(a) = G(a + 1) U^(1/a).

    In logarithms because a may be far below 1, where G(a) underflows. boost: uniforms in (0, 1),
    [...]; the others as in `gamma`.
    """
    return jnp.log(gamma(shape + 1.0, normals, accepts)) + jnp.log(boost) / shape
