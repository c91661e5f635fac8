"""Objects of numbers in a line, and tables of words."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

FEW = 6  # numbers of an array that are written out


def in_short(thing: Any) -> str:
    """A dataclass as the call that makes it, without what it has by default.

    Numbers have six digits; an array of more than six is its type and shape, as in float64[8, 4].
    """
    fields = [field for field in dataclasses.fields(thing) if field.repr and _differs(thing, field)]
    words = [f"{field.name}={value(getattr(thing, field.name))}" for field in fields]
    return f"{type(thing).__name__}({', '.join(words)})"


def value(given: Any) -> str:
    """One value in a line."""
    if isinstance(given, bool | np.bool_):
        return str(bool(given))
    if isinstance(given, int | np.integer):
        return str(int(given))
    if isinstance(given, float | np.floating):
        return f"{float(given):.6g}"
    if hasattr(given, "shape") and hasattr(given, "dtype"):
        return _array(given)
    return repr(given)


def _array(given: Any) -> str:
    """The numbers, where they are few and there are any: a tracer has none."""
    if given.ndim < 2 and given.size <= FEW and isinstance(given, np.ndarray):
        numbers = [value(number) for number in given.reshape(-1)]
        return f"[{', '.join(numbers)}]" if given.ndim else numbers[0]
    return f"{given.dtype}{list(given.shape)}"


def _differs(thing: Any, field: dataclasses.Field[Any]) -> bool:
    """Is it another value than the one by default?"""
    given = getattr(thing, field.name, None)
    if field.default is dataclasses.MISSING or not isinstance(
        given, bool | int | float | str | None
    ):
        return True
    return given != field.default


def aligned(lines: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Lines of columns of text, as wide as their longest cell: the first `left` begin at the left,
    the others end at the right.
    """
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return [line(cells) for cells in lines]


LATEX = {  # what LaTeX would take for a command
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def escaped_for_latex(plain: str) -> str:
    """Text as LaTeX prints it."""
    return "".join(LATEX.get(letter, letter) for letter in plain)
