"""Code that changes in one process: a helper defined again, a global that is another number.

`simulate` and `sweep` keep compiled programs, and JAX keeps what it has traced. Neither may outlive
the code that it was made of.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import BY_VMAP

import jaxbio as jb
from jaxbio.engine import player
from jaxbio.engine.code.traces import code_of
from jaxbio.engine.rules import Rules

HEAD = """
import functools, jax, jax.numpy as jnp, numpy as np, jaxbio as jb
from jax import lax
import pk.rates
class Base:
    def init(self, known): return jnp.int32(0)
    def act(self, state, t, u): return jnp.asarray(self.choice(u)).astype(jnp.int32), ticket()
    def learn(self, state, t, play, arrivals): return state, play.ticket
def ticket(): return ()
"""
TAIL = """
learner = Mine()
"""
MINE = """
@jb.pytree
class Mine(Base):
    def choice(self, u): return {}
"""
LOOP = """
N = 0
def body(i, x): return x + N
def choice(u): return lax.fori_loop(0, 1, body, 0)
"""
RULE = """
@jax.custom_jvp
def f(x): return x
f.defjvp(lambda x, dx: (x[0], 0 * dx[0]))
"""
BOUND = """
class Box:
    n = 0
    def get(self): return self.n
get = Box().get
"""
CAPTURED = """
def make():
    n = 0
    def get(): return n
    def put(x):
        nonlocal n
        n = x
    return get, put
get, put = make()
"""
# what a user's module says, with what the learner chooses; then what makes that 1 in place of 0
CHANGES: dict[str, tuple[str, str, str]] = {
    "a helper": ("def help(): return 0", "help()", "def help(): return 1"),
    "a global number": ("N = 0", "N", "N = 1"),
    "a number that a global has": ("class N: n = 0", "N.n", "N.n = 1"),
    "a global array, in place": ("TABLE = np.zeros(99)", "TABLE[0]", "TABLE[0] = 1"),
    "a global array of JAX": ("TABLE = jnp.int32(0)", "TABLE", "TABLE = jnp.int32(1)"),
    "a module": ("", "pk.rates.N", "pk.rates.N = 1"),
    "a function of a module": ("", "pk.rates.rate()", "pk.rates.N = 1"),
    "a module by another name": ("M = pk", "getattr(M.rates, 'N')", "pk.rates.N = 1"),
    "a module that is passed on": ("def of(m): return m.N", "of(pk.rates)", "pk.rates.N = 1"),
    "a module found by its name": (
        "import sys",
        "sys.modules['pk.rates'].N",
        "pk.rates.N = 1",
    ),
    "an import inside": (
        "def help():\n from pk.rates import N\n return N",
        "help()",
        "pk.rates.N = 1",
    ),
    "a jitted helper's global": ("N = 0\nhelp = jax.jit(lambda u: u * 0 + N)", "help(u)", "N = 1"),
    "a global of a loop's body": (LOOP, "choice(u)", "N = 1"),
    "a rule of custom_jvp": (
        RULE,
        "jax.grad(f)(u)",
        "f.defjvp(lambda x, dx: (x[0], 1 * dx[0]))",
    ),
    "a partial": ("p = functools.partial(int, 0)", "p()", "p = functools.partial(int, 1)"),
    "a bound method's object": (BOUND, "get()", "get.__self__.n = 1"),
    "what is captured": (CAPTURED, "get()", "put(1)"),
    "a default": ("def help(n=0): return n", "help()", "help.__defaults__ = (1,)"),
    "an attribute of a function": ("def help(): return help.n\nhelp.n = 0", "help()", "help.n = 1"),
    "an attribute of the class": ("", "self.n if hasattr(self, 'n') else 0", "Mine.n = 1"),
    "a method": ("", "0", "Mine.choice = lambda self, u: 1"),
    "an inherited method": ("Base.f = lambda self: 0", "self.f()", "Base.f = lambda self: 1"),
    "a ticket of another type": (
        "N = 0\ndef ticket(): return jnp.int32(0)",
        "N",
        "N = 1\ndef ticket(): return jnp.zeros((), bool), jnp.float32(0)",
    ),
    "something opaque": ("N = iter([0])", "0 * id(N) + FIRST(N)", "N = iter([1])"),
}  # fmt: skip
ENV = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(3))


@pytest.fixture
def pk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of the user's with a module inside."""
    package, rates = types.ModuleType("pk"), types.ModuleType("pk.rates")
    package.__path__ = []  # type: ignore[attr-defined]
    package.rates = rates  # type: ignore[attr-defined]
    exec("N = 0\ndef rate(): return N", rates.__dict__)
    monkeypatch.setitem(sys.modules, "pk", package)
    monkeypatch.setitem(sys.modules, "pk.rates", rates)


