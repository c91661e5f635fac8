"""Problems, learners, delays and families as they are written on a command line or in a file.

A name, with options after a colon: metabio:delta=0.05. In the place of the name may stand
module:name of a part of the user's own: mine:EpsilonGreedy:epsilon=0.2. This is the one place that
finds out what is meant.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from jaxbio import checks
from jaxbio.core import Delays
from jaxbio.engine.code.fingerprint import digest, parts
from jaxbio.environment.empirical import EmpiricalDelay
from jaxbio.environment.environment import Environment, check_environment, check_part
from jaxbio.environment.instances import environment_names, make_environment
from jaxbio.environment.laws import DELAYS
from jaxbio.learners.registry import learner_names, make_learner
from jaxbio.studies import own
from jaxbio.studies.families import FAMILIES
from jaxbio.studies.own import Kind, Own, about

OBSERVED = "empirical"  # the law of the delays in a file


def _checked_environment(name: str, value: Any) -> Environment:
    check_environment(value, name)
    return value


def _checked_law(name: str, value: Any) -> Any:
    check_part(name, value, Delays, "FixedDelay(50)")
    return value


LEARNER = Kind(
    "learner",
    "a learner (with init, act and learn), or a class or a function that makes one",
    lambda one: checks.has(one, "learn") and checks.has(one, "act"),
    checks.learner,
)
PROBLEM = Kind(
    "environment",
    "an Environment, or a function that makes one",
    lambda one: isinstance(one, Environment),
    _checked_environment,
)
LAW = Kind(
    "delay",
    "a law of delays such as FixedDelay(50), or a class or a function that makes one",
    lambda one: checks.has(one, "longest"),
    _checked_law,
)
FAMILY = Kind("family", "a function (actions, states, delays)", lambda one: False, lambda _, x: x)


def value(text: str) -> Any:
    """A number, True, False or None where the text is one, else the text."""
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def options(text: str) -> dict[str, Any]:
    """name=value,name=value."""
    items = [item.partition("=") for item in filter(None, text.split(","))]
    for name, equals, given in items:
        if not (name.strip() and equals):
            raise ValueError(f"an option must be name=value, but got {name + equals + given!r}")
    return settings((name.strip(), given.strip()) for name, _, given in items)


def settings(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """name -> value, of pairs as they are written."""
    found: dict[str, Any] = {}
    for name, text in pairs:
        if name in found:
            raise ValueError(f"option {name!r} is set twice, to {found[name]!r} and {text!r}")
        if name == "name":
            raise ValueError(f"'name' is no option that can be set, but got name={text!r}")
        found[name] = value(text)
    return found


def _together(written: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Options after a colon, and those that stand elsewhere."""
    for both in sorted(written.keys() & given.keys()):
        raise ValueError(f"option {both!r} is set twice, to {written[both]!r} and {given[both]!r}")
    return written | given


# --- learners


def learner(text: str, given: dict[str, Any] | None = None) -> tuple[str, Any]:
    """(label, learner). given: options beside those in the text."""
    mine = own.parsed(text, learner_names())
    name, _, written = text.partition(":")
    with about("learner", text):
        chosen = _together(options(written if mine is None else mine.options), given or {})
        if mine is None:
            return text, make_learner(name, **chosen)
    return text, own.made(mine, LEARNER, (), chosen)[0]


