"""What a learner is shown of rounds and losses, in which order, and what tickets are refused."""

from __future__ import annotations

import threading
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from served import ACTIONS, STATES, rounds

import jaxbio as jb
from jaxbio.serving import lanes

KEPT = 8  # rounds that a witness remembers


@jb.pytree
class Witness:
    """Plays in turn, and writes down what it is shown at the end of each of the last rounds."""

    def init(self, known: jb.Known) -> Any:
        none = jnp.zeros(KEPT, jnp.int32)
        names = ("action", "state", "own", "older", "rounds", "losses", "sorted", "lanes")
        return dict.fromkeys(names, none) | {"known": known}

    def act(self, state: Any, t: Any, u: Any) -> Any:
        return t % state["known"].num_actions, t

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        due, old = arrivals.due[:-1], arrivals.play
        older = jnp.where(due, old.ticket[:-1], 0)
        percent = jnp.where(due, jnp.round(100 * old.loss[:-1]), 0).astype(jnp.int32)
        pairs = due[1:] & (older[1:] <= older[:-1])
        seen = {
            "action": play.action,
            "state": play.state,
            "own": jnp.where(arrivals.due[-1], jnp.round(100 * play.loss), -1).astype(jnp.int32),
            "older": jnp.sum(due, dtype=jnp.int32),
            "rounds": jnp.sum(older, dtype=jnp.int32),
            "losses": jnp.sum(percent, dtype=jnp.int32),
            "sorted": (~jnp.any(pairs)).astype(jnp.int32),
            "lanes": jnp.int32(len(due)),
        }
        put = {
            n: lax.dynamic_update_index_in_dim(state[n], x, t % KEPT, 0) for n, x in seen.items()
        }
        return put | {"known": state["known"]}, t  # the ticket that is filed: the round

    def facts(self, state: Any) -> Any:
        return {name: value for name, value in state.items() if name != "known"}


def witness(**options: Any) -> jb.Agent:
    return jb.Agent(Witness(), ACTIONS, STATES, 1000, **options)


def shown(one: jb.Agent, t: int) -> dict[str, int]:
    """What the witness saw at the end of round t."""
    return {name: value[t % KEPT] for name, value in one.facts().items()}


def test_a_loss_belongs_to_the_end_of_the_round_before_the_next_decision() -> None:
    one = witness()
    first = one.select()[1]
    one.see(first, "cart")
    second = one.select()[1]
    one.observe(first, 0.25)  # after the second decision, before its state
    one.see(second, "bounced")
    third = one.select()[1]
    one.see(third, "cart")
    one.observe(third, 0.5)  # at once
    one.observe(second, 0.75)
    one.select()
    a, b, c = (shown(one, t) for t in (1, 2, 3))
    assert (a["state"], a["own"], a["older"]) == (1, -1, 0)
    assert (b["state"], b["own"], b["older"], b["rounds"], b["losses"]) == (0, -1, 1, 1, 25)
    assert (c["state"], c["own"], c["older"], c["rounds"], c["losses"]) == (1, 50, 1, 2, 75)
    assert [x["action"] for x in (a, b, c)] == [1, 2, 0]


def test_a_loss_may_be_known_before_its_state() -> None:
    one = witness()
    ticket = one.select()[1]
    one.observe(ticket, 0.25)
    one.see(ticket, "cart")
    one.select()
    assert (shown(one, 1)["own"], one.outstanding) == (25, ())


def test_rounds_are_numbered_as_their_states_are_seen() -> None:
    one = witness(concurrent=True)
    (_, a), (_, b), (_, c) = (one.select() for _ in range(3))
    assert one.open == (a, b, c) == (1, 2, 3)
    one.see(b, "cart")  # round 1
    one.observe(a, 1)
    one.see(c, "bounced")  # round 2
    one.observe(b, 0.25)
    one.see(a, "cart")  # round 3
    one.observe(c, 0.5)
    assert (one.rounds, one.open, one.outstanding) == (3, (), ())
    one.select()
    first, second, third = (shown(one, t) for t in (1, 2, 3))
    assert (first["state"], first["older"]) == (1, 0)
    assert (second["state"], second["rounds"], second["losses"]) == (0, 1, 25)
    assert (third["state"], third["own"], third["rounds"]) == (1, 100, 2)
    assert {x["action"] for x in (first, second, third)} == {1}  # all decided for round 1


