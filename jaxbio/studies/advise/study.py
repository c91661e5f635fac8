"""Which learner should I run at my K, S, T and delays? Played, not looked up.

Learners play a family of problems of the user's size in the same worlds, more and more runs, until
a winner is beyond doubt or time is over; those that are surely beaten stop early (`tournament`).
Where the family has problems with a mapping that changes, these are played too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from jaxbio import checks
from jaxbio.data.log import Log
from jaxbio.environment.environment import Environment
from jaxbio.studies.advise.advice import Advice
from jaxbio.studies.advise.from_log import advise_log
from jaxbio.studies.advise.playing import FIRST, LEVEL, LOOKS, SECONDS, Rules, hold
from jaxbio.studies.advise.problems import CHANGING, STATIONARY, Instances
from jaxbio.studies.families import FAMILY, family_of, in_turns, problem


def advise(
    *,
    actions: int | None = None,
    states: int | None = None,
    horizon: int | None = None,
    delays: Any = None,
    family: Any = None,
    log: Log | None = None,
    kind: str | None = None,
    window: int | None = None,
    learners: Mapping[str, Any] | None = None,
    seconds: float = SECONDS,
    looks: int = LOOKS,
    first: int = FIRST,
    level: float = LEVEL,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Advice:
    """Play a problem of this size, or of this log, and recommend a learner, or say that it is too
    close to call.

    Args:
      actions, states, horizon, delays: K, S, T and the law of the delays; of a log only the
        horizon can be said (by default as many rounds as it has rows, or as can be played in the
        time: `horizon` of the result says how many).
      family: "utility" (the default), "random", or a function (actions, states, delays) ->
        Environment of the numbers K and S and the law of the delays.
      log: of `read_log`, in place of a size and a family. Every game is then played on a problem
        of its own, drawn from what the log leaves possible; the result is a `LogAdvice`, and
        `write_report` makes a page of it.
      kind, window: of the log, as in `fit`.
      learners: label -> learner (default: `everybody()`, some twenty), the most promising first.
      seconds: to spend, compiling included; it may be late by what compiling a few learners takes.
        In the first look learners play a few at a time, and none begins when time is over: those
        that are finished by then are compared, the others are named in `unfinished`, and where
        fewer than two are it is an error that says what would be enough. No other look begins that
        is not expected to end in this time, and it is given up a tenth after it. (Of a log it
        begins when the problem has been fitted and checked.)
      looks, first: at most so many looks at the results; the first at so many games of each
        learner (fewer where they are long), each further one at twice as many as the one before.
      level: the probability, at most, that a winner is named among equals, or that a learner that
        is as good as any leaves early; as far as Student's law holds for means of so few games (one
        that fails in a game of a hundred may look best on the first 32).
      seed: the root seed. No run is one of `simulate`, `sweep` or the search of `tune` with the
        same seed: a tuned learner is judged in worlds that it has not seen.
      store: a folder for finished parts; the same call goes on where it was interrupted.
      progress: show bars.
    """
    begun = time.monotonic()
    rules = Rules(seconds, looks, first, level, seed, store, progress)
    sizes = {"actions": actions, "states": states, "delays": delays}
    if log is not None:
        _refuse(sizes | {"family": family}, "log brings its own")
        return advise_log(log, horizon, learners, rules, kind=kind, window=window)
    _refuse({"kind": kind, "window": window}, "only a log has a")
    _require(sizes | {"horizon": horizon})
    sized = checks.size("actions", actions, 2), checks.size("states", states, 1)
    rules, horizon = rules.checked(), checks.size("horizon", horizon, 1)
    problems = Instances(_problems(FAMILY if family is None else family, *sized, delays))
    held = hold(problems, learners, horizon, rules, begun=begun)
    return Advice(
        held.outcomes[STATIONARY],
        held.outcomes.get(CHANGING),
        held.robust(STATIONARY),
        held.tournament.runs,
        time.monotonic() - begun,
        problems.any().delays,
        held.unfinished,
    )


def _refuse(given: Mapping[str, Any], why: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{why} {name}: leave it out, but got {name}={checks.shown(value)}")


def _require(given: Mapping[str, Any]) -> None:
    missing = [name for name, value in given.items() if value is None]
    if missing:
        raise TypeError(
            f"advise needs actions, states, horizon and delays, or a log, but {missing[0]} is "
            "missing"
        )


def _problems(family: Any, actions: int, states: int, delays: Any) -> dict[str, list[Environment]]:
    """kind -> its instances."""
    kind = family_of(family)
    given = [(kind, actions, states, delays, i) for i in range(kind.instances)]
    both = [in_turns(*one) for one in given]
    if None in both:
        return {STATIONARY: [problem(*one) for one in given]}
    return {name: [one[i] for one in both if one] for i, name in enumerate((STATIONARY, CHANGING))}
