"""A learner, a delay law or a mapping of somebody else's: what plays, and what is refused how."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import BY_VMAP

import jaxbio as jb
from jaxbio import rng
from jaxbio.core import ignores_empty_lanes
from jaxbio.environment import delays as laws

HORIZON = 40
MAPPING = jb.StochasticMapping([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
LOSSES = jb.BernoulliLosses([0.1, 0.8])
RANDOM = jb.Environment(MAPPING, LOSSES, jb.UniformDelay(0, 6))


def simulated(env: jb.Environment, learner: Any, runs: int = 4, horizon: int = HORIZON) -> Any:
    return jb.simulate(env, learner, horizon=horizon, runs=runs, progress=False)


def swept(env: jb.Environment, learner: Any, runs: int = 4) -> Any:
    return jb.sweep(env, {"one": learner}, {}, horizon=HORIZON, runs=runs, progress=False)


def rolled_out(env: jb.Environment, learner: Any, runs: int = 4) -> Any:
    def play(run: Any) -> Any:
        return jb.rollout(env, learner, 0, HORIZON, run=run)

    return jax.jit(jax.vmap(play))(jnp.arange(runs))


def assert_played_alike(env: jb.Environment, learner: Any, fact: str) -> None:
    """`simulate` and `sweep` report what vmap(rollout) does, whatever the number of runs."""
    expected = np.asarray(rolled_out(env, learner).info[fact])
    assert np.unique(expected).size > 1  # so that it says something
    np.testing.assert_allclose(simulated(env, learner).info[fact], expected, rtol=1e-6)
    many = simulated(env, learner, runs=40).info[fact][:4]
    np.testing.assert_array_equal(many, simulated(env, learner).info[fact])
    np.testing.assert_array_equal(swept(env, learner)[fact].values[0], many)


@jb.pytree
class Uniform:
    """A learner to be made wrong in one method; `seen` adds up what it is shown."""

    def init(self, known: jb.Known) -> Any:
        return {"seen": jnp.zeros(())}

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return (u * 3).astype(jnp.int32), None

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        return {"seen": state["seen"] + arrivals.play.loss.sum()}, None

    def facts(self, state: Any) -> Any:
        return {"seen": state["seen"]}


@jax.jit
def cut(x: Any) -> Any:
    """A function of the user's with the name of one of ours."""
    return 3.0 * x + 1.0


@jb.pytree
class CallsCut(Uniform):
    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        return {"seen": state["seen"] + cut(arrivals.play.loss.sum())}, None


@jb.pytree
class PlainNumbers(Uniform):
    def init(self, known: jb.Known) -> Any:
        return {"seen": 0.0, "rounds": 0, "half": np.float32(0.5), "table": np.arange(3.0)}

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        seen = state["seen"] + state["half"] * arrivals.play.loss.sum()
        return {**state, "seen": seen, "rounds": state["rounds"] + 1}, None


@jb.pytree
class OwnKey(Uniform):
    """A typed key in the state, as users of jax.random write it."""

    def init(self, known: jb.Known) -> Any:
        return {"seen": jnp.zeros(()), "key": jax.random.key(7)}

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return jax.random.randint(jax.random.fold_in(state["key"], 1), (), 0, 3), None

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        key, other = jax.random.split(state["key"])
        noise = jax.random.uniform(other) * arrivals.play.loss.sum()
        return {"seen": state["seen"] + noise, "key": key}, None


@jb.pytree
class CountsLanes(Uniform):
    """It averages over all lanes, and looks into those that are not due."""

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        shown = (arrivals.play.action + arrivals.play.state).astype(jnp.float32)
        return {"seen": state["seen"] + (arrivals.play.loss + shown).mean()}, None


@pytest.mark.filterwarnings(BY_VMAP)  # keys
@pytest.mark.parametrize("learner", [CallsCut(), PlainNumbers(), OwnKey(), CountsLanes()])
def test_a_learner_of_the_users_plays_everywhere_alike(learner: Any) -> None:
    assert_played_alike(RANDOM, learner, "seen")


@pytest.mark.filterwarnings(BY_VMAP)
def test_typed_keys_play_in_two_kinds_of_random_generators() -> None:
    @jb.pytree
    class OtherKey(OwnKey):
        def init(self, known: jb.Known) -> Any:
            return {"seen": jnp.zeros(()), "key": jax.random.key(7, impl="rbg")}

    assert np.isfinite(simulated(RANDOM, OtherKey()).info["seen"]).all()


@jb.pytree
class ActsOnLanes(CountsLanes):
    def act(self, state: Any, t: Any, u: Any) -> Any:
        return (state["seen"] * 50).astype(jnp.int32) % 3, None


