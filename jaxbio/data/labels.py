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


class JointLabels:
    """Codes of the labels of one or several columns: one code for each combination that occurs."""

    def __init__(self, columns: Sequence[str], remedy: str, missing: str | None = None) -> None:
        self.parts = [Labels(column, remedy, missing) for column in columns]
        self.codes: dict[tuple[int, ...], int] = {}

    def encode(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """int32 [rows] of the codes [rows] of each column; -1 where one of them is."""
        if len(values) == 1:
            return values[0]
        sizes = [len(part.codes) + 1 for part in self.parts]
        found, kinds = pd.factorize(np.ravel_multi_index([one + 1 for one in values], sizes))
        rows = zip(*(one - 1 for one in np.unravel_index(kinds, sizes)), strict=True)
        table = np.array([self._code(tuple(map(int, row))) for row in rows], np.int32)
        if len(self.codes) > MOST:
            raise ValueError(
                f"columns {self.columns} together have more than {MOST:,} different combinations: "
                "give fewer columns, or columns with fewer values"
            )
        return table[found] if len(found) else np.empty(0, np.int32)

    def _code(self, row: tuple[int, ...]) -> int:
        return -1 if min(row) < 0 else self.codes.setdefault(row, len(self.codes))

    @property
    def columns(self) -> str:
        return " and ".join(repr(part.column) for part in self.parts)

    def in_order(self, codes: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
        """As of `Labels`; of several columns by the first, then the second, ..."""
        if len(self.parts) == 1:
            return self.parts[0].in_order(codes)
        kinds = np.array(list(self.codes))  # [combinations, columns]
        occurs = np.bincount(codes, minlength=len(kinds)) > 0
        ordered = [part.in_order(kinds[occurs, i]) for i, part in enumerate(self.parts)]
        places = np.lexsort([place for place, _ in reversed(ordered)])
        names = tuple(
            ", ".join(labels[place[i]] for place, labels in ordered) for i in places
        )  # fmt: skip
        table = np.zeros(len(kinds), np.int32)
        table[np.flatnonzero(occurs)[places]] = np.arange(len(places))
        return table[codes], names


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
