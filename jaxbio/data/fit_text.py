"""A fit in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbio.data.kinds import CONVERSIONS
from jaxbio.data.summary import MOST
from jaxbio.display.text import aligned

if TYPE_CHECKING:
    from jaxbio.data.betas import Table
    from jaxbio.data.fitted import Fit, Law

QUANTILES = (0.1, 0.5, 0.9, 0.99)
SAID = 0.01  # shares below are not worth a sentence
LATE = 0.05  # of outcomes whose delay in rounds is not exact
FEW = 10  # outcomes of a state of which little is known
NAMED = 5  # states in a sentence
WORDS = {
    "outcomes": "every decision has an outcome some time",
    "conversions": "only conversions are seen, and never that there is none",
}


def in_short(fit: Fit) -> str:
    log = fit.log
    window = "" if fit.window is None else f", waited for {fit.window:,} rounds"
    return (
        f"Fit of {len(log):,} decisions, {log.num_actions} actions, {log.num_states} states\n"
        f"  {fit.kind}: {WORDS[fit.kind]}{window}"
    )


def as_dict(fit: Fit) -> dict[str, Any]:
    log = fit.log
    return {
        "kind": fit.kind,
        "rows": len(log),
        "level": fit.level,
        "width": fit.width,
        "window": fit.window,
        "actions": list(log.actions),
        "states": list(log.states),
        "mapping": _listed(fit.mapping),
        "losses": _listed(fit.losses),
        "loss_law": loss_law(fit),
        "concentration": fit.concentration,
        "delays": [_delays(fit, law) for law in fit.laws],
        "notes": notes(fit),
    }


def loss_law(fit: Fit) -> str:
    """What losses of the environment are drawn from."""
    return type(fit.environment().losses).__name__


def _listed(table: Table) -> dict[str, Any]:
    return {name: part.tolist() for name, part in table._asdict().items()}


def _delays(fit: Fit, law: Law) -> dict[str, Any]:
    found = law.fit
    return {
        "states": [fit.log.states[s] for s in law.states],
        "source": [fit.log.states[s] for s in law.source],
        "came": found.came,
        "waiting": found.waiting,
        "rounds": {f"{q:g}": round_by(law, q) for q in QUANTILES},
        "longest": int(found.rounds[-1]),
        "never": None if fit.kind == CONVERSIONS else found.never,
        "unseen": law.unseen if fit.kind == CONVERSIONS else None,
    }


def round_by(law: Law, share: float) -> int:
    """In how many rounds this share comes of what comes at all and has been seen."""
    gone = 1 - law.fit.survival
    return int(law.fit.rounds[np.searchsorted(gone / gone[-1], share - 1e-12)])


def as_text(fit: Fit) -> str:
    log, found = fit.log, as_dict(fit)
    ends = f"{fit.level:.4g} intervals".replace("0.95", "95 %")
    lines = [
        *in_short(fit).splitlines(),
        "",
        f"how often each state follows each {log.names['action']}, with {ends}",
        *_mapping(fit),
        "",
        f"mean loss of each {log.names['state']}, with {ends}",
        *_losses(fit),
        "",
        f"rounds until {'a conversion' if fit.kind == CONVERSIONS else 'an outcome'} comes",
        *_rounds(found["delays"], log.num_states),
    ]
    if fit.width > 1:
        lines.append(f"a round stands for {fit.width:,} decisions")
    said = notes(fit)
    return "\n".join([*lines, *([""] if said else []), *(f"note: {one}" for one in said)])


def _mapping(fit: Fit) -> list[str]:
    log = fit.log
    rows = [["", *log.states[:MOST]]]
    for k, name in enumerate(log.actions[:MOST]):
        cells = [_cell(fit.mapping, (k, s)) for s in range(len(rows[0]) - 1)]
        rows.append([name, *cells])
    return [*aligned(rows), *_left(log.num_actions, "action"), *_left(log.num_states, "state")]


def _losses(fit: Fit) -> list[str]:
    log = fit.log
    rows = [["", "rows", "outcomes", "mean loss", "from", "to"]]
    count, come = log.counts.sum(axis=0), log.outcomes.sum(axis=0)
    for s, name in enumerate(log.states[:MOST]):
        ends = [f"{part[s]:.4g}" for part in fit.losses]
        rows.append([name, f"{count[s]:,}", f"{come[s]:,}", *ends])
    return [*aligned(rows), *_left(log.num_states, "state")]


def _rounds(delays: list[dict[str, Any]], num_states: int) -> list[str]:
    rows = [["", "came", "wait", *(f"{q:.0%}" for q in QUANTILES), "longest"]]
    for one in delays[:MOST]:
        name = "all states" if len(one["states"]) == num_states else _named(one["states"])
        name += " (as in all rows)" if len(one["states"]) < len(one["source"]) else ""
        numbers = [one["came"], one["waiting"], *one["rounds"].values(), one["longest"]]
        rows.append([name, *(f"{number:,}" for number in numbers)])
    return [*aligned(rows), *_left(len(delays), "law")]


def _cell(table: Table, at: tuple[int, int]) -> str:
    return f"{table.mean[at]:.3f} ({table.low[at]:.3f} to {table.high[at]:.3f})"


def _named(texts: list[str]) -> str:
    more = len(texts) - NAMED
    return ", ".join(texts[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _left(count: int, kind: str) -> list[str]:
    return [f"... and {count - MOST} more {kind}s"] if count > MOST else []


def notes(fit: Fit) -> list[str]:
    """What the log does not tell, or tells little of."""
    log = fit.log
    texts = []
    come = log.outcomes.sum(axis=0)
    few = np.flatnonzero((come < FEW) & (log.counts.sum(axis=0) > 0))
    if few.size:
        names = _named([f"{log.states[s]!r} ({come[s]})" for s in few])
        texts.append(f"little is known of the loss of states with few outcomes: {names}")
    for law in fit.laws:
        named = "" if len(fit.laws) == 1 else f" of {log.states[law.states[0]]!r}"
        if fit.kind == CONVERSIONS and law.unseen > SAID:
            texts.append(
                f"{law.unseen:.1%} of conversions{named} are taken to come later than the log is "
                "long: that is extrapolated, and a longer log would tell"
            )
        if fit.kind != CONVERSIONS and law.fit.never > SAID:
            texts.append(
                f"{law.fit.never:.1%} of outcomes{named} take longer than {law.fit.rounds[-1]:,} "
                "rounds, the longest delay in the log: in the environment they never come"
            )
    late = int((log.come & ~log.seen_in_rounds).sum())
    if late > LATE * log.come.sum():
        texts.append(
            f"{late / log.come.sum():.0%} of outcomes came after the last decision: their delays "
            "count as many rounds as there would have been at the log's mean pace"
        )
    return texts
