"""What a store sees of the things that are played: numbers, arrays, code, and what code uses."""

from __future__ import annotations

import ast
import collections
import copyreg
import dataclasses
import enum
import functools
import logging
import random
import shutil
import sys
import threading
import types
import typing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxbio as jb
from jaxbio.checks import memory
from jaxbio.engine.code import sources as code
from jaxbio.engine.code.bytecode import constant
from jaxbio.engine.code.fingerprint import parts, refuse_unknown
from jaxbio.storage import provenance as around


def made(code: str, **names: Any) -> dict[str, Any]:
    """What a piece of a user's module defines."""
    module = types.ModuleType("users")
    used = {"jb": jb, "jax": jax, "jnp": jnp, "np": np, "functools": functools, "enum": enum}
    used |= {"dataclasses": dataclasses, "typing": typing, "collections": collections}
    module.__dict__.update(names | used)
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
RULE = """
@jax.custom_jvp
def thing(x): return x
@thing.defjvp
def rule(x, dx): return x[0], dx[0] * {action}
"""
DATACLASS = """
@dataclasses.dataclass
class A:
    x: int = 0
thing = A()
thing.table = {action}
"""
NAMED = """
class A(typing.NamedTuple):
    x: int = 0
    def __call__(self, t): return {action}
thing = A()
"""
ENUM = """
class E(enum.Enum):
    A = 0
    def f(self): return {action}
thing = E.A
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
    "a base": "class thing((jb.UCB1, jb.DAdaExp3)[{action} - 1]): pass",
    "a rule of custom_jvp": RULE,
    "what a rule reads": RULE.replace("* {action}", "* N") + "\nN = {action}",
    "an attribute of a function": "def thing(t): return thing.n\nthing.n = {action}",
    "an attribute of a dataclass": DATACLASS,
    "a method of a named tuple": NAMED,
    "a method of an enum": ENUM,
    "a key that is an object": "def key(t): return {action}\nthing = {key: 0}",
    "keys with one text": "thing = {1: {action}, '1': 0}",
    "a private slot": "class A:\n __slots__ = '__x'\nthing = A()\nthing._A__x = {action}",
    "the object of a builtin method": "thing = [{action}].__getitem__",
    "the names of arguments": "thing = lambda {name}, c: ({name}, c)".replace(
        "{name}", "a{action}"
    ),
    "the type of an array": "thing = np.zeros(3, (np.int8, np.float16)[{action} - 1])",
    "a default in slots": "@dataclasses.dataclass(slots=True)\n"
    "class A:\n x: int = {action}\nthing = lambda: A().x",
    "a factory of defaults": "@dataclasses.dataclass\nclass A:\n"
    " x: list = dataclasses.field(default_factory=lambda: [{action}])\nthing = lambda: A().x",
    "a number of a class": "class A(float):\n pass\nRATE = A({action})\nthing = lambda: RATE",
    "a text of a class": "class A(str):\n pass\nthing = A({action})",
    "what NumPy vectorises": "thing = np.vectorize(lambda t: t * {action})",
    "what JAX vectorises": "thing = jnp.frompyfunc(lambda t: t * {action}, 1, 1)",
    "a factory of a dictionary": "thing = collections.defaultdict(lambda: {action})",
    "a method of a set": "class A(set):\n def f(self): return {action}\nthing = A()",
    "a method of an array": "class A(np.ndarray):\n def f(self): return {action}\n"
    "thing = np.zeros(2).view(A)",
    "a mask": "thing = np.ma.array([1, 2], mask=[{action} == 1, False])",
    "a set of a class": "class A(set):\n def f(self): return {action}\nthing = lambda: A()",
}


REACHING = (
    "find = eval\nthing = lambda: find('x')",
    "thing = functools.partial(eval, 'x')",
    "import importlib\nfind = importlib.import_module\nthing = lambda: find('x')",
    "import pkgutil\nthing = lambda: pkgutil.resolve_name('x')",
    "thing = np.frompyfunc(lambda t: t, 1, 1)",
)


@pytest.mark.parametrize("code", REACHING)
def test_what_can_reach_anything_is_unknown_by_any_name(code: str) -> None:
    with pytest.raises(ValueError, match="cannot tell whether"):
        refuse_unknown(parts("x", made(code)["thing"]))


def test_code_with_eval_is_other_code_where_its_module_has_changed() -> None:
    code = "RATE = {action}\ndef thing(t): return eval('RA' + 'TE')"
    one, two = (parts("x", made(code.format(action=n))["thing"]) for n in (1, 2))
    assert one != two


WRAPPERS = ("vmap", "grad", "value_and_grad", "checkpoint", "jit", "jacfwd", "custom_jvp")


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_what_jax_makes_of_a_function_is_known(wrapper: str) -> None:
    code = f"v = jax.{wrapper}(lambda t: t * {{action}})\nthing = lambda t: v(t)"
    one, two = (parts("x", made(code.format(action=n))["thing"]) for n in (1.0, 2.0))
    refuse_unknown(one)
    assert one != two


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_is_different_is_described_apart(what: str) -> None:
    one, again, two = (
        parts("x", made(DIFFERENT[what].replace("{action}", n))["thing"]) for n in ("1", "1", "2")
    )
    assert one == again
    assert one != two
    refuse_unknown(one)


WORDS = """
def thing(t):
    class Inner:
        x = 1
    for i in range(3):
        t += i
    return t, Inner.x
