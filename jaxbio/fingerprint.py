"""What a thing is made of, in words that change whenever it would play otherwise.

Numbers are spelled out, arrays and code are digests. A class or a function of an installed package
goes by its name and the package's version; code from elsewhere (a script, a notebook, a package
under development) is read: its bytecode, what it captures, and the global names that it uses.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import inspect
import json
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cached_property, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio.surroundings import DECIDE_NOTHING

SPELLED_OUT = 64  # larger arrays are described by their digest
PLAIN = (bool, int, float, complex, str, bytes, range, slice, np.dtype, type(...), type(None))
OURS = "jaxbio"  # the sources of what plays are part of the surroundings of a result
MADE_FOR_CLASSES = frozenset(  # what Python writes into a class, and decides nothing
    """__module__ __qualname__ __dict__ __weakref__ __doc__ __annotations__ __slots__ __match_args__
    __dataclass_fields__ __dataclass_params__ __parameters__ __orig_bases__ __abstractmethods__
    _abc_impl __firstlineno__ __static_attributes__ __annotate_func__ __annotations_cache__
    __protocol_attrs__ __non_callable_proto_members__ _is_protocol""".split()
)
GENERATED = frozenset(
    """__init__ __repr__ __eq__ __lt__ __le__ __gt__ __ge__ __hash__ __setattr__ __delattr__
    __getstate__ __setstate__ __replace__""".split()
)

Field = tuple[str, Any]


class Unknown(str):
    """Stands for a thing of which nothing says whether it has changed."""


def parts(name: str, thing: Any) -> dict[str, Any]:
    """Dotted name -> value of everything that a thing is made of."""
    return dict(_Reader().fields(name, thing))


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
            f"a store cannot tell whether {path} is still the same: it is of type {described}, "
            "which shows nothing of what it holds. Make it a function, a dataclass or an object "
            "with plain attributes, or call without store="
        )


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Reader:
    """One description. seen: id -> what has been described, and under which name.

    Things may hold each other, and themselves.
    """

    def __init__(self) -> None:
        self.seen: dict[int, tuple[Any, str]] = {}

    def fields(self, name: str, thing: Any) -> Iterator[Field]:
        """(dotted name, value) of all that a thing holds, its class included."""
        if isinstance(thing, enum.Enum):
            yield name, f"{_full_name(type(thing))}.{thing.name}"
            yield from self.fields(f"{name}.value", thing.value)
        elif isinstance(thing, np.ndarray | np.generic | jax.Array):
            yield name, _values(thing)
        elif type(thing) in PLAIN or isinstance(thing, bool | int | float | str):
            named = thing is None or isinstance(thing, bool | int | float | str)
            yield name, thing if named else repr(thing)
        elif isinstance(thing, types.ModuleType):
            yield name, thing.__name__
        elif id(thing) in self.seen:
            yield name, f"the same as {self.seen[id(thing)][1]}"
        else:
            self.seen[id(thing)] = thing, name  # kept: the id of what is gone may come again
            yield from self._of_thing(name, thing)

    def _of_thing(self, name: str, thing: Any) -> Iterator[Field]:
        if isinstance(thing, type):
            yield from self._of_class(name, thing)
        elif dataclasses.is_dataclass(thing):
            yield from self._of_class(name, type(thing))
            for field in dataclasses.fields(thing):
                yield from self.fields(f"{name}.{field.name}", getattr(thing, field.name))
        elif isinstance(thing, list | tuple):
            yield from self._of_items(name, thing, enumerate(thing))
        elif isinstance(thing, Mapping):
            yield from self._of_items(name, thing, thing.items())
        elif isinstance(thing, Set):  # in another order in every process
            items = sorted(digest(parts("", item)) for item in thing)
            yield name, f"{type(thing).__qualname__} of {len(items)}: {' '.join(items)}"
        elif isinstance(thing, partial):
            yield name, "partial"
            yield from self.fields(f"{name}.func", thing.func)
            yield from self.fields(f"{name}.args", thing.args)
            yield from self.fields(f"{name}.keywords", thing.keywords)
        elif inspect.isfunction(thing):
            yield from self._of_function(name, thing)
        else:
            yield from self._of_object(name, thing)

    def _of_items(self, name: str, thing: Any, items: Iterable[Any]) -> Iterator[Field]:
        yield name, f"{type(thing).__qualname__} of {len(thing)}"
        for key, part in items:
            yield from self.fields(f"{name}.{key}", part)

    def _of_object(self, name: str, thing: Any) -> Iterator[Field]:
        """A method, a wrapper of a function, a builtin, or an object with attributes."""
        wrapped = getattr(thing, "__wrapped__", None)
        held = dict(_attributes(thing))
        if inspect.ismethod(thing):
            yield from self.fields(name, thing.__func__)
            yield from self.fields(f"{name}.self", thing.__self__)
        elif callable(wrapped) and _package(type(thing)) is not None:  # jax.jit, lru_cache
            yield name, _full_name(type(thing))
            yield from self.fields(f"{name}.wrapped", wrapped)
        elif _package(thing) is not None and isinstance(getattr(thing, "__name__", None), str):
            yield name, _full_name(thing)  # of an installed package, in C or generated
            if not isinstance(getattr(thing, "__self__", None), types.ModuleType | None):
                yield from self.fields(f"{name}.self", thing.__self__)
        elif held:
            yield from self._of_class(name, type(thing))
            for attribute, value in sorted(held.items()):
                yield from self.fields(f"{name}.{attribute}", value)
        elif _package(type(thing)) is None:
            yield from self._of_class(name, type(thing))
        else:
            yield name, Unknown(_full_name(type(thing)))

    def _of_function(self, name: str, function: Any) -> Iterator[Field]:
        """Its code, defaults, what it captures and the globals that it reads."""
        yield name, f"{function.__qualname__} sha256 {_sha(_code(function.__code__))}"
        for i, default in enumerate(function.__defaults__ or ()):
            yield from self.fields(f"{name}.default{i}", default)
        for key, default in sorted((function.__kwdefaults__ or {}).items()):
            yield from self.fields(f"{name}.{key}", default)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for variable, cell in cells:
            try:
                content = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            yield from self.fields(f"{name}.{variable}", content)
        if _package(function) is None:
            yield from self._of_globals(name, function)

    def _of_globals(self, name: str, function: Any) -> Iterator[Field]:
        """What a name stands for that the code uses; one of something opaque is only named."""
        used = sorted(_names(function.__code__))
        for variable in used:
            if variable not in function.__globals__:
                continue
            value = function.__globals__[variable]
            found = [(variable, value)]
            if isinstance(value, types.ModuleType) and _package(value) is None:
                held = [other for other in used if hasattr(value, other)]
                found = [(f"{variable}.{other}", getattr(value, other)) for other in held]
            for path, one in found:
                for field, text in self.fields(f"{name}.{path}", one):
                    yield field, str(text) if isinstance(text, Unknown) else text

    def _of_class(self, name: str, cls: type) -> Iterator[Field]:
        """Its name; of a class that is not of an installed package all its code as a digest."""
        if _package(cls) is not None:
            yield name, _full_name(cls)
            return
        held: dict[str, Any] = {}
        for one in cls.__mro__:
            if _package(one) is None and (one is cls or id(one) not in self.seen):
                self.seen[id(one)] = one, name
                held |= self._of_members(one)
        yield name, f"{_full_name(cls)} sha256 {digest(held)}"

    def _of_members(self, cls: type) -> dict[str, Any]:
        held: dict[str, Any] = {"class": _full_name(cls)}
        for name, member in sorted(vars(cls).items()):
            if name in MADE_FOR_CLASSES or _is_generated(cls, member):
                continue
            for i, one in enumerate(_functions_of(member)):
                held |= dict(self.fields(f"{name}.{i}", one))
        return held


def _functions_of(member: Any) -> list[Any]:
    """The functions behind a member of a class, or the member itself."""
    if isinstance(member, staticmethod | classmethod):
        return [member.__func__]
    if isinstance(member, property):
        return [member.fget, member.fset, member.fdel]
    if isinstance(member, cached_property):
        return [member.func]
    if isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType):
        return []  # slots
    return [member]


def _is_generated(cls: type, member: Any) -> bool:
    """Is it one of the methods that the decorator of dataclasses writes from the fields?"""
    code = getattr(inspect.unwrap(member) if callable(member) else member, "__code__", None)
    if code is None or "__dataclass_fields__" not in vars(cls):
        return False
    return code.co_filename == "<string>" and code.co_name in GENERATED


def _attributes(thing: Any) -> Iterator[Field]:
    """Of an object's own dictionary and slots."""
    yield from getattr(thing, "__dict__", {}).items()
    for cls in type(thing).__mro__:
        slots = vars(cls).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__") and hasattr(thing, slot):
                yield slot, getattr(thing, slot)


