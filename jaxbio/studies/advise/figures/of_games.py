"""What the games say, as pictures: regret over rounds, and what states are worth."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbio.analysis.intervals import of_mean
from jaxbio.figures.lines import End, finish_regret, label_ends, panels, room_for, thousands
from jaxbio.figures.saving import Drawing
from jaxbio.figures.style import DASHES, Look, colours, cut_to, text_inches
from jaxbio.studies.advise import log_words
from jaxbio.studies.advise.log_advice import LogAdvice
from jaxbio.studies.advise.log_problems import RANDOM
from jaxbio.studies.advise.problems import STATIONARY
from jaxbio.studies.contestants import UNIFORM

LABEL = 1.7  # inches of a label that is not a learner's, at most
LEADERS = 4  # learners with curves of their own
CLOSE = 4.0  # times the regret of the recommended one: those with more are not seen closer


def leaders(found: LogAdvice, kind: str) -> list[str]:
    """The recommended learner first, then the next best, and the best of the other group."""
    one = found.outcomes[kind]
    rows = [row.name for row in one.comparison.rows]
    names = [one.named, *(name for name in rows if name != one.named)][:LEADERS]
    names += [one.worth.with_states, one.worth.without] if one.worth else []
    return [name for name in dict.fromkeys(names) if name in found.curves]


def close(found: LogAdvice, kind: str) -> list[str]:
    """Those of them that a panel of their own tells apart, and the best of the other group."""
    one, names = found.outcomes[kind], leaders(found, kind)
    most = CLOSE * found.regret(one.named, kind).mean
    kept = {one.named, *((one.worth.with_states, one.worth.without) if one.worth else ())}
    return [name for name in names if name in kept or found.regret(name, kind).mean <= most]


def regret(found: LogAdvice) -> Drawing:
    """Regret over rounds of the best learners."""
    caption = (
        "Regret over rounds: the lower, the better. A curve that stops rising has found the best "
        "action."
    )
    return Drawing("regret", caption, lambda look: _regret(found, look))


def worth(found: LogAdvice) -> Drawing:
    """What states are worth, where that is known."""
    caption = "What looking at states saves: compare the two bars of a problem."
    return Drawing("worth", caption, lambda look: _worth(found, look))


def _regret(found: LogAdvice, look: Look) -> Figure:
    """Everybody on the left; closer, for each kind of problem, who is best."""
    titles = log_words.kinds(found)
    closer = [title if len(titles) > 1 else "The best, closer" for title in titles.values()]
    names = leaders(found, STATIONARY)
    texts = [
        RANDOM,
        cut_to(found.always, LABEL),
        *(name for kind in titles for name in leaders(found, kind)),
    ]
    figure, drawn = panels(
        ["With choosing at random", *closer], look,
        heading="What is lost while learning",
        note=f"Mean regret over rounds, of {found.runs} games: what is missed compared with always "
        "playing the best action. Bands: 95 % intervals of the mean. All meet the same games.",
        right=room_for(texts), height=2.9,
    )  # fmt: skip
    palette = colours([*names, UNIFORM], look)
    _panel(drawn[0], found, STATIONARY, names, palette, look, everybody=True)
    for axes, kind in zip(drawn[1:], titles, strict=False):
        own = close(found, kind)
        _panel(axes, found, kind, own, colours([*own, UNIFORM], look) | palette, look)
    return figure


def _panel(
    axes: Axes,
    found: LogAdvice,
    kind: str,
    names: list[str],
    palette: dict[str, str],
    look: Look,
    everybody: bool = False,
) -> None:
    ends = []
    for name in names:
        values = found.span * found.curves[name][kind].T  # [points, games]
        mean, low, high = of_mean(values)
        mean, low, high = (np.insert(part, 0, 0.0) for part in (mean, low, high))
        rounds = np.insert(found.rounds, 0, 0)
        axes.plot(rounds, mean, color=palette[name])
        axes.fill_between(rounds, low, high, color=palette[name], alpha=0.16, linewidth=0)
        ends.append(End(name, float(mean[-1]), palette[name]))
    straight = [(found.always, look.theme.ink)]
    straight += [(RANDOM, look.theme.muted)] if everybody else []
    for name, colour in straight:
        last = found.span * found.regret(name, kind).mean
        if everybody or last <= 1.3 * max([end.y for end in ends], default=0.0):
            axes.plot([0, found.horizon], [0, last], color=colour, linestyle=DASHES, linewidth=1.3)
            ends.append(End(cut_to(name, LABEL), last, colour, DASHES))
    finish_regret(axes, found.horizon)
    axes.set_ylabel(f"missed of {log_words.column(found.log)!r}" if log_words.is_reward(found.log)
                    else f"too many of {log_words.column(found.log)!r}")  # fmt: skip
    label_ends(axes, ends, look)


def _worth(found: LogAdvice, look: Look) -> Figure:
    """The best learner that looks at states and the best that does not, on each kind of problem."""
    shown = {kind: one.worth for kind, one in found.outcomes.items() if one.worth is not None}
    titles = [log_words.kinds(found)[kind] for kind in shown] if len(shown) > 1 else [""]
    names = [name for one in shown.values() for name in (one.with_states, one.without)]
    figure, drawn = panels(
        titles, look, heading="What states are worth",
        note="Regret of the best learner that looks at states and of the best that does not. "
        "Bars: 95 % intervals of the mean.",
        left=max(text_inches(f"with states: {name}") for name in names) + 0.3, height=0.9,
    )  # fmt: skip
    palette = colours(dict.fromkeys(names), look)
    for axes, (kind, one) in zip(drawn, shown.items(), strict=True):
        rows = {f"without: {one.without}": one.without, f"with states: {one.with_states}":
                one.with_states}  # fmt: skip
        for place, name in enumerate(rows.values()):
            mean, low, high = log_words.scaled(found, found.regret(name, kind))
            axes.plot([low, high], [place, place], color=palette[name], linewidth=4)
            axes.plot([mean], [place], "o", color=palette[name], markersize=7)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set(xlabel="regret at the end", ylim=(-0.6, len(rows) - 0.4))
        axes.set_xlim(left=0)
        axes.grid(axis="y", visible=False)
        thousands(axes, "x")
    return figure
