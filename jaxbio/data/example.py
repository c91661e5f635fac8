"""A shop's log, made up: visitors get campaigns at random, and some buy, hours or days later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from jaxbio import checks
from jaxbio.checks import memory
from jaxbio.trees import set_field

CAMPAIGNS = ("autumn", "bundle", "discount", "shipping", "voucher")
BUCKETS = ("bounced", "cart", "looked", "searched")
PROBABILITY = (0.3, 0.2, 0.2, 0.15, 0.15)
MAPPING = (  # [K, S]
    (0.62, 0.06, 0.22, 0.10),
    (0.55, 0.06, 0.27, 0.12),
    (0.50, 0.14, 0.24, 0.12),
    (0.58, 0.10, 0.20, 0.12),
    (0.60, 0.07, 0.18, 0.15),
)
BUYING = (0.005, 0.40, 0.03, 0.10)  # [S]
HOURS = (30.0, 4.0, 40.0, 20.0)  # [S]
SPREAD = 1.0
BEGINNING = np.datetime64("2026-03-02T00:00:00.000", "ms")
QUIET, BUSIEST = 0.1, 15.0  # traffic at night as a share of its mean; hour of the day
LONGEST = 36_500  # days
PART = 1_000_000  # rows that are made at a time


@dataclass(frozen=True)
class Shop:
    """The truth behind an example log: what `example_log` draws from.

    A visitor clicks; one of the `campaigns` is shown, chosen at random with `probability` [K],
    whoever the visitor is. What the visitor does next is seen at once: one of the `buckets`, by row
    of `mapping` [K, S]. A visitor of bucket s buys with probability `buying` [S]. A purchase comes
    after a lognormal time with median `hours` [S] and standard deviation `spread` of its logarithm;
    where there is none, nothing ever comes. The log covers `days` days; a purchase after its end is
    not in it. Clicks are a Poisson process whose rate goes up and down with the hour: at 3 in the
    morning it is a tenth of its mean, at 3 in the afternoon 1.9 times its mean.

    drift: from 0 to 1. The mapping moves in a straight line, from `mapping` on the first day
    towards the one in which each campaign has the row of the next; 1 is all the way.
    effect: from 0 to 1. Of campaign i a visitor buys with `buying` times 1 + effect * e[i], where e
    goes in equal steps from -1 for the first campaign to 1 for the last: with any effect but 0 the
    bucket does not tell everything. Probabilities are cut at 1.
    """

    drift: float = 0.0
    effect: float = 0.0
    days: float = 28.0
    campaigns = CAMPAIGNS
    buckets = BUCKETS
    probability = np.array(PROBABILITY)
    mapping = np.array(MAPPING)
    buying = np.array(BUYING)
    hours = np.array(HOURS)
    spread = SPREAD

    def __post_init__(self) -> None:
        set_field(self, "drift", checks.number("drift", self.drift, 0, 1))
        set_field(self, "effect", checks.number("effect", self.effect, 0, 1))
        set_field(self, "days", checks.number("days", self.days, 0, LONGEST, open_low=True))

    def mapping_at(self, share: float) -> np.ndarray:
        """[K, S]: the mapping when this share of the log's time is over."""
        weight = self.drift * share
        return (1 - weight) * self.mapping + weight * np.roll(self.mapping, -1, axis=0)

    @property
    def purchase(self) -> np.ndarray:
        """[K, S]: the probability that a visitor of a campaign and a bucket ever buys."""
        tilt = 1 + self.effect * np.linspace(-1, 1, len(self.campaigns))
        return np.minimum(tilt[:, None] * self.buying, 1.0)


