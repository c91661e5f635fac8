"""Malformed calls and command lines by the thousand: each is accepted, or refused in clear words.

A refusal of a call is a ValueError or a TypeError (a MemoryError where the value is fine but too
large for the machine) that names the argument. A refusal of a command line is one line and exit
code 2. Nothing is played: every game needs keys, and here asking for one is the sign that the front
door let a call pass.

Another seed: JAXBIO_FUZZ_SEED=7 pytest tests/properties/test_fuzz.py; more calls:
JAXBIO_FUZZ_CALLS=20000.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import decimal
import fractions
import inspect
import io
import os
import random
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import jaxbio as jb
from jaxbio import checks, plot, rng
from jaxbio.cli import main as cli
from jaxbio.environment.instances import ENVIRONMENTS
from jaxbio.learners.registry import LEARNERS
from jaxbio.studies import parsing

SEED = int(os.environ.get("JAXBIO_FUZZ_SEED", "20230715"))
CALLS = int(os.environ.get("JAXBIO_FUZZ_CALLS", "3000"))
LINES = CALLS // 6
LARGE = 10**5  # from here on an accepted number of resamples would take its time
EVENTS = {
    "shown": [1, 2, 3, 4], "arm": list("abab"), "seen": [5, 6, 6, 5], "cost": [0, 1, 1, 0],
    "known": [2, 3, None, 9],
}  # fmt: skip
COLUMNS: dict[str, Any] = {
    "time": "shown",
    "action": "arm",
    "state": "seen",
    "loss": "cost",
    "arrived": "known",
}


class Accepted(BaseException):
    """The front door let a call pass."""


class Unspeakable:
    """Has no words for itself."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


@jb.pytree
class Half:
    """A learner without `learn`."""

    def init(self, known: Any) -> None: ...

    def act(self, state: Any, t: Any, u: Any) -> None: ...


def _endless() -> Any:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def values() -> list[Any]:
    """What an argument may be by mistake, and a few values that are right somewhere."""
    return [
        None, True, False, ..., NotImplemented, object(), Unspeakable(), type, int, len,
        lambda: 1, lambda t: "word", lambda *_, **__: None, jb.UCB1, jb.UCB1(), Half(), Half,
        0, 1, 2, 3, 7, -1, -(2**31), 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**400, -(10**400),
        10**5000, 0.0, -0.0, 0.5, 1.5, -0.5, 1e-300, 5e-324, 1e300, -1e300, float("nan"),
        float("inf"), float("-inf"), 1j, complex(1, 0),
        "", " ", "abc", "0.1", "50", "nan", "\0", "\n", "é\ud800", "x" * 5000, b"50",
        bytearray(b"1"), memoryview(b"12"),
        fractions.Fraction(1, 3), fractions.Fraction(10**400, 3), fractions.Fraction(4, 2),
        decimal.Decimal("0.5"), decimal.Decimal("NaN"), decimal.Decimal(10) ** 400,
        datetime.datetime(2023, 7, 15), datetime.timedelta(1), np.datetime64("2023-07-15"),
        np.timedelta64(5, "D"), np.bool_(True), np.str_("50"), np.float16(0.5), np.float32("nan"),
        np.int8(-3), np.uint64(2**64 - 1), np.longdouble("0.25"), np.complex64(1j), np.void(b"ab"),
        np.array("50"), np.array("abc"), np.array(b"50"), np.array(None), np.array(True),
        np.array(2), np.array(0.5), np.array(1j), np.array(np.nan), np.array("2023", "M8[D]"),
        np.array([]), np.zeros((0, 3)), np.zeros((2, 0)), np.zeros(3), np.ones((2, 2)),
        np.ones((2, 3, 4)), np.full((2, 2), 0.5), np.array(["a", "b"]), np.array([1, None]),
        np.array([1j, 2]), np.array(["2023"], "M8[D]"), np.array([1, 2]), np.array([0.5, np.inf]),
        np.array([2**63], np.uint64), np.zeros(2, [("a", int)]), np.ma.masked,
        jnp.zeros(()), jnp.int32(3), jnp.float32(0.5), jnp.zeros((1,)), jnp.ones((3, 3)),
        jnp.zeros((2, 2), bool), jnp.array(1j), jnp.bfloat16(0.5), jax.random.key(0),
        jax.random.split(jax.random.key(0)), jax.random.key(0, impl="rbg"), jax.random.PRNGKey(0),
        [], (), {}, set(), [None], [1, 2], [2, 1], [1, 1], [0.5], [[]], [[1, 2], [3]], [[0.5, 0.5]],
        ["a"], [True, False], [10**400], [float("nan")], [1, "2"], (1, 2), (0, 2), (2, 1), {1, 2},
        {"a": 1}, {"a": None}, {"a": jb.UCB1()}, {"a": jb.UCB1(), "b": jb.UCB1(1.0)}, {1: 2},
        {"horizon": 3}, {"a": [1, 2]}, {"a": "bc"}, {"a": []}, range(3), range(0), iter([1, 2]),
        (x for x in "ab"), frozenset({0.5}), _endless(), _deep(40), _deep(3000),
        [np.array("50")], [object()], [[["x"]]], slice(1, 2), Path("x"), Path("\0"),
        re.compile("x"),
        ValueError("x"), sys, xr.Dataset(), xr.DataArray([1.0]), jb.FixedDelay(3), jb.FixedDelay,
        jb.UniformDelay(0, 5), jb.make_environment("paper-stochastic"),
        jb.make_environment("paper-utility"), jb.BernoulliLosses((0.2, 0.8)),
        jb.StochasticMapping(((0.5, 0.5), (0.2, 0.8))), jb.TableDelay([1, 2]),
        jb.TableMapping([[0, 1]]), jb.TableLosses([[0.0, 1.0]]), jb.BetaLosses((0.2, 0.8), 3),
    ]  # fmt: skip


