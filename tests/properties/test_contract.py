"""Every learner keeps the protocol: alone, under jit and vmap, side by side and inside wrappers.

No learner sees a loss before its time, and every play comes back once, with its ticket.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import forget_programs, with_boxes

import jaxbio as jb
from jaxbio import rng
from jaxbio.checks import FLAGS
from jaxbio.core import ignores_empty_lanes
from jaxbio.engine import round as rounds
from jaxbio.engine.round import as_numbers, begin, make_game, step, summary
from jaxbio.environment import delays as laws

HORIZON, RUNS = 60, 3
MAPPING = jb.StochasticMapping([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
LOSSES = jb.BernoulliLosses([0.1, 0.8])
FIXED = jb.Environment(MAPPING, LOSSES, jb.FixedDelay(3))
RANDOM = jb.Environment(MAPPING, LOSSES, jb.UniformDelay(0, 4))


@jb.pytree
class EpsilonGreedy:
    """What a user would write in five minutes, for one run, with plain indexing."""

    epsilon: Any = 0.2
    draws = 2

    def init(self, known: jb.Known) -> Any:
        return jnp.zeros(known.num_actions), jnp.zeros(known.num_actions)

    def act(self, state: Any, t: Any, u: Any) -> Any:
        counts, sums = state
        greedy = jnp.argmin(sums / jnp.maximum(counts, 1.0))
        other = jnp.floor(u[1] * counts.shape[0]).astype(jnp.int32)
        action = jnp.where(u[0] < self.epsilon, other, greedy.astype(jnp.int32))
        return action, counts[action]

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        counts, sums = state
        action, due = arrivals.play.action, arrivals.due
        counts = counts.at[action].add(jnp.where(due, 1.0, 0.0))
        sums = sums.at[action].add(jnp.where(due, arrivals.play.loss, 0.0))
        return (counts, sums), play.ticket


BASES = (*jb.learner_names(), "user's")


def base(name: str) -> Any:
    return EpsilonGreedy() if name == "user's" else jb.make_learner(name)


def wrapped(name: str, wrapper: str) -> Any:
    """MetaAdaBIO with a rule that soon holds, so that both of its phases are played."""
    if wrapper == "MetaBIO":
        return jb.MetaBIO(base(name))
    return jb.MetaAdaBIO(base(name), rule="practical", switch_scale=0.4)


def side_by_side(env: jb.Environment, learner: Any) -> jb.Result:
    return jb.simulate(env, learner, horizon=HORIZON, runs=RUNS, rounds=HORIZON, progress=False)


def one_by_one(env: jb.Environment, learner: Any) -> Any:
    """Regret, loss and facts of rollouts under jit and vmap: leaves [runs, ...]."""
    depth, lanes = jb.ring_sizes(env, HORIZON)

    def one(run: Any) -> Any:
        sizes = {"ring_depth": depth, "lanes": lanes}
        record = jb.rollout(env, learner, 0, HORIZON, run=run, rounds=HORIZON, **sizes)
        return record.regret, record.loss, record.info

    return jax.device_get(jax.jit(jax.vmap(one))(jnp.arange(RUNS)))


def assert_agree(env: jb.Environment, learner: Any) -> jb.Result:
    """Loss by loss the same games; regret is summed in float64 on one side only."""
    result = side_by_side(env, learner)
    regret, loss, info = one_by_one(env, learner)
    assert not any(info.pop(flag).any() for flag in FLAGS)
    np.testing.assert_array_equal(result.rounds, np.arange(1, HORIZON + 1))
    np.testing.assert_array_equal(result.loss, loss)
    np.testing.assert_allclose(result.regret, regret, atol=1e-4)
    assert info.keys() == result.info.keys()
    for name, value in info.items():
        np.testing.assert_array_equal(result.info[name], value, err_msg=name)
    return result


@pytest.mark.alike
@pytest.mark.parametrize("name", jb.learner_names())
def test_registered_learner_plays(name: str) -> None:
    result = assert_agree(FIXED, base(name))
    assert np.isfinite(result.regret).all()
    assert len({tuple(curve) for curve in result.loss}) == RUNS
    assert (result.info["arrived"] == HORIZON - 3).all()
    assert (result.info["total_delay"] == 3 * HORIZON - 6).all()


@pytest.mark.parametrize(
    ("name", "wrapper"),
    [
        ("user's", "MetaBIO"),
        ("nsd-ucrl2", "MetaAdaBIO"),
    ],
)
def test_wrapped_learner_plays(name: str, wrapper: str) -> None:
    result = assert_agree(RANDOM, wrapped(name, wrapper))
    info = result.info
    assert (info["waiting_rounds"] < HORIZON).all()
    assert (info["total_perceived_delay"] > 0).all()
    assert (info["total_perceived_delay"] < info["total_delay"]).all()
    assert (info["rounds_fed"] >= info["arrived"]).all()
    switched = info["switch_round"] <= HORIZON
    assert switched.all() if wrapper == "MetaAdaBIO" else not switched.any()


@pytest.mark.alike
@pytest.mark.parametrize("name", BASES)
def test_empty_lanes_and_the_boxes_of_a_slot_change_no_bit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ring just large enough for delays up to 4, looked at lane by lane, and few boxes."""
    learner = base(name)
    expected = side_by_side(RANDOM, learner)
    assert (expected.info["arrived"] > HORIZON - 5).all()
    forget_programs(monkeypatch)
    games = with_boxes(2, monkeypatch)
    monkeypatch.setattr(rounds, "LADDER", (2,))
    if ignores_empty_lanes(learner):
        monkeypatch.setattr(laws, "LANES", 5)
    found = side_by_side(RANDOM, learner)
    assert [game.boxes for game in games] == [2]
    np.testing.assert_array_equal(found.regret, expected.regret)
    np.testing.assert_array_equal(found.loss, expected.loss)
    for what, fact in expected.info.items():
        np.testing.assert_array_equal(found.info[what], fact, err_msg=what)


