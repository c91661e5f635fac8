"""Who enters a contest: every registered learner that makes sense, with what may be tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxbio import checks
from jaxbio.studies.contest.problems import CLASSES
from jaxbio.studies.contestants import UNIFORM, uniform_play
from jaxbio.studies.practical import PRACTICAL, RADII, RATES, Practical

# Of the registry BOLD over Exp3 is left out: it has as many copies as the longest delay has rounds.
ENTRANTS: dict[str, Practical] = PRACTICAL | {
    "Exp3": Practical("exp3", {}, {"scale": RATES}),
    "MetaBIO, skipping": Practical(
        "metabio-skipping", {}, {"scale": RATES, "radius_scale": RADII}
    ),
    "MetaBIO, restarting": Practical(
        "metabio-restarting", {}, {"period": (1000, 300, 3000), "scale": RATES}
    ),
    "Surrogate index": Practical("surrogate-exp3", {}, {"scale": RATES}),
    "MetaAdaBIO-Tsallis": Practical("metaadabio-tsallis", {}, {"scale": (1.0, 3.0)}),
    "StateThompson, exact": Practical(
        "state-thompson", {"sampler": "exact"}, {"discount": (1.0, 0.999)}
    ),
}  # fmt: skip


class Size(NamedTuple):
    """What is played unless something else is asked for."""

    classes: tuple[str, ...]
    entrants: tuple[str, ...]
    horizon: int
    runs: int
    training: int


SIZES = {
    "full": Size(tuple(CLASSES), tuple(ENTRANTS), 10_000, 128, 64),
    "small": Size(
        ("stochastic", "bursts", "drifting"),
        ("DAda-Exp3", "UCB1", "Thompson sampling", "MetaBIO-mean", "HindsightExp3", "NSD-UCRL2",
         "StateThompson"),
        2_000,
        64,
        32,
    ),
}  # fmt: skip


def guessing() -> dict[str, Practical]:
    """Uniform play, as one that plays along."""
    return {UNIFORM: alone(UNIFORM, uniform_play()[UNIFORM])}


def alone(label: str, learner: Any) -> Practical:
    """A learner with nothing to choose, which is called by its label."""

    def make() -> Any:
        return learner

    make.__name__ = label
    return Practical(make, {}, {})


def checked_entrants(given: Any) -> dict[str, Practical]:
    """Names of ENTRANTS, or label -> Practical or learner."""
    if not isinstance(given, Mapping):
        names = checks.several("entrants", given, "names")
        given = {checks.choice("entrants", name, tuple(ENTRANTS)): ENTRANTS[name] for name in names}
        if len(given) < len(names):
            raise ValueError(f"entrants must be different, but got {checks.shown(names)}")
    found = {_label(label): _entrant(label, one) for label, one in given.items()}
    if len(found) < 2:
        raise ValueError(f"entrants must be two or more, but got {checks.shown(list(found))}")
    return found


def _label(label: Any) -> str:
    if checks.text("a label of entrants", label) == UNIFORM:
        raise ValueError(f"entrants cannot have one called {UNIFORM!r}: it plays along anyway")
    return label


def _entrant(label: str, one: Any) -> Practical:
    what = f"entrants[{label!r}]"
    if not isinstance(one, Practical):
        return alone(label, checks.learner(what, one))
    grid = checks.mapping(f"the grid of {what}", one.grid, "names to values")
    for option, values in grid.items():
        if not checks.several(f"{option} in the grid of {what}", values, "values"):
            raise ValueError(f"{option} in the grid of {what} must have a value, but it is empty")
    for setting in one.settings:
        checks.learner(what, one.made(setting))
    return one


def settings_of(entrants: Mapping[str, Practical]) -> int:
    """How many there are to choose from, of all together."""
    return sum(len(one.settings) for one in entrants.values())


def titled(labels: Sequence[str]) -> dict[str, str]:
    """Label -> what stands above its column in a table."""
    return {label: CLASSES[label].column if label in CLASSES else label for label in labels}
