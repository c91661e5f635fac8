"""Parts of the user's own on a command line or in a file: module:name, or module:name:options."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from jaxbio import checks
from jaxbio.checks import names


class Own(NamedTuple):
    """What was written. text: the whole; options: what stands after the second colon."""

    text: str
    module: str
    name: str
    options: str


class Kind(NamedTuple):
    """What a part must be. what: it is called in messages; wanted: it has to be; is_one: is this
    an object of the kind? check: raises where it is not, with the name for the message first.
    """

    what: str
    wanted: str
    is_one: Callable[[Any], bool]
    check: Callable[[str, Any], Any]


@contextmanager
def about(what: str, text: str) -> Iterator[None]:
    """An error inside begins with what was written where."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{what} {checks.shown(text)}: {error}") from error


def parsed(text: str, known: Iterable[str]) -> Own | None:
    """None where the text begins with a name that is known, or does not have the form."""
    module, _, rest = text.partition(":")
    name, _, options = rest.partition(":")
    if not (module and name.isidentifier()) or names.in_any_case(module, known) in known:
        return None
    return Own(text, module, name, options)


def imported(own: Own, what: str) -> Any:
    """What has that name in that module, which is looked for in the current folder first."""
    shown = checks.shown(own.text)
    sys.path.insert(0, "")
    if own.module not in sys.modules:
        importlib.invalidate_caches()  # it may have been written just now
    try:
        module = importlib.import_module(own.module)
    except Exception as error:  # no such module, or whatever its own code raises
        said = error if isinstance(error, ModuleNotFoundError) else repr(error)
        raise ValueError(f"{what} {shown} cannot be imported: {said}") from error
    finally:
        sys.path.remove("")
    if not hasattr(module, own.name):
        near = names.suggestion(own.name, [one for one in vars(module) if one[:1] != "_"])
        raise ValueError(f"{what} {shown}: module {own.module!r} has no {own.name!r}{near}")
    return getattr(module, own.name)


def made(
    own: Own, kind: Kind, numbers: Iterable[Any], options: Mapping[str, Any]
) -> tuple[Any, bool]:
    """The part, and whether it was ready: an object of the module's, and not one that a class or a
    function of the module's makes of these options.
    """
    found = imported(own, kind.what)
    numbers, shown = tuple(numbers), checks.shown(own.text)
    if not isinstance(found, type) and kind.is_one(found):
        if numbers or options:
            raise ValueError(
                f"{kind.what} {shown}: {own.name!r} is made already, so it has no options"
            )
        return found, True
    maker(own, kind)
    with about(kind.what, own.text):
        _check_options(own.name, found, options)
        try:
            result = found(*numbers, **options)
        except Exception as error:  # of the user's code
            if not isinstance(error, ValueError | TypeError):
                error.add_note(f"raised by {own.text}")
            raise
        return kind.check(f"what {own.name!r} makes", result), False


def maker(own: Own, kind: Kind) -> Callable[..., Any]:
    """The class or the function of that name."""
    found = imported(own, kind.what)
    if not callable(found):
        raise TypeError(
            f"{kind.what} {checks.shown(own.text)} must be {kind.wanted}, but it is "
            f"{checks.shown(found)}"
        )
    return found


def _check_options(name: str, make: Callable[..., Any], options: Mapping[str, Any]) -> None:
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):  # written in C: it will say itself what it does not know
        return
    checks.options(name, dict(options), signature)
