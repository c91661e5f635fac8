"""A fit in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxbio.data.summary import aligned

if TYPE_CHECKING:
    from jaxbio.data.fitted import Fit

QUANTILES = (0.1, 0.5, 0.9, 0.99)


def in_short(fit: Fit) -> str:
    window = "" if fit.window is None else f", window of {fit.window:,} rounds"
    return (
        f"Fit of {len(fit.log):,} decisions ({fit.kind}), {fit.log.num_actions} actions, "
        f"{fit.log.num_states} states{window}"
    )


def as_dict(fit: Fit) -> dict[str, Any]:
    log = fit.log
    delays = [{"came": d.came, "waiting": d.waiting, "never": d.never} for d in fit.delays]
    return {
        "kind": fit.kind,
        "rows": len(log),
        "level": fit.level,
        "window": fit.window,
        "width": fit.width,
        "actions": list(log.actions),
        "states": list(log.states),
        "mapping": {name: part.tolist() for name, part in fit.mapping._asdict().items()},
        "losses": {name: part.tolist() for name, part in fit.losses._asdict().items()},
        "delays": delays,
    }


def as_text(fit: Fit) -> str:
    log = fit.log
    states = range(log.num_states)
    rows = [["", *log.states]]
    for k, name in enumerate(log.actions):
        rows.append([name, *(_cell(*(part[k, s] for part in fit.mapping)) for s in states)])
    means = [_cell(*(part[s] for part in fit.losses)) for s in states]
    losses = [["", *log.states], ["mean loss", *means]]
    return "\n".join([in_short(fit), "", *aligned(rows), "", *aligned(losses)])


def _cell(mean: float, low: float, high: float) -> str:
    return f"{mean:.3f} ({low:.3f} to {high:.3f})"
