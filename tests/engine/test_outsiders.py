"""Learners as outsiders write them: whatever `jax.vmap` accepts plays, and plays the same games.

Every learner is played by `simulate` with the back-ends that can and by `jax.vmap(rollout)`. The
world is a table in which every action of every round has a loss of its own, so that equal losses
round by round are equal actions; regrets and whatever a learner reports are compared too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import BY_VMAP
from jax import lax

import jaxbio as jb

HORIZON, RUNS, ACTIONS = 60, 5, 3


@pytest.fixture(autouse=True)
def _as_users_have_it() -> Iterator[None]:
    """Types are promoted as JAX does by itself: outsiders are not asked to be strict."""
    with jax.numpy_dtype_promotion("standard"):
        yield


class Outsider:
    """What they share, for one run: a count and a sum of losses of each action."""

    def init(self, known: jb.Known) -> Any:
        zeros = jnp.zeros(known.num_actions)
        return {"count": zeros, "sum": zeros}

    def means(self, state: Any) -> Any:
        return state["sum"] / jnp.maximum(state["count"], 1)

    def act(self, state: Any, t: Any, u: Any) -> Any:
        greedy = jnp.argmin(self.means(state)).astype(jnp.int32)
        return jnp.where(u < 0.3, (u * 10).astype(jnp.int32), greedy), None

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        mine = jax.nn.one_hot(arrivals.play.action, ACTIONS) * arrivals.due[:, None]
        new = {
            "count": state["count"] + mine.sum(0),
            "sum": state["sum"] + (mine * arrivals.play.loss[:, None]).sum(0),
        }
        return {**state, **new}, play.ticket

    def facts(self, state: Any) -> Any:
        return {"sum": state["sum"].sum(), "first": state["count"][0]}


@jb.pytree
class Conditional(Outsider):
    def act(self, state: Any, t: Any, u: Any) -> Any:
        def explore(means: Any) -> Any:
            return (u * 10).astype(jnp.int32)

        def exploit(means: Any) -> Any:
            return jnp.argmin(means).astype(jnp.int32)

        return lax.cond(u < 0.3, explore, exploit, self.means(state)), None


@jb.pytree
class Switching(Outsider):
    """A branch per round, and one per run."""

    def act(self, state: Any, t: Any, u: Any) -> Any:
        ways = [
            lambda x: jnp.argmin(x).astype(jnp.int32),
            lambda x: jnp.argmax(x).astype(jnp.int32),
            lambda x: jnp.int32(1),
        ]
        by_run = lax.switch((u * 3).astype(jnp.int32), ways, self.means(state))
        return lax.switch(t % 3, [lambda x: x, lambda x: 2 - x, lambda x: x * 0], by_run), None


@jb.pytree
class Scanning(Outsider):
    """A scan with inputs, forwards and backwards, with outputs."""

    def act(self, state: Any, t: Any, u: Any) -> Any:
        def better(best: Any, arm: Any) -> Any:
            mean, number = arm
            value, place = best
            wins = mean < value
            new = jnp.where(wins, mean, value), jnp.where(wins, number, place)
            return new, new[0]

        arms = self.means(state), jnp.arange(ACTIONS)
        (_, place), values = lax.scan(better, (jnp.float32(9), jnp.int32(0)), arms)
        (_, other), _ = lax.scan(better, (values[0], jnp.int32(2)), arms, reverse=True)
        return jnp.where(u < 0.4, other, place), None


@jb.pytree
class Searching(Outsider):
    """A loop whose length is another one in every run."""

    def act(self, state: Any, t: Any, u: Any) -> Any:
        def bisect(ends: Any) -> Any:
            low, high, turns = ends
            middle = (low + high) / 2
            left = middle > u
            return jnp.where(left, low, middle), jnp.where(left, middle, high), turns + 1

        width = 2.0 ** -(1 + state["count"][0])
        _, _, turns = lax.while_loop(
            lambda ends: (ends[1] - ends[0] > width) & (ends[2] < 9),
            bisect,
            (jnp.float32(0), jnp.float32(1), jnp.int32(0)),
        )
        return (turns + (u * 3).astype(jnp.int32)) % 3, None


@jb.pytree
class SearchingEachArm(Outsider):
    """Such a loop for every arm, under a vmap of its own."""

    def act(self, state: Any, t: Any, u: Any) -> Any:
        def bound(mean: Any, count: Any) -> Any:
            def bisect(ends: Any) -> Any:
                low, high = ends
                middle = (low + high) / 2
                above = count * (middle - mean) ** 2 > 2
                return jnp.where(above, middle, low), jnp.where(above, high, middle)

            start = jnp.float32(-2), mean
            return lax.while_loop(lambda ends: ends[1] - ends[0] > 0.01 * count, bisect, start)[0]

        bounds = jax.vmap(bound)(self.means(state), 1 + state["count"])
        return jnp.argmin(bounds * jnp.array([1.0, u, 1 - u])).astype(jnp.int32), None


@jb.pytree
class Indexing(Outsider):
    """Lane by lane, with x[i] and x.at[i]; the ticket is a bool."""

    def act(self, state: Any, t: Any, u: Any) -> Any:
        action = Outsider.act(self, state, t, u)[0]
        return action, state["count"][action] > 2

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        lanes = arrivals.play

        def one(i: Any, sums: Any) -> Any:
            count, total = sums
            gain = arrivals.due[i].astype(jnp.float32)
            half = jnp.where(lanes.ticket[i], 0.5, 1.0)
            where = lanes.action[i]
            return count.at[where].add(gain), total.at[where].add(gain * half * lanes.loss[i])

        sums = lax.fori_loop(0, arrivals.due.shape[0], one, (state["count"], state["sum"]))
        return {"count": sums[0], "sum": sums[1]}, play.ticket


@jb.pytree
class Sorting(Outsider):
    """The median of the last losses: sort, argsort and top_k."""

    def init(self, known: jb.Known) -> Any:
        return {**Outsider.init(self, known), "last": jnp.full((ACTIONS, 5), 0.5)}

    def act(self, state: Any, t: Any, u: Any) -> Any:
        median = jnp.sort(state["last"], axis=1)[:, 2]
        order = jnp.argsort(median)
        worst = lax.top_k(median, 2)[1]
        return jnp.where(u < 0.2, worst[1], order[(u * 1.5).astype(jnp.int32)]), None

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        new, ticket = Outsider.learn(self, state, t, play, arrivals)
        loss = jnp.where(arrivals.due, arrivals.play.loss, 0.0).sum()
        row = jnp.roll(state["last"][play.action], 1).at[0].set(loss)
        return {**new, "last": state["last"].at[play.action].set(row)}, ticket


@jax.jit
def cut(x: Any) -> Any:
    return 3 * x + 1


@jax.jit
def runs_last(x: Any) -> Any:
    return cut(cut(x)) % 7


@jb.pytree
class Nested(Outsider):
    """Jitted functions with names that the package has, or had, uses for."""

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return runs_last((u * 100).astype(jnp.int32) + t) % 3, None


@jax.custom_jvp
def clipped(x: Any) -> Any:
    return jnp.clip(x, 0.1, 0.6)


@clipped.defjvp
def _slope(primals: Any, tangents: Any) -> Any:
    return clipped(*primals), 2 * tangents[0]


@jb.pytree
class Differentiating(Outsider):
    """custom_jvp, a gradient and a vmap of its own."""

    def act(self, state: Any, t: Any, u: Any) -> Any:
        slopes = jax.vmap(jax.grad(lambda x: clipped(x) * x))(self.means(state))
        return jnp.where(u < 0.3, 0, jnp.argmin(slopes)).astype(jnp.int32), None


@jb.pytree
class Matrices(Outsider):
    """Products of matrices and vectors."""

    def init(self, known: jb.Known) -> Any:
        return {**Outsider.init(self, known), "A": jnp.eye(4)}

    def act(self, state: Any, t: Any, u: Any) -> Any:
        angles = jnp.arange(12.0).reshape(3, 4) / 8
        scores = angles @ (state["A"] @ jnp.array([1.0, -1.0, 0.5, 0.25]))
        return jnp.argmax(scores * jnp.array([1.0, u, 1 - u])).astype(jnp.int32), None

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        new, ticket = Outsider.learn(self, state, t, play, arrivals)
        x = jnp.where(jnp.arange(4) == play.action, 1.0, 0.25)
        whole = 0.5 * state["A"] + 0.25 * jnp.outer(x, x) @ jnp.ones((4, 4)) / 4
        return {**new, "A": jnp.einsum("ij,kj->ik", whole, jnp.eye(4))}, ticket


@jb.pytree
class PlainNumbers(Outsider):
    """Python's and NumPy's numbers in the state."""

    def init(self, known: jb.Known) -> Any:
        zeros = np.zeros(known.num_actions, np.float32)
        plain = {"rounds": 0, "total": 0.0, "half": np.float32(0.5), "odd": False}
        return {"count": zeros, "sum": zeros, **plain, "whole": np.int32(3)}

    def act(self, state: Any, t: Any, u: Any) -> Any:
        greedy = Outsider.act(self, state, t, u)[0]
        return jnp.where(state["odd"], greedy, (greedy + state["whole"] + 1) % 3), None

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        new, ticket = Outsider.learn(self, state, t, play, arrivals)
        total = state["total"] + state["half"] * play.loss
        return {**new, "rounds": state["rounds"] + 1, "total": total, "odd": ~state["odd"]}, ticket

    def facts(self, state: Any) -> Any:
        return {"rounds": state["rounds"], "total": state["total"]}


@jb.pytree
class PlainTickets(Outsider):
    """Python's and NumPy's numbers in the ticket, of several types."""

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return Outsider.act(self, state, t, u)[0], (2.5, {"one": 1}, True, np.float32(0.5), u)

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        new, (half, *others) = Outsider.learn(self, state, t, play, arrivals)
        lanes = arrivals.play.ticket
        weight = jnp.where(lanes[2], lanes[0] * lanes[1]["one"] + lanes[3] - lanes[4], 0.0)
        add = jnp.where(arrivals.due, 0.01 * weight, 0.0).sum()
        return {**new, "sum": new["sum"] + add * jnp.arange(ACTIONS)}, (half, *others)


@jb.pytree
class BareScalar:
    """The whole state is one integer, and so is the action: a Python number at first."""

    def init(self, known: jb.Known) -> Any:
        return 7

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return (state >> 3) % ACTIONS, ()

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        seen = jnp.where(arrivals.due, (arrivals.play.loss * 1024).astype(jnp.int32), 0).sum()
        return (state * 31 + seen + play.state) & 0xFFFFF, ()

    def facts(self, state: Any) -> Any:
        return {"hash": state}


class Window(NamedTuple):
    losses: Any
    counts: tuple[Any, dict[str, Any]]


@jb.pytree
class Remembering:
    """Large arrays that are changed at an index and read in slices, in a tree of all kinds."""

    def init(self, known: jb.Known) -> Any:
        return Window(jnp.zeros(200), (jnp.zeros((ACTIONS, 70), jnp.int32), {"place": 0}))

    def act(self, state: Window, t: Any, u: Any) -> Any:
        recent = lax.dynamic_slice(state.losses, (state.counts[1]["place"],), (4,))
        seen = state.counts[0][:, t % 70] + state.counts[0].sum(1)
        return (jnp.argmax(seen + (recent.sum() > u)) + (u * 2).astype(jnp.int32)) % 3, {"t": t}

    def learn(self, state: Window, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        counts, place = state.counts[0], state.counts[1]["place"]
        late = jnp.where(arrivals.due, t - arrivals.play.ticket["t"], 0)
        losses = state.losses.at[place].set(jnp.where(arrivals.due, arrivals.play.loss, 0).sum())
        losses = losses.at[199 - place].add(0.25)
        counts = counts.at[arrivals.play.action, late % 70].add(arrivals.due.astype(jnp.int32))
        return Window(losses, (counts, {"place": (place + 1) % 190})), play.ticket

    def facts(self, state: Window) -> Any:
        where = jnp.arange(200.0)
        return {"losses": (state.losses * where).sum(), "counts": state.counts[0][1].sum()}


@jb.pytree
class Keys(Outsider):
    """Keys of jax.random: made in `act`, and carried in the state."""

    def init(self, known: jb.Known) -> Any:
        return {**Outsider.init(self, known), "key": jax.random.key(7)}

    def act(self, state: Any, t: Any, u: Any) -> Any:
        mine = jax.random.fold_in(jax.random.key(3), t)
        noise = jax.random.uniform(mine, (ACTIONS,))
        shift = jax.random.randint(state["key"], (), 0, 2)
        return (jnp.argmin(self.means(state) + noise) + shift) % 3, None

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        new, ticket = Outsider.learn(self, state, t, play, arrivals)
        return {**new, "key": jax.random.split(state["key"])[0]}, ticket


@jb.pytree
class Solving(Outsider):
    """Linear algebra of LAPACK's, which is nobody's straight-line code."""

    def act(self, state: Any, t: Any, u: Any) -> Any:
        matrix = jnp.diag(1 + state["count"]) + 0.5
        return jnp.argmin(jnp.linalg.solve(matrix, 1 + state["sum"]) + u).astype(jnp.int32), None


@jb.pytree
class Statistics(Outsider):
    """What jax.numpy and jax.nn offer: softmax, cumsum, searchsorted, clip, var, where of NaN."""

    rate: float = 2.0

    def act(self, state: Any, t: Any, u: Any) -> Any:
        scores = jax.nn.log_softmax(-self.rate * self.means(state))
        spread = jnp.nan_to_num(jnp.log(jnp.var(state["sum"])), neginf=0.0)
        weights = jnp.exp(scores) + jnp.clip(spread, 0, 0.1)
        total = jnp.cumsum(weights / weights.sum())
        return jnp.minimum(jnp.searchsorted(total, u), 2).astype(jnp.int32), scores[0]

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        new, ticket = Outsider.learn(self, state, t, play, arrivals)
        weight = jnp.where(arrivals.due, jnp.exp(arrivals.play.ticket), 0.0)
        add = jax.ops.segment_sum(weight, arrivals.play.action, ACTIONS)
        return {**new, "sum": new["sum"] + 0.01 * add}, ticket


@jb.pytree
class ComplexField(Outsider):
    """A complex number among its fields."""

    turn: Any = 0.6 + 0.8j

    def act(self, state: Any, t: Any, u: Any) -> Any:
        angle = jnp.imag(self.turn * jnp.exp(1j * state["count"]))
        return jnp.argmin(self.means(state) + u * angle), None


FLAT = {
    learner.__name__: learner()
    for learner in (
        Conditional, Switching, Scanning, Searching, SearchingEachArm, Indexing, Sorting, Nested,
        Differentiating, Matrices, PlainNumbers, PlainTickets, BareScalar, Remembering, Statistics,
    )
}  # fmt: skip
ONLY_BY_VMAP = {learner.__name__: learner() for learner in (Keys, Solving, ComplexField)}
LEARNERS = FLAT | ONLY_BY_VMAP


def world(delays: Any) -> jb.Environment:
    """An action leads to another state in every round, with a loss like no other in that round."""
    generator = np.random.default_rng(5)
    states = np.stack([generator.permutation(ACTIONS) for _ in range(HORIZON)])
    losses = np.stack([generator.choice(1024, ACTIONS, replace=False) for _ in range(HORIZON)])
    return jb.Environment(jb.TableMapping(states, ACTIONS), jb.TableLosses(losses / 1024), delays)


BURSTS = np.where(np.arange(HORIZON) % 20 < 9, 12 - np.arange(HORIZON) % 20, 2)
DELAYS = {
    "fixed": jb.FixedDelay(4),
    "uniform": jb.UniformDelay(0, 7),
    "bursts": jb.TableDelay(BURSTS),
}
# With which delays, and by whom, a learner that can be flattened is played: XLA takes long to
# compile. All play with random delays, with a fixed one or bursts, and by plain JAX, of which one
# lane is less code than several, which two have. `rollout` is what jax.vmap does with a learner.
NAMES = list(FLAT)
OTHERS = [
    *((name, None, ("fixed", "bursts")[i % 2]) for i, name in enumerate(NAMES)),
    *((name, "jnp", "bursts" if name in ("Scanning", "Indexing") else "fixed") for name in NAMES),
    *((name, "vmap", "uniform") for name in ("Switching", "Remembering", "PlainTickets")),
    *(("Conditional", "llvm", delays) for delays in ("fixed", "uniform")),
]


@cache
def rolled_out(name: str, delays: str) -> Any:
    env, learner = world(DELAYS[delays]), LEARNERS[name]

    def one(run: Any) -> Any:
        record = jb.rollout(env, learner, 0, HORIZON, run=run, rounds=HORIZON)
        return record.loss, record.regret, record.info

    return jax.device_get(jax.jit(jax.vmap(one))(jnp.arange(RUNS)))


def played(name: str, delays: str, backend: str | None, **options: Any) -> jb.Result:
    options = {"horizon": HORIZON, "runs": RUNS, "rounds": HORIZON, "progress": False} | options
    return jb.simulate(world(DELAYS[delays]), LEARNERS[name], backend=backend, **options)


def assert_alike(result: jb.Result, expected: Any) -> None:
    loss, regret, info = expected
    assert len({tuple(row) for row in np.diff(loss)}) > 1 or len(set(loss[:, -1])) == 1
    np.testing.assert_array_equal(result.loss, loss)
    np.testing.assert_allclose(result.regret, regret, rtol=1e-6, atol=1e-5)
    for name, fact in result.info.items():
        exact = np.issubdtype(fact.dtype, np.integer) or fact.dtype == bool
        rtol = 0 if exact else 1e-5
        np.testing.assert_allclose(fact, info[name], rtol=rtol, err_msg=name)
        assert fact.dtype == np.int64 or fact.dtype == info[name].dtype, name


@pytest.mark.parametrize("name", FLAT)
def test_an_outsiders_learner_plays_the_games_of_rollout(name: str) -> None:
    plays_the_games_of_rollout(name, None, "uniform")


@pytest.mark.alike
@pytest.mark.parametrize(("name", "backend", "delays"), OTHERS)
def test_so_it_does_with_other_delays_and_backends(
    name: str, backend: str | None, delays: str
) -> None:
    plays_the_games_of_rollout(name, backend, delays)


def plays_the_games_of_rollout(name: str, backend: str | None, delays: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        result = played(name, delays, backend)
    assert result.backend == (backend or "llvm")
    assert_alike(result, rolled_out(name, delays))


@pytest.mark.filterwarnings(BY_VMAP)
@pytest.mark.parametrize(
    ("name", "delays"), [("Keys", "fixed"), ("Solving", "uniform"), ("ComplexField", "bursts")]
)
def test_what_cannot_be_flattened_plays_the_games_of_rollout(name: str, delays: str) -> None:
    result = played(name, delays, None)
    assert result.backend == "vmap"
    assert_alike(result, rolled_out(name, delays))
    with pytest.raises(ValueError, match="backend='llvm' cannot play this: it does not know "):
        played(name, delays, "llvm")


@pytest.mark.alike
@pytest.mark.parametrize("name", FLAT)
def test_an_outsiders_runs_do_not_depend_on_their_number(name: str) -> None:
    few, many = (played(name, "uniform", None, runs=runs) for runs in (RUNS, 70))
    np.testing.assert_array_equal(few.loss, many.loss[:RUNS])
    np.testing.assert_array_equal(few.regret, many.regret[:RUNS])
    for what, fact in few.info.items():
        np.testing.assert_array_equal(fact, many.info[what][:RUNS], err_msg=what)


@pytest.mark.alike
@pytest.mark.filterwarnings(BY_VMAP)
@pytest.mark.parametrize("name", LEARNERS)
def test_an_outsiders_learner_plays_in_a_sweep_of_several_games(name: str) -> None:
    """Side by side, each run with numbers of its own."""

    def environment(delay: int) -> jb.Environment:
        return world(jb.UniformDelay(0, delay))

    data = jb.sweep(
        environment, {"one": LEARNERS[name]}, {"delay": [3, 7]}, horizon=HORIZON, runs=RUNS,
        rounds=HORIZON, progress=False,
    )  # fmt: skip
    assert data.attrs["backend"] == ("llvm" if name in FLAT else "vmap")
    alone = played(name, "uniform", None)
    cell = data.sel(learner="one", delay=7)
    np.testing.assert_array_equal(cell.loss, alone.loss)
    np.testing.assert_array_equal(cell.regret, alone.regret)
    for fact, values in alone.info.items():
        np.testing.assert_array_equal(cell[fact], values, err_msg=fact)


@pytest.mark.filterwarnings(BY_VMAP)
@pytest.mark.parametrize("name", ["Switching", "Sorting", "BareScalar", "Keys"])
def test_outsiders_play_in_float64(name: str) -> None:
    """In a sweep too, whose threads are not the one that was told so."""
    with jax.enable_x64(True):
        rolled_out.cache_clear()
        result = played(name, "uniform", None)
        data = jb.sweep(
            world(DELAYS["uniform"]), {"one": LEARNERS[name]}, {}, horizon=HORIZON, runs=RUNS,
            rounds=HORIZON, progress=False,
        )  # fmt: skip
        expected = rolled_out(name, "uniform")
        rolled_out.cache_clear()
    assert result.loss.dtype == np.float64
    assert expected[0].dtype == np.float64
    assert_alike(result, expected)
    np.testing.assert_array_equal(data.loss[0], result.loss)
    np.testing.assert_array_equal(data.regret[0], result.regret)
    for fact, values in result.info.items():
        np.testing.assert_array_equal(data[fact][0], values, err_msg=fact)
