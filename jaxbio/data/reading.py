"""From a user's table to a Log."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np

from jaxbio import checks
from jaxbio.data.clocks import Said
from jaxbio.data.collecting import Collected, Column, collect
from jaxbio.data.columns import How
from jaxbio.data.doubts import doubts, refuse_hopeless
from jaxbio.data.dropped import Counter, listed
from jaxbio.data.intervals import interval_labels, intervals
from jaxbio.data.labels import joined
from jaxbio.data.log import Log
from jaxbio.data.options import (
    bins_of,
    check_options,
    check_texts,
    counts,
    delay_of,
    refuse_unused,
)  # fmt: skip
from jaxbio.data.repeats import repeated_keys
from jaxbio.data.roles import Roles, checked_roles, find_columns
from jaxbio.data.settling import Settled, settle
from jaxbio.data.tables import Table, open_table
from jaxbio.data.times import guessed_formats
from jaxbio.display.bars import tqdm


class LogWarning(UserWarning):
    """Something in a table looks wrong, or some of its rows cannot be used."""


def read_log(
    table: Any,
    *,
    time: str | None = None,
    action: str | Sequence[str],
    state: str | Sequence[str],
    loss: str | None = None,
    reward: str | None = None,
    arrived: str | None = None,
    delay: str | float | timedelta | None = None,
    delay_unit: str | None = None,
    event: str | None = None,
    followed: str | None = None,
    rate: float | None = None,
    low: float = 0.0,
    high: float = 1.0,
    values: Mapping[str, float] | None = None,
    unknown: Any = None,
    bins: int | Sequence[float] | Mapping[str, int | Sequence[float]] | None = None,
    missing_state: str | None = None,
    key: str | None = None,
    end: Any = None,
    timezone: str | None = None,
    time_unit: str | None = None,
    time_format: str | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    most_dropped: float = 0.1,
    progress: bool = True,
) -> Log:
    """Read a log of decisions: one row per decision, columns by name.

    table: the path of a CSV file (also compressed: .gz, .bz2, .xz, .zip) or of a Parquet file, a
    DataFrame of pandas or polars, a table of PyArrow, or a mapping from names to columns.
    time: when the decision was made; None: the table does not say it, and its rows are rounds in
    the order in which they stand. action: what was chosen. state: what was seen at once. Either may
    be several columns, whose labels are joined.
    loss: from `low` to `high`; or reward: from `low` to `high`, of which the loss is what is
    missing to `high`. Either becomes a loss in [0, 1]. Truth values count as 1 and 0. values: what
    labels count as, such as {"dead": 1, "dependent": 0.5, "well": 0}. unknown: one or several
    labels or numbers, such as 9 or "U", that stand for an outcome that is not known.

    When outcomes came is said in one of four ways:
    arrived: a column of the time when the outcome came; a row without it has an outcome that has
    not come, whatever its loss says.
    delay: a column of how long the outcome took since the decision, and empty where it has not
    come. Without `time` it counts rounds. With dates its numbers count in `delay_unit`: "d", "h",
    "min", "s" or "ms".
    delay: one number, or a duration such as "7d" or "12h" if times are dates, after which every
    outcome came that is in the table; a loss that is missing is not due before the end, or lost.
    None of these: every loss that is there was seen at once, one that is missing has not come.
    event: a column that is true where the outcome came at `arrived` or after `delay`, and false
    where it had not come by then and the row was not followed any longer. followed: a column of how
    long rows were followed in which `arrived` or `delay` is empty. Without either a row is followed
    until the end of the log.
    rate: how many decisions are made in one unit of `delay`, such as 500 in a day; without `time`.

    bins: how the state is made of a number: into how many parts with about as many rows each, or
    a list of edges; of several columns a mapping from those that are numbers to either. None takes
    the values of a column as labels. missing_state: the label of rows
    without a state; None drops them.
    key: a column that names each event, such as an id; of rows with the same key the first counts.
    end: until when outcomes would have been seen, in the form of `time`; None takes the last time
    in the table. Later decisions are dropped, later outcomes have not come.
    timezone: of dates that have none, such as "Europe/Berlin". time_unit: of numbers: "s", "ms",
    "us" or "ns" since 1970, or "number" for plain numbers such as rounds; None finds it out.
    time_format: as for `strptime`, such as "%d/%m/%Y %H:%M", for dates that are not ISO 8601.
    separator, decimal, encoding: of a CSV file; separator=None finds it in the first line.
    most_dropped: the largest share of rows that may be unusable before the table is refused.

    Raises a ValueError where the table cannot be what was said, with the column, the row and what
    to do. What looks wrong but can be read is a `LogWarning`, and in `Log.warnings`; rows that
    cannot be used are in `Log.dropped`.
    """
    check_options(low, high, time_unit, decimal, delay_unit, rate)
    check_texts(missing_state, timezone, time_format, separator, encoding)
    most = checks.number("most_dropped", most_dropped, 0, 1)
    opened = open_table(table, separator, decimal, encoding)
    column, wait = delay_of(delay, opened)
    roles = checked_roles(
        time=time, action=action, state=state, loss=loss, reward=reward, arrived=arrived,
        delay=column, event=event, followed=followed, key=key,
    )  # fmt: skip
    form = None if time_format is None else str(time_format)
    said = Said(end, time_unit, timezone, form, rate, wait, delay_unit)
    edges = bins_of(bins, roles, missing_state)
    refuse_unused(roles, said)
    find_columns(opened, roles)
    how = How(
        edges,
        missing_state,
        form,
        timezone,
        (float(low), float(high)),
        counts(values, unknown),
    )
    counter = Counter()
    hidden = None if checks.boolean("progress", progress) else True
    with tqdm(total=opened.total, unit=opened.counts, unit_scale=True, desc=opened.title,
              disable=hidden, leave=False) as bar:  # fmt: skip
        found = collect(opened, roles, counter, lambda seen: bar.update(seen - bar.n), how)
    if found.read == 0:
        raise ValueError(f"{opened.title} is empty: it has names of columns and no row")
    _refuse_dropped(found.read, counter, opened, most)
    settled = settle(found, roles, counter, said, row_unit=opened.unit, most=most)
    keep = settled.keep
    if found.keys is not None:
        keep = repeated_keys(found.keys, keep, found.rows, str(key), counter)
    _refuse_dropped(found.read, counter, opened, most, settled.after)
    log = _in_order(found, settled, keep, roles, edges, opened.unit, counter)
    log = replace(log, bounds=how.bounds)
    refuse_hopeless(log)
    return _with_warnings(log, [*settled.doubts, *doubts(log, roles)])


def _in_order(
    found: Collected, settled: Settled, keep: np.ndarray, roles: Roles,
    bins: Mapping[str, Any], unit: str, counter: Counter,
) -> Log:  # fmt: skip
    """The log of the rows that are kept, by time; rows of the same time stay as they are."""
    order = np.flatnonzero(keep)
    time = settled.time[order]
    arrived, end = settled.arrived[order], settled.end
    watched = None if settled.watched is None else settled.watched[order]
    if roles.time is None:
        time, arrived, watched, end = _renumbered(time, arrived, watched)
    elif np.any(time[1:] < time[:-1]):
        sorting = np.argsort(time, kind="stable")
        order, time, arrived = order[sorting], time[sorting], arrived[sorting]
        watched = None if watched is None else watched[sorting]
    action, actions, _ = _labelled(found.actions, order, {})
    state, states, edges = _labelled(found.states, order, bins)
    return Log(
        action=action,
        state=state,
        loss=np.where(settled.come[order], found.loss[order], np.nan),
        time=time,
        arrived=arrived,
        row=found.rows[order],
        actions=actions,
        states=states,
        end=end,
        absent=settled.absent,
        edges=edges,
        names=roles.names(),
        unit=unit,
        zone=settled.zone,
        read=found.read,
        dropped=counter.found,
        warnings=(),
        watched=watched,
    )


def _labelled(
    columns: Sequence[Column], order: np.ndarray, bins: Mapping[str, Any]
) -> tuple[np.ndarray, tuple[str, ...], np.ndarray | None]:
    """Codes [rows], labels, and edges if it is a single column of numbers."""
    parts, edges = [], None
    for name, values, labels in columns:
        if labels is not None:
            parts.append(labels.in_order(values[order]))
            continue
        numbers = values[order]
        edges = intervals(numbers, bins[name], name)
        codes = np.searchsorted(edges, numbers, "right").astype(np.int32)
        parts.append((codes, interval_labels(edges)))
    codes, labels = joined([column.name for column in columns], parts)
    return codes, labels, edges if len(columns) == 1 else None


def _renumbered(
    time: np.ndarray, arrived: np.ndarray, watched: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, float]:
    """Times and end of rounds: only the rows that are kept count as rounds. All [rows]."""
    rounds = np.arange(1.0, len(time) + 1)
    arrived = arrived + (rounds - time)
    end = max(rounds[-1], np.nanmax(arrived, initial=0.0))
    if watched is not None:
        watched = watched + (rounds - time)
        end = max(end, np.nanmax(watched, initial=0.0))
    return rounds, arrived, watched, float(end)


def _with_warnings(log: Log, texts: list[str]) -> Log:
    if log.dropped:
        lines = "; ".join(listed(log.dropped, log.unit))
        warnings.warn(f"rows that cannot be used: {lines}", LogWarning, stacklevel=3)
    for text in texts:
        warnings.warn(text, LogWarning, stacklevel=3)
    return replace(log, warnings=tuple(texts))


def _refuse_dropped(
    read: int, counter: Counter, table: Table, most: float, wanted: int = 0
) -> None:
    """Raise where too many rows cannot be used, or all. wanted: rows that were to be dropped."""
    count = counter.total
    if count - wanted <= most * read and count < read:
        return
    lines = "; ".join(listed(counter.found, table.unit))
    limit = "" if count == read else f", more than the share of {most:g} that most_dropped allows"
    raise ValueError(
        f"{count:,} of {read:,} rows of {table.title} cannot be used{limit}: {lines}"
        f"{_remedies(counter)}"
    )


def _remedies(counter: Counter) -> str:
    """Of dates that are not ISO 8601 which formats would read them; of labels what to give."""
    for reason, one in counter.found.items():
        if reason.endswith("is no time"):
            forms = guessed_formats(one.example.strip("'\""))
            if forms:
                return (
                    f"; times like {one.example} take time_format={' or '.join(map(repr, forms))}"
                )
        if reason.endswith("is no number"):
            return (
                "; numbers count, true, yes, false and no: say what other labels of an outcome "
                f"count as with values=, or that they are not known with unknown={one.example}"
            )
    return ""
