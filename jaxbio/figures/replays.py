"""Replays of learners on a log: the mean loss so far, against what the log itself lost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbio.data.replaying.result import Replay
from jaxbio.figures.lines import End, label_ends, panels, room_for, thousands
from jaxbio.figures.style import DASHES, Look, colours

BEGINNING = 0.05  # of the rounds: what is lost there does not set the scale


def replay_curves(
    replays: Mapping[str, Replay], title: str = "", look: Look | None = None
) -> Figure:
    """Mean loss per accepted round so far, with intervals; dashed: the log, and its best action.

    replays: label -> a replay of the same rows.
    """
    look = Look() if look is None else look
    one = next(iter(replays.values()))
    best = min(one.fixed, key=lambda label: one.fixed[label].mean)
    flat = {"the log": one.logged.mean, f"always {best}": one.fixed[best].mean}
    lines = {label: replay.final.mean for label, replay in replays.items()} | flat
    texts = {label: f"{label}  {mean:.4f}" for label, mean in lines.items()}
    figure, (axes,) = panels(
        [""], look, heading=title, right=room_for(texts.values()), height=3.4,
        note=f"Replays of the log with {one.accepted:,} accepted rounds. Means of {one.runs} runs; "
        f"bands: intervals of {one.level:.0%} for another log of the same world. Dashed: the log, "
        "and its best action always.",
    )  # fmt: skip
    palette, ends = colours(replays, look), []
    for label, replay in replays.items():
        _curve(axes, replay, palette[label])
        ends.append(End(texts[label], lines[label], palette[label]))
    for label, mean in flat.items():
        axes.axhline(mean, color=look.theme.muted, linestyle=DASHES, linewidth=1.2)
        ends.append(End(texts[label], mean, look.theme.muted, DASHES))
    axes.set(xlabel="accepted round", ylabel="mean loss per round so far")
    axes.set_xlim(0, one.accepted)
    axes.set_ylim(*_limits(replays, list(flat.values())))
    thousands(axes, "x")
    label_ends(axes, ends, look)
    return figure


def _curve(axes: Axes, replay: Replay, colour: str) -> None:
    marker = "o" if len(replay.rounds) == 1 else ""
    axes.plot(replay.rounds, replay.mean, color=colour, marker=marker)
    axes.fill_between(replay.rounds, replay.low, replay.high, color=colour, alpha=0.16, linewidth=0)


def _limits(replays: Mapping[str, Replay], levels: list[float]) -> tuple[float, float]:
    """Of everything but the beginning, with some room."""
    seen = [np.array(levels)]
    for replay in replays.values():
        late = replay.rounds >= BEGINNING * replay.accepted
        seen += [replay.low[late], replay.high[late]]
    values = np.concatenate(seen)
    room = 0.05 * max(np.ptp(values), 1e-6)
    return float(values.min() - room), float(values.max() + room)
