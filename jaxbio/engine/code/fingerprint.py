"""What a thing is made of, in words that change whenever it would play otherwise.

Numbers are spelled out, arrays and code are digests. A class or a function of an installed package
goes by its name and the package's version; code from elsewhere (a script, a notebook, a package
under development) is read: what it does, what it captures, the global names that it uses, and what
it uses of modules, also of those that it imports itself. This is the one notion of "the same code":
stores and compiled programs go by it.
"""

from __future__ import annotations

import builtins
import dataclasses
import datetime
import decimal
import enum
import hashlib
import importlib
import importlib.util
import inspect
import io
import json
import logging
import operator
import pkgutil
import random
import re
import runpy
import sys
import sysconfig
import threading
import types
import weakref
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cached_property, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio.engine.code.bytecode import Code, read
from jaxbio.engine.code.sources import PACKAGE, decides
from jaxbio.trees import is_concrete

SPELLED_OUT = 64  # larger arrays are described by their digest
NAMED = (bool, int, float, str, type(None))
EXACTLY_NAMED = frozenset(NAMED)
PLAIN = (
    complex, bytes, bytearray, range, slice, np.dtype, type(...), decimal.Decimal, datetime.date,
    datetime.time, datetime.timedelta, re.Pattern, PurePath, types.GenericAlias, types.UnionType,
)  # fmt: skip
# Decide nothing, whatever they hold.
WITHOUT_EFFECT = (
    type(threading.Lock()), type(threading.RLock()), io.IOBase, logging.Logger, logging.Handler,
    weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet,
)  # fmt: skip
OPAQUE = (random.Random,)  # has attributes, and its state elsewhere
# Builtins, and functions by any name, with which code can reach what its text does not name.
REACHES_ANYTHING = frozenset(
    (
        "eval",
        "exec",
        "globals",
        "__import__",
        "import_module",
        "resolve_name",
        "run_module",
        "run_path",
    )
)
REACHES_MODULES = frozenset(
    ("getattr", "vars", "dir", "__dict__", "__getattribute__", "attrgetter", "getmembers")
)
# The same under another name: `find = eval`.
ALIASES = (eval, exec, globals, __import__, importlib.import_module, pkgutil.resolve_name,
           runpy.run_module, runpy.run_path)  # fmt: skip
ALIASES_FOR_MODULES = (getattr, vars, dir, operator.attrgetter, inspect.getmembers)
MADE_FOR_CLASSES = frozenset(  # what Python writes into a class, and decides nothing
    """__module__ __qualname__ __dict__ __weakref__ __doc__ __annotations__ __slots__ __match_args__
    __dataclass_fields__ __dataclass_params__ __parameters__ __orig_bases__ __abstractmethods__
    _abc_impl __firstlineno__ __static_attributes__ __annotate_func__ __annotations_cache__
    __protocol_attrs__ __non_callable_proto_members__ _is_protocol __slotnames__""".split()
)
GENERATED = frozenset(
    """__init__ __repr__ __eq__ __lt__ __le__ __gt__ __ge__ __hash__ __setattr__ __delattr__
    __getstate__ __setstate__ __replace__""".split()
)
DEEPEST = 100  # things inside each other
HOLE = jax.ShapeDtypeStruct((), np.float32)  # in the place of a number that is not code


class Unknown(str):
    """Stands for a thing of which nothing says whether it has changed; the text says why."""


def parts(name: str, thing: Any) -> dict[str, Any]:
    """Dotted name -> value of everything that a thing is made of."""
    found: dict[str, Any] = {}
    return found if _read_plain(name, thing, found, {}) else Reader(name, thing).found


def flat_parts(name: str, thing: Any) -> dict[str, Any] | None:
    """The same of a number, an array, or a dataclass of ours that holds nothing else; else None."""
    found: dict[str, Any] = {}
    met: dict[int, str] = {}
    return found if _read_plain(name, thing, found, met) and len(met) <= 1 else None