def test_a_decision_waits_for_the_state_of_the_last_one() -> None:
    one = witness()
    ticket = one.select()[1]
    with pytest.raises(jb.TicketError, match=r"ticket 1 was not seen: call see\(1, state\) before"):
        one.select()
    one.give_up(ticket)
    action, ticket = one.select()
    assert (action, ticket, one.rounds) == ("bundle", 2, 0)  # again for round 1


@pytest.mark.parametrize(("losses", "expected"), [(1, 1), (2, 8), (8, 8), (9, 64), (70, 512)])
def test_any_number_of_losses_comes_between_two_decisions(losses: int, expected: int) -> None:
    one = witness()
    tickets = rounds(one, losses)
    last = one.select()[1]
    for ticket in np.random.default_rng(losses).permutation(tickets):
        one.observe(ticket, 0.01)
    one.see(last, "cart")
    one.select()
    found = shown(one, losses + 1)
    assert (found["older"], found["losses"], found["sorted"]) == (losses, losses, 1)
    assert found["rounds"] == losses * (losses + 1) // 2
    assert found["lanes"] == expected


def test_what_is_too_much_for_one_round_waits_for_the_next() -> None:
    more = lanes.MOST + 5
    one = witness()
    with pytest.warns(RuntimeWarning, match="round 1,000 is over"):
        tickets = rounds(one, more)
    for ticket in reversed(tickets):
        one.observe(ticket, 0)
    assert one.outstanding == ()
    rounds(one, 3)
    assert shown(one, more)["older"] == lanes.MOST  # and the loss of its own round
    assert (shown(one, more + 1)["older"], shown(one, more + 1)["sorted"]) == (4, 1)
    assert shown(one, more + 2)["older"] == 0


def test_rounds_are_forgotten_when_their_losses_are_too_late() -> None:
    one = witness(longest=2)
    rounds(one, 4)
    one.observe(2, 0.5)  # two rounds later
    one.select()
    assert shown(one, 4)["rounds"] == 2
    assert one.outstanding == (3, 4)
    with pytest.raises(jb.TicketError, match=r"ticket 1 is closed: .* more than longest=2 rounds"):
        one.observe(1, 0.5)


def test_what_is_given_up_is_not_expected() -> None:
    one = witness()
    tickets = rounds(one, 2)
    one.give_up(tickets[1])  # before the learner has learned from it
    assert one.outstanding == (tickets[0],)
    one.give_up(tickets[0])
    third = one.select()[1]
    assert (one.open, one.outstanding, one.rounds) == ((third,), (), 2)
    for ticket in tickets:
        with pytest.raises(jb.TicketError, match=f"ticket {ticket} is closed: its loss was obs"):
            one.observe(ticket, 0.5)
        with pytest.raises(jb.TicketError, match="is closed"):
            one.give_up(ticket)


def test_tickets_are_refused_that_cannot_be() -> None:
    one = witness()
    with pytest.raises(jb.TicketError, match=r"ticket 1 is unknown: .* handed out none so far"):
        one.see(1, "cart")
    ticket = one.select()[1]
    with pytest.raises(jb.TicketError, match=r"ticket 7 is unknown: .* handed out 1 to 1"):
        one.observe(7, 0.5)
    one.observe(ticket, 0.5)
    with pytest.raises(jb.TicketError, match="the loss of ticket 1 was observed already"):
        one.observe(ticket, 0.5)
    one.see(ticket, "cart")
    with pytest.raises(jb.TicketError, match="the state of ticket 1 was seen already"):
        one.see(ticket, "cart")
    with pytest.raises(jb.TicketError, match="ticket 1 is closed"):
        one.observe(ticket, 0.5)
    one.select()
    with pytest.raises(jb.TicketError, match="ticket 1 is closed"):
        one.see(ticket, "cart")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda one: one.see(1, "looked"), ValueError, "state must be one of 'bounced', 'cart', b"),
        (lambda one: one.see(1, ["cart"]), ValueError, "state must be one of 'bounced', 'cart', b"),
        (lambda one: one.observe(1, 1.5), ValueError, r"loss must be in \[0, 1\], but got 1.5"),
        (lambda one: one.observe(1, float("nan")), ValueError, r"loss must be in \[0, 1\], but"),
        (lambda one: one.observe(1, None), TypeError, "loss must be a number, but got None"),
        (lambda one: one.observe("1", 0.5), TypeError, "ticket must be an integer, but got '1'"),
        (lambda one: one.give_up(1.5), ValueError, "ticket must be an integer, but got 1.5"),
        (lambda one: one.prepare(0), ValueError, "losses must be at least 1, but got 0"),
    ],
)
def test_what_cannot_be_meant_changes_nothing(call: Any, error: Any, message: str) -> None:
    one = witness()
    one.select()
    with pytest.raises(error, match=message):
        call(one)
    one.observe(1, 0.5)
    one.see(1, "cart")


