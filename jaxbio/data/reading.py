"""From a user's table to a Log."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from jaxbio import checks
from jaxbio.data.blocks import SEPARATORS
from jaxbio.data.collecting import Collected, Roles, collect
from jaxbio.data.doubts import doubts, refuse_hopeless
from jaxbio.data.dropped import Counter, listed
from jaxbio.data.intervals import interval_labels, intervals
from jaxbio.data.labels import MOST
from jaxbio.data.log import Log
from jaxbio.data.repeats import repeated_keys
from jaxbio.data.settling import Settled, settle
from jaxbio.data.tables import Table, open_table
from jaxbio.data.times import UNITS, guessed_formats
from jaxbio.display.bars import tqdm

NAMED = 3  # columns that may have been meant


class LogWarning(UserWarning):
    """Something in a table looks wrong, or some of its rows cannot be used."""


def read_log(
    table: Any,
    *,
    time: str,
    action: str,
    state: str,
    loss: str | None = None,
    reward: str | None = None,
    arrived: str | None = None,
    low: float = 0.0,
    high: float = 1.0,
    bins: int | Sequence[float] | None = None,
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
    time: when the decision was made. action: what was chosen. state: what was seen at once.
    arrived: when the outcome came; a row without it has an outcome that has not come, whatever its
    loss says. arrived=None: every loss that is there was seen at once, one that is missing has not
    come. loss: from `low` to `high`; or reward: from `low` to `high`, of which the loss is what is
    missing to `high`. Either becomes a loss in [0, 1]. Truth values count as 1 and 0.
    bins: how the state is made of a number: into how many parts with about as many rows each, or
    a list of edges; None takes the column's values as labels. missing_state: the label of rows
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
    roles = _roles(time, action, state, loss, reward, arrived, key)
    _check_options(low, high, time_unit, decimal)
    _check_texts(missing_state, timezone, time_format, separator, encoding)
    most = checks.number("most_dropped", most_dropped, 0, 1)
    edges = _bins(bins)
    if edges is not None and missing_state is not None:
        raise ValueError(
            "missing_state is a label, but bins makes states of a number: leave one of them out "
            "(rows without a number are dropped and counted)"
        )
    opened = open_table(table, separator, decimal, encoding)
    _find_columns(opened, roles)
    counter, form = Counter(), None if time_format is None else str(time_format)
    hidden = None if checks.boolean("progress", progress) else True
    with tqdm(total=opened.total, unit=opened.counts, unit_scale=True, desc=opened.title,
              disable=hidden, leave=False) as bar:  # fmt: skip
        found = collect(
            opened, roles, counter, lambda seen: bar.update(seen - bar.n),
            numeric_states=edges is not None, missing_state=missing_state, form=form,
            zone=timezone, bounds=(float(low), float(high)),
        )  # fmt: skip
    if found.read == 0:
        raise ValueError(f"{opened.title} is empty: it has names of columns and no row")
    _refuse_dropped(found.read, counter, opened, most)
    settled = settle(
        found, roles, counter, row_unit=opened.unit, end=end, unit=time_unit, zone=timezone,
        form=form, most=most,
    )  # fmt: skip
    keep = settled.keep
    if found.keys is not None:
        keep = repeated_keys(found.keys, keep, found.rows, str(key), counter)
    _refuse_dropped(found.read, counter, opened, most, settled.after)
    log = _in_order(found, settled, keep, roles, edges, opened.unit, counter)
    refuse_hopeless(log)
    return _with_warnings(log, [*settled.doubts, *doubts(log, roles)])


def _in_order(
    found: Collected, settled: Settled, keep: np.ndarray, roles: Roles,
    bins: int | np.ndarray | None, unit: str, counter: Counter,
) -> Log:  # fmt: skip
    """The log of the rows that are kept, by time; rows of the same time stay as they are."""
    order = np.flatnonzero(keep)
    time = settled.time[order]
    if np.any(time[1:] < time[:-1]):
        sorting = np.argsort(time, kind="stable")
        order, time = order[sorting], time[sorting]
    action, actions = found.actions.in_order(found.action[order])
    state, edges = found.state[order], None
    if bins is None:
        state, states = found.states.in_order(state)
    else:
        edges = intervals(state, bins, roles.state)
        state = np.searchsorted(edges, state, "right").astype(np.int32)
        states = interval_labels(edges)
    return Log(
        action=action,
        state=state,
        loss=np.where(settled.come[order], found.loss[order], np.nan),
        time=time,
        arrived=settled.arrived[order],
        row=found.rows[order],
        actions=actions,
        states=states,
        end=settled.end,
        absent=settled.absent,
        edges=edges,
        names=dict(roles.given()),
        unit=unit,
        zone=settled.zone,
        read=found.read,
        dropped=counter.found,
        warnings=(),
    )


def _with_warnings(log: Log, texts: list[str]) -> Log:
    if log.dropped:
        lines = "; ".join(listed(log.dropped, log.unit))
        warnings.warn(f"rows that cannot be used: {lines}", LogWarning, stacklevel=3)
    for text in texts:
        warnings.warn(text, LogWarning, stacklevel=3)
    return replace(log, warnings=tuple(texts))


def _roles(
    time: Any, action: Any, state: Any, loss: Any, reward: Any, arrived: Any, key: Any
) -> Roles:
    roles = Roles(time, action, state, loss, reward, arrived, key)
    for role, name in roles.given():
        checks.text(role, name)
    for role in ("time", "action", "state"):
        checks.text(role, getattr(roles, role))
    if (loss is None) == (reward is None):
        said = "both" if reward is not None else "neither"
        raise ValueError(f"loss or reward must name the column of the outcome, but {said} is given")
    names: dict[str, str] = {}
    for role, name in roles.given():
        if name in names and {role, names[name]} != {"time", "key"}:
            raise ValueError(
                f"{role} must be another column than {names[name]}, but both are {name!r}"
            )
        names[name] = role
    return roles


def _check_options(low: Any, high: Any, time_unit: Any, decimal: Any) -> None:
    least = checks.number("low", low)
    checks.number("high", high, least, open_low=True)
    checks.choice("decimal", decimal, (".", ","))
    checks.choice("time_unit", time_unit, (None, *UNITS, "number"))


def _check_texts(
    missing_state: Any, timezone: Any, time_format: Any, separator: Any, encoding: Any
) -> None:
    for name, value in (("missing_state", missing_state), ("timezone", timezone),
                        ("time_format", time_format), ("separator", separator)):  # fmt: skip
        if value is not None and not checks.text(name, value).strip(" "):
            raise ValueError(f"{name} must not be empty, but got {value!r}")
    if separator is not None and (len(separator) != 1 or not separator.isascii()):
        raise ValueError(f"separator must be one letter of ASCII, but got {separator!r}")
    try:
        fine = SEPARATORS.encode(checks.text("encoding", encoding)) == SEPARATORS.encode()
    except (LookupError, ValueError):
        fine = False
    if not fine:
        raise ValueError(
            "encoding must be one that has the bytes of ASCII, such as 'utf-8' or 'latin-1', but "
            f"got {checks.shown(encoding)}"
        )
    if timezone is not None:
        try:
            ZoneInfo(timezone)
        except (ValueError, OSError, KeyError) as error:  # ZoneInfoNotFoundError is a KeyError
            raise ValueError(
                f"timezone must be a name such as 'Europe/Berlin' or 'UTC', but got {timezone!r}"
            ) from error


def _bins(bins: Any) -> int | np.ndarray | None:
    if bins is None:
        return None
    if checks.is_single(bins):
        return checks.integer("bins", bins, 2, MOST)
    edges = checks.array("bins", bins, 1, "[edges]")
    if np.any(edges[1:] <= edges[:-1]):
        raise ValueError(f"bins must be increasing edges, but got {checks.shown(bins)}")
    return edges


def _find_columns(table: Table, roles: Roles) -> None:
    for role, name in roles.given():
        count = table.names.count(name)
        if count == 0:
            names = {one.lower(): one for one in table.names}
            close = [names[one] for one in get_close_matches(name.lower(), names, NAMED, 0.5)]
            meant = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
            raise ValueError(
                f"{role}: {table.title} has no column {name!r}; {meant}it has "
                f"{checks.shown(table.names)}"
            )
        if count > 1:
            raise ValueError(
                f"{role}: {table.title} has {count} columns that are called {name!r}: rename all "
                "but one"
            )


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
        f"{_formats(counter)}"
    )


def _formats(counter: Counter) -> str:
    """Of dates that are not ISO 8601: which formats would read them."""
    for reason, one in counter.found.items():
        if reason.endswith("is no time"):
            forms = guessed_formats(one.example.strip("'\""))
            if forms:
                return (
                    f"; times like {one.example} take time_format={' or '.join(map(repr, forms))}"
                )
    return ""
