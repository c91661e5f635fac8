"""A replay in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jaxbio.data.dropped import rows_of
from jaxbio.data.kinds import CONVERSIONS
from jaxbio.data.replaying.noise import Estimate
from jaxbio.data.summary import MOST
from jaxbio.display.text import aligned

if TYPE_CHECKING:
    from jaxbio.data.replaying.result import Replay

ORDERS = {"random": "in random order", "log": "in the order of the log"}


def in_short(one: Replay) -> str:
    return (
        f"Replay of {type(one.learner).__name__}: mean loss {_with_interval(one.final)} in "
        f"{one.accepted:,} accepted rounds, {one.runs} runs\n"
        f"  against the log: {_with_interval(one.versus_logged, sign=True)}"
    )


def as_dict(one: Replay) -> dict[str, Any]:
    used = one.used
    return {
        "accepted": one.accepted,
        "runs": one.runs,
        "resamples": len(one.redrawn),
        "level": one.level,
        "kind": one.kind,
        "window": one.window,
        "traffic": one.traffic,
        "order": one.order,
        "rows": used.rows,
        "usable": used.usable,
        "left_out": dict(used.left_out),
        "delays": dict(zip(("0.5", "0.9"), used.late, strict=True)),
        "unknown": used.unknown,
        "mean_loss": one.final._asdict(),
        "logged": one.logged._asdict(),
        "versus_logged": one.versus_logged._asdict(),
        "actions": {
            label: {
                "rows": int(size),
                "played": float(share),
                "mean_loss": mean._asdict(),
                "versus": versus._asdict(),
            }
            for (label, mean), versus, size, share in zip(
                one.fixed.items(), one.versus_fixed.values(), used.size, one.plays.mean(axis=0),
                strict=True,
            )
        },
        "rounds": one.rounds.tolist(),
        "mean": one.mean.tolist(),
        "low": one.low.tolist(),
        "high": one.high.tolist(),
        "warnings": list(one.warnings),
    }  # fmt: skip


def as_text(replays: Mapping[str, Replay]) -> str:
    """Of one or several learners on the same rows. replays: label -> replay."""
    one = next(iter(replays.values()))
    used = one.used
    out = [f"  {rows_of(count)}: {reason}" for reason, count in used.left_out.items()]
    lines = [
        f"rows       {used.usable:,} of {used.rows:,} can be replayed",
        *(["left out", *out] if out else []),
        f"rounds     {one.accepted:,} accepted in each of {one.runs} runs, {ORDERS[one.order]}",
        f"outcomes   {_outcomes(one)}",
        f"delays     {_delays(one)}",
        "",
        f"mean loss per round, with intervals at {one.level:.0%}",
        *aligned(_table(replays)),
        *_left(used.actions),
        "",
        f"warnings   {len(one.warnings) or 'none'}",
        *(f"  {sentence}" for sentence in one.warnings),
    ]
    return "\n".join(lines)


def _table(replays: Mapping[str, Replay]) -> list[list[str]]:
    one = next(iter(replays.values()))
    best = min(replays.values(), key=lambda replay: replay.final.mean)
    head = ["", "mean loss", "interval", "minus that of the log", "interval"]
    other = len(replays) > 1
    found = [[*head, "minus the least", "interval"] if other else head]
    for label, replay in replays.items():
        row = [label, *_cells(replay.final), *_cells(replay.versus_logged, sign=True)]
        same = ["", ""] if replay is best else _cells(replay.versus(best), sign=True)
        found.append([*row, *same] if other else row)
    rest = ["", ""] * (2 if other else 1)
    found.append(["the log", *_cells(one.logged), *rest])
    for label, mean in list(one.fixed.items())[:MOST]:
        found.append([f"always {label}", *_cells(mean), *rest])
    return found


def _left(actions: tuple[str, ...]) -> list[str]:
    left = len(actions) - MOST
    return [f"... and {left} more actions"] if left > 0 else []


def _outcomes(one: Replay) -> str:
    unknown = one.used.unknown
    if one.kind == CONVERSIONS:
        said = f"conversions; what has not come within {one.window:,} rounds counts as none"
        late = "that were not followed for as long count with what is to be expected of them"
    else:
        said = "every row has one" + ("" if unknown else ", and all are known")
        late = "whose outcome has not come count with the mean loss of others like them"
    return said + (f"; {rows_of(unknown)} {late}" if unknown else "")


def _delays(one: Replay) -> str:
    half, nearly_all = ("never" if late is None else f"{late:,}" for late in one.used.late)
    pace = "" if one.traffic == 1 else f", for a learner with {one.traffic:.3g} of the traffic"
    return f"{half} rounds (median), {nearly_all} (90 %){pace}"


def _cells(one: Estimate, sign: bool = False) -> list[str]:
    form = "+.4f" if sign else ".4f"
    return [f"{one.mean:{form}}", f"{one.low:{form}} to {one.high:{form}}"]


def _with_interval(one: Estimate, sign: bool = False) -> str:
    mean, interval = _cells(one, sign)
    return f"{mean} ({interval})"
