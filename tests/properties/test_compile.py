"""What is compiled: how often, and that a round neither copies a ring nor walks through one.

A new number must never compile anew, and a round must cost the same whatever the ring's size. Both
break without changing a single result, so compilations are counted, and copies are looked for in
the programs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import forget_programs

import jaxbio as jb
from jaxbio.engine import ring
from jaxbio.engine import round as rounds
from jaxbio.engine.backends import choice, native
from jaxbio.engine.program import Region, inner_regions, live_values
from jaxbio.engine.round import Game, make_game
from jaxbio.engine.rules import GAME, Rules

WIDTH = 8
COMPILED: list[str] = []  # by XLA, and programs that were flattened and became machine code


def _listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
    if event.endswith("backend_compile_duration"):
        COMPILED.append(str(kwargs["fun_name"]))


jax.monitoring.register_event_duration_secs_listener(_listen)


@pytest.fixture(autouse=True)
def _counted(monkeypatch: pytest.MonkeyPatch) -> None:
    flattened, loaded = choice.flattened, native.loaded

    def noted_program(*args: Any) -> Any:
        COMPILED.append("program")
        return flattened(*args)

    def noted_text(text: str, *target: Any) -> Any:
        COMPILED.append("machine code")
        return loaded(text, *target)

    monkeypatch.setattr(choice, "flattened", noted_program)
    monkeypatch.setattr(native, "loaded", noted_text)


# --- a new number never compiles anew


class Setting(NamedTuple):
    env: jb.Environment
    learner: Any
    options: dict[str, Any] = {}  # noqa: RUF012


def problem(
    theta: tuple[float, ...] = (0.2, 0.4, 0.8),
    row: tuple[float, ...] = (0.8, 0.1, 0.1),
    delays: Any = None,
    slots: int = 5,
) -> jb.Environment:
    """A problem with 4 actions in arrays of 5 states."""
    P = np.full((4, len(theta)), 1 / len(theta))
    P[0, : len(row)] = row
    delays = jb.FixedDelay(50) if delays is None else delays
    env = jb.Environment(jb.StochasticMapping(P), jb.BernoulliLosses(theta), delays)
    return env.padded(slots)


def play(setting: Setting) -> None:
    options: Any = {"horizon": 300, "runs": 10, "seed": 0, "rounds": 7} | setting.options
    jb.simulate(setting.env, setting.learner, width=WIDTH, progress=False, **options)


def compilations(setting: Setting) -> int:
    before = len(COMPILED)
    play(setting)
    return len(COMPILED) - before


OTHERS = {
    "metabio": jb.make_learner("metabio", delta=0.03, scale=2),
    "dada-exp3": jb.make_learner("dada-exp3", delta=0.03, scale=2),
    "ucb1": jb.make_learner("ucb1", exploration=0.3),
}


def new_numbers(name: str, delays: Callable[[int], Any]) -> dict[str, Setting]:
    """The same structures with other numbers."""
    env, learner = problem(delays=delays(50)), jb.make_learner(name)
    return {
        "learner": Setting(env, OTHERS[name]),
        "theta": Setting(problem((0, 0.5, 1), delays=delays(50)), learner),
        "P": Setting(problem(row=(0.0, 0.5, 0.5), delays=delays(50)), learner),
        "states": Setting(problem((0.1, 0.2, 0.3, 0.9), (1, 0, 0, 0), delays(50)), learner),
        "delay": Setting(problem(delays=delays(33)), learner),
        "seed": Setting(env, learner, {"seed": 77}),
        "key": Setting(env, learner, {"seed": jax.random.key(5, impl="threefry2x32")}),
        "horizon": Setting(env, learner, {"horizon": 450}),
        "rounds": Setting(env, learner, {"rounds": [3, 50, 299]}),
        "runs": Setting(env, learner, {"runs": 23}),
    }


def fixed(d: int) -> Any:
    return jb.FixedDelay(d)


def uniform(d: int) -> Any:
    return jb.UniformDelay(d - 30, d + 10)


@pytest.mark.parametrize(
    ("name", "delays", "backend"),
    [("metabio", fixed, None), ("dada-exp3", uniform, None), ("ucb1", uniform, "vmap")],
)
def test_a_new_number_never_compiles_anew(
    name: str, delays: Callable[[int], Any], backend: str | None
) -> None:
    asked = {"backend": backend}
    play(Setting(problem(delays=delays(50)), jb.make_learner(name), asked))
    settings = {
        what: setting._replace(options=setting.options | asked)
        for what, setting in new_numbers(name, delays).items()
    }
    counts = {what: compilations(setting) for what, setting in settings.items()}
    assert counts == dict.fromkeys(counts, 0)


TABLE = jb.Environment(
    jb.TableMapping(np.zeros((300, 4), int), 3),
    jb.TableLosses(np.full((300, 3), 0.5)),
    jb.TableDelay(np.full(300, 4)),
)
GRADED = jb.Environment(
    jb.StochasticMapping(np.full((4, 3), 1 / 3)),
    jb.BetaLosses([0.2, 0.4, 0.8], 5.0),
    jb.GeometricDelay(9),
)
FRESH = {
    "fixed": jb.make_environment("paper-adversarial", delays=jb.FixedDelay(9)),
    "random": GRADED,
    "tables": TABLE,
}


@pytest.mark.parametrize("name", FRESH)
def test_a_fresh_structure_compiles_one_program(name: str) -> None:
    """The program that plays the blocks, and nothing on the way to it: XLA has nothing to do."""
    env = FRESH[name].padded(9)  # no other test has 9 states
    jax.clear_caches()  # of small operations on arrays, which would be programs of their own
    before = len(COMPILED)
    play(Setting(env, jb.make_learner("ucb1")))
    assert COMPILED[before:] == ["program", "machine code"]


def test_realised_regret_compiles_one_program_more() -> None:
    env = FRESH["random"].padded(10)
    result = jb.simulate(env, jb.UCB1(), horizon=50, runs=3, progress=False)
    jax.clear_caches()
    before = len(COMPILED)
    assert np.isfinite(result.realized_regret).all()
    assert COMPILED[before:] == ["program", "machine code"]


def test_the_counter_counts() -> None:
    base = Setting(problem(), jb.make_learner("ucb1"))
    assert compilations(base) > 0
    assert compilations(base) == 0
    assert compilations(base._replace(learner=jb.make_learner("ucb1", exploration=1))) == 0
    assert compilations(base._replace(env=problem(slots=6))) > 0


STEP = 1


def next_action(state: Any) -> Any:
    return (state + STEP) % 4


@jb.pytree
class Users:
    """A learner of a user's, with a helper and a global."""

    rate: float = 1.0

    def init(self, known: Any) -> Any:
        return jnp.int32(0)

    def act(self, state: Any, t: Any, u: Any) -> tuple[Any, Any]:
        return next_action(state), ()

    def learn(self, state: Any, t: Any, play: Any, arrivals: Any) -> tuple[Any, Any]:
        return next_action(state), ()