def test_registered_learners_ignore_empty_lanes() -> None:
    """Else the ladder of lanes would be left out of the test before this one."""
    assert all(ignores_empty_lanes(base(name)) for name in jb.learner_names())
    assert not ignores_empty_lanes(base("user's"))


@pytest.mark.alike
@pytest.mark.parametrize("wrapper", ["MetaBIO", "MetaAdaBIO"])
@pytest.mark.parametrize("name", BASES)
def test_a_round_of_every_pairing_keeps_all_types(name: str, wrapper: str) -> None:
    """Traced for a batch, not compiled: what goes into a round comes out of it."""
    game = make_game(RANDOM, wrapped(name, wrapper), HORIZON, 64, 4)
    before = jax.eval_shape(jax.vmap(lambda _: begin(game)), jnp.zeros(7))
    many = jax.vmap(step, (None, 0, None, 0))
    keys, t = jnp.zeros((7, 2), jnp.uint32), jnp.int32(1)
    after, played = jax.eval_shape(many, game, keys, t, before)
    assert jax.tree.structure(after) == jax.tree.structure(before)
    same = jax.tree.map(lambda a, b: (a.shape, a.dtype) == (b.shape, b.dtype), before, after)
    assert jax.tree.all(same)
    assert (played.action.dtype, played.action.shape) == (jnp.int32, (7,))


@pytest.mark.parametrize("wrapper", ["none", "MetaBIO", "MetaAdaBIO"])
@pytest.mark.parametrize("name", BASES)
def test_a_learner_is_a_tree_of_its_numbers(name: str, wrapper: str) -> None:
    learner = base(name) if wrapper == "none" else wrapped(name, wrapper)
    leaves, structure = jax.tree.flatten(learner)
    again = jax.tree.unflatten(structure, leaves)
    assert type(again) is type(learner)
    assert repr(again) == repr(learner)
    assert jax.tree.structure(again) == structure
    assert all(isinstance(leaf, int | float) for leaf in leaves)
    hash(structure)
    stacked = jax.tree.map(lambda leaf: jnp.stack([jnp.float32(leaf)] * 2), learner)
    assert all(leaf.shape == (2,) for leaf in jax.tree.leaves(stacked))
    learner.init  # noqa: B018  (still a learner)
    with pytest.raises(AttributeError):
        learner.init = None


def test_a_vmap_over_a_learners_numbers() -> None:
    """One program, one exploration rate per row."""
    rates = jnp.array([0.0, 0.5, 1.0, 0.5])
    play = lambda rate: jb.rollout(FIXED, EpsilonGreedy(rate), 0, HORIZON, rounds=HORIZON).loss  # noqa: E731
    rows = [tuple(row) for row in np.asarray(jax.jit(jax.vmap(play))(rates))]
    assert rows[1] == rows[3]
    assert len(set(rows)) == 3


# --- nothing is seen before its time


class Stub(NamedTuple):
    """A ticket of every type: the round, what was drawn, a flag that is set in `learn`."""

    round: Any
    drawn: Any
    even: Any


class Log(NamedTuple):
    """Per round: when its loss came, how often, the loss; and counts of what must not happen."""

    came: Any
    times: Any
    loss: Any
    drawn: Any
    leaks: Any
    disorder: Any
    mixed: Any


