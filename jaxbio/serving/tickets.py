"""The tickets of an agent: which decisions are open, and which losses are still to come."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

from jaxbio import checks
from jaxbio.serving.lanes import MOST


class TicketError(ValueError):
    """A ticket that is not known, or of which nothing more is expected."""


class Ended(NamedTuple):
    """A round whose state was seen and which the learner has not learned from yet.

    row: of its play; state: its code; loss: None unless it has come; dropped: will it never?
    """

    ticket: int
    row: bytes
    state: int
    loss: float | None
    dropped: bool = False

    @property
    def waits(self) -> bool:
        """May its loss still come?"""
        return self.loss is None and not self.dropped


class Arrival(NamedTuple):
    """A loss that has come, of a round that the learner knows."""

    round: int
    row: bytes
    loss: float


class Tickets:
    """Where every ticket is on its way.

    decisions: how many tickets were handed out, 1, 2, ...; rounds: how many rounds the learner has
    learned from. open: ticket -> (row, loss or None) of decisions whose state was not seen; ended:
    the round that it learns from next, if there is one; outstanding: ticket -> (round, row) of
    rounds whose loss has not come, in their order; arrived: losses for the end of the next round.
    longest: rounds after which a loss is no longer expected, or None.
    """

    def __init__(self, longest: int | None) -> None:
        self.longest = longest
        self.decisions = self.rounds = 0
        self.open: dict[int, tuple[bytes, float | None]] = {}
        self.ended: Ended | None = None
        self.outstanding: OrderedDict[int, tuple[int, bytes]] = OrderedDict()
        self.arrived: list[Arrival] = []

    def decide(self, row: bytes) -> int:
        """Open a decision: its ticket."""
        self.decisions = ticket = self.decisions + 1
        self.open[ticket] = (row, None)
        return ticket

    def see(self, ticket: int, state: int) -> None:
        """The state of an open decision is known, so its round ends. None may be ended before."""
        row, loss = self.open.pop(ticket)
        self.ended = Ended(ticket, row, state, loss)

    def observe(self, ticket: int, loss: float) -> None:
        """A loss has come."""
        found, ended = self.outstanding.pop(ticket, None), self.ended
        if found is not None:
            self.arrived.append(Arrival(*found, loss))
        elif ended is not None and ended.ticket == ticket and ended.waits:
            self.ended = ended._replace(loss=loss)
        elif ticket in self.open and self.open[ticket][1] is None:
            self.open[ticket] = (self.open[ticket][0], loss)
        else:
            raise self.error(ticket, "loss")

    def give_up(self, ticket: int) -> None:
        """Nothing more will be heard of it."""
        if self.open.pop(ticket, None) or self.outstanding.pop(ticket, None):
            return
        ended = self.ended
        if ended is None or ended.ticket != ticket or not ended.waits:
            raise self.error(ticket, "loss")
        self.ended = ended._replace(dropped=True)

    def due(self) -> list[Arrival]:
        """The losses that the round that has ended learns from, in the order of their rounds. What
        is too much for one round waits for the next.
        """
        if len(self.arrived) > 1:
            self.arrived.sort()
        return self.arrived[:MOST]

    def close(self, filed: bytes, learned: int) -> None:
        """The learner has learned from the round that has ended, and from so many that are due.

        filed: the row of the round from now on.
        """
        ended, self.ended = self.ended, None
        assert ended is not None
        self.rounds += 1
        self.arrived = self.arrived[learned:]
        if ended.waits:
            self.outstanding[ended.ticket] = (self.rounds, filed)
        if self.longest is not None:
            self._forget(self.rounds - self.longest)

    def _forget(self, last: int) -> None:
        """Rounds up to this one, whose losses can no longer come in time."""
        while self.outstanding:
            ticket, (number, _) = next(iter(self.outstanding.items()))
            if number > last:
                return
            del self.outstanding[ticket]

    def error(self, ticket: int, what: str) -> TicketError:
        """Why nothing more is expected. what: "state" or "loss" was to be known."""
        if not 1 <= ticket <= self.decisions:
            given = f"1 to {self.decisions}" if self.decisions else "none so far"
            return TicketError(f"ticket {ticket} is unknown: this agent has handed out {given}")
        is_ended = self.ended is not None and self.ended.ticket == ticket
        if what == "state" and (is_ended or ticket in self.outstanding):
            return TicketError(f"the state of ticket {ticket} was seen already")
        if ticket in self.open:
            return TicketError(f"the loss of ticket {ticket} was observed already")
        late = "" if self.longest is None else f", or more than longest={self.longest} rounds ago"
        return TicketError(
            f"ticket {ticket} is closed: its loss was observed already, or it was given up{late}"
        )


def number_of(ticket: Any) -> int:
    """A ticket as the number that it is."""
    return ticket if type(ticket) is int else checks.integer("ticket", ticket, 0)
