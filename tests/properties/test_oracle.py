"""Every learner against the plain-Python oracle: the same uniforms, the same actions.

Float64. Both play freely. One different action changes everything after it, so the whole sequence
of thousands of rounds is equal or the test fails; so are all facts of the run, all waits, and the
probability with which a sampling learner played each action, to a relative 1e-6. (Not to 1e-12:
an action whose probability is a little too large is charged a little too little for its losses, so
its probability grows. The oracle started 1e-13 away from itself is 1e-4 away after 2,000 rounds.)

Float32, as users run it. The oracle is made to play the package's actions and to divide losses by
the probabilities that the package remembers of the time of play (teacher forcing; without the
latter, the feedback above makes anything of a rounding error). In each round it says what it would
have chosen, with what probability, and by what margin the package's action missed. A difference
counts as rounding, and as nothing else, only if all of this holds:

- the margin is below a tolerance that follows from float32 (`EPS` = 2**-24, half a unit in the
  last place). The uniforms have at most 24 bits: both sides see the same numbers.
  * Sampling learners. The margin is the distance of the uniform from the oracle's interval of the
    action. T additions to L-hat make a random walk of rounding errors, eta L-hat stays below 8
    (nothing is played with a probability of e**-8), so the exponent of a weight, hence
    probabilities and interval ends, err by at most 8 sqrt(T) EPS = 2.1e-5. Seen: 3e-6.
  * Index learners. The margin is the excess over the smallest index: 32 EPS = 1.9e-6, some ten
    operations on numbers below 4.
  * Thompson sampling. The margin is the excess over the smallest sample, to 1e-4: d - d w + d ln w
    and the ratio of gammas lose up to d EPS, d < 2000. Where rounding turns over the acceptance of
    a proposal, another sample is taken and the margin means nothing; then an acceptance test of
    that round must be within 4 d EPS + 1e-6 of equality in the oracle's arithmetic.
- there are at most `FEW` of them in the games of a test (10,000 rounds and more): a boundary that
  errs by e is crossed with probability e, so 3 boundaries, 12,000 rounds and the largest errors
  allowed would make 0.8; a mistake in the algorithm makes hundreds;
- all facts and waits are equal, and the probability of every action played (it travels in the
  ticket) agrees with the oracle's to the same relative 2.1e-5 in every round.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import helpers
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from helpers import DEEP, HORIZON, SHALLOW, Pair, Played, TableGame, pair

import jaxbio as jb
from jaxbio import rng

EPS = 2.0**-24
SAMPLED = 8 * math.sqrt(HORIZON) * EPS
INDEXED = 32 * EPS
POSTERIOR = 1e-4
FEW = 3
EXACT = 1e-6  # relative error of a probability in float64, see above


# --- the learners


def fading(t: Any) -> Any:
    """A schedule such as those of optax: a function of the round, traced."""
    return 2.0 * jnp.exp2(t.astype(jnp.result_type(float)) / -1000.0)


FADING = Pair(fading, lambda t: 2.0 * 2.0 ** (t / -1000.0))  # type: ignore[arg-type]
THUNE = math.sqrt(math.log(4) / (4 * HORIZON * math.e / 2 + 40_000))

SHORT_MEMORY, LONG_MEMORY = 1 - 2**-6, 1 - 2**-9  # discounts that float32 holds exactly

dada = pair("dada-exp3", delta=0.05)
kept = pair("dada-exp3", delta=0.05, tuning="anytime", skipping=True)
dropped = pair("dada-exp3", tuning="printed", skipping=True, skipped="dropped")
late_dada = pair("dada-exp3", delta=0.3, skipping=True)
early_dada = pair("dada-exp3", delta=0.01, skipping=True)
exp3 = pair("exp3", rate=0.02)
tsallis = pair("tsallis-inf")
tsallis_skipping = pair("tsallis-inf", tuning="skipping", scale=1.5)
ucb1 = pair("ucb1")
nsd = pair("nsd-ucrl2")
nsd_window = pair("nsd-ucrl2", delta=0.3, window=300)
thompson = pair("thompson")
hindsight = pair("hindsight-exp3", delta=0.05)
hindsight_tsallis = pair("hindsight-tsallis", scale=0.7)
states = pair("state-thompson")
exact_states = pair("state-thompson", sampler="exact", proposals=2)

PLAIN: dict[str, tuple[Pair, int]] = {
    "dada": (dada, SHALLOW),
    "dada anytime scaled": (pair("dada-exp3", tuning="anytime", scale=2.5), DEEP),
    "dada printed": (pair("dada-exp3", tuning="printed"), SHALLOW),
    "dada schedule": (pair("dada-exp3", scale=FADING), SHALLOW),
    "dada skipping kept": (kept, SHALLOW),
    "dada skipping dropped": (dropped, DEEP),
    "exp3": (exp3, DEEP),
    "exp3 default rate": (
        Pair(jb.Exp3(total_delay=40_000), {"name": "exp3", "rate": THUNE}),
        SHALLOW,
    ),
    "tsallis": (tsallis, SHALLOW),
    "tsallis skipping scaled": (tsallis_skipping, DEEP),
    "ucb1": (ucb1, DEEP),
    "ucb1 discount": (pair("ucb1", exploration=0.3, discount=SHORT_MEMORY), SHALLOW),
    "ucb1 all forgotten": (pair("ucb1", exploration=0.0, discount=0.5), DEEP),
    "nsd": (nsd, SHALLOW),
    "nsd window": (nsd_window, DEEP),
    "thompson": (thompson, SHALLOW),
    "thompson discount": (pair("thompson", discount=LONG_MEMORY, proposals=3), DEEP),
    "hindsight": (hindsight, SHALLOW),
    "hindsight lcb schedule": (
        pair("hindsight-exp3", estimator="lcb", radius_scale=0.3, scale=FADING),
        DEEP,
    ),
    "hindsight prior discount": (pair("hindsight-exp3", prior=0.9, discount=0.998), DEEP),
    "hindsight tsallis": (hindsight_tsallis, SHALLOW),
    "hindsight tsallis lcb discount": (
        pair("hindsight-tsallis", estimator="lcb", delta=0.5, radius_scale=0.1, discount=0.999),
        DEEP,
    ),
    "states": (states, SHALLOW),
    "states discount": (pair("state-thompson", discount=0.99, proposals=3), DEEP),
    "states exact": (exact_states, DEEP),
    "states loss discount": (
        pair("state-thompson", loss_discount=SHORT_MEMORY, discount=LONG_MEMORY, proposals=3),
        SHALLOW,
    ),
    "states exact loss discount": (
        pair("state-thompson", sampler="exact", loss_discount=0.99, proposals=2),
        DEEP,
    ),
}


def metabio(base: Pair, **options: Any) -> Pair:
    return pair("metabio", base=base, **options)


METABIO: dict[str, tuple[Pair, int]] = {
    "dada": (metabio(dada), SHALLOW),
    "dada mean delay": (
        metabio(dada, estimator="mean", threshold="delay", delay=20),
        SHALLOW,
    ),
    "dada kept sequential anytime": (
        metabio(kept, delta=0.3, ordering="sequential", radius="anytime"),
        DEEP,
    ),
    "dada dropped sequential delay": (
        metabio(dropped, ordering="sequential", threshold="delay", delay=60, radius_scale=0.3),
        SHALLOW,
    ),
    "tsallis mean": (metabio(tsallis, estimator="mean"), SHALLOW),
    "ucb1 mean": (metabio(ucb1, estimator="mean"), DEEP),
    "nsd anytime": (metabio(nsd, radius="anytime"), SHALLOW),
    "thompson": (metabio(thompson), SHALLOW),
}


def ada(base: Pair, rule: str, at_switch: str, **options: Any) -> Pair:
    return pair("metaadabio", base=base, rule=rule, at_switch=at_switch, **options)


METAADABIO: dict[str, tuple[Pair, int]] = {
    "dada practical learner": (ada(dada, "practical", "learner"), SHALLOW),
    "dada theory fresh sequential": (ada(dada, "theory", "fresh", ordering="sequential"), DEEP),
    "dada footnote all": (ada(dada, "footnote", "all"), SHALLOW),
    "dada expected all sequential mean": (
        ada(dada, "expected", "all", ordering="sequential", estimator="mean"),
        DEEP,
    ),
    "dada skipping practical fresh after": (
        ada(early_dada, "practical", "fresh", after=late_dada, delta=0.3),
        SHALLOW,
    ),
    "dada skipping practical learner sequential doubling": (
        ada(early_dada, "practical", "learner", ordering="sequential", doubling=150),
        SHALLOW,
    ),
    "dada kept practical fresh sequential doubling": (
        ada(kept, "practical", "fresh", ordering="sequential", doubling=100, delta=0.5),
        DEEP,
    ),
    "dada practical all literal doubling": (
        ada(dada, "practical", "all", literal=True, doubling=250, radius_scale=0.5),
        SHALLOW,
    ),
    "tsallis expected learner mean": (
        ada(tsallis, "expected", "learner", estimator="mean"),
        DEEP,
    ),
    "ucb1 footnote fresh": (ada(ucb1, "footnote", "fresh"), SHALLOW),
    "nsd window practical all sequential anytime": (
        ada(nsd_window, "practical", "all", ordering="sequential", radius="anytime"),
        SHALLOW,
    ),
    "thompson footnote learner": (ada(thompson, "footnote", "learner"), SHALLOW),
}

elimination = pair("successive-elimination", scale=0.25)
clocked = pair("dada-exp3", scale=FADING)  # depends on the round that it is told

CONTESTANTS: dict[str, tuple[Pair, int]] = {
    "elimination": (elimination, SHALLOW),
    "qpmd ucb1": (pair("qpmd", base=ucb1), SHALLOW),
    "qpmd dada": (pair("qpmd", base=dada), DEEP),
    "qpmd hindsight": (pair("qpmd", base=hindsight), SHALLOW),
    "qpmd restarting nsd window": (  # it looks at states, and at its clock when it learns
        pair("qpmd", base=pair("restarting", base=pair("nsd-ucrl2", window=100), period=250)),
        SHALLOW,
    ),
    "restarting hindsight": (
        pair("restarting", base=pair("hindsight-exp3", scale=FADING), period=400),
        DEEP,
    ),
    "surrogate": (metabio(dada, estimator="mean", threshold="delay", delay=0), DEEP),
    "metabio states exact mean": (metabio(exact_states, estimator="mean"), SHALLOW),
    "bold dada schedule": (pair("bold", base=clocked, copies=100), SHALLOW),
    "known losses restarting dada": (
        pair("known-losses", base=pair("restarting", base=dada, period=300), theta=helpers.THETA),
        SHALLOW,
    ),
    "restarting elimination": (pair("restarting", base=elimination, period=600), DEEP),
    "metabio restarting dada schedule": (
        metabio(pair("restarting", base=clocked, period=250)),
        SHALLOW,
    ),
    "qpmd thompson discount": (
        pair("qpmd", base=pair("thompson", discount=0.99, proposals=2)),
        SHALLOW,
    ),
    "metabio restarting ucb1 discount": (
        metabio(pair("restarting", base=pair("ucb1", discount=0.98), period=500)),
        DEEP,
    ),
    "metabio qpmd ucb1 mean": (metabio(pair("qpmd", base=ucb1), estimator="mean"), DEEP),
    "metabio bold elimination mean": (
        metabio(pair("bold", base=elimination, horizon=500), estimator="mean"),
        DEEP,
    ),
}

IN_FLOAT32 = {  # with the other ring than in float64
    "plain": (
        "dada",
        "dada skipping dropped",
        "exp3",
        "tsallis",
        "ucb1",
        "ucb1 discount",
        "nsd window",
        "thompson",
        "thompson discount",
        "hindsight",
        "hindsight tsallis",
        "hindsight prior discount",
        "states",
        "states loss discount",
    ),
    "metabio": ("dada", "dada kept sequential anytime", "nsd anytime"),
    "metaadabio": (
        "dada practical learner",
        "dada skipping practical fresh after",
        "dada skipping practical learner sequential doubling",
    ),
}
FAMILIES = {
    "plain": PLAIN,
    "metabio": METABIO,
    "metaadabio": METAADABIO,
    "contestants": CONTESTANTS,
}


class Case(NamedTuple):
    """A learner, the ring it plays with, and which family of assertions applies."""

    family: str
    ours: Pair
    ring_depth: int


def float64_cases() -> Iterator[Any]:
    for family, members in FAMILIES.items():
        for name, (ours, ring_depth) in members.items():
            yield pytest.param(Case(family, ours, ring_depth), id=f"{family}: {name}")


def float32_cases() -> Iterator[Any]:
    for family, names in IN_FLOAT32.items():
        for name in names:
            ours, ring_depth = FAMILIES[family][name]
            other = DEEP if ring_depth == SHALLOW else SHALLOW
            yield pytest.param(Case(family, ours, other), id=f"{family}: {name}")


# --- what is compared


class Seen(NamedTuple):
    """One game, played by both."""

    game: TableGame
    played: Played
    trace: reference.Trace
    ours: Pair

    @property
    def label(self) -> str:
        return f"seed {self.game.seed}, run {self.game.run}"


def play_both(ours: Pair, game: TableGame, ring_depth: int, forced: bool, lanes: int) -> Seen:
    played = helpers.play_table(game, ours.learner, ring_depth, lanes)
    return Seen(game, played, helpers.oracle_play(game, ours, played if forced else None), ours)


def play_tables(case: Case, forced: bool) -> list[Seen]:
    """All delays of the ring, each with a world, a seed and a run of its own."""
    tables = helpers.delay_tables(case.ring_depth).values()
    games = [helpers.table_game(delays, index) for index, delays in enumerate(tables)]
    return [play_both(case.ours, g, case.ring_depth, forced, helpers.LANES) for g in games]


def innermost(spec: reference.Spec) -> reference.Spec:
    """The spec of the learner that chooses."""
    return innermost(spec["base"]) if "base" in spec else spec


def oracle_probabilities(seen: Seen) -> np.ndarray:
    """[T]: what a loss of the round is divided by, p + gamma or p."""
    trace = seen.trace
    chosen = np.array([p[a] for p, a in zip(trace.policies, trace.actions, strict=True)])
    explores = innermost(seen.ours.spec)["name"] in ("dada-exp3", "hindsight-exp3")
    return chosen + np.array(trace.rates, float) if explores else chosen


def check_probabilities(seen: Seen, tolerance: float) -> None:
    weights = helpers.play_weights(seen.played.rounds.ticket)
    if weights is None:
        return
    error = np.abs(weights * oracle_probabilities(seen) - 1)
    worst = int(np.argmax(error))
    assert error[worst] <= tolerance, (
        f"{seen.label}: off by {error[worst]:.2g} in round {worst + 1}"
    )


def check_facts(seen: Seen) -> None:
    info = {name: seen.played.info[name].item() for name in seen.trace.facts}
    assert info == seen.trace.facts, seen.label


def check_waits(seen: Seen) -> None:
    wait = getattr(seen.played.rounds.ticket, "wait", None)
    if wait is not None:
        differ = np.flatnonzero(wait != np.array(seen.trace.waits))
        assert differ.size == 0, f"{seen.label}: wait differs first in round {differ[0] + 1}"


def check_worth(family: str, games: list[Seen]) -> None:
    """The games exercise what they are meant to: rounds wait or not, and the switch happens."""
    facts = [seen.trace.facts for seen in games]
    if family == "metabio":
        assert any(0 < f["waiting_rounds"] < HORIZON for f in facts)
    if family == "metaadabio":
        switched = [f for f in facts if f["switch_round"] < HORIZON]
        assert any(f["switch_round"] <= f["waiting_rounds"] < HORIZON for f in switched)
    if innermost(games[0].ours.spec)["name"] == "successive-elimination":
        assert any(math.inf in indices for seen in games for indices in seen.trace.policies)


# --- the last round at whose end a switch counts

SHORT = 12  # rounds, two states: the practical rule asks for a total delay above 24
SWITCHES = {  # rounds that begin without delay, the delay of the others, where the switch is
    "learner": ({}, {(0, 3): 10, (1, 3): 11, (2, 3): 13, (3, 3): 13, (0, 2): 13}),
    "fresh": ({}, {(0, 3): 10, (1, 3): 11, (2, 3): 13}),
    "all": ({"literal": True}, {(0, 3): 13, (0, 4): 11, (1, 4): 13}),
    # Epochs of 6 and 12 rounds, which ask for 12 and 24.
    "learner, an epoch ends": ({"doubling": 6}, {(0, 4): 5, (1, 4): 13, (0, 3): 13}),
    # An epoch of 20 rounds, of which 12 are played.
    "fresh, in an epoch": ({"doubling": 20}, {(0, 5): 11, (0, 4): 13, (1, 4): 13}),
}


@pytest.mark.parametrize("case", SWITCHES)
def test_a_switch_that_is_never_played_is_none(case: str) -> None:
    """The rule holds at the end of the last round, of the game or of an epoch: T + 1."""
    options, expected = SWITCHES[case]
    ours = ada(ucb1, "practical", case.split(",")[0], **options)
    states, losses = np.zeros((SHORT, 4), int), np.full((SHORT, 2), 0.5)
    for (prompt, delay), switch in expected.items():
        delays = np.where(np.arange(SHORT) < prompt, 0, delay)
        env = jb.Environment(
            jb.TableMapping(states, 2), jb.TableLosses(losses), jb.TableDelay(delays)
        )
        world = reference.World(states.tolist(), losses.tolist(), delays.tolist(), 2)
        sizes = {"horizon": SHORT, "ring_depth": 8, "lanes": 8}
        _, info = helpers.PLAYERS[32](env, ours.learner, 0, 0, **sizes)
        assert int(info["switch_round"]) == switch, (prompt, delay)
        given = helpers.uniforms_for(ours.learner, 4, 0, 0, SHORT)
        assert reference.play(ours.spec, world, given).facts["switch_round"] == switch
        if "doubling" not in options:
            count = "printed" if "literal" in options else "end"
            sizes = {"num_actions": 4, "num_states": 2, "rule": "practical", "count": count}
            assert jb.theory.switch_round(delays=delays, **sizes) == switch


# --- float64: equal


@pytest.mark.alike
@pytest.mark.parametrize("case", list(float64_cases()))
def test_float64_sequences_are_equal(case: Case) -> None:
    with helpers.float_bits(64):
        games = play_tables(case, forced=False)
    for seen in games:
        check_equal(seen)
    check_worth(case.family, games)


def check_equal(seen: Seen) -> None:
    actions = np.asarray(seen.played.rounds.action)
    differ = np.flatnonzero(actions != np.array(seen.trace.actions))
    assert differ.size == 0, f"{seen.label}: the action differs first in round {differ[0] + 1}"
    assert seen.played.rounds.state.tolist() == seen.trace.states
    check_waits(seen)
    check_facts(seen)
    if innermost(seen.ours.spec)["name"] == "hindsight-tsallis":
        # W grows by 1 / x without bounds, so that the feedback is stronger: it is cut.
        seen = seen._replace(trace=helpers.oracle_play(seen.game, seen.ours, seen.played))
    check_probabilities(seen, EXACT)


def many(num_actions: int, num_states: int) -> dict[str, np.ndarray]:
    """A larger problem with rows and means of no particular form."""
    generator = np.random.default_rng(num_actions)
    mapping = generator.dirichlet(np.full(num_states, 0.3), num_actions)
    return {"mapping": mapping, "theta": generator.random(num_states)}


LARGE = {  # above 32 the package sorts states and sums actions by other code than below
    "nsd window, 40 states": (nsd_window, many(4, 40)),
    "hindsight, 40 states": (hindsight, many(4, 40)),
    "hindsight, 40 actions": (hindsight, many(40, 3)),
    "states, 40 states": (pair("state-thompson", proposals=1), many(4, 40)),
    "states, 40 actions": (pair("state-thompson", proposals=2), many(40, 3)),
    "dada, 40 actions": (dada, many(40, 3)),
    "ucb1, 40 actions": (ucb1, many(40, 3)),
    "qpmd thompson, 25 uniforms": (
        pair("qpmd", base=pair("thompson", proposals=2)),
        many(3, 3),
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_float64_large_problems(name: str) -> None:
    ours, problem = LARGE[name]
    tables = list(helpers.shallow_delays().values())[:2]
    with helpers.float_bits(64):
        for index, delays in enumerate(tables):
            game = helpers.table_game(delays, index, **problem)
            check_equal(play_both(ours, game, SHALLOW, False, helpers.LANES))


def test_float64_hundreds_of_losses_in_one_round() -> None:
    """All losses of 200 rounds arrive together, in one round of those."""
    game = helpers.table_game(helpers.bursts(200, 0), 0)
    with helpers.float_bits(64):
        seen = play_both(ada(dada, "practical", "all"), game, SHALLOW * 4, False, lanes=256)
    check_equal(seen)
    check_worth("metaadabio", [seen])


# --- delays that look at states and losses

SURVIVING = np.random.default_rng(3).dirichlet(np.full(60, 0.3), 3)
BY_STATE = SURVIVING * [[0.9], [0.5], [0.7]], np.array([0.1, 0.5, 0.3])


def drawn_by_state(words: list[int]) -> list[list[int]]:
    """[T][S]: the oracle's delays."""
    rows = zip(BY_STATE[0].tolist(), BY_STATE[1].tolist(), strict=True)
    return np.transpose([reference.empirical_delays(*row, words) for row in rows]).tolist()