def users(what: str) -> types.ModuleType:
    """The module of a user's learner."""
    module = types.ModuleType("users")
    code, choice, _ = CHANGES[what]
    module.__dict__["FIRST"] = lambda items: items.__reduce__()[1][0][0]
    mine = MINE.format(choice)
    exec("\n".join([HEAD, code, mine, TAIL]), module.__dict__)
    return module


def change(what: str, module: types.ModuleType) -> None:
    exec(CHANGES[what][2], module.__dict__)


def choose(learner: Any, key: Any, t: Any, carry: Any) -> Any:
    return jnp.asarray(learner.choice(jnp.float32(0.25))).astype(jnp.float32)


# A learner by itself: what it chooses is what is recorded.
CHOICE = Rules(
    lambda learner: jnp.float32(0),
    choose,
    lambda carry: (carry, carry),
    lambda learner, carry: {},
    lambda carry: [],
)


def program(learner: Any) -> player.Player:
    return player.compile_player(learner, rules=CHOICE)


def chosen(learner: Any) -> float:
    keys, stops = np.zeros((2, 1), np.uint32), np.array([1], np.int32)
    return player.play_once(program(learner), learner, keys, stops, lambda _: None).curve.item()


@pytest.mark.usefixtures("pk")
@pytest.mark.parametrize("what", CHANGES)
def test_a_program_is_of_the_code_as_it_is(what: str) -> None:
    module = users(what)
    assert chosen(module.learner) == 0
    before = program(module.learner)
    change(what, module)
    assert chosen(module.learner) == 1
    again = program(module.learner)
    assert again is not before
    assert program(module.learner) is again


OPTIONS: dict[str, Any] = {"horizon": 20, "runs": 3, "rounds": [20], "progress": False}


def finals(learner: Any, **options: Any) -> list[float]:
    """The final regret of run 0, by a rollout, by `simulate` and by `sweep`."""
    swept = jb.sweep(ENV, {"mine": learner}, {}, **OPTIONS, **options)
    rolled = jb.rollout(ENV, learner, 0, 20, rounds=[20])
    simulated = jb.simulate(ENV, learner, **OPTIONS)
    final = swept["final_regret"].values[0, 0]
    assert simulated.final_regret[0] == final
    assert rolled.regret[-1].item() == pytest.approx(final, rel=1e-6)
    return [rolled.regret[-1].item(), simulated.final_regret[0], final]


@pytest.mark.usefixtures("pk")
def test_all_play_the_code_as_it_is(tmp_path: Path) -> None:
    """As a learner does that never was other code, and back again; a store keeps them apart."""
    what = "a ticket of another type"
    module, fresh = users(what), users(what)
    before = finals(module.learner, store=tmp_path / "before")
    change(what, module)
    with pytest.raises(ValueError, match=r"other settings:\n  learners / mine /  / learner: was"):
        finals(module.learner, store=tmp_path / "before")
    after = finals(module.learner, store=tmp_path / "after")
    assert before != after
    change(what, fresh)
    assert finals(fresh.learner) == after
    kept = jb.sweep(ENV, {"mine": module.learner}, {}, **OPTIONS, store=tmp_path / "after")
    assert kept["final_regret"].values[0, 0] == after[2]
    exec(CHANGES[what][0], module.__dict__)
    assert jb.simulate(ENV, module.learner, **OPTIONS).final_regret[0] == before[1]