def test_code_compiles_anew_only_where_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    base = Setting(problem(), Users())
    assert compilations(base) > 0
    assert compilations(base._replace(learner=Users(2.0))) == 0
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "STEP", 3)
        assert compilations(base) > 0
        assert compilations(base) == 0
    assert compilations(base) == 0  # as it was before


# --- kept between processes

PLAY = """
import sys, jaxbio as jb
from jaxbio.engine.backends import machine_code
made, object_code = [], machine_code.object_code
machine_code.object_code = lambda *args: made.append(1) or object_code(*args)
env = jb.make_environment("paper-stochastic", delays=jb.UniformDelay(0, 9))
result = jb.simulate(env, jb.make_learner(sys.argv[1]), horizon=50, runs=3, progress=False)
print(len(made), result.backend, result.regret.tobytes().hex())
"""


def in_process(name: str, folder: Path) -> list[str]:
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[2]), "XDG_CACHE_HOME": str(folder),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PLAY, name], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


def test_machine_code_is_kept_between_processes(tmp_path: Path) -> None:
    first, again = (in_process("ucb1", tmp_path) for _ in range(2))
    kept = list((tmp_path / "jaxbio" / "machine-code").iterdir())
    assert [file.suffix for file in kept] == [".o"]
    assert first == ["1", "llvm", first[2]]
    assert again == ["0", "llvm", first[2]]
    other = in_process("exp3", tmp_path)
    assert other[:2] == ["1", "llvm"]
    assert other[2] != first[2]
    assert len(list(kept[0].parent.iterdir())) == 2


