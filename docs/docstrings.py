"""What the reference needs to know of jaxbio's source: read by griffe, nothing is imported.

A class under `@pytree` is a dataclass, so its fields are the arguments of its constructor; and a
docstring that explains fields line by line ("delta: confidence; ...") becomes a list.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

FIELDS = re.compile(r"(\w+(?:, \w+)*): (.+)")
SECTIONS = ("Args", "Returns", "Raises")
SHAPE = re.compile(r"^(\[[^\]]*\]):")  # Markdown would take "[K]: x" for the target of a link


class Docstrings(griffe.Extension):
    """Constructors of pytrees, and lists of fields."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Give a class under `@pytree` the constructor that the decorator makes."""
        if any(decorator.callable_path.endswith("pytree") for decorator in cls.decorators):
            fields = [
                member
                for member in cls.members.values()
                if member.is_attribute
                and member.annotation is not None  # type: ignore[union-attr]
                and "property" not in member.labels
            ]
            arguments = [found for field in fields if (found := _argument(field)) is not None]
            myself = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
            made = griffe.Function(
                "__init__", parameters=griffe.Parameters(myself, *arguments), parent=cls
            )
            cls.set_member("__init__", made)

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Write lines such as "delta: confidence" as a list."""
        if obj.docstring is not None:
            obj.docstring.value = listed(obj.docstring.value)


def _argument(field: Any) -> griffe.Parameter | None:
    """The constructor's argument for a field; None for one that is computed."""
    text = None if field.value is None else str(field.value)
    if text is not None and text.startswith("derived("):
        return None
    if text is not None and text.startswith("static("):
        text = text.removeprefix("static(").removesuffix(")").removeprefix("default=") or None
    return griffe.Parameter(
        field.name,
        annotation=field.annotation,
        kind=griffe.ParameterKind.positional_or_keyword,
        default=text,
    )


def listed(text: str) -> str:
    """The docstring with its lines "name: text", and what belongs to them, as a list."""
    first, *rest = [SHAPE.sub(r"`\1`:", line) for line in text.split("\n")]
    lines, inside, section = [first], False, False
    for line in rest:
        if line in ("Returns:", "Raises:"):
            lines.append("")
        section = line.strip().rstrip(":") in SECTIONS or (section and line.startswith(" "))
        begins = inside or not lines[-1].strip()
        found = FIELDS.fullmatch(line) if begins and not section else None
        if found:
            if not inside:
                lines.append("")
            names = ", ".join(f"`{name}`" for name in found[1].split(", "))
            lines.append(f"- {names}: {found[2]}")
        elif inside and line.strip():
            lines.append(f"    {line.strip()}")
        else:
            lines.append(line)
        inside = bool(found) or (inside and bool(line.strip()))
    return "\n".join(lines)
