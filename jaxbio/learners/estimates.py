"""Mean losses of states from what has arrived: the estimates that MetaBIO feeds to its base."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxbio.core import Array, Known
from jaxbio.ops import Means, Sum, means_add, means_value, select
from jaxbio.trees import float_dtype, pytree, static

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
        if self.kind == "mean":
            return means_value(means)
        share = self._share(means.count)  # one division serves the mean and its radius
        # Where nothing has been seen the total is 0, so that this is 0 as well.
        return jnp.maximum(0.0, means.sum.total * share - self._reach(share))

    def reach(self, count: Array) -> Array:
        """[n]: how far the mean of `count` [n] losses may lie from the truth, epsilon / 2."""
        return self._reach(self._share(count))

    def _share(self, count: Array) -> Array:
        """[n]: of one loss in a mean of so many."""
        return 1.0 / jnp.maximum(count, 1).astype(self.log_term.dtype)

    def _reach(self, share: Array) -> Array:
        log_term = self.log_term
        if self.radius == "anytime":
            log_term = log_term - 2.0 * jnp.log(share)
        return self.radius_scale * jnp.sqrt(0.5 * log_term * share)

    def _by_state(self, means: Means, state: Array) -> Array:
        """[lanes]: the estimates of the states [lanes]; of every state where these are fewer."""
        if state.shape[0] < means.count.shape[0]:
            look_up = jax.vmap(lambda s: (select(means.count, s), select(means.sum.total, s)))
            counts, totals = look_up(state)
            return self.value(Means(counts, Sum(totals, jnp.zeros_like(totals))))
        values = self.value(means)
        return jax.vmap(lambda s: select(values, s))(state)

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
            return self._by_state(after, state)
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