def test_lanes_of_a_wrapped_learner_do_not_depend_on_other_runs() -> None:
    learner = jb.MetaBIO(ActsOnLanes(), estimator="mean")
    few, many = simulated(RANDOM, learner), simulated(RANDOM, learner, runs=64)
    np.testing.assert_array_equal(few.regret, many.regret[:4])


def test_lanes_do_not_depend_on_other_settings_of_a_sweep() -> None:
    """Tables of delays that crowd differently share a program only where nobody can tell."""
    tables = {"calm": np.full(HORIZON, 3), "crowded": np.arange(HORIZON)[::-1] % 20}

    def environment(table: str) -> jb.Environment:
        return jb.Environment(MAPPING, LOSSES, jb.TableDelay(tables[table]))

    sizes = {jb.ring_sizes(environment(name), HORIZON)[1] for name in tables}
    assert len(sizes) == 2
    axes = {"table": list(tables)}
    data = jb.sweep(
        environment, {"one": CountsLanes()}, axes, horizon=HORIZON, runs=4, progress=False
    )
    for name in tables:
        alone = simulated(environment(name), CountsLanes()).info["seen"]
        np.testing.assert_array_equal(data.seen.sel(learner="one", table=name), alone)


def test_a_run_that_needs_more_lanes_changes_nothing_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 3 lanes some runs need 6; what the others see is still 3 and their own round."""
    monkeypatch.setattr(laws, "LANES", 3)
    lanes_needed = simulated(RANDOM, LanesShown(), runs=64).info["seen"]
    assert {4.0, 7.0} == set(lanes_needed)
    alone = [simulated(RANDOM, LanesShown(), runs=n + 1).info["seen"][n] for n in (0, 1, 2, 3)]
    np.testing.assert_array_equal(lanes_needed[:4], alone)


@jb.pytree
class LanesShown(Uniform):
    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        return {"seen": jnp.float32(arrivals.due.shape[0])}, None


def test_a_subclass_has_to_say_itself_that_it_ignores_empty_lanes() -> None:
    @jb.pytree
    class Sub(jb.UCB1):
        pass

    assert ignores_empty_lanes(jb.UCB1())
    assert ignores_empty_lanes(jb.MetaBIO(jb.UCB1()))
    assert not ignores_empty_lanes(Sub())
    assert not ignores_empty_lanes(jb.MetaBIO(Sub()))


def test_learners_in_a_field_are_asked_too() -> None:
    @jb.pytree
    class Several:
        inner: Any
        ignores_empty_lanes = True

    class Named(NamedTuple):
        ignores_empty_lanes: bool = True

    assert ignores_empty_lanes(Several((jb.UCB1(), {"b": jb.UCB1()})))
    assert not ignores_empty_lanes(Several((jb.UCB1(), {"b": CountsLanes()})))
    assert not ignores_empty_lanes(Named())


# --- what a method returns


@jb.pytree
class FloatAction(Uniform):
    def act(self, state: Any, t: Any, u: Any) -> Any:
        return u * 3, None


@jb.pytree
class ManyActions(Uniform):
    def act(self, state: Any, t: Any, u: Any) -> Any:
        return jnp.zeros(2, jnp.int32), None


@jb.pytree
class NoTicketFromAct(Uniform):
    def act(self, state: Any, t: Any, u: Any) -> Any:
        return (u * 3).astype(jnp.int32)


@jb.pytree
class NoTicketFromLearn(Uniform):
    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        return state


@jb.pytree
class OtherTicket(Uniform):
    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        return state, jnp.int32(1)


@jb.pytree
class OtherType(Uniform):
    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        return {"seen": jnp.int32(1)}, None


@jb.pytree
class OtherState(Uniform):
    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        return {"seen": state["seen"], "more": state["seen"]}, None


@jb.pytree
class TextInState(Uniform):
    def init(self, known: jb.Known) -> Any:
        return {"seen": "nothing"}


@jb.pytree
class KeyAsTicket(Uniform):
    def act(self, state: Any, t: Any, u: Any) -> Any:
        return jnp.int32(0), jax.random.key(1)


@jb.pytree
class TextAsTicket(Uniform):
    def act(self, state: Any, t: Any, u: Any) -> Any:
        return jnp.int32(0), "now"


@jb.pytree
class NoAction(Uniform):
    def act(self, state: Any, t: Any, u: Any) -> Any:
        return None, None


@jb.pytree
class ListAction(Uniform):
    def act(self, state: Any, t: Any, u: Any) -> Any:
        return [1], None


@jb.pytree
class TextToFile(Uniform):
    def act(self, state: Any, t: Any, u: Any) -> Any:
        return jnp.int32(0), u

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        return state, "late"


@jb.pytree
class LearnsText(Uniform):
    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        return {"seen": "nothing"}, None


@jb.pytree
class LargeInState(Uniform):
    def init(self, known: jb.Known) -> Any:
        return 2**40


@jb.pytree
class TextAsFact(Uniform):
    def facts(self, state: Any) -> Any:
        return {"rows": "four"}


@jb.pytree
class ListAsFact(Uniform):
    def facts(self, state: Any) -> Any:
        return {"rows": [1, 2]}


@jb.pytree
class NumberAsFacts(Uniform):
    def facts(self, state: Any) -> Any:
        return jnp.float32(4)


@jb.pytree
class FlagAsFact(Uniform):
    def facts(self, state: Any) -> Any:
        return {"lost": jnp.int32(4)}


@jb.pytree
class HalfADraw(Uniform):
    draws = 2.5


@jb.pytree
class TextAsField(Uniform):
    tuning: Any = "slow"


REFUSED = [
    (TextAsFact, "facts of TextAsFact must return numbers, but 'rows' is 'four'"),
    (ListAsFact, r"facts of ListAsFact must return numbers, but 'rows' is \[1, 2\]"),
    (NumberAsFacts, "facts of NumberAsFacts must return a dict of numbers by name"),
    (FlagAsFact, "facts of FlagAsFact must not use the name 'lost'"),
    (HalfADraw, r"draws of HalfADraw must be an integer of at least 1, but got 2\.5"),
    (TextAsField, r"a field must hold numbers, but one holds 'slow': declare .* jaxbio\.static"),
    (TextAsTicket, r"the ticket of TextAsTicket must be made of scalars, but act handed out 'now'"),
    (NoAction, r"act of NoAction must return an integer scalar.*but it returned None"),
    (ListAction, r"act of ListAction must return an integer scalar.*but it returned \[1\]"),
    (TextToFile, "the ticket of TextToFile must be made of scalars, but learn handed out 'late'"),
    (LearnsText, r"the state of LearnsText must be made of numbers.*learn gave 'nothing'"),
    (LargeInState, r"the state of LargeInState must be made of numbers.*init gave 1099511627776"),
    (FloatAction, r"act of FloatAction must return an integer scalar.*returned float32 \[\]"),
    (ManyActions, r"act of ManyActions must return an integer scalar.*returned int32 \[2\]"),
    (NoTicketFromAct, "act must return an action and a ticket.*NoTicketFromAct returned"),
    (NoTicketFromLearn, "learn must return the new state and the ticket.*NoTicketFromLearn"),
    (OtherTicket, "learn of OtherTicket must return a ticket like the one act handed out"),
    (OtherType, r"\['seen'\] was float32 \[\] from init and is int32 \[\] from learn"),
    (OtherState, "learn must return the new state.*of the structure that init of OtherState gave"),
    (TextInState, r"the state of TextInState must be made of numbers.*'nothing' at \['seen'\]"),
    (KeyAsTicket, "the ticket of KeyAsTicket must be made of scalars"),
]


@pytest.mark.parametrize(("learner", "message"), REFUSED, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize("play", [simulated, swept, rolled_out])
def test_what_cannot_be_played_is_refused_with_what_to_return(
    play: Any, learner: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=f"(?s){message}"):
        play(RANDOM, learner())


@jb.pytree
class ArrayAsFact:
    """Plays at random and says how often it has played what."""

    def init(self, known: Any) -> Any:
        return jnp.zeros((2, known.num_actions), jnp.int32)

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return (u * state.shape[1]).astype(jnp.int32), None

    def learn(self, state: Any, t: Any, play: Any, arrivals: Any) -> Any:
        return state.at[t % 2, play.action].add(1), None

    def facts(self, state: Any) -> Any:
        return {"plays": state}


def test_facts_may_be_arrays_in_simulate() -> None:
    learner, runs = ArrayAsFact(), jnp.arange(70)
    played = jb.simulate(RANDOM, learner, horizon=50, runs=70, width=32, progress=False)
    rolled = jax.vmap(lambda run: jb.rollout(RANDOM, learner, 0, 50, run=run).info["plays"])(runs)
    np.testing.assert_array_equal(played.info["plays"], rolled)
    with pytest.raises(TypeError, match="learner 'a' reports 'plays', which is no scalar"):
        jb.sweep(RANDOM, {"a": learner}, {}, horizon=50, runs=2, progress=False)


# --- delay laws


@jb.pytree
class Longer:
    """Draws fewer than `most` although it promises 20."""

    promise: int = jb.static(default=20)
    most: int = jb.static(default=400)
    constant = False
    written_down = False

    def delay(self, key: Any, t: Any) -> Any:
        return (rng.delay_word(key, t) % np.uint32(self.most)).astype(jnp.int32)

    def longest(self) -> int:
        return self.promise

    def check(self, horizon: int) -> None: ...


@pytest.mark.parametrize(
    "play",
    [
        lambda env: simulated(env, Uniform(), horizon=1000),
        lambda env: jb.rollout(env, Uniform(), 0, 1000),
        lambda env: jb.trajectory(env, Uniform(), 0, 1000),
        lambda env: jb.sweep(env, {"one": Uniform()}, {}, horizon=1000, runs=3, progress=False),
    ],
)
@pytest.mark.parametrize("most", [400, 22])  # beyond the ring, and within it
def test_a_delay_law_that_exceeds_its_longest_raises(play: Any, most: int) -> None:
    play(jb.Environment(MAPPING, LOSSES, Longer(most - 1, most)))
    with pytest.raises(RuntimeError, match=r"longer than the law's longest\(\) says"):
        play(jb.Environment(MAPPING, LOSSES, Longer(20, most)))


def test_delays_beyond_the_horizon_may_be_longer_than_the_ring() -> None:
    """No loss is lost by them: it would arrive after the last round."""
    env = jb.Environment(MAPPING, LOSSES, jb.TableDelay([10**6] * HORIZON))
    assert (simulated(env, Uniform()).info["arrived"] == 0).all()


def test_a_negative_delay_raises() -> None:
    @jb.pytree
    class Negative(Longer):
        def delay(self, key: Any, t: Any) -> Any:
            return jnp.where(t == 7, -1, 3).astype(jnp.int32)

    with pytest.raises(RuntimeError, match="a delay was negative"):
        simulated(jb.Environment(MAPPING, LOSSES, Negative()), Uniform())


def test_a_traced_delay_that_reaches_the_depth_of_the_ring_is_flagged() -> None:
    def lost(delay: Any) -> Any:
        env = jb.Environment(MAPPING, LOSSES, jb.FixedDelay(delay))
        record = jb.rollout(env, Uniform(), 0, 300, ring_depth=64, lanes=1)
        return record.info["overflow"], record.info["arrived"]

    delays = jnp.array([10, 63, 64, 100, 299, 300, 301])
    overflow, arrived = jax.jit(jax.vmap(lost))(delays)
    assert overflow.tolist() == [False, False, True, True, True, False, False]
    assert arrived[:2].tolist() == [290, 237]


def test_a_constant_delay_that_changes_raises() -> None:
    @jb.pytree
    class Jitter(jb.FixedDelay):
        def delay(self, key: Any, t: Any) -> Any:
            return jnp.where(t == 7, 2, 3).astype(jnp.int32)

    simulated(jb.Environment(MAPPING, LOSSES, jb.FixedDelay(3)), Uniform())
    with pytest.raises(RuntimeError, match="changed although the delay law says that it is const"):
        simulated(jb.Environment(MAPPING, LOSSES, Jitter(3)), Uniform())


@pytest.mark.parametrize(("longest", "error"), [(None, TypeError), (-3, ValueError)])
def test_what_longest_returns_is_checked(longest: Any, error: type[Exception]) -> None:
    env = jb.Environment(MAPPING, LOSSES, Longer(longest))
    with pytest.raises(error, match=r"longest\(\) of Longer must be"):
        simulated(env, Uniform())


def test_delays_without_a_longest_are_longer_than_the_game() -> None:
    assert jb.ring_sizes(jb.Environment(MAPPING, LOSSES, Longer(float("inf"))), 300)[0] == 320  # type: ignore


@jb.pytree
class FloatDelay(Longer):
    def delay(self, key: Any, t: Any) -> Any:
        return jnp.float32(2.5)


def test_a_delay_that_is_no_integer_is_refused() -> None:
    with pytest.raises(TypeError, match="delay of the delays must return an integer scalar"):
        simulated(jb.Environment(MAPPING, LOSSES, FloatDelay()), Uniform())


def test_a_part_that_lacks_a_method_is_refused_by_name() -> None:
    class NoCheck:
        constant = written_down = False

        def delay(self, key: Any, t: Any) -> Any:
            return jnp.int32(1)

        def longest(self) -> int:
            return 1

    with pytest.raises(TypeError, match=r"delays must be such as .* NoCheck lacks check"):
        jb.Environment(MAPPING, LOSSES, NoCheck())
    with pytest.raises(TypeError, match=r"delays must be such as FixedDelay\(50\), but got <cl"):
        jb.Environment(MAPPING, LOSSES, jb.FixedDelay)
