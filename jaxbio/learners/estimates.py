"""Mean losses of states from what has arrived: the estimates that MetaBIO feeds to its base."""

from __future__ import annotations

import jax.numpy as jnp

from jaxbio.core import Array, Known, float_dtype, pytree, static
from jaxbio.ops import Means, Sum, means_add, means_value, one_hot, select

ESTIMATORS = ("lcb", "mean")
RADII = ("horizon", "anytime")
ORDERINGS = ("together", "sequential")
ANYTIME = 6.58  # 4 times sum 1/m^2, so that the failures over all m still sum to delta / 2


@pytree
class Estimator:
    """theta-tilde: the plain mean, or a lower confidence bound max(0, mean - radius).

    log_term: ln(4 S T / delta) ("horizon") or ln(6.58 S / delta) ("anytime": 2 ln N' is added).
    """

    log_term: Array
    radius_scale: Array
    kind: str = static(default="lcb")
    radius: str = static(default="horizon")
    ordering: str = static(default="together")

    def value(self, means: Means) -> Array:
        """[n]: the estimates, 0 where nothing has been seen."""
        mean = means_value(means)
        if self.kind == "mean":
            return mean
        lower = jnp.maximum(0.0, mean - self.reach(means.count))
        return jnp.where(means.count > 0, lower, 0.0)

    def reach(self, count: Array) -> Array:
        """[n]: how far the mean of `count` [n] losses may lie from the truth, epsilon / 2."""
        number = jnp.maximum(count, 1).astype(self.log_term.dtype)
        log_term = self.log_term
        if self.radius == "anytime":
            log_term = log_term + 2.0 * jnp.log(number)
        return self.radius_scale * jnp.sqrt(log_term / (2.0 * number))

    def lanes(
        self, before: Means, after: Means, state: Array, loss: Array, arrived: Array, waited: Array
    ) -> Array:
        """[M + 1]: estimates for the states of the lanes.

        before, after: what had arrived before this round and at its end. state, loss: [M + 1];
        arrived: bool [M + 1], lanes that enter; waited: bool [M + 1], of them those fed with an
        estimate now. "together": every estimate uses all that has arrived by now. "sequential"
        (the order of the analysis, L'): first the losses whose round was fed before, then lane by
        lane, each estimate with its own loss and those of earlier lanes.
        """
        if self.ordering == "together":
            return _by_state(self.value(after), state)
        means = means_add(before, state, loss, arrived & ~waited)
        values = []
        for lane in range(state.shape[0]):
            own = arrived[lane : lane + 1] & waited[lane : lane + 1]
            means = means_add(means, state[lane : lane + 1], loss[lane : lane + 1], own)
            here = Means(
                select(means.count, state[lane])[None],
                Sum(select(means.sum.total, state[lane])[None], jnp.zeros(1, loss.dtype)),
            )
            values.append(self.value(here))
        return jnp.concatenate(values)


def _by_state(values: Array, state: Array) -> Array:
    """values [S] looked up at state [lanes]."""
    mask = one_hot(state, values.shape[0])
    masked = jnp.where(mask, values[:, None], jnp.zeros((), values.dtype))
    return jnp.sum(masked, axis=0, dtype=values.dtype)


def estimator(
    known: Known,
    horizon: Array,
    delta: Array,
    radius_scale: Array,
    kind: str,
    radius: str,
    ordering: str,
) -> Estimator:
    """An estimator whose bounds fail with probability delta / 2 over `horizon` rounds."""
    dtype = float_dtype()
    states = known.num_states.astype(dtype)
    if radius == "horizon":
        log_term = jnp.log(4.0 * states * horizon.astype(dtype) / delta)
    else:
        log_term = jnp.log(ANYTIME * states / delta)
    scale = jnp.asarray(radius_scale, dtype)
    return Estimator(jnp.asarray(log_term, dtype), scale, kind, radius, ordering)
