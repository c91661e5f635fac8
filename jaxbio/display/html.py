"""HTML for notebooks: tables that look well on light and on dark pages, without scripts."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbio.display.text import value

CELL = "padding:2px 8px;border:none;text-align:"
LARGEST = 400  # cells of a table that is shown as such
SHADE = "rgba(66,133,244,{share:.2f})"  # behind a probability; text stays readable on both pages
STRONGEST = 0.45


def of_fields(thing: Any) -> str:
    """A dataclass: its name, what its class says of it in a line, and a row for each field."""
    said = (type(thing).__doc__ or "").strip().split("\n\n")[0]
    rows = [
        (field.name, written(getattr(thing, field.name)))
        for field in dataclasses.fields(thing)
        if field.repr
    ]
    return titled(type(thing).__name__, " ".join(said.split())) + table([], rows, raw=True)


def written(given: Any) -> str:
    """A value as HTML: a dataclass and a table of probabilities in their own form."""
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        return of_fields(given)
    if isinstance(given, np.ndarray) and given.ndim == 2 and given.size <= LARGEST:
        return heat(given)
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.size <= LARGEST**0.5:
        return heat(given[None])
    return html.escape(value(given))


def titled(name: str, said: str = "") -> str:
    """A heading, and a sentence in smaller letters."""
    return f"<div><b>{html.escape(name)}</b> <small>{html.escape(said)}</small></div>"


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, raw: bool = False
) -> str:
    """The first `left` columns begin at the left, the others end at the right. raw: cells are HTML,
    and all begin at the left.
    """

    def line(cells: Sequence[str], tag: str) -> str:
        made = [
            f'<{tag} style="{CELL}{"left" if raw or i < left else "right"};vertical-align:top">'
            f"{cell if raw else html.escape(cell)}</{tag}>"
            for i, cell in enumerate(cells)
        ]
        return f"<tr>{''.join(made)}</tr>"

    top = f"<thead>{line(head, 'th')}</thead>" if head else ""
    body = "".join(line(cells, "td") for cells in rows)
    return f'<table style="border-collapse:collapse">{top}<tbody>{body}</tbody></table>'


def heat(numbers: np.ndarray) -> str:
    """A table of numbers [rows, columns]: those in [0, 1] the larger the darker."""
    plain = not np.all((numbers >= 0) & (numbers <= 1))

    def cell(number: Any) -> str:
        colour = SHADE.format(share=0 if plain else STRONGEST * float(number))
        return f'<td style="{CELL}right;background:{colour}">{value(round(float(number), 4))}</td>'

    rows = "".join(f"<tr>{''.join(cell(number) for number in row)}</tr>" for row in numbers)
    return f'<table style="border-collapse:collapse"><tbody>{rows}</tbody></table>'