def drawn_geometric(words: list[int]) -> list[list[int]]:
    return [[d] * 3 for d in reference.geometric_delays(12, words)]


class Looking(NamedTuple):
    """A learner, a law of delays, and for the oracle: the law's delays, window and absent loss."""

    ours: Pair
    law: Any
    drawn: Any
    window: int | None = None
    absent: float = 1.0


LOOKING = {
    "metabio, by state": Looking(
        metabio(dada, ordering="sequential"), jb.EmpiricalDelay(*BY_STATE), drawn_by_state
    ),
    "ucb1, geometric within a window": Looking(
        ucb1, jb.WindowedDelay(jb.GeometricDelay(12), 15), drawn_geometric, 15
    ),
    "hindsight, by state within a window, bad events": Looking(
        hindsight,
        jb.WindowedDelay(jb.EmpiricalDelay(*BY_STATE), 25, absent=0.0),
        drawn_by_state,
        25,
        0.0,
    ),
}


@pytest.mark.parametrize("name", LOOKING)
def test_float64_delays_that_look(name: str) -> None:
    """The oracle draws the delays of every state from the same words, and cuts them itself."""
    case, seed, run = LOOKING[name], 4, 2
    env = jb.make_environment("paper-stochastic", delays=case.law)
    with helpers.float_bits(64):
        depth, lanes = jb.ring_sizes(env, HORIZON)
        sizes = {"horizon": HORIZON, "ring_depth": depth, "lanes": lanes}
        played = Played(
            *jax.device_get(helpers.PLAYERS[64](env, case.ours.learner, seed, run, **sizes))
        )
        bare = dataclasses.replace(env, delays=jb.FixedDelay(0))
        world = helpers.world_of(bare, seed, run, HORIZON)
        key = rng.run_key(seed, run)
        rounds = jnp.arange(1, HORIZON + 1, dtype=jnp.int32)
        words = np.asarray(jax.vmap(lambda t: rng.delay_word(key, t))(rounds)).tolist()
    assert not played.info["overflow"]
    world.delays, world.shown = case.drawn(words), world.losses
    if case.window is not None:
        seen = [
            [reference.windowed(x, d, case.window, case.absent) for x, d in zip(*row, strict=True)]
            for row in zip(world.losses, world.delays, strict=True)
        ]
        world.shown = [[x for x, _ in row] for row in seen]
        world.delays = [[d for _, d in row] for row in seen]
    both = Seen(TableGame(env, world, seed, run), played, None, case.ours)  # type: ignore[arg-type]
    both = both._replace(trace=helpers.oracle_play(both.game, case.ours))
    check_equal(both)
    met = np.arange(HORIZON), played.rounds.state
    np.testing.assert_array_equal(played.rounds.delay, np.array(world.delays)[met])
    np.testing.assert_array_equal(played.rounds.shown, np.array(world.shown)[met])
    np.testing.assert_array_equal(played.rounds.loss, np.array(world.losses)[met])
    hidden = np.mean(played.rounds.shown != played.rounds.loss)
    assert (0.02 < hidden < 0.5) == (case.window is not None)


