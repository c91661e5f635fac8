"""What is wrong with a log: what it is refused for, and what looks wrong."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from jaxbio.data.dropped import SHOWN, named, rows_of
from jaxbio.data.log import Log
from jaxbio.data.repeats import suspicion
from jaxbio.data.roles import Roles

FEW, RARE = 10, 0.01  # rows of a label that has few, and their share
TIED = 0.5  # of decisions that share their instant with another
LATE, SOME = 0.05, 5  # share of outcomes after the last decision, and how many are no chance
SHOWN_LABELS = 5


def refuse_hopeless(log: Log) -> None:
    """Raise where there is nothing to choose, or no outcome."""
    if log.num_actions < 2:
        raise ValueError(
            f"column {log.names['action']!r} (action) has a single value, {log.actions[0]!r}, in "
            f"all {len(log):,} rows that can be used: there is nothing to choose; give the column "
            "of what was chosen, or a log in which it varies"
        )
    if not log.come.any():
        told = ("event", "arrived", "delay", "loss", "reward")
        column = next(log.names[role] for role in told if role in log.names)
        raise ValueError(
            f"no outcome has come in the {len(log):,} rows that can be used (column {column!r}): "
            "there is nothing to learn from; give a later end, or the column with the outcomes"
        )


def doubts(log: Log, roles: Roles) -> list[str]:
    """Sentences, each with what to do."""
    texts = [*_without_outcomes(log), *_rare(log), *_spellings(log)]
    if log.num_states == 1:
        texts.append(
            f"column {log.names['state']!r} (state) has a single value, {log.states[0]!r}: "
            "it tells nothing"
        )
    losses = log.loss[log.come]
    if log.come.all() and losses.min() == losses.max():
        texts.append(f"every loss is {losses[0]:g}: no action is better than another")
    texts += [*_ties(log), *_after_all(log)]
    if roles.key is None:
        texts += suspicion(log)
    return texts


def _without_outcomes(log: Log) -> list[str]:
    texts = []
    for role, labels, axis in (("action", log.actions, 1), ("state", log.states, 0)):
        rows, come = log.counts.sum(axis), log.outcomes.sum(axis)
        bare = [
            f"{labels[i]!r} ({rows_of(rows[i])})" for i in np.flatnonzero((come == 0) & (rows > 0))
        ]
        if bare:
            texts.append(
                f"no outcome has ever come for {role} {_some(bare)}: nothing is known of its "
                "losses; wait longer, or give it the label of another that is like it"
            )
    return texts


def _rare(log: Log) -> list[str]:
    texts = []
    for role, labels, codes, axis in (
        ("action", log.actions, log.action, 1), ("state", log.states, log.state, 0)
    ):  # fmt: skip
        rows = log.counts.sum(axis)
        few = np.flatnonzero((rows < FEW) & (rows < RARE * len(log)) & (rows > 0))
        named_rows = []
        for i in few[:SHOWN_LABELS]:
            first = tuple(log.row[codes == i][:SHOWN].tolist())
            named_rows.append(f"{labels[i]!r} ({named(log.unit, first, rows[i])})")
        if few.size:
            texts.append(
                f"hardly any row has {role} {_some(named_rows, few.size)}: correct the label if it "
                "is a mistake, or leave these rows out"
            )
    return texts


def _spellings(log: Log) -> list[str]:
    texts = []
    for role, labels in (("actions", log.actions), ("states", log.states)):
        alike = defaultdict(list)
        for label in labels:
            alike["".join(label.lower().split())].append(label)
        twice = [", ".join(map(repr, same)) for same in alike.values() if len(same) > 1]
        if twice:
            texts.append(
                f"{role} differ in case or spaces only: {_some(twice)}; they are kept apart"
            )
    return texts


def _ties(log: Log) -> list[str]:
    same = log.time[1:] == log.time[:-1]
    tied = (np.concatenate([[False], same]) | np.concatenate([same, [False]])).mean()
    if tied <= TIED:
        return []
    return [
        f"{tied:.0%} of decisions have the same {log.names['time']} as another: delays in rounds "
        "take them in the order of the table, and count all decisions at the instant of an outcome "
        "as made before it; give finer times if there are any"
    ]


def _after_all(log: Log) -> list[str]:
    come = int(log.come.sum())
    late = come - int(log.seen_in_rounds.sum())
    if late < SOME or late <= LATE * come:
        return []
    return [
        f"{late / come:.0%} of outcomes came after the last decision: their delays in rounds are "
        "longer than what delays_in_rounds() gives, as rounds end with the log; fit_delays must "
        "take these rows as waiting, which seen_in_rounds tells"
    ]


def _some(texts: list[str], count: int | None = None) -> str:
    left = (len(texts) if count is None else count) - len(texts[:SHOWN_LABELS])
    return ", ".join(texts[:SHOWN_LABELS]) + (f" and {left} more" if left else "")
