"""Cells of a diagram in which learners are chosen in training and judged elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from jaxbio.display.bars import tqdm
from jaxbio.environment.environment import Environment
from jaxbio.storage.store import part
from jaxbio.studies.contestants import UNIFORM, uniform_play, wrappers
from jaxbio.studies.phase.worth import FORMS, GROUPS
from jaxbio.studies.practical import Practical, play_problems, train

THEOREM = {"MetaBIO": "metabio", "MetaBIO, base": "dada-exp3:delta=0.05"}  # label: as asked for
JUDGED = (*GROUPS, *THEOREM, UNIFORM)


class Piece(NamedTuple):
    """Cells of one K and one T whose arrays have one size: problems [mapping, S, d, instance] in
    a row; where: their place in an array over the grid.
    """

    problems: list[Environment]
    shape: tuple[int, int, int, int]
    horizon: int
    where: tuple[Any, ...]
    name: str


class Asked(NamedTuple):
    """learners: who may be chosen, by so many runs of training; runs: that judge."""

    learners: dict[str, Practical]
    training: int
    runs: int
    seed: Any

    def rounds(self, piece: Piece) -> int:
        """Of all games of a piece."""
        return sum(self.games(piece)) * piece.horizon

    def games(self, piece: Piece) -> tuple[int, int]:
        """Of training, and that judge."""
        settings = sum(len(one.settings) for one in self.learners.values())
        each = self.training * settings, self.runs * len(JUDGED)
        return each[0] * len(piece.problems), each[1] * len(piece.problems)

    def in_words(self, pieces: Sequence[Piece]) -> str:
        """How much will be played."""
        tried, judged = np.sum([self.games(piece) for piece in pieces], axis=0)
        settings = sum(len(one.settings) for one in self.learners.values())
        return (
            f"{len(self.learners)} learners with {settings} settings on "
            f"{sum(len(piece.problems) for piece in pieces):,} problems: {tried:,} games of "
            f"training, then {judged:,} games that judge; "
            f"{sum(map(self.rounds, pieces)):.2g} rounds"
        )


class Results(NamedTuple):
    """Arrays over the grid [mapping, actions, horizon, states, delay]: training [learner, *grid],
    finals [judged, *grid, run], chosen and setting [form, group, *grid].
    """

    training: np.ndarray
    finals: np.ndarray
    chosen: np.ndarray
    setting: np.ndarray

    @classmethod
    def empty(cls, axes: Mapping[str, Sequence[Any]], labels: Sequence[str], runs: int) -> Results:
        """Those of the theorem are known."""
        grid = tuple(map(len, axes.values()))
        names = np.empty((2, len(FORMS), len(GROUPS), *grid), object)
        names[:, FORMS.index("theorem")] = np.reshape(
            [[*THEOREM], [*THEOREM.values()]], (2, len(GROUPS), *[1] * len(grid))
        )
        finals = np.full((len(JUDGED), *grid, runs), np.nan)
        return cls(np.full((len(labels), *grid), np.nan), finals, *names)

    def labelled(self, axes: Mapping[str, Any], labels: Sequence[str]) -> xr.Dataset:
        names, both = (*axes,), ("form", "group", *axes)
        finals = self.finals[:-1].reshape(len(FORMS), len(GROUPS), *self.finals.shape[1:])
        return xr.Dataset(
            {
                "final_regret": ((*both, "run"), finals),
                "uniform_regret": ((*names, "run"), self.finals[-1]),
                "training_regret": (("learner", *names), self.training),
                "chosen": (both, self.chosen.astype(str)),
                "setting": (both, self.setting.astype(str)),
            },
            {"form": list(FORMS), "group": list(GROUPS), "learner": list(labels), **axes},
        )


def play(
    piece: Piece,
    asked: Asked,
    groups: Mapping[str, Sequence[str]],
    store: Any,
    shown: tqdm,
    results: Results,
) -> None:
    """Choose and judge in all cells of a piece; what is found goes to its place in the results."""
    given = {"horizon": piece.horizon, "progress": False}
    least, settings = {}, {}
    for label, one in asked.learners.items():
        shown.set_description(f"training {label}")
        means = train(label, one, piece.problems, asked.training, asked.seed,
                      store=part(store, f"training-{label}"), **given)  # fmt: skip
        shown.update(means.size * asked.training * piece.horizon)
        means = means.reshape(*piece.shape, -1).mean(axis=3)  # [*cells, settings]
        least[label], settings[label] = means.min(axis=-1), means.argmin(axis=-1)
    results.training[:, *piece.where] = np.stack(list(least.values()))
    metabio = wrappers()["MetaBIO"]
    playing = dict(zip(THEOREM, (metabio, metabio.base), strict=True)) | uniform_play()
    for number, (group, labels) in enumerate(groups.items()):
        found = _best({label: least[label] for label in labels}, settings, asked.learners)
        where = (FORMS.index("tuned"), number, *piece.where)
        results.chosen[where], results.setting[where] = found[:2]
        playing[group] = partial(_of_problem, found[2].ravel(), piece.shape[3])
    shown.set_description("judging")
    finals = play_problems(piece.problems, playing, {}, runs=asked.runs, seed=asked.seed,
                           store=part(store, "judged"), **given)  # fmt: skip
    finals = finals.sel(learner=list(JUDGED)).transpose("learner", "problem", "run").values
    shape = (len(JUDGED), *piece.shape, asked.runs)
    results.finals[:, *piece.where] = finals.reshape(shape).mean(axis=4)
    shown.update(finals.size * piece.horizon)


def _of_problem(learners: np.ndarray, instances: int, problem: int) -> Any:
    """The learner of a problem's cell. learners: [cells]."""
    return learners[problem // instances]


def _best(
    least: Mapping[str, np.ndarray],
    settings: Mapping[str, np.ndarray],
    learners: Mapping[str, Practical],
) -> np.ndarray:
    """[3, *cells]: the label of the learner with the least regret in training, what it is called on
    the command line, and itself.

    least, settings: label -> [*cells], its regret with the best setting, and the number of that.
    """
    labels, regrets = list(least), np.stack(list(least.values()))
    found = np.empty((3, *regrets.shape[1:]), object)
    for cell, best in np.ndenumerate(regrets.argmin(axis=0)):
        label = labels[best]
        setting = learners[label].settings[settings[label][cell]]
        words, made = learners[label].written(setting), learners[label].made(setting)
        found[:, *cell] = label, words, made
    return found
