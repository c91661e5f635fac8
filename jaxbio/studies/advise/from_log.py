"""Which learner for the problem behind a log? Played on what the log leaves possible."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxbio import checks
from jaxbio.data.fitting import fit as fit_log
from jaxbio.data.holding.model import check_model
from jaxbio.data.log import Log
from jaxbio.storage.provenance import surroundings
from jaxbio.studies.advise.hall import Curves, Hall
from jaxbio.studies.advise.log_advice import LogAdvice
from jaxbio.studies.advise.log_problems import RANDOM, LogProblems
from jaxbio.studies.advise.playing import CELLS, Held, Rules, hold
from jaxbio.studies.advise.problems import STATIONARY, Draws
from jaxbio.studies.advise.turns import turns

SHORTEST = 1_000  # rounds of a game, unless fewer are asked for
PLAYABLE = 5_000  # rounds of a game for every second, where the horizon is not asked for
POINTS = 60  # of a curve


def advise_log(
    log: Log,
    horizon: int | None,
    learners: Mapping[str, Any] | None,
    rules: Rules,
    *,
    kind: str | None = None,
    window: int | None = None,
) -> LogAdvice:
    """See `advise`."""
    if not isinstance(log, Log):
        raise TypeError(f"log must be a Log, which read_log makes, but got {checks.shown(log)}")
    rules = rules.checked()
    seed = checks.integer("seed", rules.seed, 0)
    asked = horizon is not None
    length = checks.size("horizon", horizon, 1) if asked else playable(log, rules.seconds)
    found = fit_log(log, kind, window)
    held_by = check_model(log, kind=found.kind)
    moved = turns(log)
    begun = time.monotonic()
    drawn = LogProblems(found, moved, length, seed)
    problems = Draws(drawn.draw, drawn.kinds, POINTS)
    held = hold(problems, learners, length, rules, begun=begun, yardstick=False)
    numbers = problems.numbers(held.games)
    yardsticks = {kind: drawn.yardsticks(kind, numbers) for kind in drawn.kinds}
    outcomes = {
        kind: dataclasses.replace(one, uniform=float(yardsticks[kind][RANDOM].mean()))
        for kind, one in held.outcomes.items()
    }
    return LogAdvice(
        stationary=outcomes[STATIONARY],
        changing=outcomes.get("changing"),
        robust=held.robust(STATIONARY),
        runs=held.tournament.runs,
        seconds=time.monotonic() - begun,
        delays=problems.any().delays,
        unfinished=held.unfinished,
        log=log,
        fit=found,
        checks=held_by,
        turns=moved,
        horizon=length,
        asked=asked,
        seed=seed,
        best_looking=log.actions[drawn.best_looking],
        finals=held.tournament.finals,
        yardsticks=yardsticks,
        rounds=held.hall.rounds,
        curves=curves(held.hall, held),
    )


def playable(log: Log, seconds: float) -> int:
    """As many rounds as the log has rows, or as can be played in the time."""
    cells = max(1, log.num_actions * log.num_states // CELLS)
    return min(len(log), max(SHORTEST, int(PLAYABLE * seconds / cells)))


def curves(hall: Hall, held: Held) -> Curves:
    """name -> kind -> regret [games, points], of the looks in which all that stayed were finished
    in time; of those that left, of the first one.
    """
    stayed = [row.name for row in held.outcomes[STATIONARY].comparison.rows]
    looks = [look for look in range(len(held.games)) if look in hall.curves]
    whole = [hall.curves[look] for look in looks if set(stayed) <= set(hall.curves[look])]
    found = dict(hall.curves.get(0, {}))
    for name in stayed if whole else ():
        kinds = whole[0][name]
        found[name] = {kind: np.concatenate([one[name][kind] for one in whole]) for kind in kinds}
    return found


def digest(log: Log) -> str:
    """Of the content of a log: the same for the same decisions and outcomes."""
    made = hashlib.sha256(
        repr((log.actions, log.states, str(log.end), log.absent, log.bounds)).encode()
    )
    for column in (log.action, log.state, log.loss, log.time, log.arrived, log.watched):
        if column is not None:
            made.update(np.ascontiguousarray(column).view(np.uint8).data)
    return made.hexdigest()[:12]


def store_name(log: Log, *options: Any) -> str:
    """Of the finished parts of these very options, by this very code."""
    rest = hashlib.sha256(repr((options, surroundings())).encode()).hexdigest()[:12]
    return f"log-{digest(log)}-{rest}"
