"""What states are worth when they are used well: the best learner with them against the best
without, over the number of states and the delay.

In every cell (S, d) every learner plays with all of its settings in worlds of training, the best
ones more often. Of those that look at states the one that does best there, and of those that do
not, play the runs that judge: in other worlds, the same for both. Beside them play MetaBIO and its
base in the form of their theorem, as in `phase_diagram`, and uniform play as the yardstick.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from jaxbio import checks
from jaxbio.display.bars import tqdm
from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.environment import MAX_HORIZON, Environment
from jaxbio.storage.store import part
from jaxbio.studies.families import FAMILY, Family, family_of, in_turns, problem
from jaxbio.studies.phase.duels import Asked, Piece, Results, play
from jaxbio.studies.phase.study import ACTIONS, HORIZONS, RUNS, size_groups
from jaxbio.studies.phase.worth import GROUPS, compared
from jaxbio.studies.practical import PRACTICAL, TRAINING_RUNS, Practical, looking
from jaxbio.sweeps.workers import bar

MAPPINGS = ("stationary", "changing")
AS_MADE = ("as made",)  # of a family of the user's

# Skipping is for delays that differ. The others are slow: Tsallis-INF and MetaBIO over it had at
# least twice the regret of the best of their kind wherever they were tried; the exact sampler had
# up to 11 % less than the best of the others with two states, and up to 2 % less with eight.
LEFT_OUT = ("DAda-Exp3, skipping", "Tsallis-INF", "MetaBIO-Tsallis", "StateThompson, exact")
FORGETTING = (1.0, 0.999)
FEWER: dict[str, dict[str, tuple[Any, ...]]] = {  # settings, of those that are slow or far behind
    "MetaBIO": {"scale": (1.0, 3.0), "radius_scale": (1.0, 0.03)},
    "MetaAdaBIO": {"scale": (1.0, 3.0), "radius_scale": (1.0, 0.03)},
    "HindsightExp3": {"scale": (1.0, 3.0), "discount": FORGETTING},
    "Hindsight-Tsallis": {"scale": (1.0, 3.0), "discount": FORGETTING},
    "QPM-D UCB1": {"discount": FORGETTING},
    "StateThompson": {"discount": FORGETTING},
}


def entrants() -> dict[str, Practical]:
    """Those of `PRACTICAL` that may be the best of their kind, with fewer settings where they are
    slow or far behind.
    """
    return {
        label: one._replace(grid={**one.grid, **FEWER.get(label, {})})
        for label, one in PRACTICAL.items()
        if label not in LEFT_OUT
    }


def worth_diagram(
    states: Sequence[int],
    delays: Sequence[int],
    *,
    actions: Sequence[int] = ACTIONS,
    horizons: Sequence[int] = HORIZONS,
    runs: int = RUNS,
    training: int = TRAINING_RUNS,
    seed: int = 0,
    family: Any = FAMILY,
    learners: Mapping[str, Practical] | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Regret of the best learner with states and of the best without in every cell, both tuned.

    Args:
      states, delays, actions, horizons: the grid: S, d, K and T.
      runs: that judge, per cell and learner, in the same worlds for all learners; on each problem,
        where the family has several: then a run's regret is their mean.
      training: runs that choose learners and settings, in worlds in which nothing is judged. With
        more than 64 all settings play 64 runs, the best sixteen with states and without in a cell
        more of them, and the best five of these so many, each time in other worlds
        (`jaxbio.studies.phase.halving`). Where the family has several problems, one choice serves
        them all.
      seed: the root seed.
      family: as in `phase_diagram`. One of the user's is played as it is made.
      learners: label -> Practical, who may be chosen. Default: `entrants`.
      store: a folder for finished parts; the same call goes on where it was interrupted.
      progress: say how much will be played, and show a bar.
    Returns:
      A Dataset over form ("tuned", "theorem"), group ("with states", "without"), mapping
      ("stationary" and "changing", or "as made"), actions, horizon, states, delay and run.
      final_regret [form, group, mapping, ..., run]; chosen and setting [form, group, mapping, ...]:
      who played, as a label and as on the command line; uniform_regret [mapping, ..., run];
      training_regret [learner, mapping, ...]: of every learner with its best setting in the games
      that all of them played; and what
      `compared` makes of the regrets: ratio, low, high and so on.
    """
    axes: dict[str, Any] = {
        "actions": checks.increasing("actions", actions, 2),
        "horizon": checks.increasing("horizons", horizons, 1),
        "states": checks.increasing("states", states, 1),
        "delay": checks.increasing("delays", delays, 0),
    }
    checks.size("horizons", axes["horizon"][-1], 1, MAX_HORIZON)
    runs = checks.size("runs", runs, 2)  # one has no interval
    training, seed = checks.size("training", training, 1), checks.seed(seed)
    found = family_of(family)
    axes = {"mapping": list(AS_MADE if found.changing is None else MAPPINGS), **axes}
    known, pieces = _checked(entrants() if learners is None else learners), _pieces(found, axes)
    asked = Asked(known, _groups(known, pieces[0].problems[0]), training, runs, seed)
    results = Results.empty(axes, list(asked.learners), runs)
    if checks.boolean("progress", progress):
        tqdm.write(asked.in_words(pieces), file=sys.stderr)
    with bar(sum(map(asked.rounds, pieces)), progress) as shown:
        for piece in pieces:
            play(piece, asked, part(store, piece.name), shown, results)
    return compared(results.labelled(axes, list(asked.learners))).assign_attrs(
        title="jaxbio phase --tuned", runs=runs, training=training, problems=found.instances
    )


