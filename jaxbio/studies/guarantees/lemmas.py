"""What the proofs rest on, as numbers of a run that must not exceed a limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import theory

Terms = dict[str, Any]  # horizon, num_actions, num_states, delays and delta, as theory takes them


@dataclass(frozen=True)
class Lemma:
    """value <= limit: in every run, or in all but a share of them.

    about: the guarantee whose runs are looked at. value: facts of the runs -> [runs]. allowed:
    delta -> the probability with which it may fail; 0 for what is certain.
    """

    name: str
    about: str
    value: Callable[[xr.Dataset, Terms], np.ndarray]
    limit: Callable[[Terms], float]
    allowed: Callable[[float], float] = lambda delta: 0.0


def fact(name: str) -> Callable[[xr.Dataset, Terms], np.ndarray]:
    return lambda facts, terms: facts[name].values.astype(np.float64)


def most_waits(terms: Terms) -> float:
    """min(2 S sigma_max, T)."""
    return min(2 * terms["num_states"] * theory.sigma_max(terms["delays"]), terms["horizon"])


def phi_delay(terms: Terms) -> float:
    return theory.phi_delay(terms["delays"], num_states=terms["num_states"])


def not_fed(facts: xr.Dataset, terms: Terms) -> np.ndarray:
    """[runs]: rounds that the base was not fed; infinite where it was fed more than there were."""
    left = terms["horizon"] - fact("rounds_fed")(facts, terms)
    return np.where(left < 0, np.inf, left)


def outstanding_at_the_end(terms: Terms) -> float:
    """Losses that arrive after the last round."""
    late = np.arange(1, terms["horizon"] + 1) + terms["delays"] > terms["horizon"]
    return float(late.sum())


def most_errors(terms: Terms) -> float:
    """(4 + 2 sqrt 2) sqrt(S T ln(4 S T / delta))."""
    pairs = terms["num_states"] * terms["horizon"]
    return (4 + 2 * math.sqrt(2)) * math.sqrt(pairs * math.log(4 * pairs / terms["delta"]))


def delay_miscounted(facts: xr.Dataset, terms: Terms) -> np.ndarray:
    return np.abs(fact("total_delay")(facts, terms) - theory.total_delay(terms["delays"]))


def switch_missed(facts: xr.Dataset, terms: Terms) -> np.ndarray:
    """[runs]: how many rounds the switch is away from where the delays put it."""
    game = {name: value for name, value in terms.items() if name != "horizon"}
    return np.abs(fact("switch_round")(facts, terms) - theory.switch_round(**game))


LEMMAS = (
    Lemma("perceived delay <= D_Phi", "MetaBIO", fact("total_perceived_delay"), phi_delay),
    Lemma("waiting rounds <= 2 S sigma_max", "MetaBIO", fact("waiting_rounds"), most_waits),
    Lemma("every round is fed or outstanding", "MetaBIO", not_fed, outstanding_at_the_end),
    Lemma(
        "estimates within their radius",
        "MetaBIO",
        fact("worst_error"),
        lambda terms: 1.0,
        lambda delta: delta / 2,
    ),
    Lemma("sum of errors", "MetaBIO", fact("sum_of_errors"), most_errors),
    Lemma("outstanding counts sum to D_T", "DAda-Exp3", delay_miscounted, lambda terms: 0.0),
    Lemma("switch where the delays put it", "MetaAdaBIO", switch_missed, lambda terms: 0.0),
)