"""


def test_words_and_layout_make_no_difference() -> None:
    plain = parts("x", made(WORDS)["thing"])
    for old, new in (
        ("    class", '    """Counts."""\n    class'),
        ("        x", '        """Inside."""\n        x'),
        ("\ndef", "\n\n# Why.\n\ndef"),
        ("range(3)", "range(\n    3  # so many\n    )"),
    ):
        assert parts("x", made(WORDS.replace(old, new))["thing"]) == plain, new


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
    assert parts("x", Fraction)["x"] == "fractions.Fraction"
    assert parts("x", optax.EmptyState)["x"].endswith(f"EmptyState (optax {optax.__version__})")


@pytest.mark.parametrize("module", ["__main__", "jaxbio.studies.guarantees.watched"])
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
    for named in (threading.Lock(), logging.getLogger("x"), sys.stderr):
        refuse_unknown(parts("x", made("def thing(t): return named", named=named)["thing"]))
    for opaque in (np.random.default_rng(0), random.Random(0), iter([1])):
        for text in ("def thing(t): return opaque", "class thing:\n x = opaque"):
            with pytest.raises(ValueError, match=r"whether x\.(x\.0|opaque) is still the same"):
                refuse_unknown(parts("x", made(text, opaque=opaque)["thing"]))


def test_what_cannot_be_read_is_no_error_without_a_store() -> None:
    """Deeply nested, failing, or given away."""

    class Failing(collections.UserDict[str, int]):
        def items(self) -> Any:
            raise OSError("no disk")

    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    gone = jnp.zeros(3)
    gone.delete()
    for thing, reason in ((deep, "deeply"), (Failing(), "no disk"), (gone, "deleted")):
        with pytest.raises(ValueError, match=reason):
            refuse_unknown(parts("x", thing))


def test_an_installed_module_has_its_version() -> None:
    found = parts("x", made("def thing(t): return optax.sgd", optax=optax)["thing"])
    assert found["x.optax"] == f"optax (optax {optax.__version__})"
    inside = parts("x", made("def thing(t):\n import optax.losses\n return optax.sgd")["thing"])
    assert inside["x.import optax.losses"] == f"optax.losses (optax {optax.__version__})"
    absent = parts("x", made("def thing(t):\n import no_such_thing\n return 1")["thing"])
    assert "not there" in absent["x.import no_such_thing"]


def test_sets_are_in_one_order() -> None:
    """As those of strings are not from process to process, and these are not in one."""
    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert list(one) != list(other)
    assert parts("x", one) == parts("x", other)
    assert constant(one) == constant(other) != constant(frozenset([0, 9]))


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


def test_precision() -> None:
    assert around.surroundings()["precision"] == "float32"
    with jax.enable_x64(True):
        assert around.surroundings()["precision"] == "float64"


# --- the sources of the package


def imported(file: Path) -> set[str]:
    """What a file imports of the package, at any depth: dotted names."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("jaxbio.")}


def test_what_decides_is_there_and_closed_under_imports() -> None:
    root = Path(jb.__file__).parent
    for name in code.DECIDE:
        place = root.joinpath(*name.split("."))
        assert place.is_dir() or place.with_suffix(".py").exists()
    names = {file.as_posix() for file in code.files()}
    assert {"engine/round.py", "engine/backends/llvm.py", "learners/exp3.py", "rng.py"} <= names
    used = {name for file in code.files() for name in imported(root / file)}
    shows = "jaxbio.display."  # how things look decides nothing
    left = [name for name in used if not code.decides(name) and not name.startswith(shows)]
    assert not left, f"{left} decide what is played, or do not belong there"


def sources_of(text: str, folder: Path, name: str = "core.py") -> str:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(text.encode())
    code.sources.cache_clear()
    return code.sources()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(code, "_ROOT", tmp_path)
    yield tmp_path
    code.sources.cache_clear()