# --- what is asked


def _checked(given: Any) -> dict[str, Practical]:
    found = checks.mapping("learners", given, "labels to Practical")
    for label, one in found.items():
        if not isinstance(one, Practical):
            raise TypeError(
                f"learners[{label!r}] must be a Practical: the name of a learner, its options and "
                f"a grid of settings, but got {checks.shown(one)}"
            )
        for setting in one.settings:
            one.made(setting)
    return dict(found)


def _groups(learners: Mapping[str, Practical], env: Environment) -> dict[str, list[str]]:
    """The labels of those that look at states, and of those that do not."""
    looks = looking(learners, env)
    found = {
        group: [label for label, does in looks.items() if does == (group == GROUPS[0])]
        for group in GROUPS
    }
    if not all(found.values()):
        raise ValueError(
            "learners must have at least one that looks at states and one that does not, but got "
            f"{', '.join(learners) or 'none'}"
        )
    return found


def _pieces(family: Family, axes: Mapping[str, Any]) -> list[Piece]:
    """Everything that is to be played; a family that refuses a size does so here."""
    states, delays, mappings = axes["states"], axes["delay"], len(axes["mapping"])
    pieces = []
    for (i, K), (j, T) in itertools.product(enumerate(axes["actions"]), enumerate(axes["horizon"])):
        for group in size_groups(states):
            cells = itertools.product(group, delays, range(family.instances))
            both = [_problems(family, K, S, FixedDelay(d), instance) for S, d, instance in cells]
            first = states.index(group[0])
            pieces.append(
                Piece(
                    [kinds[number] for number in range(mappings) for kinds in both],
                    (mappings, len(group), len(delays), family.instances),
                    T,
                    (slice(None), i, j, slice(first, first + len(group))),
                    f"actions-{K}-horizon-{T}-states-{group[0]}-{group[-1]}",
                )
            )
    return pieces


def _problems(
    family: Family, actions: int, states: int, delays: Any, instance: int
) -> tuple[Environment, ...]:
    """One for each kind of mapping."""
    both = in_turns(family, actions, states, delays, instance)
    return (problem(family, actions, states, delays, instance),) if both is None else both
