"""Replay: what would a learner have lost, had it chosen in place of the log?"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbio import checks, rng
from jaxbio.data.log import Log
from jaxbio.data.reading import LogWarning
from jaxbio.data.replaying import assignment
from jaxbio.data.replaying.game import ORDERS, Laid, check, lay_out
from jaxbio.data.replaying.result import Replay, Used
from jaxbio.data.replaying.rows import Rows, kind_of, usable_rows, window_of
from jaxbio.learners.row_view import PLAYS
from jaxbio.sweeps.result import Result
from jaxbio.sweeps.simulate import simulate

REDRAWN, THINNED, LOGS = 1, 2, 3  # streams of random numbers
EACH = 8  # runs on each redrawn log, on average


def replay(
    log: Log,
    learner: Any,
    *,
    kind: str | None = None,
    window: int | None = None,
    probability: Any = None,
    order: str = "random",
    horizon: int | None = None,
    rounds: Any = 100,
    runs: int = 100,
    resamples: int = 800,
    level: float = 0.95,
    seed: Any = 0,
    backend: str | None = None,
    progress: bool = True,
) -> Replay:
    """Play a learner on the rows of a log whose actions were chosen at random.

    Replay by rejection (Li, Chu, Langford and Wang 2011; with a queue of rows for each action,
    Mandel, Liu, Brunskill and Popovic 2015). A round lays out one row of every action that no
    earlier round has; the row of the action that the learner chooses is accepted, the others are
    rejected. The learner sees its state at once, and its loss later. So every run has as many
    rounds as the rarest action has rows, about one K-th of the log, and the learner is told this
    number as its horizon. The mean loss is unbiased where rows are independent draws of one world
    and actions were chosen at random.

    A row's delay in the replay is its delay in the log: an outcome that came when 50 more decisions
    had been made comes after 50 more accepted rounds. That is what a learner meets that makes all
    decisions of the same traffic. (Counted in accepted rows, delays would be K times shorter.)

    Args:
      log: of `read_log`.
      learner: as in `simulate`.
      kind: "outcomes": every row has an outcome; where it has not come yet, the learner never gets
        it, and the row counts with the mean loss of the others of its action and state.
        "conversions": only events arrive, and a row without one has the loss `log.absent`, known
        when the window ends; an event after the window counts as none. None finds out: conversions
        where all losses that came are equal and are not `log.absent`.
      window: rounds. Rows that were not waited for as long as that by the last decision are left
        out, whatever their outcome. None: rounds after which 95 % of conversions have come, 99 % of
        outcomes (0 where all have), by the Kaplan-Meier estimate; at most half of the log.
      probability: with which each row's action was chosen, if not all rows of an action have the
        same: [rows] of the log. Rows are then left out at random, so that all actions have a fair
        share of all kinds of rows. [K], or label -> number: it only is checked.
      order: "random": every run has another order of rows. "log": rows stay in the order of time,
        so that what drifts in the log drifts in the replay; runs differ in the learner's own
        randomness only.
      horizon: rounds, fewer than there could be.
      rounds: how many rounds to record, or which, as in `simulate`.
      runs: replays of the log. resamples: replays of logs that are redrawn from it, for intervals; on
        each of them about 8.
      level: of the intervals.
      seed, backend, progress: as in `simulate`. With one seed, learners meet the same rows.
    Returns:
      A Replay: losses over rounds with intervals, against the log and against every action.
    """
    if not isinstance(log, Log):
        raise TypeError(f"log must be a Log, as read_log makes one, but got {checks.shown(log)}")
    seed, order = checks.seed(seed), checks.choice("order", order, ORDERS)
    runs = checks.size("runs", runs, 2)
    resamples = checks.size("resamples", resamples, 4 * EACH)
    level = checks.number("level", level, 0, 1, open_low=True, open_high=True)
    kind = kind_of(log, kind)
    window = window_of(log, kind, window)
    chances = assignment.probabilities(probability, log)
    usable = usable_rows(log, kind, window)
    chances = None if chances is None else chances[usable.place]
    texts = assignment.doubts(usable.action, chances, log)
    fair = assignment.kept(usable.action, chances, rng.root_words(rng.stream_key(seed, THINNED)))
    rows = usable.only(fair)
    laid = lay_out(rows, log, order)
    check(learner, rows, log, laid)
    horizon = laid.length if horizon is None else _horizon(horizon, laid)
    for sentence in texts:
        warnings.warn(sentence, LogWarning, stacklevel=2)
    play = partial(
        simulate, learner=laid.view(learner), horizon=horizon, rounds=rounds, backend=backend,
        progress=progress,
    )  # fmt: skip
    own = play(laid.env, runs=runs, seed=seed)
    others = laid.redrawn(max(2, resamples // EACH), rng.root_words(rng.stream_key(seed, LOGS)))
    redrawn = play(others, runs=resamples, seed=rng.stream_key(seed, REDRAWN))
    keys = rng.run_keys(rng.stream_key(seed, REDRAWN), np.arange(resamples))
    return Replay(
        learner=learner,
        rounds=own.rounds,
        loss=own.loss / own.rounds,
        redrawn=redrawn.loss / own.rounds,
        logs=np.asarray(others.mapping.log_of(jnp.asarray(keys))).astype(int),
        every=_of_every_action(own),
        every_redrawn=_of_every_action(redrawn),
        plays=own.info[PLAYS] / horizon,
        kind=kind,
        window=window,
        order=order,
        level=level,
        used=_used(log, usable, rows, fair, window),
        warnings=tuple(texts),
        info={name: fact for name, fact in own.info.items() if name != PLAYS},
    )


def _horizon(horizon: Any, laid: Laid) -> int:
    found = checks.size("horizon", horizon, 1)
    if found > laid.length:
        raise ValueError(
            f"horizon must be at most {laid.length:,}, the rows of the rarest action that can be "
            f"replayed, but got {found:,}"
        )
    return found


def _of_every_action(played: Result) -> np.ndarray:
    """float64 [runs, K]: the mean loss of each action's rows in the rounds of a run."""
    return played.replay().sum(axis=1, dtype=np.float64) / played.rounds[-1]


def _used(log: Log, usable: Rows, rows: Rows, fair: np.ndarray, window: int) -> Used:
    left_out = {
        f"less than {window:,} rounds before the last decision (window)": len(log) - len(fair),
        "for a fair share of every action (probability)": int((~fair).sum()),
    }
    size = np.bincount(rows.action, minlength=log.num_actions)
    mean = np.bincount(rows.action, rows.loss, log.num_actions) / size
    squares = np.bincount(rows.action, (rows.loss - mean[rows.action]) ** 2, log.num_actions)
    return Used(
        rows=len(log),
        usable=len(rows.place),
        left_out={reason: count for reason, count in left_out.items() if count},
        unknown=int(rows.unknown.sum()),
        actions=log.actions,
        size=size,
        mean=mean,
        noise=squares / np.maximum(size - 1, 1) / size,
        logged=float(usable.loss.mean()),
        logged_noise=float(usable.loss.var() / len(usable.loss)),
        alike=bool(fair.all()),
    )
