"""The words of the package: plays, arrivals, what a learner knows, and the protocols of the parts.

A round: the learner acts, the environment answers with a state, the loss goes into the ring and
comes back as an arrival when its delay is over. Everything is written for ONE run.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio.trees import float_dtype, pytree, static

Array = jax.Array
Ticket = Any
State = Any


class Play(NamedTuple):
    """What a round leaves in the ring.

    action, state: int32 []; loss: float []; ticket: what the learner attached to the play.
    """

    action: Array
    state: Array
    loss: Array
    ticket: Ticket


class Arrivals(NamedTuple):
    """The lanes of a round: leaves [M + 1], M older rounds in order of play, then the round itself.

    due: bool [M + 1]; a lane that is not due holds no information: zeros, unless the learner says
    that it ignores such lanes. M is the most losses of older rounds that can arrive in one round of
    the problem (`ring_sizes`), whatever else is played beside this run.
    """

    play: Play
    due: Array


@pytree
class Known:
    """What a learner is told beforehand.

    num_states (S) and horizon (T) are numbers for formulas; delay is the fixed delay, or -1 where
    delays vary. num_actions (K) and state_slots (the padded S) set shapes; ring_depth is larger
    than the age of any loss that can still arrive, so it sizes whatever a learner keeps per
    outstanding round.
    """

    num_states: Array
    horizon: Array
    delay: Array
    num_actions: int = static()
    state_slots: int = static()
    ring_depth: int = static()


class Learner(Protocol):
    """One protocol for a base bandit, a wrapper around one, and a learner that uses states.

    A learner may also have `draws` (an int, or a function of K: how many uniforms it wants per
    round; if absent or 1, `act` gets one scalar, else an array [draws]), `facts(state) -> dict`
    (scalars for the run's `info`), `check(env)` (raise where the environment does not suit it) and
    `padded(slots)` (the same learner, where it has arrays over states as fields, in arrays of that
    length, so that a sweep over numbers of states is one program). A class that says
    `ignores_empty_lanes = True` promises that `learn` gives the same whatever the number of lanes
    that are not due, and whatever is in them but a loss; rounds in which little arrives then cost
    less.
    """

    def init(self, known: Known) -> State: ...

    def act(self, state: State, t: Array, u: Array) -> tuple[Array, Ticket]:
        """Choose the action of round t from u; the ticket comes back with the loss."""
        ...

    def learn(self, state: State, t: Array, play: Play, arrivals: Arrivals) -> tuple[State, Ticket]:
        """End of round t: take what is due; the returned ticket is filed with round t's play."""
        ...


def draws_of(learner: Any, num_actions: int) -> Any:
    """How many uniforms a learner wants per round."""
    draws = getattr(learner, "draws", None)
    if draws is None:
        return 1
    found = draws(num_actions) if callable(draws) else draws
    if not isinstance(found, int | np.integer) or found < 1:
        raise TypeError(
            f"draws of {type(learner).__name__} must be an integer of at least 1, but got {found!r}"
        )
    return int(found)


def facts_of(learner: Any, state: State) -> dict[str, Any]:
    """What a learner has to say about its run."""
    return learner.facts(state) if hasattr(learner, "facts") else {}


def ignores_empty_lanes(learner: Any) -> bool:
    """May `learn` be shown any number of lanes that are not due, with anything in them but a loss?

    The class itself must say so (`ignores_empty_lanes = True`), not one that it inherits from,
    whose `learn` may be another; and so must the class of every learner in its fields. Only
    dataclasses (`pytree` makes them) can say so: the fields of others are not known.
    """
    says_so = vars(type(learner)).get("ignores_empty_lanes")
    if not says_so or not dataclasses.is_dataclass(learner):
        return False
    fields = [getattr(learner, field.name) for field in dataclasses.fields(learner)]
    inner = jax.tree.leaves(fields, is_leaf=_is_learner)
    return all(ignores_empty_lanes(value) for value in inner if _is_learner(value))


def _is_learner(value: Any) -> bool:
    return callable(getattr(value, "learn", None))


def check_learner(learner: Any, env: Any) -> None:
    """Let a learner that has a `check` say whether it can play in this environment."""
    if hasattr(learner, "check"):
        learner.check(env)


def pad_learner(learner: Any, slots: int) -> Any:
    """Let a learner that has a `padded`, or its base, make its arrays over states that long."""
    if hasattr(learner, "padded"):
        return learner.padded(slots)
    base = getattr(learner, "base", None)
    padded = None if base is None else pad_learner(base, slots)
    return learner if padded is base else dataclasses.replace(learner, base=padded)


class Mapping(Protocol):
    """Actions to states."""

    @property
    def num_actions(self) -> int:
        """K."""
        ...

    @property
    def num_states(self) -> int:
        """How many states the arrays hold."""
        ...

    def state(self, t: Array, action: Array, u: Array, num_states: Array) -> Array:
        """s_t(action), from the uniform u of (round, action); below num_states."""
        ...

    def average(self, t: Array, action: Array, values: Array) -> Array:
        """The average of values [S] over the states that the action may show in round t."""
        ...

    def costs(self, theta: Any) -> Any:
        """[E, K]: that average of mean losses theta [S] for every action, in each of E environments
        that take turns; None where it changes from round to round.
        """
        ...

    def in_force(self, rows: Array, t: Array) -> Array:
        """The row of [E, ...] that holds in round t; needed where `costs` is not None."""
        ...

    def totals(self, values: Array, horizon: Array) -> Array:
        """[K]: the average summed over the horizon, up to a factor. values: [S] or [T, S]."""
        ...

    def reached(self) -> int:
        """One more than the last state that can be shown; 0 where that is not known."""
        ...

    def padded(self, slots: int) -> Any:
        """The same mapping in arrays of `slots` states."""
        ...

    def check(self, horizon: int) -> None:
        """Raise where it cannot serve this horizon."""
        ...


class Losses(Protocol):
    """States to losses. A class may say `binary = True`: every loss is 0 or 1."""

    @property
    def num_states(self) -> int:
        """How many states the arrays hold."""
        ...

    def loss(self, key: Array, t: Array, state: Array, u: Array) -> Array:
        """l_t(state), from the round's uniform u or from others of `jaxbio.rng`."""
        ...

    def means(self, t: Array) -> Array:
        """[S]: what the regret counts in round t, means of random losses, others as they are."""
        ...

    def all_means(self) -> Array:
        """`means` of all rounds: [S] where they are the same, else [T, S]."""
        ...

    def padded(self, slots: int) -> Any:
        """The same losses in arrays of `slots` states."""
        ...

    def check(self, horizon: int) -> None:
        """Raise where they cannot serve this horizon."""
        ...


class Delays(Protocol):
    """How long a loss stays away.

    constant: the same for every round; written_down: a table `delays` [T], the same for every run.

    A law that says `looks = True`, neither constant nor written down, looks at the state and the
    loss of the round: in place of `delay` it has `reveal(key, t, state, loss)`, which returns the
    loss that the learner is shown and the delay. What counts as regret is still `loss`. A law that
    looks may also say `binary = True` (losses of 0 and 1 are shown as 0 or 1, which saves memory),
    `num_states` (of how many states it knows the delays), and `together(horizon)`: the most losses
    of older rounds that arrive in one round, as good as surely.
    """

    constant: bool
    written_down: bool

    def delay(self, key: Array, t: Array) -> Array:
        """d_t: int32 [], not negative."""
        ...

    def longest(self) -> int:
        """The longest delay that can occur."""
        ...

    def check(self, horizon: int) -> None:
        """Raise where they cannot serve this horizon."""
        ...


def looks(delays: Any) -> bool:
    """Does this law of delays look at states and losses?"""
    return bool(getattr(delays, "looks", False))


def revealed(delays: Any, key: Array, t: Array, state: Array, loss: Array) -> tuple[Array, Array]:
    """What the learner is shown of the loss of round t, and how late."""
    if looks(delays):
        return delays.reveal(key, t, state, loss)
    return loss, delays.delay(key, t)


@pytree
class Scheduled:
    """A rate multiplier that follows an optax schedule (any function of the round)."""

    schedule: Any = static()


def multiplier(scale: Any, t: Array) -> Array:
    """The value of a rate multiplier in round t."""
    if isinstance(scale, Scheduled):
        return jnp.asarray(scale.schedule(t), float_dtype())
    return jnp.asarray(scale, float_dtype())


def round_number(t: Array) -> Array:
    """t as a float."""
    return t.astype(float_dtype())