# --- float32: rounding and nothing else


@pytest.mark.alike
@pytest.mark.parametrize("case", list(float32_cases()))
def test_float32_differences_are_rounding(case: Case) -> None:
    with helpers.float_bits(32):
        games = play_tables(case, forced=True)
    assert sum(check_rounding(seen) for seen in games) <= FEW
    check_worth(case.family, games)


def check_rounding(seen: Seen) -> int:
    """Everything is equal up to rounding; returns how many choices differ."""
    check_waits(seen)
    check_facts(seen)
    check_probabilities(seen, SAMPLED)
    return check_choices(seen)


def check_choices(seen: Seen) -> int:
    """How many choices differ; each of them must be rounding."""
    trace = seen.trace
    differ = np.flatnonzero(np.array(trace.choices) != np.array(trace.actions))
    for index in differ:
        margin = trace.margins[index]
        assert is_rounding(seen, int(index)), f"{seen.label}: {margin=} in round {index + 1}"
    return len(differ)


def is_rounding(seen: Seen, index: int) -> bool:
    name, margin = innermost(seen.ours.spec)["name"], seen.trace.margins[index]
    if name == "thompson":
        return margin <= POSTERIOR or doubtful_acceptance(seen, index)
    if name == "state-thompson":
        return margin <= POSTERIOR or doubtful_theta(seen, index)
    return margin <= (INDEXED if name in ("ucb1", "nsd-ucrl2") else SAMPLED)