def _read_plain(name: str, thing: Any, found: dict[str, Any], met: dict[int, str]) -> bool:
    """Quickly what `Reader` would find, where a thing is made of numbers, arrays and dataclasses of
    ours. met: of the latter, by id. False where it holds something else.
    """
    if type(thing) in EXACTLY_NAMED:
        found[name] = thing
        return True
    if type(thing) is np.ndarray and thing.dtype in ORDINARY:
        found[name] = _values(thing)
        return True
    own = _own_dataclass(type(thing))
    if own is None or len(met) > DEEPEST // 2:
        return False
    if id(thing) in met:
        found[name] = f"the same as {met[id(thing)]}"
        return True
    met[id(thing)] = name
    found[name] = own
    for attribute, value in sorted(vars(thing).items()):
        if not _read_plain(f"{name}.{attribute}", value, found, met):
            return False
    return True


@lru_cache(maxsize=1024)
def _own_dataclass(cls: type) -> str | None:
    """The name of a dataclass of this package whose fields are all that it holds; else None."""
    bases = [vars(one) for one in cls.__mro__[:-1]]
    hidden = any(
        one.get("__slots__") or any(isinstance(value, cached_property) for value in one.values())
        for one in bases
    )
    plain = not issubclass(cls, (enum.Enum, *NAMED, *PLAIN, *WITHOUT_EFFECT, *OPAQUE))
    fine = plain and dataclasses.is_dataclass(cls) and not hidden
    return _full_name(cls) if fine and _package(cls) == PACKAGE else None


def digest(described: Any) -> str:
    """64 bits of a description."""
    return _sha(json.dumps(described, sort_keys=True, default=str))


