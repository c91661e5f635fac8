"""What a store sees of the things that are played: numbers, arrays, code, and what code uses."""

from __future__ import annotations

import dataclasses
import enum
import functools
import threading
import types
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxbio as jb
from jaxbio import memory
from jaxbio import surroundings as around
from jaxbio.fingerprint import _constant, parts, refuse_unknown


def made(code: str, **names: Any) -> dict[str, Any]:
    """What a piece of a user's module defines."""
    module = types.ModuleType("users")
    module.__dict__.update(names | {"jb": jb, "jax": jax, "jnp": jnp, "functools": functools})
    exec(compile(code, "users.py", "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


LEARNER = """
@jb.pytree
class Mine:
    rate: float = 1.0
    def init(self, known): return jnp.int32(0)
    def act(self, state, t, u): return jnp.int32({action}), ()
    def learn(self, state, t, play, arrivals): return state, ()
thing = Mine()
"""
INHERITED = """
class Base:
    def act(self): return {action}
class Mine(Base):
    pass
thing = Mine()
"""
CALLABLE = """
class Decay:
    def __init__(self, rate): self.rate = rate
    def __call__(self, t): return self.rate / t
    def method(self, t): return self.rate * t
thing = Decay({action}){part}
"""
# code with a place for 1 or 2 in it, which must make a difference
DIFFERENT = {
    "a method of a learner": LEARNER,
    "an inherited method": INHERITED,
    "an attribute of a callable object": CALLABLE.replace("{part}", ""),
    "the object of a bound method": CALLABLE.replace("{part}", ".method"),
    "a jitted lambda": "thing = jax.jit(lambda t: t * {action})",
    "a cached function": "@functools.lru_cache\ndef thing(t): return t * {action}",
    "a constant global": "RATE = {action}\ndef thing(t): return t * RATE",
    "a global in a comprehension": "RATE = {action}\nthing = lambda t: [i * RATE for i in t]",
    "a global function": "def other(t): return t * {action}\ndef thing(t): return other(t)",
    "a global array": "TABLE = jnp.full(99, {action})\ndef thing(t): return TABLE[t]",
    "a default": "def thing(t, rate={action}): return t * rate",
    "a default of a keyword": "def thing(t, *, rate={action}): return t * rate",
    "a constant set": "def thing(t): return t in {'a', 'b', {action}}",
    "a partial": "thing = functools.partial(lambda t, rate: t * rate, rate={action})",
    "a static method": "class A:\n @staticmethod\n def f(t): return {action}\nthing = A()",
    "a property": "class A:\n @property\n def f(self): return {action}\nthing = A()",
    "a class attribute": "class A:\n binary = {action}\nthing = A()",
    "a class": "class thing:\n def f(self): return {action}",
    "a slot": "class A:\n __slots__ = 'x'\nthing = A()\nthing.x = {action}",
    "a frozenset": "thing = frozenset(['a', 'b', {action}])",
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_is_different_is_described_apart(what: str) -> None:
    one, again, two = (
        parts("x", made(DIFFERENT[what].replace("{action}", n))["thing"]) for n in ("1", "1", "2")
    )
    assert one == again
    assert one != two
    refuse_unknown(one)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def test_members_of_an_enum() -> None:
    assert parts("x", Colour.RED) != parts("x", Colour.BLUE)
    assert parts("x", Colour.RED)["x"].endswith("Colour.RED")


def test_the_module_counts() -> None:
    one, two = (made("class A: pass\nthing = A()", __name__=name)["thing"] for name in "ab")
    assert parts("x", one) != parts("x", two)


def test_which_of_two_things_comes_again() -> None:
    first, second = (lambda t: 1 * t), (lambda t: 2 * t)
    assert parts("x", [first, second, first]) != parts("x", [first, second, second])


def test_things_that_hold_themselves() -> None:
    def recursive(t: int) -> Any:
        return recursive(t - 1)

    held: list[Any] = [recursive]
    held.append(held)
    assert parts("x", held)["x.1"] == "the same as x"


def test_ours_and_installed_code_goes_by_its_name() -> None:
    assert parts("x", jb.UCB1())["x"] == "UCB1"
    assert parts("x", functools.reduce)["x"] == "_functools.reduce"
    assert parts("x", Path)["x"] == "pathlib.Path"
    assert parts("x", optax.EmptyState)["x"].endswith(f"EmptyState (optax {optax.__version__})")


@pytest.mark.parametrize("module", ["__main__", "jaxbio.lab.watched"])
def test_what_has_no_version_is_read(module: str) -> None:
    """A script, though pytest's own lies among the packages; ours that is not among the sources."""
    code = "class A:\n def f(self): return {action}\nthing = A()"
    one, two = (made(code.replace("{action}", n), __name__=module)["thing"] for n in "12")
    assert parts("x", one) != parts("x", two)


def test_what_cannot_be_read_is_named() -> None:
    @dataclasses.dataclass
    class Odd:
        source: Any

    described = {"learner": parts("x", Odd(np.random.default_rng(0)))}
    with pytest.raises(ValueError, match=r"whether learner / x\.source is still the same"):
        refuse_unknown(described)
    refuse_unknown(parts("x", Odd(jax.random.key(0))))
    lock = threading.Lock()
    refuse_unknown(parts("x", made("def thing(t): return lock", lock=lock)["thing"]))


def test_sets_are_in_one_order() -> None:
    """As those of strings are not from process to process, and these are not in one."""
    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert list(one) != list(other)
    assert parts("x", one) == parts("x", other)
    assert _constant(one) == _constant(other) != _constant(frozenset([0, 9]))


# --- the surroundings


def test_flags_that_only_make_devices_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = "--xla_force_host_platform_device_count=4"
    monkeypatch.setenv("XLA_FLAGS", f"--xla_b=1 {devices} --xla_a=2")
    assert around.xla_flags() == "--xla_a=2 --xla_b=1"
    monkeypatch.setenv("XLA_FLAGS", devices)
    assert around.xla_flags() == "none"


def test_features_of_a_cpu(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor : 0\nflags\t\t: fpu sse2 avx2 fma avx512f\n")
    assert around.cpu_features(str(file)) == "fma avx2 avx512f"
    assert around.cpu_features(str(tmp_path / "no such file")) == "unknown"


def test_precision_and_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXBIO_NATIVE_LOOPS", "1")
    assert around.surroundings()["loops"] == "native"
    with jax.enable_x64(True):
        assert around.surroundings()["precision"] == "float64"
        assert around.surroundings()["loops"] == "plain"


def test_sources_are_those_that_play() -> None:
    names = {file.as_posix() for file in around._files()}
    assert {"rollout.py", "learners/exp3.py", "environment/delays.py", "sweep.py"} <= names
    assert not {"cli.py", "plot.py"} & names


def test_sources_see_every_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(around, "_ROOT", tmp_path)
    digests = []
    for text in ("a = 1\n", "a = 2\n", "a = 1\r\n"):
        (tmp_path / "core.py").write_bytes(text.encode())
        around.sources.cache_clear()
        digests.append(around.sources())
    around.sources.cache_clear()
    assert digests[0] == digests[2] != digests[1]


LIMITS = {
    "version 2": ("0::/job/step\n", "", ("memory.max", "memory.current", "inactive_file")),
    "version 1": (
        "5:cpu:/\n4:memory:/job/step\n",
        "memory",
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ),
}


@pytest.mark.parametrize("kind", LIMITS)
def test_limits_of_a_container_count(kind: str, tmp_path: Path) -> None:
    groups, mount, (most, used, back) = LIMITS[kind]
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:  8000 kB\n")
    assert memory.free_memory(tmp_path) == 8000 * 1024
    (tmp_path / "proc/self/cgroup").write_text(groups)
    own = tmp_path / "sys/fs/cgroup" / mount / "job" / "step"
    own.mkdir(parents=True)
    for name, text in {most: "5000", used: "3000", "memory.stat": f"anon 7\n{back} 100\n"}.items():
        (own / name).write_text(text)
    assert memory.free_memory(tmp_path) == 2100
    (own / most).write_text("max")
    assert memory.free_memory(tmp_path) == 8000 * 1024
    for name, text in {most: "900", used: "1000"}.items():  # of the group above
        (own.parent / name).write_text(text)
    assert memory.free_memory(tmp_path) == 0
