"""What a tournament plays: problems that are given, or draws of what is not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from jaxbio.environment.environment import Environment

LOOK_BITS = 6  # there are at most 30 looks
STATIONARY, CHANGING = "stationary", "changing"  # the kinds of problems


class Deal(NamedTuple):
    """The games of a look. environment, axes, runs: as in `sweep`. kinds: of the points of the
    axes, in their order. apart: are the points of a kind games of their own? Otherwise they are
    instances, of which a game has one each and its regret is the mean.
    """

    environment: Callable[..., Environment]
    axes: dict[str, list[Any]]
    runs: int
    kinds: list[str]
    apart: bool

    def folded(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """kind -> [games, ...], of rows [points, runs, ...]."""
        kinds, found = np.array(self.kinds), {}
        for kind in dict.fromkeys(self.kinds):
            own = rows[kinds == kind]
            found[kind] = own.reshape(-1, *own.shape[2:]) if self.apart else own.mean(axis=0)
        return found


class Problems(Protocol):
    """kinds: of problems; instances: of a kind, that make one game; rounds: at which regret is
    recorded, None where only its end counts.
    """

    @property
    def kinds(self) -> tuple[str, ...]: ...

    @property
    def instances(self) -> int: ...

    @property
    def rounds(self) -> int | None: ...

    def any(self) -> Environment:
        """One of them: the sizes, and the law of the delays."""
        ...

    def deal(self, look: int, games: int) -> Deal:
        """So many games of each kind; the same whenever it is asked for."""
        ...


class Instances:
    """Problems that are given: every game has all of its kind."""

    rounds = None

    def __init__(self, problems: Mapping[str, Sequence[Environment]]) -> None:
        self.flat = [(kind, env) for kind, envs in problems.items() for env in envs]
        self.kinds = tuple(problems)
        self.instances = len(next(iter(problems.values())))

    def any(self) -> Environment:
        return self.flat[0][1]

    def deal(self, look: int, games: int) -> Deal:
        kinds = [kind for kind, _ in self.flat]
        axes = {"place": list(range(len(self.flat)))}
        return Deal(lambda place: self.flat[place][1], axes, games, kinds, apart=False)


class Draws:
    """Problems that are drawn: every game has one of its own, in a world of its own, so that a mean
    over games is one over draws and runs together.

    draw: number -> kind -> environment, a pure function; the same kinds for every number.
    """

    instances = 1

    def __init__(
        self, draw: Callable[[int], Mapping[str, Environment]], kinds: Sequence[str], rounds: int
    ) -> None:
        self.draw, self.kinds, self.rounds = draw, tuple(kinds), rounds
        self.dealt: dict[tuple[int, int], list[Mapping[str, Environment]]] = {}

    def any(self) -> Environment:
        return self.drawn(0, 1)[0][self.kinds[0]]

    def drawn(self, look: int, games: int) -> list[Mapping[str, Environment]]:
        """Those of a look: no number comes in two looks."""
        if (look, games) not in self.dealt:
            numbers = [_number(look, place) for place in range(games)]
            self.dealt = {(look, games): [self.draw(number) for number in numbers]}
        return self.dealt[look, games]

    @staticmethod
    def numbers(games: Sequence[int]) -> list[int]:
        """Of the draws of all games, in order; games: of each look."""
        return [_number(look, place) for look, most in enumerate(games) for place in range(most)]

    def deal(self, look: int, games: int) -> Deal:
        drawn = self.drawn(look, games)
        axes = {"kind": list(self.kinds), "world": list(range(games))}
        kinds = [kind for kind in self.kinds for _ in range(games)]
        return Deal(lambda kind, world: drawn[world][kind], axes, 1, kinds, apart=True)


def _number(look: int, place: int) -> int:
    return (place << LOOK_BITS) + look