def refuse_unknown(described: Any, path: str = "") -> None:
    """Raise where a description holds something that cannot be compared with what it was."""
    if isinstance(described, Mapping):
        for key, part in described.items():
            refuse_unknown(part, f"{path} / {key}" if path else str(key))
    elif isinstance(described, Unknown):
        raise ValueError(
            f"a store cannot tell whether {path} is still the same: {described}, or call without "
            "store="
        )


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Reader:
    """One description. Things may hold each other, and themselves.

    found: the description. code: functions and classes of the user's that were met; jitted: those
    of which JAX keeps a program; opaque: what shows nothing of itself. is_constant: nothing was met
    that could be another while it stays the same object.
    """

    def __init__(self, name: str, thing: Any) -> None:
        self.found: dict[str, Any] = {}
        self.code: list[Any] = []
        self.jitted: list[Any] = []
        self.opaque: list[Any] = []
        self.is_constant = True
        self._seen: dict[int, tuple[Any, str]] = {}  # id -> thing, kept, and its name
        self._modules: dict[str, types.ModuleType] = {}  # of the user's, that code may look into
        self._names: set[str] = set()  # what code may look up in a module
        self._whole = False  # code may look up anything in a module
        self._depth = 0
        self._describe(name, thing)
        self._describe_modules()

    def _put(self, name: str, value: Any) -> None:
        while name in self.found:  # {1: ..., "1": ...}
            name += "'"
        self.found[name] = value

    def _describe(self, name: str, thing: Any) -> None:
        """All that a thing holds, its class included."""
        if type(thing) in EXACTLY_NAMED:
            self._put(name, thing)
        elif thing is HOLE:
            self._put(name, "a number")
        elif isinstance(thing, enum.Enum):
            self._put(name, f"{_full_name(type(thing))}.{thing.name}")
            self._describe(f"{name}.value", thing.value)
            if id(type(thing)) not in self._seen:
                self._describe(f"{name}.class", type(thing))
        elif isinstance(thing, (np.ndarray, np.generic, jax.Array)):
            self._describe_array(name, thing)
        elif isinstance(thing, NAMED) and _package(type(thing)) is not None:
            self._put(name, thing)
        elif isinstance(thing, PLAIN):
            self._put(name, repr(thing))
        elif isinstance(thing, types.ModuleType):
            self._describe_module(name, thing)
        elif id(thing) in self._seen:
            self._put(name, f"the same as {self._seen[id(thing)][1]}")
        elif self._depth == DEEPEST:
            self._put_opaque(name, thing, "it is nested too deeply")
        else:
            self._seen[id(thing)] = thing, name  # kept: the id of what is gone may come again
            self._depth += 1
            try:
                self._describe_thing(name, thing)
            except Exception as error:  # of the thing's own methods
                self._put_opaque(name, thing, f"reading it ends in {type(error).__name__}: {error}")
            self._depth -= 1

    def _describe_thing(self, name: str, thing: Any) -> None:
        self._whole |= any(thing is one for one in ALIASES_FOR_MODULES)
        if any(thing is one for one in ALIASES):
            self._put(name, _reaching(_full_name(thing)))
        elif isinstance(thing, type):
            self._describe_class(name, thing)
        elif dataclasses.is_dataclass(thing):
            self._describe_class(name, type(thing))
            self._describe_attributes(name, thing)
        elif isinstance(thing, WITHOUT_EFFECT):
            self._put(name, _full_name(type(thing)))
        elif isinstance(thing, OPAQUE):
            self._put_opaque(name, thing)
        elif isinstance(thing, list | tuple | deque):
            self._describe_items(name, thing, enumerate(thing))
        elif isinstance(thing, Mapping):
            self._describe_items(name, thing, thing.items())
        elif isinstance(thing, Set):  # in another order in every process
            self.is_constant = False
            items = sorted(digest(parts("", item)) for item in thing)
            self._put(name, f"{type(thing).__qualname__} of {len(items)}: {' '.join(items)}")
            self._describe_own_class(name, thing)
        elif isinstance(thing, partial):
            self._put(name, "partial")
            for part in ("func", "args", "keywords"):
                self._describe(f"{name}.{part}", getattr(thing, part))
        elif isinstance(thing, types.FunctionType):
            self._describe_function(name, thing)
        else:
            self._describe_object(name, thing)

    def _describe_array(self, name: str, array: Any) -> None:
        self.is_constant = False
        if not is_concrete(array):
            self._put_opaque(name, array, "it is a number that JAX is tracing")
        elif array.dtype == object:
            self._put_opaque(name, array, "it is an array of objects")
        else:
            try:
                self._put(name, _values(array))
            except RuntimeError as error:  # given away, or on another machine
                self._put_opaque(name, array, f"reading it ends in: {error}")
            if isinstance(array, np.ma.MaskedArray):
                self._put(f"{name}.mask", _values(np.ma.getmaskarray(array)))
            self._describe_own_class(name, array)

    def _describe_items(self, name: str, thing: Any, items: Iterable[Any]) -> None:
        self.is_constant = self.is_constant and isinstance(thing, tuple)
        self._put(name, f"{type(thing).__qualname__} of {len(thing)}")
        for place, (key, part) in enumerate(items):
            if isinstance(key, NAMED):
                self._describe(f"{name}.{key}", part)
            else:
                self._describe(f"{name}.{place}.key", key)
                self._describe(f"{name}.{place}", part)
        if isinstance(thing, defaultdict):
            self._describe(f"{name}.default_factory", thing.default_factory)
        self._describe_own_class(name, thing)

    def _describe_own_class(self, name: str, thing: Any) -> None:
        """What a class of the user's adds to a list, a set, an array."""
        if _package(type(thing)) is None:
            self._describe_class(f"{name}.class", type(thing))
            self._describe_attributes(name, thing)

    def _describe_object(self, name: str, thing: Any) -> None:
        """A method, a wrapper of a function, a builtin, or an object with attributes."""
        wrapped = getattr(thing, "__wrapped__", None)
        plain: tuple[Any, ...] = (int, float, str)
        for kind in plain:
            if isinstance(thing, kind):  # of a class of the user's: what it holds is its value
                self._put(f"{name}.value", kind.__repr__(thing))
        if type(thing) is object:
            self._put(name, "object()")  # a mark: there is nothing in it
        elif isinstance(thing, np.ufunc) and thing.__name__.endswith("(vectorized)"):
            self._put_opaque(name, thing)  # a function of the user's that NumPy has taken in
        elif inspect.ismethod(thing):
            self._describe(name, thing.__func__)
            self._describe(f"{name}.self", thing.__self__)
        elif inspect.isbuiltin(thing) or isinstance(thing, types.MethodWrapperType):
            self._put(name, _full_name(thing))
            if not isinstance(thing.__self__, types.ModuleType | None):
                self._describe(f"{name}.self", thing.__self__)
        elif callable(wrapped) and _package(type(thing)) is not None:  # jax.jit, custom_jvp
            self._put(name, _full_name(type(thing)))
            self._describe(f"{name}.wrapped", wrapped)
            for attribute, value in sorted(_attributes(thing), key=itemgetter(0)):
                if not attribute.startswith("_"):
                    self._describe(f"{name}.{attribute}", value)
            if _package(wrapped) is None and callable(getattr(thing, "clear_cache", None)):
                self.jitted.append(thing)
        elif _holds_code(thing):  # np.vectorize, jnp.frompyfunc
            self._put(name, _full_name(type(thing)))
            for i, value in enumerate(_code_in(thing)):
                self._describe(f"{name}.{i}", value)
        elif _package(thing) is not None and isinstance(getattr(thing, "__name__", None), str):
            self._put(name, _full_name(thing))  # of an installed package, in C or generated
        elif _package(type(thing)) == "typing":
            self._put(name, repr(thing))
        elif _package(type(thing)) is None or any(True for _ in _attributes(thing)):
            self._describe_class(name, type(thing))
            self._describe_attributes(name, thing)
        else:
            self._put_opaque(name, thing)

    def _describe_attributes(self, name: str, thing: Any) -> None:
        frozen = dataclasses.is_dataclass(thing) and thing.__dataclass_params__.frozen  # type: ignore[attr-defined]
        self.is_constant = self.is_constant and frozen
        for attribute, value in sorted(_attributes(thing), key=itemgetter(0)):
            made_again = isinstance(_in_class(type(thing), attribute), cached_property)
            if not made_again:
                self._describe(f"{name}.{attribute}", value)

    def _put_opaque(self, name: str, thing: Any, reason: str = "") -> None:
        self.is_constant = False
        self.opaque.append(thing)
        kind = f"it is of type {_full_name(type(thing))}, which shows nothing of what it holds"
        remedy = "Make it a function, a dataclass or an object with plain attributes"
        self._put(name, Unknown(f"{reason or kind}. {remedy}"))

    # --- code

    def _describe_function(self, name: str, function: Any) -> None:
        """What it does, its defaults, what it captures and the globals that it reads."""
        self.is_constant = False
        code = read(function.__code__)
        self._put(name, f"{function.__qualname__} sha256 {code.digest}")
        for i, default in enumerate(function.__defaults__ or ()):
            self._describe(f"{name}.default{i}", default)
        for key, default in sorted((function.__kwdefaults__ or {}).items()):
            self._describe(f"{name}.{key}", default)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for variable, cell in cells:
            try:
                content = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            self._describe(f"{name}.{variable}", content)
        if _package(function) is None:
            self.code.append(function)
            for attribute, value in sorted(vars(function).items()):
                self._describe(f"{name}.{attribute}", value)
            self._names |= code.names
            self._whole |= bool(REACHES_MODULES & (code.globals | code.names))
            self._describe_globals(name, function, code)
            self._describe_imports(name, function, code)

    def _describe_globals(self, name: str, function: Any, code: Code) -> None:
        """What a name stands for that the code uses."""
        held = function.__globals__
        blind = sorted(one for one in REACHES_ANYTHING & code.globals if _is_builtin(held, one))
        blind += sorted(REACHES_ANYTHING & code.names - {"eval", "exec", "globals"})
        for one in blind:
            self._put(f"{name}.{one}", _reaching(one))
        # What it can reach first of all are the other globals of its module.
        names = [one for one in held if not one.startswith("__")] if blind else code.globals
        for variable in sorted(names):
            if variable in held:
                self._describe(f"{name}.{variable}", held[variable])
        for text in sorted(code.names & sys.modules.keys()):  # sys.modules["pk.rates"]
            if "." in text and _package(sys.modules[text]) is None:
                self._describe_module(f"{name}.{text}", sys.modules[text])

    def _describe_imports(self, name: str, function: Any, code: Code) -> None:
        """Modules that the code imports when it runs. It would do so anyway."""
        package = function.__globals__.get("__package__") or ""
        for level, module in code.imports:
            try:
                full = importlib.util.resolve_name("." * level + module, package)
                root = full.partition(".")[0]
                own = _is_own_import(root)
                found = importlib.import_module(full) if own else None
            except Exception as error:  # whatever goes wrong in a module
                self._put(f"{name}.import {module}", f"not there: {type(error).__name__}")
                continue
            if found is None:
                self._put(f"{name}.import {full}", _with_version(full, root))
            else:
                self._describe_module(f"{name}.import {full}", found)
                self._modules.setdefault(root, sys.modules[root])

    def _describe_module(self, name: str, module: types.ModuleType) -> None:
        package = _package(module)
        if package is None:
            self.is_constant = False
            self._modules.setdefault(module.__name__, module)
        self._put(name, _with_version(module.__name__, package))

    def _describe_modules(self) -> None:
        """What code may look up in modules of the user's: all attributes of a name that it uses.

        A module may be passed on, and get other names, so names of all code count in each.
        """
        looked_up: set[tuple[str, str]] = set()
        while True:
            found = {(name, one) for name in self._modules for one in self._looked_up(name)}
            if found <= looked_up:
                return
            for name, one in sorted(found - looked_up):
                self._describe(f"{name}.{one}", getattr(self._modules[name], one))
            looked_up |= found

    def _looked_up(self, name: str) -> Iterator[str]:
        module = self._modules[name]
        held = vars(module).keys()
        names = set(held) if self._whole else self._names & held
        if "__getattr__" in held:  # attributes that appear when they are asked for
            names |= {one for one in self._names if _is_identifier(one) and hasattr(module, one)}
        return (one for one in names if not one.startswith("__"))

    # --- classes

    def _describe_class(self, name: str, cls: type) -> None:
        """Its name; of a class that is not of an installed package all its code as a digest."""
        if _package(cls) is not None:
            self._put(name, _full_name(cls))
            return
        self.is_constant = False
        outer = self.found
        held: dict[str, Any] = {"bases": [_full_name(one) for one in cls.__mro__]}
        self.found = held
        try:
            for one in cls.__mro__:
                if _package(one) is None and (one is cls or id(one) not in self._seen):
                    self._seen[id(one)] = one, name
                    self.code.append(one)
                    self._describe_members(one)
        finally:
            self.found = outer
        self._put(name, f"{_full_name(cls)} sha256 {digest(held)}")
        for member, value in held.items():
            if isinstance(value, Unknown):
                self._put(f"{name}.{member}", value)

    def _describe_members(self, cls: type) -> None:
        for field in vars(cls).get("__dataclass_fields__", {}).values():
            for part in ("default", "default_factory"):
                if getattr(field, part) is not dataclasses.MISSING:
                    self._describe(f"{field.name}.{part}", getattr(field, part))
        for name, member in sorted(vars(cls).items()):
            if name not in MADE_FOR_CLASSES and not _is_generated(cls, member):
                for i, one in enumerate(_functions_of(member)):
                    self._describe(f"{name}.{i}", one)


