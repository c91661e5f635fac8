"""States made of a number."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def intervals(values: np.ndarray, bins: int | np.ndarray, column: str) -> np.ndarray:
    """float64 [S - 1], increasing: edges between states. bins: how many, with about as many rows
    each, or edges of the user's own.
    """
    if isinstance(bins, np.ndarray):
        return bins
    wanted = np.quantile(values, np.arange(1, bins) / bins) if len(values) else np.empty(0)
    edges = np.unique(wanted)
    edges = edges[edges > values.min(initial=np.inf)]  # below the first there must be something
    if not edges.size:
        raise ValueError(
            f"column {column!r} (state) has too few different values for bins={bins}: leave bins "
            "out, or give edges of your own"
        )
    return edges


def interval_labels(edges: np.ndarray) -> tuple[str, ...]:
    """below 3, 3 to 10, from 10."""
    texts = [f"{edge:.6g}" for edge in edges]
    if len(set(texts)) < len(texts):
        texts = [repr(float(edge)) for edge in edges]
    middle = [f"{one} to {other}" for one, other in pairwise(texts)]
    return (f"below {texts[0]}", *middle, f"from {texts[-1]}")
