"""What the comparisons with the oracle share: games written as tables, the uniforms of a run, and
learners paired with the specs that describe them to `reference.play`.

A game of tables (`table_game`) is an environment whose states, losses and delays are all given, so
one compiled program per learner serves fixed, random, bursty and endless delays, and the oracle's
world needs no random number of the package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference

import jaxbio as jb
from jaxbio import rng
from jaxbio.core import draws_of
from jaxbio.engine import player, tracing
from jaxbio.engine.round import as_numbers, begin, make_game, step, summary
from jaxbio.trees import float_dtype

# A filter of warnings, for what LLVM's back-end does not know: keys of jax.random, float64.
BY_VMAP = "default:jaxbio plays this with jax.vmap"

HORIZON = 2000
LANES = 8  # of a table game: no more losses of older rounds arrive together
# Rings: one that wraps around many times, one for endless delays. No powers of two.
SHALLOW, DEEP = 80, 3584

P = np.array([[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.3, 0.7, 0.0], [0.5, 0.3, 0.2]])
THETA = np.array([0.2, 0.4, 0.8])


@contextmanager
def float_bits(bits: int) -> Iterator[None]:
    """Run JAX in 32-bit or 64-bit mode, and go back afterwards."""
    before = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    jax.config.update("jax_enable_x64", bits == 64)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def forget_programs(patch: pytest.MonkeyPatch) -> None:
    """What plays from here on is traced and compiled anew, and forgotten afterwards."""
    patch.setattr(player, "_players", {})
    patch.setattr(tracing, "_traced", lru_cache(tracing._traced.__wrapped__))


def with_boxes(boxes: int, patch: pytest.MonkeyPatch) -> list[Any]:
    """From here on `simulate` plays games with so many boxes in a slot; returns those it makes."""
    games: list[Any] = []

    def made(*args: Any, **options: Any) -> Any:
        games.append(make_game(*args, **{**options, "boxes": boxes}))
        return games[-1]

    patch.setattr(sys.modules["jaxbio.sweeps.simulate"], "make_game", made)
    return games


# --- learners and their specs


class Pair(NamedTuple):
    """A learner of the package and the spec of the same learner for the oracle."""

    learner: Any
    spec: reference.Spec


KINDS: dict[str, Callable[..., Any]] = {
    "dada-exp3": jb.DAdaExp3,
    "exp3": jb.Exp3,
    "tsallis-inf": jb.TsallisINF,
    "ucb1": jb.UCB1,
    "nsd-ucrl2": jb.NSDUCRL2,
    "thompson": jb.ThompsonSampling,
    "hindsight-exp3": jb.HindsightExp3,
    "hindsight-tsallis": jb.HindsightTsallis,
    "state-thompson": jb.StateThompson,
    "metabio": jb.MetaBIO,
    "metaadabio": jb.MetaAdaBIO,
    "successive-elimination": jb.SuccessiveElimination,
    "restarting": jb.Restarting,
    "known-losses": jb.KnownLosses,
    "qpmd": jb.QPMD,
    "bold": jb.BOLD,
}


def pair(name: str, **options: Any) -> Pair:
    """Both descriptions at once: the package's fields and the oracle's options share their names.

    An option that is itself a Pair (the base of a wrapper, a schedule) goes its two ways.
    """
    sides = {k: v if isinstance(v, Pair) else Pair(v, v) for k, v in options.items()}
    learner = KINDS[name](**{k: side.learner for k, side in sides.items()})
    return Pair(learner, {"name": name, **{k: side.spec for k, side in sides.items()}})


# --- the uniforms of a run


@cache
def uniforms(seed: int, run: int, horizon: int, draws: int) -> list[Any]:
    """What the learner is given in rounds 1..T: floats, or lists where it wants several.

    They have at most 24 bits, so they are the same numbers in float32 and float64.
    """
    key = rng.run_key(seed, run)
    rounds = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    if draws == 1:
        drawn = jax.vmap(lambda t: rng.round_uniforms(key, t)[0])(rounds)
    else:
        drawn = jax.vmap(lambda t: rng.draws(key, t, draws))(rounds)
    return np.asarray(drawn, np.float64).tolist()


def uniforms_for(learner: Any, num_actions: int, seed: int, run: int, horizon: int) -> list[Any]:
    return uniforms(seed, run, horizon, draws_of(learner, num_actions))


# --- games


class TableGame(NamedTuple):
    """An environment, the same as the oracle's world, and the (seed, run) of the learner."""

    env: jb.Environment
    world: reference.World
    seed: int
    run: int


