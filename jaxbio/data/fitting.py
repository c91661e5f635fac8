"""From a log to the problem behind it: mapping, losses and delays, and how sure they are."""

from __future__ import annotations

import numpy as np

from jaxbio import checks
from jaxbio.data import curing, mean_losses, waits
from jaxbio.data.betas import Posterior
from jaxbio.data.delays import fit_delays
from jaxbio.data.fitted import Fit, Law
from jaxbio.data.groups import Group, groups, joined
from jaxbio.data.kinds import KINDS, OUTCOMES, absent_loss, kind_of
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
    """The problem that a log comes from: mapping, mean losses and delays, with intervals.

    It supposes that the model holds: rows of an action are alike, the loss depends on the state
    and not on the action, and when an outcome comes does not depend on when its decision was made.

    Args:
      log: of `read_log`.
      kind: "outcomes", if every decision has an outcome some time, of which some have not come yet.
        "conversions", if only events are seen, and nothing says that a row will have none. None
        finds it out: conversions, if there are rows without an outcome and the table gives them a
        loss that no outcome has.
      window: for how many rounds conversions are waited for in `Fit.environment`. None takes as
        many as 95 % of those conversions need that the log has seen.
      level: of the intervals.
      width: how many decisions make a round. With 100 the environment is that of a log of which
        every hundredth decision is kept: delays have a hundredth of the rounds.

    A mapping's row has the Dirichlet posterior of the action's rows and one row more, which is
    spread over states as all rows of the log are: a state that an action never had gets the share
    that it has in all rows, divided by the action's rows and one. A mean loss has the Beta
    posterior of the state's outcomes and one more, which is like all outcomes (see `Fit.losses`).
    Intervals hold whatever that one row says.
    """
    if not isinstance(log, Log):
        raise TypeError(f"log must be a Log, which read_log makes, but got {checks.shown(log)}")
    kind = kind_of(log) if kind is None else str(checks.choice("kind", kind, KINDS))
    level = checks.number("level", level, 0, 1, open_low=True, open_high=True)
    width = checks.size("width", width, 1, NEVER)
    if kind == OUTCOMES and window is not None:
        raise ValueError(
            "window is for a log of conversions, but in this one every decision has an outcome "
            f"some time (kind='outcomes'): leave it out, but got {checks.shown(window)}"
        )
    if window is not None:
        window = checks.size("window", window, 0, NEVER)
    rows, taken, age = waits.by_state(log), log.delays(), waits.ages(log)
    states = [Waits(taken[come], taken[waiting], age[come]) for come, waiting in rows]
    alike, rounds = groups(log, states), _in_rounds(log, width)
    if kind == OUTCOMES:
        laws = _laws(log, alike, rounds, level, np.zeros(len(alike)))
        values = mean_losses.of_outcomes(log, rows, taken)
        concentration = mean_losses.concentration_of(log)
        return Fit(log, kind, level, width, None, laws, values, concentration)
    absent = absent_loss(log)
    shares, unseen = _conversions(states, alike, float(log.come.mean()))
    laws = _laws(log, alike, rounds, level, unseen)
    most, gains = mean_losses.of_events(log, rows, absent)
    window = _usual_window(*rounds) if window is None else window
    return Fit(log, kind, level, width, window, laws, shares, None, absent, most, gains)


def _in_rounds(log: Log, width: int) -> tuple[np.ndarray, np.ndarray]:
    """int64 [rows], bool [rows]: as `waits.in_rounds`."""
    rounds, come = waits.in_rounds(log, width)
    if not come.any():
        raise ValueError(
            "how many rounds outcomes take cannot be told: none came by the last decision, and all "
            f"decisions were made at the same time (column {log.names.get('time')!r})"
        )
    return rounds, come


def _laws(
    log: Log, alike: list[Group], rounds: tuple[np.ndarray, np.ndarray], level: float,
    unseen: np.ndarray,
) -> tuple[Law, ...]:  # fmt: skip
    """Of each group the delays in rounds."""
    waited, come = rounds
    found = []
    for group, share in zip(alike, unseen, strict=True):
        rows = np.isin(log.state, group.source) if len(alike) > 1 else slice(None)
        own, came = waited[rows], come[rows]
        delays = fit_delays(own[came], own[~came & (own >= 0)], level=level)
        found.append(Law(*group, delays, float(share)))
    return tuple(found)


def _conversions(
    states: list[Waits], alike: list[Group], guess: float
) -> tuple[Posterior, np.ndarray]:
    """[S]: of the share that ever converts; [groups]: the share of conversions that take longer
    than the log is long. guess: the share of all rows that have converted.
    """
    laws = [curing.law(joined([states[s] for s in group.source])) for group in alike]
    place = np.zeros(len(states), int)
    for i, group in enumerate(alike):
        place[group.states] = i
    shares = curing.posterior(states, [laws[i] for i in place], guess)
    return shares, np.array([law.unseen for law in laws])


def _usual_window(waited: np.ndarray, come: np.ndarray) -> int:
    """In how many rounds 95 % of the conversions come that the log has seen."""
    found = curve(waited[come], waited[~come])
    return int(found.at[np.searchsorted(found.came_by(found.at), IN_TIME)])
