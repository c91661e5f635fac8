"""Cells of a diagram in which learners are chosen in training and judged elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from jaxbio.analysis.tune import training_seed
from jaxbio.display.bars import tqdm
from jaxbio.environment.environment import Environment
from jaxbio.storage.store import part
from jaxbio.studies.contestants import UNIFORM, uniform_play, wrappers
from jaxbio.studies.phase.halving import Field, Stage, stages
from jaxbio.studies.phase.worth import FORMS, GROUPS
from jaxbio.studies.practical import TRAINING_RUNS, Practical, play_problems, train

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
    """learners: who may be chosen, by so many games of training; groups: their labels, of those
    that look at states and of those that do not; runs: that judge.
    """

    learners: dict[str, Practical]
    groups: dict[str, list[str]]
    training: int
    runs: int
    seed: Any

    @property
    def first(self) -> int:
        """Games of every setting."""
        return min(self.training, TRAINING_RUNS)

    def settings(self, labels: Iterable[str]) -> int:
        return sum(len(self.learners[label].settings) for label in labels)

    def rounds(self, piece: Piece) -> int:
        """Of all games of a piece."""
        return sum(self.games(piece)) * piece.horizon

    def games(self, piece: Piece) -> tuple[int, int]:
        """Of training, and that judge."""
        sizes = [self.settings(labels) for labels in self.groups.values()]
        tried = self.first * sum(sizes)
        tried += sum(one.games * min(one.most, size)
                     for one in stages(self.training) for size in sizes)  # fmt: skip
        return tried * len(piece.problems), self.runs * len(JUDGED) * len(piece.problems)

    def in_words(self, pieces: Sequence[Piece]) -> str:
        """How much will be played."""
        tried, judged = np.sum([self.games(piece) for piece in pieces], axis=0)
        return (
            f"{len(self.learners)} learners with {self.settings(self.learners)} settings on "
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


def play(piece: Piece, asked: Asked, store: Any, shown: tqdm, results: Results) -> None:
    """Choose and judge in all cells of a piece; what is found goes to its place in the results."""

    def games(learners: Mapping[str, Any], name: str, **worlds: Any) -> np.ndarray:
        """[learner, *cells, run]: final regrets, means over the instances."""
        finals = play_problems(piece.problems, learners, {}, horizon=piece.horizon, progress=False,
                               store=part(store, name), **worlds)  # fmt: skip
        shown.update(finals.size * piece.horizon)
        values = finals.sel(learner=list(learners)).transpose("learner", "problem", "run").values
        return values.reshape(len(learners), *piece.shape, -1).mean(axis=4)

    means = _first_stage(piece, asked, store, shown)
    results.training[:, *piece.where] = np.stack([own.min(axis=-1) for own in means.values()])
    fields = {group: Field.of({label: means[label] for label in labels})
              for group, labels in asked.groups.items()}  # fmt: skip
    for number, stage in enumerate(stages(asked.training), start=1):
        shown.set_description(f"stage {number + 1} of training")
        worlds = {"runs": stage.games, "seed": training_seed(asked.seed, number)}
        fields = _further(
            fields,
            stage,
            asked,
            piece,
            partial(games, name=f"training-stage-{number + 1}", **worlds),
        )
    metabio = wrappers()["MetaBIO"]
    playing = dict(zip(THEOREM, (metabio, metabio.base), strict=True)) | uniform_play()
    for number, (group, field) in enumerate(fields.items()):
        where = (FORMS.index("tuned"), number, *piece.where)
        results.chosen[where] = field.names()[0]
        results.setting[where] = field.words(asked.learners)[0]
        playing[group] = _by_cell(field.learners(asked.learners)[0], piece)
    shown.set_description("judging")
    judged = {label: playing[label] for label in JUDGED}
    results.finals[:, *piece.where] = games(judged, "judged", runs=asked.runs, seed=asked.seed)


def _first_stage(piece: Piece, asked: Asked, store: Any, shown: tqdm) -> dict[str, np.ndarray]:
    """label -> mean regret [*cells, settings] of every setting."""
    found = {}
    for label, one in asked.learners.items():
        shown.set_description(f"training {label}")
        means = train(label, one, piece.problems, asked.first, asked.seed, horizon=piece.horizon,
                      progress=False, store=part(store, f"training-{label}"))  # fmt: skip
        shown.update(means.size * asked.first * piece.horizon)
        found[label] = means.reshape(*piece.shape, -1).mean(axis=3)
    return found


def _further(
    fields: Mapping[str, Field],
    stage: Stage,
    asked: Asked,
    piece: Piece,
    games: Callable[[Mapping[str, Any]], np.ndarray],
) -> dict[str, Field]:
    """The best of each group in every cell, ranked anew. games: learners -> regrets [learner,
    *cells, run].
    """
    left = {group: field.best(stage.most) for group, field in fields.items()}
    playing = {f"{group}, number {rank}": _by_cell(learners, piece)
               for group, field in left.items()
               for rank, learners in enumerate(field.learners(asked.learners))}  # fmt: skip
    means = games(playing).mean(axis=-1)
    parts = np.split(means, np.cumsum([len(field.left) for field in left.values()])[:-1])
    return {
        group: field.ranked(own) for (group, field), own in zip(left.items(), parts, strict=True)
    }


def _by_cell(learners: np.ndarray, piece: Piece) -> Callable[..., Any]:
    """The learner of a problem. learners: [*cells]."""
    return partial(_of_problem, learners.ravel(), piece.shape[3])


def _of_problem(learners: np.ndarray, instances: int, problem: int) -> Any:
    """learners: [cells]."""
    return learners[problem // instances]
