"""From a log to the problem behind it: mapping, losses and delays, and how sure they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxbio import checks
from jaxbio.data import curing, waits
from jaxbio.data.alike import own_delays
from jaxbio.data.betas import Posterior
from jaxbio.data.delays import DelayFit, fit_delays
from jaxbio.data.fitted import Fit
from jaxbio.data.kinds import CONVERSIONS, KINDS, OUTCOMES, kind_of
from jaxbio.data.log import Log
from jaxbio.data.survival import curve
from jaxbio.data.waits import Waits
from jaxbio.environment.delays import NEVER

IN_TIME = 0.95  # share of conversions that come within the window, if none is given


def fit(
    log: Log,
    kind: str | None = None,
    window: int | None = None,
    level: float = 0.95,
    *,
    width: int = 1,
) -> Fit:
    """The problem that a log comes from: P, theta and delays, with intervals."""
    if not isinstance(log, Log):
        raise TypeError(f"log must be a Log, which read_log makes, but got {checks.shown(log)}")
    kind = kind_of(log) if kind is None else str(checks.choice("kind", kind, KINDS))
    level = checks.number("level", level, 0, 1, open_low=True, open_high=True)
    width = checks.size("width", width, 1)
    event, absent = _two_losses(log) if kind == CONVERSIONS else (1.0, 0.0)
    if kind == OUTCOMES and window is not None:
        raise ValueError(
            f"window is for a log of conversions, but this one has outcomes of every round: leave "
            f"it out, but got {checks.shown(window)}"
        )
    rows = waits.rows_by_state(log, log.come)
    taken = log.delays()
    common = curve(taken[log.come], taken[~log.come])
    age = _ages(log)
    own = own_delays(log.state, taken, log.come, age, common, log.num_states)
    if kind == CONVERSIONS:
        values, concentration = _conversions(rows, taken, own, float(log.come.mean())), None
    else:
        values, concentration = _outcomes(log, rows, taken), _concentration(log)
    delays = _delays(log, own, width, level)
    if kind == CONVERSIONS:
        window = usual_window(delays[0]) if window is None else checks.integer(
            "window", window, 0, NEVER)  # fmt: skip
    each = tuple(delays[1:]) if own.any() else (delays[0],)
    return Fit(
        log, kind, level, width, window, each, _mapping(log), values, event, absent, concentration
    )


def usual_window(delays: DelayFit) -> int:
    """In how many rounds 95 % of the conversions come."""
    left = (delays.survival - delays.never) / (1 - delays.never)
    return int(delays.rounds[np.argmax(left <= 1 - IN_TIME + 1e-12)])


def _two_losses(log: Log) -> tuple[float, float]:
    """Of a conversion, and of a row without one."""
    losses = log.loss[log.come]
    if losses.min() != losses.max() or losses[0] not in (0.0, 1.0):
        raise ValueError(
            "kind 'conversions' needs a log in which every loss that has come is the same, 0 or 1, "
            f"but they are from {losses.min():g} to {losses.max():g}"
        )
    return float(losses[0]), 1 - float(losses[0])


def _ages(log: Log) -> np.ndarray:
    """float64 [rows]: from the decision to the end of the log, as `Log.delays` counts."""
    age = log.end - log.time
    return age / np.timedelta64(1, "s") if log.dated else age


def _mapping(log: Log) -> np.ndarray:
    """[K, S]: a Dirichlet posterior per action."""
    return log.counts + log.counts.sum(axis=0) / len(log)


def _outcomes(log: Log, rows: list[tuple[np.ndarray, np.ndarray]], taken: np.ndarray) -> Posterior:
    """[S]: of mean losses."""
    every = log.loss[log.come]
    found = []
    for came, waiting in rows:
        losses = log.loss[came]
        weights = np.ones(len(came))
        if len(waiting) and len(came):
            weights = curve(taken[came], taken[waiting]).weights(taken[came])
        total = max(weights.sum(), 1e-300)
        count = total**2 / max((weights**2).sum(), 1e-300)
        found.append((count if len(came) else 0.0, weights @ losses / total,
                      weights @ losses**2 / total))  # fmt: skip
    count, mean, square = np.array(found).T
    return Posterior.of_values(count, mean, square, (every.mean(), (every**2).mean()))


def _concentration(log: Log) -> float | None:
    """Of Beta losses with the spread of those in the log; None where they are 0 and 1, infinite
    where there is no spread.
    """
    come = log.come
    losses, state = log.loss[come], log.state[come]
    if ((losses == 0) | (losses == 1)).all():
        return None
    count = np.bincount(state, minlength=log.num_states)
    mean = np.bincount(state, losses, log.num_states) / np.maximum(count, 1)
    spread = ((losses - mean[state]) ** 2).sum() / max(len(losses) - (count > 0).sum(), 1)
    most = (count * mean * (1 - mean)).sum() / len(losses)
    return np.inf if spread < 1e-12 else max(most / spread - 1, 1e-3)


def _conversions(
    rows: list[tuple[np.ndarray, np.ndarray]], taken: np.ndarray, own: np.ndarray, guess: float
) -> Posterior:
    """[S]: of the share that ever converts."""
    states = [Waits(taken[came], taken[waiting]) for came, waiting in rows]
    parts: list[Any] = [None] * len(states)
    shared = np.flatnonzero(~own)
    if shared.size:
        both = Waits(*(np.concatenate([states[s][i] for s in shared]) for i in range(2)))
        if not len(both.came):
            both = Waits(*(np.concatenate([one[i] for one in states]) for i in range(2)))
        law = curing.steps(both)
        for s in shared:
            parts[s] = curing.share(states[s], law, guess)
    for s in np.flatnonzero(own):
        parts[s] = curing.share(states[s], curing.steps(states[s]), guess)
    return curing.posterior(np.array(parts), guess)


def _delays(log: Log, own: np.ndarray, width: int, level: float) -> list[DelayFit]:
    """In rounds: of all states together, and, where some have their own, of each."""
    rounds, come = waits.in_rounds(log, width)
    known = rounds >= 0
    if not (come & known).any():
        raise ValueError(
            "delays in rounds are not known, as no outcome came by the last decision and all "
            "decisions have the same time"
        )
    common = fit_delays(rounds[come], rounds[~come & known], level=level)
    if not own.any():
        return [common]
    each = []
    for s, (came, waiting) in enumerate(waits.rows_by_state(log, come)):
        if own[s]:
            each.append(fit_delays(rounds[came], rounds[waiting][known[waiting]], level=level))
        else:
            each.append(common)
    return [common, *each]