class Target(NamedTuple):
    """function: called with `good` but for what is fuzzed, one of `names`."""

    name: str
    function: Callable[..., Any]
    good: dict[str, Any]
    names: tuple[str, ...]


def target(name: str, function: Callable[..., Any], /, **good: Any) -> Target:
    parameters = inspect.signature(function).parameters.values()
    plain = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    return Target(name, function, good, tuple(dict.fromkeys([*plain, *good])))


def named(make: Callable[..., Any], name: str, build: Callable[..., Any]) -> Target:
    """A builder of names with the options of one of its names."""
    known = tuple(inspect.signature(build).parameters)
    return Target(f"{make.__name__}({name!r})", make, {"name": name}, ("name", *known, "unheard"))


def _of_a_sweep() -> xr.Dataset:
    regret = np.array([[[1.0, 2.0], [2.0, 3.0]], [[2.0, 4.0], [1.0, 5.0]]])
    names = {"learner": ["a", "b"], "delay": [3, 5], "run": [0, 1]}
    return xr.Dataset({"final_regret": (tuple(names), regret)}, names, {"paired": "True"})


def targets() -> list[Target]:
    """Every public callable that takes arguments of a user's."""
    P, theta = ((0.5, 0.5), (0.2, 0.8)), (0.2, 0.8)
    env, base = jb.make_environment("paper-stochastic"), jb.UCB1()
    game = {"env": env, "learner": base, "seed": 0, "horizon": 20}
    grid: dict[str, Any] = {"environment": env, "learners": {"a": base}, "axes": {}, "horizon": 20,
                            "progress": False}  # fmt: skip
    flat = np.zeros((1, 2))
    log = jb.read_log(EVENTS, **COLUMNS, progress=False)
    result = jb.Result(np.array([10, 20]), flat, flat, {}, lambda: flat)
    found = [
        target("StochasticMapping", jb.StochasticMapping, P=P),
        target("AlternatingMapping", jb.AlternatingMapping, P_phases=(P, P)),
        target("TableMapping", jb.TableMapping, states=[[0, 1]]),
        target("BernoulliLosses", jb.BernoulliLosses, theta=theta),
        target("ConstantLosses", jb.ConstantLosses, theta=theta),
        target("BetaLosses", jb.BetaLosses, theta=theta, concentration=3),
        target("EventLosses", jb.EventLosses, share=theta, value=theta, absent=1.0),
        target("BlockBernoulliLosses", jb.BlockBernoulliLosses, theta=theta, groups=[0, 1],
               block=2),
        target("TableLosses", jb.TableLosses, values=[theta]),
        target("FixedDelay", jb.FixedDelay, d=3),
        target("LaplaceDelay", jb.LaplaceDelay, location=5, scale=2),
        target("GeometricDelay", jb.GeometricDelay, mean=5),
        target("LogNormalDelay", jb.LogNormalDelay, median=5, spread=1),
        target("ParetoDelay", jb.ParetoDelay, minimum=5, tail=1.2),
        target("NegativeBinomialDelay", jb.NegativeBinomialDelay, mean=5, dispersion=2),
        target("UniformDelay", jb.UniformDelay, low=2, high=5),
        target("TableDelay", jb.TableDelay, delays=[1, 2]),
        target("EmpiricalDelay", jb.EmpiricalDelay, probabilities=[0.5, 0.2], never=0.3),
        target("EmpiricalDelay.from_delays", jb.EmpiricalDelay.from_delays, delays=[1, 2],
               states=[0, 1], num_states=2),
        target("EmpiricalDelay.from_survival", jb.EmpiricalDelay.from_survival, survival=[0.5]),
        target("sweep_windows", jb.sweep_windows, env=env, learners={"a": base}, windows=[3],
               horizon=20, absent=1.0, runs=2, progress=False),
        target("fit_delays", jb.fit_delays, came=[1, 2], waiting=[3], level=0.9),
        target("law_by_state", jb.law_by_state, fits=[jb.fit_delays([1, 2])]),
        target("DelayFit.law", jb.fit_delays([1, 2]).law, conversions=True, later=0.1),
        target("fit", jb.fit, log=log, width=1),
        target("Fit.environment", jb.fit(log).environment),
        target("Fit.sample", jb.fit(log).sample, seed=0),
        target("play_log", jb.play_log, env=env, rows=20, seed=0),
        target("WindowedDelay", jb.WindowedDelay, law=jb.FixedDelay(3), window=5),
        target("Environment", jb.Environment, mapping=jb.StochasticMapping(P),
               losses=jb.BernoulliLosses(theta), delays=jb.FixedDelay(3)),
        target("Environment.padded", env.padded, slots=5),
        target("sample_world", jb.sample_world, env=env, seed=0, run=0, horizon=20),
        *(target(kind.__name__, kind) for kind in (jb.DAdaExp3, jb.Exp3, jb.NSDUCRL2, jb.TsallisINF,
          jb.UCB1, jb.ThompsonSampling, jb.SuccessiveElimination, jb.HindsightExp3,
          jb.HindsightTsallis, jb.StateThompson)),
        *(target(kind.__name__, kind, base=base) for kind in (jb.BOLD, jb.MetaBIO, jb.MetaAdaBIO,
          jb.QPMD)),
        target("KnownLosses", jb.KnownLosses, base=base, theta=theta),
        target("Restarting", jb.Restarting, base=base, period=9),
        *(named(jb.make_learner, name, build) for name, build in LEARNERS.items()),
        *(named(jb.make_environment, name, build) for name, build in ENVIRONMENTS.items()),
        target("ring_sizes", jb.ring_sizes, env=env, horizon=20),
        target("rollout", jb.rollout, **game),
        target("trajectory", jb.trajectory, **game),
        target("simulate", jb.simulate, env=env, learner=base, horizon=20, progress=False),
        target("sweep", jb.sweep, **grid),
        Target("plan_sweep", jb.plan_sweep, grid, tuple(inspect.signature(jb.sweep).parameters)),
        target("tune", jb.tune, env=env, learner=jb.UCB1, start={"exploration": 2.0}, horizon=20,
               progress=False),
        target("compare", jb.compare, results={"a": [1.0, 2.0], "b": [2.0, 4.0]}, resamples=20),
        target("compare_points", jb.compare_points, data=_of_a_sweep(), resamples=20),
        target("regret_curves", plot.regret_curves, results={"a": result}),
        target("advise", jb.advise, actions=3, states=2, horizon=20, delays=jb.FixedDelay(3),
               progress=False),
        target("phase_diagram", jb.phase_diagram, states=[2, 3], delays=[3], progress=False),
        target("worth_diagram", jb.worth_diagram, states=[2, 3], delays=[3], progress=False),
        target("play_regimes", jb.play_regimes, horizon=20, delay=3, progress=False),
        target("play_beyond", jb.play_beyond, horizon=20, delay=3, changes=[0, 1],
               progress=False),
        target("violations", jb.violations, kinds=["turning"], strengths=[0, 1], horizon=20,
               delay=3, progress=False),
        target("contest", jb.contest, classes={"a": {"b": env}}, entrants={"c": base, "d": base},
               horizon=20, runs=2, training=2, progress=False),
        target("check_guarantees", jb.check_guarantees, horizons=[20], progress=False),
        target("measure_rates", jb.measure_rates, progress=False),
        target("read_log", jb.read_log, table=EVENTS, **COLUMNS, progress=False),
        target("example_log", jb.example_log, rows=20),
        target("Shop", jb.Shop),
    ]  # fmt: skip
    sizes = {"horizon": 20, "num_actions": 3, "num_states": 2, "delays": 3, "delta": 0.1,
             "delay": 3}  # fmt: skip
    for name in jb.theory.__all__:
        function = getattr(jb.theory, name)
        if callable(function) and not isinstance(function, type):
            wanted = inspect.signature(function).parameters
            found.append(target(name, function, **{k: v for k, v in sizes.items() if k in wanted}))
    return found