def example_log(
    rows: int = 100_000,
    seed: int = 0,
    *,
    drift: float = 0.0,
    effect: float = 0.0,
    days: float = 28.0,
) -> pd.DataFrame:
    """The log of a made-up shop, as a DataFrame; `jaxbio log example FILE` writes it as CSV.

    Columns: `clicked` (when the decision was made, to the millisecond, in order), `campaign` (the
    action), `probability` (with which it was chosen), `bucket` (what was seen at once), `bought` (1
    or 0) and `bought_at` (when; empty where nothing was bought until the end of the log). `Shop`
    says what is drawn from what, and has the true numbers: `Shop(drift, effect, days)`.

    rows: clicks. seed: the same seed gives the same log. drift: how far the mapping moves. effect:
    how much the campaign matters beyond the bucket. days: of the log.
    """
    parts = list(example_parts(rows, seed, drift=drift, effect=effect, days=days))
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


def example_parts(
    rows: int, seed: int = 0, *, drift: float = 0.0, effect: float = 0.0, days: float = 28.0
) -> Iterator[pd.DataFrame]:
    """The same in parts of a million rows, so that a large one need not fit into memory."""
    rows = checks.integer("rows", rows, 1)
    generator = np.random.default_rng(checks.integer("seed", seed, 0))
    shop = Shop(drift, effect, days)
    memory.refuse_table(f"a log of {rows:,} rows (rows)", rows, "fewer rows")
    clicked = _clicks(generator, rows, shop.days)
    for first in range(0, rows, PART):
        yield _part(generator, shop, clicked[first : first + PART])


def _clicks(generator: np.random.Generator, rows: int, days: float) -> np.ndarray:
    """float64 [rows], increasing: hours since the beginning."""
    hours = np.linspace(0, 24 * days, max(2, int(96 * days)))
    turn = 2 * np.pi / 24
    swing = (1 - QUIET) / turn
    so_far = hours + swing * (
        np.sin(turn * (hours - BUSIEST)) + np.sin(turn * BUSIEST)
    )  # the integral of 1 + (1 - QUIET) cos(turn * (hour - BUSIEST))
    drawn = np.sort(generator.random(rows)) * so_far[-1]
    return np.interp(drawn, so_far, hours)


def _part(generator: np.random.Generator, shop: Shop, hours: np.ndarray) -> pd.DataFrame:
    rows, length = len(hours), 24 * shop.days
    action = _drawn(generator, np.broadcast_to(shop.probability, (rows, len(shop.campaigns))))
    # A row of a mapping that moves in a straight line is a mixture of those at both of its ends.
    moved = generator.random(rows) < hours / length
    ends = np.cumsum([shop.mapping_at(0.0), shop.mapping_at(1.0)], axis=2)
    state = _below(generator, ends[moved.astype(int), action])
    buys = generator.random(rows) < shop.purchase[action, state]
    waited = shop.hours[state] * np.exp(shop.spread * generator.standard_normal(rows))
    buys &= hours + waited <= length
    bought_at = np.full(rows, np.datetime64("NaT", "ms"))
    bought_at[buys] = _as_times(hours[buys] + waited[buys])
    return pd.DataFrame(
        {
            "clicked": _as_times(hours),
            "campaign": pd.Categorical.from_codes(action, list(shop.campaigns)),
            "probability": shop.probability[action],
            "bucket": pd.Categorical.from_codes(state, list(shop.buckets)),
            "bought": buys.astype(np.int8),
            "bought_at": bought_at,
        }
    )


def _drawn(generator: np.random.Generator, probabilities: np.ndarray) -> np.ndarray:
    """int [rows]: one of the columns in each row of [rows, n]."""
    return _below(generator, np.cumsum(probabilities, axis=1))


def _below(generator: np.random.Generator, sums: np.ndarray) -> np.ndarray:
    """int [rows]: where a uniform falls among sums [rows, n] that end at 1."""
    return (generator.random(len(sums))[:, None] >= sums[:, :-1]).sum(axis=1)


def _as_times(hours: np.ndarray) -> np.ndarray:
    return BEGINNING + (hours * 3_600_000).astype(np.int64).astype("timedelta64[ms]")
