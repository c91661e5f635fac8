"""Problems, learners and delays as they are written on a command line or in a file."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from jaxbio import checks
from jaxbio.engine.code.fingerprint import digest, parts
from jaxbio.environment.environment import Environment
from jaxbio.environment.instances import make_environment
from jaxbio.environment.laws import DELAYS
from jaxbio.learners.registry import make_learner
from jaxbio.studies.families import FAMILIES


@contextmanager
def about(what: str, text: str) -> Iterator[None]:
    """An error inside begins with what was written where."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{what} {checks.shown(text)}: {error}") from error


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


def delays(text: str | int) -> Any:
    """50, or a law with its numbers: laplace:50,25, geometric:20, uniform:0,100."""
    kind, colon, rest = str(text).partition(":")
    if not colon:
        kind, rest = "fixed", kind
    build = DELAYS[checks.choice("the law of the delay", kind, tuple(DELAYS))]
    numbers = [value(number.strip()) for number in rest.split(",")]
    wanted = list(inspect.signature(build).parameters)
    if len(numbers) != len(wanted):
        raise ValueError(
            f"delay {checks.shown(text)} must have {len(wanted)} numbers, "
            f"{kind}:{','.join(wanted)}, but has {len(numbers)}"
        )
    with about("delay", str(text)):
        return build(*numbers)


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


def environment(name: str, given: dict[str, Any], delay: str | None) -> Environment:
    """A problem by name."""
    if delay is not None and "delays" in given:
        raise ValueError("delays and the delay are one thing: set one of them")
    chosen = {} if delay is None else {"delays": delays(delay)}
    return make_environment(name, **given, **chosen)


def learner(text: str) -> tuple[str, Any]:
    """name, or name:option=value,...: (label, learner)."""
    name, _, given = text.partition(":")
    with about("learner", text):
        return text, make_learner(name, **options(given))


def family(text: str) -> Any:
    """A name of `FAMILIES`, or module:name of a function of the user's."""
    return text if text in FAMILIES else function(text)


def family_name(text: str) -> str:
    """For files and finished parts: one of the user's has another name when its code changes."""
    if text in FAMILIES:
        return text
    code = digest(parts("family", function(text)))
    return f"{text.replace(':', '-')}-{code[:8]}"


def function(text: str) -> Callable[..., Any]:
    """module:name of a function of the user's, looked for in the current folder first."""
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        known = ", ".join(FAMILIES)
        got = checks.shown(text)
        raise ValueError(f"a family must be {known} or module:name, but got {got}")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except Exception as error:  # no such module, or whatever its own code raises
        said = error if isinstance(error, ModuleNotFoundError) else repr(error)
        raise ValueError(f"family {checks.shown(text)} cannot be imported: {said}") from error
    finally:
        sys.path.remove("")
    if not callable(found):
        raise ValueError(f"family {checks.shown(text)}: module {module!r} has no function {name!r}")
    return found
