"""A log in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbio.data.dropped import listed
from jaxbio.display.text import aligned

if TYPE_CHECKING:
    from jaxbio.data.log import Log

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
MOST = 20  # labels of a table
AT_ONCE = (
    "delays     none: every outcome was seen at once. If outcomes came later, say how much later",
    "           with --delay (delay=) or when with --arrived: without a delay states tell nothing",
    "           that the outcome does not",
)
UNITS = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def in_short(log: Log) -> str:
    come = int(log.come.sum())
    lines = [
        f"Log of {len(log):,} decisions, {log.num_actions} actions, {log.num_states} states, "
        f"{come:,} outcomes ({come / len(log):.1%})",
        f"  {_span(log)}",
        f"  dropped: {_dropped_in_short(log)}",
    ]
    if log.warnings:
        lines.append(f"  warnings: {len(log.warnings)}; summary() has them")
    return "\n".join(lines)


def as_dict(log: Log) -> dict[str, Any]:
    come = log.come
    return {
        "rows": len(log),
        "read": log.read,
        "columns": dict(log.names),
        "first": _text(log, log.time[0]),
        "last": _text(log, log.time[-1]),
        "end": _text(log, log.end),
        "zone": log.zone,
        "outcomes": int(come.sum()),
        "share_of_outcomes": float(come.mean()),
        "mean_loss": float(log.loss[come].mean()),
        "actions": _by_label(log.actions, log.counts.sum(1), log.outcomes.sum(1), log, log.action),
        "states": _by_label(log.states, log.counts.sum(0), log.outcomes.sum(0), log, log.state),
        "counts": log.counts.tolist(),
        "delays": _quantiles(log.delays()[come]),
        "delays_in": _delays_in(log),
        "delays_in_rounds": _quantiles(log.delays_in_rounds()[log.seen_in_rounds]),
        "dropped": {
            reason: {"count": one.count, f"first_{log.unit}s": list(one.first)}
            for reason, one in log.dropped.items()
        },
        "warnings": list(log.warnings),
    }


def as_text(log: Log) -> str:
    found = as_dict(log)
    late = len(log) - found["outcomes"]
    lines = [
        f"decisions  {len(log):,} of {log.read:,} rows that were read",
        f"span       {_span(log)}",
        f"outcomes   {found['outcomes']:,} ({found['share_of_outcomes']:.2%}) have come, with a "
        f"mean loss of {found['mean_loss']:.4g}; {late:,} have not",
        "",
        *_table(log.names["action"], found["actions"]),
        "",
        *_table(log.names["state"], found["states"]),
        "",
        *(AT_ONCE if log.at_once else _delays(log, found)),
        "",
        f"dropped    {_dropped_in_short(log)}",
        *(f"  {line}" for line in listed(log.dropped, log.unit)),
        f"warnings   {len(log.warnings) or 'none'}",
        *(f"  {text}" for text in log.warnings),
    ]
    return "\n".join(lines)


def _delays(log: Log, found: dict[str, Any]) -> list[str]:
    size, unit = _unit(found["delays"]["0.5"]) if log.dated else (1.0, "units of time")
    times = [f"{value / size:.3g}" for value in found["delays"].values()]
    rounds = [
        "none" if value is None else f"{value:,.0f}" for value in found["delays_in_rounds"].values()
    ]
    after = int((log.come & ~log.seen_in_rounds).sum())
    return [
        "delays of the outcomes that have come (quantiles)",
        *aligned(
            [
                ["", *(f"{float(one):.0%}" for one in found["delays"])],
                *([[f"in {unit}", *times]] if log.timed else []),
                ["in rounds", *rounds],
            ]
        ),
        *([f"rounds: without {after:,} that came after the last decision"] if after else []),
    ]


def _delays_in(log: Log) -> str:
    return "seconds" if log.dated else "the table's unit" if log.timed else "rounds"


def _by_label(
    labels: tuple[str, ...], rows: np.ndarray, outcomes: np.ndarray, log: Log, codes: np.ndarray
) -> dict[str, dict[str, Any]]:
    sums = np.bincount(codes[log.come], log.loss[log.come], len(labels))
    return {
        label: {
            "rows": int(count),
            "share": float(count / len(log)),
            "outcomes": int(come),
            "share_of_outcomes": float(come / count) if count else None,
            "mean_loss": float(total / come) if come else None,
        }
        for label, count, come, total in zip(labels, rows, outcomes, sums, strict=True)
    }


def _table(name: str, entries: dict[str, dict[str, Any]]) -> list[str]:
    shown = list(entries.items())[:MOST]
    rows = [[name, "rows", "share", "outcomes", "of its rows", "their mean loss"]]
    for label, one in shown:
        loss = "none" if one["mean_loss"] is None else f"{one['mean_loss']:.4g}"
        share = "none" if one["rows"] == 0 else f"{one['share_of_outcomes']:.2%}"
        rows.append(
            [label, f"{one['rows']:,}", f"{one['share']:.1%}", f"{one['outcomes']:,}", share, loss]
        )
    left = len(entries) - len(shown)
    return [*aligned(rows), *([f"... and {left} more"] if left else [])]


def _quantiles(values: np.ndarray) -> dict[str, float | None]:
    if not values.size:
        return dict.fromkeys((f"{one:g}" for one in QUANTILES), None)
    found = np.quantile(values, QUANTILES)
    return {f"{one:g}": float(value) for one, value in zip(QUANTILES, found, strict=True)}


def _unit(seconds: float) -> tuple[float, str]:
    return next(((size, name) for size, name in UNITS if seconds >= size), UNITS[-1])


def _span(log: Log) -> str:
    if not log.timed:
        return f"{len(log):,} rounds, in the order of the table"
    first, last, end = (_text(log, one) for one in (log.time[0], log.time[-1], log.end))
    zone = f" ({log.zone})" if log.zone else ""
    return f"{first} to {last}{zone}, outcomes seen until {end}"


def _text(log: Log, moment: Any) -> str:
    if not log.dated:
        return f"{float(moment):g}"
    return str(np.datetime64(moment, "s")).replace("T", " ")


def _dropped_in_short(log: Log) -> str:
    count = sum(one.count for one in log.dropped.values())
    return f"{count:,} of {log.read:,} rows ({count / log.read:.2%})" if count else "nothing"
