"""Thompson sampling on the patients of a trial, in plain NumPy: with the state, and without it.

    python tests/data/trial_by_hand.py actg175.csv

In each round a patient gets a drug, shows a state as often as patients of the trial who got that
drug, and has an event as often as they had; an event is known when it comes, and that there is none
after a window. In one world events depend on the state alone, as learners with states suppose; in
the other also on the drug, as in the trial. Nothing here is of jaxbio.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import pandas as pd


class World(NamedTuple):
    """shares [K, S]: of states, by drug. rates [K, S]: of events. days: of each state, a thousand
    days after which events come, all as likely.
    """

    shares: np.ndarray
    rates: np.ndarray
    days: np.ndarray

    @property
    def cost(self) -> np.ndarray:
        """[K]"""
        return (self.shares * self.rates).sum(axis=1)


def curve(days: np.ndarray, event: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Days of events, and the share that has had one by then: one minus Kaplan-Meier."""
    at = np.unique(days[event])
    risk = np.array([(days >= day).sum() for day in at])
    now = np.array([(event & (days == day)).sum() for day in at])
    return at, 1 - np.cumprod(1 - now / risk)


def came(days: np.ndarray, event: np.ndarray) -> float:
    """The share that has had an event by the end."""
    return float(curve(days, event)[1][-1])


def worlds(
    drug: np.ndarray, state: np.ndarray, days: np.ndarray, event: np.ndarray
) -> dict[str, World]:
    """drug, state: codes [rows]. days: until the event, or the end of the follow-up [rows]."""
    kinds, states = range(drug.max() + 1), range(state.max() + 1)
    shares = np.array([[(state[drug == k] == s).mean() for s in states] for k in kinds])

    def rate(rows: np.ndarray) -> float:
        return came(days[rows], event[rows])

    def quantiles(rows: np.ndarray) -> np.ndarray:
        at, share = curve(days[rows], event[rows])
        return at[np.searchsorted(share, share[-1] * (np.arange(1000) + 0.5) / 1000)]

    by_state = np.array([rate(state == s) for s in states])
    by_both = np.array([[rate((drug == k) & (state == s)) for s in states] for k in kinds])
    late = np.array([quantiles(state == s) for s in states])
    return {
        "events depend on the state alone": World(shares, np.tile(by_state, (len(kinds), 1)), late),
        "events depend on the drug, too": World(shares, by_both, late),
    }


def play(
    world: World, rounds: int, window: int, runs: int, seed: int, *, with_states: bool
) -> np.ndarray:
    """Regret [runs] of Thompson sampling; mean losses have uniform priors."""
    generator, every = np.random.default_rng(seed), np.arange(runs)
    kinds, states = world.shares.shape
    cuts, cost = world.shares.cumsum(axis=1), world.cost
    shown = np.full((runs, kinds, states), 1 / states)  # Dirichlet, as StateThompson has it
    known = np.ones((2, runs, states if with_states else kinds))  # without and with an event
    ring = np.zeros((window + 1, *known.shape))
    regret = np.zeros(runs)
    for now in range(rounds):
        drawn = generator.beta(known[1], known[0])
        if with_states:
            mapping = generator.standard_gamma(shown)
            drawn = np.einsum("rks,rs->rk", mapping / mapping.sum(axis=2, keepdims=True), drawn)
        drug = drawn.argmin(axis=1)
        state = (generator.random(runs)[:, None] > cuts[drug]).sum(axis=1).clip(max=states - 1)
        event = generator.random(runs) < world.rates[drug, state]
        day = world.days[state, generator.integers(1000, size=runs)]
        seen = event & (day <= window)
        due = (now + np.where(seen, day, window)) % (window + 1)
        ring[due, seen.astype(int), every, state if with_states else drug] += 1
        shown[every, drug, state] += 1
        known += ring[now % (window + 1)]
        ring[now % (window + 1)] = 0
        regret += cost[drug] - cost.min()
    return regret


def main() -> None:
    table = pd.read_csv(sys.argv[1])
    drug, names = pd.factorize(table.drug, sort=True)
    state = np.searchsorted(table.change.quantile([0.2, 0.4, 0.6, 0.8]), table.change, "right")
    found = worlds(drug, state, table.days.to_numpy(), table.cens.to_numpy() == 1)
    for title, world in found.items():
        print(
            title, {name: round(float(one), 3) for name, one in zip(names, world.cost, strict=True)}
        )
        print(f"  at random: {5000 * (world.cost.mean() - world.cost.min()):.0f}")
        for with_states in (False, True):
            regret = play(world, 5000, 987, 400, 0, with_states=with_states)
            spread = 1.96 * regret.std() / np.sqrt(len(regret))
            print(f"  {'with' if with_states else 'without'} states: {regret.mean():.1f} "
                  f"({regret.mean() - spread:.1f} to {regret.mean() + spread:.1f})")  # fmt: skip


if __name__ == "__main__":
    main()
