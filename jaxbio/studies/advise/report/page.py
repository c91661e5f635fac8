"""The page: one file, the answer first, then what it rests on."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import date
from html import escape

from jaxbio.data.fitted import CONVERSIONS
from jaxbio.data.holding.check import Check
from jaxbio.figures.saving import VARIANTS, Drawing, as_png
from jaxbio.storage.provenance import versions
from jaxbio.studies import html
from jaxbio.studies.advise import log_words
from jaxbio.studies.advise.figures import of_games, of_log
from jaxbio.studies.advise.log_advice import LogAdvice
from jaxbio.studies.advise.log_problems import LOGGED, RANDOM
from jaxbio.studies.contestants import asked_as


def whole(found: LogAdvice, command: str = "", title: str = "") -> str:
    """The page as text."""
    heading = f"Which learner to run: {title}" if title else "Which learner to run"
    parts = [
        f"<h1>{escape(heading)}</h1>",
        *_answer(found),
        *_section("What the log holds", _log(found)),
        *_section("Does the model hold in this log?", _checks(found)),
        *_section("What actions lead to", _mapping(found)),
        *_section("What was played", _games(found)),
        *_section("What this rests on", _limits(found)),
        *_section("How to make it again", _again(found, command)),
    ]
    return html.document(heading, "\n".join(parts))


def _section(title: str, parts: Sequence[str]) -> list[str]:
    return ["<section>", f"<h2>{escape(title)}</h2>", *parts, "</section>"]


def _answer(found: LogAdvice) -> list[str]:
    """What fails, the two sentences for each kind of problem, and the numbers behind them."""
    failing = log_words.warnings(found)
    parts = []
    if failing:
        listed = "".join(f"<li>{escape(one)}</li>" for one in failing)
        parts.append(
            '<div class="notice"><p><strong>Read this first: the model behind this answer does not '
            f"hold in this log.</strong></p><ul>{listed}</ul></div>"
        )
    for kind, title in log_words.kinds(found).items():
        if len(found.outcomes) > 1:
            parts.append(f"<h3>{escape(title)}</h3>")
        first, *others = log_words.answer(found, kind)
        said = log_words.more(found, kind)
        parts.append(f'<p class="answer"><strong>{escape(first)}</strong> {_text(others)}</p>')
        listed = "".join(f"<li>{escape(one)}</li>" for one in said)
        parts.append(f'<ul class="question">{listed}</ul>' if said else "")
    return [*parts, _yardsticks(found)]


def _yardsticks(found: LogAdvice) -> str:
    """The recommended learner beside whoever does not learn."""
    names = [found.recommended, LOGGED, RANDOM, found.always]
    rows = []
    for name in names:
        regret = log_words.scaled(found, found.regret(name))
        per = regret.per(found.horizon / 1_000)
        rows.append([escape(name), log_words.spread(regret), log_words.spread(per)])
    what = "missed" if log_words.is_reward(found.log) else "too many"
    of = repr(log_words.column(found.log))
    return html.table(
        ["who", f"{what} of {of} in {found.horizon:,} rounds", "in 1,000 rounds"], rows
    )


def _log(found: LogAdvice) -> list[str]:
    log = found.log
    come = int(log.come.sum())
    kind = (
        "Only events arrive in this log: that an outcome did not come is known only when a waiting "
        "window ends." if found.fit.kind == CONVERSIONS else
        "Every decision has an outcome"
        + ("." if come == len(log) else "; some had not come when the log ended.")
    )  # fmt: skip
    dropped = sum(one.count for one in log.dropped.values())
    rows = [
        ["decisions", f"{len(log):,}, from {_moment(found, 0)} to {_moment(found, -1)}"],
        ["actions", f"{log.num_actions}: {escape(_several(log.actions))}"],
        ["states", f"{log.num_states}: {escape(_several(log.states))}"],
        ["outcomes", f"{come:,} ({come / len(log):.1%}) have come. {kind}"],
        ["left out", f"{dropped:,} rows that cannot be used" if dropped else "no row"],
    ]
    warnings = "".join(f"<li>{escape(one)}</li>" for one in log.warnings)
    return [
        html.table(["", "in this log"], rows),
        f"<p>What looks wrong:</p><ul>{warnings}</ul>" if warnings else "",
        _picture(of_log.delays(found.fit)),
    ]


def _checks(found: LogAdvice) -> list[str]:
    rows = [[escape(one.question), _light(one), _found(one)] for one in found.checks]
    return [
        '<p class="question">The answer supposes that an outcome depends on the action only '
        "through the state that is seen at once, and that nothing drifts: that the answer to each "
        "of these questions is no. The tests are corrected for their number. "
        f"{escape(found.checks.verdict)}</p>",
        html.table(["question", "answer", "what was found"], rows),
        f'<p class="question">{escape(log_words.changes(found))}</p>',
    ]


def _found(one: Check) -> str:
    remedy = ""
    if one.remedy:
        remedy = f"<br><strong>What to do:</strong> {escape(one.remedy.rstrip('.'))}."
    return escape(one.sentence) + remedy


def _light(one: Check) -> str:
    """Green: no reason to doubt; red: read what to do; yellow: in between."""
    if one.holds:
        return html.chip("yes", "✓", one.answer)
    bad = one.holds is False and not one.allowed
    return html.chip("no", "✗", one.answer) if bad else html.chip("undecided", "?", one.answer)


def _mapping(found: LogAdvice) -> list[str]:
    return [_picture(of_log.mapping(found.fit)), _picture(of_log.losses(found.fit))]


def _games(found: LogAdvice) -> list[str]:
    one = found.stationary
    rows = [
        [
            f"<strong>{escape(row.name)}</strong>" if row.name == one.named else escape(row.name),
            f"<code>{escape(asked_as(row.name) or row.name)}</code>",
            log_words.spread(log_words.scaled(found, found.regret(row.name))),
            f"{row.probability_best:.0%}",
        ]
        for row in one.comparison.rows
    ]
    rows += [
        [
            escape(left.name), f"<code>{escape(asked_as(left.name) or left.name)}</code>",
            f"{found.span * left.mean:,.1f} after {left.runs} games", "surely beaten",
        ]
        for left in one.beaten
    ]  # fmt: skip
    parts = [
        '<p class="question">Learners were let loose on problems that this log leaves possible. '
        "Those that were surely beaten stopped early.</p>",
        _picture(of_games.regret(found)),
        html.table(["learner", "its name for other commands", "regret", "best with probability"],
                   rows),
    ]  # fmt: skip
    if any(kind.worth is not None for kind in found.outcomes.values()):
        parts.append(_picture(of_games.worth(found)))
    return parts


def _limits(found: LogAdvice) -> list[str]:
    return ["<ul>", *(f"<li>{escape(one)}</li>" for one in log_words.limits(found)), "</ul>"]


def _again(found: LogAdvice, command: str) -> list[str]:
    made = ", ".join(f"{name} {number}" for name, number in versions().items())
    parts = [f"<pre>{escape(command)}</pre>"] if command else []
    used = asked_as(found.recommended)
    if used is not None and command:
        parts += [
            "<p>The learner that is recommended, in Python:</p>",
            f"<pre>{escape(_in_python(used))}</pre>",
        ]
    return [
        *parts,
        f'<p class="small">Seed {found.seed}; {found.runs} games of {found.horizon:,} rounds in '
        f"{found.seconds:.0f} seconds; {escape(made)}, Python {platform.python_version()}; "
        f"{date.today().isoformat()}.</p>",
    ]


def _in_python(spec: str) -> str:
    name, _, options = spec.partition(":")
    return f"jb.make_learner({', '.join([repr(name), *filter(None, options.split(','))])})"


def _picture(drawing: Drawing) -> str:
    pictures = {one.name: as_png(drawing.figure(one.look)) for one in VARIANTS}
    return html.figure(drawing.name, drawing.caption, pictures)


def _moment(found: LogAdvice, place: int) -> str:
    moment = found.log.time[place]
    text = str(moment.astype("datetime64[m]")) if found.log.dated else f"{float(moment):g}"
    return text.replace("T", " ")


def _several(labels: Sequence[str], most: int = 20) -> str:
    more = f" and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(labels[:most]) + more


def _text(sentences: Sequence[str]) -> str:
    return escape(" ".join(sentences))
