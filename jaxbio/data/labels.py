"""Labels of actions and states as codes, given as rows come in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

MOST = 1000  # labels of a column
WHOLE = re.compile(r"-?\d+\.0+")


class Labels:
    """Codes of a column's labels. missing: the label of rows that have none, or None."""

    def __init__(self, column: str, remedy: str, missing: str | None = None) -> None:
        self.column, self.remedy, self.missing = column, remedy, missing
        self.codes: dict[str, int] = {}

    def encode(self, values: Any) -> np.ndarray:
        """int32 [rows]: a code of this column, -1 where there is no label."""
        if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
            found, kinds = values.cat.codes.to_numpy(), list(values.cat.categories)
            used = np.bincount(found[found >= 0], minlength=len(kinds)) > 0
        else:
            try:
                found, kinds = pd.factorize(np.asarray(values), use_na_sentinel=True)
            except TypeError as error:  # lists, or others that cannot be compared
                raise TypeError(
                    f"column {self.column!r} must have a text or a number in every row: {error}"
                ) from error
            used = np.ones(len(kinds), bool)
        if used.sum() > MOST:
            self._refuse(int(used.sum()))
        table = np.full(len(kinds) + 1, self._code(None), np.int32)  # the last is for -1
        for i in np.flatnonzero(used):
            table[i] = self._code(kinds[i])
        if len(self.codes) > MOST:
            self._refuse(len(self.codes))
        return table[found]

    def _code(self, value: Any) -> int:
        text = label(value) or self.missing
        return -1 if not text else self.codes.setdefault(text, len(self.codes))

    def _refuse(self, count: int) -> None:
        raise ValueError(
            f"column {self.column!r} has more than {MOST:,} different values ({count:,} so far): "
            f"{self.remedy}"
        )

    def in_order(self, codes: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
        """Codes and labels in the order of the labels that occur: by number if all are numbers."""
        names = list(self.codes)
        occurs = np.bincount(codes, minlength=len(names)) > 0
        order = sorted(np.flatnonzero(occurs).tolist(), key=_sorting([names[i] for i in
                       np.flatnonzero(occurs)], names))  # fmt: skip
        table = np.zeros(len(names), np.int32)
        table[order] = np.arange(len(order))
        return table[codes], tuple(names[i] for i in order)


def joined(
    names: Sequence[str], columns: Sequence[tuple[np.ndarray, tuple[str, ...]]]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """int32 [rows] and labels: a code for each combination that occurs, in the order of the first
    column, then the second, ... columns: codes [rows] and labels; names: what they are called.
    """
    if len(columns) == 1:
        return columns[0]
    sizes = [len(labels) for _, labels in columns]
    flat = np.ravel_multi_index([codes for codes, _ in columns], sizes)
    kinds, found = np.unique(flat, return_inverse=True)
    if len(kinds) > MOST:
        raise ValueError(
            f"columns {' and '.join(map(repr, names))} together have {len(kinds):,} different "
            f"combinations, more than {MOST:,}: give fewer columns, or columns with fewer values"
        )
    places = np.unravel_index(kinds, sizes)
    rows = zip(*(np.array(one[1], object)[at] for one, at in zip(columns, places, strict=True)),
               strict=True)  # fmt: skip
    return found.astype(np.int32), tuple(", ".join(row) for row in rows)


def label(value: Any) -> str:
    """The text of a label, "" where there is none; 3.0 and "3.0" are 3, as whole numbers become
    floats where others of their column are missing.
    """
    if value is None or value is pd.NaT or value is pd.NA:
        return ""
    if isinstance(value, float | np.floating) and np.isnan(value):
        return ""
    text = str(value).strip()
    return text.partition(".")[0] if WHOLE.fullmatch(text) else text


def _sorting(used: list[str], names: list[str]) -> Any:
    try:
        for one in used:
            float(one)
    except ValueError:
        return names.__getitem__
    return lambda i: (float(names[i]), names[i])