ONE = "import os\n\ndef f(x, y=(1, 2)):\n    if x:\n        return 'a'\n    return y\n"


def test_sources_see_code_and_no_words(root: Path) -> None:
    first = sources_of(ONE, root)
    words = (
        ONE.replace("\n", "\r\n"),
        f'"""What it is."""\n# Why.\n{ONE}',
        ONE.replace("    if x", '    """Does it.\n\n    Well."""\n    if x'),
        ONE.replace("        return 'a'", "        'a note'\n        return (  # so\n'a')"),
    )
    for text in words:
        assert sources_of(text, root) == first, text
    for text in (ONE.replace("1", "3"), ONE.replace("'a'", "'b'"), ONE.replace("if x", "if y")):
        assert sources_of(text, root) != first, text


def test_threads_may_ask_for_sources_at_once() -> None:
    """Python 3.11's parser fails where two threads use it: a sweep asks from two."""
    text = Path(code.__file__).read_bytes() * 20
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda _: code._Code(text).body, range(8))
    assert len(set(found)) == 1


def test_sources_are_those_of_what_plays(root: Path) -> None:
    first = sources_of(ONE, root)
    for name in ("theory.py", "sweeps/sweep.py", "analysis/tune.py", "learners2.py"):
        assert sources_of("a = 1", root, name) == first, name
    assert sources_of("a = 1", root, "learners/new.py") != first


@pytest.fixture
def copied(root: Path) -> Path:
    """The package itself, in a place where it can be changed."""
    return Path(shutil.copytree(Path(jb.__file__).parent, root, dirs_exist_ok=True))


def changed(file: Path, old: str, new: str) -> str:
    text = file.read_text(encoding="utf-8")
    assert old in text
    return sources_of(text.replace(old, new, 1), file.parent, file.name)


def test_words_and_what_does_not_play_leave_the_digest_of_the_package_alone(copied: Path) -> None:
    code.sources.cache_clear()
    first = code.sources()
    assert changed(copied / "learners/exp3.py", "\nclass DAda", "\n# Why.\nclass DAda") == first
    assert changed(copied / "ops.py", '"""', '"""Other words. ') == first
    for file in sorted(set(copied.rglob("*.py")) - {copied / one for one in code.files()}):
        file.write_text("number = 4\n")
    assert not code.decides("jaxbio.sweeps.moments")
    assert sources_of("number = 4", copied, "theory.py") == first
    shutil.rmtree(copied / "sweeps")
    assert sources_of("number = 4", copied, "theory.py") == first


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("learners/feeding.py", "+ 1 - count(", "+ 2 - count("),
        ("learners/estimates.py", "6.58", "6.59"),
        ("checks/__init__.py", "0", "1"),
        ("environment/delays.py", "import jax.numpy as jnp", "import numpy as jnp"),
        ("learners/ucb.py", "from jaxbio.trees import ", "from jaxbio.ops import "),
    ],
)
def test_what_plays_changes_the_digest_of_the_package(
    copied: Path, name: str, old: str, new: str
) -> None:
    code.sources.cache_clear()
    first = code.sources()
    assert changed(copied / name, old, new) != first


def test_a_move_leaves_the_digest_of_the_package_alone(copied: Path) -> None:
    """A learner into a folder of another package, and a module of the root into a folder."""
    code.sources.cache_clear()
    first = code.sources()
    moves = {"learners.exp3": "environment.other.softmax", "trees": "engine.other.leaves"}
    for old, new in moves.items():
        place = copied.joinpath(*new.split(".")).with_suffix(".py")
        place.parent.mkdir()
        (place.parent / "__init__.py").write_text('"""A new folder."""\n')
        shutil.move(copied.joinpath(*old.split(".")).with_suffix(".py"), place)
    for file in copied.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for old, new in moves.items():
            text = text.replace(f"from jaxbio.{old} import", f"from jaxbio.{new} import")
        file.write_text(text, encoding="utf-8")
    code.sources.cache_clear()
    assert code.sources() == first


def test_a_search_depends_on_more(root: Path) -> None:
    sources_of(ONE, root)
    made = []
    for text in ("a = 1", "a = 2", "a = 1  # one"):
        sources_of(text, root, "analysis/tune.py")
        made.append(code.sources("analysis.tune"))
    assert made[0] == made[2] != made[1]


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


def test_a_class_is_the_same_after_it_was_pickled() -> None:
    """Which leaves a note in it."""

    class Plain:
        pass

    before = parts("x", Plain())
    copyreg._slotnames(Plain)  # type: ignore[attr-defined]
    assert "__slotnames__" in vars(Plain)
    assert parts("x", Plain()) == before