def world_of(env: jb.Environment, seed: int, run: int, horizon: int) -> reference.World:
    """The oracle's world of a run in any environment."""
    world = jb.sample_world(env, seed, run, horizon)
    losses = world["losses"].astype(np.float64)[:, : env.num_states]
    return reference.World(
        world["states"].tolist(), losses.tolist(), world["delays"].tolist(), env.num_states
    )


def draw_states(generator: np.random.Generator, mapping: np.ndarray, horizon: int) -> np.ndarray:
    """int [T, K]: s_t(a) drawn from mapping [K, S]."""
    u = generator.random((horizon, mapping.shape[0], 1))
    return np.sum(u >= np.cumsum(mapping, axis=1)[:, :-1], axis=2)


def draw_losses(
    generator: np.random.Generator, theta: np.ndarray, horizon: int, graded: bool
) -> np.ndarray:
    """[T, S] with mean theta: coins, or multiples of 2**-10, which float32 holds exactly too."""
    u = generator.random((horizon, theta.shape[0]))
    if not graded:
        return (u < theta).astype(np.float64)
    return np.clip(np.round((theta + (u - 0.5) / 2) * 1024) / 1024, 0, 1)


def table_game(
    delays: np.ndarray, index: int, mapping: np.ndarray = P, theta: np.ndarray = THETA
) -> TableGame:
    """Game number `index`: its own states, losses (graded in every other game), seed and run."""
    generator = np.random.default_rng(index)
    states = draw_states(generator, mapping, HORIZON)
    losses = draw_losses(generator, theta, HORIZON, graded=index % 2 == 1)
    env = jb.Environment(
        jb.TableMapping(states, theta.shape[0]), jb.TableLosses(losses), jb.TableDelay(delays)
    )
    world = reference.World(
        states.tolist(), losses.tolist(), np.asarray(delays).tolist(), theta.shape[0]
    )
    return TableGame(env, world, seed=index // 3, run=index)


def bursts(together: int, shift: int) -> np.ndarray:
    """int [T]: every `together` rounds, that many losses arrive in one round."""
    t = np.arange(1, HORIZON + 1)
    return -(-t // together) * together + shift - t


def laplace_delays(location: float, scale: float, seed: int) -> np.ndarray:
    """int [T]: Laplace delays, cut so that they fit into the shallow ring."""
    raw = np.random.default_rng(seed).laplace(location, scale, HORIZON)
    return np.clip(np.round(raw), 0, SHALLOW - 1).astype(int)


def mostly(delays: np.ndarray, other: int, share: float, seed: int) -> np.ndarray:
    """int [T]: `delays`, but a share of the rounds has the delay `other`."""
    chosen = np.random.default_rng(seed).random(HORIZON) < share
    return np.where(chosen, other, delays)


def dammed(rounds: int) -> np.ndarray:
    """int [T]: nothing of the first `rounds` arrives before they are over, then 7 a round do."""
    t = np.arange(1, HORIZON + 1)
    return np.where(t <= rounds, rounds - t + -(-t // 7), 3)


def shallow_delays() -> dict[str, np.ndarray]:
    """Delays below 64."""
    return {
        "fixed": np.full(HORIZON, 20),
        "laplace": laplace_delays(20, 12, 1),
        "zero": np.zeros(HORIZON, int),
        "bursts": bursts(8, 12),
        "bursts with their own round": bursts(8, 0),
        "some at once": mostly(np.full(HORIZON, 40), 0, 0.4, 2),
    }


def deep_delays() -> dict[str, np.ndarray]:
    """Delays beyond the shallow ring, and losses that never arrive."""
    return {
        "long": np.full(HORIZON, 300),
        "bursts": bursts(8, 60),
        "a quarter never": mostly(laplace_delays(15, 8, 3), 5 * HORIZON, 0.25, 4),
        "past the horizon, or at once": mostly(np.zeros(HORIZON, int), HORIZON, 0.1, 5),
        "dammed": dammed(HORIZON // 2),
    }


def delay_tables(ring_depth: int) -> dict[str, np.ndarray]:
    return shallow_delays() if ring_depth == SHALLOW else deep_delays()


# --- playing


class Played(NamedTuple):
    """A run of the package on the host: Round with leaves [T], and its facts."""

    rounds: jb.Round
    info: dict[str, np.ndarray]


def _play(
    env: Any, learner: Any, seed: Any, run: Any, *, horizon: int, ring_depth: int, lanes: int
) -> tuple[jb.Round, dict[str, Any]]:
    """`trajectory` and the facts of `rollout` out of one loop: half the compilation."""
    game = make_game(env, learner, horizon, ring_depth, lanes)
    key = rng.run_key(seed, run)
    rounds = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    carry, played = jax.lax.scan(lambda c, t: step(game, key, t, c), begin(game), rounds)
    return played, as_numbers(summary(game, carry))


_compiled = partial(jax.jit, _play, static_argnames=("horizon", "ring_depth", "lanes"))
# Float64 shows that the algorithm is right, whatever LLVM does to it: a third less to compile.
PLAYERS = {
    32: _compiled(compiler_options={"xla_backend_optimization_level": 3}),
    64: _compiled(compiler_options={"xla_backend_optimization_level": 0}),
}


def play_table(game: TableGame, learner: Any, ring_depth: int, lanes: int = LANES) -> Played:
    """Play a table game; every number is an argument of the program, also the learner's."""
    sizes = {"horizon": HORIZON, "ring_depth": ring_depth, "lanes": lanes}
    play = PLAYERS[jnp.finfo(float_dtype()).bits]
    rounds, info = jax.device_get(play(game.env, learner, game.seed, game.run, **sizes))
    assert not info["overflow"], "the table needs more lanes"
    return Played(rounds, info)


def play_weights(ticket: Any) -> np.ndarray | None:
    """1 / (probability of the action when it was played), [T], for learners that sample."""
    while hasattr(ticket, "base"):
        ticket = ticket.base
    return np.asarray(ticket.weight, np.float64) if hasattr(ticket, "weight") else None


class Reminded(float):
    """A uniform together with the probability that the package remembers of the round."""

    remembered: float


def remembering(kind: type[reference.Sampled]) -> type[reference.Sampled]:
    """The learner, except that it divides by the probabilities that it is reminded of."""

    class Remembering(kind):
        def issue(self, policy: list[float], u: Any, action: int) -> float:
            return u.remembered

    return Remembering


SAMPLED_KINDS = ("dada-exp3", "exp3", "tsallis-inf", "hindsight-exp3", "hindsight-tsallis")
reference.LEARNERS.update(
    {f"reminded {name}": remembering(reference.LEARNERS[name]) for name in SAMPLED_KINDS}  # type: ignore[arg-type]
)


def reminded_spec(spec: reference.Spec) -> reference.Spec:
    """The spec with its sampling learners replaced by remembering ones."""
    inner = {k: reminded_spec(v) for k, v in spec.items() if k in ("base", "after") and v}
    name = f"reminded {spec['name']}" if spec["name"] in SAMPLED_KINDS else spec["name"]
    return {**spec, **inner, "name": name}


def reminded(u: float, weight: float) -> Reminded:
    value = Reminded(u)
    value.remembered = 1 / weight
    return value


def oracle_play(game: TableGame, ours: Pair, forced: Played | None = None) -> reference.Trace:
    """The oracle's run of the same game: free, or with everything that it remembers of the rounds
    played (actions, and the probabilities that losses are divided by) taken from `forced`."""
    world = game.world
    num_actions = len(world.states[0])
    given = uniforms_for(ours.learner, num_actions, game.seed, game.run, len(world.delays))
    if forced is None:
        return reference.play(ours.spec, world, given)
    actions, spec = forced.rounds.action.tolist(), ours.spec
    weights = play_weights(forced.rounds.ticket)
    if weights is not None:
        given = [reminded(u, w) for u, w in zip(given, weights.tolist(), strict=True)]
        spec = reminded_spec(spec)
    return reference.play(spec, world, given, actions)
