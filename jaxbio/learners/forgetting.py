"""Forgetting losses: each counts less with every round since its play."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbio import checks
from jaxbio.core import Array
from jaxbio.ops import Sum, sum_add, sum_by, sum_zero
from jaxbio.trees import float_dtype, is_concrete

FORGOTTEN = 1e-30  # what all losses of an action count together; below it there are none


class Faded(NamedTuple):
    """Losses of n things, with weights. count, total: Sum [n], of the weights, and of the losses
    times their weights. rounds: Sum [], how many count, the next one included: t without a
    discount. log: float [], of the discount.
    """

    count: Sum
    total: Sum
    rounds: Sum
    log: Array


def checked_discount(value: Any, name: str = "discount") -> Any:
    """A number in (0, 1]; None for 1, where programs need not know how to forget."""
    if value is None:
        return None
    checks.number(name, value, 0, 1, open_low=True)
    found = checks.parameter(name, value, 0)
    return None if is_concrete(found) and found == 1 else found


def faded_zero(size: int, discount: Any) -> Faded:
    """Before the first round."""
    one = sum_zero()._replace(total=jnp.ones((), float_dtype()))
    log = jnp.log(jnp.asarray(discount, float_dtype()))
    return Faded(sum_zero(size), sum_zero(size), one, log)


def faded_add(
    faded: Faded, discount: Any, t: Array, played: Array, index: Array, values: Array, due: Array
) -> Faded:
    """The end of round t: everything fades, and what is due is taken in with its weight, that of a
    loss that was there from the start, discount ** (t - played).

    played: int32 [lanes], the rounds of the plays; index: int32 [lanes], which of the n things a
    loss belongs to; values: [lanes], of the losses; due: bool [lanes].
    """
    ages, size = (t - played).astype(faded.log.dtype), faded.count.total.shape[0]
    weight = jnp.where(due, jnp.exp(ages * faded.log), 0)
    return Faded(
        _fade(faded.count, discount, sum_by(index, weight, size)),
        _fade(faded.total, discount, sum_by(index, weight * values, size)),
        _fade(faded.rounds, discount, jnp.ones((), faded.log.dtype)),
        faded.log,
    )


def ones_and_zeros(faded: Faded) -> tuple[Array, Array]:
    """[n] each: the weights of losses of 1 and of 0, in between as much of both."""
    ones = jnp.maximum(faded.total.total, 0)
    return ones, jnp.maximum(faded.count.total - ones, 0)


def _fade(total: Sum, discount: Any, amount: Array) -> Sum:
    """discount * total + amount. As a sum that loses 1 - discount of itself: a product would be
    rounded in every round, which adds up to a share of 3e-8 / (1 - discount).
    """
    return sum_add(total, amount - (1.0 - discount) * total.total)