def doubtful_acceptance(seen: Seen, index: int) -> bool:
    """Is a proposal for a gamma of this round accepted or not by less than float32 can tell?"""
    game, num_actions = seen.game, len(seen.game.world.states[0])
    u = helpers.uniforms_for(seen.ours.learner, num_actions, game.seed, game.run, HORIZON)
    shapes = posterior(seen, u, index + 1)
    proposals = np.reshape(u[index][:-1], (num_actions, 2, -1, 2))
    return any(
        abs(acceptance_gap(shapes[arm][which], *pair)) < 4 * shapes[arm][which] * EPS + 1e-6
        for arm in range(num_actions)
        for which in range(2)
        for pair in proposals[arm, which]
    )


def doubtful_theta(both: Seen, index: int) -> bool:
    """The same of StateThompson, for the gammas of theta: those of P are smaller."""
    trace, game, count = both.trace, both.game, both.ours.learner.proposals
    discount = both.ours.spec.get("loss_discount", 1.0)
    num_actions, t = len(game.world.states[0]), index + 1
    u = helpers.uniforms_for(both.ours.learner, num_actions, game.seed, game.run, HORIZON)[index]
    for s in range(game.world.num_states):
        seen = [  # weights and losses
            (discount ** (t - 2 - j), game.world.losses[j][s])
            for j, fed_at in enumerate(trace.fed_at)
            if fed_at is not None and fed_at < t and trace.states[j] == s
        ]
        shapes = [1 + sum(w * x for w, x in seen), 1 + sum(w * (1 - x) for w, x in seen)]
        drawn = reference.derived(u, t, 1 + s * (num_actions + 1), 4 * count)
        for i, shape in enumerate(shapes):
            pairs = zip(drawn[i : 2 * count : 2], drawn[2 * count + i :: 2], strict=True)
            if any(abs(acceptance_gap(shape, *one)) < 4 * shape * EPS + 1e-6 for one in pairs):
                return True
    return False