class Call(NamedTuple):
    target: Target
    changes: dict[str, Any]

    def __str__(self) -> str:
        given = ", ".join(f"{k}={checks.shown(v)}" for k, v in self.changes.items())
        return f"{self.target.name}({given})"


def fuzzed_calls(seed: int, count: int) -> Iterator[Call]:
    """One argument wrong, sometimes two."""
    draw, pool, known = random.Random(seed), values(), targets()
    for i in range(count):
        chosen = known[i % len(known)]
        wrong = draw.sample(chosen.names, min(len(chosen.names), 1 + (draw.random() < 0.2)))
        changes = {name: draw.choice(pool) for name in wrong}
        resamples = changes.get("resamples")
        if isinstance(resamples, int | float) and resamples > LARGE:
            continue
        yield Call(chosen, changes)


def _called(name: str) -> str:
    """The pattern of a name: one of several learners, or an axis, may be meant."""
    return r"\b(axes|axis)" if name == "axes" else rf"\b{name.removesuffix('s')}"


def complaint(call: Call) -> str | None:
    """What is wrong with how a call ends; None where nothing is."""
    try:
        call.target.function(**{**call.target.good, **call.changes})
    except Accepted:
        return None
    except (ValueError, TypeError, MemoryError) as error:
        words = " ".join([str(error), *getattr(error, "__notes__", [])])
        others = [name for name in call.target.names if len(name) > 3]  # it does not fit to these
        if any(re.search(_called(name), words) for name in [*call.changes, *others]):
            return None
        return f"{call}: names no argument: {type(error).__name__}: {words[:300]}"
    except OSError as error:
        return None if error.filename else f"{call}: names no file: {error}"
    except Exception as error:
        return f"{call}: {type(error).__name__}: {str(error)[:300]}"
    return None


