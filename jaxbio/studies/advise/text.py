"""Advice in words: the answer, then the tables that it rests on, then what to bear in mind."""

from __future__ import annotations

from typing import Any

from jaxbio.studies.advise.advice import Advice
from jaxbio.studies.advise.tournament import Outcome, Worth
from jaxbio.studies.contestants import asked_as
from jaxbio.studies.families import FAMILIES

NEVER, CHANGES, OWN = "If the mapping never changes", "If the mapping changes", "On this problem"
ADVERSARIAL = (
    "If losses are adversarial, what a state cost before says nothing about what it will cost, and "
    "these games\nsay nothing about that: DAda-Exp3, which ignores states, has a guarantee there."
)
THEORY = (
    "`jaxbio theory` may name another learner: it compares bounds, which only some learners have.\n"
    "A bound holds for the worst problem of this size; these games are of problems that are rarely "
    "the worst."
)
HARDLY = 0.9  # of the regret of playing at random


def as_text(found: Advice, family: str) -> str:
    """A family of the user's may have any mapping and any losses: then the games speak for them."""
    kinds = {NEVER if family in FAMILIES else OWN: found.stationary}
    if found.changing is not None:
        kinds[CHANGES] = found.changing
    answers = [answer(title, one) for title, one in kinds.items()]
    if found.unfinished:
        answers.append(
            f"Not finished in time, so not compared: {', '.join(found.unfinished)}.\n"
            "  Asked again with more --seconds, the same command goes on with them."
        )
    parts = ["\n".join(answers)]
    parts += [of_outcome(title, one) for title, one in kinds.items()]
    last = []
    if found.robust is not None:
        worse = "" if found.changing is None else "A mapping may change in worse ways. "
        bounded = "Of the learners whose regret is bounded whatever the mapping does"
        last.append(f"{worse}{bounded}, {found.robust} had the least, in the first table.")
    last += [ADVERSARIAL, THEORY]
    return "\n\n".join([*parts, "\n".join(last)])


def answer(title: str, one: Outcome) -> str:
    """Which learner, with which settings, how sure that is, and what states are worth."""
    named = one.comparison[one.named]
    least = one.comparison.rows[0]
    spec = asked_as(named.name)
    asked = "" if spec in (None, named.name) else f" ({spec})"
    risky = least.name if one.few and least.name in one.unusual else None
    close = [name for name in one.comparison.contenders if name not in (named.name, risky)]
    lines = [
        f"{title}: run {named.name}{asked}.",
        f"  Its regret is {named.mean:,.1f} ({named.low:,.1f} to {named.high:,.1f})"
        + ("." if one.uniform is None else f"; playing at random has {one.uniform:,.1f}."),
    ]
    if risky is not None:
        has = f"{risky} has {least.mean:,.1f}, but " if risky != named.name else ""
        lines.append(
            f"  {has}{one.comparison.runs} games are too few to tell how often that form fails: "
            "more --seconds would."
        )
    if one.uniform is not None and named.mean >= HARDLY * one.uniform:
        lines.append(f"  {_nothing_to_learn(one.uniform)}")
    if close:
        lines.append(f"  Too close to call: {', '.join(close)} may be as good.")
    if one.worth is not None:
        lines.append(f"  {worth(one.worth)}")
    return "\n".join(lines)


def _nothing_to_learn(uniform: float) -> str:
    if uniform <= 0:
        return "On average no action is better than another: it does not matter which learner runs."
    return "That is hardly better than playing at random: too little can be learnt in time."


def of_outcome(title: str, one: Outcome) -> str:
    """A table of those that stayed, and a line for each of those that left."""
    lines = [title, "", one.comparison.table()]
    if one.left:
        width = max(len(left.name) for left in one.left)
        lines += ["", "Surely beaten, and played no further:"]
        lines += [
            f"  {left.name:<{width}}  {left.mean:>10,.1f}  {left.low:,.1f} to {left.high:,.1f} "
            f"({left.runs} games)"
            for left in one.beaten
        ]
    idle = [] if one.uniform is None else no_better(one, one.uniform)
    if idle:
        lines += ["", f"No better than playing at random, or hardly: {', '.join(idle)}."]
    return "\n".join(lines)


def no_better(one: Outcome, uniform: float) -> list[str]:
    """Who has more than nine tenths of the regret of playing at random."""
    rows = (*one.comparison.rows, *one.left)
    return [row.name for row in rows if row.mean > HARDLY * uniform]


def worth(found: Worth) -> str:
    """What states are worth, in one line."""
    saved, least, most = (1 - value for value in (found.ratio, found.high, found.low))
    who = f"{found.with_states} against {found.without}"
    if least > 0:
        return f"States save {saved:.0%} of the regret ({least:.0%} to {most:.0%}; {who})."
    if most < 0:
        return f"States cost {-saved:.0%} of the regret ({-most:.0%} to {-least:.0%}; {who})."
    return (
        f"It is open whether states help: with them regret is {found.low:.2f} to {found.high:.2f} "
        f"times what it is without ({who})."
    )


def outcome_as_dict(one: Outcome) -> dict[str, Any]:
    """For JSON."""
    return one.comparison.to_dict() | {
        "recommended": one.named,
        "asked for as": asked_as(one.named),
        "left early": [left._asdict() for left in one.left],
        "worth of states": None if one.worth is None else one.worth._asdict(),
        "uniform play": one.uniform,
    }