def posterior(seen: Seen, u: list[Any], t: int) -> list[list[float]]:
    """[K][2]: 1 + ones and 1 + zeros of each arm at the beginning of round t."""
    shapes = [[1.0, 1.0] for _ in range(len(seen.game.world.states[0]))]
    trace, discount = seen.trace, innermost(seen.ours.spec).get("discount", 1.0)
    for j, fed_at in enumerate(trace.fed_at):
        if fed_at is not None and fed_at < t:
            which = 0 if u[j][-1] < trace.estimates[j] else 1  # type: ignore
            shapes[trace.actions[j]][which] += discount ** (t - 2 - j)
    return shapes


def acceptance_gap(shape: float, u0: float, u1: float) -> float:
    """ln(u1) minus what it is compared with by Marsaglia and Tsang."""
    d = shape - 1 / 3
    x = reference.NormalDist().inv_cdf(u0)
    w = (1 + x / math.sqrt(9 * d)) ** 3
    return math.log(u1) - (x * x / 2 + d - d * w + d * math.log(w)) if w > 0 else math.inf


@pytest.mark.parametrize("ours", [thompson, pair("thompson", discount=LONG_MEMORY)])
def test_posterior_is_that_of_the_oracle(ours: Pair) -> None:
    """The shapes behind the excuse above, rebuilt from a trace, give the oracle's own samples."""
    game = helpers.table_game(helpers.laplace_delays(20, 12, 1), 1)
    trace = helpers.oracle_play(game, ours)
    u = helpers.uniforms_for(ours.learner, 4, game.seed, game.run, HORIZON)
    seen = Seen(game, None, trace, ours)  # type: ignore[arg-type]
    for index in (0, 500, 1500):
        proposals = np.reshape(u[index][:-1], (4, 2, -1, 2))
        for arm, shapes in enumerate(posterior(seen, u, index + 1)):
            one, zero = map(reference.gamma_sample, shapes, proposals[arm].tolist())
            assert one / (one + zero) == pytest.approx(trace.policies[index][arm], rel=1e-9)