def _reaching(name: str) -> Unknown:
    return Unknown(f"its code calls {name}, with which it can reach anything. Name what it uses")


def _holds_code(thing: Any) -> bool:
    """Is it an object of a package that holds code of the user's?"""
    own = _package(type(thing)) is None or isinstance(thing, type | types.FunctionType)
    return not own and bool(_code_in(thing))


def _code_in(thing: Any) -> list[Any]:
    """Of the user's, among the attributes of an object and in dictionaries there."""
    held = []
    for _, value in sorted(_attributes(thing), key=itemgetter(0)):
        held += list(value.values()) if type(value) is dict else [value]
    return [one for one in held if callable(one) and _package(one) is None]


def _functions_of(member: Any) -> list[Any]:
    """The functions behind a member of a class, or the member itself."""
    if isinstance(member, staticmethod | classmethod):
        return [member.__func__]
    if isinstance(member, property):
        return [member.fget, member.fset, member.fdel]
    if isinstance(member, cached_property):
        return [member.func]
    in_c = not callable(member) and hasattr(type(member), "__get__")
    if in_c and not hasattr(member, "__dict__") and _package(type(member)) is not None:
        return []  # slots, fields of a named tuple
    return [member]


def _is_generated(cls: type, member: Any) -> bool:
    """Is it one of the methods that the decorator of dataclasses writes from the fields?"""
    code = getattr(inspect.unwrap(member) if callable(member) else member, "__code__", None)
    if code is None or "__dataclass_fields__" not in vars(cls):
        return False
    return code.co_filename == "<string>" and code.co_name in GENERATED


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Of an object's own dictionary and slots."""
    yield from getattr(thing, "__dict__", {}).items()
    for cls in type(thing).__mro__:
        slots = vars(cls).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            private = slot.startswith("__") and not slot.endswith("__")
            held = f"_{cls.__name__.lstrip('_')}{slot}" if private else slot
            if slot not in ("__dict__", "__weakref__") and hasattr(thing, held):
                yield held, getattr(thing, held)


