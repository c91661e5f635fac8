"""What the proofs rest on, as numbers of a run that must not exceed a limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import theory
from jaxbio.studies.guarantees.theorems import HINDSIGHT

ROUNDING = 1e-6  # of sums of float32, for each round

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


def parts_missed(facts: xr.Dataset, terms: Terms) -> np.ndarray:
    """[runs]: how far the terms of HindsightExp3's regret are from adding up to it."""
    names = ("informed_regret", "price_gap", "exploration", "overestimate", "chance")
    parts = sum(fact(name)(facts, terms) for name in names)
    return np.abs(fact("final_regret")(facts, terms) - parts)


def rounding(terms: Terms) -> float:
    return ROUNDING * terms["horizon"]


def within(value: str, limit: str) -> Callable[[xr.Dataset, Terms], np.ndarray]:
    """One fact as a share of another, which is its limit in the same run, up to rounding."""
    return lambda facts, terms: (
        fact(value)(facts, terms) / (fact(limit)(facts, terms) + rounding(terms))
    )


def price_excess(facts: xr.Dataset, terms: Terms) -> np.ndarray:
    """[runs]: |E_T| as a share of its limit."""
    return np.abs(within("price_error", "price_limit")(facts, terms))


def third(terms: Terms) -> float:
    """ln(3/delta), of an event with a third of delta."""
    return math.log(3 / terms["delta"])


def rates(terms: Terms) -> np.ndarray:
    """[T]: eta_t of HindsightExp3 with confidence 2 delta / 3."""
    actions, t = terms["num_actions"], np.arange(1, terms["horizon"] + 1)
    return np.sqrt((3 * math.log(actions) + third(terms)) / (8 * actions * t))


def most_exploration(terms: Terms) -> float:
    """K sum eta_t + ln(3/delta) / 2."""
    return float(terms["num_actions"] * rates(terms).sum() + third(terms) / 2)


def most_overestimate(terms: Terms) -> float:
    """ln(3/delta) / (2 eta_T)."""
    return float(third(terms) / (2 * rates(terms)[-1]))


def most_chance(terms: Terms) -> float:
    """sqrt(T ln(3/delta) / 2)."""
    return math.sqrt(terms["horizon"] * third(terms) / 2)


def a_third(delta: float) -> float:
    return delta / 3


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
    Lemma("terms add up to the regret", HINDSIGHT, parts_missed, rounding),
    Lemma(
        "weights at true prices",
        HINDSIGHT,
        within("informed_regret", "informed_limit"),
        lambda terms: 1.0,
    ),
    Lemma("exploration", HINDSIGHT, fact("exploration"), most_exploration, a_third),
    Lemma(
        "weighted losses of the best", HINDSIGHT, fact("overestimate"), most_overestimate, a_third
    ),
    Lemma("chance of states", HINDSIGHT, fact("chance"), most_chance, a_third),
    Lemma("prices within their radius", HINDSIGHT, fact("worst_price"), lambda terms: 1.0, a_third),
    Lemma("error of prices", HINDSIGHT, price_excess, lambda terms: 1.0),
)
