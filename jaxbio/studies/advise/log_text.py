"""Advice for a log as text, and as numbers."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from jaxbio.studies.advise import log_words
from jaxbio.studies.advise.text import of_outcome, outcome_as_dict
from jaxbio.studies.contestants import asked_as

if TYPE_CHECKING:
    from jaxbio.studies.advise.log_advice import LogAdvice

WIDE = 96  # letters of a line


def in_short(found: LogAdvice) -> str:
    return (
        f"Advice for {len(found.log):,} decisions: {found.recommended} "
        f"({found.runs} games of {found.horizon:,} rounds); summary() says more, jb.write_report "
        "makes a page"
    )


def as_text(found: LogAdvice) -> str:
    """Checks that fail, the answer, the tables that it rests on, then what to bear in mind."""
    blocks = []
    failing = log_words.warnings(found)
    if failing:
        blocks.append(_listed("READ THIS FIRST: the model does not hold in this log.", failing))
    blocks += [_answer(found, kind) for kind in found.outcomes]
    blocks.append(_filled(log_words.changes(found)))
    blocks += [of_outcome(title, found.outcomes[kind])
               for kind, title in log_words.kinds(found).items()]  # fmt: skip
    blocks.append(_listed("What this rests on:", log_words.limits(found)))
    return "\n\n".join(blocks)


def _answer(found: LogAdvice, kind: str) -> str:
    sentences = [*log_words.answer(found, kind), *log_words.more(found, kind)]
    title = log_words.kinds(found)[kind]
    lines = [_filled(sentence, "  ") for sentence in sentences]
    if len(found.outcomes) == 1:
        lines[0] = _filled(sentences[0])
        return "\n".join(lines)
    return "\n".join([f"{title}:", *lines])


def _listed(head: str, sentences: list[str]) -> str:
    return "\n".join([head, *(_filled(f"- {one}", "", "  ") for one in sentences)])


def _filled(text: str, first: str = "", rest: str | None = None) -> str:
    indent = first if rest is None else rest
    return textwrap.fill(text, WIDE, initial_indent=first, subsequent_indent=indent)


def as_dict(found: LogAdvice) -> dict[str, Any]:
    """For JSON."""
    return {
        "recommended": found.recommended,
        "asked for as": asked_as(found.recommended),
        "recommended if the mapping changes": found.recommended_if_changing,
        "model holds": found.checks.holds,
        "checks that fail": [one.to_dict() for one in found.checks.failing],
        "horizon": found.horizon,
        "rounds of the log": len(found.log),
        "kind": found.fit.kind,
        "window": found.fit.window,
        "outcome": log_words.column(found.log),
        "best looking": found.best_looking,
        "change of the mapping": {"share": found.turns.share, "p": found.turns.p},
        "problems": {kind: _of_kind(found, kind) for kind in found.outcomes},
        "best with a guarantee": found.robust,
        "unfinished": list(found.unfinished),
        "games": found.runs,
        "seconds": round(found.seconds, 1),
    }


def _of_kind(found: LogAdvice, kind: str) -> dict[str, Any]:
    one = found.outcomes[kind]
    per = found.horizon / 1_000
    regret = log_words.scaled(found, found.regret(one.named, kind))
    return outcome_as_dict(one) | {
        "regret": regret._asdict(),
        "regret in 1,000 rounds": regret.per(per)._asdict(),
        "yardsticks": {
            name: {
                "regret": log_words.scaled(found, found.regret(name, kind))._asdict(),
                "saved": log_words.scaled(found, found.saved(name, kind))._asdict(),
            }
            for name in found.yardsticks[kind]
        },
        "answer": [*log_words.answer(found, kind), *log_words.more(found, kind)],
    }
