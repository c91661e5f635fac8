"""A learner outside of simulation: it decides, sees states, and learns from losses as they come."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import jax
import numpy as np

from jaxbio import checks, rng
from jaxbio.core import facts_of
from jaxbio.engine import protocol
from jaxbio.engine.round import as_numbers
from jaxbio.serving import saving
from jaxbio.serving.lanes import MOST, lanes_for
from jaxbio.serving.machines import machine_for
from jaxbio.serving.mind import Mind
from jaxbio.serving.settings import Settings, checked, known_of
from jaxbio.serving.tickets import TicketError, Tickets, number_of


class Agent:
    """A learner at work, for one stream of decisions.

    `select` decides, `see` says what state the decision showed, `observe` what was lost, whenever
    that is known. A round is a decision whose state was seen; rounds are numbered in the order in
    which their states were seen. The learner learns from a round, and from the losses that came
    until then, just before the next decision. So used one round after the other, the agent decides
    bit for bit as the learner does in `simulate` on a CPU (with the same seed and run, and
    losses that come as many decisions later as their delays say).

    It may be called from several threads: calls wait for each other. One process owns an agent.

    learner: any, as for `simulate`.
    actions, states: labels (texts, whole numbers, True and False), at least 2 and 1.
    horizon: how many rounds the learner is told to expect. It may go on beyond, with a warning.
    delay: the delay that the learner is told, in rounds; None: delays vary.
    longest: how many rounds after its own a loss may come; later ones are refused, and their rounds
      forgotten. None: any; learners that keep something for every round on its way need a number.
    concurrent: may a decision be made while the state of another one was not seen? Then the learner
      decides without what these rounds will teach it.
    seed, run: the run whose uniforms the learner gets, as in `simulate`.
    backend: "llvm" (machine code) or "jit" (`jax.jit`, slower); None: the fastest that can.
    """

    def __init__(
        self,
        learner: Any,
        actions: Any,
        states: Any,
        horizon: int,
        *,
        delay: int | None = None,
        longest: int | None = None,
        concurrent: bool = False,
        seed: Any = 0,
        run: int = 0,
        backend: str | None = None,
    ) -> None:
        run = checks.size("run", run, 0)
        key = rng.run_keys(seed, [run])[:, 0]
        self._set_up(
            checks.learner("learner", learner),
            checked(actions, states, horizon, delay, longest, concurrent, key),
            backend,
        )

    def _set_up(self, learner: Any, settings: Settings, backend: str | None) -> None:
        self.learner, self._settings = learner, settings
        self._mind = Mind(learner, known_of(learner, settings))
        self._machine = machine_for(self._mind, np.array(settings.key, np.uint32), backend)
        self._codes = {label: code for code, label in enumerate(settings.states)}
        self._tickets = Tickets(settings.longest)
        self._lock = threading.Lock()

    # --- decisions

    def select(self) -> tuple[Any, int]:
        """The action to take now, and its ticket: an integer, to be kept with the decision."""
        with self._lock:
            tickets = self._tickets
            if tickets.ended is not None:
                self._learn()
            elif tickets.open and not self._settings.concurrent:
                raise self._still_open()
            action, row = self._machine.act(tickets.decisions + 1, tickets.rounds + 1)
            if not 0 <= action < len(self._settings.actions):
                raise RuntimeError(checks.FLAGS["out_of_range"])
            return self._settings.actions[action], tickets.decide(row)

    def see(self, ticket: int, state: Any) -> None:
        """The decision of this ticket showed that state."""
        code, ticket = self._code_of(state), number_of(ticket)
        with self._lock:
            tickets = self._tickets
            if ticket not in tickets.open:
                raise tickets.error(ticket, "state")
            if tickets.ended is not None:
                self._learn()
            tickets.see(ticket, code)

    def observe(self, ticket: int, loss: Any) -> None:
        """The loss of this ticket, in [0, 1], is known; it may be before its state is."""
        if not (type(loss) is float and 0.0 <= loss <= 1.0):
            loss = checks.number("loss", loss, 0, 1)
        ticket = number_of(ticket)
        with self._lock:
            self._tickets.observe(ticket, loss)

    def give_up(self, ticket: int) -> None:
        """Expect nothing more of this ticket.

        A decision whose state was not seen is taken back: it was no round. Of a round whose state
        was seen, the loss will never come, which the learner is not told.
        """
        ticket = number_of(ticket)
        with self._lock:
            self._tickets.give_up(ticket)

    def _learn(self) -> None:
        """From the round that has ended, and from what has come until now."""
        tickets, ended = self._tickets, self._tickets.ended
        assert ended is not None
        due = tickets.due()
        rows, losses = [one.row for one in due], [one.loss for one in due]
        known = (ended.row, ended.state, ended.loss)
        filed = self._machine.learn(tickets.rounds + 1, *known, rows, losses)
        tickets.close(filed, len(due))
        if tickets.rounds == self.horizon:
            warnings.warn(
                f"round {self.horizon:,} is over, and the learner was told to expect no more "
                f"(horizon={self.horizon}): it goes on, but its rates and bounds are for those",
                RuntimeWarning,
                stacklevel=3,
            )

    def _still_open(self) -> TicketError:
        ticket = next(iter(self._tickets.open))
        return TicketError(
            f"the state of ticket {ticket} was not seen: call see({ticket}, state) before the next "
            f"select(), or give_up({ticket}) if nobody will. Agent(..., concurrent=True) decides "
            "while other decisions are open"
        )

    def _code_of(self, state: Any) -> int:
        try:
            return self._codes[state]
        except (KeyError, TypeError):
            return self._codes[checks.choice("state", state, self._settings.states)]

    # --- what there is to know

    @property
    def actions(self) -> tuple[Any, ...]:
        """The labels of the actions."""
        return self._settings.actions

    @property
    def states(self) -> tuple[Any, ...]:
        """The labels of the states."""
        return self._settings.states

    @property
    def horizon(self) -> int:
        """How many rounds the learner was told to expect."""
        return self._settings.horizon

    @property
    def backend(self) -> str:
        """What it runs on: "llvm" (machine code) or "jit"."""
        return self._machine.name

    @property
    def decisions(self) -> int:
        """How many tickets were handed out."""
        return self._tickets.decisions

    @property
    def rounds(self) -> int:
        """How many rounds have ended: decisions whose state was seen."""
        return self._tickets.rounds + (self._tickets.ended is not None)

    @property
    def open(self) -> tuple[int, ...]:
        """Tickets whose state was not seen yet, oldest first."""
        with self._lock:
            return tuple(self._tickets.open)

    @property
    def outstanding(self) -> tuple[int, ...]:
        """Tickets whose state was seen and whose loss may still come, in the order of rounds."""
        with self._lock:
            last = self._tickets.ended
            own = (last.ticket,) if last is not None and last.waits else ()
            return (*self._tickets.outstanding, *own)

    def facts(self) -> dict[str, Any]:
        """What the learner says about itself, as in `Result.info`; NaN in its state raises."""
        with self._lock:
            leaves = self._machine.state
        if any(leaf.dtype.kind == "f" and np.isnan(leaf).any() for leaf in leaves):
            raise RuntimeError(checks.FLAGS["not_a_number"])
        types = self._mind.types
        state = protocol.restored(types, jax.tree.structure(types.state).unflatten(leaves))
        facts = as_numbers(facts_of(self._mind.learner, state))
        return {name: np.asarray(fact).tolist() for name, fact in facts.items()}

    def prepare(self, losses: int) -> None:
        """Compile now what learns from so many losses at once, not when they come.

        Programs are for up to 1, 8, 64, 512, 4,096 and 32,768 losses; those for 1 and 8 are there.
        """
        losses = checks.size("losses", losses, 1)
        self._machine.prepare(lanes_for(min(losses, MOST)))  # unlocked: decisions go on meanwhile

    def __repr__(self) -> str:
        tickets, told = self._tickets, self._settings
        more = "" if told.delay is None else f", delay {told.delay}"
        return (
            f"Agent of {type(self.learner).__name__}: round {self.rounds:,} of {self.horizon:,}"
            f"{more}, back-end {self.backend}\n"
            f"  {len(told.actions)} actions: {_listed(told.actions)}\n"
            f"  {len(told.states)} states: {_listed(told.states)}\n"
            f"  {self.decisions:,} decisions, {len(tickets.open):,} open, "
            f"{len(self.outstanding):,} without a loss yet"
        )

    # --- keeping it

    def save(self, path: Any) -> None:
        """Write all of it but the learner itself to a file, .npz or .json, whole or not at all."""
        file = saving.file_of(path)
        saving.write(file, self._parts())

    @classmethod
    def load(cls, path: Any, learner: Any, *, backend: str | None = None) -> Agent:
        """The agent that was saved, with the learner that it had: it goes on bit for bit."""
        return cls._of(saving.read(saving.file_of(path)), learner, backend)

    def to_dict(self) -> dict[str, Any]:
        """What `save` writes, for JSON; arrays are texts (base64)."""
        return saving.as_dict(self._parts())

    @classmethod
    def from_dict(cls, saved: Any, learner: Any, *, backend: str | None = None) -> Agent:
        """The agent that `to_dict` wrote down; see `load`."""
        return cls._of(saving.from_dict(saved), learner, backend)

    def _parts(self) -> saving.Parts:
        with self._lock:
            return saving.parts_of(self._mind, self._settings, self._tickets, self._machine.state)

    @classmethod
    def _of(cls, parts: saving.Parts, learner: Any, backend: str | None) -> Agent:
        agent = cls.__new__(cls)
        agent._set_up(checks.learner("learner", learner), saving.settings_of(parts), backend)
        agent._machine.state = saving.state_of(parts, agent._mind)
        agent._tickets = saving.tickets_of(parts, agent._mind, agent._settings)
        return agent

    def __reduce__(self) -> Any:
        raise TypeError("an Agent is not pickled: use save(path) and Agent.load(path, learner)")


def _listed(labels: tuple[Any, ...], most: int = 8) -> str:
    more = f", and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(str(label) for label in labels[:most]) + more
