"""Do outcomes of different states take differently long?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import stats

from jaxbio.data.survival import Curve

ENOUGH = 50  # outcomes of a state that has delays of its own
PARTS = 5  # of delays, with as many outcomes each
LEAST = 5.0  # outcomes that are expected in a part
SURE = 0.01


def own_delays(
    state: np.ndarray, delay: np.ndarray, come: np.ndarray, age: np.ndarray, common: Curve,
    num_states: int,
) -> np.ndarray:  # fmt: skip
    """bool [S]: which states have delays of their own: all with outcomes enough, if a chi-squared
    test finds at 1 % that their delays differ; otherwise none.

    Of every state the outcomes in each of five parts of delays are held against those to be
    expected if delays were alike: from the ages of its rows, as a young row cannot have had a late
    outcome yet, and from how many outcomes it has in all.

    state, age [rows]: how long ago the decision was made, at the end. delay [rows], where `come`.
    common: the estimate from all rows.
    """
    none = np.zeros(num_states, bool)
    inner = np.arange(1, PARTS) / PARTS
    place = np.searchsorted(common.came_by(common.at), inner)
    edges = np.unique(common.at[place])
    edges = edges[edges < common.at[-1]]
    part = np.searchsorted(edges, delay[come], "left")
    size = len(edges) + 1
    seen = np.bincount(state[come] * size + part, minlength=num_states * size)
    seen = seen.reshape(num_states, size)
    ends = np.concatenate([[0.0], common.came_by(edges), [1.0]])
    grown = common.came_by(age)
    room = np.stack(
        [
            np.bincount(state, np.clip(grown, low, high) - low, num_states)
            for low, high in pairwise(ends)
        ],
        axis=1,
    )
    total = seen.sum(axis=1)
    expected = total[:, None] * room / np.maximum(room.sum(axis=1, keepdims=True), 1e-300)
    enough = (total >= ENOUGH) & (expected.min(axis=1) >= LEAST)
    freedom = (enough.sum() - 1) * (size - 1)
    if freedom < 1:
        return none
    far = ((seen - expected)[enough] ** 2 / expected[enough]).sum()
    return enough if stats.chi2.sf(far, freedom) < SURE else none
