"""Problems, learners and delays as they are written on a command line or in a file."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

from jaxbio import checks
from jaxbio.environment.delays import FixedDelay, GeometricDelay, LaplaceDelay, UniformDelay
from jaxbio.environment.environment import Environment
from jaxbio.environment.instances import make_environment
from jaxbio.fingerprint import digest, parts
from jaxbio.lab.families import FAMILIES
from jaxbio.learners.registry import make_learner

DELAYS: dict[str, Callable[..., Any]] = {
    "fixed": FixedDelay,
    "laplace": LaplaceDelay,
    "geometric": GeometricDelay,
    "uniform": UniformDelay,
}


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
    numbers = [value(number) for number in rest.split(",")]
    wanted = list(inspect.signature(build).parameters)
    if len(numbers) != len(wanted):
        raise ValueError(
            f"delay {text!r} must have {len(wanted)} numbers, {kind}:{','.join(wanted)}, "
            f"but has {len(numbers)}"
        )
    return build(*numbers)


def options(text: str) -> dict[str, Any]:
    """name=value,name=value."""
    pairs = {}
    for item in filter(None, text.split(",")):
        name, equals, given = item.partition("=")
        if not equals:
            raise ValueError(f"an option must be name=value, but got {item!r}")
        pairs[name.strip()] = value(given.strip())
    return pairs


def environment(name: str, given: dict[str, Any], delay: str | None) -> Environment:
    """A problem by name."""
    chosen = {} if delay is None else {"delays": delays(delay)}
    return make_environment(name, **given, **chosen)


def learner(text: str) -> tuple[str, Any]:
    """name, or name:option=value,...: (label, learner)."""
    name, _, given = text.partition(":")
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
        raise ValueError(f"a family must be {known} or module:name, but got {text!r}")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        raise ValueError(f"{text!r}: {error}") from error
    finally:
        sys.path.remove("")
    if not callable(found):
        raise ValueError(f"{text!r}: module {module!r} has no function {name!r}")
    return found