# --- the front door: named learners, native delays and environments, the public functions


class Native(NamedTuple):
    """A learner by name, what it must be, and a problem whose delays are not a table."""

    learner: Any
    spec: reference.Spec
    env: jb.Environment
    bits: int


NATIVE = {
    "metabio, fixed delay from the environment": Native(
        jb.make_learner("metabio", threshold="delay", delta=0.2, ordering="sequential"),
        metabio(
            pair("dada-exp3", delta=0.1),
            delta=0.2,
            threshold="delay",
            delay=30,
            ordering="sequential",
        ).spec,
        jb.make_environment("paper-stochastic", delays=jb.FixedDelay(30)),
        64,
    ),
    "metaadabio, fresh": Native(
        jb.make_learner("metaadabio", rule="footnote", at_switch="fresh", delta=0.3),
        ada(
            pair("dada-exp3", delta=0.1),
            "footnote",
            "fresh",
            delta=0.3,
            after=pair("dada-exp3", delta=0.075),
        ).spec,
        jb.make_environment("paper-adversarial", delays=jb.GeometricDelay(10), reading="log"),
        32,
    ),
}


@pytest.mark.parametrize("name", NATIVE)
def test_public_functions(name: str) -> None:
    """`trajectory` and `rollout` size the ring themselves and play the same run."""
    learner, spec, env, bits = NATIVE[name]
    seed, run, ours = 11, 5, Pair(learner, spec)
    with helpers.float_bits(bits):
        game = TableGame(env, helpers.world_of(env, seed, run, HORIZON), seed, run)
        rounds = jax.device_get(jb.trajectory(env, learner, seed, HORIZON, run=run))
        info = jax.device_get(jb.rollout(env, learner, seed, HORIZON, run=run, rounds=1).info)
    played = Played(rounds, info)
    if bits == 64:
        check_equal(Seen(game, played, helpers.oracle_play(game, ours), ours))
    else:
        check_rounding(Seen(game, played, helpers.oracle_play(game, ours, played), ours))
