"""What waiting is worth, in words and as a table."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from jaxbio.display.text import aligned
from jaxbio.studies.advise.log_words import called, column, lasting, lost, spread
from jaxbio.studies.contestants import asked_as

if TYPE_CHECKING:
    from jaxbio.studies.advise.log_advice import Expected
    from jaxbio.studies.waiting.study import Waiting

WIDE = 96  # letters of a line


def as_text(found: Waiting) -> str:
    said = "\n".join(textwrap.fill(one, WIDE) for one in sentences(found))
    return f"{said}\n\n{_table(found)}"


def sentences(found: Waiting) -> list[str]:
    """Which window, what others cost, and what this rests on."""
    name, window = found.best
    unit = f"of {column(found.fit.log)!r}"
    one = _scaled(found, found.regret(name, window))
    said = [
        f"Wait {rounds(found, window)}, with {called(name)}: it is expected "
        f"{lost(found.fit.log, one)} in {found.horizon:,} rounds, compared with knowing the best "
        "action from the start."
    ]
    others = [other for other in found.as_good if other != window]
    if others:
        listed = ", ".join(f"{other:,}" for other in others)
        said.append(f"Windows of {listed} rounds may be as good.")
    first, last = min(found.windows), max(found.windows)
    if first < last and window in (first, last):
        far, further = ("shortest", "shorter") if window == first else ("longest", "longer")
        said.append(f"It is the {far} that was tried: a {further} one may be better yet.")
    for end in (first, last):
        if end == window or end in others:
            continue
        more = _scaled(found, found.costs(end))
        verb = "Stopping after" if end < window else "Waiting"
        said.append(f"{verb} {rounds(found, end)} costs {spread(more)} {unit} more.")
    said.append(
        f"{found.games} games of each learner with each window. Every game has a problem of its "
        "own, drawn from what the log leaves possible, so that the 95 % intervals count both what "
        "the log does not tell and luck. What is missed counts the true outcomes, also those that "
        "come after the window."
    )
    return said


def _table(found: Waiting) -> str:
    names = list(found.finals)
    rows = [["rounds", "about", "come in time", *names]]
    for i, window in enumerate(found.windows):
        regrets = [spread(_scaled(found, found.regret(name, window))) for name in names]
        time = lasting(found.fit.log, window).strip(" ()").removeprefix("about ")
        rows.append([f"{window:,}", time, f"{found.in_time_of_all[i]:.1%}", *regrets])
    return "\n".join(aligned(rows))


def rounds(found: Waiting, window: int) -> str:
    """So many rounds, and how long that is."""
    return f"{window:,} rounds{lasting(found.fit.log, window)}"


def _scaled(found: Waiting, value: Expected) -> Expected:
    low, high = found.fit.log.bounds
    return value.per(1 / (high - low))


def as_dict(found: Waiting) -> dict[str, Any]:
    """For JSON."""
    name, window = found.best
    return {
        "window": window,
        "learner": name,
        "asked for as": asked_as(name),
        "as good": found.as_good,
        "answer": sentences(found),
        "horizon": found.horizon,
        "games": found.games,
        "windows": [
            {
                "rounds": one,
                "come in time": float(found.in_time_of_all[i]),
                "by state": dict(
                    zip(found.fit.log.states, found.in_time[i].tolist(), strict=True)
                ),
                "regret": {other: _scaled(found, found.regret(other, one))._asdict()
                           for other in found.finals},
            }
            for i, one in enumerate(found.windows)
        ],
    }  # fmt: skip
