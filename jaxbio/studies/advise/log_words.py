"""What advice for a log says, in sentences: for a terminal and for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxbio.data.fitted import CONVERSIONS
from jaxbio.studies.advise.log_problems import LOGGED, RANDOM
from jaxbio.studies.advise.problems import CHANGING, STATIONARY
from jaxbio.studies.advise.text import ADVERSARIAL, HARDLY, worth
from jaxbio.studies.contestants import asked_as

if TYPE_CHECKING:
    from jaxbio.data.log import Log
    from jaxbio.studies.advise.log_advice import Expected, LogAdvice

FEW = 30  # outcomes of a state: with fewer its mean loss is hardly known


def spread(found: Expected) -> str:
    """371 (330 to 412)."""
    digits = 0 if max(map(abs, found)) >= 100 else 1 if max(map(abs, found)) >= 10 else 2
    mean, low, high = (f"{round(value, digits) + 0.0:,.{digits}f}" for value in found)
    return f"{mean} ({low} to {high})"


def column(log: Log) -> str:
    """Of the outcome."""
    return log.names.get("reward") or log.names["loss"]


def is_reward(log: Log) -> bool:
    return "reward" in log.names


def lost(log: Log, losses: Expected) -> str:
    """What a regret is, in the units of the outcome."""
    said = f"{spread(losses)} of {column(log)!r}"
    return f"to miss {said}" if is_reward(log) else f"to have {said} too many"


def scaled(found: LogAdvice, value: Expected) -> Expected:
    """In the units of the user's outcomes."""
    return value.per(1 / found.span)


def warnings(found: LogAdvice) -> list[str]:
    """Checks that fail, and what to do: to be read before anything else."""
    return [f"{one.question} Yes. {one.sentence}"
            + (f" What to do: {one.remedy.rstrip('.')}." if one.remedy else "")
            for one in found.checks.failing]  # fmt: skip


def called(name: str) -> str:
    """A learner, and what other commands call it where that is another name."""
    spec = asked_as(name)
    return name if spec in (None, name) else f"{name} ({spec})"


def answer(found: LogAdvice, kind: str = STATIONARY) -> list[str]:
    """Two sentences: which learner and what it loses; what it gains over not learning."""
    name = found.outcomes[kind].named
    regret = scaled(found, found.regret(name, kind))
    each = spread(regret.per(found.horizon / 1_000)).split(" ")[0]
    return [
        f"Run {called(name)}: it is expected {lost(found.log, regret)} in {found.horizon:,} rounds "
        f"({each} in 1,000), compared with knowing the best action from the start.",
        f"It has {gain(found, RANDOM, kind)} than {RANDOM}, and {gain(found, found.always, kind)} "
        f"than always playing {found.best_looking!r}, which looks best in the log.",
    ]


def gain(found: LogAdvice, against: str, kind: str = STATIONARY) -> str:
    """How much more or less of the outcome than another has."""
    saved = scaled(found, found.saved(against, kind))
    better, worse = ("more", "less") if is_reward(found.log) else ("less", "more")
    of = f"of {column(found.log)!r}"
    if saved.low < 0 < saved.high:
        low, high = (spread(saved._replace(mean=end)).split(" ")[0]
                     for end in (-saved.low, saved.high))  # fmt: skip
        return f"between {low} {worse} and {high} {better} {of}"
    if saved.mean >= 0:
        return f"{spread(saved)} {better} {of}"
    turned = type(saved)(-saved.mean, -saved.high, -saved.low)
    return f"{spread(turned)} {worse} {of}"


def more(found: LogAdvice, kind: str = STATIONARY) -> list[str]:
    """What else there is to say of a kind of problem."""
    one = found.outcomes[kind]
    named, least = one.comparison[one.named], one.comparison.rows[0]
    risky = least.name if one.few and least.name in one.unusual else None
    close = [name for name in one.comparison.contenders if name not in (named.name, risky)]
    first = kind == STATIONARY
    said = [f"Compared with {LOGGED} it has {gain(found, LOGGED, kind)}."] if first else []
    if first and found.saved(found.always, kind).high < 0:
        said.append(
            "So the log already says which action is best: as long as nothing changes, always "
            f"playing {found.best_looking!r} is better than any learner that begins without the "
            "log and has to find out again. Run a learner where things may change, or where "
            "actions are new."
        )
    if risky is not None and risky != named.name:
        said.append(
            f"{risky} has less regret ({least.mean:,.1f}), but {one.comparison.runs} games are too "
            "few to tell how often that form fails: more seconds would."
        )
    if one.uniform is not None and named.mean >= HARDLY * one.uniform:
        said.append("That is hardly better than choosing at random: too little can be learnt in "
                    "time." if one.uniform > 0 else
                    "On average no action is better than another.")  # fmt: skip
    if close:
        said.append(f"Too close to call: {', '.join(close)} may be as good.")
    if one.worth is not None:
        said.append(worth(one.worth))
    return said


