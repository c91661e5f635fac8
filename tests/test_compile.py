"""What is compiled: how often, and that the loop over rounds neither copies a ring nor gathers.

A new number must never compile anew, and a round must cost the same whatever the ring's size. Both
break without changing a single result, so they are looked for in the compiled programs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import compile_as_users
from jaxbio.rollout import Game, close, make_game, step

import jaxbio as jb
from jaxbio import blocks, kernel, ring

WIDTH = 8
COMPILED: list[str] = []


def _listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
    if event.endswith("backend_compile_duration"):
        COMPILED.append(str(kwargs["fun_name"]))


jax.monitoring.register_event_duration_secs_listener(_listen)


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
    options = {"horizon": 300, "runs": 10, "seed": 0, "rounds": 7} | setting.options
    jb.simulate(setting.env, setting.learner, width=WIDTH, progress=False, **options)


def compilations(setting: Setting) -> int:
    before = len(COMPILED)
    play(setting)
    return len(COMPILED) - before


def new_numbers(name: str, delays: Callable[[int], Any]) -> dict[str, Setting]:
    """The same structures with other numbers."""
    env, learner = problem(delays=delays(50)), jb.make_learner(name)
    return {
        "delta": Setting(env, jb.make_learner(name, delta=0.03)),
        "scale": Setting(env, jb.make_learner(name, scale=2)),
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


@pytest.mark.parametrize(("name", "delays"), [("metabio", fixed), ("dada-exp3", uniform)])
def test_a_new_number_never_compiles_anew(name: str, delays: Callable[[int], Any]) -> None:
    play(Setting(problem(delays=delays(50)), jb.make_learner(name)))
    settings = new_numbers(name, delays)
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
    """The program that plays the blocks, and nothing on the way to it."""
    env = FRESH[name].padded(9)  # no other test has 9 states
    jax.clear_caches()  # of small operations on arrays, which would be programs of their own
    before = len(COMPILED)
    play(Setting(env, jb.make_learner("ucb1")))
    assert COMPILED[before:] == ["jit(_play)"]


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


# --- reading a compiled program


class Instruction(NamedTuple):
    """name = shape opcode(operands), attributes"""

    name: str
    size: int  # elements; -1 for a tuple
    opcode: str
    operands: list[str]
    line: str


ONE = re.compile(r"^\s*(ROOT )?%?([\w.\-]+) = (\([^=]*?\)|\S+) ([\w\-]+)\((.*)$")
CALLED = re.compile(r"(?:calls|body|condition|to_apply|\w+_computations?)=(\{.*?\}|%?[\w.\-]+)")


def called(item: Instruction) -> list[str]:
    """The computations that an instruction runs."""
    return re.findall(r"[\w.\-]+", " ".join(CALLED.findall(item.line)))


def size_of(shape: str) -> int:
    dims = re.match(r"\w+\[([\d,]*)\]", shape)
    if shape.startswith("(") or dims is None:
        return -1
    return math.prod(int(n) for n in dims[1].split(",") if n)


def computations(text: str) -> dict[str, list[Instruction]]:
    """The instructions of every computation of an HLO module; the last one is the root."""
    found: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for line in re.sub(r"/\*.*?\*/", "", text).splitlines():
        header = re.match(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$", line)
        if header:
            current = found.setdefault(header[1], [])
        elif match := ONE.match(line):
            operands = re.findall(r"%([\w.\-]+)", match[5].split("), ")[0])
            current.append(Instruction(match[2], size_of(match[3]), match[4], operands, line))
    return found


def in_loops(text: str) -> dict[str, list[Instruction]]:
    """The computations that run inside a loop."""
    every = computations(text)
    bodies = re.findall(r" while\(.*?body=%?([\w.\-]+)", text)
    assert bodies, "no loop in the compiled text"
    reached, left = set(), list(bodies)
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += [n for i in every[name] for n in called(i) if n in every]
    return {name: every[name] for name in reached}


def follow(body: list[Instruction], name: str) -> Instruction:
    """The instruction behind `name`, through changes of shape."""
    by_name = {i.name: i for i in body}
    while by_name[name].opcode in ("bitcast", "reshape"):
        name = by_name[name].operands[0]
    return by_name[name]


def in_place(body: list[Instruction]) -> bool:
    """Does a fused computation end in the update of one of its parameters?"""
    root = follow(body, body[-1].name)
    if root.opcode not in ("dynamic-update-slice", "scatter"):
        return False
    return follow(body, root.operands[0]).opcode == "parameter"


def large_copies(text: str, least: int) -> list[str]:
    """What a loop makes anew of at least `least` elements, other than by updates in place."""
    loops = in_loops(text)
    items = [i for body in loops.values() for i in body]
    fused = {name for i in items if i.opcode == "fusion" for name in called(i)}
    passed = {"parameter", "get-tuple-element", "tuple", "bitcast", "while", "call", "constant",
              "opt-barrier", "dynamic-update-slice", "scatter"}  # fmt: skip
    bad = []
    for name, body in loops.items():
        for item in body if name not in fused else []:
            if item.size < least or item.opcode in passed:
                continue
            if item.opcode == "fusion" and in_place(loops[called(item)[0]]):
                continue
            bad.append(item.line.strip()[:160])
    return bad


def lookups(text: str) -> list[int]:
    """The sizes of the arrays that a loop gathers from or scatters into."""
    return [
        follow(body, item.operands[0]).size
        for body in in_loops(text).values()
        for item in body
        if item.opcode in ("gather", "scatter")
    ]


# --- the loop over rounds


class Compiled(NamedTuple):
    text: str
    extra: int  # bytes the program needs besides its arguments and results
    slots: int  # ring_depth * runs: the elements of the smallest ring-sized array


@pytest.fixture
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled as users do; nothing that a test compiles with another step stays behind."""
    compile_as_users(monkeypatch)