def learner_maker(text: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """What makes a learner of further options, and those that are written: they are fixed."""
    mine = own.parsed(text, learner_names())
    name, _, written = text.partition(":")
    fixed = options(written if mine is None else mine.options)
    make = partial(make_learner, name) if mine is None else own.maker(mine, LEARNER)
    return partial(make, **fixed), fixed


# --- problems


def environment(text: str, given: dict[str, Any], delay: str | None) -> Environment:
    """A problem. delay: of its law, in the place of the problem's own."""
    mine = own.parsed(text, environment_names())
    name, _, written = text.partition(":")
    if mine is None:
        name = checks.name_of("environment name", name, environment_names())
    with about("environment", text):
        chosen = _together(options(written if mine is None else mine.options), given)
    if delay is not None and "delays" in chosen:
        raise ValueError("delays and the delay are one thing: set one of them")
    law = {} if delay is None else {"delays": delays(delay)}
    if mine is None:
        return make_environment(name, **chosen, **law)
    found = own.imported(mine, PROBLEM.what)
    if isinstance(found, Environment):
        ready, _ = own.made(mine, PROBLEM, (), chosen)
        return dataclasses.replace(ready, **law)
    return own.made(mine, PROBLEM, (), chosen | law)[0]


# --- laws of delays


def delays(text: str | int) -> Any:
    """50, or a law with its numbers: laplace:50,25, geometric:20, empirical:seen.csv, mine:Law."""
    kind, colon, rest = str(text).partition(":")
    known = (*DELAYS, OBSERVED)
    mine = own.parsed(str(text), known)
    if mine is not None:
        return _own_delays(mine)
    if not colon:
        if kind and isinstance(value(kind), str):
            raise ValueError(
                f"delay {checks.shown(text)} must be a number, or a law with its numbers such as "
                f"laplace:50,25 ({', '.join(known)}), or module:name"
            )
        kind, rest = "fixed", kind
    kind = checks.name_of("the law of the delay", kind, known)
    if kind == OBSERVED:
        with about("delay", str(text)):
            return EmpiricalDelay.from_delays(_observed(rest))
    return _law(str(text), kind, rest)


def _law(text: str, kind: str, rest: str) -> Any:
    """One of those with a name."""
    build = DELAYS[kind]
    numbers = [value(number.strip()) for number in rest.split(",")]
    wanted = list(inspect.signature(build).parameters)
    if len(numbers) != len(wanted):
        raise ValueError(
            f"delay {checks.shown(text)} must have {len(wanted)} numbers, "
            f"{kind}:{','.join(wanted)}, but has {len(numbers)}"
        )
    with about("delay", text):
        return build(*numbers)


def _own_delays(mine: Own) -> Any:
    """Options may also be numbers in order, as those of the laws with a name."""
    items = [item.strip() for item in filter(None, mine.options.split(","))]
    numbers = [value(item) for item in items if "=" not in item]
    named = options(",".join(item for item in items if "=" in item))
    return own.made(mine, LAW, numbers, named)[0]


def _observed(name: str) -> np.ndarray:
    """The delays of a file: one a line, perhaps after a line that says what they are."""
    file = checks.path("the file of delays", name)
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines()]
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is no text") from error
    numbered = [(i, value(line)) for i, line in enumerate(lines, 1) if line]
    if numbered and isinstance(numbered[0][1], str) and "," not in numbered[0][1]:
        del numbered[0]  # a title
    if not numbered:
        raise ValueError(f"{file} must have delays, one a line, but it has none")
    wrong = [(i, one) for i, one in numbered if not (type(one) in (int, float) and one >= 0
                                                     and one == one // 1)]  # fmt: skip
    for i, one in wrong[:1]:
        raise ValueError(
            f"{file} must have one delay a line, a whole number of rounds, but line {i} is {one!r}"
        )
    return np.array([one for _, one in numbered], float)


# --- families


def family(text: str) -> Any:
    """A name of `FAMILIES`, or a function of the user's."""
    known = checks.names.in_any_case(text, FAMILIES)
    if known in FAMILIES:
        return known
    mine = _own_family(text)
    chosen = options(mine.options)
    found = function(text)
    return partial(found, **chosen) if chosen else found


def function(text: str) -> Callable[..., Any]:
    """The function of the user's behind a family."""
    return own.maker(_own_family(text), FAMILY)


def _own_family(text: str) -> Own:
    mine = own.parsed(text, FAMILIES)
    if mine is None:
        known, near = ", ".join(FAMILIES), checks.names.suggestion(text, FAMILIES)
        got = checks.shown(text)
        raise ValueError(f"a family must be {known} or module:name, but got {got}{near}")
    return mine


# --- names of files and finished parts


def family_name(text: str) -> str:
    known = checks.names.in_any_case(text, FAMILIES)
    return known if known in FAMILIES else _with_code(_own_family(text), "family")


def learner_name(text: str) -> str:
    return _name(text, learner_names(), "learner")


def environment_name(text: str) -> str:
    return _name(text, environment_names(), "environment")


def delay_name(text: str) -> str:
    return _name(text, (*DELAYS, OBSERVED), "delay")


def _name(text: str, known: Iterable[str], what: str) -> str:
    """As it is written, with names as they are spelled."""
    mine = own.parsed(text, known)
    if mine is not None:
        return _with_code(mine, what)
    name, colon, rest = text.partition(":")
    return checks.names.in_any_case(name, known) + colon + rest


def _with_code(mine: Own, what: str) -> str:
    """For files and finished parts: a part of the user's has another name when its code changes."""
    code = digest(parts(what, own.imported(mine, what)))
    return f"{mine.text.replace(':', '-')}-{code[:8]}"
