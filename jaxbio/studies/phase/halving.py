"""Successive halving in the cells of a diagram: few games for all settings, many for the best.

Whoever chooses the least of many means of few games chooses what was lucky. So the settings that
are best in a first stage play more games, in other worlds, and of these the best yet more; each
stage ranks by its own games alone, and the last one chooses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxbio.studies.practical import TRAINING_RUNS, Practical

SEMIFINALISTS, FINALISTS = 16, 5  # settings of a group in a cell


class Stage(NamedTuple):
    """games: of each setting; most: so many settings of a group, the best so far, play it."""

    games: int
    most: int


def stages(training: int) -> list[Stage]:
    """After that of all settings, which has at most TRAINING_RUNS games; none where training has no
    more. The last one has `training` games, that between them the geometric mean of both.
    """
    if training <= TRAINING_RUNS:
        return []
    between = round(math.sqrt(TRAINING_RUNS * training))
    return [Stage(between, SEMIFINALISTS), Stage(training, FINALISTS)]


class Field(NamedTuple):
    """The settings of a group, cell by cell. labels [n], settings [n]: whose, and which of theirs;
    left: int [m, *cells], those that are left in a cell, the best first.
    """

    labels: list[str]
    settings: list[int]
    left: np.ndarray

    @classmethod
    def of(cls, means: Mapping[str, np.ndarray]) -> Field:
        """means: label -> mean regret in the first stage [*cells, settings]."""
        labels = [label for label, own in means.items() for _ in range(own.shape[-1])]
        settings = [number for own in means.values() for number in range(own.shape[-1])]
        values = np.concatenate([np.moveaxis(own, -1, 0) for own in means.values()])
        start = np.empty(values.shape, int)
        start.T[...] = np.arange(len(labels))
        return cls(labels, settings, start).ranked(values)

    def ranked(self, means: np.ndarray) -> Field:
        """means: [m, *cells], of those that are left, in their order."""
        order = np.argsort(means, axis=0, kind="stable")
        return self._replace(left=np.take_along_axis(self.left, order, axis=0))

    def best(self, most: int) -> Field:
        return self._replace(left=self.left[:most])

    def learners(self, known: Mapping[str, Practical]) -> np.ndarray:
        """[m, *cells]: those that are left."""
        return self._each(lambda one, setting: one.made(setting), known)

    def words(self, known: Mapping[str, Practical]) -> np.ndarray:
        """[m, *cells]: what they are called on the command line."""
        return self._each(lambda one, setting: one.written(setting), known)

    def names(self) -> np.ndarray:
        """[m, *cells]: their labels."""
        return np.array(self.labels, object)[self.left]

    def _each(
        self, told: Callable[[Practical, Mapping[str, Any]], Any], known: Mapping[str, Practical]
    ) -> np.ndarray:
        table = np.empty(len(self.labels), object)
        for i, (label, number) in enumerate(zip(self.labels, self.settings, strict=True)):
            table[i] = told(known[label], known[label].settings[number])
        return table[self.left]