def test_a_folder_that_cannot_be_written_costs_time_and_no_results(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    without = in_process("ucb1", tmp_path / "file")
    assert without[:2] == ["1", "llvm"]
    assert without[2] == in_process("ucb1", tmp_path / "folder")[2]


# --- the program of a round


def walks(region: Region, live: set[int] | None = None) -> tuple[int, int]:
    """Of the loops of a program, nested ones multiplied: the most turns, and the most turns of
    those that write into a memory.
    """
    live = live_values(region) if live is None else live
    turns = writing = 0
    for value in region.values:
        if id(value) not in live or value.op not in ("loop", "switch"):
            continue
        length = (value.op == "loop" and value.param.length) or 1
        for inner in inner_regions(value.param):
            most, most_writing = walks(inner, live)
            stores = any(one.op == "store" for one in inner.values)
            turns = max(turns, length * max(1, most))
            writing = max(writing, length * max(int(stores), most_writing))
    return turns, writing


class Walked(NamedTuple):
    turns: int
    writing: int
    scratch: int  # entries of the largest array that is made on the way
    depth: int
    smallest: int  # entries of the smallest large array that is carried


def walked(delays: Any, learner: Any, rules: Rules = GAME) -> Walked:
    env = jb.make_environment("paper-stochastic", delays=delays)
    depth, lanes = jb.ring_sizes(env, 5000)
    game = make_game(env, learner, 5000, depth, lanes, library=np)
    program = choice.flattened(rules, game, False)
    sizes = [memory.size for memory in program.carry.memories]
    scratch = max((memory.size for memory in program.scratch), default=0)
    return Walked(*walks(program.parts["round"]), scratch, depth, min(sizes))


FIXED, LAPLACE = jb.FixedDelay(600), jb.LaplaceDelay(50, 25)
DELAYS = {"fixed": FIXED, "laplace": LAPLACE}
LEARNERS = {name: jb.make_learner(name) for name in jb.learner_names()} | {
    "nsd-ucrl2 with a window": jb.make_learner("nsd-ucrl2", window=2000),
    "ucb1 with a discount": jb.make_learner("ucb1", discount=0.99),
    "bold-exp3 with 300 copies": jb.make_learner("bold-exp3", copies=300),
}
TURNS = 128  # of inner loops of learners, and of lanes
SEARCHING = ("bold-exp3", "bold-exp3 with 300 copies")  # a free copy


# A ring of one lane is filed and read by the same code whoever plays.
ONE_LANE = ["dada-exp3", "thompson", "nsd-ucrl2 with a window", "bold-exp3 with 300 copies"]


@pytest.mark.parametrize(
    ("name", "delays"),
    [*((name, "laplace") for name in LEARNERS), *((name, "fixed") for name in ONE_LANE)],
)
def test_a_round_copies_no_ring_and_no_large_array(name: str, delays: str) -> None:
    found = walked(DELAYS[delays], LEARNERS[name])
    assert found.depth == 640
    assert found.smallest > TURNS
    assert found.writing <= TURNS
    assert found.scratch <= TURNS
    assert found.turns <= (found.depth if name in SEARCHING else TURNS)


def look_back(game: Game, key: Any, t: Any, carry: Any) -> Any:
    """A round that looks, after the write, at the ring as it was before it."""
    new, _ = rounds.step(game, key, t, carry)
    old = carry.ring.words[0][(t + new.facts.arrived) & 1023]
    late = new.facts._replace(arrived=jnp.where(old[0] == -7, 0, new.facts.arrived))
    return new._replace(facts=late)


def doubled(game: Game, key: Any, t: Any, carry: Any) -> Any:
    """A round that changes every entry of the ring."""
    new, _ = rounds.step(game, key, t, carry)
    return new._replace(ring=new.ring._replace(words=[word ^ 1 for word in new.ring.words]))


def summed(game: Game, key: Any, t: Any, carry: Any) -> Any:
    """A round that reads every entry of the ring."""
    new, _ = rounds.step(game, key, t, carry)
    late = new.facts._replace(arrived=new.facts.arrived + new.ring.words[0].sum())
    return new._replace(facts=late)


@pytest.mark.parametrize("delays", DELAYS)
@pytest.mark.parametrize("other", [look_back, doubled, summed])
def test_the_checker_sees_a_ring_that_is_copied_or_walked_through(other: Any, delays: str) -> None:
    found = walked(DELAYS[delays], LEARNERS["dada-exp3"], GAME._replace(step=other))
    assert found.turns >= found.depth
    assert (found.writing >= found.depth) == (other is not summed)


def test_the_checker_sees_an_array_that_a_branch_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window of NSD-UCRL2, were it looked at again after it has changed."""
    kind = type(LEARNERS["nsd-ucrl2"])
    learn = kind.learn

    def careless(self: Any, state: Any, *args: Any) -> Any:
        new, ticket = learn(self, state, *args)
        leaves, structure = jax.tree.flatten(new)
        before = jax.tree.leaves(state)
        mixed = [a if a.ndim == 0 or a.size < 500 else jnp.where(args[0] > 3, a, b)
                 for a, b in zip(leaves, before, strict=True)]  # fmt: skip
        return structure.unflatten(mixed), ticket

    forget_programs(monkeypatch)
    monkeypatch.setattr(kind, "learn", careless)
    assert walked(FIXED, LEARNERS["nsd-ucrl2 with a window"]).writing >= 2000


def test_the_size_of_a_program_does_not_depend_on_the_ring() -> None:
    def length(longest: int) -> int:
        env = jb.make_environment("paper-stochastic", delays=jb.UniformDelay(0, longest))
        depth, lanes = jb.ring_sizes(env, 10**6)
        assert depth > longest
        game = make_game(env, LEARNERS["metabio"], 10**6, depth, lanes, library=np)
        return len(native.module_of(choice.flattened(GAME, game, False))[0].splitlines())

    assert abs(length(60_000) - length(10_000)) <= 5
    # From a ring that outgrows a cache rows are fetched before they are read: a line for each read.
    assert abs(length(10_000) - length(1000)) <= 20


def test_the_bytes_of_a_ring() -> None:
    """At most 32 kB a run at Laplace(50, 25), so that 10^5 runs fit into 4 GB."""
    env = jb.make_environment("paper-stochastic", delays=LAPLACE)
    depth, lanes = jb.ring_sizes(env, 10_000)
    for boxes in (1, rounds.BOXES):
        game = make_game(env, LEARNERS["metabio"], 10_000, depth, lanes, library=np, boxes=boxes)
        slots: ring.Ring = jax.eval_shape(rounds.begin, game).ring
        taken = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(slots))
        assert taken <= 65_536
        assert boxes > 1 or taken <= 32_768
