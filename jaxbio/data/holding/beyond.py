"""Does the loss depend on the action beyond the state? The assumption behind everything."""

from __future__ import annotations

import numpy as np

from jaxbio.data.holding.bias import Bias
from jaxbio.data.holding.finding import Effect, Finding
from jaxbio.data.holding.outcomes import Outcomes
from jaxbio.data.holding.periods import Parts
from jaxbio.data.holding.scores import compare_groups
from jaxbio.data.holding.words import percent, short, span
from jaxbio.data.kinds import OUTCOMES
from jaxbio.data.log import Log

NAME = "action beyond state"
QUESTION = "Does the loss depend on the action beyond the state?"
SMALL = 0.1  # of what is at stake: how far actions are apart
UNIT = "loss per round that states do not explain, at most over actions"
FINER = (
    "make what was shown a part of the state (state=[column of the action, column of the state]), "
    "or look for states that tell more"
)


def loss_beyond_state(
    outcomes: Outcomes, parts: Parts | None, confidence: float, rng: np.random.Generator
) -> Finding:
    """Do losses differ between actions within states? parts: rows of different parts of the log
    are not compared either; None if they may be, as shares of actions do not change.
    """
    log = outcomes.log
    rows = log.come if outcomes.kind == OUTCOMES else np.ones(len(log), bool)
    strata = log.state if parts is None else log.state.astype(np.int64) * parts.count + parts.of
    scores = outcomes.scores(rows, strata[rows], np.inf)
    tested = compare_groups(scores, log.action[rows], strata[rows], rng)
    if tested is None:
        said = "Too few outcomes came, or all losses of a state are alike."
        if parts is not None:
            said = "Actions were shown at different times, so that their losses cannot be compared."
        return Finding(NAME, QUESTION, said)
    cells = outcomes.cells(rows, log.action[rows], log.num_actions, outcomes.horizon)
    found = Bias(log.counts, cells, confidence, rng)
    details = {
        "by_action": found.by_action(log.actions),
        "largest_for": log.actions[found.worst],
        "best": log.actions[found.best],
        "best_by_states": log.actions[found.trusted],
        "regret_of_trusting_states": dict(found.regret._asdict()),
        "gap": found.apart,
        "at_stake": found.stake,
        "permuted": tested.permuted,
    }
    return Finding(
        NAME,
        QUESTION,
        _size(found, log),
        remedy=_remedy(found),
        cost=_cost(found, log),
        limits=_limits(outcomes, parts),
        missed=f"{short(found.detectable)} would have been seen in four of five such logs.",
        effect=Effect(found.largest, UNIT, SMALL * found.stake, found.stake, found.detectable),
        p=tested.p,
        details=details,
    )


def _size(found: Bias, log: Log) -> str:
    sign = "more" if found.bias[found.worst] > 0 else "less"
    part = ""
    if found.apart:
        share = percent(found.largest.value / found.apart)
        part = f", {share} of the gap between the best and the worst action ({short(found.apart)})"
    return (
        f"{log.actions[found.worst]!r} costs {short(found.largest.value)} {sign} per round than "
        f"its states say ({span(found.largest)}){part}."
    )


def _cost(found: Bias, log: Log) -> str:
    best, trusted, regret = log.actions[found.best], log.actions[found.trusted], found.regret
    if best == trusted:
        most = f" (at most {short(regret.high)} per round)" if regret.high else ""
        return (
            f"By states and by mean losses the best action is the same, {best!r}: trusting states "
            f"costs nothing in the long run{most}."
        )
    return (
        f"By states the best action is {trusted!r}, by mean losses {best!r}: trusting states costs "
        f"{short(regret.value)} per round in the long run ({span(regret)})."
    )


def _remedy(found: Bias) -> str:
    if found.best == found.trusted and found.regret.high < SMALL * found.stake:
        return f"states still point at the best action, and may be used; to be exact, {FINER}"
    return f"do without states (Thompson sampling, UCB1, DAda-Exp3, Tsallis-INF), or {FINER}"


def _limits(outcomes: Outcomes, parts: Parts | None) -> str:
    texts = []
    if parts is not None:
        texts.append(
            "Shares of actions changed during the log, so that only rows of the same part of it "
            "are compared."
        )
    if outcomes.kind == OUTCOMES and not outcomes.log.come.all():
        texts.append("Outcomes that have not come are taken to be like those that have.")
    return " ".join(texts)
