"""What code does and which names it uses, whatever its layout, its comments and its docstrings."""

from __future__ import annotations

import dis
import hashlib
import inspect
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

WAYS_TO_CALL = (  # flags that say how a function is called
    inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)  # fmt: skip
WORDS_OF_CLASSES = ("__doc__", "__firstlineno__")  # inside functions
SAYS_NOTHING = ("EXTENDED_ARG", "NOP")
GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


class Code(NamedTuple):
    """Of a function with those inside it.

    globals: names that it looks up in its module; names: those that it looks up in other things,
    and its constant strings; imports: (level, module), as after the dots of an import.
    """

    digest: str
    globals: frozenset[str]
    names: frozenset[str]
    imports: tuple[tuple[int, str], ...]


@lru_cache(maxsize=4096)
def read(code: CodeType) -> Code:
    """Read once: code never changes, a function that does gets another."""
    inner = [read(part) for part in code.co_consts if inspect.iscode(part)]
    does: list[Any] = [code.co_varnames[: _arguments(code)], code.co_freevars, code.co_cellvars]
    does += [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount]
    does += [code.co_flags & WAYS_TO_CALL, getattr(code, "co_exceptiontable", b"").hex()]
    found: set[str] = set()
    names: set[str] = set()
    imports: list[tuple[int, str]] = []
    before: list[Any] = [None, None]
    for one in dis.get_instructions(code):
        if one.opname in SAYS_NOTHING:
            continue
        if one.opname == "STORE_NAME" and one.argval in WORDS_OF_CLASSES:
            does.pop()  # what is stored there
            continue
        if one.opname in GLOBALS:
            found.add(one.argval)
        elif one.opname == "IMPORT_NAME":
            imports.append((int(before[-2] or 0), one.argval))
        elif one.opcode in dis.hasname:
            names.add(one.argval)
        if one.opcode in dis.hasconst:
            names |= _strings(one.argval)
            does.append((one.opname, constant(one.argval)))
        else:
            does.append((one.opname, one.argval if one.opcode in dis.hasname else one.arg))
        before = [before[-1], one.argval]
    return Code(
        hashlib.sha256(repr(does).encode()).hexdigest()[:16],
        frozenset(found).union(*(part.globals for part in inner)),
        frozenset(names).union(*(part.names for part in inner)),
        tuple(sorted({*imports, *(one for part in inner for one in part.imports)})),
    )


def constant(part: Any) -> str:
    """A constant of code as text, the same in every process."""
    if inspect.iscode(part):
        return read(part).digest
    if isinstance(part, tuple):
        return f"({', '.join(constant(one) for one in part)})"
    if isinstance(part, frozenset):  # in another order in every process
        return f"{{{', '.join(sorted(constant(one) for one in part))}}}"
    return repr(part)


def _strings(part: Any) -> set[str]:
    """Constant strings: getattr(module, "name")."""
    if isinstance(part, tuple | frozenset):
        return {text for one in part for text in _strings(one)}
    return {part} if isinstance(part, str) else set()


def _arguments(code: CodeType) -> int:
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + stars