def _in_class(cls: type, name: str) -> Any:
    return next((vars(one)[name] for one in cls.__mro__ if name in vars(one)), None)


def _is_builtin(held: Mapping[str, Any], name: str) -> bool:
    return name not in held and hasattr(builtins, name)


def _is_identifier(name: str) -> bool:
    return name.isidentifier()


# --- where things come from


def _full_name(thing: Any) -> str:
    """With its module where that is not ours, and the version of the package it comes from."""
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", "?")
    package = _package(thing)
    if package in (PACKAGE, "builtins"):
        return name
    return _with_version(f"{getattr(thing, '__module__', None)}.{name}", package)


def _with_version(name: str, package: str | None) -> str:
    known = _version(package) if package and package != PACKAGE else ""
    return f"{name} ({package} {known})" if known else name


def _package(thing: Any) -> str | None:
    """The installed package, or part of Python, that a thing comes from; None for other code."""
    if isinstance(thing, types.ModuleType):
        module = thing.__name__
    elif isinstance(thing, types.FunctionType):  # wrappers take the name of what they wrap
        module = thing.__globals__.get("__name__")
    else:
        module = getattr(thing, "__module__", None)
    if not isinstance(module, str):
        return None
    root = module.partition(".")[0]
    if root == PACKAGE:
        return PACKAGE if decides(module) else None
    return None if _is_own(module) else root