def changes(found: LogAdvice) -> str:
    """How much the mapping changed in the log, and what was made of it."""
    moved = found.turns
    if not moved.any:
        why = "" if moved.p is None else f" ({_chance(moved.p)} for the first and the last of "
        why += "" if moved.p is None else f"{moved.parts} parts of the log)"
        return (
            "What actions show did not change over the log by more than chance explains"
            f"{why}. So there are no games with a mapping that changes: they would be the same."
        )
    share = f"{moved.share:.1%} of the rounds"
    why = "" if moved.p is None else f" ({_chance(moved.p)})"
    return (
        f"From the first to the last of {moved.parts} parts of the log {share} came to show "
        f"another state, after what chance explains is taken off{why}. In further games the "
        "mapping of the early and that of the late part take turns."
        + (" That is little, so that the answers hardly differ." if moved.share < 0.01 else "")
    )


def limits(found: LogAdvice) -> list[str]:
    """What the answer rests on, and what it does not say."""
    named = found.recommended
    said = [
        f"{length(found)} In every game the learner begins without knowing the log.",
        f"Intervals are of 95 %, over {found.runs} games. Each game has a problem of its own, "
        "drawn from what the log leaves possible, and chances of its own, so that an interval "
        "counts both what the log does not tell and luck.",
    ]
    if found.fit.kind == CONVERSIONS:
        window = found.fit.window or 0
        said.append(
            f"What has not come after {window:,} rounds{lasting(found.log, window)} counts as not "
            "coming, and the learner is told so then. Waiting longer or shorter may be worth more "
            "than one learner instead of another: `jaxbio log window` shows it."
        )
        if window >= found.horizon:
            said.append(
                "That is as long as a whole game: a learner hears of no failure before the end. A "
                "shorter window, or a longer horizon with more seconds, would say more."
            )
    if found.unfinished:
        said.append(
            f"Not finished in time, so not compared: {', '.join(found.unfinished)}. Asked again "
            "with more seconds, the same command goes on with them."
        )
    if found.checks.unknown:
        said.append(
            "The log cannot tell whether the model holds in everything: see "
            f"{', '.join(one.name for one in found.checks.unknown)}."
        )
    if found.robust not in (None, named):
        said.append(
            "Of the learners whose regret is bounded whatever the mapping does, "
            f"{found.robust} had the least."
        )
    return [*said, " ".join(ADVERSARIAL.split())]


def length(found: LogAdvice) -> str:
    """Why games are as long as they are."""
    rounds = f"Games have {found.horizon:,} rounds"
    if found.asked:
        return f"{rounds}, as asked."
    if not found.shortened:
        return f"{rounds}, as many as the log has decisions."
    return (
        f"{rounds}, not the {len(found.log):,} of the log, which could not be played in the time: "
        "horizon= (--horizon) and seconds= (--seconds) say otherwise."
    )


def lasting(log: Log, rounds: float) -> str:
    """So many rounds in time, at the mean pace of the log; nothing where times are no dates."""
    if not log.dated or len(log) < 2:
        return ""
    seconds = float((log.time[-1] - log.time[0]) / type(log.time[-1] - log.time[0])(1, "s"))
    return f" (about {time_text(rounds * seconds / (len(log) - 1))})"


def time_text(seconds: float) -> str:
    """3.2 days."""
    for size, unit in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} seconds"


def kinds(found: LogAdvice) -> dict[str, str]:
    """kind -> what it is called."""
    titles = {STATIONARY: "If nothing changes", CHANGING: "If it goes on changing as in the log"}
    return {kind: titles[kind] for kind in found.outcomes}


def _chance(p: float) -> str:
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"