def compiled(delays: Any, learner: Any, strips: int = 1) -> Compiled:
    env = jb.make_environment("paper-stochastic", delays=delays)
    depth, lanes = jb.ring_sizes(env, 5000)
    game = make_game(env, learner, 5000, depth, lanes, library=np)
    player = blocks.compile_player(game, WIDTH * strips, False, strips)
    program: Any = player.play
    extra = program.memory_analysis().temp_size_in_bytes
    return Compiled(program.as_text(), extra, depth * (player.width // strips))


FIXED, LAPLACE = jb.FixedDelay(900), jb.LaplaceDelay(50, 25)
WINDOW = jb.make_learner("nsd-ucrl2", window=2000)
LOOPS = {
    "dada-exp3, fixed": (jb.make_learner("dada-exp3"), FIXED),
    "dada-exp3, laplace": (jb.make_learner("dada-exp3"), LAPLACE),
    "dada-exp3-skipping, fixed": (jb.make_learner("dada-exp3-skipping"), FIXED),
    "metabio-skipping, laplace": (jb.make_learner("metabio-skipping"), LAPLACE),
    "metabio, fixed": (jb.make_learner("metabio"), FIXED),
    "metabio, laplace": (jb.make_learner("metabio"), LAPLACE),
    "nsd-ucrl2 with a window, fixed": (WINDOW, FIXED),
    "nsd-ucrl2 with a window, laplace": (WINDOW, LAPLACE),
}


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize("name", LOOPS)
def test_the_loop_copies_no_ring(name: str) -> None:
    learner, delays = LOOPS[name]
    program = compiled(delays, learner)
    assert large_copies(program.text, program.slots) == []
    assert program.extra < 4 * program.slots  # no room for a second ring
    assert all(size >= program.slots for size in lookups(program.text)), "a small lookup"
    if name in ("dada-exp3, fixed", "metabio, fixed", "nsd-ucrl2 with a window, fixed"):
        assert lookups(program.text) == []


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize("name", ["dada-exp3, fixed", "metabio, laplace"])
def test_strips_copy_no_ring(name: str) -> None:
    learner, delays = LOOPS[name]
    program = compiled(delays, learner, strips=2)
    copies = large_copies(program.text, program.slots)
    assert [line for line in copies if "broadcast" not in line] == []  # a strip begins with zeros
    assert program.extra < 8 * program.slots  # these, and no second ring


NATIVE = pytest.mark.skipif(
    not kernel.is_available(),
    reason="this JAX has no native loops, whose rounds are put together so",
)


def read_first(game: Game, key: Any, t: Any, carry: Any) -> tuple[Any, Any]:
    """A round that reads the ring as it was before this round's write."""
    row = ring.row(carry.ring.words, t + 1, game.known.ring_depth, game.lanes)
    new, played = step(game, key, t, carry)
    return new._replace(row=row), played


def gathering(game: Game, key: Any, t: Any, carry: Any) -> tuple[Any, Any]:
    """A round that looks an action up by a gather."""
    new, played = step(game, key, t, carry)
    cumulative = new.learner.cumulative.total
    looked_up = cumulative.at[played.action].add(cumulative[played.action])
    total = new.learner.cumulative._replace(total=looked_up)
    return new._replace(learner=new.learner._replace(cumulative=total)), played


def look_back(game: Game, t: Any, carry: Any, acted: Any, learned: Any, slots: Any) -> Any:
    """The end of a round that looks, after the write, at the ring as it was before it."""
    new = close(game, t, carry, acted, learned, slots)
    old = ring.row(carry.ring.words, t + new.number, game.known.ring_depth, 1)
    return new._replace(number=jnp.where(old[0][0, 0] == -7, 0, new.number))


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize(
    ("name", "other", "delays"),
    [
        ("step", read_first, FIXED),
        pytest.param("close", look_back, LAPLACE, marks=NATIVE),
    ],
)
def test_the_checker_sees_a_ring_that_is_copied(
    name: str, other: Any, delays: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, name, other)
    program = compiled(delays, jb.make_learner("dada-exp3"))
    assert large_copies(program.text, program.slots)


@NATIVE
@pytest.mark.skipif(
    not version("jaxlib").startswith("0.10."), reason="newer versions of XLA copy nothing there"
)
@pytest.mark.usefixtures("no_programs")
def test_the_checker_sees_an_array_that_branches_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LARGE", 10**9)
    program = compiled(LAPLACE, WINDOW)
    assert large_copies(program.text, program.slots)


@pytest.mark.usefixtures("no_programs")
def test_the_checker_sees_a_small_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "step", gathering)
    program = compiled(FIXED, jb.make_learner("dada-exp3"))
    assert min(lookups(program.text)) < program.slots