@pytest.fixture
def front_door(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is played, and nothing is written but into a folder of the test."""

    def key(seed: Any, *_: Any, **__: Any) -> Any:
        checks.seed(seed)
        raise Accepted

    def accepted(*_: Any, **__: Any) -> Any:
        raise Accepted

    monkeypatch.setattr(rng, "run_key", key)
    monkeypatch.setattr(rng, "run_keys", key)
    monkeypatch.setattr(sys.modules["jaxbio.sweeps.sweep"], "play_all", accepted)
    monkeypatch.setattr(subprocess, "run", accepted)
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    monkeypatch.setattr(cli, "parser", cache(cli.parser))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("front_door")
def test_malformed_calls_are_refused_in_words() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, about values that are refused next
        complaints = [complaint(call) for call in fuzzed_calls(SEED, CALLS)]
    assert [one for one in complaints if one] == []


# --- command lines

NUMBERS = (
    "0", "1", "2", "3", "7", "-1", "0.5", "1.5", "nan", "inf", "1e400", "1e-400", "2147483647",
    "2147483648", "4294967296", "9223372036854775808", "9" * 400, "9" * 4200, "9" * 5000, "1_0",
)  # fmt: skip
WORDS = (
    "", " ", "abc", "0", "-1", "1.5", "-inf", "0x10", "1,2", "None", "True", "[]", "é",
    "\ud800", "a\nb", "a\0b", "x" * 5000, "/dev/null", "/dev/null/x",
    "/proc/none/x", "x.png", "/dev/null/x.png", ".", "..", "x/../y", "*", "$(x)", "%s", "{}",
)  # fmt: skip
SPECS = (
    "metabio", "metabio:", ":", "metabio:delta", "metabio:=1", "metabio:delta=", "metabio:delta=2",
    "metabio:delta=0.1,delta=0.2", "metabio:delta=nan", "metabio:delta=1e400", "metabio:speed=1",
    "metabio:delta=0.1,,", "metabio:base=ucb1", "ucb1:exploration=" + "9" * 400, "ucb1:a b=1",
    "nsd-ucrl2:window=2147483648", "nsd-ucrl2:window=1.5", "thompson:proposals=1e9", "metabio::",
    "metabio:tuning=3", "metabio:skipping=1", "bold-exp3:copies=0", "tsallis-inf:scale=None",
    "random", "utility", "os:system", "os:nothing", "nowhere:x", "json:dumps", "builtins:int",
    "..:x", ".:x", "a b:c", "a:b:c", "math:pi", ":x", "x:", "jaxbio:UCB1", "\0:x", "sys.path:x",
    "5", "laplace:1", "laplace:1,2", "laplace:1,2,3", "laplace:nan,1", "laplace:a,b", "uniform:5,2",
    "uniform:0,5", "geometric:-1", "geometric:" + "9" * 400, "fixed:", "fixed:5", "fixed:1.5",
    "fixed:2147483648", "normal:3", "laplace:",
    "lognormal:5,1", "pareto:2,0", "negbinomial:1e6,0.001", "empirical:", "empirical:none.csv",
    "exploration=2", "exploration=0", "exploration=x",
    "exploration=2,exploration=3", "=", "delta=0.1", "speed=1", "exploration=1e-400",
    "states", "delays", "delay", "horizon", "actions", "name", "best",
)  # fmt: skip

GOOD = {
    "run": ["paper-stochastic", "ucb1"],
    "tune": ["paper-stochastic", "ucb1", "--param", "exploration=2"],
    "theory": ["--actions", "3", "--states", "2", "--horizon", "20"],
    "advise": ["--actions", "3", "--states", "2", "--horizon", "20"],
    "sweep": ["grid.toml"],
    "bench": [],
    "log check": ["log.csv", *(word for role, name in COLUMNS.items() for word in
                  (f"--{role}", name))],
    "log example": ["out.csv", "--rows", "5"],
}  # fmt: skip
FILES = {"log check": {"log.csv": pd.DataFrame(EVENTS).to_csv(index=False)}}
TOML = """
horizon = {horizon}
runs = {runs}
seed = {seed}
rounds = {rounds}
keep = {keep}
quantiles = {quantiles}
paired = {paired}
store = {store}
output = {output}
environment = {environment}
learners = {learners}
axes = {axes}
"""
INNER = {
    "environment": "{{name = {name}, states = {states}, delay = {delay}}}",
    "learners": "{{a = {{name = {learner}, delta = {delta}}}}}",
    "axes": "{{place = {axis}}}",
}
VALID = {
    "horizon": "20", "runs": "3", "seed": "0", "rounds": "5", "keep": '"finals"',
    "quantiles": "[0.5]", "paired": "true", "store": '"store"', "output": '"out.nc"',
    "name": '"paper-utility"', "states": "4", "delay": '"$place"', "learner": '"metabio"',
    "delta": "0.1", "axis": "[3, 4]",
}  # fmt: skip
LITERALS = (
    "0", "1", "-1", "2.5", "nan", "inf", "true", '""', '"abc"', '"50"', '"$place"', '"$other"',
    '"$"', "[]", "[1, 2]", "[[1], [2, 3]]", '["a"]', "{}", "{a = 1}", "2023-07-15",
    "2023-07-15T10:00:00", "9223372036854775807", "9" * 400, "1e400", '"laplace:$place,2"',
    '"laplace:$place"', "{a = {}}", "{a = {name = 1}}", "{a = [1, 2]}", "{name = 1}",
    "{place = []}", '"\\u0000"', '"."', '"metabio:delta=0.2"', "[" * 300 + "]" * 300,
    "[" * 3000 + "]" * 3000, "[true, 1]", '[1, "a"]', "[1, 1]",
)  # fmt: skip


class Line(NamedTuple):
    """words: of a command line; about: one of these must be named where it is refused."""

    words: list[str]
    about: list[str]
    files: dict[str, str]


def options_of(command: str) -> list[argparse.Action]:
    parser: Any = cli.parser()
    for word in command.split():
        parser = kinds_of(parser)[word]
    skipped = ("help", "json", "quiet", "debug")
    return [a for a in parser._actions if a.dest not in skipped]


def kinds_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands of a parser, or of a group of commands; none of a command."""
    return {
        name: kind
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, kind in action.choices.items()
    }


def commands() -> list[str]:
    """Those of a group with its name before theirs."""
    found = []
    for name, kind in kinds_of(cli.parser()).items():
        found += [f"{name} {inner}" for inner in kinds_of(kind)] or [name]
    return [name for name in found if name != "list"]


def fuzzed_lines(seed: int, count: int) -> Iterator[Line]:
    draw, known = random.Random(seed), commands()
    options = {command: options_of(command) for command in known}
    for i in range(count):
        command = known[i % len(known)]
        if command == "sweep" and draw.random() < 0.95:
            yield _fuzzed_file(draw)
            continue
        name = command.split()
        words = [*name, *GOOD.get(command, [])]
        about = words[1:] if command == "sweep" else []  # its file is not there
        for option in draw.sample(
            options[command], min(len(options[command]), 1 + (draw.random() < 0.2))
        ):
            given = _given(draw, option)
            about += [option.dest, *given, *(checks.shown(word)[1:-1] for word in given)]
            if option.option_strings:
                words += [option.option_strings[0], *given]
            else:
                words = [*name, *given, *words[len(name) + len(given) :]]
        others = [option.dest for option in options[command] if len(option.dest) > 3]
        yield Line(words, about + others, FILES.get(command, {}))  # it may not fit to these


def _given(draw: random.Random, option: argparse.Action) -> list[str]:
    if option.nargs == 0:
        return []
    count = option.nargs if isinstance(option.nargs, int) else 1
    if option.nargs in ("+", "*"):
        count = draw.choice([1, 2, 3])
    if option.choices and draw.random() < 0.5:
        return [draw.choice(list(option.choices))] * count
    pools = (
        [NUMBERS, NUMBERS, WORDS]
        if option.type in (parsing.whole, float)
        else [WORDS, SPECS, SPECS]
    )
    return [draw.choice(draw.choice(pools)) for _ in range(count)]


def _fuzzed_file(draw: random.Random) -> Line:
    name, literal = draw.choice([*VALID, *INNER]), draw.choice(LITERALS)
    known = VALID | {name: literal}
    tables = {table: inner.format_map(known) for table, inner in INNER.items()}
    text = TOML.format_map(known | tables | {name: literal})
    about = [name, "place", "TOML", "axis" if name == "axes" else name]
    return Line(["sweep", "fuzz.toml"], about, {"fuzz.toml": text})


def complaint_of_line(line: Line) -> str | None:
    out, err = io.StringIO(), io.StringIO()
    shutil.rmtree("store", ignore_errors=True)  # of another sweep
    for name, text in line.files.items():
        Path(name).write_text(text, encoding="utf-8")
    shown = f"{[word[:60] for word in line.words]} {list(line.files.values())}"
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main([*line.words, "--quiet"])
    except Accepted:
        return None
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        return f"{shown}: {type(error).__name__}: {str(error)[:300]}"
    said = err.getvalue().strip("\n")
    if code == 0:
        return None
    if len(said.splitlines()) != 1:
        return f"{shown}: not one line: {said[:300]!r}"
    if code == 1 and re.search(r"Errno \d+\] .*: '", said):  # a file that cannot be, by its name
        return None
    if code != 2 and not (code == 1 and re.search("more than|out of memory", said)):
        return f"{shown}: exit code {code}: {said[:300]}"
    plain = said.lower().replace("-", "_")
    known = [word.lower().replace("-", "_") for word in line.about]
    if not any(word.removesuffix("s") in plain for word in known if len(word) > 1):
        return f"{shown}: names no option: {said[:300]}"
    return None


@pytest.mark.usefixtures("front_door")
def test_malformed_command_lines_are_refused_in_one_line() -> None:
    complaints = [complaint_of_line(line) for line in fuzzed_lines(SEED, LINES)]
    assert [one for one in complaints if one] == []
