"""States whose outcomes take equally long, as far as a log can tell."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import stats

from jaxbio.data.log import Log
from jaxbio.data.survival import Curve, curve
from jaxbio.data.waits import Waits, ages

ENOUGH = 50  # outcomes of a state that may have delays of its own
PARTS = 5  # of delays, with as many outcomes each
LEAST = 5.0  # outcomes that are to be expected in a part
SURELY = 0.01


class Group(NamedTuple):
    """states: those that share their delays. source: those whose rows tell of them."""

    states: np.ndarray
    source: np.ndarray


def groups(log: Log, waits: list[Waits]) -> list[Group]:
    """One group, unless a chi-squared test finds at 1 % that delays differ between states: then
    states with 50 outcomes or more have delays of their own. Those of the others are told by the
    rows of all of these, or, where they too have fewer than 50 outcomes, by all rows.
    """
    every = np.arange(log.num_states)
    own = _differing(log, waits)
    if not own.any():
        return [Group(every, every)]
    rest = every[~own]
    enough = sum(len(waits[s].came) for s in rest) >= ENOUGH
    others = [Group(rest, rest if enough else every)] if rest.size else []
    return [*(Group(every[s : s + 1], every[s : s + 1]) for s in every[own]), *others]


def _differing(log: Log, waits: list[Waits]) -> np.ndarray:
    """bool [S]: states with delays of their own.

    Of every state the outcomes in five parts of delays are held against what is to be expected if
    all states had the same delays. That follows from the ages of its rows, as a young row cannot
    have had a late outcome yet, and from how many outcomes the state has in all: how many come is
    another matter than when.
    """
    every = joined(waits)
    common = curve(every.came, every.waiting)
    seen = common.came_by(common.at)
    edges = np.unique(common.at[np.searchsorted(seen, np.arange(1, PARTS) / PARTS)])
    edges = edges[edges < common.at[-1]]
    if not edges.size:
        return np.zeros(len(waits), bool)
    found = np.stack([np.bincount(np.searchsorted(edges, one.came), minlength=len(edges) + 1)
                      for one in waits])  # fmt: skip
    count = found.sum(axis=1, keepdims=True)
    room = _room(log, common, edges)
    expected = count * room / room.sum(axis=1, keepdims=True)
    enough = (count[:, 0] >= ENOUGH) & (expected.min(axis=1) >= LEAST)
    freedom = (enough.sum() - 1) * len(edges)
    if freedom < 1:
        return np.zeros(len(waits), bool)
    far = ((found - expected)[enough] ** 2 / expected[enough]).sum()
    return enough & (stats.chi2.sf(far, freedom) < SURELY)


def _room(log: Log, common: Curve, edges: np.ndarray) -> np.ndarray:
    """float64 [S, parts]: how many outcomes each state would have if one came of every row."""
    grown = common.came_by(ages(log))
    ends = [0.0, *common.came_by(edges), 1.0]
    parts = [np.bincount(log.state, np.clip(grown, low, high) - low, log.num_states)
             for low, high in pairwise(ends)]  # fmt: skip
    return np.maximum(np.stack(parts, axis=1), 1e-300)


def joined(waits: list[Waits]) -> Waits:
    """Of all states together."""
    return Waits(*map(np.concatenate, zip(*waits, strict=True)))