def make(**options: Any) -> jb.Agent:
    given = {"learner": jb.UCB1(), "actions": ACTIONS, "states": STATES, "horizon": 10} | options
    return jb.Agent(given.pop("learner"), **given)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"learner": jb.UCB1}, TypeError, "learner must be a learner, but got the class UCB1"),
        ({"actions": 3}, TypeError, "actions must be a list of labels, but got 3"),
        ({"actions": ["a"]}, ValueError, r"actions must be at least 2 labels, but got \['a'\]"),
        ({"actions": ["a", "b", "a"]}, ValueError, "actions must be different .* 'a' is there tw"),
        ({"actions": ["a", 0.5]}, TypeError, "actions must be labels that are texts, .*0.5"),
        ({"actions": [True, 1]}, ValueError, "actions must be different labels, but 1 is there t"),
        ({"states": []}, ValueError, "states must be at least 1 labels"),
        ({"horizon": 0}, ValueError, "horizon must be at least 1|horizon must be in"),
        ({"delay": -1}, ValueError, "delay must be in"),
        ({"delay": 5, "longest": 4}, ValueError, "longest must be at least delay=5, but got 4"),
        ({"concurrent": 1}, TypeError, "concurrent must be True or False, but got 1"),
        ({"seed": -1}, ValueError, "seed must be in"),
        ({"run": "a"}, TypeError, "run must be an integer, but got 'a'"),
        ({"backend": "vmap"}, ValueError, "backend must be one of 'llvm', 'jit', but got 'vmap'"),
        ({"learner": jb.KnownLosses(jb.UCB1(), [0.5])}, ValueError, "theta must have shape"),
        ({"learner": jb.BOLD(jb.UCB1())}, ValueError, "longest must be given: BOLD keeps"),
        ({"learner": jb.make_learner("metabio-skipping")}, ValueError, "longest must be given: M"),
    ],
)
def test_settings_are_checked(options: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make(**options)


def test_a_delay_is_enough_where_a_learner_needs_one() -> None:
    learner = jb.MetaBIO(jb.UCB1(), threshold="delay")
    with pytest.raises(ValueError, match="threshold='delay' needs a fixed delay"):
        make(learner=learner)
    make(learner=learner, delay=3)


def test_a_learner_that_runs_out_of_copies_says_so() -> None:
    one = make(learner=jb.BOLD(jb.UCB1(), copies=2))
    rounds(one, 2)
    with pytest.raises(RuntimeError, match="BOLD does where it has too few copies"):
        one.select()
    one.observe(1, 0.5)
    one.observe(2, 0.5)
    with pytest.raises(RuntimeError, match="BOLD does"):  # round 2 ended without them
        one.select()


@jb.pytree
class Counting(jb.DAdaExp3):
    """Says how many rounds it takes for outstanding ones."""

    ignores_empty_lanes = True

    def facts(self, state: Any) -> Any:
        return {"active": state.skipped.active}


def test_rounds_on_their_way_are_counted_in_whatever_order_they_end() -> None:
    """Rounds are filed under the number that they end with. If it were that of their decision, old
    rounds would be taken for outstanding ones when they are skipped: the count falls below 0.
    """
    one = make(learner=Counting(skipping=True), horizon=1000, longest=50, concurrent=True)
    for _ in range(100):
        tickets = [one.select()[1] for _ in range(3)]
        for ticket in reversed(tickets):
            one.see(ticket, "cart")
        one.give_up(one.select()[1])  # a decision, before which it learns
        for ticket in tickets:
            one.observe(ticket, 0.5)
        assert one.facts()["active"] in range(4)


def test_threads_share_an_agent() -> None:
    one = jb.Agent(jb.make_learner("exp3"), ACTIONS, STATES, 10_000, concurrent=True)

    def visitors() -> None:
        for _ in range(300):
            action, ticket = one.select()
            one.see(ticket, STATES[action == "autumn"])
            one.observe(ticket, 0.5)

    threads = [threading.Thread(target=visitors) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (one.decisions, one.rounds, one.open, one.outstanding) == (1200, 1200, (), ())
