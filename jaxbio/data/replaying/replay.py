"""Replay: what would a learner have lost, had it chosen in place of the log?"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbio import checks, rng
from jaxbio.data.chances import chances
from jaxbio.data.kinds import CONVERSIONS, KINDS, kind_of
from jaxbio.data.log import Log
from jaxbio.data.reading import LogWarning
from jaxbio.data.replaying import assignment
from jaxbio.data.replaying.game import ORDERS, Laid, check, lay_out
from jaxbio.data.replaying.result import Replay, Used
from jaxbio.data.replaying.rows import Rows, usable_rows, waited, window_of
from jaxbio.environment.delays import NEVER
from jaxbio.learners.row_view import PLAYS
from jaxbio.sweeps.result import Result
from jaxbio.sweeps.simulate import simulate

REDRAWN, THINNED, LOGS = 1, 2, 3  # streams of random numbers
EACH = 8  # runs on each redrawn log, on average
LATE = (0.5, 0.9)  # quantiles
LITTLE = 0.5  # share of losses that come before the last round


def replay(
    log: Log,
    learner: Any,
    *,
    kind: str | None = None,
    window: int | None = None,
    traffic: float = 1.0,
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

    Replay by rejection (Li, Chu, Langford and Wang 2011), with a pile of rows for each action
    (Mandel, Liu, Brunskill and Popovic 2015). Every round lays out one row of each action that no
    earlier round has laid out; the row of the action that the learner chooses is accepted, the
    others are rejected. The learner sees the row's state at once, and its loss later. So a run has
    as many rounds as the rarest action has rows, about one K-th of the log, and this number is the
    horizon that the learner is told. The mean loss is unbiased if rows are independent draws from
    one world and actions were chosen at random.

    A row's delay in the replay is its delay in the log: an outcome that came when 50 more decisions
    had been made comes after 50 more accepted rounds. That is what a learner meets that makes all
    decisions of the same traffic. (Counted in accepted rows, delays would be K times too short.)

    Args:
      log: of `read_log`.
      learner: as in `simulate`.
      kind: "outcomes", if every row has an outcome some time: where it has not come the learner
        never gets it, and the row counts with the mean loss of the others of its action and state.
        "conversions", if only events are seen: what has not come when a window ends counts as none,
        which the learner is told at that time. None finds it out, as `fit` does.
      window: rounds. Rows that are not as old as that at the end of the log are left out, whatever
        their outcome. None: after how many rounds 95 % of the conversions have come that the log
        has seen, or 99 % of outcomes; at most half of the log; 0 where every outcome has come.
      traffic: the learner's share of all decisions, if others are made without it: delays have as
        many rounds of its own as that, 10 in place of 50 for a traffic of 0.2.
      probability: with which each row's action was chosen, if that is not the same in all rows of
        an action: [rows] of the log. Rows are then left out at random, such that all actions have a
        fair share of all kinds of rows. [K], or label -> number: it is only checked.
      order: "random": every run has another order of rows. "log": rows stay in the order of time,
        so that what drifts in the log drifts in the replay; runs differ in the learner's own
        randomness only.
      horizon: rounds, fewer than there could be.
      rounds: how many rounds to record, or which, as in `simulate`.
      runs: replays of the log. resamples: replays of logs that are redrawn from it, about 8 of
        each, for intervals.
      level: of the intervals.
      seed, backend, progress: as in `simulate`. With the same seed learners meet the same rows.
    Returns:
      A Replay: losses over rounds with intervals, compared with the log and with every action.
    """
    if not isinstance(log, Log):
        raise TypeError(f"log must be a Log, as read_log makes one, but got {checks.shown(log)}")
    seed, order = checks.seed(seed), checks.choice("order", order, ORDERS)
    runs = checks.size("runs", runs, 2)
    resamples = checks.size("resamples", resamples, 4 * EACH)
    level = checks.number("level", level, 0, 1, open_low=True, open_high=True)
    kind = kind_of(log) if kind is None else str(checks.choice("kind", kind, KINDS))
    traffic = checks.number("traffic", traffic, 0, 1, open_low=True)
    known = waited(log)
    window = window_of(log, kind, known, window)
    usable = usable_rows(log, kind, known, window).at_traffic(traffic)
    told = chances(probability, log)
    texts = assignment.doubts(log, told)
    mine = None if told is None else told[usable.place]
    fair = assignment.fair(usable.action, mine, rng.root_words(rng.stream_key(seed, THINNED)))
    rows = usable.only(fair)
    laid = lay_out(rows, log, order)
    check(learner, rows, log, laid)
    horizon = laid.length if horizon is None else _horizon(horizon, laid)
    texts += [*_mistaken(log, kind, rows), *_hardly_any(rows, horizon)]
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
        traffic=traffic,
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


def _mistaken(log: Log, kind: str, rows: Rows) -> list[str]:
    known = rows.loss[~rows.unknown]
    if kind == CONVERSIONS or not rows.unknown.any() or (known != known[0]).any():
        return []
    return [
        f"every loss that is known is {known[0]:g}, and {rows.unknown.sum():,} rows have none: if "
        f"only events arrive, fill in column {log.names.get('loss', log.names.get('reward'))!r} of "
        "rows that have none"
    ]


def _hardly_any(rows: Rows, horizon: int) -> list[str]:
    """Does little reach the learner before the last round?"""
    share = float(np.clip(1 - rows.delay / horizon, 0, 1).mean())
    if share > LITTLE:
        return []
    late = np.median(rows.delay)
    when = f"half of them come after {late:,.0f} rounds or later" if late < NEVER else "most never"
    return [
        f"{share:.0%} of losses reach the learner within the {horizon:,} rounds that can be "
        f"replayed ({when}): what is replayed is hardly more than its beginning; replay a longer "
        "log, or a learner that makes a part of the decisions (traffic=)"
    ]


def _of_every_action(played: Result) -> np.ndarray:
    """float64 [runs, K]: the mean loss of each action's rows in the rounds of a run."""
    return played.replay().sum(axis=1, dtype=np.float64) / played.rounds[-1]


def _used(log: Log, usable: Rows, rows: Rows, fair: np.ndarray, window: int) -> Used:
    left_out = {
        f"made less than {window:,} rounds before the end of the log (window)": len(log)
        - len(fair),
        "for a fair share of every action (probability)": int((~fair).sum()),
    }
    late = np.quantile(rows.delay, LATE, method="inverted_cdf")
    size = np.bincount(rows.action, minlength=log.num_actions)
    mean = np.bincount(rows.action, rows.loss, log.num_actions) / size
    squares = np.bincount(rows.action, (rows.loss - mean[rows.action]) ** 2, log.num_actions)
    return Used(
        rows=len(log),
        usable=len(rows.place),
        left_out={reason: count for reason, count in left_out.items() if count},
        unknown=int(rows.unknown.sum()),
        late=tuple(None if late == NEVER else int(late) for late in late),
        actions=log.actions,
        size=size,
        mean=mean,
        noise=squares / np.maximum(size - 1, 1) / size,
        logged=float(usable.loss.mean()),
        logged_noise=float(usable.loss.var() / len(usable.loss)),
        alike=bool(fair.all()),
    )
