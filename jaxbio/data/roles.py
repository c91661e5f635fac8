"""What the columns of a table are: which one is the time of decisions, the action, ..."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

from jaxbio import checks
from jaxbio.data.tables import Table

NAMED = 3  # columns that may have been meant
SHARED = ({"time", "key"}, {"loss", "event"}, {"reward", "event"})  # may be one column


class Roles(NamedTuple):
    """The names of columns; None: the table has none for it. Of loss and reward there is one, and
    of arrived and delay at most one.
    """

    time: str | None
    action: tuple[str, ...]
    state: tuple[str, ...]
    loss: str | None
    reward: str | None
    arrived: str | None
    delay: str | None
    event: str | None
    followed: str | None
    key: str | None

    def given(self) -> Iterator[tuple[str, str]]:
        """Roles with their columns, one by one."""
        for role, names in self._asdict().items():
            for name in names if isinstance(names, tuple) else (names,):
                if name is not None:
                    yield role, name

    def names(self) -> dict[str, str]:
        """Role -> its columns, with commas between them."""
        found: dict[str, str] = {}
        for role, name in self.given():
            found[role] = f"{found[role]}, {name}" if role in found else name
        return found

    @property
    def outcome(self) -> str:
        return str(self.reward if self.loss is None else self.loss)

    @property
    def told(self) -> str | None:
        """The column that tells when outcomes came, or after how long."""
        return self.arrived or self.delay


def checked_roles(**given: Any) -> Roles:
    """given: by the names of `Roles`. Raises where they cannot be together."""
    for role in ("action", "state"):
        names = given[role]
        if not isinstance(names, str):
            names = checks.several(role, names, "names of columns")
            if not names:
                raise ValueError(f"{role} must name a column, but got []")
        given[role] = (names,) if isinstance(names, str) else tuple(names)
    roles = Roles(**given)
    for role, name in roles.given():
        checks.text(role, name)
    if (roles.loss is None) == (roles.reward is None):
        said = "both" if roles.reward is not None else "neither"
        raise ValueError(f"loss or reward must name the column of the outcome, but {said} is given")
    _refuse_same(roles)
    _refuse_unknown_waits(roles)
    return roles


def _refuse_same(roles: Roles) -> None:
    """What was shown may be a part of the state, among others."""
    names: dict[str, str] = {}
    for role, name in roles.given():
        among = role == "state" and names.get(name) == "action" and len(roles.state) > 1
        if name in names and {role, names[name]} not in SHARED and not among:
            raise ValueError(
                f"{role} must be another column than {names[name]}, but both are {name!r}"
            )
        names[name] = role


def _refuse_unknown_waits(roles: Roles) -> None:
    """Of columns that have no meaning without others."""
    if roles.arrived is not None and roles.time is None:
        raise ValueError(
            f"arrived ({roles.arrived!r}) says when outcomes came, but there are no times of "
            "decisions: give time=, or delay= in place of arrived="
        )
    if roles.event is not None and roles.told is None:
        raise ValueError(
            f"event ({roles.event!r}) says whether the outcome came, or the row was only followed "
            "up to then: give delay= or arrived=, the column that says how long or when"
        )
    if roles.followed is not None and (roles.told is None or roles.event is not None):
        said = "event" if roles.event is not None else "neither of these"
        raise ValueError(
            f"followed ({roles.followed!r}) says how long rows were followed in which the column "
            f"of delay or arrived is empty, but {said} is given: use followed= together with "
            "delay= or arrived=, and without event="
        )


def find_columns(table: Table, roles: Roles) -> None:
    for role, name in roles.given():
        count = table.names.count(name)
        if count == 0:
            raise ValueError(
                f"{role}: {table.title} has no column {name!r}; {meant(table, name)}it has "
                f"{checks.shown(table.names)}"
            )
        if count > 1:
            raise ValueError(
                f"{role}: {table.title} has {count} columns that are called {name!r}: rename all "
                "but one"
            )


def meant(table: Table, name: str) -> str:
    """Columns with a name like it, for a message."""
    names = {one.lower(): one for one in table.names}
    close = [names[one] for one in get_close_matches(name.lower(), names, NAMED, 0.5)]
    return f"did you mean {' or '.join(map(repr, close))}? " if close else ""