def _full_name(thing: Any) -> str:
    """With its module where that is not ours, and the version of the package it comes from."""
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", "?")
    package = _package(thing)
    if package in (OURS, "builtins"):
        return name
    full = f"{getattr(thing, '__module__', None)}.{name}"
    known = _version(package) if package else ""
    return f"{full} ({package} {known})" if known else full


def _package(thing: Any) -> str | None:
    """The installed package, or part of Python, that a thing comes from; None for other code."""
    if isinstance(thing, types.ModuleType):
        module = thing.__name__
    else:
        module = getattr(thing, "__module__", None)
    if not isinstance(module, str):
        return None
    root, _, rest = module.partition(".")
    if root == OURS:
        return None if rest.partition(".")[0] in DECIDE_NOTHING else OURS
    return root if root != "__main__" and _is_installed(root) else None


@lru_cache(maxsize=1024)
def _is_installed(root: str) -> bool:
    """Does it lie where Python and packages are? One under development lies elsewhere."""
    file = getattr(sys.modules.get(root), "__file__", None)
    if file is None:
        return root in sys.stdlib_module_names
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {Path(sysconfig.get_path(kind)).resolve() for kind in kinds}
    places = set(Path(file).resolve().parents)
    named = any(place.name in ("site-packages", "dist-packages") for place in places)
    return named or bool(places & folders)


@lru_cache(maxsize=1024)
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _names(code: Any) -> set[str]:
    """All names that code looks up, inner functions included."""
    inner = [_names(part) for part in code.co_consts if inspect.iscode(part)]
    return set(code.co_names).union(*inner)


def _code(code: Any) -> str:
    return f"{code.co_code.hex()} {code.co_names} {[_constant(part) for part in code.co_consts]}"


def _constant(part: Any) -> str:
    if inspect.iscode(part):
        return _code(part)
    if isinstance(part, tuple):
        return f"({', '.join(_constant(one) for one in part)})"
    if isinstance(part, frozenset):  # in another order in every process
        return f"{{{', '.join(sorted(_constant(one) for one in part))}}}"
    return repr(part)


def _values(array: Any) -> Any:
    if isinstance(array, jax.Array) and jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return f"{array.dtype} {np.asarray(jax.random.key_data(array)).tolist()}"
    array = np.asarray(array)
    if array.dtype.kind == "O":
        return Unknown("array of objects")
    if array.size <= SPELLED_OUT:
        return array.tolist()
    code = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return f"{array.dtype}{list(array.shape)} sha256 {code[:16]}"