@jb.pytree
class Probe:
    """Plays at random and writes down everything that reaches it."""

    size: int = jb.static(default=0)

    def init(self, known: jb.Known) -> Log:
        rounds, numbers = jnp.zeros(self.size, jnp.int32), jnp.zeros(self.size)
        return Log(rounds, rounds, numbers, numbers, *(jnp.int32(0),) * 3)

    def act(self, state: Log, t: Any, u: Any) -> Any:
        return jnp.floor(u * 3).astype(jnp.int32), Stub(t, u, jnp.bool_(False))

    def learn(self, state: Log, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        old, due = arrivals.play, arrivals.due
        ticket: Stub = old.ticket
        row = jnp.where(due, ticket.round, 0)  # row 0 takes what is not due
        even = (old.state % 2 == 0)[:-1]
        later = due[:, None] & due & (jnp.arange(due.size)[:, None] < jnp.arange(due.size))
        unordered = later & (ticket.round[:, None] >= ticket.round)
        own = (
            (old.action[-1] == play.action) & (ticket.round[-1] == t) & (old.loss[-1] == play.loss)
        )
        leaks = jnp.sum(~due & (old.loss != 0), dtype=jnp.int32)
        late = jnp.sum(due[:-1] & (ticket.even[:-1] != even), dtype=jnp.int32)
        new = Log(
            state.came.at[row].set(t),
            state.times.at[row].add(due.astype(jnp.int32)),
            state.loss.at[row].set(old.loss),
            state.drawn.at[row].set(ticket.drawn),
            state.leaks + leaks + (~due[-1] & (play.loss != 0)).astype(jnp.int32),
            state.disorder + jnp.sum(unordered, dtype=jnp.int32),
            state.mixed + late + (~own).astype(jnp.int32),
        )
        return new, play.ticket._replace(even=play.state % 2 == 0)

    def facts(self, state: Log) -> dict[str, Any]:
        return state._asdict()


PROBED = 200
VALUES = np.random.default_rng(7).integers(1, 1025, size=(PROBED, 2)) / 1024  # never 0


def delay_tables(longest: int) -> list[np.ndarray]:
    """Tables with several arrivals at once, none at all, arrivals at once and past the horizon."""
    generator = np.random.default_rng(longest)
    spread = generator.integers(0, longest, PROBED)
    bursts = np.minimum(-np.arange(1, PROBED + 1) % 9 + 3, longest - 1)
    often_zero = np.where(generator.random(PROBED) < 0.5, 0, spread)
    return [spread, bursts, often_zero, np.where(generator.random(PROBED) < 0.2, longest - 1, 1)]


def assert_comes_back_once(
    log: dict[str, np.ndarray], played: jb.Round, delays: np.ndarray
) -> None:
    rounds = np.arange(1, PROBED + 1)
    inside = rounds + delays <= PROBED
    assert not log["overflow"]
    assert (log["leaks"], log["disorder"], log["mixed"]) == (0, 0, 0)
    np.testing.assert_array_equal(log["times"][1:], inside)
    np.testing.assert_array_equal(log["came"][1:][inside], (rounds + delays)[inside])
    np.testing.assert_array_equal(log["loss"][1:][inside], played.loss[inside])
    np.testing.assert_array_equal(log["drawn"][1:][inside], played.ticket.drawn[inside])


@partial(jax.jit, static_argnums=(1, 2))
def probe(env: jb.Environment, ring_depth: int, lanes: int) -> Any:
    """The facts and the trajectory of one run, out of one loop."""
    game = make_game(env, Probe(PROBED + 1), PROBED, ring_depth, lanes)
    key, rounds = rng.run_key(0, 0), jnp.arange(1, PROBED + 1, dtype=jnp.int32)
    carry, played = jax.lax.scan(lambda c, t: step(game, key, t, c), begin(game), rounds)
    return as_numbers(summary(game, carry)), played


def probed(delays: Any, ring_depth: int, lanes: int) -> Any:
    env = jb.Environment(MAPPING, jb.TableLosses(VALUES), delays)
    return jax.device_get(probe(env, ring_depth, lanes))


@pytest.mark.parametrize(("ring_depth", "longest"), [(64, 64), (256, 5000)])
def test_each_play_comes_back_once_and_in_time(ring_depth: int, longest: int) -> None:
    """A ring that goes round three times, and one longer than the game."""
    for delays in delay_tables(longest):
        log, played = probed(jb.TableDelay(delays), ring_depth, 32)
        np.testing.assert_array_equal(played.delay, delays)
        assert_comes_back_once(log, played, delays)


def test_each_play_comes_back_once_with_a_fixed_delay() -> None:
    for delay in (0, 1, 7, 63, PROBED - 1, PROBED, 5000):
        log, played = probed(jb.FixedDelay(delay), 256, 1)
        assert_comes_back_once(log, played, np.full(PROBED, delay))


def test_too_few_lanes_raise_a_flag() -> None:
    """Ten losses arrive in round 11; nine of them find a lane."""
    delays = np.maximum(10 - np.arange(PROBED), 0)
    log, _ = probed(jb.TableDelay(delays), 64, 9)
    assert log["overflow"]
    env = jb.Environment(MAPPING, LOSSES, jb.TableDelay(delays))
    assert jb.ring_sizes(env, PROBED) == (80, 12)
