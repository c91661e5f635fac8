"""The statements that `check_guarantees` tests: a bound, and the learner that it supposes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxbio import theory
from jaxbio.learners.exp3 import DAdaExp3
from jaxbio.learners.hindsight import HindsightExp3
from jaxbio.learners.registry import make_learner


@dataclass(frozen=True)
class Guarantee:
    """A bound on the regret R_T that holds with probability 1 - delta.

    learner: as the theorem supposes it, or a function of delta that makes it. bound: a function of
    horizon, num_actions, num_states, delays and delta. certified: does the bound follow from a
    proof without gaps? Else it is a sanity check: whether a round waits depends on its action,
    which the proof does not allow for (`theory.metabio_bound`). less: a fact of the runs that is
    taken from R_T first, as the bound is on the rest.
    """

    name: str
    learner: Any
    bound: Callable[..., theory.Bound]
    certified: bool
    less: str | None = None


@dataclass(frozen=True)
class Expectation:
    """A bound on the mean of R_T. Fields as in `Guarantee`, without a delta."""

    name: str
    learner: Any
    bound: Callable[..., theory.Bound]


def dada_bound(tuning: str) -> Callable[..., theory.Bound]:
    """With d_max in its lower-order term: with sigma_max, as the paper has it, the bound is not
    certified (`theory.dada_bound`). Actions and delays stay under one root, which is smaller, and
    the same for all tunings.
    """

    def bound(*, num_states: int, **given: Any) -> theory.Bound:
        options: Any = {"regret": "pseudo", "lower_order": "d_max", "split": False}
        return theory.dada_bound(tuning=tuning, **options, **given)

    return bound


def hindsight_bound(*, num_states: int, delays: Any, **given: Any) -> theory.Bound:
    """Of neither states nor delays: these are in the error of prices."""
    return theory.hindsight_bound(**given)


def expected_bound(learner: str) -> Callable[..., theory.Bound]:
    return lambda **given: theory.expected_bound(learner=learner, **given)


HINDSIGHT = "HindsightExp3 - E_T"
GUARANTEES = (
    # The bound on R_T takes delta' = delta / 3, and a learner's own is half its confidence.
    Guarantee("DAda-Exp3", lambda delta: DAdaExp3(2 * delta / 3), dada_bound("corrected"), True),
    Guarantee("DAda-Exp3, anytime", DAdaExp3(tuning="anytime"), dada_bound("anytime"), True),
    Guarantee(
        "MetaBIO", lambda delta: make_learner("metabio", delta=delta), theory.metabio_bound, False
    ),
    Guarantee(
        "MetaAdaBIO",
        lambda delta: make_learner("metaadabio", delta=delta, at_switch="fresh"),
        theory.metaadabio_bound,
        False,
    ),
    Guarantee(
        HINDSIGHT,
        lambda delta: HindsightExp3(2 * delta / 3),
        hindsight_bound,
        True,
        less="price_error",
    ),
)
EXPECTATIONS = (
    Expectation("Tsallis-INF", make_learner("tsallis-inf"), expected_bound("tsallis-inf")),
    Expectation("MetaBIO, Tsallis-INF", make_learner("metabio-tsallis"), expected_bound("metabio")),
    Expectation(
        "MetaAdaBIO, Tsallis-INF",
        make_learner("metaadabio-tsallis", at_switch="fresh"),
        expected_bound("metaadabio"),
    ),
)
