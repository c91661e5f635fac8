"""Problems along one of T, S, d and K: where the paper's rates can be seen, or not."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbio import checks, theory
from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.environment import Environment
from jaxbio.environment.instances import make_environment
from jaxbio.environment.losses import TableLosses
from jaxbio.environment.mappings import TableMapping
from jaxbio.studies.contestants import ROBUST, UNIFORM, robust, uniform_play

AXES = {"horizon": "T", "states": "S", "delay": "d", "actions": "K"}
HORIZON = 8_000  # where it is not the axis
VALUES = {
    "horizons": (1_000, 2_000, 4_000, 8_000, 16_000),
    "states": (4, 8, 16, 32, 64),
    "delays": (8, 16, 32, 64, 128),
    "actions": (4, 8, 16, 32),
}


@dataclass(frozen=True)
class Problem:
    """A family of problems with a number for each of T, S, d and K.

    build: of horizon, states, delay, actions and seed. rate: of horizon, states, delay and actions,
    the order of its regret: a hard problem's own (of the lower bound that it proves), else that of
    the paper's table. seeded: do its losses depend on the seed, the same in all runs?
    """

    name: str
    build: Callable[..., Environment]
    rate: Callable[..., float]
    hard: bool = True
    seeded: bool = False


def stochastic_rate(*, horizon: int, states: int, delay: int, actions: int) -> float:
    """sqrt((K + min(S, d)) T), the paper's table for stochastic losses."""
    return math.sqrt((actions + min(states, delay)) * horizon)


def actions_rate(*, horizon: int, states: int, delay: int, actions: int) -> float:
    """sqrt(K T), what hard-actions is made for."""
    return math.sqrt(actions * horizon)


def states_rate(*, horizon: int, states: int, delay: int, actions: int) -> float:
    """sqrt(min(floor(S / 2), d) T), what hard-states is made for: a round shows one of two states,
    so a block in which none comes back has at most S / 2 rounds.
    """
    return math.sqrt(min(states // 2, delay) * horizon)


def copies_rate(*, horizon: int, states: int, delay: int, actions: int) -> float:
    """sqrt((d + 1) T), what hard-adversarial is made for."""
    return math.sqrt((delay + 1) * horizon)


def blocks_rate(*, horizon: int, states: int, delay: int, actions: int) -> float:
    """min((d + 1) sqrt(S), sqrt((d + 1) T)), the lower bound of Theorem lb-fixed-delay."""
    bound = theory.lower_bound(horizon=horizon, num_states=states, delay=delay, num_actions=actions)
    return bound.terms["blocks"]


def _taking(name: str, *options: str) -> Callable[..., Environment]:
    """A named problem that takes some of the numbers, and has the others fixed."""

    def build(delay: int, **given: int) -> Environment:
        numbers = {**given, "delay": delay, "delays": FixedDelay(delay)}
        return make_environment(name, **{option: numbers[option] for option in options})

    return build


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("hard-actions", _taking("hard-actions", "horizon", "actions"), actions_rate),
        Problem("hard-states", _taking("hard-states", "horizon", "states", "delay"), states_rate),
        Problem("hard-delay", _taking("hard-delay", "horizon", "states", "delay", "seed"),
                blocks_rate, seeded=True),
        Problem("hard-adversarial",
                _taking("hard-adversarial", "horizon", "actions", "delay", "seed"),
                copies_rate, seeded=True),
        Problem("paper-utility", _taking("paper-utility", "states", "actions", "delays"),
                stochastic_rate, hard=False),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Series:
    """One problem along one axis. axis: a key of AXES; values: along it; fixed: all the others."""

    axis: str
    problem: Problem
    values: tuple[int, ...]
    fixed: Mapping[str, int]
    learners: tuple[str, ...]

    def point(self, value: int) -> dict[str, int]:
        """The numbers T, S, d and K at a value of the axis."""
        return {**self.fixed, self.axis: value}

    def rates(self) -> np.ndarray:
        """[points]: the order of regret that is expected."""
        return np.array([self.problem.rate(**self.point(value)) for value in self.values])

    def environment(
        self,
        horizon: int | None = None,
        states: int | None = None,
        delay: int | None = None,
        actions: int | None = None,
        seed: int = 0,
    ) -> Environment:
        """With the number of the axis given, as a sweep does: it names what it takes.

        Tables are of one length, so that one program plays all horizons.
        """
        numbers = {"horizon": horizon, "states": states, "delay": delay, "actions": actions}
        given = {name: value for name, value in numbers.items() if value is not None}
        env = self.problem.build(**{**self.fixed, **given}, seed=seed)
        return lengthened(env, max(self.point(value)["horizon"] for value in self.values))


def lengthened(env: Environment, rounds: int) -> Environment:
    """The same problem with tables of `rounds` rows; rows past its horizon are never played."""
    mapping, losses = env.mapping, env.losses
    if isinstance(mapping, TableMapping):
        table = np.resize(mapping.states, (rounds, mapping.num_actions))
        mapping = dataclasses.replace(mapping, states=table)
    if isinstance(losses, TableLosses):
        values = np.resize(losses.values, (rounds, losses.num_states))
        losses = dataclasses.replace(losses, values=values)
    return dataclasses.replace(env, mapping=mapping, losses=losses)


def learner(name: str, delta: float) -> Any:
    """A learner of the studies, or one that never learns."""
    known = robust(delta) | uniform_play()
    return known[checks.choice("a learner of a series", name, tuple(known))]


def default_series(
    *,
    horizons: Sequence[int],
    states: Sequence[int],
    delays: Sequence[int],
    actions: Sequence[int],
    horizon: int,
) -> list[Series]:
    """What `measure_rates` plays: along each axis a hard problem or two, and an easy one."""
    three, two, alone = ROBUST, ROBUST[:2], ROBUST[:1]

    def along(
        axis: str, values: Sequence[int], problem: str, names: tuple[str, ...], **fixed: int
    ) -> Series:
        known = PROBLEMS[problem]
        numbers = {"horizon": horizon, **fixed}
        rest = {name: number for name, number in numbers.items() if name != axis}
        players = (*names, UNIFORM) if known.hard else names
        return Series(axis, known, tuple(values), rest, players)

    few = {"states": 16, "delay": 64, "actions": 2}
    easy = {"states": 4, "delay": 100, "actions": 8}
    return [
        along("horizon", horizons, "hard-states", three, **few),
        along("horizon", horizons, "hard-adversarial", alone, **(few | {"states": 2})),
        along("horizon", horizons, "paper-utility", three, **easy),
        along("states", states, "hard-states", three, **(few | {"delay": max(states)})),
        along("states", states, "paper-utility", three, **easy),
        along("delay", delays, "hard-adversarial", alone, **(few | {"states": 2})),
        along("delay", delays, "hard-delay", three, **few),
        along("delay", delays, "paper-utility", three, **easy),
        along("delay", delays, "hard-states", three, **(few | {"states": 64})),
        along("actions", actions, "hard-actions", two, states=2, delay=0),  # nobody waits
        along("actions", actions, "paper-utility", three, **easy),
    ]
