"""Names of learners, problems and laws: found in any case, with a suggestion where one is not."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

LONGEST = 60  # letters of a name that is worth a suggestion
PLAIN = re.compile(r"[a-z0-9][a-z0-9._+-]*")


def suggestion(value: Any, options: Iterable[Any]) -> str:
    """The option that was perhaps meant, as the end of a message; nothing where none is near."""
    if not isinstance(value, str) or len(value) > LONGEST:
        return ""
    texts = {one.lower(): one for one in options if isinstance(one, str)}
    near = difflib.get_close_matches(value.lower(), texts, 1)
    return f": did you mean {texts[near[0]]!r}?" if near else ""


def in_any_case(value: Any, options: Iterable[Any]) -> Any:
    """The option of this name, whatever letters are small or capital; else the value itself."""
    if not isinstance(value, str):
        return value
    return {str(one).lower(): one for one in reversed(list(options))}.get(value.lower(), value)


def register(
    table: dict[str, Callable[..., Any]],
    own: Collection[str],
    what: str,
    name: str,
    make: Callable[..., Any],
    replace: bool,
) -> None:
    """Add a name to a table. own: those that cannot be replaced."""
    if not isinstance(name, str) or not PLAIN.fullmatch(name):
        raise ValueError(
            f"{what} must be of small letters, digits and . _ + -, such as 'my-part', but got "
            f"{name!r}"
        )
    if name in own:
        raise ValueError(f"{what} {name!r} is one of jaxbio's own: choose another one")
    if name in table and not replace:
        raise ValueError(f"{what} {name!r} is taken: choose another one, or say replace=True")
    if not callable(make):
        raise TypeError(f"make must be a class or a function, but got {make!r}")
    try:
        inspect.signature(make)
    except (TypeError, ValueError):
        raise TypeError(
            f"make must say what its options are, but {make!r} has no signature"
        ) from None
    table[name] = make