def _is_own(module: str) -> bool:
    """Is a module the user's, or at least not installed where Python and packages are?

    It is asked itself: the parts of a namespace package may lie in several places.
    """
    root = module.partition(".")[0]
    if root in ("__main__", PACKAGE):
        return True
    place = _place(sys.modules.get(module)) or _place(sys.modules.get(root))
    return not _is_installed(root, place)


def _is_own_import(root: str) -> bool:
    """The same of a package that may not have been imported yet."""
    if root in sys.modules:
        return _is_own(root)
    spec = importlib.util.find_spec(root)
    place = (
        None
        if spec is None
        else spec.origin or next(iter(spec.submodule_search_locations or ()), None)
    )
    return not _is_installed(root, place)


def _place(module: Any) -> str | None:
    """The file of a module, or the folder of one that has none."""
    file = getattr(module, "__file__", None)
    return file or next(iter(getattr(module, "__path__", ())), None)


@lru_cache(maxsize=8192)
def _is_installed(root: str, place: str | None) -> bool:
    """Does it lie where Python and packages are? One under development lies elsewhere."""
    if place is None or place in ("built-in", "frozen") or place.startswith("<"):
        return root in sys.stdlib_module_names
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {Path(sysconfig.get_path(kind)).resolve() for kind in kinds}
    places = set(Path(place).resolve().parents)
    named = any(place.name in ("site-packages", "dist-packages") for place in places)
    return named or bool(places & folders)


@lru_cache(maxsize=1024)
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # of Python, or installed under another name
        return str(getattr(sys.modules.get(package), "__version__", ""))


def _values(array: Any) -> Any:
    if isinstance(array, jax.Array) and jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return f"{array.dtype} {np.asarray(jax.random.key_data(array)).tolist()}"
    array = np.asarray(array)
    if array.size <= SPELLED_OUT:
        return array.tolist() if array.dtype in ORDINARY else f"{array.dtype} {array.tolist()}"
    code = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return f"{array.dtype}{list(array.shape)} sha256 {code[:16]}"


# Said by the numbers themselves.
ORDINARY = {np.dtype(name) for name in "bool int32 int64 float32 float64".split()}
