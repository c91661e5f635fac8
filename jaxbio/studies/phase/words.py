"""Ranges of delays, as numbers and as text."""

from __future__ import annotations

import numpy as np


def or_none(ends: np.ndarray) -> list[float] | None:
    """Both ends, to a hundredth of a round; None where there is no such range."""
    return None if np.isnan(ends).any() else [round(float(end), 2) for end in ends]


def shown(ends: list[float] | None) -> str:
    """In words."""
    return "none of the grid" if ends is None else f"{ends[0]:,.0f} to {ends[1]:,.0f}"