@jb.pytree
class Random:
    def init(self, known: jb.Known) -> Any:
        return ()

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return jax.random.randint(jax.random.fold_in(jax.random.key(3), t), (), 0, 3), None

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        return state, None


@pytest.mark.filterwarnings(BY_VMAP)  # of keys
def test_what_is_set_in_jax_is_part_of_the_code(tmp_path: Path) -> None:
    env = jb.make_environment("paper-stochastic")
    options: Any = {"horizon": 50, "progress": False}

    def played() -> tuple[Any, Any]:
        mine = jb.simulate(env, Random(), runs=1, **options).final_regret
        return float(mine[0]), float(jb.rollout(env, Random(), 0, 50, rounds=1).regret[-1])

    def sweep() -> Any:
        return jb.sweep(env, {"a": Random()}, {}, runs=2, store=tmp_path, **options)

    before, _ = played()
    sweep()
    with jax.threefry_partitionable(False):
        mine, theirs = played()
        assert mine == pytest.approx(theirs, rel=1e-5)
        assert mine != before
        with pytest.raises(ValueError, match="jax_threefry_partitionable"):
            sweep()


LOSSES = """
SIGN = 1
@jb.pytree
class Losses(jb.BernoulliLosses):
    def loss(self, key, t, state, u):
        return SIGN * jb.BernoulliLosses.loss(self, key, t, state, u)
"""


@pytest.mark.usefixtures("pk")
def test_worlds_of_other_code_are_not_played_again() -> None:
    """Realised regret is computed when it is asked for, from the worlds of the runs."""
    module: Any = types.ModuleType("users")
    exec(HEAD + LOSSES, module.__dict__)
    losses = module.Losses(ENV.losses.theta)  # type: ignore[attr-defined]
    env = jb.Environment(ENV.mapping, losses, ENV.delays)
    early, late = (jb.simulate(env, jb.UCB1(), **OPTIONS) for _ in range(2))
    assert np.isfinite(early.realized_regret).all()
    module.SIGN = -1
    with pytest.raises(RuntimeError, match="code of the environment has changed since these runs"):
        late.realized_regret  # noqa: B018


COUNTING = """
COUNT, SEEN = [], {}
@jb.pytree
class Mine(Base):
    def choice(self, u):
        COUNT.append(u)
        SEEN["last"] = len(COUNT)
        return 0
learner = Mine()
"""


@pytest.mark.usefixtures("pk")
def test_code_that_counts_how_often_it_is_traced_is_traced_once() -> None:
    """What code itself leaves behind makes it no other code."""
    module = types.ModuleType("users")
    exec(HEAD + COUNTING, module.__dict__)
    for play in (
        lambda: jb.simulate(ENV, module.learner, **OPTIONS),
        lambda: jb.sweep(ENV, {"mine": module.learner}, {}, **OPTIONS),
    ):
        play()
        count = len(module.COUNT)  # type: ignore[attr-defined]
        assert count > 0
        play()
        assert len(module.COUNT) == count  # type: ignore[attr-defined]


def test_code_may_capture_what_is_traced() -> None:
    """A schedule made inside a transformation."""
    seen: list[Any] = []

    def scaled(scale: Any) -> Any:
        learner = jb.DAdaExp3(scale=lambda t: scale * t)
        seen.append(code_of(jax.tree.structure(learner)))
        return scale

    for number in (jnp.float32(1), jnp.int32(1)):
        jax.make_jaxpr(scaled)(number)
    assert seen[0] != seen[1]
