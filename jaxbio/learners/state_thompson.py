"""Thompson sampling over the losses of states and the mapping to them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbio import checks, rng
from jaxbio.core import Array, Arrivals, Known, Play
from jaxbio.learners.forgetting import (
    Faded,
    checked_discount,
    faded_add,
    faded_zero,
    ones_and_zeros,
)
from jaxbio.ops import (
    Means,
    Sum,
    argmin_fair,
    cell,
    means_add,
    means_zero,
    sum_add,
    sum_scale,
    sum_zero,
)
from jaxbio.trees import pytree, set_field, static

SAMPLERS = ("moments", "exact")
LEAST = -1e30  # below the logarithm of any sample


class StateThompsonState(NamedTuple):
    """visits: Sum [K, S], plays of an action that showed a state, with discounts; seen: arrived
    losses per state, [S], with weights where there is a loss_discount. num_states: S without
    padding.
    """

    visits: Sum
    seen: Means | Faded
    num_states: Array


@pytree
class StateThompson:
    """Thompson sampling that looks at states: sample theta and P, play argmin_a <P(.|a), theta>.

    Thompson sampling on the idea of "impatient" bandits, that a state seen at once stands for a
    loss seen late; the form is jaxbio's own, and the paper proves nothing about it. theta(s) has a
    Beta(1, 1) prior and counts the losses that have arrived, Beta(1 + sum, 1 + n - sum), losses
    strictly between 0 and 1 as such fractions. P(.|a) is Dirichlet(1/S + N(a, .)) with the visits
    N, which are never late. Ties are broken at random. For a mapping that does not change, and
    states whose mean losses do not.

    sampler: "exact" draws P, K S gamma variables a round. "moments" takes a normal variable with
      the mean and the variance that <P, theta> has given theta, one for each action: cheaper, and
      it explores more while visits are few, as it knows nothing of the edges of the simplex.
    discount: what N is multiplied by in each round; below 1 for a mapping that changes.
    loss_discount: the same for the losses of states, each as old as its play; below 1 where what
      states cost changes. None, the same as 1, forgets nothing.
    proposals: of each gamma variable (`rng.gamma`: with 6, each is within 1.6e-8 of its law in
      total variation, and uniforms have 23 bits).
    """

    sampler: str = static(default="moments")
    discount: Any = 1.0
    proposals: int = static(default=6)
    loss_discount: Any = None
    ignores_empty_lanes = True

    def __post_init__(self) -> None:
        checks.choice("sampler", self.sampler, SAMPLERS)
        value = checks.number("discount", self.discount, 0, 1, open_low=True)
        set_field(self, "discount", value)
        set_field(self, "proposals", checks.integer("proposals", self.proposals, 1, 64))
        value = checked_discount(self.loss_discount, "loss_discount")
        set_field(self, "loss_discount", value)

    def init(self, known: Known) -> StateThompsonState:
        K, slots = known.num_actions, known.state_slots
        forgets = self.loss_discount is not None
        seen = faded_zero(slots, self.loss_discount) if forgets else means_zero(slots)
        return StateThompsonState(sum_zero(K, slots), seen, known.num_states)

    def act(self, state: StateThompsonState, t: Array, u: Array) -> tuple[Array, Array | None]:
        K, slots = state.visits.total.shape
        real = lax.iota(jnp.int32, slots) < state.num_states
        prior = jnp.where(real, 1.0 / state.num_states.astype(u.dtype), 0)
        shape = lax.optimization_barrier(prior + state.visits.total)  # [K, S]
        theta = self._thetas(state.seen, t, u, K)
        normals = rng.derived(u, t, jnp.int32(0), K + 1)
        if self.sampler == "moments":
            values = by_moments(shape, theta, normals[:K])
        else:
            values = self._exact(shape, theta, t, u)
        return argmin_fair(values, normals[K]), None if self.loss_discount is None else t

    def learn(
        self, state: StateThompsonState, t: Array, play: Play, arrivals: Arrivals
    ) -> tuple[StateThompsonState, Array | None]:
        here = cell(play.action, play.state, *state.visits.total.shape)
        visits = sum_scale(state.visits, self.discount)
        new = state._replace(
            visits=sum_add(visits, here.astype(visits.total.dtype)),
            seen=self._taken_in(state.seen, t, arrivals.play, arrivals.due),
        )
        return new, play.ticket

    def _taken_in(self, seen: Means | Faded, t: Array, old: Play, due: Array) -> Means | Faded:
        if isinstance(seen, Means):
            return means_add(seen, old.state, old.loss, due)
        return faded_add(seen, self.loss_discount, t, old.ticket, old.state, old.loss, due)

    def _thetas(self, seen: Means | Faded, t: Array, u: Array, num_actions: int) -> Array:
        """[S]: a sample of the mean loss of each state."""
        if isinstance(seen, Means):
            ones = seen.sum.total
            zeros = jnp.maximum(seen.count.astype(u.dtype) - ones, 0)
        else:
            ones, zeros = ones_and_zeros(seen)
        shapes = lax.optimization_barrier(jnp.stack([1.0 + ones, 1.0 + zeros], axis=1))  # [S, 2]

        def draw(one: tuple[Array, Array]) -> Array:
            place, shape = one
            proposals = rng.derived(u, t, place, 4 * self.proposals).reshape(2, self.proposals, 2)
            gammas = rng.gamma(shape, proposals[0], proposals[1])
            return gammas[0] / (gammas[0] + gammas[1])

        return lax.map(draw, (_places(len(ones), num_actions), shapes))

    def _exact(self, shape: Array, theta: Array, t: Array, u: Array) -> Array:
        """[K]: <P, theta> with P(.|a) ~ Dirichlet(shape[a]); shape: [K, S], 0 for padding.

        Of gamma variables in logarithms, relative to the largest one of the action so far: with
        many states all of an action that has not been played may be too small for a float.
        """
        K, slots = shape.shape

        def log_gamma(one: tuple[Array, Array]) -> Array:
            place, shape = one
            drawn = rng.derived(u, t, place, 2 * self.proposals + 1)
            normals, accepts = drawn[: self.proposals], drawn[self.proposals : -1]
            return jnp.where(shape > 0, rng.log_gamma(shape, normals, accepts, drawn[-1]), LEAST)

        def add(now: tuple[Array, Array, Array], one: Any) -> tuple[Any, None]:
            top, mass, value = now
            place, shapes, loss = one
            logs = lax.map(log_gamma, (place + 1 + lax.iota(jnp.int32, K), shapes))
            new = jnp.maximum(top, logs)
            kept, joins = jnp.exp(top - new), jnp.exp(logs - new)
            return (new, mass * kept + joins, value * kept + joins * loss), None

        zero = jnp.zeros(K, theta.dtype)
        start = jnp.full(K, LEAST, theta.dtype), zero, zero
        (_, mass, value), _ = lax.scan(add, start, (_places(slots, K), shape.T, theta))
        return value / mass


def _places(slots: int, num_actions: int) -> Array:
    """int32 [S]: where the uniforms of a state's theta are; those of its cells come next."""
    return 1 + lax.iota(jnp.int32, slots) * (num_actions + 1)


def by_moments(shape: Array, theta: Array, u: Array) -> Array:
    """[K]: normal variables with the mean and variance of <P, theta>, P(.|a) ~ Dirichlet(shape[a]).

    shape: [K, S], its rows sum to 1 + N(a); theta: [S]; u: [K].
    """
    mass = jnp.sum(shape, axis=1)
    share = shape / mass[:, None]
    mean = jnp.sum(share * theta, axis=1)
    spread = jnp.sum(share * (theta - mean[:, None]) ** 2, axis=1)
    normal = lax.erf_inv(2.0 * u - 1.0) * np.sqrt(2.0)
    return mean + jnp.sqrt(spread / (mass + 1.0)) * normal
